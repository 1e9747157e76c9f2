// What there is to write to: a file descriptor that may be a terminal, and what it can show.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace pmaptrain::display {

enum class Progress : unsigned char { automatic, bar, plain, none };
enum class Color : unsigned char { automatic, always, never };

// A closed pipe, or a file beyond the limit on sizes, then makes writes fail instead of ending the process. Standard
// streams that are closed are opened to /dev/null, so that no file of ours takes their place and gets what was meant
// for them; standard output only for reading, so that what was asked for and goes nowhere is a failure as on a full
// disk. Call it first in main.
void let_writes_fail();

// Whether ANSI colours are to be used on `fd`: by `color`, else where it is a terminal that is not dumb and NO_COLOR
// is unset or empty. A launcher may give its processes a terminal of its own as standard output, whatever it writes to
// itself (Open MPI's mpirun does), so under one only the terminal that controls the process counts.
bool use_color(Color color, int fd);

// Whether the locale's variables ask for UTF-8.
bool locale_is_utf8();

// Writes to a file descriptor that it does not own, and blocks until the data is written, also on a non-blocking
// descriptor. After a failed write (a closed pipe or terminal, a full disk) all later writes are silently dropped.
class Output {
 public:
  explicit Output(int fd) : fd_(fd) {}
  void write(std::string_view text);
  bool broken() const { return broken_; }

 private:
  int fd_;
  bool broken_ = false;
};

// Everything the display must know of its surroundings, so that tests can choose it.
struct Terminal {
  int fd = 2;
  bool moving = false;               // the cursor can be moved: a terminal, not dumb
  bool color = false;                // ANSI colours
  bool utf8 = false;                 // characters beyond ASCII for the bar
  std::function<int()> width;        // columns now; 0 or less: unknown
  std::function<double()> now;       // seconds on a steady clock
  std::function<int()> height = {};  // lines now; 0 or less: unknown
};

// Standard error as it is.
Terminal standard_error(Color color);

// Columns of the terminal `fd`, asked of the system each time; 0 when unknown.
int columns_of(int fd);
// The same of its lines.
int lines_of(int fd);
// The columns that text may fill on `fd`, or on a terminal that tells its width: all but the last, behind which some
// terminals wrap. 0 when unknown.
int text_columns(int fd);
int text_columns(const std::function<int()>& width);

}  // namespace pmaptrain::display
