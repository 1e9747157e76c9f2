// Errors for users: place, message, suggested fix and exit status.
//
// Exceptions are for failures of a run and for invalid input; assertions are for bugs.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmaptrain {

// The exit statuses of the process; scripts depend on them.
enum class ExitStatus : int {
  done = 0,
  failed = 1,    // failed while running
  usage = 2,     // the command line or the config is wrong, or the run folder exists
  data = 3,      // the data is missing, damaged or does not fit the config
  resource = 4,  // a resource is missing or taken
  guard = 5,     // training stopped by a guard: NaN or infinity, or a diverged replica
};

// A line of a text, without its line end. Copies share it, for a line may have thousands of places.
class SourceLine {
 public:
  SourceLine() = default;
  SourceLine(std::string line) : line_(std::make_shared<const std::string>(std::move(line))) {}
  SourceLine(const char* line) : SourceLine(std::string(line)) {}
  // May own more than the line: the text that it is a line of.
  explicit SourceLine(std::shared_ptr<const std::string> line) : line_(std::move(line)) {}

  std::string_view text() const { return line_ ? std::string_view(*line_) : std::string_view(); }
  friend bool operator==(const SourceLine& a, const SourceLine& b) { return a.text() == b.text(); }

 private:
  std::shared_ptr<const std::string> line_;
};

// A range within one line of a file, an option or a program text. Lines and columns count from 1, columns in
// characters. Line 0 stands for the whole file; an empty file means that there is no place.
struct Place {
  std::string file;    // as the user wrote it; for an argument the name of the option ("--set")
  int line = 0;        // 0: no line
  int column = 0;      // 0: no column
  int length = 1;      // characters to underline; may go past the end of the line
  SourceLine excerpt;  // the whole line

  bool known() const { return !file.empty(); }
  friend bool operator==(const Place&, const Place&) = default;
};

struct Diagnostic {
  std::string kind;  // config, usage, data, resource, program, guard, result, internal
  Place place;
  std::string message;
  std::string help = {};  // a suggested fix; may be empty
  std::vector<std::string> notes = {};
  std::string file = {};  // of data, which the message is about: the place is that of the key that names it
};

// One or more diagnostics that end a command. what() is the rendered text without colour.
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

// Throw Error without a place. `help` may be empty.
[[noreturn]] void fail_usage(std::string message, std::string help = {});
[[noreturn]] void fail_data(std::string message, std::string help = {});
[[noreturn]] void fail_resource(std::string message, std::string help = {});
[[noreturn]] void fail_running(std::string message, std::string help = {});

// Renders a diagnostic as lines: "file:line:column: error: message", the excerpt and a line of carets (aligned by
// display width, with the tabs of the excerpt), then help and notes. `color` adds ANSI sequences. `columns`: the width
// of the terminal that the text is for; 0 where there is none. Of a longer line the excerpt is the part around the
// column.
std::string render(const Diagnostic& diagnostic, bool color = false, int columns = 0);
std::string render(const std::vector<Diagnostic>& diagnostics, bool color = false, int columns = 0);

}  // namespace pmaptrain
