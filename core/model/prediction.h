// What a model says about inputs whose targets are not known.
#pragma once

#include <cstdint>
#include <optional>

#include "core/model/model.h"

namespace pmaptrain::model {

enum class PredictionKind : std::uint8_t {
  classes,        // i32: the class, or 0 and 1 for each output of sigmoid_cross_entropy
  probabilities,  // what the loss makes of the outputs: softmax along the last dimension, or sigmoid
  logits,         // the outputs of the last layer, if the loss is one of classes
  values          // the outputs of the last layer, if the loss is one of numbers
};

// Whether the loss is one of classes, so that there are classes, probabilities and logits, but no values.
bool is_classifier(const Model& model);

// For a model with one output for each label, the value above which an output means class 1, with at least this
// probability: for 0.5 it is 0 for a logit, 0.5 if the last layer is a sigmoid. None if a label has several outputs.
std::optional<double> class_threshold(const Model& model, double probability = 0.5);
// Whether an example has one of two classes, with an output for each: class 1 may be predicted from another probability
// on than one half.
bool is_of_two_classes(const Model& model);
// How the class of an example follows from its outputs: the argmax, or for class 1 whether a number is above a
// threshold: the only output, the second one, or the second less the first.
struct Decision {
  enum class By : std::uint8_t { argmax, only_output, second, difference } by = By::argmax;
  double threshold = 0;
};
// That by which class 1 of two is predicted with more than this probability; of more classes the argmax.
Decision class_decision(const Model& model, double probability = 0.5);
// The predicted class, i32 [B], or [B,L] of each position of a sequence. The metric accuracy counts these.
Value predicted_class(Builder& b, Value output, const Decision& decision);

// What is predicted and what is true of several labels, as 0 and 1 [B, L]: 1 where an output is above the threshold,
// and where a target is above one half.
struct LabelDecisions {
  Value predicted, truth;
};
LabelDecisions label_decisions(Builder& b, Value output, Value targets, double threshold);

// The true class, i32 [B] or [B,L]: the label, or the argmax of the class probabilities.
Value true_class(Builder& b, Value targets);
// What the loss makes of the outputs of a classifier: softmax along the last dimension, or sigmoid. If the last layer
// is that function, returns the outputs.
Value probabilities(Builder& b, const Model& model, Value output);

// How predictions follow from the outputs of the last layer.
enum class OutputKind : std::uint8_t {
  softmax_logits,  // probabilities are their softmax along the last dimension
  sigmoid_logits,  // probabilities are their sigmoid
  log_rates,       // values are their exp
  identity         // the outputs are probabilities, or values, themselves
};
OutputKind output_kind(const Model& model);

// The shape of the prediction of one example.
Shape prediction_shape(const Model& model, PredictionKind kind);

// The program of a prediction step. Its inputs are the parameters and a batch of inputs; its output "predictions" is
// [B, prediction_shape...] and varies over `axes`. If the last layer is the softmax or sigmoid that the loss applies
// too, its outputs are the probabilities: the function is not applied twice. A classifier has the kinds classes,
// probabilities and logits, another model only values. With `choices` a class is one of the first so many outputs.
Program prediction_program(const Model& model, const Mesh& mesh, AxisSet axes, std::int64_t rows_per_device,
                           const OpSet& ops, PredictionKind kind, std::optional<std::int64_t> choices = std::nullopt);

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
