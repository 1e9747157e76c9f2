#include <algorithm>
#include <map>
#include <utility>

#include "core/analysis/row_cut.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/graph/bucket.h"
#include "core/ops/fused_columns/fused_columns.h"
#include "core/ops/fused_rows/fused_rows.h"
#include "core/ops/reduce/reduce.h"
#include "core/runtime/gpu/lowering.h"

namespace pmaptrain::gpu {
namespace {

// How many neighbouring instances of a value that varies over `axes` one block contains.
std::int64_t neighbours_in(const Mesh& block, const Mesh& mesh, AxisSet axes) {
  std::int64_t count = 1;
  for (int axis = static_cast<int>(mesh.axes().size()) - 1; axis >= 0; --axis) {
    if (!axes.contains(axis)) continue;
    count *= block.size(axis);
    if (block.size(axis) < mesh.size(axis)) break;
  }
  return count;
}

}  // namespace

Lowering::Lowering(std::shared_ptr<const Program> program, const Division& division, int gpu,
                   const PlanOptions& options, SharedPools& shared)
    : program_(*program),
      options_(options),
      shared_(shared),
      facts_(analyse(program_)),
      rows_(find_row_facts(program_, facts_)),
      storage_(storage_of(program_, options.private_copies)),
      blocks_(options.deterministic ? blocks_of(program_.mesh, options.blocks) : division),
      buffers_(program_.types.size(), -1),
      added_(std::make_shared<std::deque<Equation>>()) {
  plan_.added_equations = added_;
  plan_.program = std::move(program);
  plan_.division = division;
  plan_.gpu = gpu;
  plan_.tf32 = options.tf32;
  plan_.deterministic = options.deterministic;
  commands_ = &plan_.commands;
}

Plan Lowering::run() {
  find_packed_sums();
  find_bounds();
  parts_read_ = parts_read(program_, facts_);
  for (const Input& input : program_.inputs) lower_input(input);
  for (const Equation& equation : program_.equations) lower_equation(equation);
  AwaitedBuffers awaited;
  for (const Equation& equation : program_.equations) {
    if (equation.op.rules().communication == Communication::none || equation.operands.empty()) continue;
    const auto found = awaited_.find(equation.operands.front().id);
    if (found != awaited_.end()) awaited[&equation] = found->second;
  }
  schedule_collectives(plan_, awaited);
  lower_replacements(storage_.updates, nullptr);
  lower_outputs();
  for (const Input& input : program_.inputs) plan_.inputs.push_back(buffer(input.value));
  place_buffers(plan_);
  return std::move(plan_);
}

void Lowering::find_bounds() {
  bounds_ = axes_that_bound_sums(program_, facts_, rows_, packed_sums_);
  if (!options_.deterministic) return;
  std::map<std::uint32_t, AxisSet> of_pieces;  // by AxisSet::bits()
  for (std::size_t i = 0; i < bounds_.size(); ++i) {
    const AxisSet varying = program_.types[i].varying;
    const auto [found, is_new] = of_pieces.try_emplace(varying.bits());
    if (is_new) found->second = axes_that_bound_pieces(program_, facts_, rows_, varying);
    bounds_[i] = found->second;
  }
}

int Lowering::add_buffer(const Type& type, AxisSet axes, Pool pool, std::int64_t span) {
  Buffer buffer{type, axes, span, plan_.division.local.group_size(axes), pool};
  if (span > 0) buffer.slices /= span;
  if (pool == Pool::constant) {
    buffer.offset = plan_.constant_bytes;
    plan_.constant_bytes = sum_of(plan_.constant_bytes, round_up(buffer.bytes(), alignment));
  }
  plan_.buffers.push_back(buffer);
  return static_cast<int>(plan_.buffers.size()) - 1;
}

Location Lowering::place(int buffer, std::int64_t slice) const {
  return {buffer, static_cast<std::size_t>(slice) * plan_.buffer(buffer).slice_bytes()};
}

void Lowering::copy(int from, int to, const Equation* equation) {
  const Buffer source = plan_.buffer(from), target = plan_.buffer(to);
  const bool alike = source.axes == target.axes && source.span == target.span;
  const std::size_t bytes = alike ? target.bytes() : target.slice_bytes();
  for (std::int64_t slice = 0; slice < (alike ? 1 : target.slices); ++slice) {
    const std::int64_t read = alike ? 0 : plan_.slice_of(source, plan_.first_reader_of(target, slice));
    add(Copy{equation, place(to, slice), place(from, read), {bytes, 1, bytes, bytes}});
  }
}

int Lowering::copy_aside(int buffer, const Equation* equation) {
  const Buffer like = plan_.buffer(buffer);
  const int aside = add_buffer(like.type, like.axes, Pool::transient, like.span);
  copy(buffer, aside, equation);
  return aside;
}

void Lowering::copy_replacements(const std::vector<Replacement>& copies, const Equation* equation) {
  std::vector<std::pair<int, int>> last;
  for (const Replacement& each : copies) {
    const int source = buffer(each.from);
    last.emplace_back(each.how == Replacement::How::copy_twice ? copy_aside(source, equation) : source,
                      buffer(each.to));
  }
  for (const auto& [from, to] : last) copy(from, to, equation);
}

void Lowering::lower_input(const Input& input) {
  if (input.group == Group::batch) {
    const int added = add_buffer(type(input.value), type(input.value).varying, Pool::batch);
    buffer_at(added).offset = plan_.batch_bytes;
    plan_.batch_bytes = sum_of(plan_.batch_bytes, round_up(buffer_at(added).bytes(), alignment));
    return set_buffer(input.value, added);
  }
  // What members share has no private copies, because no step writes it.
  const bool is_data = is_of_all_members(input.group);
  const AxisSet axes = is_data ? type(input.value).varying : slice_axes(type(input.value).varying);
  const int added = add_buffer(type(input.value), axes, is_data ? Pool::data : Pool::persistent);
  std::size_t& pool = is_data ? shared_.data : shared_.persistent;
  const auto [known, is_new] = shared_.inputs.try_emplace(input.name, axes, pool);
  if (is_new) pool = sum_of(pool, round_up(buffer_at(added).bytes(), alignment));
  buffer_at(added).offset = known->second.second;
  set_buffer(input.value, added);
}

void Lowering::lower_equation(const Equation& equation) {
  if (equation.op.rules().view) {
    if (equation.operands.size() > 1) awaited_[equation.results.front().id] = buffer(equation.operands[1]);
    return set_buffer(equation.results.front(), buffer(equation.operands.front()));
  }
  if (equation.op.rules().unpacks && !storage_.is_root(equation.results.front())) return lower_unpack(equation);
  if (equation.op.rules().packs && packed_sums_.contains(equation.results.front().id)) return;
  switch (equation.op.rules().communication) {
    case Communication::none: break;
    case Communication::coordinate: {
      const Value result = equation.results.front();
      set_buffer(result, add_buffer(type(result), slice_axes(type(result).varying), Pool::constant));
      plan_.axis_indices.emplace_back(buffer(result), &equation);
      return;
    }
    case Communication::sum:
    case Communication::max:
    case Communication::min:
    case Communication::scatter: return lower_reduction(equation);
    case Communication::gather: return lower_exchange(equation, &Lowering::concatenate);
    case Communication::slice: return lower_all_slice(equation);
    case Communication::all_to_all: return lower_exchange(equation, &Lowering::all_to_all);
    case Communication::permute: return lower_exchange(equation, &Lowering::permute);
  }
  if (equation.op.is_loop()) return lower_loop(equation);
  if (!equation.operands.empty()) return lower_local(equation);
  // An equation without operands is computed once, when the program is loaded.
  for (Value result : equation.results) {
    set_buffer(result, add_buffer(type(result), {}, Pool::constant));
    plan_.constants.emplace_back(buffer(result), &equation);
  }
}

// The results of `unpack` are ranges of the buffer of its operand, a bucket.
void Lowering::lower_unpack(const Equation& equation) {
  const int bucket = buffer(equation.operands.front());
  const Buffer of = plan_.buffer(bucket);
  const std::int64_t begin = storage_.home(equation.operands.front()).begin;
  for (const Value result : equation.results) {
    const int array = add_buffer(type(result), of.axes, Pool::transient, of.span);
    buffer_at(array).container = bucket;
    buffer_at(array).offset = static_cast<std::size_t>(storage_.home(result).begin - begin) * size_of(of.type.dtype);
    set_buffer(result, array);
  }
}

AxisSet Lowering::result_axes(Value value) const {
  const bool is_on_rows = rows_.of(value) == RowKind::rows || rows_.of(value) == RowKind::partial;
  return is_on_rows ? type(value).varying : slice_axes(type(value).varying);
}

std::int64_t Lowering::span_of(Value value) const {
  if (rows_.of(value) != RowKind::partial) return 0;
  const AxisSet axes = type(value).varying, bound = bounds_[static_cast<std::size_t>(value.id)];
  return std::min(contiguous_instances(program_.mesh, axes, bound), neighbours_in(blocks_.local, program_.mesh, axes));
}

int Lowering::with_contiguous_rows(const Equation& equation, int operand) {
  const Buffer from = plan_.buffer(operand);
  const Value sum = equation.results.front();
  if (span_of(sum) == 1 || from.axes == type(sum).varying) return operand;
  const int side_by_side = add_buffer(from.type, type(sum).varying, Pool::transient);
  copy(operand, side_by_side, &equation);
  return side_by_side;
}

bool Lowering::is_sum_over_rows(const Equation& equation) const {
  if (rows_.of(equation.results.front()) != RowKind::partial) return false;
  const auto sums = [](const Equation& inner) { return inner.op.as<ops::ReduceSum>() != nullptr; };
  if (!equation.regions.empty() && equation.op.as<ops::FusedColumns>() == nullptr &&
      (equation.op.as<ops::FusedRows>() == nullptr ||
       !std::all_of(equation.regions[0].equations.begin(), equation.regions[0].equations.end(), sums))) {
    return false;
  }
  return std::none_of(equation.operands.begin(), equation.operands.end(),
                      [&](Value operand) { return rows_.of(operand) == RowKind::partial; });
}

void Lowering::lower_local(const Equation& equation) {
  const bool is_partial = rows_.of(equation.results.front()) == RowKind::partial;
  const bool sums = is_sum_over_rows(equation);
  const AxisSet axes = result_axes(equation.results.front());
  for (Value result : equation.results)
    set_buffer(result, add_buffer(type(result), axes, Pool::transient, span_of(result)));
  // All results have the same slices as the first one. (This is a copy because add_buffer() may invalidate references.)
  const Buffer first = buffer_of(equation.results.front());

  // A launch that sums over rows treats the rows of some neighbouring instances as the rows of one operand.
  const std::int64_t instances = sums ? first.span : 1;
  Launch launch;
  launch.equation = &equation;
  std::vector<int> operands;
  std::vector<std::int64_t> steps;  // by operand: how many of its slices a slice of the result takes
  for (std::size_t i = 0; i < equation.operands.size(); ++i) {
    const Value operand = equation.operands[i];
    const bool has_rows = sums && row_access_of(program_, facts_, rows_, equation, i) != RowAccess::whole;
    operands.push_back(has_rows ? with_contiguous_rows(equation, buffer(operand)) : buffer(operand));
    steps.push_back(has_rows ? instances : 1);
    Type taken = type(operand);
    if (has_rows) taken.shape.front() *= instances;
    launch.operand_types.push_back(std::move(taken));
  }
  for (Value result : equation.results) launch.result_types.push_back(type(result));

  const auto slices_at = [&](std::int64_t slice) {
    std::vector<std::int64_t> found;
    found.reserve(operands.size());
    for (const int operand : operands) {
      found.push_back(plan_.slice_of(plan_.buffer(operand), plan_.first_reader_of(first, slice)));
    }
    return found;
  };
  // The results of these ops do not depend on how many devices one launch covers. Other launches do not cross the
  // boundary of a block; see blocks_of().
  const bool any_shape = equation.op.rules().elementwise || equation.op.as<ops::FusedRows>() != nullptr ||
                         equation.op.as<ops::FusedColumns>() != nullptr || equation.op.as<ops::ReduceSum>() != nullptr;
  const AxisSet varying = type(equation.results.front()).varying;
  const std::int64_t most = any_shape    ? first.slices
                            : is_partial ? 1
                                         : neighbours_in(blocks_.local, program_.mesh, varying);
  for (std::int64_t slice = 0; slice < first.slices;) {
    // Extend the launch by one slice of the result at a time. It may grow while each operand's next slice is either
    // always the one after the previous slice (the operand is stacked), or always the same slice.
    const std::vector<std::int64_t> begin = slices_at(slice);
    std::vector<bool> stacked(begin.size(), true);
    std::int64_t count = 1;
    for (; slice + count < first.slices && count < most; ++count) {
      const std::vector<std::int64_t> next = slices_at(slice + count);
      bool goes_on = true;
      for (std::size_t i = 0; i < begin.size(); ++i) {
        if (count == 1) stacked[i] = next[i] == begin[i] + steps[i];
        goes_on = goes_on && next[i] == begin[i] + (stacked[i] ? count * steps[i] : 0);
      }
      if (!goes_on) break;
    }
    if (count == 1) stacked.assign(begin.size(), true);
    Launch run = launch;
    run.logical_devices = count;
    run.stacked = std::move(stacked);
    for (std::size_t i = 0; i < begin.size(); ++i) run.operands.push_back(place(operands[i], begin[i]));
    for (Value result : equation.results) run.results.push_back(place(buffer(result), slice));
    add(std::move(run));
    slice += count;
  }
}

void Lowering::lower_loop(const Equation& equation) {
  const LoopRule rule = equation.op.loop();
  const Region& region = equation.regions.front();
  const auto consts = static_cast<std::size_t>(rule.consts), carries = static_cast<std::size_t>(rule.carries);
  Loop loop;
  loop.equation = &equation;
  loop.iterations = rule.iterations;
  for (std::size_t i = 0; i < region.params.size(); ++i) {
    const Value operand = equation.operands[i], param = region.params[i];
    if (i < consts) {
      set_buffer(param, buffer(operand));
    } else if (i < consts + carries) {
      const Value result = equation.results[i - consts];
      set_buffer(param, add_buffer(type(result), result_axes(result), Pool::transient, span_of(result)));
      set_buffer(result, buffer(param));
      copy(buffer(operand), buffer(param), &equation);
    } else {
      // The loop iterates over this operand: `part` is a buffer for the part of each slice that an iteration reads.
      const Buffer from = buffer_of(operand);
      const int part = add_buffer(type(param), from.axes, Pool::transient, from.span);
      set_buffer(param, part);
      const std::size_t bytes = buffer_at(part).slice_bytes();
      loop.slices.push_back({Copy{&equation,
                                  {part, 0},
                                  {buffer(operand), 0},
                                  {bytes, static_cast<std::size_t>(from.slices), bytes, from.slice_bytes()}},
                             bytes});
    }
  }
  std::vector<Command>* const outer = std::exchange(commands_, &loop.body);
  for (const Equation& inner : region.equations) lower_equation(inner);
  lower_replacements(storage_.yields.at(&equation), &equation);
  commands_ = outer;
  add(std::move(loop));
}

}  // namespace pmaptrain::gpu
