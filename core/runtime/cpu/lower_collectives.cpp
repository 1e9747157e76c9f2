// Lowering of collectives: where values are added up, and which slices are exchanged.
#include <algorithm>
#include <cassert>

#include "core/analysis/row_cut.h"
#include "core/graph/bucket.h"
#include "core/ops/all.h"
#include "core/runtime/cpu/lowering.h"

namespace pmaptrain::cpu {

void Lowering::lower_exchange(const Equation& equation) {
  assert(loop_ == nullptr);  // the bodies of such loops are stages
  for (std::size_t i = 0; i < equation.operands.size(); ++i) {
    const Value result = equation.results[i];
    const int operand = source(equation.operands[i], -1);
    const ValueInfo how = by_instance(type(result), readable(out_.info(operand), ValueInfo()));
    out_.exchanged.insert(operand);
    define(result, how);
    add(Exchange{&equation, i, operand, result.id}, how, how.stage);
  }
}

bool Lowering::starts_on_instances(const Equation& equation, const ValueInfo& operand, const Type& of) const {
  return operand.of == Class::varying && !operand.complete && operand.kind == RowKind::whole &&
         operand.axes == of.varying && of.varying == all() && (of.varying - equation.op.axes()).empty();
}

const Equation* Lowering::start_of(const Equation& equation) {
  if (!is_reduce_scatter(equation.op)) return &equation;
  out_.sums->push_back({all_ops().psum(equation.op.axes()), equation.operands, equation.operands, origin_});
  return &out_.sums->back();
}

std::vector<Lowering::Half> Lowering::halves_of(const Equation& equation) {
  std::vector<Half> halves;
  for (std::size_t i = 0; i < equation.operands.size(); ++i) {
    const Value operand = equation.operands[i], result = equation.results[i];
    const auto packed = packed_sums_.find(operand.id);
    if (packed == packed_sums_.end()) {
      halves.push_back({operand, result, result, {&equation, -1, -1, result.id}});
      continue;
    }
    define(result, by_size(type(result), first_));
    const std::vector<Value>& arrays = packed->second.pack->operands;
    const std::vector<std::int64_t> offsets = offsets_in_bucket(types_of(program_, arrays));
    for (std::size_t k = 0; k < arrays.size(); ++k) {
      const Value sum{out_.add_range(result.id, offsets[k], Shape(type(arrays[k]).shape))};
      // If the bucket has one instance, each sum is a range of it. Otherwise each sum has memory of its own, and
      // pack_instances() copies the sums into the bucket.
      const bool is_range = stored(type(result)).empty();
      if (!is_range) define(sum, by_size(type(sum), first_));
      halves.push_back({arrays[k], sum, is_range ? result : sum, {&equation, -1, -1, sum.id}});
    }
  }
  return halves;
}

void Lowering::pack_instances(const Equation& equation, std::span<const Half> halves) {
  for (std::size_t i = 0, next = 0; i < equation.operands.size(); ++i) {
    const auto packed = packed_sums_.find(equation.operands[i].id);
    const std::size_t count = packed == packed_sums_.end() ? 1 : packed->second.pack->operands.size();
    const std::span<const Half> own = halves.subspan(std::exchange(next, next + count), count);
    const Value result = equation.results[i];
    if (packed == packed_sums_.end() || own.front().bucket == result) continue;
    Kernel kernel;
    kernel.equation = packed->second.pack;
    kernel.results = {result.id};
    ValueInfo how = by_instance(type(result), 0);
    how.stage = first_;
    for (const Half& half : own) {
      kernel.operands.push_back(half.result.id);
      how.stage = std::max(how.stage, readable(info(half.result), how));
    }
    define(result, how);
    add(std::move(kernel), how, how.stage, 0);
  }
}

void Lowering::lower_reduction(const Equation& equation) {
  assert(loop_ == nullptr);
  const Equation* const start = start_of(equation);
  std::vector<Half> halves = halves_of(equation);
  int published = first_;
  operand_number_.clear();
  summed_.clear();
  for (std::size_t i = 0; i < halves.size(); ++i) {
    Half& half = halves[i];
    if (info(half.operand).kind == RowKind::partial && is_sum_over_devices(equation.op)) {
      half.of_rows = true;
      operand_number_.try_emplace(half.operand.id, i);
      published = std::max(published, info(half.operand).stage + 1);
      continue;
    }
    const int root = source(half.operand, -1);
    ValueInfo from = out_.info(root);
    if (starts_on_instances(equation, from, type(half.operand))) {
      half.combine.accumulator = add_accumulator(type(half.operand), from.cut);
      out_.add(ReducePartial{start, root, half.combine.accumulator}, from, from.stage, 0);
      published = std::max(published, from.stage + 1);
    } else {
      half.combine.operand = root;
      out_.exchanged.insert(root);
      published = std::max(published, readable(from, ValueInfo()));
    }
  }
  define_results(equation, halves, published);
  if (!is_reduce_scatter(equation.op)) sum_rows_in_parts(equation, halves, published);
  for (Half& half : halves) {
    if (half.of_rows) half.combine.accumulator = add_accumulator(type(half.operand), rows_cut_);
  }
  sum_rows_of_pieces(halves);
  for (const Half& half : halves) {
    if (!half.in_parts) finish_reduction(equation, half, published);
  }
  pack_instances(equation, halves);
}

void Lowering::define_results(const Equation& equation, std::span<const Half> halves, int published) {
  // A scattered part is not aligned with chunks.
  const auto stored_alone = [&](Value result) {
    define(result,
           is_reduce_scatter(equation.op) ? by_instance(type(result), published) : by_size(type(result), published));
  };
  for (const Value result : equation.results) stored_alone(result);
  for (std::size_t i = 0; i < halves.size(); ++i) {
    const Half& half = halves[i];
    if (half.result == half.bucket) {
      stored_alone(half.result);
      continue;
    }
    const ValueInfo& bucket = info(half.bucket);
    ValueInfo& range = out_.info(half.result.id);
    range.of = bucket.of;
    range.stage = published;
    const bool is_last = i + 1 == halves.size() || halves[i + 1].bucket != half.bucket;
    const std::int64_t end = range.begin + numel(type(half.result));
    const std::int64_t next = is_last ? numel(type(half.bucket)) : out_.info(halves[i + 1].result.id).begin;
    if (next == end) continue;
    const ValueInfo like = bucket;  // adding a value may move the others
    const int gap = out_.add_range(half.bucket.id, end, {next - end});
    add(Copy{zeros(type(half.bucket).dtype), gap}, like, published, numel(type(half.bucket)));
  }
}

int Lowering::zeros(DType dtype) {
  const auto [known, is_new] = zeros_.try_emplace(dtype, -1);
  if (!is_new) return known->second;
  out_.sums->push_back({all_ops().constant(dtype, {bucket_unit}, 0.0), {}, {}, origin_});
  known->second = static_cast<int>(out_.values.size());
  ValueInfo how;
  how.of = Class::constant;
  how.root = known->second;
  out_.values.push_back(how);
  out_.copied_types.push_back({dtype, {bucket_unit}, {}});
  out_.constants.emplace_back(known->second, &out_.sums->back());
  return known->second;
}

void Lowering::finish_reduction(const Equation& equation, const Half& half, int published) {
  if (half.of_rows && !summed_.contains(half.operand.id)) {
    const ValueInfo from = info(half.operand);
    out_.add(ReducePartial{start_of(equation), from.root, half.combine.accumulator}, from, from.stage, 0);
  }
  const ValueInfo how = info(half.bucket);
  add(half.combine, how, published, is_reduce_scatter(equation.op) ? 0 : numel(type(half.bucket)));
}

bool Lowering::sums_rows_for(const Instruction& instruction) const {
  const Kernel* const kernel = instruction.as<Kernel>();
  if (kernel == nullptr || kernel->operand_rows.empty()) return false;
  const Equation& equation = *kernel->equation;
  const RowRule rule = equation.op.rows(types_of(program_, equation.operands), types_of(program_, equation.results));
  return rule.kind == RowRule::Kind::sums &&
         std::all_of(equation.results.begin(), equation.results.end(), [&](Value result) {
           return out_.rows.of(result) == RowKind::partial && operand_number_.contains(result.id) &&
                  facts(result).uses == 1;
         });
}

template <class F>
void Lowering::for_each_list_on_rows(F&& f) {
  for (Stage& stage : out_.stages) {
    for (PieceList& list : stage.pieces) {
      if (list.cut == rows_cut_) f(list.instructions);
    }
  }
}

void Lowering::sum_rows_of_pieces(const std::vector<Half>& halves) {
  for_each_list_on_rows([&](std::vector<Instruction>& instructions) {
    for (Instruction& instruction : instructions) {
      if (!sums_rows_for(instruction)) continue;
      Kernel& kernel = *instruction.as<Kernel>();
      RowSums sums{kernel.equation, std::move(kernel.operands), {}};
      for (Value result : sums.equation->results) {
        sums.accumulators.push_back(halves[operand_number_.at(result.id)].combine.accumulator);
        summed_.insert(result.id);
      }
      instruction = std::move(sums);
    }
  });
}

void Lowering::sum_rows_in_parts(const Equation& psum, std::vector<Half>& halves, int published) {
  if (rows_cut_ < 0 || !(out_.rows.axes - psum.op.axes()).empty()) return;
  std::vector<Kernel> sums;
  for_each_list_on_rows([&](std::vector<Instruction>& instructions) {
    std::erase_if(instructions, [&](Instruction& instruction) {
      if (!sums_rows_for(instruction) || !is_better_in_parts(*instruction.as<Kernel>()->equation)) return false;
      sums.push_back(std::move(*instruction.as<Kernel>()));
      return true;
    });
  });
  for (Kernel& kernel : sums) lower_parts(halves, published, std::move(kernel));
}

bool Lowering::is_better_in_parts(const Equation& equation) const {
  const std::vector<Type> operands = types_of(program_, equation.operands);
  const Type& sum = type(equation.results.front());
  if (!equation.op.rows(operands, std::span(&sum, 1)).columns_make_rows) return false;
  if (numel(sum) <= small_elements || sum.shape.front() < least_parts * part_alignment) return false;
  double rows = 0;
  for (const Type& operand : operands) rows += static_cast<double>(bytes(operand));
  const auto pieces = static_cast<double>(out_.cuts[static_cast<std::size_t>(rows_cut_)].pieces.size());
  return pieces * static_cast<double>(bytes(sum)) >
         static_cast<double>(program_.mesh.group_size(out_.rows.axes)) * rows;
}

void Lowering::lower_parts(std::vector<Half>& halves, int published, Kernel kernel) {
  const Value summed = kernel.equation->results.front();
  Half& half = halves[operand_number_.at(summed.id)];
  half.in_parts = true;
  half.of_rows = false;
  Parts parts{kernel.equation, std::move(kernel.operands), half.result.id, parts_of(type(summed).shape.front())};
  ValueInfo how;
  how.of = Class::chunked;
  how.by_task = true;
  how.stage = published;
  if (options_.private_copies) {
    parts.result = out_.add_like(half.result.id);
    define(Value{parts.result}, how);
    const ValueInfo copy = by_instance(type(half.result), published + 1);
    define(half.result, copy);
    out_.add(Copy{parts.result, half.result.id}, copy, copy.stage, 0);
  } else {
    info(half.bucket).by_task = true;
    out_.info(half.result.id).by_task = true;
  }
  out_.add(std::move(parts), how, published, 0);
}

}  // namespace pmaptrain::cpu
