#include "core/graph/attribute_parser.h"

#include <algorithm>

#include "core/base/text.h"

namespace pmaptrain {
namespace {

// "[", what `read_one` reads, separated by commas, and "]".
template <class ReadOne>
void parse_list(Lexer& lexer, ReadOne read_one) {
  lexer.expect("[");
  if (lexer.accept("]")) return;
  do read_one();
  while (lexer.accept(","));
  lexer.expect("]");
}

}  // namespace

DType parse_dtype(Lexer& lexer) {
  const Token word = lexer.expect_word("an element type");
  if (const auto dtype = parse_dtype(word.text)) return *dtype;
  lexer.fail(word, "'" + word.text + "' is not an element type",
             "there are bf16, f32, f64, i32, i64, u8, u32 and bool");
}

Shape parse_shape(Lexer& lexer) {
  Shape shape;
  parse_list(lexer, [&] { shape.push_back(lexer.expect_integer()); });
  return shape;
}

namespace {

// Axes in the order of the text.
std::vector<int> parse_axis_list(Lexer& lexer, const Mesh& mesh, std::string_view op) {
  std::vector<int> axes;
  lexer.expect("{");
  if (lexer.accept("}")) return axes;
  do {
    const Token word = lexer.expect_word("an axis name");
    const auto axis = mesh.find(word.text);
    if (!axis) {
      const std::string near = nearest(word.text, mesh.names());
      const std::string has =
          mesh.axes().empty() ? "the mesh has no axes" : "the mesh has " + mesh.to_string(mesh.all());
      lexer.fail(
          word,
          (op.empty() ? "" : std::string(op) + " names ") + "axis '" + word.text + "', which the mesh does not have",
          near.empty() ? has : has + "; did you mean " + near + "?");
    }
    if (std::find(axes.begin(), axes.end(), *axis) != axes.end()) {
      lexer.fail(word, "axis '" + word.text + "' is named twice", "keep one of the two");
    }
    axes.push_back(*axis);
  } while (lexer.accept(","));
  lexer.expect("}");
  return axes;
}

}  // namespace

AxisSet parse_axes(Lexer& lexer, const Mesh& mesh, std::string_view op) {
  AxisSet axes;
  for (const int axis : parse_axis_list(lexer, mesh, op)) axes = axes | AxisSet::of(axis);
  return axes;
}

Layout parse_layout(Lexer& lexer, const Mesh& mesh) {
  Layout layout;
  parse_list(lexer, [&] {
    layout.logical.push_back(lexer.expect_integer());
    if (lexer.peek().text != "{") return;
    layout.divided.resize(layout.logical.size());
    layout.divided.back() = parse_axis_list(lexer, mesh, "");
  });
  // What divides nothing is the same layout without it.
  while (!layout.divided.empty() && layout.divided.back().empty()) layout.divided.pop_back();
  return layout;
}

AttributeParser::AttributeParser(Lexer& lexer, const Mesh& mesh, std::string_view op)
    : lexer_(lexer), mesh_(mesh), op_(op) {
  if (!lexer_.accept("[")) return;
  if (lexer_.accept("]")) return;
  do {
    const Token name = lexer_.expect_word("an attribute's name");
    lexer_.expect("=");
    if (!values_.try_emplace(name.text, Entry{name, lexer_.position()}).second) {
      lexer_.fail(name, "attribute '" + name.text + "' is given twice");
    }
    skip_value();
  } while (lexer_.accept(","));
  lexer_.expect("]");
  end_ = lexer_.position();
}

void AttributeParser::field(std::string_view name, std::int64_t& value) {
  if (seek(name)) value = lexer_.expect_integer();
}
void AttributeParser::field(std::string_view name, double& value) {
  if (seek(name)) value = lexer_.expect_number();
}
void AttributeParser::field(std::string_view name, bool& value) {
  if (!seek(name)) return;
  const Token word = lexer_.expect_word("true or false");
  if (word.text != "true" && word.text != "false") lexer_.fail(word, "expected true or false");
  value = word.text == "true";
}
void AttributeParser::field(std::string_view name, DType& value) {
  if (seek(name)) value = parse_dtype(lexer_);
}
void AttributeParser::field(std::string_view name, std::optional<DType>& value) {
  if (seek(name)) value = parse_dtype(lexer_);
}
void AttributeParser::field(std::string_view name, AxisSet& value) {
  if (seek(name)) value = parse_axes(lexer_, mesh_, op_);
}
void AttributeParser::field(std::string_view name, std::vector<std::int64_t>& value) {
  if (seek(name)) value = parse_shape(lexer_);
}
void AttributeParser::field(std::string_view name, std::vector<double>& value) {
  if (!seek(name)) return;
  value.clear();
  parse_list(lexer_, [&] { value.push_back(lexer_.expect_number()); });
}
void AttributeParser::field(std::string_view name, std::vector<Shape>& value) {
  if (!seek(name)) return;
  value.clear();
  parse_list(lexer_, [&] { value.push_back(parse_shape(lexer_)); });
}
void AttributeParser::field(std::string_view name, std::vector<std::pair<std::int64_t, std::int64_t>>& value) {
  if (!seek(name)) return;
  value.clear();
  parse_list(lexer_, [&] {
    const std::int64_t first = lexer_.expect_integer();
    lexer_.expect(":");
    value.emplace_back(first, lexer_.expect_integer());
  });
}

void AttributeParser::finish() {
  if (!values_.empty()) {
    const auto first = std::min_element(values_.begin(), values_.end(), [](const auto& a, const auto& b) {
      return a.second.position < b.second.position;
    });
    const Token& name = first->second.name;
    const std::string near = nearest(name.text, fields_);
    lexer_.fail(name, std::string(op_) + " has no attribute '" + name.text + "'",
                fields_.empty() ? "it takes none"
                                : (near.empty() ? "it takes " + join(fields_, ", ") : "did you mean " + near + "?"));
  }
  if (end_) lexer_.seek(*end_);
}

bool AttributeParser::seek(std::string_view name) {
  fields_.emplace_back(name);
  const auto entry = values_.find(std::string(name));
  if (entry == values_.end()) return false;
  lexer_.seek(entry->second.position);
  values_.erase(entry);
  return true;
}

void AttributeParser::skip_value() {
  int depth = 0;
  while (true) {
    const Token& token = lexer_.peek();
    if (token.kind == Token::Kind::end_of_line) lexer_.fail(token, "expected ']' to end the attributes");
    if (depth == 0 && (token.text == "," || token.text == "]")) return;
    if (token.text == "[" || token.text == "{") ++depth;
    if (token.text == "]" || token.text == "}") --depth;
    lexer_.next();
  }
}

}  // namespace pmaptrain
