// Targets in normalised units, and outputs in the units of the targets: data.normalize_targets.
#include <algorithm>
#include <numeric>
#include <variant>
#include <vector>

#include "core/model/arithmetic.h"
#include "core/model/model.h"

namespace pmaptrain::model {
namespace {

// One number for each number of a target, for values [B, target...] or outputs of f64.
Value for_each_target(Builder& b, Value like, const std::vector<double>& numbers) {
  if (numbers.size() == 1) return scalar_like(b, like, numbers.front());
  const Shape shape = b.type(like).shape;
  const Shape of_one(shape.begin() + 1, shape.end());
  std::vector<double> each;  // of quantiles the number of their target
  const std::size_t times = static_cast<std::size_t>(numel(of_one)) / numbers.size();
  for (const double number : numbers) each.insert(each.end(), times, number);
  const Value vector = b.emit(ops::Reshape{of_one}, {vector_constant(b, DType::f64, each)});
  std::vector<std::int64_t> dims(of_one.size());
  std::iota(dims.begin(), dims.end(), 1);
  return b.emit(ops::Broadcast{shape, dims}, {vector});
}

// `logarithmic` for the numbers of a target that have a logarithm, and `values` for the others.
Value where_log(Builder& b, const Model& model, Value logarithmic, Value values) {
  if (std::find(model.log_targets.begin(), model.log_targets.end(), false) == model.log_targets.end())
    return logarithmic;
  const std::vector<double> flags(model.log_targets.begin(), model.log_targets.end());
  const Value flag = for_each_target(b, values, flags);
  return select(b, b.emit(ops::Gt{}, {flag, scalar_like(b, flag, 0.0)}), logarithmic, values);
}

}  // namespace

Value normalised_targets(Builder& b, const Model& model, Value targets) {
  if (!model.target_statistics) return targets;
  Value exact = cast(b, targets, DType::f64);
  if (!model.log_targets.empty()) exact = where_log(b, model, b.emit(ops::Log1p{}, {exact}), exact);
  const Value distance = sub(b, exact, for_each_target(b, exact, model.target_statistics->mean));
  return cast(b, div(b, distance, for_each_target(b, exact, model.target_statistics->std)), model.dtype);
}

Value in_units_of_targets(Builder& b, const Model& model, Value output) {
  if (std::holds_alternative<spec::Poisson>(model.loss)) return b.emit(ops::Exp{}, {output});
  if (!model.target_statistics) return output;
  const Value exact = cast(b, output, DType::f64);
  const Value distance = mul(b, exact, for_each_target(b, exact, model.target_statistics->std));
  Value values = add(b, distance, for_each_target(b, exact, model.target_statistics->mean));
  if (!model.log_targets.empty()) {
    // Finite as f32, and at least 0.
    const Value least = scalar_like(b, values, 0.0), most = scalar_like(b, values, largest_log_target);
    const Value bounded = b.emit(ops::Min{}, {b.emit(ops::Max{}, {values, least}), most});
    values = where_log(b, model, b.emit(ops::Expm1{}, {bounded}), values);
  }
  return cast(b, values, dtype_of_values(model));
}

}  // namespace pmaptrain::model
