// The arguments of one command: what it takes, its help text, and errors that teach.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/options/streams.h"
#include "app/options/syntax.h"
#include "core/base/error.h"

namespace pmaptrain::app {

// Everything that is added must outlive parse(), which writes into the given variables. A single-valued option that
// is given twice has its last value.
class Arguments {
 public:
  // "run", and what the command does: a sentence for the head of its help.
  Arguments(std::string command, std::string summary);
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  // `name` as in the usage line: CONFIG. An optional one may be left out. `example` completes the command where it is
  // missing.
  void positional(const std::string& name, std::string& target, const std::string& meaning, const std::string& example);
  // One or more of them: RUN...
  void positionals(const std::string& name, std::vector<std::string>& target, const std::string& meaning,
                   const std::string& example);
  void optional_positional(const std::string& name, std::optional<std::string>& target, const std::string& meaning);

  // `names` such as "--quiet,-q".
  void flag(const std::string& names, bool& target, const std::string& meaning);
  void text(const std::string& name, const std::string& value, std::optional<std::string>& target,
            const std::string& meaning);
  void list(const std::string& name, const std::string& value, std::vector<std::string>& target,
            const std::string& meaning);
  // An integer of at least `low`; or the word `zero`, if there is one, which is 0.
  void integer(const std::string& name, const std::string& value, std::int64_t low, std::optional<std::int64_t>& target,
               const std::string& meaning, const std::string& zero = "");
  void seed(const std::string& name, std::optional<std::uint64_t>& target, const std::string& meaning);
  // One of `words`; `set` is given its index.
  void word(const std::string& name, const std::vector<std::string>& words, std::function<void(std::size_t)> set,
            const std::string& meaning);

  // What shells complete for the positional argument or the option `name`, which must have been added. Without it they
  // take that from the name of the value (values_of).
  void complete(const std::string& name, const Values& values);

  // A paragraph below the options of the help text.
  void footer(std::string text);

  // False where --help was asked for: then it has been printed, or, where the output is a SyntaxStream, the syntax is
  // in it, and there is nothing to do. Throws Error (usage) for an unknown option, with the nearest spelling, a missing
  // or a superfluous argument, and for a value that its option does not take.
  bool parse(std::span<const std::string> arguments, const Streams& streams);

  // For a terminal of `columns` columns; 0: there is none.
  std::string help(int columns) const;
  CommandSyntax syntax() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The place of `value` in "--option value".
Place place_of(const std::string& option, const std::string& value);

// Throws Error (usage) that points there.
[[noreturn]] void fail_option(const std::string& option, const std::string& value, std::string message,
                              std::string help = {});

}  // namespace pmaptrain::app
