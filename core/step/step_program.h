// The training step as one typed program, for one logical device.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "core/graph/program.h"
#include "core/model/batch.h"
#include "core/spec/spec.h"
#include "core/step/optimizer.h"

namespace pmaptrain::train {

enum class Stage {
  model,         // the forward pass of one microbatch: sums of this device
  grad,          // the derivative and the microbatch loop: sums and gradients of this device
  synchronised,  // sums over all devices, divided by the count: mean measures and gradients
  final          // the guard, clipping and the update: runs after optimize()
};

// Whether the sums of an epoch cover one step only, or several steps.
enum class EpochOf : std::uint8_t { one_step, steps };

// The step of `spec` over its data axes. The inputs and outputs of the finished step:
//
// params  buckets of trained parameters (buckets_of), whose parts are the parameters by path; and each frozen
// parameter,
//         which is not replaced.
// state   "<slot>/<bucket>" of the optimizer, with the parts "<slot>/<parameter>"; with train.ema, likewise "ema/" for
//         all parameters, the averages before debiasing; "step" i64[], the number of updates; "epoch/<measure>" and
//         "epoch/examples" f64[], sums that the host reads and resets (with `EpochOf::one_step`, the sums of the last
//         step); and the state of the guard against non-finite values:
//         with on_nonfinite: halt, "finite" bool[]. It becomes false at the first step without examples, or with a
//         loss, or an element of the gradient, of a new parameter or of a new slot, that is not finite, and stays
//         false. From that step on, parameters, slots, step and epoch sums keep their values (epoch sums of one step
//         are 0);
//         with skip, "skipped" i64[], the number of steps that were skipped. Only these steps keep the old values.
// batch   "inputs", "targets", "mask", "rows" (see model::declare_batch).
// hyper   the numbers of the config, step_numbers(): "learning_rate" unless a schedule computes it from "step", "b1",
//         and so on; with reduce_on_plateau, "learning_rate_scale", by which the rate is multiplied;
//         "dropout/<layer>" u32[2] for each drawing layer: stream_key(seed, "dropout/<layer>").
// outputs the measures of this batch under the parameters before the update, as means over all its examples;
//         "grad_norm", the global norm of the mean gradient before clipping, f64[]; "learning_rate", the rate of this
//         update; "count", the number of examples. If the count is 0, means are 0, nothing is updated, and the caller
//         must report it.
//
// The program is checked, but not simplified.
Program train_program(const model::Model& model, const spec::Spec& spec, const Optimizer& optimizer,
                      const model::BatchShape& batch, const OpSet& ops, Stage stage = Stage::final,
                      EpochOf epoch = EpochOf::steps);

// The numbers that the finished step reads. The config determines their names and types; their values do not.
std::vector<model::Number> step_numbers(const model::Model& model, const spec::Spec& spec, const Optimizer& optimizer);

// The purpose of each input and output of the finished step, as indices. No pass changes the indices.
struct StepRoles {
  // Indices of variables (variables_of): of inputs, or of parts of buckets.
  std::vector<std::size_t> parameters;         // in the order of Model::parameters
  std::vector<std::size_t> ema;                // likewise; none without train.ema
  std::size_t step = 0;                        // updates done
  std::optional<std::size_t> finite, skipped;  // the guard's state: one of the two
  std::vector<std::size_t> epoch_sums;         // in the order of measure_parts
  std::size_t epoch_examples = 0;
  std::vector<std::size_t> numbers;                // in the order of step_numbers
  std::optional<std::size_t> learning_rate_scale;  // with reduce_on_plateau: 1 at the start
  std::vector<std::size_t> dropout_keys;           // in the order of Model::drawing_layers
  std::map<std::size_t, double> initial;           // by index of a state input: its initial elements, if they are not 0
  // Outputs.
  std::vector<std::size_t> means;  // in the order of measure_parts
  std::size_t count = 0, grad_norm = 0, used_learning_rate = 0;

  // The input of the guard. A checkpoint does not have it, because a run that continues begins with a new guard.
  std::optional<std::size_t> guard() const { return finite ? finite : skipped; }
};

struct StepProgram {
  Program program;
  StepRoles roles;
};
// Builds the finished step and its roles.
StepProgram step_program(const model::Model& model, const spec::Spec& spec, const Optimizer& optimizer,
                         const model::BatchShape& batch, const OpSet& ops, EpochOf epoch = EpochOf::steps);

// The initial bytes of an input: of state, or zeros for a bucket of parameters.
std::vector<std::byte> initial_elements(const Program& program, const StepRoles& roles, std::size_t input);

}  // namespace pmaptrain::train
