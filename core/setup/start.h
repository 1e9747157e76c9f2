// The programs that a config loads into a backend, and their initial values.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/runtime/backends.h"
#include "core/setup/setup.h"

namespace pmaptrain::train {

struct Checkpoint;

// The backend that mesh.backend names. `auto` is cuda if a GPU is found, else cpu.
std::unique_ptr<Backend> backend_of(const spec::MeshSpec& mesh, KernelChoice kernels = KernelChoice::best);

// A source, planned by the backend that runs it. What is printed, checked and loaded all comes from this plan.
struct PlannedSource {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Planned> planned;
  std::string because;  // the reason for the choice of auto
};
// Chooses the backend that runs `source`, and plans it there. `auto` is cuda if GPUs are found, the mesh divides over
// them, and every op has a kernel for GPUs; else cpu. The memory of the GPUs plays no role: a plan that is too large
// for it is refused.
PlannedSource plan_source(const spec::MeshSpec& mesh, Source source, KernelChoice kernels = KernelChoice::best,
                          const Processes& processes = {});

// The entries of a run. The entries of evaluations are in the order of Setup::evaluations.
inline constexpr std::size_t train_entry = 0, evaluate_entry = 1, evaluate_test_entry = 2;

// "4 workers"; for a backend that auto chose, "1 worker (backend cpu, taken by auto: there is no NVIDIA driver)".
std::string workers_text(const PlannedSource& of, const Processes& processes = {});

// The programs of a run, for all members: "train"; "evaluate" if it evaluates a split, and "evaluate_test" if it
// evaluates two. `private_copies`: see Source::private_copies; a config that compares replicas (train.verify_replicas)
// has them anyway.
Source run_source(const Setup& setup, bool private_copies = false);
// Only the training program, with one batch, for measurements.
Source step_source(const Setup& setup);
// run_source(), planned.
PlannedSource plan_run(const Setup& setup, bool private_copies = false, KernelChoice kernels = KernelChoice::best,
                       const Processes& processes = {});

// The order of the training examples: one for all members, or one for each member if data.seed varies.
std::vector<data::Stream> training_streams(const Setup& setup);

// Those of the members that this process has.
std::vector<data::Stream> training_streams(const Setup& setup, const Module& module);

// The memory that a loader of `batch` from `dataset` fills for an entry: one element for each slot, or, if members have
// their own batches, one for each member of this process in each slot. Throws Error (failed) if the program has other
// sizes.
std::vector<data::BatchBuffers> batch_slots(Module& module, std::size_t entry, const data::Dataset& dataset,
                                            const data::BatchPlan& batch);

// Sets every parameter, state input and hyper input of the training program, the module's first entry, for each member
// that this process has.
// Parameters and state come from `checkpoint` if there is one; else parameters are read or drawn (model.init). Throws
// Error (data) for values that do not fit.
void set_initial_values(Module& module, const Setup& setup, const Checkpoint* checkpoint = nullptr);

// The divisor of moving averages in evaluations: 1 - decay^updates, or 1 without debiasing. It depends only on the
// number of updates, so a resumed run computes the same divisor.
double ema_correction(const spec::EmaSpec& ema, std::int64_t updates);
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

}  // namespace pmaptrain::train
