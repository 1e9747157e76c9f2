#include "core/runtime/rendezvous.h"

#include <algorithm>
#include <functional>
#include <map>
#include <sstream>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"

namespace pmaptrain {
namespace {

// What each rank does together with the same others, in order.
using ByRank = std::map<int, std::vector<std::string>>;
using ByGroup = std::map<std::vector<int>, ByRank>;

ByGroup groups_of(int first_rank, const std::vector<std::vector<Rendezvous>>& own) {
  ByGroup groups;
  int rank = first_rank;
  for (const std::vector<Rendezvous>& of_rank : own) {
    for (const Rendezvous& one : of_rank) groups[one.ranks][rank].push_back(one.what);
    ++rank;
  }
  return groups;
}

// A line for each thing that a rank does: its number, how many take part, their numbers, and what they do. With
// `hashed` one line for each group, whose last word is a hash of all that the rank does in it.
std::string to_lines(const ByGroup& groups, bool hashed) {
  std::ostringstream lines;
  for (const auto& [group, by_rank] : groups) {
    for (const auto& [rank, all] : by_rank) {
      const auto add = [&, &ranks = group, number = rank](const auto& what) {
        lines << number << ' ' << ranks.size();
        for (const int each : ranks) lines << ' ' << each;
        lines << ' ' << what << '\n';
      };
      if (hashed) {
        add(std::hash<std::string>()(join(all, "\n")));
      } else {
        for (const std::string& what : all) add(what);
      }
    }
  }
  return lines.str();
}

void add_lines(const std::string& text, ByGroup& groups) {
  std::istringstream lines(text);
  int rank = 0;
  std::size_t count = 0;
  while (lines >> rank >> count) {
    std::vector<int> ranks(count);
    for (int& each : ranks) lines >> each;
    std::string what;
    lines.get();
    std::getline(lines, what);
    groups[std::move(ranks)][rank].push_back(std::move(what));
  }
}

ByGroup groups_of_all(const Processes& processes, const std::string& own) {
  ByGroup groups;
  for (const std::string& lines : texts_of_all(processes, own)) add_lines(lines, groups);
  return groups;
}

// The first difference of two ranks of a group as text; empty if there is none.
std::string difference(std::string_view noun, const std::vector<int>& group, ByRank& by_rank) {
  const std::vector<std::string>& first = by_rank[group.front()];
  for (const int rank : group) {
    const std::vector<std::string>& other = by_rank[rank];
    if (other == first) continue;
    const auto [at, other_at] = std::mismatch(first.begin(), first.end(), other.begin(), other.end());
    const auto shown = [](const std::vector<std::string>& all, auto where) {
      return where == all.end() ? std::string("nothing more") : *where;
    };
    std::ostringstream text;
    text << noun << ' ' << group.front() << " and " << noun << ' ' << rank
         << " would wait for each other without end: number " << at - first.begin() + 1
         << " of what they do together is, in " << noun << ' ' << group.front() << ", " << shown(first, at) << "; in "
         << noun << ' ' << rank << ", " << shown(other, other_at);
    return text.str();
  }
  return "";
}

std::string difference(std::string_view noun, ByGroup&& groups) {
  for (auto& [group, by_rank] : groups) {
    if (std::string found = difference(noun, group, by_rank); !found.empty()) return found;
  }
  return "";
}

}  // namespace

std::string rendezvous_text(std::size_t bytes, const Equation& equation, double times) {
  const Origin& origin = *equation.origin;
  std::string text = counted(static_cast<std::int64_t>(bytes), "byte") + " for " + std::string(equation.op.name());
  if (!origin.scope.empty()) text += " of '" + origin.scope + "'";
  if (times != 1) text += ", " + std::to_string(static_cast<std::int64_t>(times)) + " times";
  return text;
}

void check_rendezvous(const Processes& processes, std::string_view noun, int first_rank,
                      const std::vector<std::vector<Rendezvous>>& own) {
  const ByGroup groups = groups_of(first_rank, own);
  // Of many ranks the texts would be large, so they are sent only where the hashes differ, which all processes see.
  if (difference(noun, groups_of_all(processes, to_lines(groups, true))).empty()) return;
  const std::string found = difference(noun, groups_of_all(processes, to_lines(groups, false)));
  if (found.empty()) return;
  fail_running(found,
               "all must run the same build of pmaptrain and of its libraries; if they do, it is a mistake of "
               "pmaptrain");
}

}  // namespace pmaptrain
