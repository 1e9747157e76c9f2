// The script for zsh, on _arguments of its completion system.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "app/shells/scripts.h"
#include "app/shells/short_meaning.h"
#include "core/base/text.h"

namespace pmaptrain::app {
namespace {

using Kind = Values::Kind;

// Within quotes of the shell, in a specification of _arguments.
std::string in_specification(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string files(const std::vector<std::string>& endings) {
  if (endings.empty()) return "_files";
  // "(npy)" at the end of a pattern would be a qualifier.
  if (endings.size() == 1) return fmt::format("_files -g \"*.{}\"", endings.front());
  return fmt::format("_files -g \"*.({})\"", join(endings, "|"));
}

// ":KEY=VALUE:_pmaptrain_settings", what follows an option, or stands at a place.
std::string action(const std::string& name, const Values& values) {
  std::string out = ":" + in_specification(name) + ":";
  switch (values.kind) {
    case Kind::none:
    case Kind::any: break;
    case Kind::words: out += "(" + join(values.words, " ") + ")"; break;
    case Kind::files: out += files(values.words); break;
    case Kind::named_files: out += " _pmaptrain_named_files " + join(values.words, " "); break;
    case Kind::folders: out += "_files -/"; break;
    case Kind::settings:
      out += " _pmaptrain_settings";
      for (const std::string& word : values.words) out += " " + word + "=";
      break;
    case Kind::keys: out += "_pmaptrain_keys " + join(values.words, " "); break;
  }
  return out;
}

std::string specification(const OptionSyntax& option) {
  const bool takes_value = !option.value.empty();
  const std::string rest = fmt::format("[{}]{}", in_specification(short_meaning(option.meaning)),
                                       takes_value ? action(option.value, option.values) : "");
  if (option.names.size() == 1) {
    return fmt::format("'{}{}{}{}'", option.repeats ? "*" : "", option.names.front(), takes_value ? "=" : "", rest);
  }
  return fmt::format("'({})'{{{}}}'{}'", join(option.names, " "), join(option.names, ","), rest);
}

std::string function_of(const std::string& command) {
  std::string name = "_pmaptrain_command_" + command;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

std::string function(const CommandSyntax& command) {
  std::string out = function_of(command.command) + "() {\n  _arguments";
  for (const OptionSyntax& option : command.options) out += " \\\n    " + specification(option);
  for (std::size_t i = 0; i < command.positionals.size(); ++i) {
    const PositionalSyntax& positional = command.positionals[i];
    const std::string place = positional.repeats ? "*" : fmt::format("{}{}", i + 1, positional.required ? "" : ":");
    out += fmt::format(" \\\n    '{}{}'", place, action(positional.name, positional.values));
  }
  return out + "\n}\n\n";
}

// The function that completes one of several commands, and then what follows it.
std::string choice(const std::string& name, const std::vector<std::pair<std::string, std::string>>& commands,
                   const std::vector<OptionSyntax>& options) {
  std::string out =
      name + "() {\n  local context state state_descr line\n  typeset -A opt_args\n  local -a commands=(\n";
  for (const auto& [command, meaning] : commands)
    out += fmt::format("    '{}:{}'\n", command, in_specification(meaning));
  out += "  )\n  _arguments -C";
  for (const OptionSyntax& option : options) out += " \\\n    " + specification(option);
  return out +
         " \\\n    '1:command:->command' '*::argument:->argument'\n"
         "  case $state in\n"
         "    command) _describe command commands ;;\n" +
         fmt::format("    argument) (( ! $+functions[{0}_$words[1]] )) || {0}_$words[1] ;;\n",
                     name == "_pmaptrain" ? "_pmaptrain_command" : name) +
         "  esac\n}\n\n";
}

constexpr std::string_view zsh_head = R"(#compdef pmaptrain
# Completes command lines of pmaptrain in zsh. `pmaptrain completion zsh` prints it.

)";

constexpr std::string_view zsh_code = R"zsh(
_pmaptrain_named_files() {
  if compset -P 1 '*='; then _files -g "*.$1"; else _message 'NAME=FILE'; fi
}

_pmaptrain_settings() {
  local pmaptrain_path segments values
  if compset -P 1 '*='; then
    _pmaptrain_normalise "${${IPREFIX%=}##*=}"
    _pmaptrain_values
    case $values in
      files) _files ;;
      ?*) compadd -- $=values ;;
      *) _message VALUE ;;
    esac
  else
    compset -P '*.'
    _pmaptrain_normalise "${IPREFIX##*=}"
    _pmaptrain_below
    [[ ${IPREFIX##*=} == *. ]] || segments+=" $*"
    compadd -S '' -- $=segments
  fi
}

# Replaces the index of each item of a list by '#'.
_pmaptrain_normalise() {
  setopt local_options extended_glob
  local -a all=("${(@s:.:)1}")
  pmaptrain_path=${(j:.:)all/(#s)<->(#e)/#}
  _pmaptrain_same
}

# As a file of fpath, or by `source`.
if [[ $funcstack[1] == _pmaptrain ]]; then _pmaptrain "$@"; else compdef _pmaptrain pmaptrain; fi
)zsh";

}  // namespace

std::string zsh_script(const ProgramSyntax& program, const ConfigKeys& keys) {
  std::string out(zsh_head);
  std::vector<std::pair<std::string, std::string>> commands;
  for (const CommandEntry& entry : program.commands) {
    commands.emplace_back(entry.name, entry.summary);
    if (entry.syntax) {
      out += function(*entry.syntax);
      continue;
    }
    std::vector<std::pair<std::string, std::string>> subcommands;
    for (const CommandSyntax& sub : entry.subcommands) {
      subcommands.emplace_back(sub.command.substr(entry.name.size() + 1), short_meaning(sub.summary));
      out += function(sub);
    }
    out += choice(function_of(entry.name), subcommands, {{{"-h", "--help"}, "", "print this help"}});
  }
  out += choice("_pmaptrain", commands, program.options);
  out += fmt::format("_pmaptrain_keys() {{ compadd \"$@\" {}; }}\n\n", join(keys.paths, " "));
  out += "# Which segments may follow $pmaptrain_path.\n_pmaptrain_below() {\n  case $pmaptrain_path in\n";
  for (const auto& [path, segments] : keys.below) {
    out += fmt::format("    '{}') segments='{}' ;;\n", path, join(segments, " "));
  }
  out +=
      "  esac\n}\n\n# Which values the key $pmaptrain_path takes.\n_pmaptrain_values() {\n  case $pmaptrain_path in\n";
  for (const auto& [paths, values] : keys.values) {
    out += fmt::format("    '{}') values='{}' ;;\n", join(paths, "' | '"),
                       values.kind == Kind::files ? "files" : join(values.words, " "));
  }
  out += "  esac\n}\n\n# Keys below which the same keys follow as below others.\n_pmaptrain_same() {\n";
  for (const auto& [path, like] : keys.same) {
    out +=
        fmt::format("  while [[ $pmaptrain_path == '{0}'* ]]; do pmaptrain_path='{1}'${{pmaptrain_path#'{0}'}}; done\n",
                    path, like);
  }
  out += "}\n";
  return out + std::string(zsh_code);
}

}  // namespace pmaptrain::app
