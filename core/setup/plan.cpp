#include "core/setup/plan.h"

#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/input/batches/loader.h"
#include "core/input/open.h"

namespace pmaptrain::setup {
namespace {

std::unique_ptr<Backend> make_backend(BackendKind kind, const spec::MeshSpec& mesh, KernelChoice kernels) {
  const auto memory = mesh.gpu_memory ? std::optional(mesh.gpu_memory->bytes) : std::nullopt;
  const int blocks = mesh.deterministic ? mesh.blocks.value_or(0) : 0;
  return pmaptrain::make_backend(kind, {mesh.workers, kernels, mesh.deterministic, mesh.tf32, blocks, memory});
}

BackendKind kind_of(const spec::MeshSpec& mesh) {
  switch (mesh.backend) {
    case spec::Backend::reference: return BackendKind::reference;
    case spec::Backend::cuda: return BackendKind::cuda;
    case spec::Backend::automatic: return find_gpus().all.empty() ? BackendKind::cpu : BackendKind::cuda;
    case spec::Backend::cpu: break;
  }
  return BackendKind::cpu;
}

PlannedSource plan_by(std::unique_ptr<Backend> backend, Source source, std::string because,
                      const Processes& processes = {}) {
  std::unique_ptr<Planned> planned = backend->plan(std::move(source), processes);
  return {std::move(backend), std::move(planned), std::move(because)};
}

// Processes may find different numbers of GPUs, so `auto` takes the CPU in all of them.
std::string why_no_gpus_of_several() {
  std::string why = "several processes carry the run";
  const Gpus gpus = find_gpus();
  if (gpus.all.empty()) return why;
  return why + "; backend: cuda would use the " + counted(std::ssize(gpus.all), "GPU") + " found here";
}

// The plan of `auto` for GPUs. If they cannot run `source`, there is no plan, and `because` is the reason.
PlannedSource plan_for_gpus(const spec::MeshSpec& mesh, const Source& source) {
  const Gpus gpus = find_gpus();
  if (gpus.all.empty()) return {nullptr, nullptr, gpus.none_because};
  if (mesh.workers && *mesh.workers > std::ssize(gpus.all)) {
    return {nullptr, nullptr,
            "mesh.workers is " + std::to_string(*mesh.workers) + ", and there " +
                (gpus.all.size() == 1 ? "is " : "are ") + counted(std::ssize(gpus.all), "GPU")};
  }
  try {
    PlannedSource found =
        plan_by(make_backend(BackendKind::cuda, mesh, KernelChoice::best), source,
                counted(std::ssize(gpus.all), "GPU") + " found, the first is " + gpus.all.front().name);
    found.planned->needs();  // refuses ops without a kernel for GPUs
    return found;
  } catch (const Error& error) {
    if (error.status() != ExitStatus::usage) throw;
    return {nullptr, nullptr, error.diagnostics().front().message};
  }
}

}  // namespace

std::unique_ptr<Backend> backend_of(const spec::MeshSpec& mesh, KernelChoice kernels) {
  return make_backend(kind_of(mesh), mesh, kernels);
}

PlannedSource plan_source(const spec::MeshSpec& mesh, Source source, KernelChoice kernels, const Processes& of_all) {
  source.blocks = mesh.blocks.value_or(1);
  // A run has a block for each process of a member. Of fewer members, which are evaluated, it may have fewer: then
  // every process computes all of them for itself.
  const Placement in_group =
      MemberShare(source.members, of_all.placement, mesh.backend != spec::Backend::cuda).within_group();
  const Processes processes = in_group.processes <= source.blocks ? of_all : Processes();
  if (mesh.backend != spec::Backend::automatic) {
    return plan_by(backend_of(mesh, kernels), std::move(source), "", processes);
  }
  PlannedSource on_gpus = of_all.placement.processes > 1 ? PlannedSource{nullptr, nullptr, why_no_gpus_of_several()}
                                                         : plan_for_gpus(mesh, source);
  if (on_gpus.planned) return on_gpus;
  return plan_by(make_backend(BackendKind::cpu, mesh, kernels), std::move(source), std::move(on_gpus.because),
                 processes);
}

std::string workers_text(const PlannedSource& of, const Processes& processes) {
  std::string workers = counted(of.planned->workers(), of.backend->uses_gpus() ? "GPU" : "worker");
  if (processes.placement.processes > 1)
    workers += " in each of " + std::to_string(processes.placement.processes) + " processes";
  if (of.because.empty()) return workers;
  return workers + " (backend " + std::string(of.backend->name()) + ", taken by auto: " + of.because + ")";
}

Source run_source(const Setup& setup, bool private_copies) {
  Source source;
  source.private_copies = private_copies || setup.timetable.verify_every > 0;
  source.members = spec::members(setup.spec());
  const std::vector<input::Stream> streams = training_streams(setup);
  // Steps of different sizes are submitted one by one.
  const bool in_groups = setup.shorter.empty(), by_member = streams.size() > 1;
  const int batches = input::batches_in_memory(streams.front(), setup.batch);
  source.entries.push_back({"train", setup.training, batches, by_member, in_groups, setup.training_work});
  for (const EvaluationPlan& plan : setup.evaluations) {
    source.entries.push_back({source.entries.size() == evaluate_entry ? "evaluate" : "evaluate_test", plan.program,
                              input::batches_in_memory(data::Sampler::in_order(plan.batch.dataset), plan.batch), false,
                              false, plan.work});
  }
  for (const ShorterTraining& shorter : setup.shorter) {
    source.entries.push_back(
        {"train_" + std::to_string(shorter.positions), shorter.program, batches, by_member, in_groups, shorter.work});
  }
  return source;
}

std::vector<std::size_t> training_entries(const Setup& setup) {
  std::vector<std::size_t> entries{train_entry};
  for (std::size_t i = 0; i < setup.shorter.size(); ++i) {
    entries.push_back(evaluate_entry + setup.evaluations.size() + i);
  }
  return entries;
}

Source step_source(const Setup& setup) {
  // in_groups is true, because `bench` submits steps in groups, which GPUs record when the module is loaded.
  return {{{"train", setup.training, 1, false, true, setup.training_work}},
          setup.timetable.verify_every > 0,
          spec::members(setup.spec())};
}

PlannedSource plan_run(const Setup& setup, bool private_copies, KernelChoice kernels, const Processes& processes) {
  return plan_source(setup.spec().mesh, run_source(setup, private_copies), kernels, processes);
}

std::vector<input::Stream> training_streams(const Setup& setup) {
  std::set<std::uint64_t> seeds;
  for (std::int64_t m = 0; m < spec::members(setup.spec()); ++m) {
    const spec::Spec& spec = setup.member_spec(m);
    seeds.insert(input::seed_of(spec.data, spec.seed));
  }
  std::vector<input::Stream> streams;
  for (std::int64_t m = 0; m < spec::members(setup.spec()); ++m) {
    const spec::Spec& spec = setup.member_spec(m);
    streams.push_back(input::training_stream(spec.data, spec.seed, *setup.source.train, setup.batch.global));
    if (seeds.size() == 1 || !streams.front().is_random()) break;
  }
  return streams;
}

}  // namespace pmaptrain::setup
