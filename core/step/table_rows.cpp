#include "core/step/table_rows.h"

#include <cassert>

#include "core/equations/arithmetic.h"
#include "core/equations/division.h"
#include "core/graph/bucket.h"
#include "core/ops/bucket/bucket.h"
#include "core/ops/collective/collective.h"
#include "core/ops/first_occurrence/first_occurrence.h"
#include "core/ops/scatter/scatter.h"

namespace pmaptrain::step {
TableRows::TableRows(Builder& b, const model::Model& model, const model::Bucket& bucket,
                     const model::Sharding& sharding, Value tokens)
    : b_(b), tokens_(bucket.tokens) {
  const Shape& table = model.parameters[bucket.parameters.front()].shape;
  features_ = table.back();
  const std::int64_t local = numel(b.type(tokens).shape);
  const Value flat = b.emit(ops::Reshape{{local}}, {equations::cast(b, tokens, DType::i32)});
  const Value all = gathered(flat);
  assert(numel(b.type(all)) == tokens_);
  const std::vector<Value> found = b.emit_all(ops::FirstOccurrence{table.front()}, std::vector{all});
  first_ = found[0];
  named_ = found[1];
  if (sharding.state.empty()) return;
  const std::int64_t rows = model::elements_of(model, bucket, sharding, b.mesh()) / features_;
  const std::int64_t own = rows / b.mesh().group_size(sharding.state);
  const Value begin = equations::offset_along(b, sharding.state, own);
  const Value is_row =
      b.emit(ops::Lt{}, {named_, equations::scalar_like(b, named_, static_cast<double>(table.front()))});
  const Value shifted = equations::sub(b, named_, begin);
  named_ = equations::select(b, is_row, shifted, equations::scalar_like(b, named_, static_cast<double>(own)));
}

Value TableRows::gathered(Value value) const {
  const AxisSet axes = b_.type(value).varying;
  return axes.empty() ? value : b_.emit(ops::AllGatherInvariant{axes, 0}, {value});
}

Value TableRows::as_table(Value bucket) const {
  return b_.emit(ops::Reshape{{numel(b_.type(bucket)) / features_, features_}}, {bucket});
}

// Without gaps a bucket is a view.
Value TableRows::as_bucket(Value rows) const {
  const std::int64_t elements = numel(b_.type(rows));
  if (elements % bucket_unit != 0) return b_.emit(ops::Pack{}, {rows});
  return b_.emit(ops::Reshape{{elements}}, {rows});
}

Value TableRows::summed(Value gradients) const {
  const std::int64_t local = numel(b_.type(gradients)) / features_;
  const Value rows = gathered(b_.emit(ops::Reshape{{local, features_}}, {gradients}));
  return as_bucket(b_.emit(ops::ScatterAdd{tokens_}, {first_, rows}));
}

Value TableRows::rows_of(Value owned) const { return as_bucket(b_.emit(ops::Gather{}, {as_table(owned), named_})); }

Value TableRows::with_rows(Value owned, Value rows) const {
  const Shape shape{tokens_, features_};
  const Value new_rows = numel(shape) % bucket_unit != 0 ? b_.emit_all(ops::Unpack{{shape}}, std::vector{rows}).front()
                                                         : b_.emit(ops::Reshape{shape}, {rows});
  const Value table = b_.emit(ops::Scatter{}, {as_table(owned), named_, new_rows});
  return b_.emit(ops::Reshape{{numel(b_.type(owned))}}, {table});
}

Shape gradient_shape(const model::Model& model, const Mesh& mesh, const model::Bucket& bucket, std::size_t parameter) {
  const Shape shape = local_shape(model.parameters[parameter].layout(), mesh);
  return bucket.tokens > 0 ? Shape{bucket.tokens, shape.back()} : shape;
}

}  // namespace pmaptrain::step
