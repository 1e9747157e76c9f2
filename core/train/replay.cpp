#include "core/train/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/machine.h"
#include "core/base/text.h"
#include "core/data/subset.h"
#include "core/graph/text.h"
#include "core/input/open.h"
#include "core/ops/all.h"
#include "core/passes/widen.h"
#include "core/runtime/interpreter.h"
#include "core/setup/options.h"
#include "core/setup/plan.h"
#include "core/setup/programs.h"
#include "core/setup/values.h"

namespace pmaptrain::train {
namespace {

// A batch in host memory, with the layout of Module::batch.
class HostBatch {
 public:
  HostBatch(const data::Dataset& dataset, const BatchPlan& plan, input::Stream stream, std::int64_t step)
      : dataset_(dataset), plan_(plan), stream_(std::move(stream)), step_(step) {
    const auto rows = static_cast<std::size_t>(plan.rows());
    inputs_.resize(rows * dataset_.input().bytes());
    targets_.resize(rows * dataset_.target().bytes());
    mask_.resize(rows * sizeof(float));
    rows_.resize(rows * sizeof(std::int64_t));
    lengths_.resize(rows * sizeof(std::int32_t));
    input::fill(dataset_, stream_, plan, step,
                {inputs_.data(),
                 targets_.data(),
                 reinterpret_cast<float*>(mask_.data()),
                 reinterpret_cast<std::int64_t*>(rows_.data()),
                 dataset_.input().bytes(),
                 dataset_.target().bytes(),
                 {},
                 reinterpret_cast<std::int32_t*>(lengths_.data())});
  }

  // `count` rows of a batch input, from row `first` on.
  std::vector<std::byte> slice(std::string_view input, std::int64_t first, std::int64_t count) const {
    const std::vector<std::byte>& all = input == "inputs"    ? inputs_
                                        : input == "targets" ? targets_
                                        : input == "mask"    ? mask_
                                        : input == "lengths" ? lengths_
                                                             : rows_;
    const auto row = static_cast<std::ptrdiff_t>(all.size() / static_cast<std::size_t>(plan_.rows()));
    return {all.begin() + first * row, all.begin() + (first + count) * row};
  }

  // The number of the example in a row. Padding is a copy of the last example.
  std::int64_t example(std::int64_t row) const { return dataset_.index_in_source(index_of(row)); }
  // Where a text file has it; else empty.
  std::string line(std::int64_t row) const { return dataset_.line_of(index_of(row)); }

 private:
  std::int64_t index_of(std::int64_t row) const {
    const std::int64_t k = step_ % plan_.steps_per_epoch;
    const std::int64_t position = k * plan_.global + std::min(row, plan_.examples_in(k) - 1);
    return stream_.order().index(step_ / plan_.steps_per_epoch, position);
  }

  const data::Dataset& dataset_;
  const BatchPlan& plan_;
  input::Stream stream_;
  std::int64_t step_;  // from 0
  std::vector<std::byte> inputs_, targets_, mask_, rows_, lengths_;
};

std::vector<std::int64_t> nonfinite_elements(const Type& type, const std::vector<std::byte>& bytes) {
  std::vector<std::int64_t> found;
  if (!is_floating(type.dtype)) return found;
  dispatch_floating(type.dtype, [&]<class T>() {
    for (std::size_t i = 0; i * sizeof(T) < bytes.size(); ++i) {
      T value;
      std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
      if (!std::isfinite(value)) found.push_back(static_cast<std::int64_t>(i));
    }
  });
  return found;
}

// The first equation with a result that is not finite although all its operands are.
struct Origin {
  std::string equation, where;
  std::int64_t device = 0;
  std::vector<std::int64_t> rows;  // the rows of the device's batch with such elements, if the result has rows
};

class Search {
 public:
  // `rows`: the number of examples of a device, which is dimension 0 of values that have rows.
  Search(const Program& program, std::int64_t rows) : program_(program), rows_(rows) {}

