#include "app/options/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "app/display/terminal.h"
#include "core/base/text.h"
#include "core/base/wrap.h"
#include "core/hints/hints.h"
#include "core/spec/keys.h"
#include "core/spec/meant.h"

namespace pmaptrain::app {
namespace {

constexpr int widest_name = 28;

template <class T>
std::optional<T> parse_whole(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

}  // namespace

struct Arguments::Impl {
  CLI::App cli;
  std::string command;
  CommandSyntax syntax;
  std::vector<std::string> names;                                // "--set", "-q", ...: for the nearest spelling
  std::vector<std::pair<std::string, std::string>> takes_value;  // "--set", "KEY=VALUE"
  struct Required {
    std::string name, example;
    std::function<bool()> is_missing;
  };
  std::vector<Required> required;
  bool wants_help = false;

  std::string hint() const { return "pmaptrain " + command + " --help lists its options"; }

  void describe(const std::string& name_list, const std::string& value, const std::string& meaning,
                bool repeats = false) {
    OptionSyntax option{CLI::detail::split(name_list, ','), value, meaning, repeats, values_of(value)};
    for (const std::string& name : option.names) {
      names.push_back(name);
      if (!value.empty()) takes_value.emplace_back(name, value);
    }
    syntax.options.push_back(std::move(option));
  }

  // One value, the last one where it is given again.
  void single(const std::string& name, const std::string& value, const std::string& meaning,
              const std::function<void(const std::string&)>& set) {
    cli.add_option_function<std::string>(name, set)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    describe(name, value, meaning);
  }

  // What CLI11 says in words of its own, or misreads: an option without its value, and "--name=".
  void check_values(std::span<const std::string> arguments) const {
    for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
      for (const auto& [name, value] : takes_value) {
        const bool bare = arguments[i] == name;
        const bool empty =
            arguments[i].size() == name.size() + 1 && arguments[i].starts_with(name) && arguments[i].back() == '=';
        if (bare && i + 1 == arguments.size()) fail_usage(name + " needs a value", join({name, value}, " "));
        if (empty || (bare && arguments[i + 1].empty())) {
          fail_usage(name + " needs a value, and this one is empty", join({name, value}, " "));
        }
        if (bare) {
          ++i;
          break;
        }
      }
    }
  }

  bool has_option(std::string_view name) const { return std::find(names.begin(), names.end(), name) != names.end(); }

  // What was written with an option that there is not: "--epochs=3", "--epochs 3".
  static std::string value_of(const std::string& option, std::span<const std::string> arguments) {
    if (const std::size_t equals = option.find('='); equals != std::string::npos) return option.substr(equals + 1);
    const auto at = std::find(arguments.begin(), arguments.end(), option);
    const bool has_value = at != arguments.end() && at + 1 != arguments.end() && !(at + 1)->starts_with("-");
    return has_value ? *(at + 1) : "";
  }

  // Of "--trials" the key that --set takes: "trials"; empty without one.
  std::string setting_of(const std::string& name) const {
    for (const OptionSyntax& option : syntax.options) {
      const bool is_set = std::find(option.names.begin(), option.names.end(), "--set") != option.names.end();
      const std::vector<std::string>& keys = option.values.words;
      if (is_set && name.size() > 2 && std::find(keys.begin(), keys.end(), name.substr(2)) != keys.end())
        return name.substr(2);
    }
    return "";
  }

  // Of "--config" the one option that ends in these words: "--print-config"; empty without one.
  std::string ending_in(const std::string& name) const {
    std::string found;
    for (const std::string& one : names) {
      if (name.size() <= 3 || !one.starts_with("--") || !one.ends_with(name.substr(1))) continue;
      if (!found.empty()) return "";
      found = one;
    }
    return found;
  }

  // The value of an option that sets a config key, as that key takes it: adam of "--optimizer Adam".
  static spec::Meant meant_by(const std::string& option, const std::string& value) {
    constexpr std::string_view mark = "?";
    const std::optional<Hint> hint = hint_for("option", option, mark);
    const std::size_t set = hint ? hint->help.find("--set ") : std::string::npos;
    const std::size_t begin = set == std::string::npos ? set : hint->help.find_first_not_of("' ", set + 5);
    const bool is_whole = begin != std::string::npos && hint->help.find(mark) != std::string::npos &&
                          hint->help.find("? ") == std::string::npos;  // unlike duration=? epochs
    if (value.empty() || !is_whole) return {value, ""};
    // data.source=?, optimizer.?={}
    std::string path = hint->help.substr(begin, hint->help.find_first_of("=?", begin) - begin);
    if (path.ends_with('.')) path.pop_back();
    const spec::Key* const key = spec::find_key(path);
    return key == nullptr ? spec::Meant{value, ""} : spec::meant_value(*key, value);
  }

