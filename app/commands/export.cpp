// export: the model of a run in a file for other programs.
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <system_error>

#include "app/commands/commands.h"
#include "app/commands/export_peft.h"
#include "app/options/arguments.h"
#include "app/options/config_options.h"
#include "app/options/output_file.h"
#include "app/signals.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/exports/exporter.h"
#include "core/run/checkpoint.h"

namespace pmaptrain::app {
namespace {

namespace fs = std::filesystem;
using exports::ExportFormat;

// The format that the ending of a file says.
std::optional<ExportFormat> format_of(const std::string& output) {
  const std::string ending = fs::path(output).extension().string();
  if (ending == ".onnx") return ExportFormat::onnx;
  if (ending == ".safetensors") return ExportFormat::safetensors;
  return std::nullopt;
}

std::string name_of(ExportFormat format) { return format == ExportFormat::onnx ? "onnx" : "safetensors"; }

ExportFormat chosen_format(const std::string& output, const std::optional<ExportFormat>& asked) {
  const std::optional<ExportFormat> named = format_of(output);
  if (!named && !asked) {
    fail_option("--output", output, "the ending of '" + output + "' does not say what to write",
                "it is .onnx or .safetensors; for a file with another ending, --format onnx or --format safetensors");
  }
  if (named && asked && *named != *asked) {
    fail_option("--output", output,
                "the ending of '" + output + "' is that of " + name_of(*named) + ", and --format is " + name_of(*asked),
                "leave out --format, or name another file");
  }
  return asked ? *asked : *named;
}

}  // namespace

int command_export(CommandArguments arguments, const Streams& given) {
  Streams streams = given;
  std::string run;
  exports::ExportRequest request;
  spec::Overrides overrides;
  overrides.is_run = true;
  std::optional<std::string> output, checkpoint;
  std::optional<ExportFormat> format;
  std::optional<model::ParameterLayout> layout;
  bool overwrite = false, peft = false;
  Arguments a("export", "Writes the model of a run to a file that other programs read.");
  a.positional("RUN", run, "a run folder, such as runs/cnn", "runs/fashion_mnist --output model.onnx");
  a.text("--output", "FILE", output, "the file to write; with --layout peft, a folder");
  a.word(
      "--format", {"onnx", "safetensors"},
      [&](std::size_t i) { format = i == 0 ? ExportFormat::onnx : ExportFormat::safetensors; },
      "onnx: the whole model, from inputs to predictions; safetensors: its parameters; default: as the ending of FILE "
      "says");
  constexpr auto layouts = model::words_of(declare::Tag<model::ParameterLayout>());
  std::vector<std::string> words;
  words.reserve(layouts.size() + 1);
  for (const auto& [word, meant] : layouts) words.emplace_back(word);
  words.emplace_back("peft");
  a.word(
      "--layout", words,
      [&](std::size_t i) {
        peft = i == layouts.size();
        if (!peft) layout = layouts[i].second;
      },
      "of safetensors, whose names and order of elements the parameters have; default: flax, as in checkpoints; peft "
      "writes the adapters of lora alone, into a folder");
  ConfigOptions::add_checkpoint_to(a, checkpoint);
  ConfigOptions::add_quiet_to(a, streams.quiet);
  ConfigOptions::add_weights_to(a, request.weights);
  a.integer("--member", "N", 0, request.member,
            "of an ensemble, this member alone; default: the mean of all members, in onnx; members count from 0");
  ConfigOptions::add_base_to(a, overrides.base);
  a.flag("--overwrite", overwrite, "replace the output if it exists");
  if (!a.parse(arguments, streams)) return 0;
  check_run_folder("export", run);
  if (!output) fail_usage("export needs --output FILE", "what to write, such as --output model.onnx");
  if (peft) return export_peft({run, *output, checkpoint, overwrite}, request, overrides, streams);
  request.format = chosen_format(*output, format);
  if (layout && request.format == ExportFormat::onnx) {
    fail_usage("--layout is for safetensors; an ONNX file has its own", "leave out --layout");
  }
  request.layout = layout.value_or(model::ParameterLayout::flax);
  check_output_file(*output, overwrite);

  const spec::Loaded loaded = spec::load(run, overrides);
  request.checkpoint = checkpoint ? *checkpoint : run::default_checkpoint(loaded.spec, run, request.member);
  const exports::Exporter exporter(loaded, run, request);
  std::error_code ignored;
  if (fs::equivalent(*output, exporter.source(), ignored)) {
    fail_option("--output", *output, "--output is a file of the run's checkpoint", "name another file");
  }
  if (!checkpoint && exporter.checkpoint() != "best") {
    print_notes(notes_of_default(run, request.checkpoint, {exporter.checkpoint()}), streams);
  }
  if (!exporter.left_out().empty()) print_warnings({left_out_text(exporter.left_out())}, streams);
  int signal = 0;
  {
    // A signal removes the unfinished file.
    const StopSignals signals;
    run::remove_abandoned(*output);
    run::Replacement file(*output);
    exporter.write(file);
    file.close();
    signal = *StopSignals::flag();
    if (signal == 0) file.take_place();
  }
  if (signal != 0) raise_by_default(signal);
  if (streams.quiet) return 0;
  const std::string what = request.format == ExportFormat::onnx             ? "ONNX"
                           : request.layout == model::ParameterLayout::flax ? "the layout of Flax"
                           : request.layout == model::ParameterLayout::torch
                               ? "the layout of PyTorch"
                               : "the layout " + declare::word_of(request.layout);
  const std::string text = fmt::format(
      "{}: {} in {}{} ({} of {})\n", shell_quoted(printable(*output)), counted(exporter.parameters(), "parameter"),
      what, exporter.members() > 1 ? fmt::format(", the mean of {} members", exporter.members()) : "",
      shown_checkpoint(request.checkpoint, exporter.checkpoint()), shell_quoted(printable(run)));
  streams.out << for_reader(text, streams);
  return 0;
}

}  // namespace pmaptrain::app
