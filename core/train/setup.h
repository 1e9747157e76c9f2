// From a config to everything that is fixed before the first step: data, model, batches, programs. `validate`,
// `explain`, `run` and `eval` all begin here, so what they say cannot disagree.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/data/batch.h"
#include "core/data/dataset.h"
#include "core/graph/program.h"
#include "core/model/model.h"
#include "core/runtime/backend.h"
#include "core/spec/load.h"
#include "core/train/step_program.h"

namespace pmaptrain::train {

// Durations and intervals in steps, counted from 1.
struct Timetable {
  std::int64_t steps = 0;  // of the whole run
  std::int64_t steps_per_epoch = 1;
  std::int64_t log_every = 0;  // 0: never
  std::int64_t eval_every = 0;
  std::int64_t verify_every = 0;
};

struct Setup {
  spec::Loaded loaded;
  data::Source source;
  model::Model model;
  data::BatchPlan batch;
  Timetable timetable;
  Optimizer optimizer;
  std::int64_t schedule_steps = 0;                  // where schedules end that follow the run's duration
  std::vector<std::string> warnings;                // keys that do nothing with this data
  std::shared_ptr<const Program> training;          // simplified: what runs
  StepRoles roles;                                  // of its inputs and outputs
  std::shared_ptr<const Program> evaluation;        // for batches of evaluation_batch
  std::optional<data::BatchPlan> evaluation_batch;  // none without a test split, or where eval_every is never

  const spec::Spec& spec() const { return loaded.spec; }
  const Mesh& mesh() const { return loaded.spec.mesh.mesh; }
};

// Opens the data and checks that everything fits together. `schedule_steps`: the length that the schedule of a resumed
// run began with; none: the run's duration. Throws Error: usage, or data.
Setup make_setup(spec::Loaded loaded, std::optional<std::int64_t> schedule_steps = {});

// The training program at a stage, for `explain`. Not simplified before the final stage.
Program program_at(const Setup& setup, Stage stage);

// What evaluates the model on batches of `batch`, simplified.
Program evaluation_program(const Setup& setup, const data::BatchPlan& batch,
                           model::Weights weights = model::Weights::raw);

// A duration or interval in steps. Throws Error (usage) at its place when it comes to no step, or examples are not
// whole batches.
std::int64_t to_steps(const spec::Duration& duration, const data::BatchPlan& batch, const std::string& key);

// What one process will hold beside what it holds already, the data among it, in bytes: what the backend needs (Needs);
// under activations also initial values, which are made one at a time, and the slice in which checkpoints leave the
// module; and under kernels also library_bytes.
struct MemoryEstimate {
  std::size_t parameters = 0, optimizer = 0, gradients = 0, activations = 0, batch = 0, total = 0;
  std::size_t available = 0;  // to this process now: the limits of cgroups and the free memory
  std::size_t kernels = 0;
};
// The kernel library's code, of which the pages in use count, and what it generates: 9 MiB with convolutions, 5 MiB
// with dense layers alone.
inline constexpr std::size_t library_bytes = std::size_t{9} << 20;
// Of a run, or of steps of it, that need so much of the backend.
MemoryEstimate estimate_memory(const Setup& setup, const Needs& needs);
// Of an evaluation alone.
MemoryEstimate estimate_evaluation(const Needs& needs);

// Throws Error (resource) when the plan needs more than there is: needed, available, the largest item, what would fit.
void check_memory(const MemoryEstimate& estimate, const Setup& setup);

// Of one step over the whole mesh, and what each device sends, by axis name in mesh order (a collective over several
// axes counts once: for the outermost of more than one device).
struct StepCost {
  double flops = 0;
  std::vector<std::pair<std::string, double>> wire_bytes;
};
StepCost cost_of(const Program& program);

}  // namespace pmaptrain::train
