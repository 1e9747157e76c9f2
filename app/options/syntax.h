// What commands take, as data: for shells that complete command lines, and for the manual page.
#pragma once

#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace pmaptrain::app {

// Which values an option or a positional argument takes, as far as a shell can complete them.
struct Values {
  enum class Kind {
    none,  // nothing follows
    any,   // a number, a name
    words,
    files,        // with one of the endings `words`, or with any
    named_files,  // NAME=FILE
    folders,
    settings,  // KEY=VALUE of a config, or of one of the keys `words`
    keys,      // the path of a config key, or one of `words`
  };
  Kind kind = Kind::none;
  std::vector<std::string> words = {};

  friend bool operator==(const Values&, const Values&) = default;
};

// What stands for a value in help says what it is: words in lower case ("auto|bar|plain"), FILE, FILE.npz, DIR, RUN,
// CONFIG, KEY=VALUE, ... Other names stand for any value.
Values values_of(std::string_view name);

struct OptionSyntax {
  std::vector<std::string> names;  // "-q", "--quiet"
  std::string value;               // "KEY=VALUE"; empty: it takes none
  std::string meaning;
  bool repeats = false;
  Values values = {};

  std::string shown() const;  // "-q, --quiet", "--set KEY=VALUE"
};

struct PositionalSyntax {
  std::string name;  // "CONFIG"
  std::string meaning;
  bool required = false, repeats = false;
  Values values = {};
};

struct CommandSyntax {
  std::string command;  // "run", "sweep run"
  std::string summary;  // a sentence
  std::vector<PositionalSyntax> positionals = {};
  std::vector<OptionSyntax> options = {};
  std::string footer = {};  // in lines, each with its end

  std::string arguments() const;  // "CONFIG", "[NAME] [PATH] [FILE]"
  std::string usage() const;      // "pmaptrain run CONFIG [OPTION]..."
};

// A command of the program. One with sub-commands takes nothing itself.
struct CommandEntry {
  std::string name, summary;
  std::optional<CommandSyntax> syntax = {};
  std::vector<CommandSyntax> subcommands = {};
};

struct ProgramSyntax {
  std::vector<OptionSyntax> options;  // those without a command
  std::vector<CommandEntry> commands;
};

// A stream for --help that takes the syntax of a command, where a command that is asked for help would print it.
class SyntaxStream : public std::ostringstream {
 public:
  std::optional<CommandSyntax> syntax;
};

}  // namespace pmaptrain::app
