#include "core/input/batches/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/data/parallel.h"
#include "core/spec/division.h"

namespace pmaptrain::input {
namespace {

constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

// An upper bound that keeps the arithmetic below from overflowing.
constexpr std::int64_t max_rows = std::int64_t{1} << 40;

BatchPlan finish(std::int64_t examples, std::int64_t global, std::int64_t devices, std::int64_t microbatches,
                 bool drop) {
  BatchPlan plan;
  plan.dataset = examples;
  plan.global = global;
  plan.devices = devices;
  plan.microbatches = microbatches;
  plan.rows_per_device = round_up(round_up(global, devices) / devices, microbatches);
  plan.steps_per_epoch = drop ? examples / global : round_up(examples, global) / global;
  plan.examples_per_epoch = drop ? plan.steps_per_epoch * global : examples;
  plan.skipped_per_epoch = examples - plan.examples_per_epoch;
  plan.padded_per_epoch = plan.steps_per_epoch * plan.rows() - plan.examples_per_epoch;
  return plan;
}

// "axis 'devices' (8 devices) and 2 microbatches"
std::string parts(const Mesh& mesh, std::int64_t microbatches) {
  std::string text;
  for (const Axis& axis : mesh.axes()) text += fmt::format("{}'{}'", text.empty() ? "" : " and ", axis.name);
  if (!text.empty()) {
    const std::int64_t devices = mesh.devices();
    text = fmt::format("{} {} ({} {})", mesh.axes().size() == 1 ? "axis" : "axes", text, devices,
                       devices == 1 ? "device" : "devices");
  }
  if (microbatches > 1) text += fmt::format("{}{} microbatches", text.empty() ? "" : " and ", microbatches);
  return text;
}

// The nearest batch sizes that are multiples of `unit` and divide `examples`; empty if there are none.
std::string exact_sizes(std::int64_t size, std::int64_t unit, std::int64_t examples) {
  std::optional<std::int64_t> below, above;
  const auto consider = [&](std::int64_t candidate) {
    if (candidate % unit != 0) return;
    if (candidate < size) below = std::max(below.value_or(candidate), candidate);
    if (candidate > size) above = std::min(above.value_or(candidate), candidate);
  };
  for (std::int64_t d = 1; d <= examples / d; ++d) {
    if (examples % d != 0) continue;
    consider(d);
    consider(examples / d);
  }
  if (below && above) return fmt::format("{} or {}", *below, *above);
  return below ? fmt::format("{}", *below) : above ? fmt::format("{}", *above) : "";
}

class TrainingPlanner {
 public:
  TrainingPlanner(const spec::DataSpec& spec, const Mesh& mesh, std::int64_t examples)
      : spec_(spec), mesh_(mesh), examples_(examples), devices_(mesh.devices()), microbatches_(spec.microbatches) {}

  BatchPlan plan() {
    if (std::holds_alternative<spec::BatchAll>(spec_.batch_size)) {
      global_ = examples_;
      written_ = fmt::format("batch_size all ({} examples)", examples_);
      check_all();
    } else if (const auto* each = std::get_if<spec::BatchPerDevice>(&spec_.batch_size)) {
      written_ = fmt::format("batch_size_per_device {}", each->examples);
      if (each->examples < 1 || each->examples > max_rows / devices_) fail_size();
      global_ = each->examples * devices_;
    } else {
      global_ = std::get<std::int64_t>(spec_.batch_size);
      written_ = fmt::format("batch_size {}", global_);
      if (global_ < 1 || global_ > max_rows) fail_size();
    }
    // Errors that the config alone shows have been reported (spec::check_division).
    assert(!diagnostics_.empty() || spec_.remainder == spec::Remainder::mask || global_ % unit() == 0);
    check_epoch();
    if (!diagnostics_.empty()) throw Error(ExitStatus::usage, std::move(diagnostics_));
    return finish(examples_, global_, devices_, microbatches_, spec_.remainder != spec::Remainder::mask);
  }

 private:
  void add(const Place& place, std::string message, std::string help) {
    diagnostics_.push_back({"config", place, std::move(message), std::move(help), {}});
  }
  [[noreturn]] void fail_size() {
    add(spec_.batch_size_place, fmt::format("{} is out of range", written_),
        fmt::format("a batch has 1 to {} examples", max_rows));
    throw Error(ExitStatus::usage, std::move(diagnostics_));
  }

  std::int64_t unit() const { return devices_ * microbatches_; }

