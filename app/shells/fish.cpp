// The script for fish.
#include <fmt/format.h>

#include <vector>

#include "app/shells/scripts.h"
#include "app/shells/short_meaning.h"
#include "core/base/text.h"

namespace pmaptrain::app {
namespace {

using Kind = Values::Kind;

// In single quotes, in which only these two have a meaning.
std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

// What an option with such values, or a place, is completed with.
std::string candidates(const Values& values) {
  std::string suffixes;
  for (const std::string& ending : values.words) suffixes += (suffixes.empty() ? "." : " .") + ending;
  switch (values.kind) {
    case Kind::none:
    case Kind::any: return "";
    case Kind::words: return " -a " + in_quotes(join(values.words, " "));
    case Kind::files:
      return values.words.empty() ? " -F" : " -a " + in_quotes(fmt::format("(__pmaptrain_files {})", suffixes));
    case Kind::named_files: return " -a '(__pmaptrain_named_files)'";
    case Kind::folders: return " -a '(__fish_complete_directories)'";
    case Kind::settings: {
      std::string call = "__pmaptrain_settings";
      for (const std::string& word : values.words) call += " " + word + "=";
      return " -a '(" + call + ")'";
    }
    case Kind::keys: return " -a " + in_quotes("$__pmaptrain_paths " + join(values.words, " "));
  }
  return "";
}

std::string names_of(const OptionSyntax& option) {
  std::string out;
  for (const std::string& name : option.names) {
    out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  return out;
}

std::string complete_line(const std::string& condition, const OptionSyntax& option) {
  return fmt::format(
      "complete -c pmaptrain -n {}{}{} -d {}\n", in_quotes(condition), names_of(option),
      option.value.empty() ? "" : (option.values.kind == Kind::files ? " -r" : " -x") + candidates(option.values),
      in_quotes(short_meaning(option.meaning)));
}

std::string complete_lines(const CommandSyntax& command) {
  const std::string condition = "__pmaptrain_in " + command.command;
  std::string out;
  for (const PositionalSyntax& positional : command.positionals) {
    const std::string values = candidates(positional.values);
    if (!values.empty()) out += fmt::format("complete -c pmaptrain -n {}{}\n", in_quotes(condition), values);
  }
  for (const OptionSyntax& option : command.options) out += complete_line(condition, option);
  return out;
}

constexpr std::string_view fish_head =
    R"(# Completes command lines of pmaptrain in fish. `pmaptrain completion fish` prints it.

# Whether the line is that of a command.
function __pmaptrain_in
  set -l words (commandline -opc)
  set -l last (math 1 + (count $argv))
  test (count $words) -ge $last; and test "$words[2..$last]" = "$argv"
end

# Whether a command, or a sub-command of $argv, is what comes next.
function __pmaptrain_at
  set -l words (commandline -opc)
  test (count $words) -eq (math 1 + (count $argv)); and test "$words[2..]" = "$argv"
end

# Files with one of these endings, and folders.
function __pmaptrain_files
  for file in (__fish_complete_path (commandline -ct) | string replace -r '\t.*' '')
    if string match -q '*/' -- $file
      echo $file
    else
      for ending in $argv
        string match "*$ending" -- $file
      end
    end
  end
end

function __pmaptrain_named_files
  set -l parts (string split -m 1 = -- (commandline -ct))
  if test (count $parts) -eq 2
    printf "$parts[1]=%s\n" (__fish_complete_path $parts[2] | string replace -r '\t.*' '')
  end
end

# KEY=VALUE of a config.
function __pmaptrain_settings
  set -l word (commandline -ct | string replace -r '^--[a-z-]*=' '')
  set -l parts (string split -m 1 = -- $word)
  if test (count $parts) -eq 2
    set -l values (__pmaptrain_values (__pmaptrain_normal $parts[1]))
    test "$values" = '*files*'; and set values (__fish_complete_path $parts[2] | string replace -r '\t.*' '')
    for value in $values
      echo $parts[1]=$value
    end
  else
    set -l above (string match -r '^.*\.' -- $word)
    for segment in (__pmaptrain_below (__pmaptrain_normal $above))
      echo $above$segment
    end
    if test -z "$above"
      for segment in $argv
        echo $segment
      end
    end
  end
end

)";

}  // namespace

std::string fish_script(const ProgramSyntax& program, const ConfigKeys& keys) {
  std::string out(fish_head);
  out +=
      "# Replaces the index of each item of a list by '#', and keys below which the same keys follow as below others.\n"
      "function __pmaptrain_normal\n"
      "  set -l path (string replace -ra '(?<=\\.)[0-9]+(?=\\.|$)' '#' -- \"$argv\")\n";
  for (const auto& [path, like] : keys.same) {
    out +=
        fmt::format("  while string match -q '{0}*' -- $path\n    set path '{1}'(string sub -s {2} -- $path)\n  end\n",
                    path, like, path.size() + 1);
  }
  out += "  echo $path\nend\n\n# Which segments may follow a path.\nfunction __pmaptrain_below\n  switch \"$argv\"\n";
  for (const auto& [path, segments] : keys.below) {
    out += fmt::format("    case '{}'\n      printf '%s\\n' {}\n", path, join(segments, " "));
  }
  out += "  end\nend\n\n# Which values a key takes.\nfunction __pmaptrain_values\n  switch $argv\n";
  for (const auto& [paths, values] : keys.values) {
    out += fmt::format("    case '{}'\n      printf '%s\\n' {}\n", join(paths, "' '"),
                       values.kind == Kind::files ? "'*files*'" : join(values.words, " "));
  }
  out += fmt::format("  end\nend\n\nset -g __pmaptrain_paths {}\n\ncomplete -c pmaptrain -f\n", join(keys.paths, " "));
  for (const OptionSyntax& option : program.options) out += complete_line("__pmaptrain_at", option);
  for (const CommandEntry& entry : program.commands) {
    out += fmt::format("complete -c pmaptrain -n __pmaptrain_at -a {} -d {}\n", entry.name, in_quotes(entry.summary));
  }
  for (const CommandEntry& entry : program.commands) {
    if (entry.syntax) out += complete_lines(*entry.syntax);
    if (entry.subcommands.empty()) continue;
    const std::string at = "__pmaptrain_at " + entry.name;
    out += complete_line(at, {{"-h", "--help"}, "", "print this help"});
    for (const CommandSyntax& sub : entry.subcommands) {
      out += fmt::format("complete -c pmaptrain -n '{}' -a {} -d {}\n", at, sub.command.substr(entry.name.size() + 1),
                         in_quotes(short_meaning(sub.summary)));
      out += complete_lines(sub);
    }
  }
  return out;
}

}  // namespace pmaptrain::app