  [[noreturn]] void refuse_option(const std::string& option, std::span<const std::string> arguments) const {
    const std::string name = option.substr(0, option.find('='));
    const std::string longer = ending_in(name);
    if (!longer.empty()) {
      fail_usage("pmaptrain " + command + " has no option '" + name + "'", "did you mean '" + longer + "'?");
    }
    const std::string path = name.substr(std::min(name.find_first_not_of('-'), name.size()));
    if (has_option("--set") && path.find('.') != std::string::npos && spec::find_key(path) != nullptr) {
      const std::string value = value_of(option, arguments);
      fail_usage("pmaptrain " + command + " has no option '" + name + "'",
                 "a key of the config is set by --set: write --set " +
                     shell_quoted(path + "=" + (value.empty() ? "VALUE" : value)));
    }
    const spec::Meant meant = meant_by(name, value_of(option, arguments));
    if (!meant.refused.empty()) {
      fail_usage("pmaptrain " + command + " has no option '" + name + "'", meant.refused);
    }
    const std::optional<Hint> known = hint_for("option", name, meant.value);
    const std::string near = name.size() > 2 ? nearest(name, names) : "";  // "-o" is as near to any other letter
    if (const std::string setting = setting_of(name); !setting.empty()) {
      const std::string value = value_of(option, arguments);
      fail_usage("pmaptrain " + command + " has no option '" + name + "'",
                 "write --set " + shell_quoted(setting + "=" + (value.empty() ? "VALUE" : value)));
    }
    const bool helps = known && !same_letters(name, names) && (!known->is_supported() || has_option(known->meant));
    fail_usage("pmaptrain " + command + " has no option '" + name + "'", helps ? known->help
                                                                         : near.empty()
                                                                             ? hint()
                                                                             : "did you mean '" + near + "'?");
  }

  // "key=value" without --set, or with a space in place of '='.
  void check_settings(const std::string& argument, std::span<const std::string> arguments) const {
    if (!has_option("--set")) return;
    const auto at =
        static_cast<std::size_t>(std::find(arguments.begin(), arguments.end(), argument) - arguments.begin());
    const bool lacks_value = at >= 2 && at < arguments.size() && arguments[at - 2] == "--set" &&
                             arguments[at - 1].find('=') == std::string::npos;
    if (lacks_value) {
      fail_usage("--set " + arguments[at - 1] + " has no value",
                 "write --set " + shell_quoted(arguments[at - 1] + "=" + argument));
    }
    const std::size_t equals = argument.find('=');
    if (argument.size() > 1 && argument.starts_with('~')) {  // as Hydra removes keys
      fail_usage("unexpected argument '" + argument + "'",
                 "--set restores the default of a key: write --set " +
                     shell_quoted(argument.substr(1, equals == std::string::npos ? equals : equals - 1) + "=null"));
    }
    if (equals == std::string::npos || equals == 0) return;
    std::string key = argument.substr(0, equals);
    key.erase(0, key.find_first_not_of('+'));  // as Hydra adds keys
    const std::size_t dot = key.rfind('.');
    const std::string map = dot == std::string::npos ? "" : key.substr(0, dot);
    const std::optional<Hint> known = hint_for_key(map, key.substr(dot == std::string::npos ? 0 : dot + 1));
    std::string path = known && known->is_supported() ? known->path : key;
    if (const auto found = spec::find_ending(path); spec::find_key(path) == nullptr && found.size() == 1) {
      path = found.front()->path;
    }
    std::string value = argument.substr(equals + 1);
    if (const spec::Key* const meant = spec::find_key(path)) value = spec::meant_value(*meant, value).value;
    fail_usage("unexpected argument '" + argument + "'",
               "a key of the config is set by --set: write --set " + shell_quoted(path + "=" + value));
  }

