// A loaded module with its initial values and its first batches.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/input/batches/loader.h"
#include "core/setup/plan.h"

namespace pmaptrain::run {
struct Checkpoint;
}

namespace pmaptrain::setup {

// The streams of the members that this process has.
std::vector<input::Stream> training_streams(const Setup& setup, const Module& module);

// The memory that a loader of `batch` from `dataset` fills for an entry: one element for each slot, or, if members have
// their own batches, one for each member of this process in each slot. Throws Error (failed) if the program has other
// sizes.
std::vector<input::BatchBuffers> batch_slots(Module& module, std::size_t entry, const data::Dataset& dataset,
                                             const BatchPlan& batch);

// The datasets and the memory of Setup::shorter.
std::vector<input::Shorter> shorter_batches(Module& module, const Setup& setup);

// Sets every parameter, state input and hyper input of the training program, the module's first entry, for each member
// that this process has.
// Parameters and state come from `checkpoint` if there is one; else parameters are read or drawn (model.init). Returns
// the identity of the base of a model with adapters (base.h), which must be that of the checkpoint. Throws Error (data)
// for values that do not fit.
std::string set_initial_values(Module& module, const Setup& setup, const run::Checkpoint* checkpoint = nullptr);

// The divisor of moving averages in evaluations: 1 - decay^updates, or 1 without debiasing. It depends only on the
// number of updates, so a resumed run computes the same divisor.
double ema_correction(const optimizers::Ema& ema, std::int64_t updates);
// Sets a member's hyper input "ema/correction" in the entries of evaluations, if they have it.
void set_ema_correction(Module& module, const Setup& setup, std::int64_t updates, std::int64_t member);
// Sets the averages of a member, if this process has it, before its first update: to the parameters for an evaluation,
// to zero for training.
void set_initial_averages(Module& module, const Setup& setup, bool as_parameters, std::int64_t member);
// Sets the factor of the learning rate by optimizer.reduce_on_plateau, for one member or all.
void set_learning_rate_scale(Module& module, const Setup& setup, double scale, std::int64_t member);
// Sets the numbers that the loss of a member reads (model::loss_numbers), in a module without a training entry, such as
// that of `eval`. `model` is the member's.
void set_loss_numbers(Module& module, const model::Model& model, std::int64_t member);

// Fills slot 0 of the training entry with the first batch of the training split in file order, and copies to the
// devices the splits that stay there. For measurements.
void fill_first_batch(Module& module, const Setup& setup);

}  // namespace pmaptrain::setup
