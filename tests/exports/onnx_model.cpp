// The models of runs as graphs of ONNX. scripts/check_export.py compares what they compute with predict.
#include "core/exports/onnx_model.h"

#include <fmt/format.h>

#include <cstring>
#include <variant>

#include "core/base/text.h"
#include "core/layers/attention.h"
#include "core/layers/batch_norm.h"
#include "core/layers/conv.h"
#include "core/layers/dropout.h"
#include "core/layers/embedding.h"
#include "core/layers/nested.h"
#include "core/layers/norms.h"
#include "core/layers/parallel.h"
#include "core/layers/pooling.h"
#include "core/layers/positions.h"
#include "core/layers/recurrent.h"
#include "core/layers/reshape.h"
#include "core/layers/table_embedding.h"
#include "core/losses/mean_squared_error.h"
#include "tests/catch.h"
#include "tests/model/fixture.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using exports::TrainedModel;

namespace {

std::string shown(const onnx::AttributeValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* number = std::get_if<float>(&value)) return exact(*number);
  if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value)) return to_string(*numbers);
  return "[" + join(std::get<std::vector<std::string>>(value), ",") + "]";
}

// "conv_0/Conv = Conv[group=1] conv_0/Transpose, conv_0/kernel", a line for each node.
std::string shown(const onnx::Graph& graph) {
  std::string text;
  for (const onnx::Node& node : graph.nodes()) {
    std::vector<std::string> attributes;
    for (const onnx::Attribute& attribute : node.attributes) {
      attributes.push_back(attribute.name + "=" + shown(attribute.value));
    }
    text += node.output + " = " + node.op + (attributes.empty() ? "" : "[" + join(attributes, " ") + "]") + " " +
            join(node.inputs, ", ") + "\n";
  }
  return text;
}

std::string shown(const std::vector<onnx::Port>& ports) {
  std::string text;
  for (const onnx::Port& port : ports) {
    text += fmt::format("{} {} {}\n", port.name, static_cast<int>(port.type), to_string(port.shape));
  }
  return text;
}

// A model with parameters of zeros.
struct Zeros {
  explicit Zeros(model::Model made) : trained{std::move(made), {}} {
    for (const model::Parameter& parameter : trained.model.parameters) {
      elements.emplace_back(static_cast<std::size_t>(numel(parameter.shape)) * sizeof(float));
    }
    for (const auto& bytes : elements) trained.parameters.emplace_back(bytes);
  }
  std::vector<std::vector<std::byte>> elements;
  TrainedModel trained;
};

const onnx::Initializer& initializer(const onnx::Graph& graph, const std::string& name) {
  for (const onnx::Initializer& found : graph.initializers()) {
    if (found.name == name) return found;
  }
  throw std::logic_error("no initializer " + name);
}

}  // namespace