  void check_all() {
    if (spec_.remainder == spec::Remainder::mask || global_ % unit() == 0) return;
    const std::int64_t largest = global_ / unit() * unit();
    add(spec_.batch_size_place,
        fmt::format("{} does not divide over {}: {}", written_, parts(mesh_, microbatches_),
                    spec::division(global_, unit())),
        largest > 0 ? fmt::format("batch_size {} would divide; {}", largest, spec::mask_help)
                    : std::string(spec::mask_help));
  }

  void check_epoch() {
    if (spec_.remainder == spec::Remainder::drop && global_ > examples_) {
      add(spec_.batch_size_place,
          fmt::format("{} is more than the {} training examples, so an epoch has no step", size_in_words(), examples_),
          epoch_help());
    }
    if (spec_.remainder == spec::Remainder::error && examples_ % global_ != 0) {
      const std::string sizes = exact_sizes(global_, unit(), examples_);
      const bool per_device = std::holds_alternative<spec::BatchPerDevice>(spec_.batch_size);
      add(spec_.remainder_place.known() ? spec_.remainder_place : spec_.batch_size_place,
          fmt::format("{} leaves a short last batch and remainder is error: {}", size_in_words(),
                      spec::division(examples_, global_)),
          (sizes.empty() ? "" : fmt::format("{} {} would divide; ", per_device ? "a total of" : "batch_size", sizes)) +
              "remainder: drop skips the last examples, remainder: mask pads the last batch");
    }
  }

  std::string epoch_help() const {
    const std::int64_t largest = examples_ / unit() * unit();
    if (largest == 0) return std::string(spec::mask_help);
    if (std::holds_alternative<spec::BatchPerDevice>(spec_.batch_size)) {
      return fmt::format("use at most {} per device", largest / devices_);
    }
    return fmt::format("use at most {}", largest);
  }

  // "batch_size_per_device 16 (128 in total)"
  std::string size_in_words() const {
    const bool per_device = std::holds_alternative<spec::BatchPerDevice>(spec_.batch_size);
    return per_device ? fmt::format("{} ({} in total)", written_, global_) : written_;
  }

