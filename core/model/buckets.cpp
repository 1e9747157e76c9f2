#include "core/model/buckets.h"

#include <numeric>
#include <utility>

#include "core/graph/bucket.h"
#include "core/ops/bucket/bucket.h"
#include "core/ops/collective/collective.h"

namespace pmaptrain::model {

std::int64_t elements_of(const Model& model, const Bucket& bucket, const Sharding& sharding, const Mesh& mesh) {
  std::vector<Shape> shapes;
  for (const std::size_t i : bucket.parameters) shapes.push_back(local_shape(model.parameters[i].layout(), mesh));
  std::int64_t unit = bucket_unit;
  if (bucket.tokens > 0) unit = std::lcm(unit, shapes.front().back());
  unit *= mesh.group_size(sharding.state);
  return (offsets_in_bucket(shapes).back() + unit - 1) / unit * unit;
}

Value declare_bucket(Builder& b, const Model& model, Group group, const std::string& prefix, const Bucket& bucket,
                     const Sharding& sharding) {
  std::vector<Part> parts;
  for (const std::size_t i : bucket.parameters) {
    parts.push_back({prefix + model.parameters[i].name, model.parameters[i].layout()});
  }
  Layout layout{{elements_of(model, bucket, sharding, b.mesh())}};
  if (const AxisSet axes = sharding.of(group); !axes.empty()) layout.divided = {axes.list()};
  return b.bucket(group, prefix + bucket.name, model.dtype, std::move(parts), std::move(layout));
}

ParameterInputs declare_parameters(Builder& b, const Model& model, std::span<const Bucket> buckets,
                                   const Sharding& sharding, bool averages) {
  ParameterInputs stored;
  std::vector<bool> packed(model.parameters.size(), false);
  for (const Bucket& bucket : buckets) {
    for (const std::size_t i : bucket.parameters) packed[i] = true;
    stored.buckets.push_back(averages ? declare_bucket(b, model, Group::state, "ema/", bucket, sharding)
                                      : declare_bucket(b, model, Group::params, "", bucket, sharding));
  }
  for (std::size_t i = 0; i < packed.size(); ++i) {
    const Parameter& parameter = model.parameters[i];
    if (packed[i]) {
      stored.single.emplace_back();
      continue;
    }
    const Group group = parameter.is_state ? Group::params_state : Group::params;
    stored.single.push_back(b.input(group, parameter.name, model.dtype, parameter.layout()));
  }
  return stored;
}

std::vector<Value> unpack_bucket(Builder& b, const Model& model, const Bucket& bucket, Value stored) {
  ops::Unpack unpack;
  for (const std::size_t i : bucket.parameters) {
    unpack.shapes.push_back(local_shape(model.parameters[i].layout(), b.mesh()));
  }
  const AxisSet sharded = b.type(stored).varying - bucket.divided;
  const Builder::Scope scope(b, sharded.empty() ? b.origin() : Origin{"gather", {}});
  const Value whole = sharded.empty() ? stored : b.emit(ops::AllGatherInvariant{sharded, 0}, {stored});
  return b.emit_all(unpack, std::vector{whole});
}

std::vector<Value> unpack_parameters(Builder& b, const Model& model, std::span<const Bucket> buckets,
                                     const ParameterInputs& stored, const Finish& finish) {
  std::vector<Value> values = stored.single;
  for (std::size_t k = 0; k < buckets.size(); ++k) {
    const std::vector<Value> parts = unpack_bucket(b, model, buckets[k], stored.buckets[k]);
    for (std::size_t j = 0; j < parts.size(); ++j) {
      const std::size_t i = buckets[k].parameters[j];
      values[i] = finish ? finish(i, parts[j]) : parts[j];
    }
  }
  return values;
}

}  // namespace pmaptrain::model
