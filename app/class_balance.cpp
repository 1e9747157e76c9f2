#include "app/class_balance.h"

#include <algorithm>

#include "core/data/statistics.h"
#include "core/data/tables/csv_reader.h"

namespace pmaptrain::app {
namespace {

constexpr double rare_share_of_two = 0.2;
constexpr double rare_part_of_many = 0.3;  // of the mean share of a class

}  // namespace

ClassBalance balance_of(const data::Source& source, bool divided) {
  ClassBalance balance;
  balance.counts = data::count_labels(*source.train);
  balance.examples = source.train->size();
  if (divided) {
    for (const auto& [label, count] : data::count_labels(*source.validation)) balance.counts[label] += count;
    balance.examples += source.validation->size();
  }
  const auto rarest = std::min_element(balance.counts.begin(), balance.counts.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (rarest == balance.counts.end()) return balance;
  balance.rarest = rarest->first;
  balance.least = rarest->second;
  const auto classes = static_cast<double>(std::max<std::size_t>(2, balance.counts.size()));
  const double rare = classes == 2 ? rare_share_of_two : rare_part_of_many / classes;
  balance.is_rare = static_cast<double>(balance.least) < rare * static_cast<double>(balance.examples);
  return balance;
}

std::vector<std::string> listed_classes(const ClassBalance& balance, const std::vector<std::string>& names) {
  std::vector<std::string> classes = names;
  bool are_from_0 = true;
  if (names.empty()) {
    for (const auto& entry : balance.counts) {
      are_from_0 = are_from_0 && static_cast<std::size_t>(entry.first) == classes.size();
      classes.push_back(std::to_string(entry.first));
    }
  }
  const bool is_rare_of_two = classes.size() == 2 && balance.counts.size() == 2 && balance.is_rare;
  const bool is_first = is_rare_of_two && balance.rarest == balance.counts.begin()->first;
  if (is_first) std::swap(classes.front(), classes.back());
  // A loss of a single logit would take numbers that are not listed as probabilities.
  const bool are_numbers = is_rare_of_two && !names.empty() && std::all_of(names.begin(), names.end(), is_number);
  return is_first || are_numbers || !are_from_0 ? classes : std::vector<std::string>();
}

bool is_number(const std::string& text) { return data::to_number(text).kind == data::CellNumber::Kind::number; }

}  // namespace pmaptrain::app
