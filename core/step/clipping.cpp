#include "core/step/clipping.h"

#include <map>
#include <utility>

#include "core/equations/arithmetic.h"
#include "core/graph/bucket.h"
#include "core/ops/collective/collective.h"
#include "core/ops/constant/constant.h"
#include "core/ops/norms/norms.h"
#include "core/ops/segment_sum/segment_sum.h"
#include "core/step/optimizer.h"
#include "core/step/table_rows.h"

namespace pmaptrain::step {

GradientBuckets gradient_buckets(const model::Model& model, const Mesh& mesh, std::span<const std::size_t> trained,
                                 std::span<const model::Bucket> buckets, std::vector<Value> values) {
  std::map<std::size_t, std::size_t> position;  // of a parameter among the trained ones
  for (std::size_t i = 0; i < trained.size(); ++i) position[trained[i]] = i;
  GradientBuckets found{std::move(values), {}, {}};
  for (const model::Bucket& bucket : buckets) {
    found.divided.push_back(bucket.divided);
    std::vector<Shape> shapes;
    for (const std::size_t i : bucket.parameters) shapes.push_back(gradient_shape(model, mesh, bucket, i));
    const std::vector<std::int64_t> offsets = offsets_in_bucket(shapes);
    std::vector<double>& rows = found.row_ranges.emplace_back(2 * trained.size(), 0.0);
    for (std::size_t j = 0; j < bucket.parameters.size(); ++j) {
      const std::size_t at = 2 * position.at(bucket.parameters[j]);
      rows[at] = static_cast<double>(offsets[j] / bucket_unit);
      rows[at + 1] = static_cast<double>(offsets[j + 1] / bucket_unit);
    }
  }
  return found;
}

GradientBuckets with_values(GradientBuckets buckets, std::vector<Value> values) {
  buckets.values = std::move(values);
  return buckets;
}

Value bucket_as_rows(Builder& b, Value bucket) {
  return b.emit(ops::Reshape{{numel(b.type(bucket)) / bucket_unit, bucket_unit}}, {bucket});
}

Norms norms_of(Builder& b, const GradientBuckets& gradients, DType dtype) {
  std::optional<Value> squares, largest;
  for (std::size_t k = 0; k < gradients.values.size(); ++k) {
    const std::vector<double>& rows = gradients.row_ranges[k];
    std::vector<Value> norms = b.emit_all(ops::Norms{}, std::vector{bucket_as_rows(b, gradients.values[k])});
    const AxisSet divided = gradients.divided[k], sharded = b.type(gradients.values[k]).varying - divided;
    if (!sharded.empty()) {
      for (Value& of_rows : norms) of_rows = b.emit(ops::AllGatherInvariant{sharded, 0}, {of_rows});
    }
    const Value table = b.emit(ops::Constant{DType::i64, {std::ssize(rows) / 2, 2}, 0, rows}, std::span<const Value>());
    Value sums = b.emit(ops::SegmentSum{}, {norms[0], table});
    Value most = b.emit(ops::ReduceMax{{0}}, {norms[1]});
    if (!divided.empty()) {
      sums = b.emit(ops::Psum{divided}, {sums});
      most = b.emit(ops::Pmax{divided}, {most});
    }
    squares = squares ? equations::add(b, *squares, sums) : sums;
    largest = largest ? b.emit(ops::Max{}, {*largest, most}) : most;
  }
  if (!squares) return {b.constant(DType::f64, 0.0), b.constant(dtype, 0.0)};
  return {b.emit(ops::Sqrt{}, {b.emit(ops::ReduceSum{{0}}, {*squares})}), *largest};
}

std::vector<equations::Number> clipping_numbers(const optimizers::Options& optimizer, DType dtype) {
  std::vector<equations::Number> all;
  if (optimizer.clip) all = {{"clip", *optimizer.clip, dtype}, {"clip/negative", -*optimizer.clip, dtype}};
  if (optimizer.clip_by_global_norm) all.push_back({"clip_by_global_norm", *optimizer.clip_by_global_norm, DType::f64});
  return all;
}

Clipping emit_clipping(Builder& b, const optimizers::Options& optimizer, const equations::Numbers& numbers,
                       const GradientBuckets& sums, Value divisor, const Norms& norms) {
  const Builder::Scope scope(b, {"clip", optimizer.place});
  const DType dtype = b.type(divisor).dtype;
  Clipping clipping{norms.max_abs, {}};
  if (optimizer.clip) {
    clipping.max_abs = b.emit(ops::Min{}, {norms.max_abs, numbers["clip"]});
  }
  if (optimizer.clip_by_global_norm) {
    Value norm = norms.global;
    if (optimizer.clip) {
      const std::vector<Value> clipped = clipped_mean_gradients(b, optimizer, numbers, sums.values, divisor, clipping);
      norm = norms_of(b, with_values(sums, clipped), dtype).global;
    }
    const Value most = numbers["clip_by_global_norm"];
    const Value small = b.emit(ops::Lt{}, {norm, most});
    const Value factor = equations::select(b, small, b.constant(DType::f64, 1.0), equations::div(b, most, norm));
    clipping.factor = equations::cast(b, factor, dtype);
    clipping.max_abs = equations::mul(b, clipping.max_abs, *clipping.factor);
  }
  return clipping;
}

std::vector<Value> clipped_mean_gradients(Builder& b, const optimizers::Options& optimizer,
                                          const equations::Numbers& numbers, std::span<const Value> sums, Value divisor,
                                          const Clipping& clipping) {
  const Builder::Scope scope(b, {rule_name(optimizer), optimizer.place});
  std::vector<Value> means;
  means.reserve(sums.size());
  for (const Value sum : sums) {
    Value mean = equations::div(b, sum, divisor);
    if (optimizer.clip) mean = b.emit(ops::Clamp{}, {numbers["clip/negative"], mean, numbers["clip"]});
    means.push_back(clipping.factor ? equations::mul(b, mean, *clipping.factor) : mean);
  }
  return means;
}

}  // namespace pmaptrain::step
