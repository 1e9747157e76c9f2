// The script for bash. It needs no package bash-completion.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "app/shells/scripts.h"
#include "core/base/text.h"

namespace pmaptrain::app {
namespace {

using Kind = Values::Kind;

// How the script writes values: "words auto bar", "files .yaml .yml".
std::string text_of(const Values& values) {
  std::string kind;
  switch (values.kind) {
    case Kind::none: return "";
    case Kind::any: kind = "any"; break;
    case Kind::words: kind = "words"; break;
    case Kind::files: kind = "files"; break;
    case Kind::named_files: kind = "named_files"; break;
    case Kind::folders: kind = "folders"; break;
    case Kind::settings: kind = "settings"; break;
    case Kind::keys: kind = "keys"; break;
  }
  for (const std::string& word : values.words) kind += " " + word + (values.kind == Kind::settings ? "=" : "");
  return kind;
}

// The branch of a case for a command.
std::string branch(const CommandSyntax& command) {
  std::vector<std::string> options;
  std::vector<std::pair<std::string, std::vector<std::string>>> values;  // and the options that take them
  for (const OptionSyntax& option : command.options) {
    options.insert(options.end(), option.names.begin(), option.names.end());
    if (option.value.empty()) continue;
    const std::string text = text_of(option.values);
    auto same = std::find_if(values.begin(), values.end(), [&](const auto& other) { return other.first == text; });
    if (same == values.end()) same = values.insert(values.end(), {text, {}});
    same->second.insert(same->second.end(), option.names.begin(), option.names.end());
  }
  std::string out = fmt::format("    {})\n      options='{}'\n", shell_quoted(command.command), join(options, " "));
  std::string places;
  for (const PositionalSyntax& positional : command.positionals) {
    places += fmt::format("{}'{}'", places.empty() ? "" : " ", text_of(positional.values));
    if (positional.repeats) out += "      repeats=1\n";
  }
  if (!places.empty()) out += fmt::format("      places=({})\n", places);
  if (!values.empty()) {
    out += "      case $2 in\n";
    for (const auto& [text, names] : values)
      out += fmt::format("        {}) value='{}' ;;\n", join(names, " | "), text);
    out += "      esac\n";
  }
  return out + "      ;;\n";
}

std::string branch(const CommandEntry& entry) {
  if (entry.syntax) return branch(*entry.syntax);
  std::vector<std::string> names;
  std::string out;
  for (const CommandSyntax& sub : entry.subcommands) {
    names.push_back(sub.command.substr(entry.name.size() + 1));
    out += branch(sub);
  }
  return fmt::format("    {})\n      subcommands='{}'\n      options='-h --help'\n      ;;\n{}", entry.name,
                     join(names, " "), out);
}

constexpr std::string_view bash_head =
    R"(# Completes command lines of pmaptrain in bash 4 or later. `pmaptrain completion bash` prints it.

)";

constexpr std::string_view bash_code = R"(
# Replaces the index of each item of a list by '#'.
_pmaptrain_normalise() {
  path=$1
  while [[ $path =~ ^(.*\.)[0-9]+(\..*)?$ ]]; do path=${BASH_REMATCH[1]}#${BASH_REMATCH[2]}; done
  _pmaptrain_same
}

# Adds what completes $2, a value as $1 describes it.
_pmaptrain_reply() {
  local word ending path words='' value=''
  case ${1%% *} in
    words) mapfile -t COMPREPLY < <(compgen -W "${1#words}" -- "$2") ;;
    keys) mapfile -t COMPREPLY < <(compgen -W "$_pmaptrain_paths ${1#keys}" -- "$2") ;;
    folders)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -d -- "$2")
      ;;
    files)
      compopt -o filenames 2>/dev/null
      while IFS= read -r word; do
        if [[ $1 == files || -d $word ]]; then COMPREPLY+=("$word"); continue; fi
        for ending in ${1#files}; do [[ $word != *."$ending" ]] || COMPREPLY+=("$word"); done
      done < <(compgen -f -- "$2")
      ;;
    named_files)
      [[ $2 == *=* ]] || return
      prefix+=${2%%=*}=
      _pmaptrain_reply "${1#named_}" "${2#*=}"
      ;;
    settings)
      if [[ $2 == *=* ]]; then
        prefix+=${2%%=*}=
        _pmaptrain_normalise "${2%%=*}"
        _pmaptrain_values
        _pmaptrain_reply "$value" "${2#*=}"
        return
      fi
      [[ $2 != *.* ]] || word=${2%.*}.
      _pmaptrain_normalise "${word-}"
      _pmaptrain_below
      [[ ${word-} ]] || words+=" ${1#settings}"
      mapfile -t COMPREPLY < <(compgen -P "${word-}" -W "$words" -- "${2##*.}")
      compopt -o nospace 2>/dev/null
      ;;
  esac
}

