// Nodes that consist of other layers: lists, repeated lists, residual connections.
#include <fmt/format.h>

#include <set>
#include <type_traits>

#include "core/equations/arithmetic.h"
#include "core/model/layers.h"

namespace pmaptrain::model {
namespace {

template <class Kind>
constexpr bool is_list = std::is_same_v<Kind, spec::Layers> || std::is_same_v<Kind, spec::Repeat>;

// Whether tokens may be its input: only embedding reads them, itself or inside of another layer.
bool may_read_tokens(const spec::LayerKind& kind) {
  return std::visit(
      []<class Kind>(const Kind&) {
        return is_list<Kind> || std::is_same_v<Kind, spec::Residual> || std::is_same_v<Kind, spec::Embedding>;
      },
      kind);
}

// The layers of `list` as one node that applies them in order. Returns nothing if a layer does not fit.
std::optional<Node> plan_as_list(const std::vector<spec::Layer>& list, const std::string& name, const LayerInput& in,
                                 const Activation& from) {
  Node node = in.start();
  node.name = name;
  node.input = from.shape;
  Activation at = from;
  if (!plan_list(list, name + ".", in.spec, in.precision, at, node.children, in.errors)) return std::nullopt;
  node.compute = at.dtype;
  node.output = at.shape;
  node.image = at.image;
  return node;
}

Activation input_of(const LayerInput& in) { return {in.input_dtype, in.shape, in.image}; }

std::string shown(const LayerInput& in, const Shape& shape) {
  return std::string(to_string(in.precision.storage)) + to_string(shape);
}

// What makes the input of a residual connection as its layers' output, in the simplest case.
std::string projection(const Shape& from, const Shape& to) {
  const std::string features = std::to_string(to.empty() ? 1 : to.back());
  if (from.size() == 3 && to.size() == 3 && to[0] > 0 && to[1] > 0) {
    const std::int64_t down = (from[0] + to[0] - 1) / to[0], across = (from[1] + to[1] - 1) / to[1];
    const bool strided = (from[0] + down - 1) / down == to[0] && (from[1] + across - 1) / across == to[1];
    if (strided) {
      const bool moves = down > 1 || across > 1;
      return "shortcut: [{conv: {features: " + features + ", kernel_size: [1, 1]" +
             (moves ? ", strides: [" + std::to_string(down) + ", " + std::to_string(across) + "]" : "") + "}}]";
    }
  }
  if (from.size() == 1 && to.size() == 1) return "shortcut: [{dense: " + features + "}]";
  return "";
}

}  // namespace

std::optional<Node> LayerInput::refuse_no_image(std::string help) const {
  const auto* const npz = std::get_if<spec::Npz>(&spec.data.source);
  const bool is_of_channels = npz != nullptr && shape.size() == 2 &&
                              (npz->channels == spec::Channels::last || npz->channels == spec::Channels::first);
  if (is_of_channels) {
    help = "data.source.npz.channels: none takes arrays (N, height, width) for pictures [height,width,1]; it is " +
           std::string(to_string(npz->channels));
    if (npz->channels == spec::Channels::last) {
      help += fmt::format("; a series is reshape: [{}, 1, {}] before it, for windows of [3, 1]", shape[0], shape[1]);
    }
  }
  return refuse("takes images [height,width,channels]; its input is " + shown(), std::move(help));
}

bool plan_list(const std::vector<spec::Layer>& list, const std::string& prefix, const spec::Spec& spec,
               Precision precision, Activation& at, std::vector<Node>& out, std::vector<Diagnostic>& errors) {
  std::set<std::string> names;
  for (const spec::Layer& layer : list) {
    if (!names.insert(layer.name).second) {
      errors.push_back({"config",
                        layer.place,
                        "two layers are named '" + layer.name + "'",
                        "give one of them another name: {name: ..., " + spec::to_string(layer.kind) + ": ...}",
                        {}});
    }
    Precision own = precision;
    if (layer.precision == spec::PrecisionPolicy::float32) own.compute = own.storage;
    const LayerInput in{layer, prefix + layer.name, at.shape, own, at.dtype, errors, spec, at.image};
    if (at.dtype == DType::i32 && !may_read_tokens(layer.kind)) {
      in.refuse("computes with numbers, and its input are tokens", "put it behind embedding, which gives numbers");
      return false;
    }
    std::optional<Node> planned = std::visit(
        [&](const auto& kind) {
          static_assert(
              requires { plan(kind, in); }, "this layer has no plan() in core/model/layers.h");
          return plan(kind, in);
        },
        layer.kind);
    if (!planned) return false;
    planned->remat = layer.remat.value_or(false);
    at = {planned->compute, planned->output, planned->image};
    out.push_back(std::move(*planned));
  }
  return true;
}

std::optional<Node> plan(const spec::Layers& layers, const LayerInput& in) {
  return plan_as_list(layers.layers, in.name, in, input_of(in));
}

// The same layers, one after another, each time with parameters of their own.
std::optional<Node> plan(const spec::Repeat& repeat, const LayerInput& in) {
  Node node = in.start();
  Activation at = input_of(in);
  for (std::int64_t time = 0; time < repeat.times; ++time) {
    std::optional<Node> once = plan_as_list(repeat.layers, in.name + "." + std::to_string(time), in, at);
    if (!once) return std::nullopt;
    if (once->output != in.shape) {
      return in.refuse("repeats layers that make " + shown(in, once->output) + " of its input " + in.shown(),
                       "layers of repeat keep the shape, because each time takes what the time before gives; move the "
                       "layer that changes it before repeat or after it");
    }
    once->remat = repeat.remat;
    at = {once->compute, once->output, once->image};
    node.children.push_back(std::move(*once));
  }
  node.compute = at.dtype;
  node.image = at.image;
  return node;
}

// layers(x) + shortcut(x). The sum has the type of activations.
std::optional<Node> plan(const spec::Residual& residual, const LayerInput& in) {
  for (const spec::Layer& layer : residual.layers) {
    if (layer.name == "shortcut") {
      in.errors.push_back({"config",
                           layer.place,
                           "a layer of " + in.name + " is named 'shortcut', as the other list of a residual layer is",
                           "give it another name: parameters below " + in.name + ".shortcut are those of that list",
                           {}});
    }
  }
  Node node = in.start();
  std::optional<Node> main = plan_as_list(residual.layers, in.name, in, input_of(in));
  if (!main) return std::nullopt;
  std::optional<Node> shortcut = plan_as_list(residual.shortcut, in.name + ".shortcut", in, input_of(in));
  if (!shortcut) return std::nullopt;
  if (main->output != shortcut->output) {
    const bool identity = residual.shortcut.empty();
    const std::string example = projection(in.shape, main->output);
    return in.refuse("adds what its layers give, " + shown(in, main->output) + ", to " +
                         (identity ? "its input, " : "what its shortcut gives, ") + shown(in, shortcut->output),
                     (identity ? "both have one shape: keep the shape in its layers, or project the input"
                               : "both have one shape: change the last layer of one of them") +
                         (identity && !example.empty() ? ", for example by " + example
                                                       : std::string(identity ? " by shortcut" : "")));
  }
  node.output = main->output;
  node.image = main->image == shortcut->image ? main->image : Shape();
  node.children.push_back(std::move(*main));
  node.children.push_back(std::move(*shortcut));
  node.apply = [](const LayerCall& call, Value x) {
    Builder& b = call.b;
    const Value of_layers = apply(b, call.node.children[0], call.forward, x);
    const Value beside = apply(b, call.node.children[1], call.forward, x);
    const Value left = cast(b, of_layers, call.node.compute);
    return add(b, left, cast(b, beside, call.node.compute));
  };
  return node;
}

}  // namespace pmaptrain::model
