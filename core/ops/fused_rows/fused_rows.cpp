#include "core/ops/fused_rows/fused_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <unordered_set>
#include <utility>

#include "core/ops/argmax/argmax.h"
#include "core/ops/broadcast/broadcast.h"
#include "core/ops/constant/constant.h"
#include "core/ops/elementwise/binary.h"
#include "core/ops/elementwise/unary.h"
#include "core/ops/fused/fused.h"
#include "core/ops/one_hot/one_hot.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/support/region.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {

bool reduces_rows(const Op& op, const Shape& operand, std::int64_t length) {
  std::vector<std::int64_t> dims;
  if (const auto* sum = op.as<ReduceSum>()) dims = sum->dims;
  if (const auto* max = op.as<ReduceMax>()) dims = max->dims;
  if (const auto* argmax = op.as<Argmax>()) dims = {argmax->dim};
  // Multiply the sizes from the last dimension on, ignoring dimensions of size 1.
  std::int64_t reduced = 1;
  std::size_t left = dims.size();
  for (std::size_t d = operand.size(); d-- > 0 && left > 0;) {
    if (dims[left - 1] == static_cast<std::int64_t>(d)) {
      reduced *= operand[d];
      --left;
    } else if (operand[d] != 1) {
      return false;
    }
  }
  return !dims.empty() && left == 0 && reduced == length;
}

bool fits_rows(const Equation& equation, std::span<const Type> operands, const Type& result, std::int64_t rows,
               std::int64_t length) {
  const Op& op = equation.op;
  const std::int64_t all = rows * length;
  if (op.as<ReduceSum>() != nullptr || op.as<ReduceMax>() != nullptr || op.as<Argmax>() != nullptr) {
    return numel(operands[0]) == all && reduces_rows(op, operands[0].shape, length);
  }
  if (const auto* one_hot = op.as<OneHot>()) return one_hot->depth == length && numel(operands[0]) == rows;
  const std::int64_t size = numel(result);
  if (size != all && size != rows && size != 1) return false;
  if (splat_of(op)) return true;
  if (const auto* broadcast = op.as<Broadcast>()) {
    const auto spread = spread_of(*broadcast);
    if (!spread) return false;
    const std::int64_t from = numel(operands[0]);
    if (from == 1 || from == size) return true;
    const bool repeats_rows = spread->size == rows && spread->inner == length;
    const bool repeats_vector = is_vector(from, rows, length) && spread->size == length && spread->inner == 1;
    return size == all && (repeats_rows || repeats_vector);
  }
  if (equation.op.rules().region || !(op.rules().elementwise || op.rules().view)) return false;
  if (op.rules().view && !equation.is_view()) return false;
  return std::all_of(operands.begin(), operands.end(),
                     [&](const Type& operand) { return numel(operand) == size || numel(operand) == 1; });
}

namespace {

// The number of rows of the first reduction; 0 if there is none.
std::int64_t rows_of(const Region& region, std::span<const Type> types, std::int64_t length) {
  for (const Equation& equation : region.equations) {
    if (equation.operands.size() != 1) continue;
    const Type& operand = types[static_cast<std::size_t>(equation.operands[0].id)];
    if (reduces_rows(equation.op, operand.shape, length)) return numel(operand) / length;
  }
  return 0;
}

// Finds what reads the differences of a row's elements from the largest of them.
class SoftmaxFinder {
 public:
  SoftmaxFinder(const Region& region, std::span<const Type> types, std::int64_t length)
      : region_(region), types_(types), length_(length), values_(region) {
    for (const Equation& equation : region.equations) {
      if (reduces(equation) || reads(equation, reduced_)) reduced_.insert(equation.results[0].id);
    }
  }

  std::optional<OnlineSoftmax> find(const Equation& largest) const {
    const DType dtype = type(largest.results[0]).dtype;
    if (largest.op.as<ReduceMax>() == nullptr || !reduces(largest) || (dtype != DType::f32 && dtype != DType::f64)) {
      return {};
    }
    OnlineSoftmax found{&largest, nullptr, nullptr, {}};
    // What needs the largest element alone, and what needs one of the sums.
    std::unordered_set<std::int32_t> late{largest.results[0].id}, later;
    for (const Equation& equation : region_.equations) {
      const Value result = equation.results[0];
      if (reads(equation, later)) {
        later.insert(result.id);
      } else if (reads(equation, late)) {
        if (reduces(equation) && !add(equation, found)) return {};
        (reduces(equation) ? later : late).insert(result.id);
      }
    }
    return found.sum != nullptr ? std::optional(found) : std::nullopt;
  }

 private:
  const Type& type(Value value) const { return types_[static_cast<std::size_t>(value.id)]; }
  bool reduces(const Equation& equation) const {
    return equation.operands.size() == 1 && reduces_rows(equation.op, type(equation.operands[0]).shape, length_);
  }
  static bool reads(const Equation& equation, const std::unordered_set<std::int32_t>& values) {
    return std::any_of(equation.operands.begin(), equation.operands.end(),
                       [&](Value operand) { return values.contains(operand.id); });
  }

  bool is_difference(Value value, const Equation& largest) const {
    const Equation* const difference = values_.made_by<Sub>(value);
    if (difference == nullptr) return false;
    const Equation* const repeated = values_.made_by<Broadcast>(difference->operands[1]);
    return repeated != nullptr && values_.source(repeated->operands[0]) == largest.results[0] &&
           values_.source(difference->operands[0]) == values_.source(largest.operands[0]);
  }

