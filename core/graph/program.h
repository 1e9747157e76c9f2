// A program: one logical device's step as equations in single-assignment form over a closed set of ops. Flat, except
// for ops that carry a region (the microbatch loop). A region sees its own parameters only, never values from outside.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/graph/op.h"
#include "core/mesh/layout.h"

namespace pmaptrain {

// The origin of an equation: the layer or the part of the step, and the line in the config or program text.
struct Origin {
  std::string scope;  // "conv_0", "loss", "adam"
  Place place;
};

struct Equation;

struct Region {
  std::vector<Value> params;
  std::vector<Equation> equations;
  std::vector<Value> results;
};

struct Equation {
  Op op;
  std::vector<Value> operands;
  std::vector<Value> results;
  std::shared_ptr<const Origin> origin;  // never null; shared, since most equations come from the place of another
  std::vector<Region> regions = {};      // none, or one

  // Whether it can be repeated or left out wherever its operand is: its result is the operand's bytes, and it orders
  // nothing. An optimization_barrier with a second operand waits for that.
  bool is_view() const { return op.rules().view && operands.size() == 1; }
};

// `params_state` are statistics of the model that a step replaces without a gradient, such as running means. `base` are
// parameters beside which others are trained: no step replaces them, all members of an ensemble share them, and no
// checkpoint has them.
enum class Group { params, params_state, state, batch, hyper, data, base };
std::string_view to_string(Group group);
// Whether it is trained: parameters and their statistics. A file of parameters has both.
constexpr bool is_trained(Group group) { return group == Group::params || group == Group::params_state; }
// Whether it belongs to the model.
constexpr bool is_of_model(Group group) { return is_trained(group) || group == Group::base; }
// Whether a step may replace the value of an input, which keeps it from step to step (rule 4).
constexpr bool is_kept(Group group) { return is_trained(group) || group == Group::state; }
// Whether all members of an ensemble read the same value, which no step replaces.
constexpr bool is_of_all_members(Group group) { return group == Group::data || group == Group::base; }

// An array in a bucket. core/graph/bucket.h says where it begins.
struct Part {
  std::string name;
  Layout layout;
  friend bool operator==(const Part&, const Part&) = default;
};

struct Input {
  std::string name;
  Group group = Group::batch;
  Value value;
  std::optional<Value> next;  // rule 4: params and state name the value that replaces them after the step
  Place update_place = {};    // where program text says so
  // How devices share the array: `value` is the local one, which varies over the axes that divide it. Along other axes
  // over which it varies, positions have arrays of their own. A bucket is divided into shards.
  Layout layout;
  // Of a bucket: the arrays that it contains, which have names of their own. The bucket has the local array of each.
  std::vector<Part> parts = {};

  // The axes that divide the array or, of a bucket, the bucket or any of its parts.
  AxisSet divided() const;
};

struct Output {
  std::string name;
  Value value;
};

struct Program {
  std::string name;
  Mesh mesh;
  std::vector<Type> types;  // by Value::id, those of regions included
  std::vector<Input> inputs;
  std::vector<Equation> equations;
  std::vector<Output> outputs;

  const Type& type(Value value) const { return types[static_cast<std::size_t>(value.id)]; }
  const Input* find_input(std::string_view input_name) const;
  const Output* find_output(std::string_view output_name) const;

  // Defined in its source: their code is long, and each source that copies or destroys one would compile it again.
  Program();
  Program(const Program&);
  Program(Program&&) noexcept;
  Program& operator=(const Program&);
  Program& operator=(Program&&) noexcept;
  ~Program();
};

std::vector<Type> types_of(const Program& program, std::span<const Value> values);

// The offset of each part, and then the end of the last one, in elements (core/graph/bucket.h).
std::vector<std::int64_t> offsets_of(std::span<const Part> parts, const Mesh& mesh);

// An array that the caller of a program sets or reads: an input, or a part of an input that is a bucket.
struct Variable {
  std::string_view name;  // of the input or the part, which outlives this
  Group group = Group::batch;
  Type type;               // of the logical array, which no device has if it is divided
  Layout layout;           // of the array, without the division of a bucket into shards
  AxisSet divided;         // all axes that divide it, those of shards included
  std::size_t input = 0;   // index among the inputs
  std::int64_t begin = 0;  // of a part: where its local array begins in the bucket, in elements
};
// In the order of the inputs and their parts.
std::vector<Variable> variables_of(const Program& program);

// Where `count` elements of a variable are from element `begin` on: StridedCopy::local counts from the beginning of the
// local array of the input.
std::vector<StridedCopy> copies_of(const Program& program, const Variable& variable, std::int64_t begin,
                                   std::int64_t count);

// Gives back the room that the program's lists have for more.
void shrink(Program& program);
// The approximate memory of the program itself.
std::size_t bytes_of(const Program& program);

// Calls f(equation) for every equation in order. Equations of a region follow the equation that contains it.
template <class F>
void for_each_equation(const std::vector<Equation>& equations, F&& f) {
  for (const Equation& equation : equations) {
    f(equation);
    for (const Region& region : equation.regions) for_each_equation(region.equations, f);
  }
}

// Whether devices read values of each other, or own parts of a value that all have, in `equation` or in its regions.
bool communicates(const Equation& equation);

}  // namespace pmaptrain
