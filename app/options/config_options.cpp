#include "app/options/config_options.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "app/display/terminal.h"
#include "core/base/text.h"
#include "core/base/wrap.h"
#include "core/run/checkpoint.h"
#include "core/run/records/lines.h"
#include "core/run/token_cache.h"
#include "core/train/members.h"

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
  arguments.integer(
      "--workers", "N", 1, overrides.workers,
      "number of threads, or of GPUs (mesh.backend: cuda), that run the devices; auto: all that there are", "auto");
  add_data_root_to(arguments, overrides.data_root);
  add_base_to(arguments, overrides.base);
  arguments.seed("--seed", overrides.seed, "the seed of all random numbers");
  arguments.footer(
      "--devices sets the number of logical devices, of which one core can run many; --workers sets the number "
      "of\nthreads, or GPUs, that run them; `pmaptrain devices` lists the hardware. `pmaptrain help KEY` describes a "
      "config "
      "key.\n");
}

void ConfigOptions::add_data_root_to(Arguments& arguments, std::optional<std::string>& data_root) {
  arguments.text("--data-root", "DIR", data_root,
                 "where the files of data.source lie by now: each is found by the end of its path below DIR");
}

void ConfigOptions::add_base_to(Arguments& arguments, std::optional<std::string>& base) {
  arguments.text("--base", "PATH", base,
                 "of lora: where the base, which model.init.from names, lies by now; its content must be the same");
}

void ConfigOptions::add_quiet_to(Arguments& arguments, bool& quiet) {
  arguments.flag("-q,--quiet", quiet, "warnings, errors and what was asked for, and nothing else");
}

void ConfigOptions::add_verify_data_to(Arguments& arguments, bool& verify_data) {
  arguments.flag("--verify-data", verify_data,
                 "tell by all bytes of the files whether data is the same; by default a sample of files of 64 MiB and "
                 "more is read");
}

void ConfigOptions::add_weights_to(Arguments& arguments, spec::Weights& weights) {
  arguments.word(
      "--weights", {"ema", "raw"},
      [&weights](std::size_t i) { weights = i == 0 ? spec::Weights::ema : spec::Weights::raw; },
      "the averaged weights of train.ema where the checkpoint has them (the default), or those that were trained");
}

void ConfigOptions::add_checkpoint_to(Arguments& arguments, std::optional<std::string>& checkpoint) {
  arguments.text(
      "--checkpoint", "last|best|STEP", checkpoint,
      "the last checkpoint, the best one, or that of a step; default: the best one where train.checkpoint.best "
      "keeps it, else the last one");
}

void ConfigOptions::add_threshold_to(Arguments& arguments, std::optional<std::string>& threshold) {
  arguments.text("--threshold", "X|run", threshold,
                 "the probability above which a label is predicted, or class 1 of two; default: 0.5. run: the one that "
                 "eval --tune-threshold has stored");
}

double ConfigOptions::threshold_of(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number > 0 && number < 1) return number;
  fail_option("--threshold", text, "expected a probability between 0 and 1, or run",
              "for example --threshold 0.3; run takes the one that eval --tune-threshold f1 has stored");
}

spec::ConfigText read_config(ConfigOptions& options, const Streams& streams) {
  const run::FirstProcess first(streams.job);
  spec::ConfigText config;
  config.text = first.text([&] {
    config = spec::read_config(options.config);
    return config.text;
  });
  config.file = first.text([&] { return config.file; });
  config.directory = first.text([&] { return config.directory; });
  config.run_format = std::stoi(first.text([&] { return std::to_string(config.run_format); }));
  // Another process uses the copy of the run folder where it sees it.
  config.tokenizer = first.text([&] { return config.tokenizer; });
  std::error_code error;
  if (!std::filesystem::is_regular_file(config.tokenizer, error)) config.tokenizer.clear();
  const std::string kind = first.text([&] {
    std::error_code ignored;
    return std::string(std::filesystem::is_directory(options.config, ignored) ? "run" : "file");
  });
  options.overrides.is_run = kind == "run";
  return config;
}

