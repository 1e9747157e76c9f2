// Lines that stay and, on a terminal that can move its cursor, one status line below them that is redrawn in place.
// Knows nothing of what the lines say.
#pragma once

#include <string>
#include <string_view>

#include "app/display/terminal.h"

namespace pmaptrain::display {

class LinePrinter {
 public:
  // With `moving` false, status lines are not shown at all.
  LinePrinter(int fd, bool moving) : output_(fd), moving_(moving) {}
  ~LinePrinter() { clear_status(); }
  LinePrinter(const LinePrinter&) = delete;
  LinePrinter& operator=(const LinePrinter&) = delete;

  // Replaces the status line. `text` fits the terminal and has no end of line.
  void set_status(std::string text);
  // Shows `text` (whole lines with their ends) above the status line, which may be renewed in the same write.
  void print(std::string_view text);
  void print(std::string_view text, std::string status);
  // Takes the status line away: the cursor is at the start of an empty line.
  void clear_status();
  // Leaves the status line where it is: the cursor is at the start of the line below it.
  void keep_status();

  bool moving() const { return moving_; }

 private:
  Output output_;
  bool moving_;
  std::string status_;  // as shown; empty: none is
};

}  // namespace pmaptrain::display
