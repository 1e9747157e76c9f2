#include "app/options/display_option.h"

namespace pmaptrain::app {

void add_display_options(Arguments& arguments, display::DisplayOptions& options, const std::string& bar) {
  arguments.word(
      "--progress", {"auto", "bar", "plain", "none"},
      [&options](std::size_t i) { options.progress = static_cast<display::Progress>(i); },
      "output on standard error: " + bar + ", plain lines, or warnings and errors only");
  arguments.word(
      "--color", {"auto", "always", "never"},
      [&options](std::size_t i) { options.color = static_cast<display::Color>(i); },
      "auto uses colour on a terminal, unless NO_COLOR is set, or the terminal is one of mpirun's");
}

}  // namespace pmaptrain::app