TEST_CASE("a convolutional network becomes a graph whose images have their channels first between its layers",
          "[exports]") {
  layers::Conv conv;
  conv.features = 4;
  conv.kernel_size = {3, 3};
  conv.strides = {2, 2};
  const layers::MaxPool pool{{2, 2}, {2, 2}, {layers::PaddingKind::same, {}}};
  Network net = network({layer("conv_0", conv), layer("relu_0", layers::Relu{}), layer("pool", pool),
                         layer("dropout_0", layers::Dropout{0.5}), layer("flatten_0", layers::Flatten{}),
                         layer("head", layers::Dense{3})});
  net.normalize = FieldStatistics{{0.5}, {0.1, 0.2, 0.3}};
  const Zeros zeros(model::make_model(net, {DType::u8, {8, 6, 3}}, labels));
  onnx::Graph graph;
  exports::append_models(graph, std::span(&zeros.trained, 1), {}, false);
  CHECK(shown(graph.inputs()) == "inputs 2 [8,6,3]\n");
  CHECK(shown(graph.outputs()) == "logits 1 [3]\nprobabilities 1 [3]\n");
  CHECK(shown(graph) ==
        "input/Cast = Cast[to=1] inputs\n"
        "input/Div = Div input/Cast, input/number\n"
        "input/Sub = Sub input/Div, input/number_2\n"
        "input/Div_2 = Div input/Sub, input/number_3\n"
        "conv_0/Transpose = Transpose[perm=[0,3,1,2]] input/Div_2\n"
        "conv_0/Conv = Conv[kernel_shape=[3,3] strides=[2,2] pads=[0,0,1,1] dilations=[1,1] group=1] "
        "conv_0/Transpose, conv_0/kernel, conv_0/bias\n"
        "relu_0/Relu = Relu conv_0/Conv\n"
        "pool/MaxPool = MaxPool[kernel_shape=[2,2] strides=[2,2] pads=[0,0,0,1]] relu_0/Relu\n"
        "flatten_0/Transpose = Transpose[perm=[0,2,3,1]] pool/MaxPool\n"
        "flatten_0/Reshape = Reshape flatten_0/Transpose, flatten_0/integers\n"
        "head/Gemm = Gemm flatten_0/Reshape, head/kernel, head/bias\n"
        "output/Softmax = Softmax[axis=-1] head/Gemm\n"
        "logits = Identity head/Gemm\n"
        "probabilities = Identity output/Softmax\n");
  CHECK(initializer(graph, "conv_0/kernel").shape == Shape{4, 3, 3, 3});
  CHECK(initializer(graph, "head/kernel").shape == Shape{16, 3});
}

TEST_CASE("a table is one input for each column, with its categories and what stands for missing numbers",
          "[exports]") {
  data::Encoding encoding;
  encoding.columns = {{"age", {}, 41.5}, {"city", {"", "Oslo", "Rome"}, {}}, {"values", {}, {}}};
  Network net = network({layer("head", layers::Dense{1})}, losses::MeanSquaredError{});
  net.target_statistics = FieldStatistics{{10}, {4}};
  const Zeros zeros(model::make_model(net, {DType::f32, {5}}, {DType::f32, {1}}));
  onnx::Graph graph;
  const bool ignores = GENERATE(false, true);
  exports::append_models(graph, std::span(&zeros.trained, 1), encoding, ignores);
  CHECK(shown(graph.inputs()) == "age 1 [1]\ncity 8 [1]\nvalues_input 1 [1]\n");
  CHECK(shown(graph.outputs()) == "values 1 [1]\n");
  CHECK(shown(graph) ==
        "input/IsNaN = IsNaN age\n"
        "input/Where = Where input/IsNaN, input/number, age\n"
        "input/OneHotEncoder = OneHotEncoder[cats_strings=[,Oslo,Rome] zeros=" +
            std::string(ignores ? "1" : "0") +
            "] city\n"
            "input/Reshape = Reshape input/OneHotEncoder, input/integers\n"
            "input/Concat = Concat[axis=1] input/Where, input/Reshape, values_input\n"
            "head/Gemm = Gemm input/Concat, head/kernel, head/bias\n"
            "output/Cast = Cast[to=11] head/Gemm\n"
            "output/Mul = Mul output/Cast, output/number\n"
            "output/Add = Add output/Mul, output/number_2\n"
            "output/Cast_2 = Cast[to=1] output/Add\n"
            "values = Identity output/Cast_2\n");
}

