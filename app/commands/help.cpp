// help: what a key of the config takes.
#include "app/commands/commands.h"
#include "app/options/arguments.h"
#include "core/spec/load.h"

namespace pmaptrain::app {

int command_help(CommandArguments arguments, const Streams& streams) {
  std::optional<std::string> key;
  Arguments a("help", "Describes a config key: its values, its default and an example; without KEY, lists the keys.");
  a.optional_positional("KEY", key, "a key, such as optimizer.adam, layers or data.source; or a command");
  a.footer("`pmaptrain` alone lists the commands.\n");
  if (!a.parse(arguments, streams.out)) return 0;
  for (const Command& command : commands()) {
    if (key && command.name == *key) {
      const std::string help = "--help";
      return command.call(CommandArguments(&help, 1), streams);
    }
  }
  streams.out << spec::help(key.value_or(""));
  return 0;
}

}  // namespace pmaptrain::app
