// Equations of a program as nodes of ONNX.
//
// A sequence of equations that a layer of core/model appends for what is one operator, such as softmax, becomes nodes
// by a pattern (patterns.cpp), and any other equation by the rule of its op (op_nodes.cpp). Nodes are named after the
// scope of their equations. Equations whose operands are all known are computed at once (known.h).
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/export/known.h"
#include "core/graph/program.h"
#include "core/onnx/graph.h"

namespace pmaptrain::train {

// A value of a program in a graph. Of images some operators take the channels before height and width, while programs
// have them last. Either order is there when a node gives it, or when one has read it.
struct GraphValue {
  std::string name;            // empty: not there with the dimensions of the program
  std::string channels_first;  // empty: not there with the channels first
  std::optional<Known> known = {};
};

class Translation {
 public:
  // Both outlive it.
  Translation(onnx::Graph& graph, const Program& program) : graph_(&graph), program_(&program) {}

  void bind(Value value, GraphValue bound) { values_[value.id] = std::move(bound); }
  // Appends what equations of the scope `only` at the beginning of the rest compute, of the values that are bound.
  void run_scope(std::string_view only);
  // Appends the rest. Scopes are named behind `prefix`.
  void run(const std::string& prefix);

  // For patterns and rules of ops.
  onnx::Graph& graph() const { return *graph_; }
  const Program& program() const { return *program_; }
  const Type& type(Value value) const { return program_->type(value); }
  bool has(Value value) const { return values_.contains(value.id); }
  const Known* known(Value value) const;
  bool is_there(Value value, bool channels_first) const;
  // The name of the value with the dimensions of the program, or of an image with the channels first.
  std::string name(Value value);
  std::string image(Value value);
  // Of a known kernel [height, width, in, out], with the dimensions out, in, height, width.
  std::string kernel(Value value);
  // Says which tensor of the graph a value is.
  void set(Value value, std::string name, bool channels_first = false);
  void set_equal(Value value, Value other) { values_[value.id] = values_.at(other.id); }
  // A node that computes elements of elements, of operands in one order of dimensions.
  void elementwise(Value result, std::span<const Value> operands, const std::string& op,
                   onnx::Attributes attributes = {});

 private:
  std::string initializer(Known known, const Shape& shape);
  void append(const Equation& equation);
  bool fold(const Equation& equation);

  onnx::Graph* graph_;
  const Program* program_;
  std::size_t next_ = 0;  // of the program's equations
  std::string prefix_, scope_;
  std::map<std::int32_t, GraphValue> values_;
};

// Appends the nodes of a pattern that begins at equation `first`. Returns how many equations it has; 0 if there is
// none.
std::size_t append_pattern(Translation& to, std::size_t first);
// Appends the nodes of an equation by the rule of its op.
void append_op(Translation& to, const Equation& equation);

}  // namespace pmaptrain::train