TEST_CASE("categories of table_embedding become the numbers of rows, which Gather takes", "[exports]") {
  data::Encoding encoding;
  encoding.columns = {{"city", {"Oslo", "Rome"}, {}, true}, {"age", {}, {}}};
  Network net = network({layer("t", layers::TableEmbedding{3, 0.5}), layer("head", layers::Dense{1})},
                        losses::MeanSquaredError{});
  net.columns = {{"city", 2}, {"age"}};
  const Zeros zeros(model::make_model(net, {DType::f32, {2}}, {DType::f32, {1}}));
  onnx::Graph graph;
  exports::append_models(graph, std::span(&zeros.trained, 1), encoding, true);
  CHECK(shown(graph.inputs()) == "city 8 [1]\nage 1 [1]\n");
  CHECK(shown(graph) ==
        "input/OneHotEncoder = OneHotEncoder[cats_strings=[Oslo,Rome] zeros=1] city\n"
        "input/Reshape = Reshape input/OneHotEncoder, input/integers\n"
        "input/MatMul = MatMul input/Reshape, input/number\n"
        "input/Concat = Concat[axis=1] input/MatMul, age\n"
        "t/Slice = Slice input/Concat, t/integers, t/integers_2, t/integers_3\n"
        "t/Cast = Cast[to=6] t/Slice\n"
        "t/Reshape = Reshape t/Cast, t/integers_4\n"
        "t/Gather = Gather t/city.embedding, t/Reshape\n"
        "t/Slice_2 = Slice input/Concat, t/integers_5, t/integers_6, t/integers_7\n"
        "t/Concat = Concat[axis=1] t/Gather, t/Slice_2\n"
        "head/Gemm = Gemm t/Concat, head/kernel, head/bias\n"
        "values = Identity head/Gemm\n");
}

TEST_CASE("the members of an ensemble read one input, and their probabilities have a mean", "[exports]") {
  const Zeros zeros(model::make_model(network({layer("head", layers::Dense{2})}), {DType::f32, {3}}, labels));
  onnx::Graph graph;
  const TrainedModel members[] = {zeros.trained, zeros.trained};
  exports::append_models(graph, members, {}, false);
  CHECK(shown(graph) ==
        "member_0/head/Gemm = Gemm inputs, member_0/head/kernel, member_0/head/bias\n"
        "member_1/head/Gemm = Gemm inputs, member_1/head/kernel, member_1/head/bias\n"
        "output/LogSoftmax = LogSoftmax[axis=-1] member_0/head/Gemm\n"
        "output/LogSoftmax_2 = LogSoftmax[axis=-1] member_1/head/Gemm\n"
        "output/Unsqueeze = Unsqueeze output/LogSoftmax, output/integers\n"
        "output/Unsqueeze_2 = Unsqueeze output/LogSoftmax_2, output/integers\n"
        "output/Concat = Concat[axis=0] output/Unsqueeze, output/Unsqueeze_2\n"
        "output/ReduceLogSumExp = ReduceLogSumExp[axes=[0] keepdims=0] output/Concat\n"
        "output/Sub = Sub output/ReduceLogSumExp, output/number\n"
        "output/Softmax = Softmax[axis=-1] member_0/head/Gemm\n"
        "output/Softmax_2 = Softmax[axis=-1] member_1/head/Gemm\n"
        "output/Mean = Mean output/Softmax, output/Softmax_2\n"
        "logits = Identity output/Sub\n"
        "probabilities = Identity output/Mean\n");
}

