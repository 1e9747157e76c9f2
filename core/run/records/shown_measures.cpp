#include "core/run/records/shown_measures.h"

#include <algorithm>
#include <map>

#include "core/base/utf8.h"

namespace pmaptrain::run {
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

MeasureTable measure_table(const Ended& ended, const MemberEnded& member) {
  MeasureTable table{shown_measures(ended, member), {}, {}};
  std::map<std::string, std::size_t> known;
  for (const ShownMeasures& row : table.rows) {
    for (const auto& [name, value] : *row.measures) {
      if (known.try_emplace(name, known.size()).second) table.names.push_back(name);
    }
  }
  for (const ShownMeasures& row : table.rows) {
    auto& values = table.values.emplace_back(known.size());
    for (const auto& [name, value] : *row.measures) values[known.at(name)] = value;
  }
  return table;
}

std::vector<MemberColumn> member_columns(const Ended& ended) {
  std::vector<MemberColumn> columns;
  for (const char* const checkpoint : {"best", "last"}) {
    for (const char* const split : {"train", "validation", "test"}) {
      for (std::size_t m = 0; m < ended.members.size(); ++m) {
        for (const ShownMeasures& shown : shown_measures(ended, ended.members[m])) {
          if (shown.split != split || shown.checkpoint != checkpoint) continue;
          for (const auto& [name, value] : *shown.measures) {
            auto found = std::find_if(columns.begin(), columns.end(), [&, &measure = name](const MemberColumn& column) {
              return column.group == shown.name && column.name == measure;
            });
            if (found == columns.end()) {
              found = columns.insert(columns.end(), {checkpoint, shown.name, name, {}});
              found->values.resize(ended.members.size());
            }
            found->values[m] = value;
          }
        }
      }
    }
  }
  return columns;
}

}  // namespace pmaptrain::run
