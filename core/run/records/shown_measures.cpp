#include "core/run/records/shown_measures.h"

#include <algorithm>

#include "core/base/utf8.h"

namespace pmaptrain::train {
namespace {

bool has_both(const MemberEnded& member) {
  return member.selected && member.selected->step != member.steps && !member.selected->measures.empty();
}

}  // namespace

std::vector<ShownMeasures> shown_measures(const Ended& ended, const MemberEnded& member) {
  const bool named = std::any_of(ended.members.begin(), ended.members.end(), has_both);
  std::vector<ShownMeasures> shown;
  const auto add = [&](const std::string& checkpoint, const SplitMeasures& splits, const Confusions& confusions) {
    for (const auto& [split, measures] : splits) {
      const auto confusion = confusions.find(split);
      shown.push_back({shown_name(split) + (named ? " (" + checkpoint + ")" : ""), checkpoint, split, &measures,
                       confusion == confusions.end() ? nullptr : &confusion->second});
    }
  };
  if (named && member.selected)
    add(member.selected->checkpoint, member.selected->measures, member.selected->confusions);
  add("last", member.final_measures, member.confusions);
  return shown;
}

}  // namespace pmaptrain::train