TEST_CASE("the sum of a residual layer has the order of dimensions of its convolutions", "[exports]") {
  layers::Conv conv;
  conv.features = 3;
  conv.kernel_size = {3, 3};
  conv.use_bias = false;
  const layers::Residual block{{layer("conv_0", conv), layer("relu_0", layers::Relu{})}, {}};
  const layers::Repeat twice{2, {layer("block", block)}};
  const Network net = network({layer("repeat_0", twice), layer("flatten_0", layers::Flatten{}),
                               layer("tail", layers::Residual{{layer("dense_0", layers::Dense{4, false})},
                                                              {layer("dense_0", layers::Dense{4, false})}})});
  const Zeros zeros(model::make_model(net, {DType::f32, {2, 2, 3}}, labels));
  onnx::Graph graph;
  exports::append_models(graph, std::span(&zeros.trained, 1), {}, false);
  const std::string attributes = "Conv[kernel_shape=[3,3] strides=[1,1] pads=[1,1,1,1] dilations=[1,1] group=1] ";
  CHECK(shown(graph) ==
        "repeat_0.0.block.conv_0/Transpose = Transpose[perm=[0,3,1,2]] inputs\n"
        "repeat_0.0.block.conv_0/Conv = " +
            attributes +
            "repeat_0.0.block.conv_0/Transpose, repeat_0.0.block.conv_0/kernel\n"
            "repeat_0.0.block.relu_0/Relu = Relu repeat_0.0.block.conv_0/Conv\n"
            "repeat_0.0.block/Add = Add repeat_0.0.block.relu_0/Relu, repeat_0.0.block.conv_0/Transpose\n"
            "repeat_0.1.block.conv_0/Conv = " +
            attributes +
            "repeat_0.0.block/Add, repeat_0.1.block.conv_0/kernel\n"
            "repeat_0.1.block.relu_0/Relu = Relu repeat_0.1.block.conv_0/Conv\n"
            "repeat_0.1.block/Add = Add repeat_0.1.block.relu_0/Relu, repeat_0.0.block/Add\n"
            "flatten_0/Transpose = Transpose[perm=[0,2,3,1]] repeat_0.1.block/Add\n"
            "flatten_0/Reshape = Reshape flatten_0/Transpose, flatten_0/integers\n"
            "tail.dense_0/Gemm = Gemm flatten_0/Reshape, tail.dense_0/kernel\n"
            "tail.shortcut.dense_0/Gemm = Gemm flatten_0/Reshape, tail.shortcut.dense_0/kernel\n"
            "tail/Add = Add tail.dense_0/Gemm, tail.shortcut.dense_0/Gemm\n"
            "output/Softmax = Softmax[axis=-1] tail/Add\n"
            "logits = Identity tail/Add\n"
            "probabilities = Identity output/Softmax\n");
}

TEST_CASE("the equations of a layer become the operators that other programs know", "[exports]") {
  struct Case {
    Shape input;
    layers::LayerKind layer;
    std::string operators;
  };
  layers::Gelu exact;
  exact.approximate = layers::GeluFunction::exact;
  layers::BatchNorm plain;
  plain.use_scale = plain.use_bias = false;
  layers::GroupNorm groups;
  groups.num_groups = 2;
  layers::Conv conv;
  conv.features = 2;
  conv.kernel_size = {1, 1};
  layers::Attention attention;
  attention.heads = 2;
  attention.causal = true;
  layers::Attention shared = attention;
  shared.kv_heads = 1;
  shared.rotary.emplace();
  shared.qk_norm = true;
  shared.use_bias = false;
  layers::Parallel gate{{{"skip", {}}, {"gate", {layer("global_avg_pool_0", layers::GlobalAvgPool{})}}},
                        layers::Join::multiply};
  layers::Take take;
  take.position.index = 1;
  const std::string norm = "ReduceMean Sub Mul ReduceMean Add Sqrt Div ";
  const std::string turned = norm + "Mul Slice Slice Mul Mul Mul Mul Sub Add Concat ";
  const Case cases[] = {
      {{6}, layers::Dense{3}, "Gemm "},
      {{2, 6}, layers::Dense{3}, "MatMul Add "},
      {{4, 4, 3}, conv, "Transpose Conv "},
      {{4, 4, 3}, layers::GlobalAvgPool{}, "ReduceMean "},
      {{4, 4, 3}, gate, "Unsqueeze Mul "},
      {{4, 3}, layers::ClassToken{}, "Shape Concat Expand Concat "},
      {{4, 3}, take, "Slice Reshape "},
      {{6}, layers::Sigmoid{}, "Sigmoid "},
      {{6}, layers::Silu{}, "Sigmoid Mul "},
      {{6}, layers::Softplus{}, "Softplus "},
      {{6}, layers::LeakyRelu{}, "LeakyRelu "},
      {{6}, layers::Elu{}, "Elu "},
      {{6}, exact, "Mul Mul Erf Add Mul "},
      {{2, 6}, layers::Softmax{}, "Softmax "},
      {{6}, layers::BatchNorm{}, "BatchNormalization "},
      {{6}, plain, "BatchNormalization "},
      {{2, 6}, layers::BatchNorm{}, "Sub Mul Add "},
      {{2, 6}, layers::LayerNorm{}, norm + "Mul Add "},
      {{2, 6}, layers::RmsNorm{}, "Mul ReduceMean Add Sqrt Div Mul "},
      {{4, 4, 6}, groups, "Reshape " + norm + "Reshape Mul Add "},
      {{5, 4},
       attention,
       "MatMul Add Reshape MatMul Add Reshape MatMul Add Reshape Transpose Transpose MatMul Mul Add Softmax Transpose "
       "MatMul Transpose Reshape MatMul Add "},
      {{5, 4},
       shared,
       "MatMul Reshape " + turned + "MatMul Reshape " + turned +
           "MatMul Reshape Reshape Transpose Transpose Unsqueeze MatMul Mul Add Softmax Transpose Unsqueeze MatMul "
           "Transpose Reshape Reshape MatMul "},
  };
  for (const Case& one : cases) {
    const std::vector<layers::Layer> layers{layer("one", one.layer), layer("flatten_0", layers::Flatten{}),
                                            layer("head", layers::Dense{3})};
    const Zeros zeros(model::make_model(network(layers), {DType::f32, one.input}, labels));
    onnx::Graph graph;
    exports::append_models(graph, std::span(&zeros.trained, 1), {}, false);
    std::string operators;
    for (const onnx::Node& node : graph.nodes()) {
      if (node.name.starts_with("one/")) operators += node.op + " ";
    }
    INFO(one.layer->name() << " of " << to_string(one.input));
    CHECK(operators == one.operators);
  }
}

