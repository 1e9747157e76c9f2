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
#include <utility>
#include <vector>

#include "core/exports/known.h"
#include "core/exports/lengths.h"
#include "core/exports/recurrences.h"
#include "core/graph/program.h"
#include "core/onnx/graph.h"

namespace pmaptrain::exports {

// A value of a program in a graph. Of images some operators take the channels before height and width, while programs
// have them last. Either order is there when a node gives it, or when one has read it.
struct GraphValue {
  std::string name;            // empty: not there with the dimensions of the program
  std::string channels_first;  // empty: not there with the channels first
  std::optional<Known> known = {};
};

class Translation {
 public:
  // Both outlive it. The last input of the program has the dimensions `lengths` too.
  Translation(onnx::Graph& graph, const Program& program, LengthDims lengths = {})
      : graph_(&graph), program_(&program), is_part_(parts_of_recurrences(program)), lengths_(std::move(lengths)) {}

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
  // [T, T]: 0 where a position is seen; else what makes its weight 0. T is the size of this dimension.
  std::string causal_mask(Value value, std::size_t dim);
  // Whether a dimension is the length of the sequences, which the graph does not fix.
  bool is_length(Value value, std::size_t dim) const;
  // The shape of a value, with any_length.
  Shape open_shape(Value value) const;
  // Says which tensor of the graph a value is.
  void set(Value value, std::string name, bool channels_first = false);
  void set_equal(Value value, Value other) { values_[value.id] = values_.at(other.id); }
  // A node that computes elements of elements, of operands in one order of dimensions.
  void elementwise(Value result, std::span<const Value> operands, const std::string& op,
                   onnx::Attributes attributes = {});

 private:
  std::string initializer(Known known, const Shape& shape);
  std::string up_to_length(std::string longest, std::int64_t dim_from_end);
  void append(const Equation& equation);
  bool fold(const Equation& equation);

  onnx::Graph* graph_;
  const Program* program_;
  std::vector<bool> is_part_;  // by equation: of the node of a recurrence
  std::size_t next_ = 0;       // of the program's equations
  std::string prefix_, scope_;
  LengthDims lengths_;
  std::map<std::int32_t, GraphValue> values_;
  std::string length_;                         // of the sequences, [1]; empty: no node gives it yet
  std::map<std::int64_t, std::string> masks_;  // by T
};

// Appends the nodes of a pattern that begins at equation `first`. Returns how many equations it has; 0 if there is
// none.
std::size_t append_pattern(Translation& to, std::size_t first);
// Appends the nodes of an equation by the rule of its op.
void append_op(Translation& to, const Equation& equation);

}  // namespace pmaptrain::exports
