// Reads the attributes of an op, and the values that they share with types: element types, shapes, sets of axes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/graph/lexer.h"
#include "core/graph/op.h"
#include "core/mesh/layout.h"

namespace pmaptrain {

DType parse_dtype(Lexer& lexer);
Shape parse_shape(Lexer& lexer);
// Rule 2: a set of axes of the mesh, with the nearest spelling for one that it lacks. `op` names them, if it is not
// empty.
AxisSet parse_axes(Lexer& lexer, const Mesh& mesh, std::string_view op);
// A shape, and behind a dimension the axes that divide it: "[80,96{model}]".
Layout parse_layout(Lexer& lexer, const Mesh& mesh);

// Reads `name=value` attributes between brackets into an op's fields, which are visited in any order.
class AttributeParser : public AttributeVisitor {
 public:
  // `op` is what messages call it.
  AttributeParser(Lexer& lexer, const Mesh& mesh, std::string_view op);

  void field(std::string_view name, std::int64_t& value) override;
  void field(std::string_view name, double& value) override;
  void field(std::string_view name, bool& value) override;
  void field(std::string_view name, DType& value) override;
  void field(std::string_view name, std::optional<DType>& value) override;
  void field(std::string_view name, AxisSet& value) override;
  void field(std::string_view name, std::vector<std::int64_t>& value) override;
  void field(std::string_view name, std::vector<double>& value) override;
  void field(std::string_view name, std::vector<Shape>& value) override;
  void field(std::string_view name, std::vector<std::pair<std::int64_t, std::int64_t>>& value) override;

  // Every attribute must have been a field's.
  void finish();

 private:
  struct Entry {
    Token name;
    std::size_t position;
  };

  bool seek(std::string_view name);
  void skip_value();

  Lexer& lexer_;
  const Mesh& mesh_;
  std::string_view op_;
  std::unordered_map<std::string, Entry> values_;
  std::vector<std::string> fields_;
  std::optional<std::size_t> end_;
};

}  // namespace pmaptrain
