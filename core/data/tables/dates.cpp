#include "core/data/tables/dates.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <vector>

namespace pmaptrain::data {
namespace {

int number_of(std::string_view digits) {
  int number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

// The digits at the beginning, which are removed; none where they are no part of a date.
std::optional<int> take_number(std::string_view& text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0 || digits > 4 || digits == 3) return std::nullopt;
  const int number = number_of(text.substr(0, digits));
  text.remove_prefix(digits);
  return number;
}

// 1 to 12 for a name of a month, or its first three letters; else 0.
int month_named(std::string_view word) {
  constexpr std::array<std::string_view, 12> names = {"january",   "february", "march",    "april",
                                                      "may",       "june",     "july",     "august",
                                                      "september", "october",  "november", "december"};
  std::string lower(word);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (lower == names[i] || lower == names[i].substr(0, 3)) return static_cast<int>(i) + 1;
  }
  return 0;
}

// "31 Jan 2024", "31-Jan-24", "January 31, 2024"
std::optional<DateCell> date_with_name(std::string_view cell) {
  std::vector<std::string_view> words;
  while (!cell.empty() && words.size() < 4) {
    const std::size_t first = std::min(cell.find_first_not_of(" -,./"), cell.size());
    cell.remove_prefix(first);
    const std::size_t end = std::min(cell.find_first_of(" -,./"), cell.size());
    if (end > 0) words.push_back(cell.substr(0, end));
    cell.remove_prefix(end);
  }
  if (words.size() != 3) return std::nullopt;
  const std::size_t at = month_named(words[0]) != 0 ? 0 : 1;
  const int month = month_named(words[at]);
  std::string_view day = words[at == 0 ? 1 : 0], year = words[2];
  const std::optional<int> of_day = take_number(day), of_year = take_number(year);
  if (month == 0 || !of_day || !of_year || !day.empty() || !year.empty()) return std::nullopt;
  return DateCell{{*of_year, month, *of_day}, ""};
}

// Later times of a day are longer, or as long and later in the order of texts: "9:05", "10:05".
bool is_before(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

}  // namespace

std::optional<DateCell> date_in(std::string_view cell) {
  if (std::optional<DateCell> named = date_with_name(cell)) return named;
  DateCell date;
  char sign = 0;
  const bool begins_with_year = cell.find_first_not_of("0123456789") == 4;
  for (std::size_t part = 0; part < 3; ++part) {
    const std::optional<int> number = take_number(cell);
    if (!number) return std::nullopt;
    date.numbers[part] = *number;
    if (part == 2) break;
    if (part == 1 && cell.empty() && begins_with_year && sign != '.' && *number >= 1 && *number <= 12) return date;
    if (cell.empty() || std::string_view("-./").find(cell[0]) == std::string_view::npos) return std::nullopt;
    if (part == 1 && cell[0] != sign) return std::nullopt;
    sign = cell[0];
    cell.remove_prefix(1);
  }
  const bool has_time = !cell.empty() && (cell[0] == ' ' || cell[0] == 'T') && cell.find(':') != std::string_view::npos;
  if (!cell.empty() && !has_time) return std::nullopt;
  date.time = cell;
  return date;
}

std::optional<DateCell> compact_date_in(std::string_view cell) {
  if (cell.size() != 8 || cell.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  const DateCell date{{number_of(cell.substr(0, 4)), number_of(cell.substr(4, 2)), number_of(cell.substr(6))}, ""};
  const auto& [year, month, day] = date.numbers;
  const bool is_date = year >= 1900 && year < 2100 && month >= 1 && month <= 12 && day >= 1 && day <= 31;
  return is_date ? std::optional(date) : std::nullopt;
}

void DateOrder::take(const DateCell& date) {
  // Year, month, day; day, month, year; month, day, year.
  constexpr std::array<std::array<std::size_t, 3>, 3> orders = {{{0, 1, 2}, {2, 1, 0}, {2, 0, 1}}};
  bool has_changed = false;
  for (std::size_t i = 0; i < orders.size(); ++i) {
    Reading& reading = readings_[i];
    const auto& [year, month, day] = orders[i];
    const std::array<int, 3> key = {date.numbers[year], date.numbers[month], date.numbers[day]};
    reading.is_possible = reading.is_possible && key[1] <= 12 && key[2] <= 31;
    const bool is_equal = key == reading.last;
    const bool is_later = is_equal ? !is_before(date.time, last_time_) : key > reading.last;
    has_changed = has_changed || !is_equal || date.time != last_time_;
    reading.ascends = is_first_ || (reading.ascends && is_later);
    reading.last = key;
  }
  if (!is_first_ && has_changed) ++changes_;
  last_time_ = date.time;
  is_first_ = false;
}

bool DateOrder::is_ascending() const {
  constexpr int least_changes = 4;  // fewer ascend by chance
  return changes_ >= least_changes && std::any_of(readings_.begin(), readings_.end(), [](const Reading& reading) {
           return reading.is_possible && reading.ascends;
         });
}

}  // namespace pmaptrain::data