  const spec::DataSpec& spec_;
  const Mesh& mesh_;
  std::int64_t examples_, devices_, microbatches_;
  std::int64_t global_ = 0;
  std::string written_;  // the batch size as written in the config
  std::vector<Diagnostic> diagnostics_;
};

}  // namespace

BatchPlan plan_training(const spec::DataSpec& spec, const Mesh& mesh, std::int64_t examples) {
  assert(examples >= 1 && spec.microbatches >= 1);
  return TrainingPlanner(spec, mesh, examples).plan();
}

std::int64_t rows_at_once(const spec::DataSpec& spec, const Mesh& mesh, std::int64_t examples) {
  const std::int64_t devices = mesh.devices();
  std::int64_t global = examples;
  if (const auto* each = std::get_if<spec::BatchPerDevice>(&spec.batch_size)) global = each->examples * devices;
  if (const auto* whole = std::get_if<std::int64_t>(&spec.batch_size)) global = *whole;
  return finish(examples, std::min(global, max_rows), devices, spec.microbatches, false).rows_at_once();
}

BatchPlan plan_evaluation(std::int64_t examples, std::int64_t batch, std::int64_t devices) {
  assert(examples >= 1 && batch >= 1 && devices >= 1);
  return finish(examples, std::min(batch, examples), devices, 1, false);
}

namespace {

IndexRange rows_of(const BatchPlan& plan, const BatchBuffers& buffers) {
  return buffers.own.count > 0 ? buffers.own : IndexRange{0, plan.rows()};
}

// The rows of a batch in memory.
struct Rows {
  const BatchBuffers& buffers;
  std::byte* input(std::int64_t r) const { return buffers.inputs + static_cast<std::size_t>(r) * buffers.input_bytes; }
  std::byte* target(std::int64_t r) const {
    return buffers.targets + static_cast<std::size_t>(r) * buffers.target_bytes;
  }
};

// Mixes the rows in memory, the examples `own` of a batch of `examples`, each with its partner: example i with example
// examples - 1 - i. `read(example, input, target)` reads partners that are not in memory, on several threads if
// `is_costly`.
template <class Read>
void mix_examples(const augment::Mixer& mixer, std::int64_t step, IndexRange own, std::int64_t examples,
                  const BatchBuffers& buffers, bool is_costly, Read&& read) {
  const augment::Mix mix = mixer.draw(step);
  const Rows rows{buffers};
  const auto floats = [&](std::byte* bytes) {
    return std::span(reinterpret_cast<float*>(bytes), buffers.target_bytes / sizeof(float));
  };
  const auto mix_with = [&](std::int64_t r, std::byte* partner_input, std::byte* partner_target) {
    mixer.mix_image(mix, rows.input(r), partner_input);
    augment::Mixer::mix_target(mix, floats(rows.target(r)), floats(partner_target));
  };
  const auto mix_row = [&](std::int64_t r) {
    const std::int64_t partner = examples - 1 - (own.first + r), at = partner - own.first;
    const bool is_here = 0 <= at && at < own.count;
    if (is_here && r >= at) return;  // mixed with its partner, whose row comes first
    std::vector<std::byte> input(buffers.input_bytes), target(buffers.target_bytes);
    if (!is_here) {
      read(partner, input.data(), target.data());
      return mix_with(r, input.data(), target.data());
    }
    std::memcpy(input.data(), rows.input(r), input.size());
    std::memcpy(target.data(), rows.target(r), target.size());
    mix_with(r, rows.input(at), rows.target(at));
    mix_with(at, input.data(), target.data());
  };
  if (is_costly) return data::for_each_item(own.count, mix_row);
  for (std::int64_t r = 0; r < own.count; ++r) mix_row(r);
}

}  // namespace

void fill_rows(const BatchPlan& plan, std::int64_t step, const BatchBuffers& buffers) {
  const std::int64_t epoch = step / plan.steps_per_epoch;
  const std::int64_t k = step % plan.steps_per_epoch;
  const std::int64_t last = plan.examples_in(k) - 1;
  const std::int64_t first = epoch * plan.dataset + k * plan.global;
  const IndexRange own = rows_of(plan, buffers);
  for (std::int64_t r = 0; r < own.count; ++r) buffers.rows[r] = first + std::min(own.first + r, last);
}

void fill(const data::Dataset& dataset, const Stream& stream, const BatchPlan& plan, std::int64_t step,
          const BatchBuffers& buffers) {
  assert(dataset.size() == plan.dataset && stream.order().examples() == plan.dataset);
  const std::int64_t epoch = step / plan.steps_per_epoch;
  const std::int64_t k = step % plan.steps_per_epoch;
  const std::int64_t examples = plan.examples_in(k);
  const IndexRange own = rows_of(plan, buffers);
  // Of the rows in memory, the first `count` are examples. The others are copies of the last example of the batch; if
  // no row in memory is this example, the first of them is read.
  const std::int64_t count = std::clamp<std::int64_t>(examples - own.first, 0, own.count);
  const std::int64_t read_rows = count == 0 ? 1 : count;
  const auto position = [&](std::int64_t r) { return k * plan.global + std::min(own.first + r, examples - 1); };
  const std::size_t input = buffers.inputs != nullptr ? buffers.input_bytes : 0;
  const std::size_t target = buffers.target_bytes;
  const auto read = [&](std::int64_t r) {
    const auto row = static_cast<std::size_t>(r);
    stream.read(dataset, epoch, position(r), buffers.inputs + row * input, buffers.targets + row * target);
  };
  if (dataset.is_costly()) {
    data::for_each_item(read_rows, read);
  } else {
    for (std::int64_t r = 0; r < read_rows; ++r) read(r);
  }
  if (stream.mixer().mixes()) {
    mix_examples(stream.mixer(), step, {std::min(own.first, examples - 1), read_rows}, examples, buffers,
                 dataset.is_costly(), [&](std::int64_t example, std::byte* to_input, std::byte* to_target) {
                   stream.read(dataset, epoch, k * plan.global + example, to_input, to_target);
                 });
  }
  dataset.check_intact();
  std::byte* to_input = buffers.inputs + static_cast<std::size_t>(read_rows) * input;
  std::byte* to_target = buffers.targets + static_cast<std::size_t>(read_rows) * target;
  for (std::int64_t r = read_rows; r < own.count; ++r, to_input += input, to_target += target) {
    if (input > 0) std::memcpy(to_input, to_input - input, input);
    if (target > 0) std::memcpy(to_target, to_target - target, target);
  }
  if (buffers.mask != nullptr) {
    std::fill(buffers.mask, buffers.mask + count, 1.0F);
    for (std::int64_t r = 0; dataset.is_weighted() && r < count; ++r) {
      buffers.mask[r] = dataset.weight(stream.order().index(epoch, position(r)));
    }
    std::fill(buffers.mask + count, buffers.mask + own.count, 0.0F);
  }
  for (std::int64_t r = 0; buffers.lengths != nullptr && r < own.count; ++r) {
    buffers.lengths[r] = dataset.length(stream.order().index(epoch, position(r)));
  }
  if (buffers.rows != nullptr) fill_rows(plan, step, buffers);
}

}  // namespace pmaptrain::input
