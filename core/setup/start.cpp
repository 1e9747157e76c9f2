#include "core/setup/start.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/philox.h"
#include "core/base/text.h"
#include "core/data/batches/loader.h"
#include "core/data/sources/open.h"
#include "core/passes/gather_batch.h"
#include "core/run/checkpoint.h"
#include "core/setup/initialize.h"
#include "core/setup/resident.h"
#include "core/setup/restore.h"
#include "core/setup/values.h"

namespace pmaptrain::train {
namespace {

// `input` is the index of a variable of the training program.
void write_now(Module& module, std::size_t input, std::span<const std::byte> value, std::int64_t member) {
  module.wait(module.write(module.input(train_entry, input), {every_device, member}, value));
}

void write_number(Module& module, Handle input, double number, std::int64_t member) {
  dispatch_floating(module.type(input).dtype, [&]<class T>() {
    const T value = static_cast<T>(number);
    module.wait(module.write(input, {every_device, member}, std::as_bytes(std::span(&value, 1))));
  });
}

// Sets the hyper inputs of a member: the numbers of its config, and the keys of its dropout.
void set_hyper_inputs(Module& module, const Setup& setup, std::int64_t member) {
  const std::vector<equations::Number>& numbers = setup.members[static_cast<std::size_t>(member)].numbers;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    write_number(module, module.input(train_entry, setup.roles.numbers[i]), numbers[i].value, member);
  }
  const std::vector<std::string> layers = setup.model.drawing_layers();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const PhiloxKey key = stream_key(setup.member_spec(member).seed, "dropout/" + layers[i]);
    write_now(module, setup.roles.dropout_keys[i], std::as_bytes(std::span(key)), member);
  }
}

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
  const std::vector<data::Stream> streams = training_streams(setup);
  source.entries.push_back({"train", setup.training, data::batches_in_memory(streams.front(), setup.batch),
                            streams.size() > 1, true, setup.training_work});
  for (const EvaluationPlan& plan : setup.evaluations) {
    source.entries.push_back({source.entries.size() == evaluate_entry ? "evaluate" : "evaluate_test", plan.program,
                              data::batches_in_memory(data::Sampler::in_order(plan.batch.dataset), plan.batch), false,
                              false, plan.work});
  }
  return source;
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

std::vector<data::Stream> training_streams(const Setup& setup) {
  std::vector<data::Stream> streams;
  std::set<std::uint64_t> seeds;
  for (std::int64_t m = 0; m < spec::members(setup.spec()); ++m) {
    const spec::Spec& spec = setup.member_spec(m);
    seeds.insert(data::seed_of(spec.data, spec.seed));
    streams.push_back(data::training_stream(spec.data, spec.seed, *setup.source.train));
  }
  if (seeds.size() == 1 || !streams.front().is_random()) streams.resize(1, streams.front());
  return streams;
}

std::vector<data::Stream> training_streams(const Setup& setup, const Module& module) {
  std::vector<data::Stream> all = training_streams(setup);
  if (all.size() == 1) return all;
  const IndexRange own = module.member_share().members();
  return {all.begin() + own.first, all.begin() + own.first + own.count};
}

std::vector<data::BatchBuffers> batch_slots(Module& module, std::size_t entry, const data::Dataset& dataset,
                                            const data::BatchPlan& batch) {
  std::vector<data::BatchBuffers> slots;
  const Program& program = module.program(entry);
  const auto any = std::find_if(program.inputs.begin(), program.inputs.end(),
                                [](const Input& input) { return input.group == Group::batch; });
  const IndexRange own_instances = module.share(entry).instances(program.type(any->value).varying);
  const IndexRange own_rows{own_instances.first * batch.rows_per_device, own_instances.count * batch.rows_per_device};
  const auto rows = static_cast<std::size_t>(own_rows.count);
  const IndexRange own =
      module.source().entries[entry].batch_by_member ? module.member_share().members() : IndexRange{0, 1};
  for (std::int64_t i = 0; i < module.slots(entry) * own.count; ++i) {
    const auto memory = [&](std::string_view input, std::size_t row_bytes) -> std::byte* {
      const std::span<std::byte> found =
          module.batch(entry, static_cast<int>(i / own.count), input, own.first + i % own.count);
      if (!found.empty() && found.size() != rows * row_bytes) {
        fail_running("a batch has " + std::to_string(rows * row_bytes) + " bytes of " + std::string(input) +
                     "; the program has " + std::to_string(found.size()));
      }
      return found.data();
    };
    const std::size_t input = dataset.input().bytes(), target = dataset.target().bytes();
    // A program that gathers its batch reads row numbers.
    std::byte* const inputs = memory("inputs", input);
    slots.push_back({inputs != nullptr ? inputs : memory(row_numbers_input, input), memory("targets", target),
                     reinterpret_cast<float*>(memory("mask", sizeof(float))),
                     reinterpret_cast<std::int64_t*>(memory("rows", sizeof(std::int64_t))), input, target, own_rows});
  }
  return slots;
}

