// predict: what a run's model says about the inputs in a file.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <variant>

#include "app/commands/commands.h"
#include "app/commands/prompt.h"
#include "app/options/arguments.h"
#include "app/options/config_options.h"
#include "app/options/output_file.h"
#include "app/signals.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/data/texts/text_source.h"
#include "core/evaluate/mask_folder.h"
#include "core/evaluate/prediction_file.h"
#include "core/evaluate/predictor.h"
#include "core/evaluate/threshold.h"
#include "core/run/checkpoint.h"

namespace pmaptrain::app {
namespace {

namespace fs = std::filesystem;

std::string required(const std::optional<std::string>& given, const std::string& option, const std::string& help) {
  if (!given) fail_usage("predict needs " + option, help);
  return *given;
}

// Files that no reader of inputs takes, whatever the model was trained on.
void check_input(const std::string& input) {
  const std::string ending = letters_of(fs::path(input).extension().string());
  if (ending != "parquet" && ending != "feather") return;
  const std::string stem = fs::path(input).replace_extension().string();
  fail_option("--input", input, "inputs are not read from " + ending + " files",
              fmt::format("in Python, `pandas.read_{}('{}').to_csv('{}.csv', index=False)` writes a table as CSV; "
                          "numpy.savez writes arrays as NPZ",
                          ending, input, stem));
}

// A text is no list of inputs: a model of texts continues it, or is measured on it.
void check_no_text(const std::string& input, const spec::Spec& spec) {
  const std::string ending = letters_of(fs::path(input).extension().string());
  if (spec.data.source.as<data::TextFiles>() == nullptr || (ending != "txt" && ending != "md")) return;
  fail_option("--input", input, "the run's model is of texts, and a text has no examples to predict for",
              "--prompt " + shell_quoted("@" + input) +
                  " continues it; pmaptrain eval RUN --set data.source.text.test=FILE measures the model on it");
}

[[noreturn]] void refuse_ending(const std::string& output) {
  fail_option("--output", output, "the ending of '" + output + "' does not say what to write",
              "it is one of .csv, .npy and .npz; classes of pixels are also written to a folder, which has no ending");
}

// Whether the output may be a folder of masks, which only the model tells.
bool may_be_folder(const std::string& output) { return output != "-" && fs::path(output).extension().empty(); }

// Masks are written into a folder, whether or not it exists.
void check_output_folder(const std::string& output, bool overwrite) {
  fs::path folder = fs::path(output).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  check_folder_of("--output", folder.string());
  std::error_code ignored;
  if (!fs::exists(folder, ignored)) return;
  if (!fs::is_directory(folder, ignored))
    fail_option("--output", output, "'" + output + "' is no folder", "name another one, for a PNG file of each image");
  if (!overwrite && !fs::is_empty(folder, ignored)) {
    fail_option("--output", output, "the folder '" + output + "' is not empty",
                "--overwrite replaces masks in it of the same names");
  }
}

// What can be said of the output before anything is computed.
void check_output(const std::string& output, const std::string& input, bool overwrite) {
  const auto refuse = [&output](std::string message, std::string help) {
    fail_option("--output", output, std::move(message), std::move(help));
  };
  if (!evaluate::is_prediction_file(output) && !may_be_folder(output)) refuse_ending(output);
  std::error_code ignored;
  if (fs::equivalent(output, input, ignored)) refuse("--output is the file that --input reads", "name another file");
  if (may_be_folder(output)) return check_output_folder(output, overwrite);
  check_output_file(output, overwrite);
}

// The value of a key in a sentence: of "set header: true; else" true, of `missing_values: ["?", "n a"]` all of the
// list.
std::string value_after(const std::string& text, const std::string& key) {
  const std::size_t begin = text.find(key + ": ") + key.size() + 2;
  bool quoted = false;
  int depth = 0;
  std::size_t end = begin;
  for (; end < text.size(); ++end) {
    const char c = text[end];
    if (c == '"' && text[end - 1] != '\\') quoted = !quoted;
    if (quoted) continue;
    if (depth == 0 && (c == ' ' || c == ';' || c == ',')) break;
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
  }
  return text.substr(begin, end - begin);
}

// An error in a table names keys of a config: for predictions they are set on the command line.
[[noreturn]] void throw_with_option(const Error& error) {
  std::vector<Diagnostic> diagnostics = error.diagnostics();
  for (Diagnostic& diagnostic : diagnostics) {
    for (const std::string key : {"delimiter", "header", "unknown", "missing_values"}) {
      if (diagnostic.help.find(key + ": ") == std::string::npos) continue;
      diagnostic.notes.push_back("it is a key of data.source.csv; here: --set " +
                                 shell_quoted("data.source.csv." + key + "=" + value_after(diagnostic.help, key)));
    }
  }
  throw Error(error.status(), std::move(diagnostics));
}

// A table has one column of a name: readers of CSV would take one of two, or rename them.
void check_ids(const std::vector<std::string>& ids, const evaluate::Predictions& predictions) {
  const std::vector<std::string> columns = evaluate::csv_columns(predictions);
  for (const std::string& id : ids) {
    if (std::count(columns.begin(), columns.end(), id) < 2) continue;
    fail_option("--id", id, "the output has a column '" + shown_name(id) + "' of its own",
                "give the column of the input another name, or leave it out");
  }
}

}  // namespace

int command_predict(CommandArguments arguments, const Streams& given) {
  Streams streams = given;
  ConfigOptions config;
  PromptOptions prompt;
  evaluate::PredictionRequest request;
  std::optional<std::string> input, output, checkpoint, threshold, features;
  bool overwrite = false;
  std::vector<std::string> kinds;
  for (const model::PredictionKind kind : evaluate::all_prediction_kinds) kinds.emplace_back(evaluate::name_of(kind));
  Arguments a("predict", "Writes what a run's model predicts for the inputs in a file, in their order.");
  a.positional("RUN", config.config, "a run folder, such as runs/cnn",
               "runs/fashion_mnist --input images.npy --output predictions.csv");
  a.text("--input", "FILE", input,
         "the inputs: an NPZ, NPY, IDX or CSV file, an image, or a folder of images; no targets are needed");
  a.text(
      "--output", "FILE", output,
      "what to write: a .csv, .npy or .npz file (array 'predictions'), or - for CSV on standard output; of classes of "
      "pixels also a folder, of PNG files");
  a.list("--id", "COLUMN", request.input.ids,
         "a column of a CSV input that is written in front of the predictions; may be repeated");
  a.word(
      "--as", kinds, [&](std::size_t i) { request.kind = evaluate::all_prediction_kinds[i]; },
      "what to predict; default: classes, or values for regression");
  ConfigOptions::add_threshold_to(a, threshold);
  a.text("--features", "LAYER", features,
         "writes what this layer gives for each example, in place of predictions: an array 'features', or columns "
         "feature_0, feature_1, ...; `validate` lists the layers");
  a.text("--array", "NAME", request.input.array,
         "the array of an NPZ file; default: the one that the config's npz source names, or the only one");
  ConfigOptions::add_checkpoint_to(a, checkpoint);
  ConfigOptions::add_quiet_to(a, streams.quiet);
  ConfigOptions::add_weights_to(a, request.weights);
  a.integer("--member", "N", 0, request.member,
            "of an ensemble, the member that predicts; default: all of them together; members count from 0");
  a.flag("--overwrite", overwrite, "replace the output if it exists");
  prompt.add_to(a);
  config.add_options_to(a);
  a.footer(
      "A CSV file begins with a header. The columns of a CSV input are found by name; its target may be missing, and\n"
      "other columns are ignored. In .npy and .npz files classes are numbers. The members of an ensemble predict\n"
      "together: the mean of their probabilities, or of their values, and the standard deviation of these.\n"
      "--prompt prints the text and its continuation as it comes. A file of 16-bit tokens is continued by numbers.\n"
      "With --temperature, the same --seed draws the same tokens.\n");
  if (!a.parse(arguments, streams)) return 0;
  const evaluate::SharedBatches shared(streams.job);
  const run::FirstProcess first = shared.first_process();
  if (first.is_this()) check_run_folder("predict", config.config);
  prompt.check_alone();
  if (prompt.prompt) {
    if (input || output) {
      fail_usage(std::string(input ? "--input" : "--output") + " and --prompt were both given",
                 "--prompt continues a text on standard output; --input and --output predict for a file");
    }
    const std::pair<const char*, bool> others[] = {
        {"--as", request.kind.has_value()},           {"--id", !request.input.ids.empty()},
        {"--array", request.input.array.has_value()}, {"--features", features.has_value()},
        {"--threshold", threshold.has_value()},       {"--overwrite", overwrite}};
    for (const auto& [option, is_given] : others) {
      if (is_given) fail_usage(std::string(option) + " belongs to --input, and --prompt was given", "omit it");
    }
    return continue_text(prompt, std::move(config), checkpoint, request, streams);
  }
  request.input.path = required(input, "--input FILE", "the inputs, such as --input images.npy");
  check_input(request.input.path);
  const std::string to = required(output, "--output FILE", "what to write, such as --output predictions.csv");
  if (features) {
    const char* const other = request.kind ? "--as" : threshold ? "--threshold" : nullptr;
    if (other != nullptr) {
      fail_usage(std::string(other) + " is about predictions, and --features writes what a layer gives", "omit it");
    }
    request.features = *features;
  }
  const bool to_stream = to == "-";
  const bool writes = shared.is_first();
  if (!to_stream && writes) check_output(to, request.input.path, overwrite);
  if (!request.input.ids.empty() && !to_stream && fs::path(to).extension() != ".csv") {
    fail_option("--id", request.input.ids.front(), "arrays have no columns for texts", "write a .csv file");
  }
  std::set<std::string> ids;
  for (const std::string& id : request.input.ids) {
    if (!ids.insert(id).second)
      fail_option("--id", id, "column '" + id + "' is asked for twice", "leave one of them out");
  }
  request.input.place = place_of("--input", request.input.path);

  config.overrides.processes = processes_of(streams);
  const spec::Loaded loaded = load_config(config, streams);
  check_no_text(request.input.path, loaded.spec);
  request.checkpoint = first.text(
      [&] { return checkpoint ? *checkpoint : run::default_checkpoint(loaded.spec, config.config, request.member); });
  print_notes(loaded.facts_and_notes(), streams);
  std::optional<evaluate::StoredThreshold> stored;  // in the process that reads the run
  if (threshold) {
    const double asked = *threshold == "run" ? 0 : ConfigOptions::threshold_of(*threshold);
    request.threshold = [&, asked] {
      if (asked > 0) return asked;
      return std::stod(
          first.text([&] { return exact(stored.emplace(evaluate::stored_threshold(config.config)).threshold); }));
    };
  }
  evaluate::Predictor predictor = [&] {
    try {
      return evaluate::Predictor(loaded, config.config, request, shared);
    } catch (const FailedElsewhere&) {
      throw;
    } catch (const Error& error) {
      throw_with_option(error);
    }
  }();
  print_notes(predictor.notes(), streams);
  const evaluate::Predictions& predictions = predictor.predictions();
  if (threshold == "run") {
    first.text([&] {
      const evaluate::ParametersUsed used{predictions.checkpoint, evaluate::averaged(loaded.spec, request.weights),
                                          request.member};
      evaluate::check_threshold_fits(*stored, used, config.config);
      return std::string();
    });
  }
  if (may_be_folder(to) && !evaluate::are_masks(predictions)) refuse_ending(to);
  check_ids(request.input.ids, predictions);
  if (!predictions.skipped.empty() && !to_stream && fs::path(to).extension() != ".csv") {
    fail_data(fmt::format("{} cannot be read, and an array has no place to say so: {}",
                          counted(std::ssize(predictions.skipped), "input"), predictions.skipped.front().reason),
              "write a .csv file");
  }
  if (!checkpoint && predictions.checkpoint != "best" && writes) {
    print_notes(notes_of_default(config.config, request.checkpoint, {predictions.checkpoint}), streams);
  }
  if (!predictions.skipped.empty()) {
    print_warnings({counted(std::ssize(predictions.skipped), "input") + " cannot be read and " +
                    (predictions.skipped.size() == 1 ? "has" : "have") + " no prediction: column error says why"},
                   streams);
  }
  if (!predictions.left_out.empty()) print_warnings({left_out_text(predictions.left_out)}, streams);
  int signal = 0;
  // A signal removes the unfinished file.
  const auto run = [&] {
    const StopSignals signals;
    std::unique_ptr<evaluate::PredictionWriter> file;
    evaluate::Predictor::Take take;
    if (writes) {
      file = to_stream           ? evaluate::open_prediction_stream(streams.out, predictions)
             : may_be_folder(to) ? evaluate::open_mask_folder(to, predictions)
                                 : evaluate::open_prediction_file(to, predictions);
      take = [&](std::int64_t, std::span<const std::byte> rows) { file->write(rows); };
    }
    signal = predictor.run(take, StopSignals::flag());
    if (signal == 0 && streams.job == nullptr) signal = *StopSignals::flag();
    if (signal == 0 && file) file->finish();
  };
  try {
    run();
  } catch (const evaluate::StreamRefused&) {
    if (streams.job != nullptr) fail_running("standard output takes no more");  // which ends the other processes too
    return 0;  // main() tells a failure from a reader that went away
  }
  // A launcher kills all processes once one dies by a signal.
  if (signal != 0 && streams.job != nullptr) return 128 + signal;
  if (signal != 0) raise_by_default(signal);
  if (to_stream || streams.quiet) return 0;
  const std::string text =
      fmt::format("{}: {} of {} ({} of {})\n", shell_quoted(printable(to)),
                  predictions.features.empty() ? std::string(evaluate::name_of(predictions.kind))
                                               : "features of " + predictions.features,
                  counted(predictions.inputs->size(), "example"),
                  shown_checkpoint(request.checkpoint, predictions.checkpoint), shell_quoted(printable(config.config)));
  streams.out << for_reader(text, streams);
  return 0;
}

}  // namespace pmaptrain::app