  std::optional<Origin> run(std::map<std::string, PerDevice> inputs) {
    InterpretOptions options;
    options.check_replicated = false;  // a NaN is not equal to itself
    options.observer = [this](const Equation& equation, const auto& value) { look(equation, value); };
    interpret(program_, std::move(inputs), options);
    return std::move(found_);
  }

 private:
  void look(const Equation& equation, const std::function<const PerDevice&(Value)>& value) {
    if (found_ || equation.operands.empty()) return;  // a constant may be infinite on purpose
    for (const Value result : equation.results) {
      for (std::int64_t d = 0; d < program_.mesh.devices(); ++d) {
        const auto bad = nonfinite_elements(program_.type(result), value(result)[static_cast<std::size_t>(d)]);
        if (bad.empty() || !operands_are_finite(equation, value)) continue;
        found_ = describe(equation, result, d, bad);
        return;
      }
    }
  }

  // Checks all devices, since a collective reads the values of all.
  bool operands_are_finite(const Equation& equation, const std::function<const PerDevice&(Value)>& value) const {
    return std::all_of(equation.operands.begin(), equation.operands.end(), [&](Value operand) {
      const PerDevice& arrays = value(operand);
      return std::all_of(arrays.begin(), arrays.end(), [&](const std::vector<std::byte>& array) {
        return nonfinite_elements(program_.type(operand), array).empty();
      });
    });
  }

  Origin describe(const Equation& equation, Value result, std::int64_t device, const std::vector<std::int64_t>& bad) {
    Origin origin{to_text(program_, equation), equation.origin->scope, device, {}};
    while (!origin.equation.empty() && origin.equation.back() == '\n') origin.equation.pop_back();
    const Place& place = equation.origin->place;
    if (place.line > 0) {
      origin.where += fmt::format("{}{}:{}:{}", origin.where.empty() ? "" : ", ", place.file, place.line, place.column);
    }
    if (const std::string part = part_with(program_.type(result), bad.front()); !part.empty()) {
      origin.where += fmt::format("{}{}", origin.where.empty() ? "" : ", ", part);
    }
    const Shape& shape = program_.type(result).shape;
    if (!shape.empty() && shape.front() == rows_) {
      for (const std::int64_t element : bad) {
        const std::int64_t row = element / (numel(shape) / rows_);
        if (origin.rows.empty() || origin.rows.back() != row) origin.rows.push_back(row);
      }
    }
    return origin;
  }

  // If a value of this type is laid out like a bucket of parameters: the parameter with an element of the value. Empty
  // if there is no such bucket, or if there are several.
  std::string part_with(const Type& type, std::int64_t element) const {
    const Input* bucket = nullptr;
    for (const Input& input : program_.inputs) {
      if (input.group != Group::params || input.parts.empty() || numel(program_.type(input.value)) != numel(type))
        continue;
      if (!input.divided().empty()) return "";  // which part it is of, is not known
      if (std::exchange(bucket, &input) != nullptr) return "";
    }
    if (bucket == nullptr) return "";
    const std::vector<std::int64_t> offsets = offsets_of(bucket->parts, program_.mesh);
    for (std::size_t i = bucket->parts.size(); i-- > 0;) {
      const Part& part = bucket->parts[i];
      const std::int64_t within = element - offsets[i];
      if (within >= 0 && within < numel(part.layout.logical)) return fmt::format("element {} of {}", within, part.name);
    }
    return "";
  }

