#include "core/ops/fused_columns/fused_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <unordered_set>

#include "core/ops/broadcast/broadcast.h"
#include "core/ops/constant/constant.h"
#include "core/ops/elementwise/binary.h"
#include "core/ops/elementwise/compare.h"
#include "core/ops/fused/fused.h"
#include "core/ops/reduce/groups.h"
#include "core/ops/support/region.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

// The matrix of the first sum of a region; null if it has none.
std::optional<Matrix> first_matrix(const Region& region, std::span<const Type> types) {
  for (const Equation& equation : region.equations) {
    const auto* const sum = equation.op.as<ReduceSum>();
    if (sum == nullptr) continue;
    return matrix_of(*sum, types[static_cast<std::size_t>(equation.operands[0].id)].shape);
  }
  return {};
}

// Finds the sums of a region whose elements need other sums.
class SumFinder {
 public:
  SumFinder(const Region& region, std::span<const Type> types, std::int64_t columns)
      : types_(types), columns_(columns), values_(region) {
    for (const Value param : region.params) params_.insert(param.id);
  }

  // Returns false if the sum needs others in a way that CentredSum does not describe.
  bool add(const Equation& equation) {
    const Value result = equation.results[0];
    const auto is_late = [&](Value operand) { return late_.contains(operand.id); };
    const bool any = std::any_of(equation.operands.begin(), equation.operands.end(), is_late);
    if (equation.op.as<ReduceSum>() == nullptr) {
      if (any || repeats_columns(equation)) late_.insert(result.id);
      return true;
    }
    sums_.push_back({&equation, any ? centred(equation) : std::nullopt});
    return !any || sums_.back().centred.has_value();
  }

  const std::vector<ColumnSum>& sums() const { return sums_; }

 private:
  const Type& type(Value value) const { return types_[static_cast<std::size_t>(value.id)]; }

  // Whether an equation repeats, for each row, values of columns that are no parameter.
  bool repeats_columns(const Equation& equation) const {
    return equation.op.as<Broadcast>() != nullptr && !params_.contains(equation.operands[0].id) &&
           numel(type(equation.operands[0])) == columns_ && numel(type(equation.results[0])) != columns_;
  }

  bool is_zero(Value value) const {
    const Equation* made = values_.behind_views(value);
    if (made != nullptr && made->op.as<Broadcast>() != nullptr) made = values_.behind_views(made->operands[0]);
    return made != nullptr && splat_of(made->op) == 0.0;
  }

  std::optional<CentredSum> centred(const Equation& sum) const {
    CentredSum found;
    Value squares = sum.operands[0];
    const Equation* const kept = values_.made_by<Select>(squares);
    if (kept != nullptr && is_zero(kept->operands[2])) {
      found.inside = kept->operands[0];
      squares = kept->operands[1];
    }
    const Equation* const square = values_.made_by<Mul>(squares);
    if (square == nullptr || square->operands[0] != square->operands[1]) return {};
    const Equation* const difference = values_.made_by<Sub>(square->operands[0]);
    if (difference == nullptr) return {};
    found.x = difference->operands[0];
    const Equation* const mean = values_.behind_views(difference->operands[1]);
    if (mean == nullptr || !repeats_columns(*mean)) return {};
    const std::optional<Spread> spread = spread_of(*mean->op.as<Broadcast>());
    if (!spread || spread->inner != 1 || spread->size != columns_) return {};
    found.mean = mean->operands[0];
    const auto is_element = [&](Value value) {
      return numel(type(value)) == numel(type(sum.operands[0])) && !late_.contains(value.id);
    };
    const DType dtype = type(found.x).dtype;
    const bool fits = is_element(found.x) && (!found.inside || is_element(*found.inside)) &&
                      (dtype == DType::f32 || dtype == DType::f64) && type(sum.results[0]).dtype == dtype;
    return fits ? std::optional(found) : std::nullopt;
  }

  std::span<const Type> types_;
  std::int64_t columns_;
  std::unordered_set<std::int32_t> params_, late_;  // late: elements that are computed from sums
  RegionValues values_;
  std::vector<ColumnSum> sums_;
};

}  // namespace

std::vector<ColumnSum> column_sums(const Region& region, std::span<const Type> types) {
  const std::optional<Matrix> matrix = first_matrix(region, types);
  if (!matrix) return {};
  SumFinder finder(region, types, matrix->columns);
  for (const Equation& equation : region.equations) {
    if (!finder.add(equation)) return {};
  }
  return finder.sums();
}

std::optional<Matrix> matrix_of(const ReduceSum& sum, const Shape& operand) {
  const ReduceGroups groups = reduce_groups(operand, sum.dims);
  if (groups.kept_sizes.rank > 0 || groups.reduced_sizes.rank > 0) return {};
  if (groups.rows < 2 || groups.columns < 2) return {};
  return Matrix{groups.rows, groups.columns};
}

