// The layers of a model as a tree of nodes: their checked shapes and parameters, and the equations that they append.
// What a layer's plan() (layer.h) takes and returns.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/equations/numbers.h"
#include "core/graph/builder.h"
#include "core/layers/initializers.h"
#include "core/layers/layer.h"
#include "core/layers/lengths.h"
#include "core/mesh/mesh.h"

namespace pmaptrain::layers {

using namespace equations;

// How devices along axes of the mesh divide a layer (parallelism.tensor; division.h).
enum class Division : std::uint8_t {
  whole,    // not: each computes all of it
  columns,  // its output: each has some features, the last dimension
  rows,     // its input: each has some features, and what it computes of them is one term of a sum
  keeps,    // its input and its output, of which it computes each feature by itself
  inside    // what is between the two, such as heads
};

// What of a layer may be divided: plan() says.
struct Divisible {
  bool columns = false, rows = false, keeps = false, inside = false;
  // Of `inside`: how many units are divided evenly, and their name. 0: any number; the last devices have padding.
  std::int64_t units = 0;
  std::string_view unit = "features";
  std::int64_t shared_units = 0;  // kv_heads, which may also be fewer than devices
};

// Which dimension of a parameter is divided where its layer is: by columns, by rows, or inside by either. Without one
// devices have all of it; where each reads it for its own part of the layer, `by_parts`.
struct Cut {
  std::optional<std::size_t> columns = {}, rows = {};
  bool by_parts = false;
};

// How PyTorch stores a parameter (layout.h).
struct TorchParameter {
  std::string field = {};                   // "weight" for a kernel; empty: the name that it has here
  std::vector<std::int64_t> axes = {};      // dimension i there is dimension axes[i] here; empty: the same order
  std::optional<std::int64_t> merged = {};  // dimensions `merged` and merged + 1 here are one there
  // PyTorch stores several parameters in one array, `whole`, as `parts` equal ranges of its first dimension: this one
  // is range `part`. PyTorch adds the same range of the array `added`. Empty: there is no such array.
  std::string whole = {}, added = {};
  std::int64_t part = 0, parts = 1;
  std::size_t reversed = 0;  // so many of the first dimensions here are in reverse order there
};

// What a parameter is where a model is adapted (core/model/lora.h). Base parameters stay as they are, and no checkpoint
// has them.
enum class LoraRole { none, base, adapter };

struct Parameter {
  std::string name;  // its path: conv_0.kernel
  Shape shape;
  Initializer initializer;
  Place place;  // of its layer
  TorchParameter torch = {};
  Shape image = {};  // [height,width,channels] if the first dimension runs over a flattened image
  // Whether it is a statistic of the model, such as a running mean: a step replaces it without a gradient.
  bool is_state = false;
  // By dimension: the axes along which devices divide it (core/mesh/layout.h).
  std::vector<std::vector<int>> divided = {};
  // Axes along which all devices have all of it, and read it as values that differ: a scale that divided heads share.
  // Its gradient is summed along these too.
  AxisSet read_along = {};
  Cut cut = {};
  // [in, out] of a kernel by which the layer multiplies rows (product.h), so that an adapter may stand beside it.
  Shape matrix = {};
  bool may_be_rounded = false;  // whether layers cast it to the type of what they compute, so that it may be bf16
  LoraRole lora = LoraRole::none;
  std::optional<DType> stored_as = {};  // in programs; none: the type of the model

