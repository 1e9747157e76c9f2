// The adapters of a run as files of peft: adapter_config.json and adapter_model.safetensors.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/evaluate/trained_members.h"
#include "core/exports/exporter.h"
#include "core/run/files/file_writer.h"
#include "core/run/files/safetensors.h"
#include "core/spec/load.h"

namespace pmaptrain::exports {

struct PeftAdapters {
  std::string config;                    // adapter_config.json
  std::vector<run::TensorView> tensors;  // of adapter_model.safetensors, views of `memory`
  std::vector<std::vector<std::byte>> memory;
  std::string checkpoint, source;  // as Exporter
  std::int64_t parameters = 0;     // elements

  void write_tensors(run::ByteSink& sink) const;
};

// `request` says which checkpoint and member. The modules have the names that the layout of model.init.from has: those
// of the kernels without ".weight". Kernels that are ranges of one array there (GPT-2's queries, keys and values) have
// one adapter there, of the sum of their ranks, whose b has their columns in blocks. Parameters of also_train are
// modules_to_save, with all that is beside them in their module. Throws Error: usage for a run without adapters, or
// whose base has no names of PyTorch; data.
PeftAdapters peft_adapters(const spec::Loaded& loaded, const std::filesystem::path& run_dir,
                           const ExportRequest& request);

}  // namespace pmaptrain::exports
