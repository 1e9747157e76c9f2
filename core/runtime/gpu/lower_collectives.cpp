// Lowers all_gather, all_to_all and ppermute, which move values without arithmetic, to copies within a GPU. If the
// operands are on several GPUs, an all_gather collects them first. Lowers all_slice to a copy of each device's own
// part.
#include <algorithm>

#include "core/base/error.h"
#include "core/ops/all.h"
#include "core/runtime/gpu/lowering.h"

namespace pmaptrain::gpu {
namespace {

// Whether the collective is a permutation that sends no value to some device, whose result is then zero.
bool leaves_zeros(const CollectiveRule& rule, const Mesh& mesh) {
  return rule.kind == Communication::permute && std::ssize(rule.pairs) < mesh.group_size(rule.axes);
}

// A row-major array seen as [outer, size, inner] around one of its dimensions: `size` is the size of that dimension,
// `outer` the product of the sizes before it, and `inner` the product of the sizes after it, in bytes.
struct Around {
  std::size_t outer = 1, size = 1, inner = 1;
};

Around around(const Type& type, std::int64_t dim) {
  Around found;
  found.inner = size_of(type.dtype);
  for (std::size_t i = 0; i < type.shape.size(); ++i) {
    const auto size = static_cast<std::size_t>(type.shape[i]);
    const auto at = static_cast<std::size_t>(dim);
    (i < at ? found.outer : i == at ? found.size : found.inner) *= size;
  }
  return found;
}

}  // namespace

std::int64_t Lowering::position_in_group(const Equation& equation, std::int64_t local_device) const {
  return program_.mesh.position(plan_.division.device_of(plan_.gpu, local_device), equation.op.axes());
}

void Lowering::lower_all_slice(const Equation& equation) {
  // There is nothing to take if the sum has given each GPU its part.
  if (buffers_[static_cast<std::size_t>(equation.results.front().id)] >= 0) return;
  copy_own_parts(equation, buffer(equation.operands.front()));
}

void Lowering::copy_own_parts(const Equation& equation, int whole) {
  const Value result = equation.results.front();
  set_buffer(result, add_buffer(type(result), slice_axes(type(result).varying), Pool::transient));
  const Around part = around(type(result), equation.op.collective().dim);
  const std::size_t width = part.size * part.inner;
  const Buffer own = buffer_of(result);
  for (std::int64_t slice = 0; slice < own.slices; ++slice) {
    const std::int64_t device = plan_.first_reader_of(own, slice);
    Location from = place(whole, plan_.slice_of(plan_.buffer(whole), device));
    from.offset += static_cast<std::size_t>(position_in_group(equation, device)) * width;
    const auto members = static_cast<std::size_t>(program_.mesh.group_size(equation.op.axes()));
    add(Copy{&equation, place(buffer(result), slice), from, {width, part.outer, width, width * members}});
  }
}

Lowering::GatheredSlices Lowering::gather_from_gpus(const Equation& equation, int operand) {
  const AxisSet axes = equation.op.axes();
  const Buffer one = plan_.buffer(operand);
  const std::int64_t gpus = plan_.division.grid.group_size(axes);
  if (gpus == 1) return {operand, one, 0};
  const std::size_t pitch = pitch_of(one.bytes());
  const Type type{one.type.dtype, {static_cast<std::int64_t>(pitch / size_of(one.type.dtype))}, {}};
  const int gathered = add_buffer(type, {}, Pool::transient);
  buffer_at(gathered).slices = gpus;
  add(Collect{&equation, Collective::all_gather, axes, type.dtype, {gathered, 0}, {operand, 0}, pitch});
  return {gathered, one, pitch};
}

std::vector<Location> Lowering::slices_of_group(const Equation& equation, const GatheredSlices& from,
                                                std::int64_t local_device) const {
  const Division& division = plan_.division;
  std::vector<Location> places;
  for (const std::int64_t member :
       program_.mesh.group(division.device_of(plan_.gpu, local_device), equation.op.axes())) {
    const auto gpu = static_cast<std::size_t>(division.grid.position(division.gpu_of(member), equation.op.axes()));
    const auto slice = static_cast<std::size_t>(plan_.slice_of(from.of, division.local_of(member)));
    places.push_back({from.buffer, gpu * from.pitch + slice * from.of.slice_bytes()});
  }
  return places;
}

Location Lowering::add_constant(const Equation& equation) {
  added_->push_back(equation);
  const int buffer = add_buffer(equation.op.infer({program_.mesh, {}}).front(), {}, Pool::constant);
  plan_.constants.emplace_back(buffer, &added_->back());
  return {buffer, 0};
}

Location Lowering::zeros_of(const Type& type) {
  for (const auto& [buffer, equation] : plan_.constants) {
    const bool is_added = equation->results.empty();
    const Type& known = plan_.buffer(buffer).type;
    if (is_added && known.dtype == type.dtype && known.shape == type.shape) return {buffer, 0};
  }
  return add_constant({all_ops().constant(type.dtype, type.shape, 0.0), {}, {}, nullptr, {}});
}

void Lowering::permute(const Equation& equation, const CollectiveRule& rule, const std::vector<Location>& from,
                       std::size_t own, Location to) {
  const Type& whole = type(equation.operands.front());
  const auto pair = std::find_if(rule.pairs.begin(), rule.pairs.end(),
                                 [&](const auto& known) { return known.second == static_cast<std::int64_t>(own); });
  const Location source = pair == rule.pairs.end() ? zeros_of(whole) : from[static_cast<std::size_t>(pair->first)];
  const std::size_t bytes = pmaptrain::bytes(whole);
  add(Copy{&equation, to, source, {bytes, 1, bytes, bytes}});
}

void Lowering::concatenate(const Equation& equation, const CollectiveRule& rule, const std::vector<Location>& from,
                           std::size_t /*own*/, Location to) {
  const Around of = around(type(equation.operands.front()), rule.dim);
  const std::size_t members = from.size(), width = of.size * of.inner;
  for (std::size_t m = 0; m < members; ++m) {
    add(Copy{&equation, {to.buffer, to.offset + m * width}, from[m], {width, of.outer, width * members, width}});
  }
}

void Lowering::all_to_all(const Equation& equation, const CollectiveRule& rule, const std::vector<Location>& from,
                          std::size_t own, Location to) {
  const Type& whole = type(equation.operands.front());
  const std::size_t members = from.size();
  const Around split = around(whole, rule.split), concat = around(whole, rule.concat);
  const std::size_t part = split.size / members;
  for (std::size_t m = 0; m < members; ++m) {
    if (rule.split <= rule.concat) {
      // For each index of the dimensions before `split`, the part for this device is one range of the operand. Its rows
      // are copied to separate places of the result.
      const std::size_t width = concat.size * concat.inner;
      const std::size_t width_of_part = rule.split == rule.concat ? part * split.inner : width;
      const std::size_t height = rule.split == rule.concat ? 1 : part * split.inner / width;
      for (std::size_t o = 0; o < split.outer; ++o) {
        const std::size_t source = (o * split.size + own * part) * split.inner;
        const std::size_t target = o * height * width_of_part * members + m * width_of_part;
        add(Copy{&equation,
                 {to.buffer, to.offset + target},
                 {from[m].buffer, from[m].offset + source},
                 {width_of_part, height, width_of_part * members, width_of_part}});
      }
    } else {
      // The rows of the part for this device lie apart in the operand, and follow one another in the result.
      const std::size_t width = part * split.inner;
      const std::size_t height = concat.size * concat.inner / (split.size * split.inner);
      for (std::size_t o = 0; o < concat.outer; ++o) {
        const std::size_t source = o * height * split.size * split.inner + own * width;
        const std::size_t target = (o * members + m) * height * width;
        add(Copy{&equation,
                 {to.buffer, to.offset + target},
                 {from[m].buffer, from[m].offset + source},
                 {width, height, width, split.size * split.inner}});
      }
    }
  }
}

void Lowering::lower_exchange(const Equation& equation, Exchange exchange) {
  const CollectiveRule rule = equation.op.collective();
  for (std::size_t i = 0; i < equation.operands.size(); ++i) {
    const GatheredSlices from = gather_from_gpus(equation, buffer(equation.operands[i]));
    const Value result = equation.results[i];
    set_buffer(result, add_buffer(type(result), slice_axes(type(result).varying), Pool::transient));
    // Zeros are added on all GPUs, even if all devices of this one get a value, so that all GPUs need equal memory.
    if (leaves_zeros(rule, program_.mesh)) zeros_of(type(equation.operands[i]));
    const Buffer own = buffer_of(result);
    for (std::int64_t slice = 0; slice < own.slices; ++slice) {
      const std::int64_t device = plan_.first_reader_of(own, slice);
      const std::vector<Location> members = slices_of_group(equation, from, device);
      const auto position = static_cast<std::size_t>(position_in_group(equation, device));
      (this->*exchange)(equation, rule, members, position, place(buffer(result), slice));
    }
  }
}

}  // namespace pmaptrain::gpu
