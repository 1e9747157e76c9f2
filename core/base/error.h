// What goes wrong for a user: where, what was found, what would fix it, and with which exit status.
//
// Exceptions are for what ends a run and for a user's mistake; assertions are for ours.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace pmaptrain {

// The process's exit statuses, as documented for scripts.
enum class ExitStatus : int {
  done = 0,
  failed = 1,    // failed while running
  usage = 2,     // the command line or the config is wrong, or the run folder exists
  data = 3,      // the data is missing, damaged or does not fit the config
  resource = 4,  // a resource is missing or taken
  guard = 5,     // training stopped by a guard: NaN or infinity, or a diverged replica
};

// A span of one line of a file, an option or a program text. Line and column count characters from 1; line 0 means
// that the place is a whole file (or, with an empty file, that there is none).
struct Place {
  std::string file;     // as the user wrote it; an option's name ("--set") for an argument
  int line = 0;         // 0: no line
  int column = 0;       // 0: no column
  int length = 1;       // characters to underline
  std::string excerpt;  // the line's text, without its end

  bool known() const { return !file.empty(); }
  friend bool operator==(const Place&, const Place&) = default;
};

struct Diagnostic {
  std::string kind;  // config, usage, data, resource, program, guard, internal
  Place place;
  std::string message;
  std::string help = {};  // what would fix it; may be empty
  std::vector<std::string> notes = {};
};

// One or more diagnostics that end what was asked. what() is the rendered text without colour.
class Error : public std::runtime_error {
 public:
  Error(ExitStatus status, std::vector<Diagnostic> diagnostics);
  Error(ExitStatus status, Diagnostic diagnostic) : Error(status, std::vector{std::move(diagnostic)}) {}

  ExitStatus status() const { return status_; }
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  ExitStatus status_;
  std::vector<Diagnostic> diagnostics_;
};

// Errors that have no place in a text. `help` may be empty.
[[noreturn]] void fail_data(std::string message, std::string help = {});
[[noreturn]] void fail_resource(std::string message, std::string help = {});
[[noreturn]] void fail_running(std::string message, std::string help = {});

// The diagnostic as lines that end in '\n': "file:line:column: error: message", the excerpt with a caret line that
// copies tabs and counts display width, then help and notes. `color` wraps parts in ANSI sequences.
std::string render(const Diagnostic& diagnostic, bool color = false);
std::string render(const std::vector<Diagnostic>& diagnostics, bool color = false);

}  // namespace pmaptrain
