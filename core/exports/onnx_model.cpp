#include "core/exports/onnx_model.h"

#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>

#include "core/exports/translation.h"
#include "core/graph/builder.h"
#include "core/model/prediction.h"
#include "core/ops/all.h"

namespace pmaptrain::exports {
namespace {

using model::OutputKind;
using onnx::ElementType;
using onnx::Graph;

constexpr std::string_view logits_name = "logits", probabilities_name = "probabilities", values_name = "values";

std::string cast(Graph& graph, const std::string& x, ElementType to) {
  return graph.node("Cast", {x}, {{"to", static_cast<std::int64_t>(to)}});
}

// ---- inputs ---------------------------------------------------------------------------------------------------------

std::string input_name(const std::string& column) {
  const bool is_output = column == logits_name || column == probabilities_name || column == values_name;
  return is_output ? column + "_input" : column;
}

// [N,1]: the number, or the mean that stands for one that is missing.
std::string number_column(Graph& graph, const data::Encoding::Column& column, const std::string& input,
                          ElementType type) {
  if (!column.missing) return input;
  const std::string is_missing = graph.node("IsNaN", {input});
  return graph.node("Where", {is_missing, graph.numbers({*column.missing}, {}, type), input});
}

// [N,C]: 1 for the category, of C.
std::string category_column(Graph& graph, const data::Encoding::Column& column, const std::string& input,
                            bool ignores_unknown) {
  const std::string one_hot = graph.node(
      "OneHotEncoder", {input}, {{"cats_strings", column.categories}, {"zeros", std::int64_t{ignores_unknown}}},
      std::string(onnx::ml_domain));
  return graph.node("Reshape", {one_hot, graph.integers({0, std::ssize(column.categories)})});
}

// [N,1]: the number of the category, from 1; 0 for none.
std::string number_of_category(Graph& graph, const data::Encoding::Column& column, const std::string& input,
                               bool ignores_unknown) {
  std::vector<double> numbers(column.categories.size());
  std::iota(numbers.begin(), numbers.end(), 1.0);
  const std::string one_hot = category_column(graph, column, input, ignores_unknown);  // it refuses others, if asked to
  return graph.node("MatMul", {one_hot, graph.numbers(numbers, {std::ssize(numbers), 1})});
}

// [N, columns], of `numbers`: f32, or f64 where the run normalises f64.
std::string table(Graph& graph, const std::vector<data::Encoding::Column>& columns, bool ignores_unknown,
                  ElementType numbers) {
  std::vector<std::string> inputs, parts;
  for (const data::Encoding::Column& column : columns) {
    const ElementType type = column.categories.empty() ? numbers : ElementType::text;
    inputs.push_back(graph.input(input_name(column.name), type, {1}));
  }
  graph.name_after("input");
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const bool is_number = columns[i].categories.empty();
    parts.push_back(is_number             ? number_column(graph, columns[i], inputs[i], numbers)
                    : columns[i].numbered ? number_of_category(graph, columns[i], inputs[i], ignores_unknown)
                                          : category_column(graph, columns[i], inputs[i], ignores_unknown));
    if (!is_number && numbers == ElementType::f64) parts.back() = cast(graph, parts.back(), numbers);
  }
  return parts.size() == 1 ? parts.front() : graph.node("Concat", parts, {{"axis", std::int64_t{1}}});
}

// The shape of one example.
Shape example_of(const Translation& of, Value value) {
  const Shape shape = of.open_shape(value);
  return {shape.begin() + 1, shape.end()};
}

// [N, input...] with the element type of the data.
std::string inputs_of(Graph& graph, const model::Model& model, Shape shape, const data::Encoding& encoding,
                      bool ignores_unknown) {
  const ElementType type = element_type(model.input.dtype);
  if (encoding.columns.empty()) return graph.input("inputs", type, std::move(shape));
  return table(graph, encoding.columns, ignores_unknown, type);
}

// ---- outputs --------------------------------------------------------------------------------------------------------

// What `function` of core/model makes of an output of the last layer.
std::string applied(Graph& graph, const model::Model& model, const std::string& output,
                    Value (*function)(Builder&, const losses::Objective&, Value)) {
  Program program;
  Builder b(program, all_ops());
  Shape shape{rows_of_programs};
  shape.insert(shape.end(), model.output.begin(), model.output.end());
  const Value x = b.input(Group::batch, "output", {model.dtype, std::move(shape), {}});
  const Builder::Scope scope(b, {"output", {}});
  const Value result = function(b, model, x);
  Translation translation(graph, program);
  translation.bind(x, {output, {}});
  translation.run("");
  return translation.name(result);
}

std::string mean_of(Graph& graph, const std::vector<std::string>& members, ElementType type = ElementType::f32) {
  if (members.size() == 1) return members.front();
  if (type == ElementType::f32) return graph.node("Mean", members);
  // ONNX Runtime has no Mean of f64.
  const std::string sum = graph.node("Sum", members);
  return graph.node("Div", {sum, graph.number(static_cast<double>(members.size()), type)});
}

onnx::Attributes along_last() { return {{"axis", std::int64_t{-1}}}; }

// log(sum(exp(x))) over the members, each [N, output...].
std::string log_sum_of(Graph& graph, const std::vector<std::string>& members) {
  std::vector<std::string> rows;
  const onnx::Attributes first{{"axes", std::vector<std::int64_t>{0}}, {"keepdims", std::int64_t{0}}};
  const std::string zero = graph.integers({0});
  rows.reserve(members.size());
  for (const std::string& member : members) rows.push_back(graph.node("Unsqueeze", {member, zero}));
  return graph.node("ReduceLogSumExp", {graph.node("Concat", rows, {{"axis", std::int64_t{0}}})}, first);
}

// Logits of the mean of the members' probabilities, by sums of logarithms: no probability is too small for f32.
std::string logits_of_mean(Graph& graph, OutputKind kind, const std::vector<std::string>& outputs) {
  if (outputs.size() == 1 || kind == OutputKind::identity) return mean_of(graph, outputs);
  std::vector<std::string> for_it, against;
  if (kind == OutputKind::softmax_logits) {
    for (const std::string& output : outputs) for_it.push_back(graph.node("LogSoftmax", {output}, along_last()));
    const double all = std::log(static_cast<double>(outputs.size()));
    return graph.node("Sub", {log_sum_of(graph, for_it), graph.number(all)});
  }
  // log(sigmoid(x)) = -softplus(-x)
  for (const std::string& output : outputs) {
    const std::string negative = graph.node("Neg", {output});
    for_it.push_back(graph.node("Neg", {graph.node("Softplus", {negative})}));
    against.push_back(graph.node("Neg", {graph.node("Softplus", {output})}));
  }
  const std::string one = log_sum_of(graph, for_it), other = log_sum_of(graph, against);
  return graph.node("Sub", {one, other});
}

}  // namespace

