#include "core/model/gathers.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/ops/elementwise/unary.h"

namespace pmaptrain::model {
namespace {

// Lists of layers stand for what is inside, except those that are computed again as a whole.
void add_layers(const std::vector<Node>& nodes, std::vector<const Node*>& layers) {
  for (const Node& node : nodes) {
    if (node.is_list() && !node.remat) {
      add_layers(node.children, layers);
    } else {
      layers.push_back(&node);
    }
  }
}

void add_parameters(const Node& node, const Model& model, LayerGroup& group, std::int64_t& elements) {
  for (std::size_t i = 0; i < node.parameters.size(); ++i) {
    elements += numel(model.parameters[node.first_parameter + i].shape);
  }
  group.parameters += node.parameters.size();
  if (!node.shared_name.empty()) group.shared.push_back(node.shared);
  for (const Node& child : node.children) add_parameters(child, model, group, elements);
}

bool owns(const LayerGroup& group, std::size_t parameter) {
  return parameter >= group.first_parameter && parameter < group.first_parameter + group.parameters;
}

bool reads(const LayerGroup& group, std::size_t parameter) {
  return owns(group, parameter) || std::find(group.shared.begin(), group.shared.end(), parameter) != group.shared.end();
}

// The buckets that have a parameter which the group reads.
std::vector<std::size_t> buckets_of(const LayerGroup& group, std::span<const Bucket> buckets) {
  std::vector<std::size_t> found;
  for (std::size_t k = 0; k < buckets.size(); ++k) {
    const std::vector<std::size_t>& parameters = buckets[k].parameters;
    if (std::any_of(parameters.begin(), parameters.end(), [&](std::size_t i) { return reads(group, i); })) {
      found.push_back(k);
    }
  }
  return found;
}

void append(LayerGroup& to, const LayerGroup& from) {
  to.layers.insert(to.layers.end(), from.layers.begin(), from.layers.end());
  to.parameters += from.parameters;
  to.shared.insert(to.shared.end(), from.shared.begin(), from.shared.end());
}

}  // namespace

std::vector<LayerGroup> layer_groups(const Model& model) {
  std::vector<const Node*> layers;
  add_layers(model.layers, layers);
  std::vector<LayerGroup> groups;
  LayerGroup open;
  std::int64_t elements = 0;
  for (const Node* const layer : layers) {
    open.layers.push_back(layer);
    add_parameters(*layer, model, open, elements);
    if (elements < least_in_group) continue;
    LayerGroup next;
    next.first_parameter = open.first_parameter + open.parameters;
    groups.push_back(std::exchange(open, std::move(next)));
    elements = 0;
  }
  if (groups.empty()) return {open};
  append(groups.back(), open);
  for (LayerGroup& group : groups) {
    std::erase_if(group.shared, [&](std::size_t parameter) { return owns(group, parameter); });
  }
  return groups;
}

bool gathers_by_groups(const Model& model, const Sharding& sharding) {
  return sharding.by_groups && !sharding.parameters.empty() && layer_groups(model).size() > 1;
}

std::vector<std::size_t> groups_of_parameters(const Model& model, const Sharding& sharding) {
  std::vector<std::size_t> found(model.parameters.size(), 0);
  if (!sharding.by_groups) return found;
  const std::vector<LayerGroup> groups = layer_groups(model);
  for (std::size_t k = 0; k < groups.size(); ++k) {
    std::fill_n(found.begin() + static_cast<std::ptrdiff_t>(groups[k].first_parameter), groups[k].parameters, k);
  }
  return found;
}

std::int64_t most_gathered(const Model& model, std::span<const Bucket> buckets, const Sharding& sharding,
                           const Mesh& mesh) {
  if (sharding.parameters.empty()) return 0;
  std::vector<std::vector<std::size_t>> groups(1);
  for (std::size_t k = 0; k < buckets.size(); ++k) groups.front().push_back(k);
  if (sharding.by_groups) {
    groups.clear();
    for (const LayerGroup& group : layer_groups(model)) groups.push_back(buckets_of(group, buckets));
  }
  std::int64_t most = 0, before = 0;
  for (const std::vector<std::size_t>& group : groups) {
    std::int64_t elements = 0;
    for (const std::size_t k : group) elements += elements_of(model, buckets[k], sharding, mesh);
    most = std::max(most, before + elements);
    before = elements;
  }
  return most;
}

Gathers::Gathers(Builder& b, const Model& model, std::span<const Bucket> buckets, std::span<const Value> shards,
                 std::span<Value> parameters, Finish finish)
    : b_(b),
      model_(model),
      buckets_(buckets),
      shards_(shards),
      parameters_(parameters),
      finish_(std::move(finish)),
      read_(model.parameters.size()) {}

Value Gathers::apply(const Forward& forward, Value x) {
  const std::vector<LayerGroup> groups = layer_groups(model_);
  for (const LayerGroup& group : groups) {
    const bool is_first = &group == &groups.front(), is_last = &group == &groups.back();
    // The gathers of a later group wait for its input: before it nobody reads them.
    std::vector<Value> shards;
    const std::vector<std::size_t> buckets = buckets_of(group, buckets_);
    for (const std::size_t k : buckets) {
      const Builder::Scope scope(b_, {"gather", {}});
      shards.push_back(is_first ? shards_[k] : b_.emit(ops::OptimizationBarrier{}, {shards_[k], x}));
    }
    // The backward pass begins with the last group, so nothing is gained if that is gathered again.
    std::optional<Builder::Regather> regather;
    if (forward.training && !is_last) regather.emplace(b_, shards);
    for (std::size_t j = 0; j < buckets.size(); ++j) gather(group, buckets[j], shards[j]);
    if (regather) regather->gathered();
    for (const Node* const layer : group.layers) x = layers::apply(b_, *layer, forward, x);
  }
  return x;
}

void Gathers::gather(const LayerGroup& group, std::size_t bucket, Value shard) {
  const std::vector<Value> whole = unpack_bucket(b_, model_, buckets_[bucket], shard);
  for (std::size_t j = 0; j < whole.size(); ++j) {
    const std::size_t i = buckets_[bucket].parameters[j];
    if (!reads(group, i)) continue;
    parameters_[i] = finish_(i, whole[j]);
    read_[i].push_back(parameters_[i]);
  }
}

}  // namespace pmaptrain::model
