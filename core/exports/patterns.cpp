// A pattern is the program that the function of core/model itself appends for an x of the same type. So a change of the
// function changes what is recognised, but not the nodes that are written: scripts/check_export.py compares the
// numbers.
//
// There is none for LayerNormalization: ONNX Runtime computes its variance as the mean of squares less the square of
// the mean. Where the mean is a hundred standard deviations, a hundredth of the result is lost.
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "core/equations/arithmetic.h"
#include "core/exports/translation.h"
#include "core/layers/rows.h"
#include "core/ops/all.h"

namespace pmaptrain::exports {
namespace {

using Dims = std::vector<std::int64_t>;
using Vectors = std::span<const Value>;

constexpr std::size_t any_rank = std::numeric_limits<std::size_t>::max();
// In place of a constant of a pattern that may be any number.
constexpr double any_number = std::numeric_limits<double>::quiet_NaN();

struct Match {
  Value x, result;
  std::vector<Value> vectors;         // of the last dimension of x
  std::optional<double> number = {};  // in place of `any_number`
};

struct Pattern {
  std::function<Value(Builder& b, Value x, Vectors vectors)> equations;
  // Returns false if the equations are to become nodes one by one.
  std::function<bool(Translation& to, const Match& match)> append;
  std::size_t rank_from = 1, rank_to = any_rank;  // of x
  std::size_t vectors = 0;
};

// ---- the table ------------------------------------------------------------------------------------------------------

Pattern elementwise(Value (*function)(Builder& b, Value x), const char* op) {
  const auto append = [op](Translation& to, const Match& match) {
    onnx::Attributes attributes;
    if (match.number) attributes.push_back({"alpha", static_cast<float>(*match.number)});
    to.elementwise(match.result, {&match.x, 1}, op, std::move(attributes));
    return true;
  };
  return {[function](Builder& b, Value x, Vectors) { return function(b, x); }, append};
}

Pattern softmax() {
  const auto append = [](Translation& to, const Match& match) {
    to.set(match.result, to.graph().node("Softmax", {to.name(match.x)}, {{"axis", std::int64_t{-1}}}));
    return true;
  };
  return {[](Builder& b, Value x, Vectors) { return equations::softmax(b, x); }, append};
}

// Of each example over the last dimension, or over groups of channels [B, positions, groups, channels].
Pattern norm(bool centred, bool by_groups) {
  const auto dims_of = [by_groups](const Shape& shape) { return by_groups ? Dims{1, 3} : Dims{std::ssize(shape) - 1}; };
  const auto equations = [=](Builder& b, Value x, Vectors) {
    const Shape shape = b.type(x).shape;
    return layers::normalised(b, x, {{shape.begin() + 1, shape.end()}, dims_of(shape), any_number, centred});
  };
  const auto append = [=](Translation& to, const Match& match) {
    onnx::Graph& graph = to.graph();
    const onnx::Attributes mean{{"axes", dims_of(to.type(match.x).shape)}, {"keepdims", std::int64_t{1}}};
    const std::string x = to.name(match.x);
    const std::string distance = centred ? graph.node("Sub", {x, graph.node("ReduceMean", {x}, mean)}) : x;
    const std::string variance = graph.node("ReduceMean", {graph.node("Mul", {distance, distance})}, mean);
    const std::string deviation = graph.node("Sqrt", {graph.node("Add", {variance, graph.number(*match.number)})});
    to.set(match.result, graph.node("Div", {distance, deviation}));
    return true;
  };
  return {equations, append, std::size_t{by_groups ? 4U : 2U}, by_groups ? 4U : any_rank};
}

Pattern mean_of_positions() {
  const auto append = [](Translation& to, const Match& match) {
    const bool first = to.is_there(match.x, true);
    Dims dims;
    for (std::int64_t d = 1; d + 1 < std::ssize(to.type(match.x).shape); ++d) dims.push_back(first ? d + 1 : d);
    const std::string x = first ? to.image(match.x) : to.name(match.x);
    to.set(match.result, to.graph().node("ReduceMean", {x}, {{"axes", dims}, {"keepdims", std::int64_t{0}}}));
    return true;
  };
  return {[](Builder& b, Value x, Vectors) { return layers::mean_of_positions(b, x, b.type(x).dtype); }, append, 3};
}

// BatchNormalization has the channels second; without positions they are second anyway.
Pattern batch_norm(bool scaled, bool biased) {
  const auto equations = [=](Builder& b, Value x, Vectors of) {
    return layers::batch_normalised(b, x, {of[0], of[1]}, any_number, scaled ? std::optional(of[2]) : std::nullopt,
                                    biased ? std::optional(of.back()) : std::nullopt);
  };
  const auto append = [=](Translation& to, const Match& match) {
    const Shape& shape = to.type(match.x).shape;
    const bool is_image = to.is_there(match.x, true);
    if (!is_image && shape.size() != 2) return false;
    const auto vector_of = [&](bool is_there, const Value& vector, double otherwise) {
      const std::vector<double> repeated(static_cast<std::size_t>(shape.back()), otherwise);
      return is_there ? to.name(vector) : to.graph().numbers(repeated, {shape.back()});
    };
    const std::string x = is_image ? to.image(match.x) : to.name(match.x);
    const std::string scale = vector_of(scaled, match.vectors[2 - (scaled ? 0 : 1)], 1);
    const std::string bias = vector_of(biased, match.vectors.back(), 0);
    const std::string mean = to.name(match.vectors[0]), variance = to.name(match.vectors[1]);
    to.set(match.result,
           to.graph().node("BatchNormalization", {x, scale, bias, mean, variance},
                           {{"epsilon", static_cast<float>(*match.number)}}),
           is_image);
    return true;
  };
  return {equations, append, 2, any_rank, std::size_t{2} + (scaled ? 1 : 0) + (biased ? 1 : 0)};
}

const std::vector<Pattern>& all_patterns() {
  static const std::vector<Pattern> all{
      batch_norm(true, true),  // before those that are a part of it
      batch_norm(true, false),
      batch_norm(false, true),
      batch_norm(false, false),
      norm(true, false),
      norm(false, false),
      norm(true, true),
      mean_of_positions(),
      softmax(),
      elementwise(equations::sigmoid, "Sigmoid"),
      elementwise(equations::softplus, "Softplus"),
      elementwise([](Builder& b, Value x) { return equations::leaky_relu(b, x, any_number); }, "LeakyRelu"),
      elementwise([](Builder& b, Value x) { return equations::elu(b, x, any_number); }, "Elu"),
  };
  return all;
}

// ---- matching -------------------------------------------------------------------------------------------------------

// The pattern for an x of this type.
Program program_of(const Pattern& pattern, const Type& type) {
  Program program;
  Builder b(program, all_ops());
  const Value x = b.input(Group::batch, "x", type);
  std::vector<Value> vectors;
  for (std::size_t i = 0; i < pattern.vectors; ++i) {
    vectors.push_back(b.input(Group::params, "vector_" + std::to_string(i), {type.dtype, {type.shape.back()}, {}}));
  }
  b.output("y", pattern.equations(b, x, vectors));
  return program;
}

std::string key_of(const Op& op) {
  std::string key;
  append_key(op, key);
  return key;
}

// Compares equations of a program, from `first` on, with those of a pattern.
class Matcher {
 public:
  Matcher(Translation& to, const Program& pattern, std::size_t first)
      : to_(to), pattern_(pattern), first_(first), matched_(pattern.types.size()) {}

