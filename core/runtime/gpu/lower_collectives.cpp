// Collectives: within a GPU by folds and copies, between GPUs by all_gather, or by all_reduce where the order of a sum
// is left to the library.
#include <algorithm>
#include <set>

#include "core/analysis/row_cut.h"
#include "core/base/error.h"
#include "core/ops/all.h"
#include "core/ops/collective/collective.h"
#include "core/runtime/gpu/lowering.h"

namespace pmaptrain::gpu {
namespace {

Device::Fold fold_of(const Op& op) {
  if (op.as<ops::Pmax>() != nullptr) return Device::Fold::max;
  return op.as<ops::Pmin>() != nullptr ? Device::Fold::min : Device::Fold::sum;
}

// An array as [outer, size, inner]: the bytes of an element of `size`, and how many there are before it.
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

Lowering::Gathered Lowering::gather(const Equation& equation, int operand) {
  const AxisSet axes = equation.op.axes();
  const Buffer one = plan_.buffer(operand);
  const std::int64_t gpus = plan_.division.grid.group_size(axes);
  if (gpus == 1) return {operand, one, 1};
  Buffer all = one;
  all.pool = Pool::passing;
  all.slices *= gpus;
  plan_.buffers.push_back(all);
  const int gathered = static_cast<int>(plan_.buffers.size()) - 1;
  add(Collect{&equation, Collective::all_gather, axes, one.type.dtype, {gathered, 0}, {operand, 0}, one.bytes()});
  return {gathered, one, gpus};
}

std::vector<Place> Lowering::members_of(const Equation& equation, const Gathered& from,
                                        std::int64_t local_device) const {
  const AxisSet axes = equation.op.axes();
  const Division& division = plan_.division;
  std::vector<Place> places;
  std::set<std::int64_t> seen;
  for (const std::int64_t member : program_.mesh.group(division.device_of(plan_.gpu, local_device), axes)) {
    const int gpu = division.gpu_of(member);
    if (from.gpus == 1 && gpu != plan_.gpu) continue;  // the library adds what the others have
    const std::int64_t first = from.gpus == 1 ? 0 : division.grid.position(gpu, axes) * from.of.slices;
    const std::int64_t slice = first + plan_.slice_of(from.of, division.local_of(member));
    if (from.of.span > 0 && !seen.insert(slice).second) continue;  // an addend is the sum of several members
    places.push_back({from.buffer, static_cast<std::size_t>(slice) * from.of.slice_bytes()});
  }
  return places;
}

void Lowering::fold(const Equation& equation, const std::vector<Place>& from, const Type& type, Place to) {
  const std::size_t bytes = pmaptrain::bytes(type);
  const std::size_t pitch = from.size() > 1 ? from[1].offset - from[0].offset : bytes;
  bool evenly = true;
  for (std::size_t i = 1; i < from.size(); ++i) evenly = evenly && from[i].offset == from[i - 1].offset + pitch;
  Place first = from.front();
  if (!evenly) {
    Buffer aside{type, {}, 0, static_cast<std::int64_t>(from.size()), Pool::passing, 0};
    plan_.buffers.push_back(aside);
    first = {static_cast<int>(plan_.buffers.size()) - 1, 0};
    for (std::size_t i = 0; i < from.size(); ++i) {
      add(Copy{&equation, {first.buffer, i * bytes}, from[i], {bytes, 1, bytes, bytes}});
    }
  }
  add(Fold{&equation, fold_of(equation.op), to, first, type, static_cast<std::int64_t>(from.size()),
           evenly ? pitch : bytes});
}

int Lowering::reduce(const Equation& equation, Value operand, AxisSet axes) {
  const Type& of = type(operand);
  const bool between = plan_.division.grid.group_size(equation.op.axes()) > 1;
  const bool by_library = between && !options_.deterministic && fold_of(equation.op) == Device::Fold::sum;
  const Gathered from =
      by_library ? Gathered{buffer(operand), buffer_of(operand), 1} : gather(equation, buffer(operand));
  const int result = add_buffer(of, axes, Pool::passing);
  // Where there is one addend for each instance, the library takes it as it is.
  const auto members = [&](std::int64_t slice) {
    return members_of(equation, from, plan_.reader_of(plan_.buffer(result), slice));
  };
  const bool is_summed = by_library && from.of.slices == plan_.buffer(result).slices && members(0).size() == 1;
  const int sums = is_summed ? from.buffer : by_library ? add_buffer(of, axes, Pool::passing) : result;
  for (std::int64_t slice = 0; !is_summed && slice < plan_.buffer(result).slices; ++slice) {
    fold(equation, members(slice), of, place(sums, slice));
  }
  if (by_library) {
    add(Collect{&equation,
                Collective::all_reduce_sum,
                equation.op.axes(),
                of.dtype,
                {result, 0},
                {sums, 0},
                plan_.buffer(sums).bytes()});
  }
  return result;
}

void Lowering::lower_reduction(const Equation& equation) {
  for (std::size_t i = 0; i < equation.operands.size(); ++i) {
    const Value operand = equation.operands[i], result = equation.results[i];
    set(result, reduce(equation, operand, stored(type(result).varying)));
  }
}

std::int64_t Lowering::position_in_group(const Equation& equation, std::int64_t local_device) const {
  return program_.mesh.position(plan_.division.device_of(plan_.gpu, local_device), equation.op.axes());
}

void Lowering::lower_scatter(const Equation& equation) {
  const Value operand = equation.operands.front(), result = equation.results.front();
  const int sum = reduce(equation, operand, stored(type(operand).varying - equation.op.axes()));
  set(result, add_buffer(type(result), stored(type(result).varying), Pool::passing));
  const Around part = around(type(result), equation.op.as<ops::PsumScatter>()->dim);
  const std::size_t width = part.size * part.inner;
  const Buffer own = buffer_of(result);
  for (std::int64_t slice = 0; slice < own.slices; ++slice) {
    const std::int64_t device = plan_.reader_of(own, slice);
    Place from = place(sum, plan_.slice_of(plan_.buffer(sum), device));
    from.offset += static_cast<std::size_t>(position_in_group(equation, device)) * width;
    const auto members = static_cast<std::size_t>(program_.mesh.group_size(equation.op.axes()));
    add(Copy{&equation, place(buffer(result), slice), from, {width, part.outer, width, width * members}});
  }
}

Place Lowering::zeros(const Type& type) {
  zeros_->push_back({all_ops().constant(type.dtype, type.shape, 0.0), {}, {}, nullptr});
  const int added = add_buffer(type, {}, Pool::constant);
  plan_.constants.emplace_back(added, &zeros_->back());
  return {added, 0};
}

void Lowering::exchange(const Equation& equation, const std::vector<Place>& from, std::int64_t local_device, Place to) {
  const Type& whole = type(equation.operands.front());
  const std::size_t members = from.size();
  const auto own = static_cast<std::size_t>(position_in_group(equation, local_device));
  const auto gather_along = [&](std::int64_t dim) {
    const Around of = around(whole, dim);
    const std::size_t width = of.size * of.inner;
    for (std::size_t m = 0; m < members; ++m) {
      add(Copy{&equation, {to.buffer, to.offset + m * width}, from[m], {width, of.outer, width * members, width}});
    }
  };
  if (const auto* all = equation.op.as<ops::AllGather>()) return gather_along(all->dim);
  if (const auto* all = equation.op.as<ops::AllGatherInvariant>()) return gather_along(all->dim);
  if (const auto* permute = equation.op.as<ops::Ppermute>()) {
    const auto pair = std::find_if(permute->pairs.begin(), permute->pairs.end(),
                                   [&](const auto& known) { return known.second == static_cast<std::int64_t>(own); });
    const Place source = pair == permute->pairs.end() ? zeros(whole) : from[static_cast<std::size_t>(pair->first)];
    const std::size_t bytes = pmaptrain::bytes(whole);
    return add(Copy{&equation, to, source, {bytes, 1, bytes, bytes}});
  }
  // all_to_all: part `own` along `split` of each member, one after another along `concat`.
  const auto& across = *equation.op.as<ops::AllToAll>();
  const Around split = around(whole, across.split), concat = around(whole, across.concat);
  const std::size_t part = split.size / members;
  for (std::size_t m = 0; m < members; ++m) {
    if (across.split <= across.concat) {
      // A part is a range of bytes for each index before `split`; rows of it lie apart in the result.
      const std::size_t width = concat.size * concat.inner;
      const std::size_t width_of_part = across.split == across.concat ? part * split.inner : width;
      const std::size_t height = across.split == across.concat ? 1 : part * split.inner / width;
      for (std::size_t o = 0; o < split.outer; ++o) {
        const std::size_t source = (o * split.size + own * part) * split.inner;
        const std::size_t target = o * height * width_of_part * members + m * width_of_part;
        add(Copy{&equation,
                 {to.buffer, to.offset + target},
                 {from[m].buffer, from[m].offset + source},
                 {width_of_part, height, width_of_part * members, width_of_part}});
      }
    } else {
      // Rows of a part lie apart in the operand; in the result they follow one another.
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

void Lowering::lower_exchange(const Equation& equation) {
  for (std::size_t i = 0; i < equation.operands.size(); ++i) {
    const Gathered from = gather(equation, buffer(equation.operands[i]));
    const Value result = equation.results[i];
    set(result, add_buffer(type(result), stored(type(result).varying), Pool::passing));
    const Buffer own = buffer_of(result);
    for (std::int64_t slice = 0; slice < own.slices; ++slice) {
      const std::int64_t device = plan_.reader_of(own, slice);
      const std::vector<Place> members = members_of(equation, from, device);
      exchange(equation, members, device, place(buffer(result), slice));
    }
  }
}

}  // namespace pmaptrain::gpu
