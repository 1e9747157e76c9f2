// help: what a key of the config takes.
#include "app/commands/commands.h"
#include "app/display/terminal.h"
#include "app/options/arguments.h"
#include "app/shells/manual.h"
#include "core/base/error.h"
#include "core/spec/load.h"

namespace pmaptrain::app {

int command_help(CommandArguments arguments, const Streams& streams) {
  std::optional<std::string> key;
  bool manual = false;
  Arguments a("help", "Describes a config key: its values, its default and an example; without KEY, lists the keys.");
  a.optional_positional("KEY", key, "a key, such as optimizer.adam, layers or data.source; or a command");
  a.flag("--man", manual, "print the manual page, pmaptrain(1), for man and groff");
  std::vector<std::string> names;
  for (const Command& command : commands()) names.emplace_back(command.name);
  a.complete("KEY", {Values::Kind::keys, std::move(names)});
  a.footer("`pmaptrain` alone lists the commands.\n");
  if (!a.parse(arguments, streams)) return 0;
  if (manual) {
    if (key) fail_usage("--man prints the whole manual page; it takes no KEY", "pmaptrain help --man");
    streams.out << manual_page(program_syntax(), introduction());
    return 0;
  }
  for (const Command& command : commands()) {
    if (key && command.name == *key) {
      const std::string help = "--help";
      return command.call(CommandArguments(&help, 1), streams);
    }
  }
  streams.out << for_reader(spec::help(key.value_or(""), display::text_columns(streams.out_fd)), streams);
  return 0;
}

}  // namespace pmaptrain::app
