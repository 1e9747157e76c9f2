#include "app/collectives.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/machine.h"
#include "core/base/saturate.h"
#include "core/base/text.h"
#include "core/ops/all.h"
#include "core/ops/list.h"
#include "core/setup/programs.h"
#include "core/setup/values.h"

namespace pmaptrain::app {
namespace {

using Form = Demonstration::Shape;

Value mean(Builder& b, Value x, AxisSet axes) {
  const Value sum = b.emit(ops::Psum{axes}, {x});
  const Value count = b.constant(b.type(x).dtype, static_cast<double>(b.mesh().group_size(axes)));
  return b.emit(ops::Div{}, {sum, count});
}

// Each member sends to the next one, the last to the first.
Value ring(Builder& b, Value x, AxisSet axes) {
  ops::Ppermute shift{axes, {}};
  const std::int64_t members = b.mesh().group_size(axes);
  for (std::int64_t i = 0; i < members; ++i) shift.pairs.emplace_back(i, (i + 1) % members);
  return b.emit(shift, {x});
}

template <class Op>
Value of_axes(Builder& b, Value x, AxisSet axes) {
  return b.emit(Op{axes}, {x});
}

Value index(Builder& b, Value, AxisSet axes) { return b.emit(ops::AxisIndex{axes}, {}); }

constexpr Demonstration all[] = {
    {"psum", "the sum over the group", true, true, false, Form::scalar, of_axes<ops::Psum>},
    {"pmax", "the maximum over the group", true, true, false, Form::scalar, of_axes<ops::Pmax>},
    {"pmin", "the minimum over the group", true, true, false, Form::scalar, of_axes<ops::Pmin>},
    {"all_gather", "the values of the group, concatenated", true, true, false, Form::vector, of_axes<ops::AllGather>},
    {"all_gather_invariant", "as all_gather, with a replicated result", true, true, false, Form::vector,
     of_axes<ops::AllGatherInvariant>},
    {"all_slice", "each member keeps its own part of a replicated value: nothing is sent", true, true, true,
     Form::parts, of_axes<ops::AllSlice>},
    {"psum_scatter", "the sum over the group, split between its members", true, true, false, Form::parts,
     of_axes<ops::PsumScatter>},
    {"all_to_all", "member i receives part i of every member", false, true, false, Form::parts, of_axes<ops::AllToAll>},
    {"ppermute", "here each member sends to the next one, the last one to the first", false, true, false, Form::scalar,
     ring},
    {"axis_index", "the member's coordinate along the axis", false, false, false, Form::scalar, index},
    {"pmean", "the mean over the group: a psum and a division", true, true, false, Form::scalar, mean},
    {"pvary", "a replicated value counts as one of each member: nothing is sent; its derivative is a psum", true, true,
     true, Form::scalar, of_axes<ops::Pvary>},
};

// `what` alone, of an operand of this shape that varies over the whole mesh, or where it is replicated over the other
// axes.
std::shared_ptr<const Program> program_of(const Demonstration& what, const Mesh& mesh, AxisSet axes, Shape shape) {
  auto program = std::make_shared<Program>();
  program->mesh = mesh;
  Builder b(*program, all_ops());
  Value x;
  if (what.operand)
    x = b.input(Group::batch, "x",
                Type{DType::f32, std::move(shape), what.replicated ? mesh.all() - axes : mesh.all()});
  b.output("result", what.emit(b, x, axes));
  return program;
}

std::unique_ptr<Module> load(const Backend& backend, std::shared_ptr<const Program> program, std::size_t beside) {
  const std::unique_ptr<Planned> planned = backend.plan({{{"collective", std::move(program)}}});
  demand_memory(sum_of(planned->needs().total(), beside), "this",
                "use a smaller mesh, smaller --bytes, or one --op over one --axis");
  return std::move(*planned).load();
}

std::span<const std::byte> bytes_of(const std::vector<float>& values) { return std::as_bytes(std::span(values)); }

// 10, or the next power of ten that is no less than `members`.
std::int64_t stride_of(std::int64_t members) {
  std::int64_t stride = 10;
  while (stride < members) stride *= 10;
  return stride;
}

double seconds_of(Module& module, std::int64_t steps) {
  const Clock::time_point begin = Clock::now();
  module.wait(module.submit(0, 0, steps));
  return seconds_since(begin);
}

// The median time of a step, from groups of steps that are long compared with a clock reading.
double median_seconds(Module& module) {
  constexpr double worth_a_clock_reading = 0.002;
  constexpr std::size_t groups = 9;
  std::int64_t steps = 1;
  module.wait(module.submit(0, 0));
  while (seconds_of(module, steps) < worth_a_clock_reading) steps *= 2;
  std::vector<double> seconds;
  for (std::size_t i = 0; i < groups; ++i) {
    seconds.push_back(seconds_of(module, steps) / static_cast<double>(steps));
  }
  std::nth_element(seconds.begin(), seconds.begin() + groups / 2, seconds.end());
  return seconds[groups / 2];
}

}  // namespace

std::span<const Demonstration> demonstrations() { return all; }

Shown show(const Demonstration& what, const Mesh& mesh, AxisSet axes, const Backend& backend) {
  const std::int64_t members = mesh.group_size(axes);
  const std::int64_t numbers = what.shape == Form::parts ? members : 1;
  const std::shared_ptr<const Program> program =
      program_of(what, mesh, axes, what.shape == Form::scalar ? Shape{} : Shape{numbers});
  Shown shown;
  shown.result_type = program->type(program->outputs.front().value);
  if (what.operand) shown.input_type = program->type(program->inputs.front().value);
  const std::size_t copies =
      bytes(shown.result_type) + (shown.input_type ? bytes(*shown.input_type) : 0) + 2 * sizeof(std::vector<std::byte>);
  const std::unique_ptr<Module> module = load(backend, program, copies * static_cast<std::size_t>(mesh.devices()));
  shown.workers = module->workers();
  std::byte* to = module->batch(0, 0, "x").data();
  for (std::int64_t device = 0; what.operand && device < mesh.devices(); ++device) {
    // Of a group that has one value in common, it is that of its first device.
    const std::int64_t owner = what.replicated ? mesh.group(device, axes).front() : device;
    std::vector<float> values;
    for (std::int64_t i = 0; i < numbers; ++i) {
      values.push_back(static_cast<float>(what.shape == Form::parts ? stride_of(members) * owner + i : owner));
    }
    const std::span<const std::byte> bytes = bytes_of(values);
    if (owner == device) to = std::copy(bytes.begin(), bytes.end(), to);
    shown.inputs.emplace_back(bytes.begin(), bytes.end());
  }
  module->submit(0, 0);
  const Handle result = module->output(0, "result");
  for (std::int64_t device = 0; device < mesh.devices(); ++device) {
    shown.results.push_back(setup::bytes_of(*module, result, device));
  }
  return shown;
}

std::optional<Timing> measure(const Demonstration& what, const Mesh& mesh, AxisSet axes, const Backend& backend,
                              std::int64_t bytes) {
  constexpr std::int64_t element = sizeof(float);
  const std::int64_t unit = what.shape == Form::parts ? element * mesh.group_size(axes) : element;
  if (!what.operand || what.replicated || bytes < unit || bytes % unit != 0) return std::nullopt;
  const std::shared_ptr<const Program> program = program_of(what, mesh, axes, Shape{bytes / element});
  const std::unique_ptr<Module> module = load(backend, program, 0);
  const std::span<std::byte> operand = module->batch(0, 0, "x");
  std::fill_n(reinterpret_cast<float*>(operand.data()), operand.size() / sizeof(float), 1.0F);
  double sent = 0;
  for (const auto& [axis, wire] : setup::cost_of(*program).wire_bytes) sent += wire;
  Timing timing{bytes, median_seconds(*module), 0};
  timing.bytes_per_second = sent * static_cast<double>(mesh.devices()) / timing.seconds;
  return timing;
}

}  // namespace pmaptrain::app