  // Whether a reduction is one of the sums, and the first of its kind.
  bool add(const Equation& equation, OnlineSoftmax& found) const {
    const Value operand = equation.operands[0];
    const bool keeps_type = type(equation.results[0]).dtype == type(operand).dtype;
    if (equation.op.as<ReduceSum>() == nullptr || !keeps_type) return false;
    const Equation* const exponential = values_.made_by<Exp>(operand);
    if (exponential != nullptr && is_difference(exponential->operands[0], *found.largest)) {
      return std::exchange(found.sum, &equation) == nullptr;
    }
    const Equation* const product = values_.made_by<Mul>(operand);
    if (product == nullptr || found.picked != nullptr) return false;
    for (const std::size_t i : {0U, 1U}) {
      const Equation* const one_hot = values_.made_by<OneHot>(product->operands[1 - i]);
      if (one_hot == nullptr || !is_difference(product->operands[i], *found.largest)) continue;
      found.picked = &equation;
      found.label = one_hot->operands[0];
      return !reduced_.contains(found.label.id);
    }
    return false;
  }

  const Region& region_;
  const std::span<const Type> types_;
  const std::int64_t length_;
  const RegionValues values_;
  std::unordered_set<std::int32_t> reduced_;  // reductions of rows, and what needs them
};

}  // namespace

std::optional<OnlineSoftmax> online_softmax(const Region& region, std::span<const Type> types, std::int64_t length) {
  const SoftmaxFinder finder(region, types, length);
  for (const Equation& equation : region.equations) {
    if (const std::optional<OnlineSoftmax> found = finder.find(equation)) return found;
  }
  return {};
}

std::vector<Type> FusedRows::infer(const InferContext& context) const {
  if (!std::equal(context.operands.begin(), context.operands.end(), context.region_params.begin(),
                  context.region_params.end())) {
    throw TypeError(8, "fused_rows: its region's parameters must have the types of its operands",
                    "a parameter has the type of the operand at its position, axes included");
  }
  if (context.region_results.empty() || context.operands.empty()) {
    throw TypeError(8, "fused_rows: its region needs at least one parameter and yields at least one value");
  }
  assert(context.region != nullptr);
  const std::int64_t rows = length < 2 ? 0 : rows_of(*context.region, context.types, length);
  if (rows == 0) {
    throw TypeError(8, fmt::format("fused_rows: nothing in its region reduces rows of {}", length),
                    "`length` is at least 2, and is what the trailing dimensions of a reduction have");
  }
  const auto has_size = [&](const Type& type) {
    return numel(type) == 1 || numel(type) == rows || numel(type) == rows * length;
  };
  for (const Type& type : context.region_params) {
    if (!has_size(type) && !is_vector(numel(type), rows, length)) {
      throw TypeError(8, fmt::format("fused_rows: reads {}, with {} rows of {}", describe(type), rows, length),
                      "an operand has an element for each element, one for each row, one for each column, or one");
    }
  }
  for (const Type& result : context.region_results) {
    const bool one = numel(result) == 1 && rows > 1;
    if (one || result.varying != context.operands.front().varying) {
      throw TypeError(8, fmt::format("fused_rows: yields {}, with {} rows of {}", describe(result), rows, length),
                      "a result has an element for each element or one for each row, and varies as the operands do");
    }
  }
  for (const Equation& equation : context.region->equations) {
    std::vector<Type> operands;
    for (const Value value : equation.operands) operands.push_back(context.types[static_cast<std::size_t>(value.id)]);
    const Type& result = context.types[static_cast<std::size_t>(equation.results.front().id)];
    if (fits_rows(equation, operands, result, rows, length)) continue;
    throw TypeError(
        8,
        fmt::format("fused_rows: {} gives {}, with {} rows of {}", equation.op.name(), describe(result), rows, length),
        "such a region holds what a fused one does, reductions of rows, and one_hot");
  }
  return {context.region_results.begin(), context.region_results.end()};
}

Cost FusedRows::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results);
}

RowRule FusedRows::row_rule(std::span<const Type> operands, std::span<const Type> results) const {
  const Shape& shape = results[0].shape;
  std::int64_t all = 1;
  for (const Type& type : operands) all = std::max(all, numel(type));
  const auto same_rows = [&](const Type& type) {
    return !type.shape.empty() && type.shape[0] == shape[0] && !is_vector(numel(type), all / length, length);
  };
  if (shape.empty() || !std::all_of(results.begin(), results.end(), same_rows)) return {};
  RowRule rule{RowRule::Kind::keeps};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (numel(operands[i]) != 1 && same_rows(operands[i])) continue;
    const bool is_whole = numel(operands[i]) == 1 || is_vector(numel(operands[i]), all / length, length);
    if (!is_whole || i >= 32) return {};
    rule.whole_operands |= 1U << i;
  }
  return rule;
}

void FusedRows::reference(const ReferenceCall& call) const {
  // The call may process a part of the rows. Values with rows have them in dimension 0.
  const auto declared = [&](Value value) -> const Type& { return call.types[static_cast<std::size_t>(value.id)]; };
  const Shape &whole = declared(call.region->results[0]).shape, &here = call.results[0].shape();
  run_region(call, [&](Value value) {
    Type type = declared(value);
    if (here != whole && numel(type) != 1) type.shape[0] = here[0];
    return type;
  });
}

}  // namespace pmaptrain::ops