void set_initial_values(Module& module, const Setup& setup, const Checkpoint* checkpoint) {
  const Program& program = *setup.training;
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const Input& input = program.inputs[i];
    // Of parameters too, the elements between the parts of a bucket, and the padding of a divided array, must be zero.
    const bool has_gaps = !input.parts.empty() || !input.layout.axes().empty();
    if (input.group != Group::state && !has_gaps) continue;
    module.clear(module.stored(module.input(input.name)));
  }
  for (const Variable& variable : module.variables(train_entry)) {
    const auto initial = setup.roles.initial.find(variable.input);
    if (initial == setup.roles.initial.end()) continue;
    module.wait(module.write(module.input(variable.name), {every_device, every_member},
                             initial_bytes(variable.type, initial->second)));
  }
  const IndexRange own = module.member_share().members();
  for (std::int64_t m = own.first; m < own.first + own.count; ++m) {
    set_hyper_inputs(module, setup, m);
    if (checkpoint != nullptr) {
      restore(module, setup, *checkpoint, m);
      const std::int64_t skipped = checkpoint->state.members[static_cast<std::size_t>(m)].steps_skipped;
      if (setup.roles.skipped) write_now(module, *setup.roles.skipped, std::as_bytes(std::span(&skipped, 1)), m);
      continue;
    }
    const spec::Spec& spec = setup.member_spec(m);
    const InitialValues values(setup.model, spec.model, spec.seed, setup.membership(m), setup.initial_file.get());
    for (std::size_t i = 0; i < setup.model.parameters.size(); ++i) {
      module.fill(module.input(train_entry, setup.roles.parameters[i]), m,
                  [&](std::span<std::byte> into) { values.write(setup.model.parameters[i], into); });
    }
  }
  set_learning_rate_scale(module, setup, 1.0, every_member);
}

double ema_correction(const spec::EmaSpec& ema, std::int64_t updates) {
  return ema.debias && updates > 0 ? 1.0 - std::pow(ema.decay, static_cast<double>(updates)) : 1.0;
}

void set_ema_correction(Module& module, const Setup& setup, std::int64_t updates, std::int64_t member) {
  const auto& ema = setup.member_spec(member).train.ema;
  if (!ema || !ema->debias || setup.evaluations.empty()) return;
  write_number(module, module.input("ema/correction"), ema_correction(*ema, updates), member);
}

void set_initial_averages(Module& module, const Setup& setup, bool as_parameters, std::int64_t member) {
  if (!module.member_share().has(member)) return;
  for (std::size_t i = 0; i < setup.roles.ema.size(); ++i) {
    if (setup.roles.ema[i] == setup.roles.parameters[i]) continue;  // it has no average
    std::vector<std::byte> value =
        bytes_here(module, module.input(train_entry, setup.roles.parameters[i]), {module.own_device(), member});
    if (!as_parameters) std::fill(value.begin(), value.end(), std::byte{0});
    write_now(module, setup.roles.ema[i], value, member);
  }
}

void set_learning_rate_scale(Module& module, const Setup& setup, double scale, std::int64_t member) {
  if (const auto input = setup.roles.learning_rate_scale) {
    write_number(module, module.input(train_entry, *input), scale, member);
  }
}

void set_loss_numbers(Module& module, const model::Model& model, std::int64_t member) {
  for (const equations::Number& number : model::loss_numbers(model)) {
    write_number(module, module.input(number.name), number.value, member);
  }
}

void fill_first_batch(Module& module, const Setup& setup) {
  copy_resident_splits(module, setup);
  const data::Dataset& dataset = *setup.loader_dataset();
  for (const data::BatchBuffers& slot : batch_slots(module, train_entry, dataset, setup.batch)) {
    data::fill(dataset, data::Sampler::in_order(setup.batch.dataset), setup.batch, 0, slot);
  }
}

}  // namespace pmaptrain::train
