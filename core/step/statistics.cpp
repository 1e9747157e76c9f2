#include "core/step/statistics.h"

#include <algorithm>
#include <cassert>

#include "core/model/arithmetic.h"
#include "core/ops/bucket/bucket.h"

namespace pmaptrain::train {
namespace {

// Whether a node has parameters to train, and all of them are frozen.
bool is_frozen(const model::Node& node, const Optimizer& optimizer) {
  bool any = false;
  for (std::size_t i = 0; i < node.parameters.size(); ++i) {
    if (node.parameters[i].is_state) continue;
    if (optimizer.parameter_options[node.first_parameter + i].trained) return false;
    any = true;
  }
  return any;
}

// The momentum of the node that a statistic belongs to.
double momentum_of(const std::vector<const model::Node*>& nodes, std::size_t statistic) {
  for (const model::Node* node : nodes) {
    if (statistic - node->first_parameter < node->parameters.size()) return node->momentum;
  }
  assert(false);
  return 0;
}

}  // namespace

std::vector<std::size_t> replaced_statistics(const model::Model& model, const Optimizer& optimizer) {
  std::vector<std::size_t> found;
  for (const model::Node* node : model.nodes()) {
    if (is_frozen(*node, optimizer)) continue;
    for (std::size_t i = 0; i < node->parameters.size(); ++i) {
      if (node->parameters[i].is_state) found.push_back(node->first_parameter + i);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<Value> moved_statistics(Builder& b, const model::Model& model, std::span<const std::size_t> statistics,
                                    std::span<const Value> old, std::span<const Value> sums, Value count) {
  if (statistics.empty()) return {};
  const std::vector<const model::Node*> nodes = model.nodes();
  const Value divisor = b.emit(ops::Max{}, {count, b.constant(model.dtype, 1.0)});
  ops::Unpack unpack;
  for (const std::size_t i : statistics) unpack.shapes.push_back(model.parameters[i].shape);
  std::vector<Value> next = b.emit_all(unpack, sums);
  for (std::size_t i = 0; i < next.size(); ++i) {
    const double momentum = momentum_of(nodes, statistics[i]);
    const Value moved = model::mul(b, model::div(b, next[i], divisor), 1.0 - momentum);
    next[i] = model::add(b, model::mul(b, old[i], momentum), moved);
  }
  return next;
}

Value is_finite_bucket(Builder& b, Value bucket) {
  const Value row = b.emit(ops::Reshape{{1, numel(b.type(bucket).shape)}}, {bucket});
  const std::vector<Value> norms = b.emit_all(ops::Norms{}, std::vector{row});
  return b.emit(ops::IsFinite{}, {b.emit(ops::Reshape{{}}, {norms.back()})});
}

}  // namespace pmaptrain::train
