// Graphs of the Open Neural Network Exchange (https://onnx.ai): IR version 8, operator set 17.
//
// A graph is a list of nodes. Each node computes one tensor from others by an operator, and all tensors have names.
// Every tensor that is no initializer has the examples of the batch as its first dimension.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/shape.h"

namespace pmaptrain::onnx {

// The numbers of the format (TensorProto.DataType).
enum class ElementType : std::uint8_t { f32 = 1, u8 = 2, i32 = 6, i64 = 7, text = 8, boolean = 9, f64 = 11 };

// The domain of operators on tables.
inline constexpr std::string_view ml_domain = "ai.onnx.ml";

using AttributeValue =
    std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, std::vector<std::string>>;
struct Attribute {
  std::string name;
  AttributeValue value;
};
using Attributes = std::vector<Attribute>;

struct Node {
  std::string op, name;
  std::vector<std::string> inputs;
  std::string output;
  Attributes attributes;
  std::string domain = {};  // of the operator; empty: ai.onnx
};

// A constant tensor.
struct Initializer {
  std::string name;
  ElementType type = ElementType::f32;
  Shape shape;
  std::span<const std::byte> bytes;  // row-major
};

// A size that is the length of the sequences, whatever it is.
inline constexpr std::int64_t any_length = -1;

// An input or an output of a graph.
struct Port {
  std::string name;
  ElementType type = ElementType::f32;
  Shape shape;  // of one example
};

class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;  // initializers refer to what the graph owns
  Graph& operator=(const Graph&) = delete;

  // From here on nodes and initializers are named "NAME/...".
  void name_after(std::string name) { scope_ = std::move(name); }

  std::string input(const std::string& name, ElementType type, Shape shape);
  // `value` as an output of the graph, under this name.
  void output(const std::string& name, const std::string& value, Shape shape, ElementType type = ElementType::f32);
  void metadata(std::string key, std::string value) { metadata_.emplace_back(std::move(key), std::move(value)); }

  // Appends a node. Returns the name of what it computes.
  std::string node(std::string op, std::vector<std::string> inputs, Attributes attributes = {},
                   std::string domain = {});

  // Adds an initializer, and returns its name. A view of elements outlives the graph.
  std::string initializer(const std::string& name, Shape shape, std::span<const std::byte> elements,
                          ElementType type = ElementType::f32);
  std::string initializer(const std::string& name, Shape shape, std::vector<std::byte>&& elements,
                          ElementType type = ElementType::f32);
  // A constant number, or an array of them, of f32 or f64.
  std::string number(double value, ElementType type = ElementType::f32) { return numbers({value}, {}, type); }
  std::string numbers(const std::vector<double>& values, Shape shape, ElementType type = ElementType::f32);
  std::string integers(const std::vector<std::int64_t>& values);

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Initializer>& initializers() const { return initializers_; }
  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<Port>& outputs() const { return outputs_; }
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }

 private:
  // A name that no tensor of the graph has: "SCOPE/NAME", with a number where that is taken.
  std::string unused(std::string_view name);

  std::string scope_;
  std::map<std::string, int> names_;  // and how many tensors would have it
  std::vector<Node> nodes_;
  std::vector<Initializer> initializers_;
  std::vector<std::vector<std::byte>> owned_;
  std::vector<Port> inputs_, outputs_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

}  // namespace pmaptrain::onnx
