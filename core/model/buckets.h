// How a program stores the parameters of a model: each as an input, or several together in a bucket.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/graph/builder.h"
#include "core/model/model.h"

namespace pmaptrain::model {

// Parameters that are stored one after another and updated together. Each kind of an optimizer's state (such as the
// momentum) has a bucket of the same parameters.
struct Bucket {
  std::string name;                     // "bucket_0"
  std::vector<std::size_t> parameters;  // indices in Model::parameters, in the order in memory
  // Of each parameter, as Parameter::divided and read_along: a position along `divided` has a bucket of its own.
  AxisSet divided = {}, read_along = {};
  // If positive: the bucket has one parameter, a table, and a step knows its gradient by rows, one for each of so many
  // tokens of a global batch. The shards of such a bucket have whole rows.
  std::int64_t tokens = 0;
};

// The axes along which devices divide buckets into shards (parallelism.fsdp): those of the optimizer's state, of the
// summed gradients, and of the parameters. What a stage does not divide has none; the others have the same axes.
struct Sharding {
  AxisSet state = {}, gradients = {}, parameters = {};
  bool is_of_all_data = false;  // these are all axes over which batches are divided
  // Whether a bucket has parameters of one group of layers alone (gathers.h), so that its gradients are summed as soon
  // as they are complete, and in stage 3 its parameters are gathered before these layers. Not in a loop over
  // microbatches, which would then add the sums of each microbatch over the devices: another order of sums.
  bool by_groups = false;

  // Of the inputs of a group.
  AxisSet of(Group group) const { return is_of_model(group) ? parameters : state; }
};

// The size of a bucket, which divides into shards of whole units.
std::int64_t elements_of(const Model& model, const Bucket& bucket, const Sharding& sharding, const Mesh& mesh);

// Inputs of a program that hold one array for each parameter.
struct ParameterInputs {
  std::vector<Value> buckets;   // in the order of the buckets
  std::vector<Bucket> base_of;  // base_buckets(), and their inputs
  std::vector<Value> base;
  std::vector<Value> single;  // by parameter: its own input, or no value if it is in a bucket
};

// The base of a model with adapters in buckets, of one element type each and by groups of layers as those of trained
// parameters, if devices have shards of parameters. Else none: each is an input of its own.
std::vector<Bucket> base_buckets(const Model& model, const Sharding& sharding);
// The buckets of trained parameters, and then those of the base.
std::vector<Bucket> with_base(std::span<const Bucket> buckets, const Model& model, const Sharding& sharding);

// Declares the input "<prefix><bucket>" with the parts "<prefix><parameter>": the bucket, or a shard of it.
Value declare_bucket(Builder& b, const Model& model, Group group, const std::string& prefix, const Bucket& bucket,
                     const Sharding& sharding);
// Declares inputs for all parameters: the buckets, those of the base, and "<parameter>" for each parameter in no
// bucket, which is a statistic or is frozen. With `averages` the buckets are those of the moving averages, state inputs
// "ema/<bucket>".
ParameterInputs declare_parameters(Builder& b, const Model& model, std::span<const Bucket> buckets,
                                   const Sharding& sharding = {}, bool averages = false);

// The parameters of a bucket, in its order, as a device has them. Appends an equation `unpack`, after an
// `all_gather_invariant` if `stored` is a shard.
std::vector<Value> unpack_bucket(Builder& b, const Model& model, const Bucket& bucket, Value stored);

// Makes of a whole parameter in a bucket what the layers read.
using Finish = std::function<Value(std::size_t parameter, Value whole)>;

// The arrays in the order of Model::parameters, those in buckets finished. Appends an equation `unpack` for each
// bucket, after an `all_gather_invariant` of its shards, so all inputs of the program must have been declared before.
std::vector<Value> unpack_parameters(Builder& b, const Model& model, std::span<const Bucket> buckets,
                                     const ParameterInputs& stored, const Finish& finish = {});

}  // namespace pmaptrain::model
