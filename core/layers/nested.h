// Layers that consist of other layers: lists, repeated lists, residual connections.
#pragma once

#include <string>
#include <vector>

#include "core/equations/arithmetic.h"
#include "core/layers/join.h"
#include "core/layers/keys.h"
#include "core/layers/node.h"

namespace pmaptrain::layers {

struct Layers {
  std::vector<Layer> layers;

  static Declaration<Layers> declaration() {
    Key key = layers_key(
        "A nested list of layers. Its name is the prefix of their parameter names, as in "
        "block.conv_0.kernel.",
        "- name: block\n  layers:\n    - conv: {features: 32, kernel_size: [3, 3]}\n    - relu");
    return declare::kind_of_value<Layers>(field(&Layers::layers, key));
  }
  std::vector<Inside> inside() const { return {{".", &layers}}; }

  std::optional<Node> plan(const LayerInput& in) const { return plan_as_list(layers, in.name, in, in.activation()); }
};

// The same layers, one after another, each time with parameters of their own.
struct Repeat {
  std::int64_t times = 1;
  std::vector<Layer> layers;
  bool remat = false;  // of each time

  static Declaration<Repeat> declaration() {
    return declare::kind<Repeat>(
        {.path = "repeat",
         .meaning = "The same layers several times, one after another. Each time has parameters of its own, which are "
                    "named repeat_0.2.dense_0.kernel (the third time). The layers keep the shape.",
         .example = "- repeat:\n    times: 4\n    layers: [{residual: {layers: [{dense: 64}, relu]}}]"},
        field(&Repeat::times, {.path = "times",
                               .need = Need::required,
                               .low = 1,
                               .high = 10000,
                               .meaning = "How often the layers are applied.",
                               .example = "times: 4"}),
        field(&Repeat::layers, layers_key("The layers that are repeated.", "layers: [{dense: 64}, relu]")),
        field(&Repeat::remat, {.path = "remat",
                               .meaning = "Whether the backward pass computes the activations of each time "
                                          "again from its input: less memory, more time.",
                               .example = "remat: true"}));
  }
  std::vector<Inside> inside() const { return {{".", &layers, times}}; }

  std::optional<Node> plan(const LayerInput& in) const {
    Node node = in.start();
    Activation at = in.activation();
    for (std::int64_t time = 0; time < times; ++time) {
      std::optional<Node> once = plan_as_list(layers, in.name + "." + std::to_string(time), in, at);
      if (!once) return std::nullopt;
      if (once->output != in.shape || once->lengths != in.lengths) {
        return in.refuse(
            "repeats layers that make " + in.shown(once->output) + " of its input " + in.shown(),
            "layers of repeat keep the shape, because each time takes what the time before gives; move the "
            "layer that changes it before repeat or after it");
      }
      once->remat = remat;
      at = {once->compute, once->output, once->image, once->lengths};
      node.children.push_back(std::move(*once));
    }
    node.compute = at.dtype;
    node.image = at.image;
    node.lengths = at.lengths;
    return node;
  }
};

// What makes the input of a residual connection as its layers' output, in the simplest case.
inline std::string projection(const Shape& from, const Shape& to) {
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

// layers(x) + shortcut(x). The sum has the type of activations.
struct Residual {
  std::vector<Layer> layers, shortcut;  // an empty shortcut is the identity

  static Declaration<Residual> declaration() {
    Key beside = layers_key(
        "The layers beside them, such as a projection to the shape of their output. An empty list "
        "is the identity.",
        "shortcut: [{conv: {features: 64, kernel_size: [1, 1], strides: [2, 2]}}]");
    beside.path = "shortcut";
    beside.need = Need::optional;
    beside.fallback = "[]";
    return declare::kind<Residual>(
        {.path = "residual",
         .meaning = "A residual connection: layers(x) + shortcut(x). Parameters are named residual_0.conv_0.kernel and "
                    "residual_0.shortcut.conv_0.kernel.",
         .example = "- residual:\n    layers:\n      - conv: {features: 32, kernel_size: [3, 3], strides: [2, 2]}\n"
                    "      - relu\n    shortcut:\n      - conv: {features: 32, kernel_size: [1, 1], strides: [2, 2]}"},
        field(&Residual::layers, layers_key("The layers whose output is added to that of the shortcut.",
                                            "layers: [{dense: 64}, relu, {dense: 64}]")),
        field(&Residual::shortcut, beside));
  }
  std::vector<Inside> inside() const { return {{".", &layers}, {".shortcut.", &shortcut}}; }

  std::optional<Node> plan(const LayerInput& in) const {
    for (const Layer& layer : layers) {
      if (layer.name == "shortcut") {
        in.errors.push_back({"config",
                             layer.place,
                             "a layer of " + in.name + " is named 'shortcut', as the other list of a residual layer is",
                             "give it another name: parameters below " + in.name + ".shortcut are those of that list",
                             {}});
      }
    }
    Node node = in.start();
    std::optional<Node> main = plan_as_list(layers, in.name, in, in.activation());
    if (!main) return std::nullopt;
    std::optional<Node> beside = plan_as_list(shortcut, in.name + ".shortcut", in, in.activation());
    if (!beside) return std::nullopt;
    if (main->output != beside->output) {
      const bool identity = shortcut.empty();
      const std::string example = projection(in.shape, main->output);
      return in.refuse("adds what its layers give, " + in.shown(main->output) + ", to " +
                           (identity ? "its input, " : "what its shortcut gives, ") + in.shown(beside->output),
                       (identity ? "both have one shape: keep the shape in its layers, or project the input"
                                 : "both have one shape: change the last layer of one of them") +
                           (identity && !example.empty() ? ", for example by " + example
                                                         : std::string(identity ? " by shortcut" : "")));
    }
    if (main->lengths != beside->lengths) return in.refuse(other_lengths, other_lengths_help);
    const Shape output = main->output;
    node.children.push_back(std::move(*main));
    node.children.push_back(std::move(*beside));
    join_children(node, Join::add, output);
    return node;
  }
};

}  // namespace pmaptrain::layers
