// The training step as one typed program, for one logical device.
#pragma once

#include <cstddef>
#include <vector>

#include "core/graph/program.h"
#include "core/model/batch.h"
#include "core/spec/spec.h"

namespace pmaptrain::train {

enum class Stage {
  model,  // one microbatch forward, to this device's own sums
  grad,   // with the derivative and the microbatch loop: this device's own sums and gradients
  final   // synchronised, normalised, updated: what runs
};

// The step of `spec` over its data axes. Of the finished step:
//
// params  each parameter, by path.
// state   "<slot>/<parameter>" of the optimizer; "step" i64[], updates done; "epoch/<measure>" and "epoch/examples"
//         f64[], sums that the host reads and resets; and what guards the update:
//         with on_nonfinite: halt, "finite" bool[], which stays false once a step was not finite (the loss, or an
//         element of the gradient, of a new parameter or of a new slot) or had no example:
//         from then on, that step included, parameters, slots, step and epoch sums keep their values;
//         with skip, "skipped" i64[], the steps that were left out: only those keep the old values.
// batch   "inputs", "targets", "mask", "rows" (see model::declare_batch).
// hyper   "learning_rate", a scalar of the model's dtype (scaled_learning_rate); "dropout/<layer>" u32[2] for each
//         drawing layer: stream_key(seed, "dropout/<layer>").
// outputs the measures of this batch under the parameters before the update, as means over all its examples;
//         "grad_norm", the global norm of the mean gradient, f64[]; "learning_rate"; "count", the examples counted. A
//         count of zero is the caller's to report: means are then 0 and nothing is updated.
//
// Checked, not simplified.
Program train_program(const model::Model& model, const spec::Spec& spec, const model::BatchShape& batch,
                      const OpSet& ops, Stage stage = Stage::final);

// The bytes that a state input begins a run with: zeros, and true for "finite".
std::vector<std::byte> initial_state(const Program& program, const Input& input);

}  // namespace pmaptrain::train