  const Program& program_;
  std::int64_t rows_;
  std::optional<Origin> found_;
};

bool is_small(const Program& program, const ReplayLimits& limits) {
  return setup::cost_of(program).flops <= limits.flops &&
         interpreter_peak_bytes(program) <= std::min(limits.bytes, available_memory() / 2);
}

// Names the examples in `rows` for a message: "example 7"; of a table "example 7 ('t.csv', line 9)". `rows` are counted
// from row `first` of the batch.
std::string examples_text(const HostBatch& batch, std::int64_t first, const std::vector<std::int64_t>& rows) {
  constexpr std::size_t most = 8;
  std::vector<std::string> names;
  for (const std::int64_t row : rows) {
    std::string name = std::to_string(batch.example(first + row));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  const std::string line = rows.empty() ? "" : batch.line(first + rows.front());
  const std::string at = line.empty() ? "" : fmt::format(" ({}{})", names.size() == 1 ? "" : "the first: ", line);
  if (names.size() == 1) return "example " + names.front() + at;
  if (names.size() <= most) return "examples " + join(names, ", ") + at;
  return "examples " + join({names.begin(), names.begin() + most}, ", ") +
         fmt::format(" and {} more", names.size() - most) + at;
}

std::string origin_text(const Origin& origin, const std::string& examples) {
  return fmt::format("replayed on device {}, the first result that is not finite is that of `{}`{}, for {}",
                     origin.device, origin.equation, origin.where.empty() ? "" : " (" + origin.where + ")", examples);
}

class Replay {
 public:
  Replay(const setup::Setup& setup, Module& module, std::int64_t step, std::int64_t member, const ReplayLimits& limits)
      : setup_(setup),
        module_(module),
        member_(member),
        limits_(limits),
        batch_(*setup.training_examples(), setup.batch,
               input::training_stream(setup.member_spec(member).data, setup.member_spec(member).seed,
                                      *setup.source.train, setup.batch.global),
               step - 1) {}

  Replayed run() {
    if (auto found = microbatches()) return {std::move(*found), is_of_few_};
    if (auto found = whole_step()) return {std::move(*found)};
    return {"replayed with the reference kernels, every result is finite: the kernels that trained give another"};
  }

 private:
  // Replays the forward and backward pass of each microbatch of each device by itself, and looks for the first equation
  // whose result is not finite.
  std::optional<std::string> microbatches() {
    const BatchPlan& plan = setup_.batch;
    const std::int64_t rows = plan.rows_per_device / plan.microbatches;
    const Program program = one_device_program(rows);
    if (!is_small(program, limits_)) return "a microbatch is too large to replay it with the reference kernels";
    std::map<std::string, PerDevice> inputs = parameters(program);
    const Clock::time_point begin = Clock::now();
    for (std::int64_t first = 0; first < plan.rows(); first += rows) {
      if (seconds_since(begin) > limits_.seconds) {
        return fmt::format("the first {} of {} microbatches of it were replayed, with finite results", first / rows,
                           plan.rows() / rows);
      }
      for (const Input& input : program.inputs) {
        if (input.group == Group::batch) inputs[input.name] = {batch_.slice(input.name, first, rows)};
      }
      std::optional<Origin> origin = Search(program, rows).run(inputs);
      if (!origin) continue;
      origin->device = setup_.step.mesh.device_at(first / plan.rows_per_device, setup_.step.data_axes);
      is_of_few_ = !origin->rows.empty() && 2 * std::ssize(origin->rows) <= rows;
      if (origin->rows.empty()) {
        for (std::int64_t row = 0; row < rows; ++row) origin->rows.push_back(row);
      }
      return origin_text(*origin, examples_text(batch_, first, origin->rows));
    }
    return std::nullopt;
  }

  // Of the whole model: a device may have parts of layers alone.
  Program one_device_program(std::int64_t rows) const {
    step::StepOptions options = setup_.step;
    std::vector<Axis> axes = options.mesh.axes();
    for (Axis& axis : axes) axis.size = 1;
    options.mesh = Mesh(std::move(axes));
    const model::Model& model = setup_.training_model();
    const spec::Spec& spec = setup_.member_spec(member_);
    const auto program_of = [&](const model::Model& whole) {
      return step::train_program(whole, options, setup_.optimizer(), {rows, 1}, all_ops(), step::Stage::grad);
    };
    if (spec.tensor() == nullptr) return program_of(model);
    return program_of(setup::undivided_model_of(spec, model.input, model.target, setup_.source.encoding));
  }

  // The values of the module that the program reads, from device 0 of the member.
  std::map<std::string, PerDevice> parameters(const Program& program) {
    std::map<std::string, PerDevice> values;
    for (const Input& input : program.inputs) {
      if (input.group != Group::batch)
        values[input.name] = {setup::bytes_here(module_, module_.input(input.name), {module_.own_device(), member_})};
    }
    return values;
  }

  // Replays the whole step, including the sums over devices and the update, and looks for the first equation whose
  // result is not finite.
  std::optional<std::string> whole_step() {
    const Program program = widen(setup::program_at(setup_, step::Stage::final));
    if (!is_small(program, limits_)) {
      return "the gradients of every microbatch are finite when they are replayed; the sum over devices and the update "
             "are too large to replay";
    }
    const std::int64_t rows = setup_.batch.rows_per_device;
    const std::vector<Variable> variables = variables_of(program);
    std::map<std::string, PerDevice> inputs;
    for (const Input& input : program.inputs) {
      const bool is_guard = setup_.roles.finite && variables[*setup_.roles.finite].name == input.name;
      for (std::int64_t d = 0; d < program.mesh.devices(); ++d) {
        if (input.group == Group::batch) {
          const std::int64_t position = program.mesh.position(d, program.type(input.value).varying);
          inputs[input.name].push_back(batch_.slice(input.name, position * rows, rows));
        } else {
          // Before a step that is not finite, the copies of all devices are the same.
          const Handle handle = module_.stored(module_.input(input.name));
          const std::int64_t from = module_.has(handle, d) ? d : module_.own_device();
          inputs[input.name].push_back(setup::bytes_here(module_, handle, {from, member_}));
        }
        if (is_guard) inputs[input.name].back().front() = std::byte{1};  // the value before the step
      }
    }
    const std::optional<Origin> origin = Search(program, rows).run(std::move(inputs));
    if (!origin) return std::nullopt;
    return origin_text(*origin, "the whole batch");
  }

  const setup::Setup& setup_;
  Module& module_;
  const std::int64_t member_;
  const ReplayLimits limits_;
  const HostBatch batch_;
  bool is_of_few_ = false;  // see Replayed
};

}  // namespace

Replayed replay(const setup::Setup& setup, Module& module, std::int64_t step, std::int64_t member,
                const ReplayLimits& limits) {
  return Replay(setup, module, step, member, limits).run();
}

bool has_weighted_example(const spec::Spec& spec, const data::Dataset& train, const BatchPlan& batch,
                          std::int64_t step) {
  std::optional<std::int64_t> ignored = spec.loss->ignored_label();
  const bool has_padding = train.has_lengths() && train.target().dtype == DType::i32 && !train.target().shape.empty();
  if (has_padding && !ignored) ignored = label_of_padding;
  const bool has_numbers = data::has_numbers_of_positions(train);
  if (!train.is_weighted() && !ignored && !has_numbers) return true;
  const input::Stream stream = input::training_stream(spec.data, spec.seed, train, batch.global);
  std::vector<std::byte> input(train.input().bytes());
  std::vector<std::int32_t> labels(ignored ? static_cast<std::size_t>(numel(train.target().shape)) : 0);
  const auto counts = [&](std::int64_t epoch, std::int64_t position) {
    if (has_numbers && train.length(stream.order().index(epoch, position)) == 0) return false;
    if (!ignored) return true;
    stream.read(train, epoch, position, input.data(), reinterpret_cast<std::byte*>(labels.data()));
    return std::any_of(labels.begin(), labels.end(), [&](std::int32_t label) { return label != *ignored; });
  };
  const std::int64_t epoch = (step - 1) / batch.steps_per_epoch, k = (step - 1) % batch.steps_per_epoch;
  for (std::int64_t row = 0; row < batch.examples_in(k); ++row) {
    const std::int64_t position = k * batch.global + row;
    if (train.weight(stream.order().index(epoch, position)) > 0 && counts(epoch, position)) return true;
  }
  return false;
}

}  // namespace pmaptrain::train
