// export --layout peft: the adapters of a run, in a folder that peft loads.
#include "app/commands/export_peft.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "app/commands/commands.h"
#include "app/options/config_options.h"
#include "app/signals.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/exports/peft.h"
#include "core/run/checkpoint.h"

namespace pmaptrain::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* config_file = "adapter_config.json";
constexpr const char* tensors_file = "adapter_model.safetensors";

// An existing folder may have other files, which stay.
void check_peft_folder(const std::string& output, bool overwrite) {
  const auto refuse = [&output](std::string message, std::string help) {
    fail_option("--output", output, std::move(message), std::move(help));
  };
  std::error_code error;
  if (fs::exists(output, error) && !fs::is_directory(output, error)) {
    refuse("'" + output + "' is no folder", "--layout peft writes two files into a folder: name another one");
  }
  for (const char* const file : {config_file, tensors_file}) {
    const fs::path path = fs::path(output) / file;
    if (!overwrite && fs::exists(path, error)) refuse("'" + path.string() + "' exists", "--overwrite replaces it");
  }
}

}  // namespace

int export_peft(const PeftOutput& asked, exports::ExportRequest request, const spec::Overrides& overrides,
                const Streams& streams) {
  check_peft_folder(asked.output, asked.overwrite);
  const spec::Loaded loaded = spec::load(asked.run, overrides);
  request.checkpoint =
      asked.checkpoint ? *asked.checkpoint : run::default_checkpoint(loaded.spec, asked.run, request.member);
  const exports::PeftAdapters adapters = exports::peft_adapters(loaded, asked.run, request);
  if (!asked.checkpoint && adapters.checkpoint != "best") {
    print_notes(notes_of_default(asked.run, request.checkpoint, {adapters.checkpoint}), streams);
  }
  std::error_code error;
  fs::create_directories(asked.output, error);
  if (error) {
    fail_option("--output", asked.output, "'" + asked.output + "' cannot be made: " + error.message(),
                "name another folder");
  }
  int signal = 0;
  {
    // A signal removes the unfinished files.
    const StopSignals signals;
    const std::string config_path = (fs::path(asked.output) / config_file).string();
    const std::string tensors_path = (fs::path(asked.output) / tensors_file).string();
    run::remove_abandoned(tensors_path);
    run::remove_abandoned(config_path);
    run::Replacement tensors(tensors_path), config(config_path);
    adapters.write_tensors(tensors);
    config.write(std::as_bytes(std::span(adapters.config)));
    tensors.close();
    config.close();
    signal = *StopSignals::flag();
    if (signal == 0) {
      tensors.take_place();
      config.take_place();
    }
  }
  if (signal != 0) raise_by_default(signal);
  if (streams.quiet) return 0;
  const std::string text =
      fmt::format("{}: {} in the files of peft ({} of {})\n", shell_quoted(printable(asked.output)),
                  counted(adapters.parameters, "parameter"), shown_checkpoint(request.checkpoint, adapters.checkpoint),
                  shell_quoted(printable(asked.run)));
  streams.out << for_reader(text, streams);
  return 0;
}

}  // namespace pmaptrain::app
