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
  model,         // one microbatch forward, to this device's own sums
  grad,          // with the derivative and the microbatch loop: this device's own sums and gradients
  synchronised,  // summed over all devices, and divided by the count: mean measures and gradients
  final          // with the guard, clipping and the update: what runs, once it is optimised
};

// How many steps an epoch has.
enum class EpochOf : std::uint8_t { one_step, steps };

// The step of `spec` over its data axes. Of the finished step:
//
// params  each parameter, by path. Frozen ones are not replaced.
// state   "<slot>/<parameter>" of the optimizer, for each trained parameter; with train.ema, "ema/<parameter>" for each
//         parameter, the average before debiasing; "step" i64[], updates done; "epoch/<measure>" and "epoch/examples"
//         f64[], sums that the host reads and resets, or with `EpochOf::one_step` those of the last step alone; and
//         what guards the update:
//         with on_nonfinite: halt, "finite" bool[], which stays false once a step was not finite (the loss, or an
//         element of the gradient, of a new parameter or of a new slot) or had no example:
//         from then on, that step included, parameters, slots, step and epoch sums keep their values (or of epochs of
//         one step the sums are 0);
//         with skip, "skipped" i64[], the steps that were left out: only those keep the old values.
// batch   "inputs", "targets", "mask", "rows" (see model::declare_batch).
// hyper   the numbers of the config, step_numbers(): "learning_rate" unless a schedule computes it from "step", "b1",
// ...;
//         with reduce_on_plateau, "learning_rate_scale", by which the rate is multiplied;
//         "dropout/<layer>" u32[2] for each drawing layer: stream_key(seed, "dropout/<layer>").
// outputs the measures of this batch under the parameters before the update, as means over all its examples;
//         "grad_norm", the global norm of the mean gradient before clipping, f64[]; "learning_rate", what the update
//         used; "count", the examples counted. A count of zero is the caller's to report: means are then 0 and nothing
//         is updated.
//
// Checked, not simplified.
Program train_program(const model::Model& model, const spec::Spec& spec, const Optimizer& optimizer,
                      const model::BatchShape& batch, const OpSet& ops, Stage stage = Stage::final,
                      EpochOf epoch = EpochOf::steps);

// The numbers that the finished step reads. Their names and types depend on what makes the program, never on a value.
std::vector<model::Number> step_numbers(const model::Model& model, const spec::Spec& spec, const Optimizer& optimizer);

// What the finished step's inputs and outputs are for, as indices among them, which no pass changes.
struct StepRoles {
  // Inputs.
  std::vector<std::size_t> parameters;         // in the order of Model::parameters
  std::vector<std::size_t> ema;                // likewise; none without train.ema
  std::size_t step = 0;                        // updates done
  std::optional<std::size_t> finite, skipped;  // the guard's state: one of the two
  std::vector<std::size_t> epoch_sums;         // in the order of measure_parts
  std::size_t epoch_examples = 0;
  std::vector<std::size_t> numbers;                // in the order of step_numbers
  std::optional<std::size_t> learning_rate_scale;  // with reduce_on_plateau: 1 at the start
  std::vector<std::size_t> dropout_keys;           // in the order of Model::drawing_layers
  std::map<std::size_t, double> initial;           // what the elements of a state input begin with, where that is not 0
  // Outputs.
  std::vector<std::size_t> means;  // in the order of measure_parts
  std::size_t count = 0, grad_norm = 0, used_learning_rate = 0;

  // Of the guard: a checkpoint has none of them, since they say nothing of a run that goes on.
  std::vector<std::size_t> guard() const;
};

struct StepProgram {
  Program program;
  StepRoles roles;
};
// The finished step.
StepProgram step_program(const model::Model& model, const spec::Spec& spec, const Optimizer& optimizer,
                         const model::BatchShape& batch, const OpSet& ops, EpochOf epoch = EpochOf::steps);

// The bytes that a state input, by its index, begins a run with.
std::vector<std::byte> initial_state(const Program& program, const StepRoles& roles, std::size_t input);

}  // namespace pmaptrain::train
