// The programs of a setup, planned by the backend that runs them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/runtime/backends.h"
#include "core/setup/setup.h"

namespace pmaptrain::setup {

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

// The entries of training by the size of a batch (input::Batch): train_entry, and those of Setup::shorter, which are
// the last ones.
std::vector<std::size_t> training_entries(const Setup& setup);

// "4 workers"; for a backend that auto chose, "1 worker (backend cpu, taken by auto: there is no NVIDIA driver)".
std::string workers_text(const PlannedSource& of, const Processes& processes = {});

// The programs of a run, for all members: "train"; "evaluate" if it evaluates a split, and "evaluate_test" if it
// evaluates two; "train_64" for each of Setup::shorter. `private_copies`: see Source::private_copies; a config that
// compares replicas (train.verify_replicas) has them anyway.
Source run_source(const Setup& setup, bool private_copies = false);
// Only the training program, with one batch, for measurements.
Source step_source(const Setup& setup);
// run_source(), planned.
PlannedSource plan_run(const Setup& setup, bool private_copies = false, KernelChoice kernels = KernelChoice::best,
                       const Processes& processes = {});

// The order of the training examples: one for all members, or one for each member if data.seed varies.
std::vector<input::Stream> training_streams(const Setup& setup);

}  // namespace pmaptrain::setup
