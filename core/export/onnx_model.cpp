#include "core/export/onnx_model.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string_view>
#include <utility>

#include "core/model/prediction.h"

namespace pmaptrain::train {
namespace {

using model::OutputKind;
using onnx::ElementType;
using onnx::Graph;

constexpr std::string_view logits_name = "logits", probabilities_name = "probabilities", values_name = "values";

ElementType element_type(DType dtype) {
  switch (dtype) {
    case DType::u8: return ElementType::u8;
    case DType::i32: return ElementType::i32;
    case DType::i64: return ElementType::i64;
    case DType::f64: return ElementType::f64;
    case DType::f32: break;
    case DType::bf16:
    case DType::u32:
    case DType::boolean: assert(false); break;  // no data set has them
  }
  return ElementType::f32;
}

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
    parts.push_back(is_number ? number_column(graph, columns[i], inputs[i], numbers)
                              : category_column(graph, columns[i], inputs[i], ignores_unknown));
    if (!is_number && numbers == ElementType::f64) parts.back() = cast(graph, parts.back(), numbers);
  }
  return parts.size() == 1 ? parts.front() : graph.node("Concat", parts, {{"axis", std::int64_t{1}}});
}

// [N, input...] of f32, or of i32 for tokens, before the first layer: model::apply does the same.
std::string inputs_of(Graph& graph, const model::Model& model, const data::Encoding& encoding, bool ignores_unknown) {
  std::string x;
  const bool is_wide = model.input.dtype == DType::f64;
  const ElementType numbers = is_wide ? ElementType::f64 : ElementType::f32;
  if (!encoding.columns.empty()) {
    x = table(graph, encoding.columns, ignores_unknown, numbers);
  } else {
    x = graph.input("inputs", element_type(model.input.dtype), model.input.shape);
    graph.name_after("input");
    if (model.takes_tokens()) return model.input.dtype == DType::i32 ? x : cast(graph, x, ElementType::i32);
    if (model.input.dtype != DType::f32 && !is_wide) x = cast(graph, x, ElementType::f32);
    if (model.input.dtype == DType::u8) x = graph.node("Div", {x, graph.number(255)});
  }
  if (!model.normalize) return is_wide ? cast(graph, x, ElementType::f32) : x;
  const auto by_channel = [&](const std::vector<double>& values) {
    return graph.numbers(values, values.size() == 1 ? Shape() : Shape{std::ssize(values)}, numbers);
  };
  x = graph.node("Sub", {x, by_channel(model.normalize->mean)});
  x = graph.node("Div", {x, by_channel(model.normalize->std)});
  return is_wide ? cast(graph, x, ElementType::f32) : x;
}

// ---- layers ---------------------------------------------------------------------------------------------------------

// What the last layer gives, [N, output...]. Nodes are named after the layers, behind `prefix`.
std::string apply_layers(Graph& graph, const TrainedModel& member, const std::string& inputs,
                         const std::string& prefix) {
  const onnx::Value x = model::export_in_order(graph, member.model.layers, member.parameters, prefix, {inputs});
  return graph.channels_last(x);
}

// ---- outputs --------------------------------------------------------------------------------------------------------

// One number for each output, which of quantiles is that of their target; one alone is of all.
std::vector<double> of_outputs(const model::Model& model, const std::vector<double>& of_targets) {
  if (of_targets.size() <= 1) return of_targets;
  const std::size_t times = static_cast<std::size_t>(numel(model.output)) / of_targets.size();
  std::vector<double> numbers;
  for (const double number : of_targets) numbers.insert(numbers.end(), times, number);
  return numbers;
}

// exp(x) - 1 for the numbers of a target that have a logarithm: finite as f32, and at least 0.
std::string from_logarithms(Graph& graph, const model::Model& model, const std::string& x) {
  const auto number = [&](double value) { return graph.numbers({value}, {}, ElementType::f64); };
  std::string values = graph.node("Max", {x, number(0)});
  values = graph.node("Min", {values, number(model::largest_log_target)});
  values = graph.node("Sub", {graph.node("Exp", {values}), number(1)});
  const auto& logs = model.log_targets;
  if (std::find(logs.begin(), logs.end(), false) == logs.end()) return values;
  const std::vector<double> flags = of_outputs(model, {logs.begin(), logs.end()});
  const std::string is_log = graph.node("Greater", {graph.numbers(flags, model.output, ElementType::f64), number(0.5)});
  return graph.node("Where", {is_log, values, x});
}

// In f64, as model::in_units_of_targets.
std::string in_units_of_targets(Graph& graph, const model::Model& model, const std::string& output) {
  if (!model.target_statistics) return output;
  const auto for_each = [&](const std::vector<double>& of_targets) {
    const std::vector<double> numbers = of_outputs(model, of_targets);
    return graph.numbers(numbers, numbers.size() == 1 ? Shape() : model.output, ElementType::f64);
  };
  std::string x = cast(graph, output, ElementType::f64);
  x = graph.node("Mul", {x, for_each(model.target_statistics->std)});
  x = graph.node("Add", {x, for_each(model.target_statistics->mean)});
  if (!model.log_targets.empty()) x = from_logarithms(graph, model, x);
  return model::dtype_of_values(model) == DType::f64 ? x : cast(graph, x, ElementType::f32);
}

std::string mean_of(Graph& graph, const std::vector<std::string>& members, ElementType type = ElementType::f32) {
  if (members.size() == 1) return members.front();
  if (type == ElementType::f32) return graph.node("Mean", members);
  // ONNX Runtime has no Mean of f64.
  const std::string sum = graph.node("Sum", members);
  return graph.node("Div", {sum, graph.number(static_cast<double>(members.size()), type)});
}

onnx::Attributes along_last() { return {{"axis", std::int64_t{-1}}}; }

std::string probabilities_of(Graph& graph, OutputKind kind, const std::string& output) {
  if (kind == OutputKind::softmax_logits) return graph.node("Softmax", {output}, along_last());
  if (kind == OutputKind::sigmoid_logits) return graph.node("Sigmoid", {output});
  return output;
}

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
  const std::string inputs = inputs_of(graph, model, encoding, ignores_unknown);
  std::vector<std::string> outputs;
  for (std::size_t m = 0; m < members.size(); ++m) {
    const std::string prefix = members.size() == 1 ? "" : "member_" + std::to_string(m) + "/";
    outputs.push_back(apply_layers(graph, members[m], inputs, prefix));
  }
  graph.name_after("output");
  if (!model::is_classifier(model)) {
    const ElementType type = element_type(model::dtype_of_values(model));
    if (model::output_kind(model) == OutputKind::log_rates) {
      for (std::string& output : outputs) output = graph.node("Exp", {output});
    }
    std::string values;
    if (model.log_targets.empty()) {
      values = in_units_of_targets(graph, model, mean_of(graph, outputs));
    } else {  // the mean of logarithms is another one than that of values
      for (std::string& output : outputs) output = in_units_of_targets(graph, model, output);
      values = mean_of(graph, outputs, type);
    }
    graph.output(std::string(values_name), values, model.output, type);
    return;
  }
  const OutputKind kind = model::output_kind(model);
  const std::string logits = logits_of_mean(graph, kind, outputs);
  std::vector<std::string> each;
  each.reserve(outputs.size());
  for (const std::string& output : outputs) each.push_back(probabilities_of(graph, kind, output));
  const std::string probabilities = mean_of(graph, each);
  graph.output(std::string(logits_name), logits, model.output);
  graph.output(std::string(probabilities_name), probabilities, model.output);
}

}  // namespace pmaptrain::train