  void check_remaining(std::span<const std::string> arguments) const {
    const std::vector<std::string> remaining = cli.remaining();
    const auto end = std::find(remaining.begin(), remaining.end(), "--");  // of the options
    for (const std::string& argument : std::span(remaining.begin(), end)) {
      if (argument.starts_with("-") && argument != "-") refuse_option(argument, arguments);
    }
    for (const std::string& argument : std::span(remaining.begin(), end)) check_settings(argument, arguments);
    for (const std::string& argument : std::span(end, remaining.end())) {
      if (!argument.starts_with("-") || argument == "-" || argument == "--") continue;
      fail_usage("unexpected argument '" + argument + "' after '--', which ends the options",
                 "write options before '--', or omit it; " + hint());
    }
    for (const std::string& argument : remaining) {
      if (argument == "--") continue;
      fail_usage("unexpected argument '" + argument + "'",
                 "pmaptrain " + command + " takes " +
                     (syntax.positionals.empty() ? "only options" : syntax.arguments()) + "; " + hint());
    }
  }
};

Arguments::Arguments(std::string command, std::string summary) : impl_(std::make_unique<Impl>()) {
  impl_->command = std::move(command);
  impl_->syntax.command = impl_->command;
  impl_->syntax.summary = std::move(summary);
  impl_->cli.set_help_flag();  // ours prints help
  impl_->cli.add_flag("--help,-h", impl_->wants_help);
  impl_->names = {"--help", "-h"};
  impl_->cli.allow_extras();
}

Arguments::~Arguments() = default;

void Arguments::positional(const std::string& name, std::string& target, const std::string& meaning,
                           const std::string& example) {
  impl_->cli.add_option(name, target);
  impl_->syntax.positionals.push_back({name, meaning, true, false, values_of(name)});
  impl_->required.push_back({name, example, [&target] { return target.empty(); }});
}

void Arguments::positionals(const std::string& name, std::vector<std::string>& target, const std::string& meaning,
                            const std::string& example) {
  impl_->cli.add_option(name, target);
  impl_->syntax.positionals.push_back({name, meaning, true, true, values_of(name)});
  impl_->required.push_back({name, example, [&target] { return target.empty(); }});
}

void Arguments::optional_positional(const std::string& name, std::optional<std::string>& target,
                                    const std::string& meaning) {
  impl_->cli.add_option_function<std::string>(name, [&target](const std::string& value) { target = value; });
  impl_->syntax.positionals.push_back({name, meaning, false, false, values_of(name)});
}

void Arguments::flag(const std::string& names, bool& target, const std::string& meaning) {
  impl_->cli.add_flag(names, target);
  impl_->describe(names, "", meaning);
}

void Arguments::text(const std::string& name, const std::string& value, std::optional<std::string>& target,
                     const std::string& meaning) {
  impl_->single(name, value, meaning, [&target](const std::string& given) { target = given; });
}

void Arguments::list(const std::string& name, const std::string& value, std::vector<std::string>& target,
                     const std::string& meaning) {
  // One value each time, so that `--set a=1 CONFIG` leaves CONFIG alone.
  impl_->cli.add_option(name, target)->allow_extra_args(false);
  impl_->describe(name, value, meaning, true);
}

void Arguments::integer(const std::string& name, const std::string& value, std::int64_t low,
                        std::optional<std::int64_t>& target, const std::string& meaning, const std::string& zero) {
  impl_->single(name, value, meaning, [name, low, &target, zero](const std::string& given) {
    if (!zero.empty() && given == zero) {
      target = 0;
      return;
    }
    const auto number = parse_whole<std::int64_t>(given);
    if (!number || *number < low) {
      fail_option(name, given,
                  name + " takes an integer of at least " + std::to_string(low) + (zero.empty() ? "" : ", or " + zero) +
                      ", not '" + given + "'");
    }
    target = number;
  });
}

void Arguments::seed(const std::string& name, std::optional<std::uint64_t>& target, const std::string& meaning) {
  impl_->single(name, "N", meaning, [name, &target](const std::string& given) {
    const auto number = parse_whole<std::uint64_t>(given);
    if (!number) {
      fail_option(name, given, name + " takes an integer from 0 to 2^64 - 1, not '" + given + "'");
    }
    target = number;
  });
}

void Arguments::word(const std::string& name, const std::vector<std::string>& words,
                     std::function<void(std::size_t)> set, const std::string& meaning) {
  impl_->single(name, join(words, "|"), meaning, [name, words, set = std::move(set)](const std::string& given) {
    const auto found = std::find(words.begin(), words.end(), given);
    if (found == words.end()) {
      const std::string near = nearest(given, words);
      const std::optional<Hint> hint = same_letters(given, words) ? std::nullopt : hint_for(letters_of(name), given);
      const bool helps = hint && std::find(words.begin(), words.end(), hint->meant) != words.end();
      fail_option(name, given, name + " takes one of " + join(words, ", ") + ", not '" + given + "'",
                  helps          ? hint->help
                  : near.empty() ? ""
                                 : "did you mean '" + near + "'?");
    }
    set(static_cast<std::size_t>(found - words.begin()));
  });
}

void Arguments::complete(const std::string& name, const Values& values) {
  for (PositionalSyntax& positional : impl_->syntax.positionals) {
    if (positional.name == name) positional.values = values;
  }
  for (OptionSyntax& option : impl_->syntax.options) {
    if (std::find(option.names.begin(), option.names.end(), name) != option.names.end()) option.values = values;
  }
}

void Arguments::footer(std::string text) { impl_->syntax.footer = std::move(text); }

bool Arguments::parse(std::span<const std::string> arguments, const Streams& streams) {
  Impl& impl = *impl_;
  const auto end = std::find(arguments.begin(), arguments.end(), "--");  // of the options
  if (std::find_if(arguments.begin(), end,
                   [](const std::string& argument) { return argument == "--help" || argument == "-h"; }) != end) {
    if (auto* const wanted = dynamic_cast<SyntaxStream*>(&streams.out)) {
      wanted->syntax = syntax();
    } else {
      streams.out << for_reader(help(display::text_columns(streams.out_fd)), streams);
    }
    return false;
  }
  impl.check_values(arguments);
  try {
    impl.cli.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // it takes them from the back
  } catch (const CLI::ParseError& error) {
    fail_usage(error.what(), impl.hint());
  }
  impl.check_remaining(arguments);
  for (const Impl::Required& required : impl.required) {
    if (required.is_missing()) {
      fail_usage("pmaptrain " + impl.command + " needs " + required.name,
                 "pmaptrain " + impl.command + " " + required.example);
    }
  }
  return true;
}

CommandSyntax Arguments::syntax() const {
  CommandSyntax syntax = impl_->syntax;
  syntax.options.push_back({{"-h", "--help"}, "", "print this help"});
  if (impl_->has_option("--json")) {
    syntax.footer =
        "With --json an error is a JSON document on standard output too; standard error does not repeat it.\n" +
        (syntax.footer.empty() ? "" : "\n" + syntax.footer);
  }
  return syntax;
}

std::string Arguments::help(int columns) const {
  const int width = columns > 0 ? std::min(columns, text_width) : text_width;
  const bool is_narrow = width < text_width;
  const CommandSyntax all = syntax();
  const std::string usage = "usage: ";
  std::string out = filled(all.summary, width) + "\n\n" + usage;
  out += (is_narrow ? filled(all.usage(), width, static_cast<int>(usage.size())) : all.usage()) + "\n";
  std::vector<Definition> positionals, options;
  for (const PositionalSyntax& positional : all.positionals) {
    positionals.push_back({positional.name + (positional.repeats ? "..." : ""), positional.meaning});
  }
  for (const OptionSyntax& option : all.options) options.push_back({option.shown(), option.meaning});
  if (!positionals.empty()) out += "\n" + definitions(positionals, width, widest_name);
  out += "\noptions:\n" + definitions(options, width, widest_name);
  if (!all.footer.empty()) out += "\n" + (is_narrow ? refilled(all.footer, width) : all.footer);
  return out;
}

Place place_of(const std::string& option, const std::string& value) {
  return {option, 1, count_characters(option) + 2, std::max(1, count_characters(value)), option + " " + value};
}

void fail_option(const std::string& option, const std::string& value, std::string message, std::string help) {
  throw Error(ExitStatus::usage, Diagnostic{"usage", place_of(option, value), std::move(message), std::move(help), {}});
}

}  // namespace pmaptrain::app
