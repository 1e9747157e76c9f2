#include "core/layers/node.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "core/equations/arithmetic.h"
#include "core/equations/division.h"

namespace pmaptrain::layers {

// ---- planning -------------------------------------------------------------------------------------------------------
namespace {

// Whether the layer can be computed for sequences of different lengths; reports it if not.
bool fits_lengths(const LayerInput& in, const Activation& at) {
  const LayerKind& kind = in.layer.kind;
  if (!kind->takes_lengths()) {
    in.refuse("does not tell positions of a sequence from the padding behind them, and the data have lengths",
              "put a layer before it that leaves no positions: global_avg_pool, global_max_pool or take");
    return false;
  }
  if (at.shape.size() > 1 || at.dtype == DType::i32 || !kind->inside().empty()) return true;
  in.refuse("takes features at each position, [T, C]; its input is " + in.shown() + " with lengths",
            "store such sequences as an array (N, T, 1)");
  return false;
}

}  // namespace

bool plan_list(const std::vector<Layer>& list, const std::string& prefix, const Surroundings& around,
               Precision precision, Activation& at, std::vector<Node>& out, std::vector<Diagnostic>& errors) {
  std::set<std::string> names;
  for (const Layer& layer : list) {
    if (!names.insert(layer.name).second) {
      errors.push_back({"config",
                        layer.place,
                        "two layers are named '" + layer.name + "'",
                        "give one of them another name: {name: ..., " + layer.kind->name() + ": ...}",
                        {}});
    }
    Precision own = precision;
    if (layer.precision == PrecisionPolicy::float32) own.compute = own.storage;
    const LayerInput in{layer, prefix + layer.name, at.shape, own, at.dtype, errors, around, at.image, at.lengths};
    if (at.dtype == DType::i32 && !layer.kind->takes_tokens() && layer.kind->inside().empty()) {
      in.refuse("computes with numbers, and its input are tokens", "put it behind embedding, which gives numbers");
      return false;
    }
    if (at.lengths && !fits_lengths(in, at)) return false;
    std::optional<Node> planned = layer.kind->plan(in);
    if (!planned) return false;
    planned->remat = layer.remat.value_or(false);
    planned->stays_whole = layer.tensor == TensorPolicy::none;
    at = {planned->compute, planned->output, planned->image, planned->lengths};
    out.push_back(std::move(*planned));
  }
  return true;
}

std::optional<Node> plan_as_list(const std::vector<Layer>& list, const std::string& name, const LayerInput& in,
                                 const Activation& from) {
  Node node = in.start();
  node.name = name;
  node.input = from.shape;
  Activation at = from;
  if (!plan_list(list, name + ".", in.around, in.precision, at, node.children, in.errors)) return std::nullopt;
  node.compute = at.dtype;
  node.output = at.shape;
  node.image = at.image;
  node.input_lengths = from.lengths;
  node.lengths = at.lengths;
  return node;
}

void number_nodes(std::vector<Node>& nodes) {
  std::size_t parameters = 0, keys = 0;
  std::map<std::string, std::size_t> places;
  for_each_node(nodes, [&](Node& node) {
    node.first_parameter = parameters;
    node.key = keys;
    for (const Parameter& parameter : node.parameters) places[parameter.name] = parameters++;
    keys += node.draws ? 1 : 0;
    for (Adapter& adapter : node.adapters) {
      adapter.key = keys;
      keys += adapter.drops ? 1 : 0;
    }
  });
  for_each_node(nodes, [&](Node& node) {
    if (!node.shared_name.empty()) node.shared = places.at(node.shared_name);
  });
}

const Node* first_layer(std::span<const Node> nodes) {
  for (const Node& node : nodes) {
    if (node.children.empty() && !node.is_list()) return &node;
    if (const Node* found = first_layer(node.children)) return found;
  }
  return nullptr;
}

// ---- equations ------------------------------------------------------------------------------------------------------
std::optional<Value> LayerCall::lengths() const {
  if (!node.input_lengths || !forward.lengths) return std::nullopt;
  return node.input_lengths->at(b, *forward.lengths);
}

AxisSet LayerCall::input_axes() const {
  const bool divided = node.division == Division::keeps || node.division == Division::rows;
  return divided ? node.division_axes : AxisSet();
}

Value LayerCall::inside_or(Value x, double otherwise) const {
  const std::optional<Value> positions = lengths();
  return positions ? layers::inside_or(b, *positions, x, otherwise) : x;
}

bool LayerCall::is_frozen() const {
  if (forward.trained == nullptr) return false;
  bool any = false;
  for (std::size_t i = 0; i < node.parameters.size(); ++i) {
    if (node.parameters[i].is_state) continue;
    if ((*forward.trained)[node.first_parameter + i]) return false;
    any = true;
  }
  return any;
}

namespace {

// A layer that devices divide by rows or inside gives the sum of what they have. Without it each would go on with its
// own term, and nothing after the layer would tell.
void check_is_sum(Builder& b, const Node& node, Value y) {
  if (node.division != Division::rows && node.division != Division::inside) return;
  const AxisSet differs = b.type(y).varying & node.division_axes;
  if (differs.empty()) return;
  const std::string axes = b.mesh().to_string(differs);
  const auto divided = std::find_if(node.parameters.begin(), node.parameters.end(),
                                    [](const Parameter& parameter) { return !parameter.divided.empty(); });
  const std::string parameter = divided == node.parameters.end() ? node.name : "parameter '" + divided->name + "'";
  throw Error(ExitStatus::usage, Diagnostic{"program",
                                            node.place,
                                            parameter + " is divided over the devices along " + axes +
                                                ", and what they make of their parts is not added up: " + node.name +
                                                " gives " + to_string(b.type(y), b.mesh()),
                                            "a reduction is missing in the equations of the layer: psum over " + axes,
                                            {}});
}

}  // namespace

Value apply(Builder& b, const Node& node, const Forward& forward, Value x) {
  std::optional<Builder::Rematerialise> rematerialise;
  if (node.remat && forward.training) {
    std::vector<Value> inputs{x};
    if (forward.rows) inputs.push_back(*forward.rows);  // from which random numbers are drawn
    rematerialise.emplace(b, std::move(inputs));
  }
  if (node.is_list()) return apply_in_order(b, node.children, forward, x);
  const Builder::Scope scope(b, {node.name, node.place});
  LayerCall call{b,
                 node,
                 forward,
                 forward.parameters.subspan(node.first_parameter, node.parameters.size()),
                 forward.training,
                 forward.numbers,
                 {},
                 {}};
  if (forward.training) {
    if (node.draws) call.key = forward.dropout_keys[node.key];
    call.rows = forward.rows;
  }
  if (node.children.empty() && !node.takes_tokens) x = cast(b, x, node.compute);
  if (node.division == Division::columns || node.division == Division::inside) {
    x = varied_along(b, x, node.division_axes);
  }
  const Value y = node.apply(call, x);
  check_is_sum(b, node, y);
  if (!node.gathers_output) return y;
  return gathered_along(b, y, node.division_axes, node.output.back());
}

Value apply_in_order(Builder& b, std::span<const Node> nodes, const Forward& forward, Value x) {
  for (const Node& node : nodes) x = apply(b, node, forward, x);
  return x;
}

}  // namespace pmaptrain::layers
