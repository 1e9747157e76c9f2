// The programs of a setup, and what a step of them costs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/setup/setup.h"

namespace pmaptrain::setup {

// Makes the programs, which depend on the batches of the setup.
void make_programs(Setup& setup);

// The same setup with other training batches, planned again. Throws Error (usage) if the data or the mesh does not
// divide into such batches.
Setup with_batches(Setup setup, std::int64_t batch_size, std::int64_t microbatches);

// The same setup, which is no ensemble's, with parallelism.fsdp along all axes of the data.
Setup with_sharding(Setup setup, int stage);

// The training program at a stage of its construction (step::Stage), for `explain`. Only the program of the final
// stage is simplified.
Program program_at(const Setup& setup, step::Stage stage);

// Runs the passes that every backend needs (core/passes/pipeline.h). Only the pass `widen` changes bits of results; the
// other passes save reads and writes of memory.
Program optimize(Program program);

// Plans the evaluation of `model` on `dataset`, in batches of at most `rows` rows over all devices.
EvaluationPlan plan_evaluation(const model::Model& model, const spec::Spec& spec, data::Split split,
                               std::shared_ptr<const data::Dataset> dataset, std::int64_t rows,
                               model::Weights weights = model::Weights::raw,
                               std::span<const model::Bucket> buckets = {});

// The cost of one step over the whole mesh, and the bytes that each device sends, by axis name in mesh order. A
// collective over several axes counts once, for the outermost axis with more than one device.
struct StepCost {
  double flops = 0;
  std::vector<std::pair<std::string, double>> wire_bytes;
};
StepCost cost_of(const Program& program);
// The cost of a step of all members of `spec`, which send nothing to each other. `training` is the program of each.
StepCost cost_of(const Program& training, const spec::Spec& spec);

}  // namespace pmaptrain::setup