  std::optional<Match> match(Value x) {
    const std::vector<Equation>& equations = to_.program().equations;
    if (equations.size() - first_ < pattern_.equations.size()) return std::nullopt;
    for (const Input& input : pattern_.inputs) inputs_.push_back(input.value);
    matched_[index(inputs_.front())] = x;
    for (std::size_t i = 0; i < pattern_.equations.size(); ++i) {
      if (!is_alike(pattern_.equations[i], equations[first_ + i])) return std::nullopt;
    }
    Match found{x, matched_[index(pattern_.outputs.front().value)], {}, number_};
    for (std::size_t i = 1; i < inputs_.size(); ++i) found.vectors.push_back(matched_[index(inputs_[i])]);
    return found;
  }

 private:
  static std::size_t index(Value value) { return static_cast<std::size_t>(value.id); }

  bool is_alike(const Equation& pattern, const Equation& equation) {
    if (&pattern.op.rules() != &equation.op.rules() || pattern.operands.size() != equation.operands.size()) {
      return false;
    }
    const auto* const constant = pattern.op.as<ops::Constant>();
    if (constant != nullptr && std::isnan(constant->value)) {
      const auto* const other = equation.op.as<ops::Constant>();
      if (other->dtype != constant->dtype || !other->shape.empty() || !other->splat()) return false;
      number_ = other->value;
    } else if (key_of(pattern.op) != key_of(equation.op)) {
      return false;
    }
    for (std::size_t i = 0; i < pattern.operands.size(); ++i) {
      Value& bound = matched_[index(pattern.operands[i])];
      const Value operand = equation.operands[i];
      const bool is_new = bound.id < 0 && to_.has(operand) && pattern_.type(pattern.operands[i]) == to_.type(operand);
      if (is_new) bound = operand;
      if (bound != operand) return false;
    }
    for (std::size_t i = 0; i < pattern.results.size(); ++i) {
      matched_[index(pattern.results[i])] = equation.results[i];
    }
    return true;
  }

  Translation& to_;
  const Program& pattern_;
  std::size_t first_;
  std::vector<Value> matched_, inputs_;  // by value of the pattern: that of the program
  std::optional<double> number_;
};

// The first operand with unknown elements that the equations in the scope of the first one read.
std::optional<Value> first_operand(const Translation& to, std::size_t first) {
  const std::vector<Equation>& equations = to.program().equations;
  for (std::size_t i = first; i < equations.size(); ++i) {
    if (equations[i].origin->scope != equations[first].origin->scope) break;
    for (const Value operand : equations[i].operands) {
      if (to.has(operand) && to.known(operand) == nullptr) return operand;
    }
  }
  return std::nullopt;
}

}  // namespace

std::size_t append_pattern(Translation& to, std::size_t first) {
  const std::optional<Value> x = first_operand(to, first);
  if (!x || !is_floating(to.type(*x).dtype)) return 0;
  const std::size_t rank = to.type(*x).shape.size();
  for (const Pattern& pattern : all_patterns()) {
    if (rank < pattern.rank_from || rank > pattern.rank_to) continue;
    const Program program = program_of(pattern, to.type(*x));
    const std::optional<Match> match = Matcher(to, program, first).match(*x);
    if (match && pattern.append(to, *match)) return program.equations.size();
  }
  return 0;
}

}  // namespace pmaptrain::exports
