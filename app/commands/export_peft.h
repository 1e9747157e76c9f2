// The part of `export` that writes adapters as files of peft.
#pragma once

#include <optional>
#include <string>

#include "app/options/streams.h"
#include "core/exports/exporter.h"
#include "core/spec/load.h"

namespace pmaptrain::app {

struct PeftOutput {
  std::string run, output;  // folders
  std::optional<std::string> checkpoint;
  bool overwrite = false;
};

int export_peft(const PeftOutput& asked, exports::ExportRequest request, const spec::Overrides& overrides,
                const Streams& streams);

}  // namespace pmaptrain::app
