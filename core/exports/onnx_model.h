// The model of a run as a graph of ONNX.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/data/encoding.h"
#include "core/model/model.h"
#include "core/onnx/graph.h"

namespace pmaptrain::exports {

// A model with its parameters, f32, in the order of model::Model::parameters.
struct TrainedModel {
  model::Model model;
  std::vector<std::span<const std::byte>> parameters;
  std::shared_ptr<const void> memory = nullptr;  // of parameters that are no views of a file
};

// Appends inputs, nodes and outputs of what the members predict together; of one member, what it predicts.
//
// The input is "inputs", [N, input...], with the element type of the data, and of sequences of different lengths also
// "lengths", i32[N]. For a table it is one input [N,1] for each column: f32, or texts of categories; a category that is
// not in `encoding` counts as none with `ignores_unknown`, else it fails. An input with the name of an output is named
// "<name>_input". Normalisation is a part of the graph.
//
// The outputs are, for a loss of classes, "logits", what the last layer gives, and "probabilities"; else "values", in
// the units of the targets. The values and probabilities of several members are means, and "logits" are such that
// softmax, or sigmoid, gives the mean probabilities.
void append_models(onnx::Graph& graph, std::span<const TrainedModel> members, const data::Encoding& encoding,
                   bool ignores_unknown);

}  // namespace pmaptrain::exports
