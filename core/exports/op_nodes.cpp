// The nodes of each op that a model in float32 has when it predicts.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/exports/recurrences.h"
#include "core/exports/translation.h"
#include "core/ops/list.h"

namespace pmaptrain::exports {
namespace {

using Sizes = std::vector<std::int64_t>;

// The results of an equation and its operands, by the struct of its op.
template <class T>
struct Call {
  Translation& to;
  const Equation& equation;
  const T& op;

  onnx::Graph& graph() const { return to.graph(); }
  Value operand(std::size_t i = 0) const { return equation.operands[i]; }
  std::size_t operands() const { return equation.operands.size(); }
  std::string name(std::size_t i = 0) const { return to.name(operand(i)); }
  const Shape& shape(std::size_t i = 0) const { return to.type(operand(i)).shape; }
  void set(std::string name, bool channels_first = false) const {
    to.set(equation.results.front(), std::move(name), channels_first);
  }
};

// A size of 0 is that of the operand.
std::string reshaped(onnx::Graph& graph, const std::string& x, const Sizes& shape) {
  return graph.node("Reshape", {x, graph.integers(shape)});
}

std::string transposed(onnx::Graph& graph, const std::string& x, Sizes permutation) {
  return graph.node("Transpose", {x}, {{"perm", std::move(permutation)}});
}

void append(const Call<ops::Cast>& call) {
  const auto to = static_cast<std::int64_t>(element_type(call.op.dtype));
  call.to.elementwise(call.equation.results.front(), call.equation.operands, "Cast", {{"to", to}});
}

void append(const Call<ops::StopGradient>& call) { call.to.set_equal(call.equation.results.front(), call.operand()); }

void append(const Call<ops::Expm1>& call) {
  const std::string power = call.graph().node("Exp", {call.name()});
  const DType dtype = call.to.type(call.operand()).dtype;
  call.set(call.graph().node("Sub", {power, call.graph().number(1, element_type(dtype))}));
}

// The number of examples is not fixed. Nor is the length of sequences, which -1 leaves to the other sizes.
void append(const Call<ops::Reshape>& call) {
  Sizes shape = call.to.open_shape(call.equation.results.front());
  shape.front() = 0;
  for (std::size_t d = 1; d < std::min(shape.size(), call.shape().size()); ++d) {
    if (shape[d] == onnx::any_length && call.to.is_length(call.operand(), d)) shape[d] = 0;
  }
  call.set(reshaped(call.graph(), call.name(), shape));
}

void append(const Call<ops::Transpose>& call) { call.set(transposed(call.graph(), call.name(), call.op.permutation)); }

bool is_reshaped(const Program& program, Value value) {
  return std::any_of(program.equations.begin(), program.equations.end(), [&](const Equation& reader) {
    return reader.op.as<ops::Reshape>() != nullptr && reader.operands.front() == value;
  });
}

// Sizes of 1, along which operators on elements repeat their operands by themselves. Others take what is repeated.
void append(const Call<ops::Broadcast>& call) {
  Sizes added, sizes(call.op.shape.size(), 1);
  for (std::int64_t d = 0; d < std::ssize(call.op.shape); ++d) {
    if (std::find(call.op.dims.begin(), call.op.dims.end(), d) != call.op.dims.end()) continue;
    added.push_back(d);
    sizes[static_cast<std::size_t>(d)] = call.op.shape[static_cast<std::size_t>(d)];
  }
  onnx::Graph& graph = call.graph();
  const std::string view = graph.node("Unsqueeze", {call.name(), graph.integers(added)});
  const bool repeats = is_reshaped(call.to.program(), call.equation.results.front());
  call.set(repeats ? graph.node("Expand", {view, graph.integers(sizes)}) : view);
}

// What ends with sequences of any length is counted from their end.
void append(const Call<ops::Slice>& call) {
  Sizes starts, limits, axes;
  for (std::size_t d = 0; d < call.shape().size(); ++d) {
    const std::int64_t size = call.shape()[d];
    if (call.op.starts[d] == 0 && call.op.limits[d] == size) continue;
    const bool from_end = call.op.limits[d] == size && call.to.is_length(call.operand(), d);
    starts.push_back(call.op.starts[d] - (from_end ? size : 0));
    limits.push_back(from_end ? std::numeric_limits<std::int64_t>::max() : call.op.limits[d]);
    axes.push_back(static_cast<std::int64_t>(d));
  }
  onnx::Graph& graph = call.graph();
  const std::string x = call.name(), from = graph.integers(starts), to = graph.integers(limits);
  call.set(graph.node("Slice", {x, from, to, graph.integers(axes)}));
}

// Concat repeats nothing: an array that all examples share is there once, and is repeated for them.
void append(const Call<ops::Concatenate>& call) {
  onnx::Graph& graph = call.graph();
  const auto known = [&](std::size_t i) { return call.to.known(call.operand(i)); };
  bool is_image = false, all_images = call.op.dim >= 3 && call.op.dim + 1 == std::ssize(call.shape());
  std::size_t example = call.operands();  // an operand that depends on the examples
  for (std::size_t i = call.operands(); i-- > 0;) {
    if (known(i) == nullptr) example = i;
    all_images = all_images && known(i) == nullptr;
    is_image = is_image || call.to.is_there(call.operand(i), true);
  }
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < call.operands(); ++i) {
    parts.push_back(is_image && all_images ? call.to.image(call.operand(i)) : call.name(i));
    if (known(i) == nullptr || known(i)->type.shape == call.shape(i)) continue;
    const std::string examples =
        graph.node("Shape", {call.name(example)}, {{"start", std::int64_t{0}}, {"end", std::int64_t{1}}});
    const std::string sizes = graph.integers(Sizes(call.shape(i).begin() + 1, call.shape(i).end()));
    const std::string shape = graph.node("Concat", {examples, sizes}, {{"axis", std::int64_t{0}}});
    parts.back() = graph.node("Expand", {parts.back(), shape});
  }
  const bool first = is_image && all_images;
  call.set(graph.node("Concat", std::move(parts), {{"axis", first ? 1 : call.op.dim}}), first);
}

void append(const Call<ops::ReduceSum>& call) {
  onnx::Graph& graph = call.graph();
  call.set(graph.node("ReduceSum", {call.name(), graph.integers(call.op.dims)}, {{"keepdims", std::int64_t{0}}}));
}

void append(const Call<ops::Rsqrt>& call) {
  call.set(call.graph().node("Reciprocal", {call.graph().node("Sqrt", {call.name()})}));
}

void append(const Call<ops::Gather>& call) {
  const std::string table = call.name(0);
  call.set(call.graph().node("Gather", {table, call.name(1)}));
}

// Gemm takes matrices only.
void append(const Call<ops::Matmul>& call) {
  onnx::Graph& graph = call.graph();
  const std::string rows = call.name(0), kernel = call.name(1);
  if (call.shape().size() == 2) {
    std::vector<std::string> inputs{rows, kernel};
    if (call.operands() == 3) inputs.push_back(call.name(2));
    onnx::Attributes attributes;
    if (call.op.transpose_b) attributes.push_back({"transB", std::int64_t{1}});
    return call.set(graph.node("Gemm", std::move(inputs), std::move(attributes)));
  }
  const std::string matrix = call.op.transpose_b ? transposed(graph, kernel, {1, 0}) : kernel;
  const std::string product = graph.node("MatMul", {rows, matrix});
  call.set(call.operands() == 3 ? graph.node("Add", {product, call.name(2)}) : product);
}

// The padding before each dimension, then that after each.
Sizes pads(const ops::Padding& padding) {
  Sizes all;
  for (const auto& [before, after] : padding) all.push_back(before);
  for (const auto& [before, after] : padding) all.push_back(after);
  return all;
}

// Of a kernel, without its channels.
Sizes window_of(const Shape& kernel) { return {kernel.begin(), kernel.end() - 2}; }

void append(const Call<ops::Conv>& call) {
  const Shape& kernel = call.shape(1);
  std::vector<std::string> inputs{call.to.image(call.operand(0)), call.to.kernel(call.operand(1))};
  if (call.operands() == 3) inputs.push_back(call.name(2));
  call.set(call.graph().node("Conv", std::move(inputs),
                             {{"kernel_shape", window_of(kernel)},
                              {"strides", call.op.strides},
                              {"pads", pads(call.op.padding)},
                              {"dilations", call.op.dilation},
                              {"group", call.op.groups}}),
           true);
}

// The library's padding at the end makes the result as large as the program's.
void append(const Call<ops::ConvInputGrad>& call) {
  const Shape &kernel = call.shape(0), &x = call.shape(1);
  Sizes more;
  for (std::size_t d = 0; d < call.op.padding.size(); ++d) {
    const auto& [before, after] = call.op.padding[d];
    const std::int64_t extent = (kernel[d] - 1) * call.op.dilation[d] + 1;
    more.push_back(call.op.input_shape[d + 1] - ((x[d + 1] - 1) * call.op.strides[d] + extent - before - after));
  }
  call.set(call.graph().node("ConvTranspose", {call.to.image(call.operand(1)), call.to.kernel(call.operand(0))},
                             {{"kernel_shape", window_of(kernel)},
                              {"strides", call.op.strides},
                              {"pads", pads(call.op.padding)},
                              {"dilations", call.op.dilation},
                              {"group", call.op.groups},
                              {"output_padding", std::move(more)}}),
           true);
}

template <class Pool>
void append_pool(const Call<Pool>& call, const std::string& op, onnx::Attributes more = {}) {
  onnx::Attributes attributes{
      {"kernel_shape", call.op.window}, {"strides", call.op.strides}, {"pads", pads(call.op.padding)}};
  attributes.insert(attributes.end(), more.begin(), more.end());
  call.set(call.graph().node(op, {call.to.image(call.operand())}, std::move(attributes)), true);
}
void append(const Call<ops::MaxPool>& call) { append_pool(call, "MaxPool"); }
void append(const Call<ops::AvgPool>& call) {
  append_pool(call, "AveragePool", {{"count_include_pad", std::int64_t{call.op.count_include_pad}}});
}

// softmax(Q Kᵀ / √D) V of each head. Queries of G heads [N,T,K,G,D] may share keys and values [N,S,K,D].
void append(const Call<ops::Attention>& call) {
  onnx::Graph& graph = call.graph();
  const ops::AttentionSizes sizes(call.shape(0), call.shape(1));
  const bool shared = sizes.group() > 1;
  const auto of_group = [&](const std::string& x) {
    return shared ? graph.node("Unsqueeze", {x, graph.integers({2})}) : x;
  };
  std::string q = call.name(0);
  if (shared) q = reshaped(graph, q, {0, 0, sizes.kv_heads, sizes.group(), sizes.width});
  q = transposed(graph, q, shared ? Sizes{0, 2, 3, 1, 4} : Sizes{0, 2, 1, 3});
  std::string scores = graph.node("MatMul", {q, of_group(transposed(graph, call.name(1), {0, 2, 3, 1}))});
  scores = graph.node("Mul", {scores, graph.number(1.0 / std::sqrt(static_cast<double>(sizes.width)))});
  if (call.op.causal) scores = graph.node("Add", {scores, call.to.causal_mask(call.operand(), 1)});
  const std::string weights = graph.node("Softmax", {scores}, {{"axis", std::int64_t{-1}}});
  std::string out = graph.node("MatMul", {weights, of_group(transposed(graph, call.name(2), {0, 2, 1, 3}))});
  out = transposed(graph, out, shared ? Sizes{0, 3, 1, 2, 4} : Sizes{0, 2, 1, 3});
  call.set(shared ? reshaped(graph, out, {0, 0, sizes.heads, sizes.width}) : out);
}

// A known matrix [rows,columns], or a vector of columns, with its columns as rows: [1,columns,rows], or [columns]. The
// gates, `features` columns each, have the order of an operator.
std::vector<std::byte> by_gates(const Known& known, std::int64_t features, const Sizes& order) {
  const std::int64_t columns = known.type.shape.back(), rows = numel(known.type) / columns;
  std::vector<std::byte> made(known.bytes.size());
  std::byte* to = made.data();
  for (const std::int64_t gate : order) {
    for (std::int64_t column = gate * features; column < (gate + 1) * features; ++column) {
      for (std::int64_t row = 0; row < rows; ++row, to += sizeof(float)) {
        std::memcpy(to, known.bytes.data() + static_cast<std::size_t>(row * columns + column) * sizeof(float),
                    sizeof(float));
      }
    }
  }
  return made;
}

// LSTM and GRU, whose sequences have the positions first. `bias` [1,2 columns] are those of inputs, then of states. One
// that begins at the ends of sequences gives zeros behind them, as ours does.
template <class T>
void append_recurrence(const Call<T>& call, const std::string& op, const Sizes& order,
                       const std::function<std::vector<std::byte>(const Known& bias)>& bias_of,
                       onnx::Attributes attributes = {}) {
  onnx::Graph& graph = call.graph();
  const RecurrenceInputs of = *recurrence_inputs(call.to.program(), call.equation);
  const std::int64_t features = call.shape(1)[0], columns = call.shape(1)[1];
  const auto weights = [&](const char* name, Value matrix) {
    const Known& known = *call.to.known(matrix);
    return graph.initializer(name, {1, columns, known.type.shape[0]}, by_gates(known, features, order));
  };
  const std::string x = transposed(graph, call.to.name(of.x), {1, 0, 2});
  const std::string w = weights("inputs", of.kernel), r = weights("states", call.operand(1));
  const std::string b = graph.initializer("bias", {1, 2 * columns}, bias_of(*call.to.known(of.bias)));
  std::vector<std::string> inputs{x, w, r, b};
  if (of.lengths) inputs.push_back(call.to.name(*of.lengths));
  attributes.push_back({"hidden_size", features});
  attributes.push_back({"direction", std::string(call.op.reverse ? "reverse" : "forward")});
  const std::string y = graph.node(op, std::move(inputs), std::move(attributes));
  call.set(transposed(graph, graph.node("Squeeze", {y, graph.integers({1})}), {1, 0, 2}));
}

void append(const Call<ops::Lstm>& call) {
  const Sizes order{0, 3, 1, 2};  // i, o, f, c
  append_recurrence(call, "LSTM", order, [&](const Known& bias) {
    std::vector<std::byte> made = by_gates(bias, call.shape(1)[0], order);
    made.resize(2 * made.size());
    return made;
  });
}

void append(const Call<ops::Gru>& call) {
  const Sizes order{1, 0, 2};  // z, r, h
  const auto bias_of = [&](const Known& bias) {
    std::vector<std::byte> made = by_gates(bias, call.shape(1)[0], order);
    const std::span<const std::byte> own = call.to.known(call.operand(2))->bytes;
    made.resize(2 * made.size() - own.size());
    made.insert(made.end(), own.begin(), own.end());
    return made;
  };
  append_recurrence(call, "GRU", order, bias_of, {{"linear_before_reset", std::int64_t{1}}});
}

// ---- the table ------------------------------------------------------------------------------------------------------

using Rule = void (*)(Translation& to, const Equation& equation);

template <class T>
std::pair<std::string_view, Rule> rule() {
  return {T::name, [](Translation& to, const Equation& equation) {
            append(Call<T>{to, equation, *equation.op.as<T>()});
          }};
}

// Those of ops whose elements are an operator of ONNX.
const std::map<std::string_view, std::string> operators{
    {ops::Add::name, "Add"},   {ops::Sub::name, "Sub"}, {ops::Mul::name, "Mul"},      {ops::Div::name, "Div"},
    {ops::Max::name, "Max"},   {ops::Min::name, "Min"}, {ops::Tanh::name, "Tanh"},    {ops::Erf::name, "Erf"},
    {ops::Relu::name, "Relu"}, {ops::Exp::name, "Exp"}, {ops::Select::name, "Where"}, {ops::Gt::name, "Greater"},
};

const std::map<std::string_view, Rule> rules{
    rule<ops::Cast>(),      rule<ops::StopGradient>(), rule<ops::Expm1>(),         rule<ops::Reshape>(),
    rule<ops::Transpose>(), rule<ops::Broadcast>(),    rule<ops::Slice>(),         rule<ops::Concatenate>(),
    rule<ops::Gather>(),    rule<ops::Matmul>(),       rule<ops::Conv>(),          rule<ops::MaxPool>(),
    rule<ops::AvgPool>(),   rule<ops::Attention>(),    rule<ops::Lstm>(),          rule<ops::Gru>(),
    rule<ops::ReduceSum>(), rule<ops::Rsqrt>(),        rule<ops::ConvInputGrad>(),
};

}  // namespace

void append_op(Translation& to, const Equation& equation) {
  const std::string_view op = equation.op.name();
  if (const auto found = operators.find(op); found != operators.end()) {
    return to.elementwise(equation.results.front(), equation.operands, found->second);
  }
  const auto found = rules.find(op);
  if (found == rules.end()) {
    throw std::logic_error(std::string(op) + " of " + equation.origin->scope + " has no nodes in ONNX");
  }
  found->second(to, equation);
}

}  // namespace pmaptrain::exports