TEST_CASE("branches are concatenated in the order of dimensions of their convolutions", "[exports]") {
  layers::Conv conv;
  conv.features = 2;
  conv.kernel_size = {1, 1};
  conv.use_bias = false;
  const layers::Parallel block{{{"skip", {}}, {"deep", {layer("conv_0", conv)}}}, layers::Join::concat};
  const Network net = network({layer("one", block), layer("two", block), layer("flatten_0", layers::Flatten{})});
  const Zeros zeros(model::make_model(net, {DType::f32, {2, 2, 3}}, labels));
  onnx::Graph graph;
  exports::append_models(graph, std::span(&zeros.trained, 1), {}, false);
  const std::string attributes = "Conv[kernel_shape=[1,1] strides=[1,1] pads=[0,0,0,0] dilations=[1,1] group=1] ";
  CHECK(shown(graph) ==
        "one.deep.conv_0/Transpose = Transpose[perm=[0,3,1,2]] inputs\n"
        "one.deep.conv_0/Conv = " +
            attributes +
            "one.deep.conv_0/Transpose, one.deep.conv_0/kernel\n"
            "one/Concat = Concat[axis=1] one.deep.conv_0/Transpose, one.deep.conv_0/Conv\n"
            "two.deep.conv_0/Conv = " +
            attributes +
            "one/Concat, two.deep.conv_0/kernel\n"
            "two/Concat = Concat[axis=1] one/Concat, two.deep.conv_0/Conv\n"
            "flatten_0/Transpose = Transpose[perm=[0,2,3,1]] two/Concat\n"
            "flatten_0/Reshape = Reshape flatten_0/Transpose, flatten_0/integers\n"
            "output/Softmax = Softmax[axis=-1] flatten_0/Reshape\n"
            "logits = Identity flatten_0/Reshape\n"
            "probabilities = Identity output/Softmax\n");
}

TEST_CASE("a recurrent layer from the ends of sequences of different lengths takes these", "[exports]") {
  layers::Gru both{4};
  both.bidirectional = true;
  layers::Lstm backward{3, layers::Returned::last};
  backward.reverse = true;
  model::Options net = network({layer("tokens", layers::Embedding{9, 4}), layer("both", both),
                                layer("class_token_0", layers::ClassToken{}), layer("backward", backward)});
  net.lengths = true;
  const Zeros zeros(model::make_model(net, {DType::i32, {6}}, labels));
  onnx::Graph graph;
  exports::append_models(graph, std::span(&zeros.trained, 1), {}, false);
  std::string recurrences, others;
  for (const onnx::Node& node : graph.nodes()) {
    const bool is_recurrence = node.op == "GRU" || node.op == "LSTM";
    if (is_recurrence) recurrences += node.op + " takes " + join(node.inputs, " ") + "\n";
    if (node.name.starts_with("both/") && !is_recurrence) others += node.op + " ";
  }
  CHECK(recurrences ==
        "GRU takes both/Transpose both/inputs both/states both/bias\n"
        "GRU takes both/Transpose_3 both/inputs_2 both/states_2 both/bias_2 lengths\n"
        "LSTM takes backward/Transpose backward/inputs backward/states backward/bias backward/Add\n");
  CHECK(others == "Transpose Squeeze Transpose Transpose Squeeze Transpose Concat ");
}

