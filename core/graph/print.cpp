#include <unordered_map>
#include <unordered_set>

#include "core/graph/text.h"

namespace pmaptrain {
namespace {

// Names values in order of appearance: inputs by their names, all others by number.
class Printer {
 public:
  Printer(const Program& program, const PrintOptions& options) : program_(program), options_(options) {
    for (const Input& input : program.inputs) {
      input_names_.insert(input.name);
      for (const Part& part : input.parts) input_names_.insert(part.name);
    }
  }

  std::string print() {
    if (!program_.mesh.axes().empty()) {
      text_ += "mesh";
      for (const Axis& axis : program_.mesh.axes()) text_ += " " + axis.name + "=" + std::to_string(axis.size);
      text_ += "\n";
    }
    for (const Input& input : program_.inputs) {
      names_[input.value.id] = "%" + input.name;
      text_ += std::string(to_string(input.group)) + " " + typed(input.value);
      if (input.layout != Layout{program_.type(input.value).shape}) {
        text_ += " as " + to_string(input.layout, program_.mesh);
      }
      for (std::size_t i = 0; i < input.parts.size(); ++i) {
        const Part& part = input.parts[i];
        text_ += (i == 0 ? " of %" : ", %") + part.name + ":" + to_string(part.layout, program_.mesh);
      }
      text_ += "\n";
    }
    print_equations(program_.equations, "");
    for (const Input& input : program_.inputs) {
      if (input.next) text_ += "update %" + input.name + " = " + name(*input.next) + "\n";
    }
    for (const Output& output : program_.outputs) text_ += "return " + output.name + " = " + name(output.value) + "\n";
    return std::move(text_);
  }

 private:
  std::string name(Value value) {
    auto [entry, is_new] = names_.try_emplace(value.id);
    while (is_new && input_names_.contains(std::to_string(next_))) ++next_;
    if (is_new) entry->second = "%" + std::to_string(next_++);
    return entry->second;
  }

  std::string typed(Value value) { return name(value) + ":" + to_string(program_.type(value), program_.mesh); }

  std::string list(const std::vector<Value>& values, bool with_types) {
    std::string text;
    for (Value value : values) {
      if (!text.empty()) text += ", ";
      text += with_types ? typed(value) : name(value);
    }
    return text;
  }

  void print_equations(const std::vector<Equation>& equations, const std::string& indent) {
    for (const Equation& equation : equations) print_equation(equation, indent);
  }

  // The first unpack of an input, or of its gathered shards, names its results like the parts.
  void name_parts(const Equation& equation) {
    if (equation.op.rules().communication == Communication::gather) {
      gathered_[equation.results.front().id] = equation.operands.front();
    }
    if (!equation.op.rules().unpacks) return;
    const auto shards = gathered_.find(equation.operands.front().id);
    const Value bucket = shards != gathered_.end() ? shards->second : equation.operands.front();
    for (const Input& input : program_.inputs) {
      if (input.value != bucket || input.parts.size() != equation.results.size()) continue;
      if (!unpacked_.insert(input.value.id).second) continue;
      for (std::size_t i = 0; i < input.parts.size(); ++i) names_[equation.results[i].id] = "%" + input.parts[i].name;
    }
  }

  void print_equation(const Equation& equation, const std::string& indent) {
    name_parts(equation);
    const std::string operands = list(equation.operands, false);
    const std::string results = list(equation.results, true);
    text_ += indent + results + " = " + to_string(equation.op, &program_.mesh);
    if (!operands.empty()) text_ += " " + operands;
    if (equation.regions.empty()) {
      if (options_.origins && !equation.origin->scope.empty()) text_ += "  # " + equation.origin->scope;
      text_ += "\n";
      if (!options_.notes) return;
      for (const std::string& note : options_.notes(equation)) text_.append(indent).append("  # ").append(note) += '\n';
      return;
    }
    const Region& region = equation.regions.front();
    text_ += " (" + list(region.params, true) + ") {\n";
    print_equations(region.equations, indent + "  ");
    text_ += indent + "  yield " + list(region.results, false) + "\n" + indent + "}\n";
  }

  const Program& program_;
  const PrintOptions& options_;
  std::string text_;
  std::unordered_map<std::int32_t, std::string> names_;
  // Names of inputs and of parts. Such a name may be a number, which no other value then gets.
  std::unordered_set<std::string> input_names_;
  std::unordered_set<std::int32_t> unpacked_;         // inputs whose parts have named values
  std::unordered_map<std::int32_t, Value> gathered_;  // what a gathered value was gathered from
  int next_ = 0;
};

std::string number(Value value) { return "%" + std::to_string(value.id); }

}  // namespace

std::string to_text(const Program& program, const PrintOptions& options) { return Printer(program, options).print(); }

std::string to_text(const Program& program, const Equation& equation) {
  std::string text;
  for (Value value : equation.results) {
    if (!text.empty()) text += ", ";
    text += number(value);
    if (static_cast<std::size_t>(value.id) < program.types.size()) {
      text += ":" + to_string(program.type(value), program.mesh);
    }
  }
  text += " = " + to_string(equation.op, &program.mesh);
  for (std::size_t i = 0; i < equation.operands.size(); ++i)
    text += (i == 0 ? " " : ", ") + number(equation.operands[i]);
  return text;
}

}  // namespace pmaptrain
