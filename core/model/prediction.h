// What a model says about inputs whose targets are not known.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/model/model.h"

namespace pmaptrain::model {

enum class PredictionKind : std::uint8_t {
  classes,        // i32: the class, or 0 and 1 for each output of sigmoid_cross_entropy
  probabilities,  // what the loss makes of the outputs: softmax along the last dimension, or sigmoid
  logits,         // the outputs of the last layer, if the loss is one of classes
  values          // the outputs of the last layer, if the loss is one of numbers
};

// The node of this path that computes something; null if there is none.
const Node* node_named(const Model& model, std::string_view path);

// The program of the outputs of a node, as f32: its inputs are those of a prediction step, its output "predictions" is
// [B, Node::output...]. Behind a sequence with lengths they are zeros.
Program features_program(const Model& model, const Mesh& mesh, AxisSet axes, std::int64_t rows_per_device,
                         const OpSet& ops, const Node& node);

// The shape of the prediction of one example.
Shape prediction_shape(const Model& model, PredictionKind kind);

// The program of a prediction step. Its inputs are the parameters, "lengths" i32[B] of sequences of different lengths,
// and a batch of inputs; its output "predictions" is [B, prediction_shape...] and varies over `axes`. If the last layer
// is the softmax or sigmoid that the loss applies too, its outputs are the probabilities: the function is not applied
// twice. A classifier has the kinds classes, probabilities and logits, another model only values. With `choices` a
// class is one of the first so many outputs.
Program prediction_program(const Model& model, const Mesh& mesh, AxisSet axes, std::int64_t rows_per_device,
                           const OpSet& ops, PredictionKind kind, std::optional<std::int64_t> choices = std::nullopt);

// Of a model whose targets are one class for each position of a sequence: the program of the losses of the positions of
// a batch. Its inputs are those of a prediction step and "targets"; its output "predictions" is f32 [B, 2, T]: of each
// position the cross-entropy, unsmoothed and in nats, and the class with the largest probability. Positions whose label
// is ignored have any loss.
Program position_losses_program(const Model& model, const Mesh& mesh, AxisSet axes, std::int64_t rows_per_device,
                                const OpSet& ops);

// Two programs of one module: they share the parameters and, as state, the keys and values of each attention layer at
// each position, which both replace. Both have one example, and their output "predictions" is the logits.
struct Continuation {
  Program whole;  // inputs i32[1,T] -> [1,T,V]: a sequence from its first position on
  Program next;   // inputs i32[1,1], position i32[1] -> [1,1,V]: the token at `position`, after those in memory
};

// Of a model of tokens in which no position sees those after it. With what positions before it have left in memory,
// `next` gives the logits that `whole` has at its position, but for rounding.
Continuation continuation(const Model& model, const Mesh& mesh, const OpSet& ops);

}  // namespace pmaptrain::model