  Layout layout() const { return {shape, divided}; }
};

struct Node;

// The sum over the examples of a device of what replaces a statistic, and the number of these examples ([1]), of
// sequences with lengths of their positions, or 0 if they have too few values for a statistic. The mean over the
// examples of a step replaces it, in part (Node::momentum).
struct StatisticSum {
  std::size_t parameter = 0;  // in Model::parameters
  Value sum, weight;
};

// [B, K, S, D]: the keys and values of an attention layer at S positions, as its queries meet them.
struct KeysAndValues {
  Value keys, values;
};

// The keys and values of all attention layers, in the order in which these are applied.
struct Cache {
  // i32[1]: the inputs are one token at this position, which also meets what `before` has at the positions before it.
  // None: the inputs are whole sequences.
  std::optional<Value> position = {};
  std::vector<KeysAndValues> before = {};
  std::vector<KeysAndValues> after = {};  // what the pass leaves
};

// What the forward pass of a model reads.
struct Forward {
  Value inputs;                       // [B, input...] with the element type of the data
  std::span<const Value> parameters;  // in the order of Model::parameters
  bool training = false;
  std::span<const Value> dropout_keys = {};         // in training: u32[2] by Model::drawing_layers
  std::optional<Value> rows = {};                   // in training: i64[B]
  Numbers numbers = {};                             // in training: of the layers
  std::optional<Value> mask = {};                   // in training: f32[B], above 0 for examples; 0 for padding
  const std::vector<bool>* trained = nullptr;       // by parameter: whether it is not frozen; null: all are trained
  std::vector<StatisticSum>* statistics = nullptr;  // in training: where nodes with statistics add their sums
  Cache* cache = nullptr;                           // not in training: of attention that is causal
  std::vector<Value>* looked_up = nullptr;          // by parameter: where embedding layers leave the rows at the inputs
  std::optional<Value> lengths = {};                // i32[B], if examples are sequences of different lengths

  // The position of the only token; none: the inputs have all positions from 0 on.
  std::optional<Value> position() const { return cache != nullptr ? cache->position : std::nullopt; }
};

// The arguments of Node::apply besides x. In training, layers that draw random numbers also get `key` (u32[2]) and
// `rows` (i64[B], the position of each example in the sample stream).
struct LayerCall {
  Builder& b;
  const Node& node;
  const Forward& forward;             // from which a node with children applies them: apply(b, child, forward, x)
  std::span<const Value> parameters;  // in the order of Node::parameters
  bool training = false;
  const Numbers& numbers;  // in training
  std::optional<Value> key = {};
  std::optional<Value> rows = {};

  // Where the layer keeps its input divided or takes it so: the axes; else none.
  AxisSet input_axes() const;
  // Whether the node has parameters of its own to train, and all of them are frozen.
  bool is_frozen() const;
  // i32[B]: how many positions of x are those of the example; none if all are.
  std::optional<Value> lengths() const;
  // x [B,T,...] with `otherwise` at the other positions.
  Value inside_or(Value x, double otherwise) const;
};

// A term of low rank beside a kernel: x · kernel + scale · (dropped x) · a · b.
struct Adapter {
  std::string name;                      // of the kernel without its last part: attention_0.query
  std::size_t kernel = 0, a = 0, b = 0;  // places in Node::parameters
  double scale = 1.0;
  bool drops = false;   // whether x is dropped in training, at the numbers "lora/dropout/rate" and "lora/dropout/scale"
  std::size_t key = 0;  // its place in Model::drawing_layers (number_nodes); if it drops
};

// Element types. Products accumulate in f32 whatever their operands are.
struct Precision {
  DType storage = DType::f32;  // of parameters, gradients, the loss, and a layer's sums and nonlinear functions
  DType compute = DType::f32;  // of the operands of products, and of activations and their cotangents
};

// A layer, or a part of the model that consists of other nodes. A node without `apply` is a list: it applies its
// children in order.
struct Node {
  std::string name;  // its path: block.conv_0
  std::string kind;  // "conv"
  Place place;
  DType compute = DType::f32;              // of its output, and of its input if it has no children
  Shape input, output;                     // of one example
  std::vector<Parameter> parameters = {};  // its own, without those of its children
  bool draws = false;                      // draws random numbers in training
  bool takes_tokens = false;               // its input is i32: not cast to `compute`
  std::string shared_name = {};            // of a parameter of another layer that it reads too; empty: none
  std::vector<Number> numbers = {};        // the numbers that it reads in training
  double momentum = 0;                     // the share of a statistic that a step keeps
  AxisSet statistics_axes = {};            // the axes over which its statistics are; with statistics
  std::vector<Adapter> adapters = {};      // of its own kernels (core/model/lora.h)
  std::vector<Node> children = {};
  bool remat = false;  // the backward pass computes what is inside again from the input
  Divisible divisible = {};
  bool stays_whole = false;  // as the config says: tensor: none
  Division division = Division::whole;
  AxisSet division_axes = {};
  std::string whole_because = {};  // why it is not divided where others are
  bool gathers_output = false;     // divided by columns, with an output that is whole
  // [height,width,channels] if `output` is an image that was flattened to one dimension, or a sequence that windows
  // gave: an image of height 1. A volume has its depth in the height. PyTorch has the channels of all before all else.
  Shape image = {};
  std::optional<Lengths> input_lengths = {}, lengths = {};  // of the sequences that are its input and its output
  // x [B, input...] -> [B, output...].
  std::function<Value(const LayerCall& call, Value x)> apply = {};