TEST_CASE("the last position of sequences of any length is counted from their end", "[exports]") {
  layers::Take take;
  take.position.is_last = GENERATE(true, false);
  take.position.index = 5;
  const Zeros zeros(model::make_model(
      network({layer("tokens", layers::Embedding{9, 4}), layer("take_0", take), layer("head", layers::Dense{3})}),
      {DType::i32, {6}}, labels));
  onnx::Graph graph;
  exports::append_models(graph, std::span(&zeros.trained, 1), {}, false);
  // A number says how long sequences are at least.
  CHECK(shown(graph.inputs()) == (take.position.is_last ? "inputs 6 [-1]\n" : "inputs 6 [6]\n"));
  std::vector<std::int64_t> start(1);
  const onnx::Initializer& first = initializer(graph, "take_0/integers");
  std::memcpy(start.data(), first.bytes.data(), sizeof(std::int64_t));
  CHECK(start.front() == (take.position.is_last ? -1 : 5));
}

TEST_CASE("the length of sequences is open behind windows that slide by one position", "[exports]") {
  layers::Conv conv{4, {3}};
  conv.strides = {GENERATE(1, 2)};
  const std::int64_t length = GENERATE(6, 7);
  const Zeros zeros(
      model::make_model(network({layer("tokens", layers::Embedding{9, 4}), layer("conv_0", conv),
                                 layer("pool", layers::GlobalAvgPool{}), layer("head", layers::Dense{3})}),
                        {DType::i32, {length}}, labels));
  onnx::Graph graph;
  exports::append_models(graph, std::span(&zeros.trained, 1), {}, false);
  CHECK(shown(graph.inputs()) == "inputs 6 [" + (conv.strides.front() == 1 ? "-1" : std::to_string(length)) + "]\n");
}

TEST_CASE("the length of sequences is open where each layer takes any", "[exports]") {
  layers::Attention attention;
  attention.heads = 2;
  attention.causal = true;
  attention.rotary.emplace();
  const bool is_open = GENERATE(true, false);
  const std::int64_t rows = GENERATE(6, 8);  // of the table of positions
  std::vector<layers::Layer> layers{layer("tokens", layers::Embedding{9, 4}),
                                    layer("position_embedding_0", layers::PositionEmbedding{rows}),
                                    layer("attention_0", attention), layer("attend_0", layers::Attend{"tokens"})};
  if (!is_open) layers.push_back(layer("reshape_0", layers::Reshape{{6, 9}}));
  const Zeros zeros(model::make_model(network(layers), {DType::i32, {6}}, {DType::i32, {6}}));
  onnx::Graph graph;
  exports::append_models(graph, std::span(&zeros.trained, 1), {}, false);
  const std::string length = is_open ? "-1" : "6";
  CHECK(shown(graph.inputs()) == "inputs 6 [" + length + "]\n");
  CHECK(shown(graph.outputs()) == "logits 1 [" + length + ",9]\nprobabilities 1 [" + length + ",9]\n");
  std::string operators;
  for (const onnx::Node& node : graph.nodes()) {
    if (node.name.starts_with("position")) operators += node.op + " ";
  }
  CHECK(operators == (is_open ? "Shape Slice Add " : "Add "));
  CHECK(initializer(graph, "position_embedding_0/embedding").shape == Shape{6, 4});
}
