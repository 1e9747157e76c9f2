// Events as lines of text, the same for a terminal, a pipe and log.txt; and the numbers in them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/run/records/events.h"

namespace pmaptrain::train {

// "0.43210", "12.345", "1234.5", "4.3210e-05", "nan": five significant digits, mostly in six or seven columns.
std::string compact(double value);

// What ended a member (MemberEnded::reason), as it follows "ended by".
std::string reason_text(const std::string& reason);

// "member 3", "members 0, 1, 2, 3, 4, 5, 6, 7 and 12 more"
std::string names_of(const std::vector<std::int64_t>& members);

// "0.8 s", "42.1 s", "1:23", "1:02:03", "2d 03:04:05"; "?" for what is negative or not finite.
std::string duration(double seconds);
// The same without fractions, for what ticks: "0:42".
std::string clock_time(double seconds);

// How expendable the alignment of a line's measures is (Line::lead), as Field::expendable has it.
inline constexpr int expendable_alignment = 4;

// "loss 0.4321", "12,345 examples/s", or only words.
struct Field {
  std::string label, value, unit;
  int expendable = 0;       // where a line does not fit a terminal, the largest goes first; 0 stays
  int expendable_unit = 0;  // the same of the unit alone
  std::string text() const;
};

enum class LineKind : std::uint8_t { note, step, epoch, evaluation, warning, error };

struct Line {
  LineKind kind = LineKind::note;
  std::vector<Field> fields;
  // Fields joined by two spaces. The first is padded to `lead` columns, so that measures stand below each other.
  int lead = 0;
  std::string text() const;
};

// Remembers from Started what later lines need (totals, widths). Progressed and Ended have no lines. Of several members
// a line has the medians of all measures, and the best and the worst loss with the member that has it.
class EventLines {
 public:
  // `verbose` adds the time since the start of training to step lines.
  explicit EventLines(bool verbose = false) : verbose_(verbose) {}
  std::vector<Line> operator()(const Event& event);

  std::int64_t steps() const { return steps_; }
  // Planned epochs, a partial last one counted; 0 when unknown.
  std::int64_t epochs() const { return epochs_; }

 private:
  Field step_field(std::int64_t step) const;
  std::string epoch_text(std::int64_t epoch) const;
  int lead() const;

  std::int64_t steps_ = 0, epochs_ = 0, steps_per_epoch_ = 0, members_ = 1;
  bool verbose_;
};

}  // namespace pmaptrain::train
