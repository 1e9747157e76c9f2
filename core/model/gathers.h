// Groups of layers, whose gradients are summed by themselves (parallelism.fsdp, stages 2 and 3). In stage 3 the
// parameters are stored in shards, and each group gathers its own as the layers read them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/graph/builder.h"
#include "core/model/buckets.h"
#include "core/model/model.h"

namespace pmaptrain::model {

// Layers in order. If their parameters are gathered, that is before the first of them, and they are free behind the
// last.
struct LayerGroup {
  std::vector<const Node*> layers;                  // of Model::layers and of lists in them: each copy of a `repeat`
  std::size_t first_parameter = 0, parameters = 0;  // its own: a range of Model::parameters
  std::vector<std::size_t> shared;                  // parameters of other groups that it reads too
};

// The groups of a model. Layers are joined until they have `least_in_group` elements together, because a message and a
// bucket for each small layer would cost more than they save.
inline constexpr std::int64_t least_in_group = 1 << 18;
std::vector<LayerGroup> layer_groups(const Model& model);

// Whether programs gather the parameters by groups. If not, whole buckets are gathered before the first layer.
bool gathers_by_groups(const Model& model, const Sharding& sharding);
// The number of its group, by parameter: parameters of two groups are in different buckets. All 0 without
// Sharding::by_groups.
std::vector<std::size_t> groups_of_parameters(const Model& model, const Sharding& sharding);

// The most elements of whole parameters that a device has gathered at a time: of all buckets, or by groups of two
// groups in succession, because the gathers of a group run beside the layers of the group before. 0 if parameters are
// not sharded.
std::int64_t most_gathered(const Model& model, std::span<const Bucket> buckets, const Sharding& sharding,
                           const Mesh& mesh);

class Gathers {
 public:
  // `shards` are those of the buckets. `parameters`, in the order of Model::parameters, has those in no bucket, and
  // gets the others before the layers read them. All references outlive this.
  Gathers(Builder& b, const Model& model, std::span<const Bucket> buckets, std::span<const Value> shards,
          std::span<Value> parameters, Finish finish);

  // Appends the layers of the model, with the gathers before each group. In training the backward pass gathers again.
  Value apply(const Forward& forward, Value x);

  // By parameter, in the order of the layers: the values that groups read of it. One unless the parameter is shared.
  const std::vector<std::vector<Value>>& read() const { return read_; }

 private:
  void gather(const LayerGroup& group, std::size_t bucket, Value shard);

  Builder& b_;
  const Model& model_;
  const std::span<const Bucket> buckets_;
  const std::span<const Value> shards_;
  const std::span<Value> parameters_;
  const Finish finish_;
  std::vector<std::vector<Value>> read_;
};

}  // namespace pmaptrain::model
