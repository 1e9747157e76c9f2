// schema: the config's keys for editors.
#include "app/commands/commands.h"
#include "app/options/arguments.h"
#include "core/spec/load.h"

namespace pmaptrain::app {

int command_schema(CommandArguments arguments, const Streams& streams) {
  Arguments a("schema",
              "Prints a JSON Schema (draft 2020-12) of the config, with which an editor completes, explains and checks "
              "its keys. `pmaptrain init` writes it beside the config, as pmaptrain.schema.json.");
  a.footer(
      "In an editor with a YAML language server, begin a config with\n"
      "  # yaml-language-server: $schema=pmaptrain.schema.json\n"
      "`pmaptrain validate CONFIG` knows more, such as whether the batch divides over the devices.\n");
  if (!a.parse(arguments, streams)) return 0;
  streams.out << spec::json_schema();
  return 0;
}

}  // namespace pmaptrain::app
