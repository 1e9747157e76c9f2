// The training step as one typed program, for one logical device.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "core/graph/program.h"
#include "core/model/batch.h"
#include "core/step/optimizer.h"
#include "core/step/options.h"

namespace pmaptrain::step {

// The forms in which the program of a step exists while it is built. `explain` shows each.
enum class Stage {
  model,         // the forward pass of one microbatch: sums of this device
  grad,          // the derivative and the microbatch loop: sums and gradients of this device
  synchronised,  // sums over all devices, divided by the count: mean measures and gradients
  final          // the guard, clipping and the update: runs after optimize()
};

// Which steps the epoch sums cover: the last one, which suffices for epochs of one step, or all since the host reset
// them.
enum class EpochSums : std::uint8_t { last_step, all_steps };

// Builds the step over the data axes, up to `stage`. The inputs and outputs of the finished step:
//
// params  buckets of trained parameters (buckets_of), whose parts have the parameters' names; and frozen parameters,
//         which are not replaced.
// state   - "<slot>/<bucket>" of the optimizer, with the parts "<slot>/<parameter>";
//         - with train.ema, likewise "ema/<bucket>": the averages before debiasing;
// params_state  the statistics of the model, such as "batch_norm_0.mean". A step that the guard accepts moves them to
//         the means of its own statistics over examples; those of a frozen node keep their values.
//         - "step" i64[], the number of updates;
//         - "epoch/<measure>" and "epoch/examples" f64[], sums that the host reads and resets (EpochSums);
//         - the state of the guard. It refuses a step without examples, and a step in which the loss or an element of
//           the gradient, of a new parameter or of a new slot is not finite.
//           With on_nonfinite: halt, "finite" bool[] becomes false at the first refused step and stays false. From that
//           step on, parameters, slots, step and epoch sums keep their values (sums of the last step are 0).
//           With on_nonfinite: skip, "skipped" i64[] counts refused steps. A refused step keeps the old values; later
//           steps update them. With ignore_label a step without a label that counts is always skipped, so that with
//           halt there are both.
// batch   "inputs", "targets", "mask", "rows" (see model::declare_batch).
// hyper   the numbers of the config, step_numbers(): "b1" and so on; "learning_rate", if no schedule computes it from
//         "step"; with reduce_on_plateau, "learning_rate_scale", by which the rate is multiplied;
//         "dropout/<layer>" u32[2] for each drawing layer: stream_key(seed, "dropout/<layer>").
// outputs the measures of this batch under the parameters before the update, as means over all its examples;
//         "grad_norm", the global norm of the mean gradient before clipping, f64[]; "learning_rate", the rate of this
//         update; "count", the number of examples. If the count is 0, means are 0, nothing is updated, and the caller
//         must report it.
//
// The program is checked, but not simplified.
Program train_program(const model::Model& model, const StepOptions& options, const Optimizer& optimizer,
                      const model::BatchShape& batch, const OpSet& ops, Stage stage = Stage::final,
                      EpochSums epoch = EpochSums::all_steps);

// The numbers (scalar inputs) that the finished step reads. Their names and types do not depend on their values, so the
// members of an ensemble share one program.
std::vector<equations::Number> step_numbers(const model::Model& model, const StepOptions& options,
                                            const Optimizer& optimizer);

// The purpose of each input and output of the finished step, as indices. No pass changes the indices.
struct StepRoles {
  // Indices of variables (variables_of). A variable is an input, or a part of an input that is a bucket.
  std::vector<std::size_t> parameters;         // in the order of Model::parameters
  std::vector<std::size_t> ema;                // likewise; none without train.ema. What has no average is in both
  std::size_t step = 0;                        // the number of updates
  std::optional<std::size_t> finite, skipped;  // the guard's state: one of the two, or both
  std::vector<std::size_t> epoch_sums;         // in the order of measure_parts
  std::size_t epoch_examples = 0;
  std::vector<std::size_t> numbers;                // in the order of step_numbers
  std::optional<std::size_t> learning_rate_scale;  // with reduce_on_plateau: 1 at the start
  std::vector<std::size_t> dropout_keys;           // in the order of Model::drawing_layers
  std::map<std::size_t, double> initial;  // by index of a state input: what its variables are at the start, if not 0
  // Indices of outputs.
  std::vector<std::size_t> means;  // of the measures, in the order of measure_parts
  std::size_t count = 0, grad_norm = 0, used_learning_rate = 0;

  // The state of the guard. A checkpoint does not have it, because a run that continues begins with a new guard.
  bool is_of_guard(std::size_t variable) const { return variable == finite || variable == skipped; }
};

struct StepProgram {
  Program program;
  StepRoles roles;
};
// Builds the finished step and its roles.
StepProgram step_program(const model::Model& model, const StepOptions& options, const Optimizer& optimizer,
                         const model::BatchShape& batch, const OpSet& ops, EpochSums epoch = EpochSums::all_steps);

// The bytes of a variable of an input that StepRoles::initial has, at the start of a run. The others begin as zeros,
// and so do the elements between the parts of a bucket.
std::vector<std::byte> initial_bytes(const Type& type, double initial);

}  // namespace pmaptrain::step
