// completion: a script with which a shell completes command lines.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "app/commands/commands.h"
#include "app/options/arguments.h"
#include "app/shells/config_keys.h"
#include "app/shells/scripts.h"
#include "core/base/text.h"

namespace pmaptrain::app {
namespace {

struct Shell {
  std::string_view name;
  std::string (*script)(const ProgramSyntax& program, const ConfigKeys& keys);
};
constexpr std::array<Shell, 3> shells = {{{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}}};

}  // namespace

int command_completion(CommandArguments arguments, const Streams& streams) {
  std::string name;
  std::vector<std::string> names;
  names.reserve(shells.size());
  for (const Shell& shell : shells) names.emplace_back(shell.name);
  Arguments a("completion",
              "Prints a script with which a shell completes commands, options, files, and the keys and values of "
              "--set.");
  a.positional("SHELL", name, "bash, zsh or fish", "bash");
  a.complete("SHELL", {Values::Kind::words, names});
  a.footer(
      "In ~/.bashrc:\n"
      "  source <(pmaptrain completion bash)\n"
      "For zsh, with a folder of fpath:\n"
      "  pmaptrain completion zsh > ~/.zfunc/_pmaptrain\n"
      "For fish:\n"
      "  pmaptrain completion fish > ~/.config/fish/completions/pmaptrain.fish\n");
  if (!a.parse(arguments, streams)) return 0;
  const auto shell = std::find_if(shells.begin(), shells.end(), [&](const Shell& one) { return one.name == name; });
  if (shell == shells.end()) {
    const std::string near = nearest(name, names);
    fail_usage("there is no completion for the shell '" + name + "'",
               near.empty() ? "the shells are " + join(names, ", ") : "did you mean '" + near + "'?");
  }
  streams.out << shell->script(program_syntax(), config_keys());
  return 0;
}

}  // namespace pmaptrain::app
