// What a config loads into a backend, and the values that it begins with.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/runtime/backends.h"
#include "core/setup/setup.h"

namespace pmaptrain::train {

struct Checkpoint;

// The backend that a config names; of `auto`, cuda where GPUs are found, else cpu.
std::unique_ptr<Backend> backend_of(const spec::MeshSpec& mesh, KernelChoice kernels = KernelChoice::best);

// The backend that runs `source`. `auto` takes cuda where GPUs are found, the mesh divides over them and their kernels
// carry out every op; else cpu. Whether the plan fits into their memory is not asked: too large a plan is refused.
struct ChosenBackend {
  std::unique_ptr<Backend> backend;
  std::string because;  // of auto: why this one
};
ChosenBackend choose_backend(const spec::MeshSpec& mesh, const Source& source,
                             KernelChoice kernels = KernelChoice::best);

// The entries of a run. Those of evaluations are in the order of Setup::evaluations.
inline constexpr std::size_t train_entry = 0, evaluate_entry = 1, evaluate_test_entry = 2;

// "4 workers"; of a backend that auto took "1 worker (backend cpu, taken by auto: there is no NVIDIA driver)".
std::string workers_text(const Backend& backend, const Source& source, const std::string& because);

// What a run loads, for all members: "train"; "evaluate" where it evaluates, and "evaluate_test" where it evaluates two
// splits. Private copies where they are asked for, or the config compares replicas.
Source run_source(const Setup& setup, bool private_copies = false);
// Its first entry alone, with one batch: what is timed and explained.
Source step_source(const Setup& setup);

// The order of the training examples: one that all members share, or one for each member where data.seed varies.
std::vector<data::Stream> training_streams(const Setup& setup);

// The memory of the batches of an entry, of `batch` from `dataset`, for a loader: slot by slot, and in each slot by
// member where members have batches of their own. Throws Error (failed) where the program has other sizes.
std::vector<data::BatchBuffers> batch_slots(Module& module, std::size_t entry, const data::Dataset& dataset,
                                            const data::BatchPlan& batch);

// Sets every parameter (from model.init, or drawn), every piece of state and every hyper input of the training program,
// which is the module's first entry, for each member; parameters and state from `checkpoint` where there is one. Throws
// Error (data) for values that do not fit.
void set_initial_values(Module& module, const Setup& setup, const Checkpoint* checkpoint = nullptr);

// What evaluates moving averages divides them by it: 1 - decay^updates, or 1 without debiasing. No more than the count
// of updates is needed, so a resumed run has the same.
double ema_correction(const spec::EmaSpec& ema, std::int64_t updates);
// Sets a member's hyper input "ema/correction" of the evaluation's entries, if there is one.
void set_ema_correction(Module& module, const Setup& setup, std::int64_t updates, std::int64_t member);
// Before its first update a member has no average: for an evaluation the parameters stand in for it. Then it begins at
// zero.
void begin_averages(Module& module, const Setup& setup, bool as_parameters, std::int64_t member);
// Sets what optimizer.reduce_on_plateau multiplies the learning rate by, of a member or of all.
void set_learning_rate_scale(Module& module, const Setup& setup, double scale, std::int64_t member);
// Sets what an evaluation without training reads of the config of a member, which `model` is made of.
void set_loss_numbers(Module& module, const model::Model& model, std::int64_t member);

// Fills slot 0 of the training entry with the first batch of the training split in file order, and gives the devices
// the splits that stay there: what steps are timed on.
void fill_first_batch(Module& module, const Setup& setup);

}  // namespace pmaptrain::train
