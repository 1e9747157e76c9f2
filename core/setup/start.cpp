#include "core/setup/start.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/base/philox.h"
#include "core/input/batches/loader.h"
#include "core/passes/gather_batch.h"
#include "core/run/checkpoint.h"
#include "core/setup/base.h"
#include "core/setup/initialize.h"
#include "core/setup/resident.h"
#include "core/setup/restore.h"
#include "core/setup/values.h"

namespace pmaptrain::setup {
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

}  // namespace

std::vector<input::Stream> training_streams(const Setup& setup, const Module& module) {
  std::vector<input::Stream> all = training_streams(setup);
  if (all.size() == 1) return all;
  const IndexRange own = module.member_share().members();
  return {all.begin() + own.first, all.begin() + own.first + own.count};
}

std::vector<input::BatchBuffers> batch_slots(Module& module, std::size_t entry, const data::Dataset& dataset,
                                             const BatchPlan& batch) {
  std::vector<input::BatchBuffers> slots;
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
                     reinterpret_cast<std::int64_t*>(memory("rows", sizeof(std::int64_t))), input, target, own_rows,
                     reinterpret_cast<std::int32_t*>(memory("lengths", sizeof(std::int32_t)))});
  }
  return slots;
}

std::vector<input::Shorter> shorter_batches(Module& module, const Setup& setup) {
  std::vector<input::Shorter> all;
  const std::vector<std::size_t> entries = training_entries(setup);
  for (std::size_t i = 0; i < setup.shorter.size(); ++i) {
    const ShorterTraining& shorter = setup.shorter[i];
    all.push_back(
        {shorter.positions, shorter.examples, batch_slots(module, entries[i + 1], *shorter.examples, setup.batch)});
  }
  return all;
}

std::string set_initial_values(Module& module, const Setup& setup, const run::Checkpoint* checkpoint) {
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
                             step::initial_bytes(variable.type, initial->second)));
  }
  std::string base =
      write_base(module, setup.model, setup.member_spec(), checkpoint != nullptr ? checkpoint->state.base : "",
                 setup.membership(0), setup.initial_file.get());
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
      if (setup.model.parameters[i].lora == layers::LoraRole::base) continue;
      module.fill(module.input(train_entry, setup.roles.parameters[i]), m,
                  [&](std::span<std::byte> into) { values.write(setup.model.parameters[i], into); });
    }
  }
  set_learning_rate_scale(module, setup, 1.0, every_member);
  return base;
}

double ema_correction(const optimizers::Ema& ema, std::int64_t updates) {
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
  for (const input::BatchBuffers& slot : batch_slots(module, train_entry, dataset, setup.batch)) {
    input::fill(dataset, data::Sampler::in_order(setup.batch.dataset), setup.batch, 0, slot);
  }
}

}  // namespace pmaptrain::setup
