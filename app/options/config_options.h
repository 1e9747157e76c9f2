// The options of every command that takes a config.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/options/arguments.h"
#include "app/options/streams.h"
#include "core/spec/load.h"

namespace pmaptrain::app {

struct ConfigOptions {
  std::string config;
  spec::Overrides overrides;

  // CONFIG, and the options below.
  void add_to(Arguments& arguments);
  // --set, --devices, --workers, --data-root, --base and --seed.
  void add_options_to(Arguments& arguments);
  static void add_data_root_to(Arguments& arguments, std::optional<std::string>& data_root);
  static void add_base_to(Arguments& arguments, std::optional<std::string>& base);
  // --checkpoint, of the commands that take a run.
  static void add_checkpoint_to(Arguments& arguments, std::optional<std::string>& checkpoint);
  // --threshold X|run, and its number where it is one. Throws Error (usage) for another text.
  static void add_threshold_to(Arguments& arguments, std::optional<std::string>& threshold);
  static double threshold_of(const std::string& text);
  // -q of a command that uses a run's parameters; it leaves warnings and errors.
  static void add_quiet_to(Arguments& arguments, bool& quiet);
  // --verify-data, of the commands that compare the content of data.
  static void add_verify_data_to(Arguments& arguments, bool& verify_data);
  // --weights, of the commands that take a run's parameters.
  static void add_weights_to(Arguments& arguments, spec::Weights& weights);
};

// The text of the config, in every process of a launcher as process 0 reads it; sets Overrides::is_run of the options.
// Throws what spec::read_config() throws.
spec::ConfigText read_config(ConfigOptions& options, const Streams& streams);
// The config of that text.
spec::Loaded load_config(ConfigOptions options, const Streams& streams);

// Throws Error (usage) where `run`, the argument of a command, is no folder of a run. Of a checkpoint in one it says
// how to name it.
void check_run_folder(const std::string& command, const std::string& run);

// "best checkpoint step-00000100", for what --checkpoint, or its default, has chosen. The name "best" is that of
// several members that have each its own.
std::string shown_checkpoint(const std::string& chosen, const std::string& name);

// What is told of members that have no best checkpoint.
std::string left_out_text(const std::vector<std::int64_t>& members);

// What is told where the best checkpoint was taken by default, of each member that of this name, and the run's last one
// is another.
std::vector<std::string> notes_of_default(const std::string& run, const std::string& chosen,
                                          const std::vector<std::string>& names);

// "note: optimizer.sgd replaces optimizer.adam". Nothing where the streams are quiet.
void print_notes(const std::vector<std::string>& notes, const Streams& streams);

// The tokens that runs of a config have kept, for a command that keeps none.
std::shared_ptr<data::TokenCache> kept_tokens(const ConfigOptions& options, const spec::Loaded& loaded);
void print_warnings(const std::vector<std::string>& warnings, const Streams& streams);

}  // namespace pmaptrain::app
