#include "core/train/start.h"

#include <algorithm>
#include <cmath>

#include "core/base/philox.h"
#include "core/data/loader.h"
#include "core/data/open.h"
#include "core/train/checkpoint.h"
#include "core/train/initialize.h"
#include "core/train/values.h"

namespace pmaptrain::train {
namespace {

void write_now(Module& module, std::size_t input, std::int64_t member, std::span<const std::byte> value) {
  module.wait(module.write(module.input(train_entry, input), {every_device, member}, value));
}

void write_scalar(Module& module, const Setup& setup, Handle input, std::int64_t member, double number) {
  dispatch_floating(setup.model.dtype, [&]<class T>() {
    const T value = static_cast<T>(number);
    module.wait(module.write(input, {every_device, member}, std::as_bytes(std::span(&value, 1))));
  });
}

void set_initial_values(Module& module, const Setup& setup, std::int64_t member, const Checkpoint* checkpoint) {
  const spec::Spec& spec = spec::member_spec(setup.spec(), member);
  const Program& program = *setup.training;
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    if (program.inputs[i].group == Group::state) write_now(module, i, member, initial_state(program, setup.roles, i));
  }
  if (checkpoint != nullptr) {
    restore(module, setup, *checkpoint, member);
    const std::int64_t skipped = checkpoint->state.members[static_cast<std::size_t>(member)].steps_skipped;
    if (setup.roles.skipped) write_now(module, *setup.roles.skipped, member, std::as_bytes(std::span(&skipped, 1)));
  } else {
    const InitialValues values(setup.model, spec.model, spec.seed);
    for (std::size_t i = 0; i < setup.model.parameters.size(); ++i) {
      write_now(module, setup.roles.parameters[i], member, values.of(setup.model.parameters[i]));
    }
  }
  if (const auto rate = setup.roles.learning_rate) {
    write_scalar(module, setup, module.input(train_entry, *rate), member, setup.optimizer.learning_rate);
  }
  set_learning_rate_scale(module, setup, member, 1.0);
  const std::vector<std::string> layers = setup.model.drawing_layers();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const PhiloxKey key = stream_key(spec.seed, "dropout/" + layers[i]);
    write_now(module, setup.roles.dropout_keys[i], member, std::as_bytes(std::span(key)));
  }
}

}  // namespace

std::unique_ptr<Backend> backend_of(const spec::MeshSpec& mesh, KernelChoice kernels) {
  const bool reference = mesh.backend == spec::Backend::reference;
  return make_backend(reference ? BackendKind::reference : BackendKind::cpu, {mesh.workers, kernels});
}

Source run_source(const Setup& setup, bool private_copies) {
  Source source;
  source.private_copies = private_copies || setup.timetable.verify_every > 0;
  source.members = spec::members(setup.spec());
  const data::Sampler sampler = data::training_sampler(
      setup.spec().data, data::seed_of(setup.spec().data, setup.spec().seed), setup.batch.dataset);
  source.entries.push_back({"train", setup.training, data::batches_in_memory(sampler, setup.batch)});
  for (const EvaluationPlan& plan : setup.evaluations) {
    source.entries.push_back({source.entries.size() == evaluate_entry ? "evaluate" : "evaluate_test", plan.program,
                              data::batches_in_memory(data::Sampler::in_order(plan.batch.dataset), plan.batch)});
  }
  return source;
}

Source step_source(const Setup& setup) { return {{{"train", setup.training, 1}}, setup.timetable.verify_every > 0}; }

std::vector<data::BatchBuffers> batch_slots(Module& module, std::size_t entry, const data::Dataset& dataset,
                                            const data::BatchPlan& batch) {
  std::vector<data::BatchBuffers> slots;
  const auto rows = static_cast<std::size_t>(batch.rows());
  for (int slot = 0; slot < module.source().entries[entry].batches; ++slot) {
    const auto memory = [&](std::string_view input, std::size_t row_bytes) -> std::byte* {
      const std::span<std::byte> found = module.batch(entry, slot, input);
      if (!found.empty() && found.size() != rows * row_bytes) {
        fail_running("a batch has " + std::to_string(rows * row_bytes) + " bytes of " + std::string(input) +
                     "; the program has " + std::to_string(found.size()));
      }
      return found.data();
    };
    const std::size_t input = dataset.input().bytes(), target = dataset.target().bytes();
    slots.push_back({memory("inputs", input), memory("targets", target),
                     reinterpret_cast<float*>(memory("mask", sizeof(float))),
                     reinterpret_cast<std::int64_t*>(memory("rows", sizeof(std::int64_t))), input, target});
  }
  return slots;
}

void set_initial_values(Module& module, const Setup& setup, const Checkpoint* checkpoint) {
  for (std::int64_t member = 0; member < spec::members(setup.spec()); ++member) {
    set_initial_values(module, setup, member, checkpoint);
  }
}

double ema_correction(const spec::EmaSpec& ema, std::int64_t updates) {
  return ema.debias && updates > 0 ? 1.0 - std::pow(ema.decay, static_cast<double>(updates)) : 1.0;
}

void set_ema_correction(Module& module, const Setup& setup, std::int64_t member, std::int64_t updates) {
  const auto& ema = setup.spec().train.ema;
  if (!ema || !ema->debias || setup.evaluations.empty()) return;
  write_scalar(module, setup, module.input("ema/correction"), member, ema_correction(*ema, updates));
}

void begin_averages(Module& module, const Setup& setup, std::int64_t member, bool as_parameters) {
  for (std::size_t i = 0; i < setup.roles.ema.size(); ++i) {
    std::vector<std::byte> value = bytes_of(module, module.input(train_entry, setup.roles.parameters[i]), {0, member});
    if (!as_parameters) std::fill(value.begin(), value.end(), std::byte{0});
    write_now(module, setup.roles.ema[i], member, value);
  }
}

void set_learning_rate_scale(Module& module, const Setup& setup, std::int64_t member, double scale) {
  if (const auto input = setup.roles.learning_rate_scale) {
    write_scalar(module, setup, module.input(train_entry, *input), member, scale);
  }
}

void fill_first_batch(Module& module, const Setup& setup) {
  const data::Dataset& dataset = *setup.source.train;
  data::fill(dataset, data::Sampler::in_order(setup.batch.dataset), setup.batch, 0,
             batch_slots(module, train_entry, dataset, setup.batch).front());
}

}  // namespace pmaptrain::train