std::shared_ptr<data::TokenCache> kept_tokens(const ConfigOptions& options, const spec::Loaded& loaded) {
  std::error_code ignored;
  const bool is_run = std::filesystem::is_directory(options.config, ignored);
  const std::filesystem::path usual = std::filesystem::path("runs") / loaded.spec.name;
  return run::tokens_beside(is_run ? std::filesystem::path(options.config) : usual, run::Keeps::no);
}

spec::Loaded load_config(ConfigOptions options, const Streams& streams) {
  const spec::ConfigText config = read_config(options, streams);
  return spec::load(config, options.overrides);
}

namespace {

// `inside`: what `run` leads to in the folder of checkpoints; empty where it is that folder.
[[noreturn]] void refuse_inside(const std::string& command, const std::string& run, const std::string& folder,
                                const std::string& inside) {
  std::string option;
  if (inside == "last" || inside == "best") option = " --checkpoint " + inside;
  const std::size_t digit = inside.starts_with("step-") ? inside.find_first_of("123456789") : std::string::npos;
  if (digit != std::string::npos) option = " --checkpoint " + inside.substr(digit);
  fail_usage("'" + run + "' is in the run folder '" + folder + "'; " + command + " takes the run folder",
             "pmaptrain " + command + " " + shell_quoted(folder) + option);
}

}  // namespace

void check_run_folder(const std::string& command, const std::string& run) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::exists(run, ignored)) {
    fail_usage("'" + run + "' is not a run folder: there is no such folder",
               command + " takes a folder that pmaptrain run wrote: runs/NAME");
  }
  if (fs::exists(fs::path(run) / "config.yaml", ignored)) return;
  // "runs/cnn/checkpoints/best", or a file in it
  std::string inside;
  for (fs::path at = run; at.has_relative_path(); at = at.parent_path()) {
    const fs::path folder = at.has_parent_path() ? at.parent_path() : ".";
    if (at.filename() == "checkpoints" && fs::exists(folder / "config.yaml", ignored)) {
      refuse_inside(command, run, folder.string(), inside);
    }
    inside = at.filename().string();
  }
  if (fs::is_regular_file(run, ignored)) {
    fail_usage("'" + run + "' is a file; " + command + " takes a run folder",
               "pmaptrain run " + shell_quoted(run) + " makes one: runs/NAME");
  }
}

std::string shown_checkpoint(const std::string& chosen, const std::string& name) {
  if (name == "best") return "each member's best checkpoint";
  const bool is_word = chosen == "last" || chosen == "best";
  return (is_word ? chosen + " checkpoint " : "checkpoint ") + name;
}

std::string left_out_text(const std::vector<std::int64_t>& members) {
  const bool one = members.size() == 1;
  return run::names_of(members) + (one ? " has" : " have") + " no best checkpoint and " + (one ? "is" : "are") +
         " left out: no evaluation gave " + (one ? "it" : "them") +
         " a best value; --checkpoint last has the parameters after the last step";
}

std::vector<std::string> notes_of_default(const std::string& run, const std::string& chosen,
                                          const std::vector<std::string>& names) {
  if (chosen != "best" || names.empty()) return {};
  const std::optional<std::string> last = run::last_checkpoint(run);
  if (!last || std::all_of(names.begin(), names.end(), [&](const std::string& name) { return name == *last; }))
    return {};
  const std::string best = names.size() == 1 ? names.front() : "of each member its own";
  return {"this is the best checkpoint, " + best + "; --checkpoint last takes the last one, " + *last};
}

void print_notes(const std::vector<std::string>& notes, const Streams& streams) {
  if (streams.quiet) return;
  for (const std::string& note : notes) {
    streams.err << wrapped("note: " + note, display::text_columns(streams.err_fd)) << "\n";
  }
}

void print_warnings(const std::vector<std::string>& warnings, const Streams& streams) {
  const bool color = display::use_color(display::Color::automatic, streams.err_fd);
  for (const std::string& warning : warnings) {
    const std::string text = (color ? "\x1b[1;33mwarning:\x1b[0m " : "warning: ") + warning;
    streams.err << wrapped(text, display::text_columns(streams.err_fd)) << "\n";
  }
}

}  // namespace pmaptrain::app
