#include "app/config_options.h"

#include "app/display/terminal.h"

namespace pmaptrain::app {

void ConfigOptions::add_to(Arguments& arguments) {
  arguments.positional("CONFIG", config, "a YAML file, or a run folder (its config.yaml)",
                       "configs/fashion_mnist.yaml");
  add_options_to(arguments);
}

void ConfigOptions::add_options_to(Arguments& arguments) {
  arguments.list("--set", "KEY=VALUE", overrides.set,
                 "set a config key, such as --set data.batch_size=64; may repeat, later ones override earlier ones; "
                 "null restores the default");
  arguments.integer("--devices", "N", 1, overrides.devices,
                    "number of logical devices: the size of the only mesh axis");
  arguments.integer("--workers", "N", 1, overrides.workers, "number of threads that run the devices");
  arguments.seed("--seed", overrides.seed, "the seed of all random numbers");
  arguments.footer(
      "--devices sets the number of logical devices, of which one core can run many; --workers sets the number "
      "of\nthreads that run them; `pmaptrain devices` lists the hardware. `pmaptrain help KEY` describes a config "
      "key.\n");
}

void print_notes(const std::vector<std::string>& notes, const Streams& streams) {
  for (const std::string& note : notes) streams.err << "note: " << note << "\n";
}

void print_warnings(const std::vector<std::string>& warnings, const Streams& streams) {
  const bool color = display::use_color(display::Color::automatic, streams.err_fd);
  for (const std::string& warning : warnings) {
    streams.err << (color ? "\x1b[1;33mwarning:\x1b[0m " : "warning: ") << warning << "\n";
  }
}

}  // namespace pmaptrain::app
