// Lowering of collectives: where values are added up, and which slices are exchanged.
#include <algorithm>
#include <cassert>

#include "core/analysis/row_cut.h"
#include "core/ops/all.h"
#include "core/runtime/cpu/lowering.h"

namespace pmaptrain::cpu {

void Lowering::lower_exchange(const Equation& equation) {
  assert(loop_ == nullptr);  // such loops are unrolled
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
  if (!is_scattered(equation.op)) return &equation;
  out_.sums->push_back({all_ops().psum(equation.op.axes()), equation.operands, equation.operands, origin_});
  return &out_.sums->back();
}

void Lowering::lower_reduction(const Equation& equation) {
  assert(loop_ == nullptr);
  const Equation* const start = start_of(equation);
  std::vector<Half> halves;
  int published = first_;
  operand_number_.clear();
  summed_.clear();
  for (std::size_t i = 0; i < equation.operands.size(); ++i) {
    const Value operand = equation.operands[i];
    Half& half = halves.emplace_back(Half{{&equation, -1, -1, equation.results[i].id}});
    if (info(operand).kind == RowKind::partial && is_sum(equation.op)) {
      half.of_rows = true;
      operand_number_.try_emplace(operand.id, i);
      published = std::max(published, info(operand).stage + 1);
      continue;
    }
    const int root = source(operand, -1);
    ValueInfo from = out_.info(root);
    if (starts_on_instances(equation, from, type(operand))) {
      half.combine.accumulator = add_accumulator(type(operand), from.cut);
      out_.add(ReducePartial{start, root, half.combine.accumulator}, from, from.stage, 0);
      published = std::max(published, from.stage + 1);
    } else {
      half.combine.operand = root;
      out_.exchanged.insert(root);
      published = std::max(published, readable(from, ValueInfo()));
    }
  }
  if (!is_scattered(equation.op)) sum_rows_in_parts(equation, halves, published);
  for (std::size_t i = 0; i < halves.size(); ++i) {
    if (halves[i].of_rows) halves[i].combine.accumulator = add_accumulator(type(equation.operands[i]), rows_cut_);
  }
  sum_rows_of_pieces(halves);
  for (std::size_t i = 0; i < halves.size(); ++i) {
    if (!halves[i].in_parts) finish_reduction(equation, i, halves[i], published);
  }
}

void Lowering::finish_reduction(const Equation& equation, std::size_t i, const Half& half, int published) {
  const Value operand = equation.operands[i], result = equation.results[i];
  if (half.of_rows && !summed_.contains(operand.id)) {
    const ValueInfo from = info(operand);
    out_.add(ReducePartial{start_of(equation), from.root, half.combine.accumulator}, from, from.stage, 0);
  }
  // A scattered part is not aligned with chunks.
  const bool whole = is_scattered(equation.op);
  const ValueInfo how = whole ? by_instance(type(result), published) : by_size(type(result), published);
  define(result, how);
  add(half.combine, how, published, whole ? 0 : numel(type(result)));
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
  for (Kernel& kernel : sums) lower_parts(psum, halves, published, std::move(kernel));
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

void Lowering::lower_parts(const Equation& psum, std::vector<Half>& halves, int published, Kernel kernel) {
  const Value summed = kernel.equation->results.front();
  const std::size_t number = operand_number_.at(summed.id);
  halves[number].in_parts = true;
  halves[number].of_rows = false;
  const Value result = psum.results[number];
  Parts parts{kernel.equation, std::move(kernel.operands), result.id, parts_of(type(summed).shape.front())};
  ValueInfo how;
  how.of = Class::chunked;
  how.by_task = true;
  how.stage = published;
  define(result, how);
  if (options_.private_copies) {
    parts.result = out_.add_like(result.id);
    const ValueInfo copy = by_instance(type(result), published + 1);
    define(result, copy);
    out_.add(Copy{parts.result, result.id}, copy, copy.stage, 0);
  }
  out_.add(std::move(parts), how, published, 0);
}

}  // namespace pmaptrain::cpu
