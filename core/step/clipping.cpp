#include "core/step/clipping.h"

#include "core/model/arithmetic.h"
#include "core/step/optimizer.h"

namespace pmaptrain::train {

Norms norms_of(Builder& b, std::span<const Value> values, DType dtype) {
  std::optional<Value> squares, largest;
  for (const Value value : values) {
    const std::vector<Value> norms = b.emit_all(ops::Norms{}, std::vector{value});
    squares = squares ? model::add(b, *squares, norms[0]) : norms[0];
    largest = largest ? b.emit(ops::Max{}, {*largest, norms[1]}) : norms[1];
  }
  if (!squares) return {b.constant(DType::f64, 0.0), b.constant(dtype, 0.0)};
  return {b.emit(ops::Sqrt{}, {*squares}), *largest};
}

std::vector<model::Number> clipping_numbers(const spec::OptimizerSpec& optimizer, DType dtype) {
  std::vector<model::Number> all;
  if (optimizer.clip) all = {{"clip", *optimizer.clip, dtype}, {"clip/negative", -*optimizer.clip, dtype}};
  if (optimizer.clip_by_global_norm) all.push_back({"clip_by_global_norm", *optimizer.clip_by_global_norm, DType::f64});
  return all;
}

Clipping emit_clipping(Builder& b, const spec::OptimizerSpec& optimizer, const model::Numbers& numbers,
                       std::span<const Value> sums, Value divisor, const Norms& norms) {
  const Builder::Scope scope(b, {"clip", optimizer.place});
  const DType dtype = b.type(divisor).dtype;
  Clipping clipping{norms.largest, {}};
  if (optimizer.clip) {
    clipping.largest = b.emit(ops::Min{}, {norms.largest, numbers["clip"]});
  }
  if (optimizer.clip_by_global_norm) {
    Value norm = norms.global;
    if (optimizer.clip) norm = norms_of(b, clipped_means(b, optimizer, numbers, sums, divisor, clipping), dtype).global;
    const Value most = numbers["clip_by_global_norm"];
    const Value small = b.emit(ops::Lt{}, {norm, most});
    const Value factor = model::select(b, small, b.constant(DType::f64, 1.0), model::div(b, most, norm));
    clipping.factor = model::cast(b, factor, dtype);
    clipping.largest = model::mul(b, clipping.largest, *clipping.factor);
  }
  return clipping;
}

std::vector<Value> clipped_means(Builder& b, const spec::OptimizerSpec& optimizer, const model::Numbers& numbers,
                                 std::span<const Value> sums, Value divisor, const Clipping& clipping) {
  const Builder::Scope scope(b, {rule_name(optimizer), optimizer.place});
  std::vector<Value> means;
  means.reserve(sums.size());
  for (const Value sum : sums) {
    Value mean = model::div(b, sum, divisor);
    if (optimizer.clip) mean = b.emit(ops::Clamp{}, {numbers["clip/negative"], mean, numbers["clip"]});
    means.push_back(clipping.factor ? model::mul(b, mean, *clipping.factor) : mean);
  }
  return means;
}

}  // namespace pmaptrain::train
