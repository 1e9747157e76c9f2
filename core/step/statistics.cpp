#include "core/step/statistics.h"

#include <algorithm>
#include <cassert>

#include "core/equations/arithmetic.h"
#include "core/ops/bucket/bucket.h"

namespace pmaptrain::step {
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

std::vector<Shape> statistic_shapes(const model::Model& model, std::span<const std::size_t> statistics) {
  std::vector<Shape> shapes;
  for (const std::size_t i : statistics) shapes.push_back(model.parameters[i].shape);
  shapes.insert(shapes.end(), statistics.size(), Shape{1});
  return shapes;
}

std::vector<Value> moved_statistics(Builder& b, const model::Model& model, std::span<const std::size_t> statistics,
                                    std::span<const Value> old, std::span<const Value> sums) {
  if (statistics.empty()) return {};
  const std::vector<const model::Node*> nodes = model.nodes();
  std::vector<Value> next = b.emit_all(ops::Unpack{statistic_shapes(model, statistics)}, sums);
  for (std::size_t i = 0; i < statistics.size(); ++i) {
    const Value weight = b.emit(ops::Reshape{{}}, {next[statistics.size() + i]});
    const Value divisor = b.emit(ops::Max{}, {weight, b.constant(model.dtype, 1.0)});
    const double momentum = momentum_of(nodes, statistics[i]);
    const Value share = equations::mul(b, equations::div(b, next[i], divisor), 1.0 - momentum);
    const Value moved = equations::add(b, equations::mul(b, old[i], momentum), share);
    next[i] = equations::select(b, b.emit(ops::Gt{}, {weight, b.constant(model.dtype, 0.0)}), moved, old[i]);
  }
  next.resize(statistics.size());
  return next;
}

Value is_finite_bucket(Builder& b, Value bucket) {
  const Value row = b.emit(ops::Reshape{{1, numel(b.type(bucket).shape)}}, {bucket});
  const std::vector<Value> norms = b.emit_all(ops::Norms{}, std::vector{row});
  return b.emit(ops::IsFinite{}, {b.emit(ops::Reshape{{}}, {norms.back()})});
}

}  // namespace pmaptrain::step
