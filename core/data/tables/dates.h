// Dates in the cells of tables.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace pmaptrain::data {

// The numbers of a date in the order in which they are written (with the name of a month: year, month, day), and the
// time behind it.
struct DateCell {
  std::array<int, 3> numbers = {};
  std::string time;
};

// "2024-01-31", "31.01.2024 12:00", "1/31/24": three numbers with the same sign between them, and perhaps a time. Also
// "31 Jan 2024", "January 31, 2024" and "2024-01".
std::optional<DateCell> date_in(std::string_view cell);
// "20240131", of the years 1900 to 2099.
std::optional<DateCell> compact_date_in(std::string_view cell);

// Whether dates ascend from row to row, by any order of day, month and year in which all of them are dates.
class DateOrder {
 public:
  void take(const DateCell& date);
  // Some dates may be equal, but not most of few.
  bool is_ascending() const;

 private:
  struct Reading {
    bool is_possible = true, ascends = true;
    std::array<int, 3> last = {};
  };
  std::array<Reading, 3> readings_;
  std::string last_time_;
  int changes_ = 0;
  bool is_first_ = true;
};

}  // namespace pmaptrain::data