  // The places of its first parameter and of the shared one in Model::parameters, and of its key in
  // Model::drawing_layers (number_nodes).
  std::size_t first_parameter = 0, shared = 0, key = 0;

  bool is_list() const { return !apply; }
};

// Calls `visit` with all nodes, each before its children: the order of parameters, keys and numbers.
template <class Nodes, class Visit>
void for_each_node(Nodes& nodes, const Visit& visit) {
  for (auto& node : nodes) {
    visit(node);
    for_each_node(node.children, visit);
  }
}
// Sets the places of parameters and keys of all nodes: a node's own come before those of its children.
void number_nodes(std::vector<Node>& nodes);
// The first node that has no others inside.
const Node* first_layer(std::span<const Node> nodes);

// Appends the equations of a node, or of nodes in order.
Value apply(Builder& b, const Node& node, const Forward& forward, Value x);
Value apply_in_order(Builder& b, std::span<const Node> nodes, const Forward& forward, Value x);
// The type and the shape of a value between two layers.
struct Activation {
  DType dtype = DType::f32;
  Shape shape;                          // of one example
  Shape image;                          // as Node::image
  std::optional<Lengths> lengths = {};  // if examples are sequences of different lengths
};

// A column of a table. Behind table_embedding it is one number of the inputs: its own, or the number of one of its
// categories, from 1; 0 for none of them.
struct InputColumn {
  std::string name;
  std::int64_t categories = 0;  // 0: a number
};

// What a layer may know of the model around it.
struct Surroundings {
  const Mesh& mesh;
  AxisSet data_axes;                 // that divide the batch
  const std::vector<Layer>& layers;  // of the whole model
  // How data.source.npz says that its arrays have channels; empty for other data.
  std::string_view channels = {};
  std::span<const InputColumn> columns = {};  // of the data, if they are a table
};

// The arguments of plan(). Shapes are those of one example.
struct LayerInput {
  const Layer& layer;
  std::string name;  // the layer's path
  Shape shape;
  Precision precision;
  DType input_dtype;  // the element type of the previous layer's output
  std::vector<Diagnostic>& errors;
  const Surroundings& around;
  Shape image = {};                     // Node::image of the previous layer
  std::optional<Lengths> lengths = {};  // as Activation::lengths

