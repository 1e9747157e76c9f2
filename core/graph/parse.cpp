#include <algorithm>
#include <set>
#include <unordered_map>

#include "core/base/text.h"
#include "core/graph/attribute_parser.h"
#include "core/graph/builder.h"
#include "core/graph/check.h"
#include "core/graph/lexer.h"
#include "core/graph/text.h"
#include "core/hints/hints.h"

namespace pmaptrain {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const std::string& file, const OpSet& ops, const std::vector<Axis>& mesh)
      : lexer_(text, file), ops_(ops), builder_(program_, ops) {
    program_.name = file;
    given_mesh_ = mesh;
  }

  Program parse() {
    parse_mesh();
    for (skip_lines(); !lexer_.at_end(); skip_lines()) parse_line();
    check(program_);
    return std::move(program_);
  }

 private:
  using Names = std::unordered_map<std::string, Value>;
  // Everything that reads a program's regions calls itself for the regions in them.
  static constexpr int deepest = 64;

  void skip_lines() {
    while (lexer_.peek().kind == Token::Kind::end_of_line && !lexer_.at_end()) lexer_.next();
  }

  void parse_mesh() {
    std::vector<Axis> axes;
    skip_lines();
    if (lexer_.peek().text == "mesh") {
      lexer_.next();
      while (lexer_.peek().kind == Token::Kind::word) {
        const Token name = lexer_.next();
        lexer_.expect("=");
        const Token size = lexer_.peek();
        axes.push_back({name.text, lexer_.expect_integer()});
        if (axes.back().size < 1) lexer_.fail(size, "axis '" + name.text + "' needs at least 1 device");
        for (std::size_t i = 0; i + 1 < axes.size(); ++i) {
          if (axes[i].name == name.text) lexer_.fail(name, "axis '" + name.text + "' is declared twice");
        }
      }
      lexer_.expect_end_of_line();
    }
    for (const Axis& given : given_mesh_) {
      if (given.size < 1) {
        throw Error(ExitStatus::usage,
                    Diagnostic{"program", {}, "axis '" + given.name + "' needs at least 1 device", {}, {}});
      }
    }
    // If all axes are named, their order is the given one; else named axes change in place, or are added innermost.
    const auto find = [](std::vector<Axis>& in, const Axis& axis) {
      return std::find_if(in.begin(), in.end(), [&](const Axis& other) { return other.name == axis.name; });
    };
    const bool names_all = std::all_of(axes.begin(), axes.end(),
                                       [&](const Axis& axis) { return find(given_mesh_, axis) != given_mesh_.end(); });
    if (names_all) axes.clear();
    for (const Axis& given : given_mesh_) {
      const auto same = find(axes, given);
      if (same != axes.end()) {
        same->size = given.size;
      } else {
        axes.push_back(given);
      }
    }
    double devices = 1;
    for (const Axis& axis : axes) devices *= static_cast<double>(axis.size);
    if (axes.size() > 32 || devices > 65536) {
      lexer_.fail(lexer_.peek(), "a mesh has at most 32 axes and 65536 devices");
    }
    program_.mesh = Mesh(std::move(axes));
  }

  void parse_line() {
    const Token first = lexer_.peek();
    if (first.text == "%") return parse_equation(names_);
    for (const Group group :
         {Group::params, Group::params_state, Group::state, Group::batch, Group::hyper, Group::data, Group::base}) {
      if (first.text == to_string(group)) return parse_input(group);
    }
    if (first.text == "update") return parse_update();
    if (first.text == "return") return parse_return();
    lexer_.fail(first, "expected an input, an equation, update or return",
                "a line begins with params, params_state, state, batch, hyper, data, base, %name, update or return");
  }

  void parse_input(Group group) {
    lexer_.next();
    const Token name = parse_new_name(names_);
    // A part may not have the name of an input.
    if (!parts_.try_emplace(name.text).second) fail_defined(name);
    lexer_.expect(":");
    Type type = parse_type();
    std::optional<Layout> layout;
    if (lexer_.peek().text == "as") {
      lexer_.next();
      layout = parse_layout(lexer_, program_.mesh);
    }
    std::vector<Part> parts;
    if (lexer_.peek().text == "of") {
      lexer_.next();
      do {
        const Token part = parse_new_name(parts_);
        parts_[part.text] = Value{};
        lexer_.expect(":");
        parts.push_back({part.text, parse_layout(lexer_, program_.mesh)});
      } while (lexer_.accept(","));
    }
    lexer_.expect_end_of_line();
    inputs_.emplace(name.text, program_.inputs.size());
    names_[name.text] = builder_.input(group, name.text, std::move(type));
    Input& input = program_.inputs.back();
    input.parts = std::move(parts);
    if (layout) input.layout = std::move(*layout);
    const StorageError error = storage_error(input, program_.type(input.value), program_.mesh);
    if (!error.message.empty()) lexer_.fail(name, error.message, error.help);
  }

  void parse_update() {
    lexer_.next();
    const Token name = lexer_.peek(1);
    parse_use(names_);
    lexer_.expect("=");
    const Value next = parse_use(names_);
    lexer_.expect_end_of_line();
    const auto found = inputs_.find(name.text);
    if (found == inputs_.end()) lexer_.fail(name, "'" + name.text + "' is not an input");
    Input& input = program_.inputs[found->second];
    if (input.next) lexer_.fail(name, "'" + name.text + "' is updated twice");
    if (!is_kept(input.group)) {
      lexer_.fail(name, "'" + name.text + "' is a " + std::string(to_string(input.group)) + " input: it has no update",
                  "declare it with params, params_state or state");
    }
    input.next = next;
    input.update_place = lexer_.place(name);
  }

  void parse_return() {
    lexer_.next();
    const Token name = lexer_.expect_word("the output's name");
    if (!returned_.insert(name.text).second) lexer_.fail(name, "output '" + name.text + "' is returned twice");
    lexer_.expect("=");
    builder_.output(name.text, parse_use(names_));
    lexer_.expect_end_of_line();
  }

  void parse_equation(Names& names) {
    std::vector<Token> results;
    std::vector<std::optional<Type>> annotations;
    Names line;  // a result may not repeat another of the same line
    do {
      results.push_back(parse_new_name(names, &line));
      annotations.push_back(lexer_.accept(":") ? std::optional(parse_type()) : std::nullopt);
    } while (lexer_.accept(","));
    lexer_.expect("=");
    const Token op_name = lexer_.expect_word("an op's name");
    const Place place = lexer_.place(op_name);
    const Builder::Scope scope(builder_, {"", place});

    if (op_name.text == "pmean") return name_results(parse_pmean(names), results, annotations, names);
    const OpRules* rules = ops_.find(op_name.text);
    if (rules == nullptr) {
      std::vector<std::string> known{"pmean"};
      for (const OpRules* candidate : ops_.all) known.emplace_back(candidate->name);
      std::optional<Hint> hint = hint_for("op", op_name.text);
      if (!hint) hint = hint_for("collective", op_name.text);
      const std::string near = nearest(op_name.text, known);
      lexer_.fail(op_name, "'" + op_name.text + "' is not an op",
                  hint           ? hint->help
                  : near.empty() ? "the ops are " + join(known, ", ")
                                 : "did you mean " + near + "?");
    }
    const Op op(*rules, parse_attributes(*rules, rules->name));
    const std::vector<Value> operands = parse_operands(names);
    if (rules->region) {
      if (depth_ == deepest) {
        lexer_.fail(op_name, "a region inside " + std::to_string(deepest) + " others",
                    "regions stand at most " + std::to_string(deepest) + " deep");
      }
      lexer_.expect("(");
      ++depth_;
      const std::vector<Value> values = parse_region(op, operands);
      --depth_;
      return name_results(values, results, annotations, names);
    }
    name_results(builder_.emit_all(op, operands), results, annotations, names);
  }

  // pmean is sugar: one psum and a division of each result.
  std::vector<Value> parse_pmean(const Names& names) {
    const OpRules& psum = *ops_.find("psum");
    const OpRules& div = *ops_.find("div");
    const Op op(psum, parse_attributes(psum, "pmean"));
    const Token first = lexer_.peek();
    const std::vector<Value> operands = parse_operands(names);
    for (Value operand : operands) {
      const Type& type = builder_.type(operand);
      if (is_floating(type.dtype)) continue;
      lexer_.fail(first, "pmean of " + to_string(type, program_.mesh) + ": only floating values have a mean",
                  "cast it to f32 or f64 first, or use psum");
    }
    std::vector<Value> results = builder_.emit_all(op, operands);
    for (std::size_t i = 0; i < results.size(); ++i) {
      const AxisSet axes = builder_.type(operands[i]).varying - builder_.type(results[i]).varying;
      const DType dtype = builder_.type(results[i]).dtype;
      const Value count = builder_.constant(dtype, static_cast<double>(builder_.mesh().group_size(axes)));
      results[i] = builder_.emit(Op(div, div.make()), {results[i], count});
    }
    return results;
  }

  // `name` is what messages call the op.
  std::shared_ptr<void> parse_attributes(const OpRules& rules, std::string_view name) {
    std::shared_ptr<void> op = rules.make();
    AttributeParser attributes(lexer_, program_.mesh, name);
    rules.attributes(op.get(), attributes);
    attributes.finish();
    return op;
  }

  std::vector<Value> parse_operands(const Names& names) {
    std::vector<Value> operands;
    if (lexer_.peek().text != "%") return operands;
    do operands.push_back(parse_use(names));
    while (lexer_.accept(","));
    return operands;
  }

  std::vector<Value> parse_region(const Op& op, const std::vector<Value>& operands) {
    Names inside;
    std::vector<Token> params;
    std::vector<Type> types;
    if (!lexer_.accept(")")) {
      do {
        params.push_back(parse_new_name(inside));
        inside[params.back().text] = Value{};
        lexer_.expect(":");
        types.push_back(parse_type());
      } while (lexer_.accept(","));
      lexer_.expect(")");
    }
    lexer_.expect("{");
    lexer_.expect_end_of_line();
    return builder_.emit_region(op, operands, types, [&](std::span<const Value> values) {
      for (std::size_t i = 0; i < values.size(); ++i) inside[params[i].text] = values[i];
      for (skip_lines(); lexer_.peek().text == "%"; skip_lines()) parse_equation(inside);
      const Token yield = lexer_.expect_word("an equation or yield");
      if (yield.text != "yield") lexer_.fail(yield, "expected an equation or yield");
      std::vector<Value> results = parse_operands(inside);
      lexer_.expect_end_of_line();
      skip_lines();
      lexer_.expect("}");
      return results;
    });
  }

  void name_results(const std::vector<Value>& values, const std::vector<Token>& results,
                    const std::vector<std::optional<Type>>& annotations, Names& names) {
    if (values.size() != results.size()) {
      lexer_.fail(results.front(), "this equation has " + std::to_string(values.size()) + " result(s); " +
                                       std::to_string(results.size()) + " are named");
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (annotations[i] && *annotations[i] != builder_.type(values[i])) {
        lexer_.fail(results[i], "%" + results[i].text + " is said to be " + to_string(*annotations[i], program_.mesh) +
                                    ", but it is " + to_string(builder_.type(values[i]), program_.mesh));
      }
      names[results[i].text] = values[i];
    }
    lexer_.expect_end_of_line();
  }

  // A name that is not among `names`, nor among those given in this line, which it joins.
  Token parse_new_name(const Names& names, Names* line = nullptr) {
    lexer_.expect("%");
    Token name = lexer_.expect_name();
    const bool repeated = line != nullptr && !line->try_emplace(name.text).second;
    if (repeated || names.contains(name.text)) fail_defined(name);
    return name;
  }
  [[noreturn]] void fail_defined(const Token& name) {
    lexer_.fail(name, "%" + name.text + " is defined already", "each name is given once");
  }

  Value parse_use(const Names& names) {
    lexer_.expect("%");
    const Token name = lexer_.expect_name();
    const auto found = names.find(name.text);
    if (found != names.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [text, value] : names) known.push_back(text);
    std::sort(known.begin(), known.end());  // of equally near names, the first
    const bool is_outside = &names != &names_ && names_.contains(name.text);
    const std::string near = is_outside ? "" : nearest(name.text, known);
    lexer_.fail(name, "%" + name.text + " is not defined before this line",
                is_outside     ? "a region sees its own parameters and equations only: hand the value in as an operand"
                : near.empty() ? "values are inputs and results of equations above"
                               : "did you mean %" + near + "?");
  }

  Type parse_type() {
    Type type;
    type.dtype = parse_dtype(lexer_);
    const Token shape = lexer_.peek();
    type.shape = parse_shape(lexer_);
    const std::string error = size_error(type, program_.mesh);
    if (!error.empty()) lexer_.fail(shape, error);
    type.varying = parse_axes(lexer_, program_.mesh, "");
    return type;
  }

  Lexer lexer_;
  const OpSet& ops_;
  Program program_;
  Builder builder_;
  Names names_;
  Names parts_;                                          // of buckets: values may have the same names
  std::unordered_map<std::string, std::size_t> inputs_;  // by name: which
  std::set<std::string> returned_;
  int depth_ = 0;  // regions around the present line
  std::vector<Axis> given_mesh_;
};

}  // namespace

Program parse_program(std::string_view text, const std::string& file, const OpSet& ops, const std::vector<Axis>& mesh) {
  return Parser(text, file, ops, mesh).parse();
}

}  // namespace pmaptrain
