// The file or the checkpoint that model.init.from names.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/run/checkpoint.h"
#include "core/spec/data.h"
#include "core/spec/model.h"

namespace pmaptrain::setup {

// How the run that model.init.from names read its data.
struct InitialRun {
  std::vector<std::string> classes;
  std::optional<FieldStatistics> normalize;  // with the numbers that auto found
};

struct WordVectors;

// What model.init.from names: a file, the files of a folder of transformers, or a checkpoint of a run.
struct InitialFile {
  run::CheckpointFile file;
  std::vector<data::Bytes> shards;             // further files among which a model's tensors are divided
  std::optional<run::RunState> state;          // of the checkpoint
  std::optional<InitialRun> run;               // for messages, in process 0; none if the run's config cannot be read
  bool is_text = false;                        // the file has vectors of words,
  std::shared_ptr<const WordVectors> vectors;  // these, once the tokenizer and the model are known
  // Closes the file, so that removing it frees space on the disk.
  void release() {
    file = {};
    shards.clear();
  }
};
// Opens it, in every process as process 0 has it. `spec` has an init.from. Throws Error at the key's place: data, or
// usage for a checkpoint that does not exist or has no such layout.
InitialFile open_initial_file(const spec::ModelSpec& spec, const run::FirstProcess& first = {});

}  // namespace pmaptrain::setup
