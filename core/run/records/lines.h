// Events as lines of text, equal for a terminal, a pipe and log.txt; and formatted numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/run/records/events.h"

namespace pmaptrain::run {

// Five significant digits, usually in six or seven columns: "0.43210", "12.345", "1234.5", "4.3210e-05", "nan".
std::string compact(double value);

// The reason why a member ended (MemberEnded::reason), worded to follow "ended by".
std::string reason_text(const std::string& reason);

// "member 3", "members 0, 1, 2, 3, 4, 5, 6, 7 and 12 more"
std::string names_of(const std::vector<std::int64_t>& members);

// "0.8 s", "42.1 s", "1:23", "1:02:03", "2d 03:04:05"; "?" for a negative or non-finite value.
std::string duration(double seconds);
// A duration in whole seconds, for displays that count: "0:42".
std::string clock_time(double seconds);

// The value of Field::expendable for the alignment of a line's measures (Line::lead).
inline constexpr int expendable_alignment = 4;

// How many epochs a run begins; 0 if it counts none.
std::int64_t epochs_of(const Started& run);

// A part of a line: "loss 0.4321", "12,345 examples/s", or words only.
struct Field {
  std::string label, value, unit;
  int expendable = 0;       // if a line is too wide, fields with the largest value are dropped first; 0: never
  int expendable_unit = 0;  // the same for the unit alone
  std::string text() const;
};

enum class LineKind : std::uint8_t { note, step, epoch, evaluation, warning, error };

struct Line {
  LineKind kind = LineKind::note;
  std::vector<Field> fields;
  // Fields are joined by two spaces. The first is padded to `lead` columns, so that measures are aligned.
  int lead = 0;
  std::string text() const;
};

// Formats events as lines. Remembers totals and widths from Started. Progressed and Ended have no lines. For several
// members, a line has the medians of all measures, and the best and the worst loss with their members.
class EventLines {
 public:
  // `verbose` adds the time since the start of training to the lines of steps.
  explicit EventLines(bool verbose = false) : verbose_(verbose) {}
  std::vector<Line> operator()(const Event& event);

  std::int64_t steps() const { return steps_; }
  // The number of planned epochs, including a partial last one; 0 if unknown.
  std::int64_t epochs() const { return epochs_; }

 private:
  Field step_field(std::int64_t step) const;
  std::string epoch_text(std::int64_t epoch) const;
  int lead() const;

  std::int64_t steps_ = 0, epochs_ = 0, steps_per_epoch_ = 0, members_ = 1;
  bool verbose_;
};

}  // namespace pmaptrain::run