Matrix matrix_of(const GpuRequest& request) {
  Matrix matrix = *first_matrix(*request.region, request.types);
  const std::int64_t elements = matrix.elements();
  for (std::size_t i = 0; i < request.operands.size(); ++i) {
    const Type& declared = request.types[static_cast<std::size_t>(request.region->params[i].id)];
    if (numel(declared) == elements) matrix.rows = numel(request.operands[i]) / matrix.columns;
  }
  return matrix;
}

std::vector<Type> FusedColumns::infer(const InferContext& context) const {
  if (!std::equal(context.operands.begin(), context.operands.end(), context.region_params.begin(),
                  context.region_params.end())) {
    throw TypeError(8, "fused_columns: its region's parameters must have the types of its operands",
                    "a parameter has the type of the operand at its position, axes included");
  }
  if (context.region_results.empty() || context.operands.empty()) {
    throw TypeError(8, "fused_columns: its region needs at least one parameter and yields at least one value");
  }
  assert(context.region != nullptr);
  const Region& body = *context.region;
  const auto type = [&](Value value) -> const Type& { return context.types[static_cast<std::size_t>(value.id)]; };
  const std::optional<Matrix> matrix = first_matrix(body, context.types);
  if (!matrix) {
    throw TypeError(8, "fused_columns: nothing in its region sums the rows of a matrix",
                    "it yields sums over all leading dimensions, of at least two rows and two columns");
  }
  std::vector<Value> sums;  // and what is computed from them
  for (const Equation& equation : body.equations) {
    const auto* const sum = equation.op.as<ReduceSum>();
    if (sum == nullptr) {
      const bool is_of_columns = numel(type(equation.results[0])) == matrix->columns;
      const bool repeats_columns = equation.op.as<Broadcast>() != nullptr &&
                                   numel(type(equation.operands[0])) == matrix->columns &&
                                   spread_of(*equation.op.as<Broadcast>()).has_value();
      if (repeats_columns && !is_of_columns && numel(type(equation.results[0])) == matrix->elements()) continue;
      expect_in_chain(name, equation, is_of_columns ? matrix->columns : matrix->elements(), body.params, context.types);
      if (!is_of_columns) continue;
      if (equation.op.as<Broadcast>() != nullptr && numel(type(equation.operands[0])) != matrix->columns &&
          numel(type(equation.operands[0])) != 1) {
        throw TypeError(8,
                        fmt::format("fused_columns: broadcast reads {}, in a chain over {} columns",
                                    describe(type(equation.operands[0])), matrix->columns),
                        "what is computed for a column has an operand for each column, or one for all");
      }
      sums.push_back(equation.results[0]);
      continue;
    }
    const Type& operand = type(equation.operands[0]);
    if (matrix_of(*sum, operand.shape) != matrix) {
      throw TypeError(8,
                      fmt::format("fused_columns: sums {}, beside a sum over {} rows of {}", describe(operand),
                                  matrix->rows, matrix->columns),
                      "all sums are over equally many rows of equally many columns");
    }
    sums.push_back(equation.results[0]);
  }
  for (std::size_t i = 0; i < body.results.size(); ++i) {
    const Type& result = context.region_results[i];
    const bool is_sum = std::find(sums.begin(), sums.end(), body.results[i]) != sums.end();
    if (!is_sum || result.varying != context.operands.front().varying) {
      throw TypeError(8, fmt::format("fused_columns: yields {}, which is no sum", describe(result)),
                      "each result is a sum of the region or computed from sums, and varies as the operands do");
    }
  }
  if (column_sums(body, context.types).empty()) {
    throw TypeError(
        8, "fused_columns: computes elements of a sum from other sums",
        "only the squares of differences from a mean, (x - mean)², or zeros in their place, may be added up");
  }
  const bool has_matrix = std::any_of(context.operands.begin(), context.operands.end(),
                                      [&](const Type& operand) { return numel(operand) == matrix->elements(); });
  if (!has_matrix) {
    throw TypeError(8, fmt::format("fused_columns: no operand has {} rows of {}", matrix->rows, matrix->columns),
                    "at least one operand has an element for each element that is summed");
  }
  return {context.region_results.begin(), context.region_results.end()};
}

Cost FusedColumns::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results);
}

void FusedColumns::reference(const ReferenceCall& call) const {
  const auto declared = [&](Value value) -> const Type& { return call.types[static_cast<std::size_t>(value.id)]; };
  const std::int64_t elements = first_matrix(*call.region, call.types)->elements();
  std::int64_t devices = 1;  // of whose rows the call is
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    if (numel(declared(call.region->params[i])) == elements) devices = call.operands[i].size() / elements;
  }
  run_region(call, [&](Value value) {
    Type type = declared(value);
    if (numel(type) == elements) type.shape[0] *= devices;
    return type;
  });
}

}  // namespace pmaptrain::ops
