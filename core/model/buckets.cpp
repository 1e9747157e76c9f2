#include "core/model/buckets.h"

#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/graph/bucket.h"
#include "core/model/gathers.h"
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
  const DType dtype = model.parameters[bucket.parameters.front()].stored_as.value_or(model.dtype);
  return b.bucket(group, prefix + bucket.name, dtype, std::move(parts), std::move(layout));
}

std::vector<Bucket> base_buckets(const Model& model, const Sharding& sharding) {
  std::vector<Bucket> buckets;
  if (sharding.parameters.empty()) return buckets;
  const std::vector<std::size_t> groups = groups_of_parameters(model, sharding);
  std::map<std::tuple<std::size_t, DType, std::uint32_t, std::uint32_t>, std::size_t> known;
  for (std::size_t i = model.parameters.size(); i-- > 0;) {
    const Parameter& parameter = model.parameters[i];
    if (parameter.lora != LoraRole::base) continue;
    const AxisSet divided = parameter.layout().axes();
    const auto [bucket, is_new] = known.try_emplace(
        {groups[i], parameter.stored_as.value_or(model.dtype), divided.bits(), parameter.read_along.bits()},
        buckets.size());
    if (is_new) buckets.push_back({"base_" + std::to_string(buckets.size()), {}, divided, parameter.read_along});
    buckets[bucket->second].parameters.push_back(i);
  }
  return buckets;
}

std::vector<Bucket> with_base(std::span<const Bucket> buckets, const Model& model, const Sharding& sharding) {
  std::vector<Bucket> all(buckets.begin(), buckets.end());
  for (Bucket& bucket : base_buckets(model, sharding)) all.push_back(std::move(bucket));
  return all;
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
  stored.base_of = base_buckets(model, sharding);
  for (const Bucket& bucket : stored.base_of) {
    for (const std::size_t i : bucket.parameters) packed[i] = true;
    stored.base.push_back(declare_bucket(b, model, Group::base, "", bucket, sharding));
  }
  for (std::size_t i = 0; i < packed.size(); ++i) {
    const Parameter& parameter = model.parameters[i];
    if (packed[i]) {
      stored.single.emplace_back();
      continue;
    }
    const Group group = parameter.lora == LoraRole::base ? Group::base
                        : parameter.is_state             ? Group::params_state
                                                         : Group::params;
    stored.single.push_back(
        b.input(group, parameter.name, parameter.stored_as.value_or(model.dtype), parameter.layout()));
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
  const auto unpack = [&](const Bucket& bucket, Value shard) {
    const std::vector<Value> parts = unpack_bucket(b, model, bucket, shard);
    for (std::size_t j = 0; j < parts.size(); ++j) {
      const std::size_t i = bucket.parameters[j];
      values[i] = finish ? finish(i, parts[j]) : parts[j];
    }
  };
  for (std::size_t k = 0; k < buckets.size(); ++k) unpack(buckets[k], stored.buckets[k]);
  for (std::size_t k = 0; k < stored.base.size(); ++k) unpack(stored.base_of[k], stored.base[k]);
  return values;
}

}  // namespace pmaptrain::model