  // A layer with the properties that all kinds have in common. Its `output` is still the shape of the input.
  Node start() const {
    Node node{name, layer.kind->name(), layer.place, precision.compute, shape, shape};
    node.image = image;
    node.input_lengths = node.lengths = lengths;
    return node;
  }
  // The same for a layer that only moves or selects elements: with mixed precision, these keep the element type of the
  // previous layer's output.
  Node start_with_input_dtype() const {
    Node planned = start();
    if (precision.compute != precision.storage) planned.compute = input_dtype;
    return planned;
  }
  Parameter parameter(const std::string& field, Shape of, Initializer initializer) const {
    return {name + "." + field, std::move(of), initializer, layer.place};
  }
  // A kernel, whose dimensions PyTorch has in the order `axes`.
  Parameter kernel(Shape of, const KernelInit& init, const Fans& fans, std::vector<std::int64_t> axes,
                   const std::string& field = "kernel") const {
    Parameter made = parameter(field, std::move(of), init(fans));
    made.torch = {"weight", std::move(axes)};
    return made;
  }
  // A kernel by which rows of `matrix[0]` features are multiplied (product.h). Its fans are those of the matrix.
  Parameter product_kernel(Shape of, Shape matrix, const KernelInit& init, std::vector<std::int64_t> axes,
                           const std::string& field = "kernel") const {
    Parameter made = kernel(std::move(of), init, {matrix[0], matrix[1]}, std::move(axes), field);
    made.matrix = std::move(matrix);
    made.may_be_rounded = true;
    return made;
  }
  // The parameter with the dimensions that devices may divide.
  static Parameter divisible(Parameter of, Cut cut) {
    of.cut = cut;
    return of;
  }
  Activation activation() const { return {input_dtype, shape, image, lengths}; }
  // "f32[28,28,1]"
  std::string shown() const { return shown(shape); }
  std::string shown(const Shape& other) const { return std::string(to_string(precision.storage)) + to_string(other); }
  // Reports an initializer of a bias or a scale that the layer does not have.
  void expect_used(bool used, const VectorInit& init, const std::string& field) const {
    if (used || !init) return;
    refuse("has " + field + "_init and use_" + field + ": false",
           "leave out " + field + "_init, or write use_" + field + ": true");
  }
  // A layer that computes each feature by itself.
  static Node keeping(Node layer) {
    layer.divisible.keeps = true;
    return layer;
  }
  // Reports a layer of features whose input is a single number. `takes`: "features [..., C]".
  std::optional<Node> refuse_scalar(const std::string& takes = "features [..., C]") const {
    return refuse("takes " + takes + "; its input is " + shown(), "add flatten before it, which gives the shape [1]");
  }
  // Reports an error at the place of the layer.
  std::optional<Node> refuse(std::string message, std::string help) const {
    errors.push_back({"config", layer.place, name + " " + std::move(message), std::move(help), {}});
    return std::nullopt;
  }
};

template <class Kind>
concept HasLayersInside = requires(const Kind& kind) {
  { kind.inside() } -> std::same_as<std::vector<Inside>>;
};

// The interface for a layer of this kind.
template <class Kind>
class Held final : public declare::Holds<LayerRules, Kind> {
  using declare::Holds<LayerRules, Kind>::kind_;
  static_assert(
      requires(const Kind& kind, const LayerInput& in) {
        { kind.plan(in) } -> std::same_as<std::optional<Node>>;
      },
      "this layer has no plan(): its output, its parameters and its equations");
  static_assert(
      HasLayersInside<Kind> || requires { Kind::looks_ahead; } || requires(const Kind& kind) { kind.looks_ahead(); },
      "this layer has no looks_ahead: whether a position of a sequence sees those after it");

  static_assert(
      !requires { Kind::takes_tokens; } ||
          requires { requires std::is_same_v<decltype(Kind::takes_tokens), const bool>; },
      "takes_tokens of this layer is no constant bool");
  static_assert(
      !requires { Kind::reads_before; } ||
          requires { requires std::is_same_v<decltype(Kind::reads_before), const bool>; },
      "reads_before of this layer is no constant bool");

 public:
  using declare::Holds<LayerRules, Kind>::Holds;

  std::optional<Node> plan(const LayerInput& in) const override { return kind_.plan(in); }
  bool looks_ahead() const override {
    if constexpr (HasLayersInside<Kind>)
      return false;
    else if constexpr (requires { kind_.looks_ahead(); })
      return kind_.looks_ahead();
    else
      return Kind::looks_ahead;
  }
  std::vector<Inside> inside() const override {
    if constexpr (HasLayersInside<Kind>)
      return kind_.inside();
    else
      return {};
  }
  bool takes_tokens() const override {
    if constexpr (requires { Kind::takes_tokens; }) return Kind::takes_tokens;
    return false;
  }
  bool reads_before() const override {
    if constexpr (requires { Kind::reads_before; }) return Kind::reads_before;
    return false;
  }
  bool takes_lengths() const override {
    if constexpr (requires { Kind::takes_lengths; }) return Kind::takes_lengths;
    return !looks_ahead();
  }
};

// Plans the layers of one list in order. Their paths begin with `prefix`. `at` describes the input of the list, and on
// return its output. Returns false if a layer does not fit, after reporting that to `errors`.
bool plan_list(const std::vector<Layer>& list, const std::string& prefix, const Surroundings& around,
               Precision precision, Activation& at, std::vector<Node>& out, std::vector<Diagnostic>& errors);
// The layers of `list` as one node that applies them in order, at `from`. Returns nothing if a layer does not fit.
std::optional<Node> plan_as_list(const std::vector<Layer>& list, const std::string& name, const LayerInput& in,
                                 const Activation& from);

}  // namespace pmaptrain::layers