void append_models(Graph& graph, std::span<const TrainedModel> members, const data::Encoding& encoding,
                   bool ignores_unknown) {
  const model::Model& model = members.front().model;
  const Program program =
      model::prediction_program(model, Mesh(), {}, rows_of_programs, all_ops(), model::PredictionKind::logits);
  // The program declares the parameters in their order, then lengths, then the inputs.
  Translation inputs(graph, program, length_dims(model, program));
  if (model.has_lengths) {
    const Value lengths = program.inputs[program.inputs.size() - 2].value;
    inputs.bind(lengths, {graph.input("lengths", element_type(DType::i32), {}), {}});
  }
  const Value x = program.inputs.back().value;
  inputs.bind(x, {inputs_of(graph, model, example_of(inputs, x), encoding, ignores_unknown), {}});
  inputs.run_scope("input");
  std::vector<std::string> outputs;
  for (std::size_t m = 0; m < members.size(); ++m) {
    Translation member = inputs;
    for (std::size_t i = 0; i < members[m].parameters.size(); ++i) {
      const Input& parameter = program.inputs[i];
      member.bind(parameter.value,
                  {{}, {}, Known{parameter.name, program.type(parameter.value), members[m].parameters[i]}});
    }
    member.run(members.size() == 1 ? "" : "member_" + std::to_string(m) + "/");
    outputs.push_back(member.name(program.outputs.front().value));
  }
  const Shape shape = example_of(inputs, program.outputs.front().value);
  graph.name_after("output");
  const OutputKind kind = model::output_kind(model);
  if (!model::is_classifier(model)) {
    const ElementType type = element_type(model::dtype_of_values(model));
    // Where values are linear in the outputs, the mean of the outputs comes first.
    if (model.log_targets.empty() && kind != OutputKind::log_rates) outputs = {mean_of(graph, outputs)};
    for (std::string& output : outputs) output = applied(graph, model, output, model::in_units_of_targets);
    graph.output(std::string(values_name), mean_of(graph, outputs, type), shape, type);
    return;
  }
  const std::string logits = logits_of_mean(graph, kind, outputs);
  for (std::string& output : outputs) output = applied(graph, model, output, model::probabilities);
  const std::string probabilities = mean_of(graph, outputs);
  graph.output(std::string(logits_name), logits, shape);
  graph.output(std::string(probabilities_name), probabilities, shape);
}

}  // namespace pmaptrain::exports