_pmaptrain() {
  local IFS=$' \t\n' word current command='' option='' prefix='' line=() places=() place=0
  local options='' subcommands='' repeats='' value=''
  COMPREPLY=()
  # Bash splits words at '=': they are joined again.
  for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if ((${#line[@]})) && [[ $word == =* || $current == = ]]; then line[-1]+=$word; else line+=("$word"); fi
    current=$word
  done
  if [[ $current == '' && ${COMP_LINE:0:COMP_POINT} == *[[:space:]] && ${line[-1]} != '' ]]; then line+=(''); fi
  current=${line[-1]}
  for word in "${line[@]:0:${#line[@]}-1}"; do
    if [[ $option ]]; then
      option=''
    elif [[ $word == -* ]]; then
      value=''
      _pmaptrain_command "$command" "$word"
      [[ ! $value ]] || option=$word
    elif [[ ! $command || $subcommands ]]; then
      command+=${command:+ }$word
      subcommands='' places=()
      _pmaptrain_command "$command"
    else
      place=$((place + 1))
    fi
  done
  value=''
  if [[ $option ]]; then
    _pmaptrain_command "$command" "$option"
  elif [[ $current == --*=* ]]; then
    prefix=${current%%=*}=
    _pmaptrain_command "$command" "${current%%=*}"
    current=${current#*=}
  elif [[ ! $command ]]; then
    value="words $_pmaptrain_commands"
  elif [[ $current == -* ]]; then
    value="words $options"
  elif [[ $subcommands ]]; then
    value="words $subcommands"
  else
    if [[ $repeats && $place -ge ${#places[@]} ]]; then place=$((${#places[@]} - 1)); fi
    value=${places[place]-}
  fi
  _pmaptrain_reply "$value" "$current"
  # What bash completes begins behind the last '='.
  if [[ $COMP_WORDBREAKS != *=* && $prefix ]]; then COMPREPLY=("${COMPREPLY[@]/#/$prefix}"); fi
}

complete -F _pmaptrain pmaptrain
)";

}  // namespace

std::string bash_script(const ProgramSyntax& program, const ConfigKeys& keys) {
  std::vector<std::string> words;
  for (const CommandEntry& entry : program.commands) words.push_back(entry.name);
  for (const OptionSyntax& option : program.options)
    words.insert(words.end(), option.names.begin(), option.names.end());
  std::string out(bash_head);
  out += fmt::format("_pmaptrain_commands='{}'\n\n", join(words, " "));
  out += fmt::format("_pmaptrain_paths='{}'\n\n", join(keys.paths, " "));
  out +=
      "# What command $1 takes: its options, and values at its places and behind option $2.\n"
      "_pmaptrain_command() {\n  case $1 in\n";
  for (const CommandEntry& entry : program.commands) out += branch(entry);
  out += "  esac\n}\n\n# Which segments may follow $path.\n_pmaptrain_below() {\n  case $path in\n";
  for (const auto& [path, segments] : keys.below)
    out += fmt::format("    '{}') words='{}' ;;\n", path, join(segments, " "));
  out += "  esac\n}\n\n# Which values the key $path takes.\n_pmaptrain_values() {\n  case $path in\n";
  for (const auto& [paths, values] : keys.values) {
    out += fmt::format("    '{}') value='{}' ;;\n", join(paths, "' | '"), text_of(values));
  }
  out += "  esac\n}\n\n# Keys below which the same keys follow as below others.\n_pmaptrain_same() {\n";
  for (const auto& [path, like] : keys.same) {
    out += fmt::format("  while [[ $path == '{0}'* ]]; do path='{1}'${{path#'{0}'}}; done\n", path, like);
  }
  out += "}\n";
  return out + std::string(bash_code);
}

}  // namespace pmaptrain::app
