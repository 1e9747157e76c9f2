#include "core/graph/check.h"

#include <algorithm>
#include <unordered_set>

#include "core/graph/bucket.h"
#include "core/graph/text.h"
#include "core/graph/type_list.h"

namespace pmaptrain {
namespace {

class Checker {
 public:
  Checker(const Program& program, std::string_view after) : program_(program), after_(after) {}

  void run() {
    region_of_.assign(program_.types.size(), nowhere);
    std::unordered_set<std::string> names;
    for (const Input& input : program_.inputs) {
      define(input.value, 0, nullptr, 0);
      const std::string error = size_error(program_.type(input.value), program_.mesh);
      if (!error.empty()) fail("input '" + input.name + "': " + error);
      if (!names.insert(input.name).second) fail("two inputs are named '" + input.name + "'");
      for (const Part& part : input.parts) {
        if (!names.insert(part.name).second) fail("two inputs are named '" + part.name + "'");
      }
      check_parts(input);
    }
    check_equations(program_.equations, 0);
    for (const Input& input : program_.inputs) check_update(input);
    for (const Output& output : program_.outputs) {
      if (!visible(output.value, 0)) fail("output '" + output.name + "' is a value that no equation defines");
    }
  }

 private:
  static constexpr int nowhere = -1;

  // Whether an input of the program (region 0) or of a region, or an equation so far in it, defines the value.
  bool visible(Value value, int region) const {
    return value.id >= 0 && static_cast<std::size_t>(value.id) < region_of_.size() &&
           region_of_[static_cast<std::size_t>(value.id)] == region;
  }

  void check_parts(const Input& input) {
    const std::string help = help_for_parts(input, program_.type(input.value), program_.mesh);
    if (!help.empty()) fail("'" + input.name + "' is no bucket of its parts", nullptr, 0, help);
  }

  void check_equations(const std::vector<Equation>& equations, int here) {
    for (std::size_t i = 0; i < equations.size(); ++i) {
      const Equation& equation = equations[i];
      for (Value operand : equation.operands) {
        if (!visible(operand, here)) {
          fail("%" + std::to_string(operand.id) + " is used where no equation before has defined it", &equations, i);
        }
      }
      if (equation.regions.size() != (equation.op.rules().region ? 1u : 0u)) {
        fail(std::string(equation.op.name()) + (equation.op.rules().region ? " needs a region" : " has no region"),
             &equations, i);
      }
      std::span<const Type> params, yields;
      for (const Region& region : equation.regions) {
        const int inside = ++regions_;  // a region sees only its own values
        for (Value param : region.params) define(param, inside, &equations, i);
        check_equations(region.equations, inside);
        for (Value result : region.results) {
          if (!visible(result, inside)) fail("the region yields a value that it does not define", &equations, i);
        }
        params = params_.of(program_, region.params);
        yields = yields_.of(program_, region.results);
      }
      for (Value result : equation.results) define(result, here, &equations, i);
      check_types(equations, i, params, yields);
    }
  }

  void check_types(const std::vector<Equation>& equations, std::size_t i, std::span<const Type> params,
                   std::span<const Type> yields) {
    const Equation& equation = equations[i];
    const std::span<const Type> operands = operands_.of(program_, equation.operands);
    std::vector<Type> inferred;
    try {
      inferred = equation.op.infer({program_.mesh, operands, params, yields,
                                    equation.regions.empty() ? nullptr : &equation.regions.front(), program_.types});
    } catch (const TypeError& error) {
      fail(error.what(), &equations, i, error.help);
    }
    const bool as_inferred =
        std::equal(inferred.begin(), inferred.end(), equation.results.begin(), equation.results.end(),
                   [&](const Type& type, Value result) { return type == program_.type(result); });
    if (!as_inferred) {
      fail("the types of the results are not those that " + std::string(equation.op.name()) + " gives", &equations, i);
    }
  }

  // Rule 4. This is where a forgotten reduction is refused.
  void check_update(const Input& input) {
    place_ = input.update_place;
    const bool replaced = input.next.has_value();
    const bool keeps = is_kept(input.group);
    if (!replaced) return;
    if (!keeps) fail("'" + input.name + "' is a " + std::string(to_string(input.group)) + " input: it has no update");
    if (!visible(*input.next, 0)) fail("the update of '" + input.name + "' is a value that no equation defines");
    const Type& old_type = program_.type(input.value);
    const Type& new_type = program_.type(*input.next);
    if (old_type == new_type) return;
    const std::string what =
        std::string(input.group == Group::params ? "parameter" : "state") + " '" + input.name + "'";
    const AxisSet extra = new_type.varying - old_type.varying;
    const std::string types =
        to_string(old_type, program_.mesh) + ", but what replaces it is " + to_string(new_type, program_.mesh);
    if (old_type.dtype != new_type.dtype || old_type.shape != new_type.shape || extra.empty()) {
      fail(what + " is " + types, nullptr, 0, "rule 4: the value that replaces it must have exactly its type");
    }
    const std::string axes = program_.mesh.to_string(extra);
    // The equation that gives the value is blamed; the reader also wants to see what makes that wrong.
    const std::size_t defined = definition(*input.next);
    std::vector<std::string> notes;
    if (defined < program_.equations.size() && place_.line > 0) {
      notes.push_back("the update is " + place_.file + ":" + std::to_string(place_.line) + ":" +
                      std::to_string(place_.column) + ": " + std::string(place_.excerpt.text()));
    }
    fail(what + " would become different on the devices along " + axes + ": it is " + types, &program_.equations,
         defined, "a reduction is missing: psum or pmean over " + axes + " before the update (rule 4)",
         std::move(notes));
  }

  // The equation that gives `value`; one past the last for an input.
  std::size_t definition(Value value) const {
    for (std::size_t i = 0; i < program_.equations.size(); ++i) {
      for (Value result : program_.equations[i].results) {
        if (result == value) return i;
      }
    }
    return program_.equations.size();
  }

  void define(Value value, int region, const std::vector<Equation>* equations, std::size_t i) {
    if (value.id < 0 || static_cast<std::size_t>(value.id) >= program_.types.size()) {
      fail("a value has no type", equations, i);
    }
    int& defined = region_of_[static_cast<std::size_t>(value.id)];
    if (defined != nowhere) fail("%" + std::to_string(value.id) + " is defined twice", equations, i);
    defined = region;
  }

  [[noreturn]] void fail(std::string message, const std::vector<Equation>* equations = nullptr, std::size_t i = 0,
                         std::string help = {}, std::vector<std::string> notes = {}) {
    Diagnostic diagnostic{"program", place_, std::move(message), std::move(help), std::move(notes)};
    if (!after_.empty()) diagnostic.message = "after " + std::string(after_) + ": " + diagnostic.message;
    if (equations != nullptr && i < equations->size()) {
      diagnostic.place = (*equations)[i].origin->place;
      const std::size_t from = i < 3 ? 0 : i - 3;
      std::string around = "the equations around it:";
      for (std::size_t k = from; k < std::min(equations->size(), i + 3); ++k) {
        around += (k == i ? "\n    > " : "\n      ") + to_text(program_, (*equations)[k]);
      }
      diagnostic.notes.push_back(std::move(around));
    }
    throw Error(ExitStatus::usage, std::move(diagnostic));
  }

  const Program& program_;
  std::string_view after_;
  std::vector<int> region_of_;  // by value: the region that defines it, so far; 0 is the program
  int regions_ = 0;
  TypeList operands_, params_, yields_;  // of the equation at hand
  Place place_;                          // of what is checked, where no equation has one
};

}  // namespace

void check(const Program& program, std::string_view after) { Checker(program, after).run(); }

std::string help_for_parts(const Input& input, const Type& type, const Mesh& mesh) {
  if (input.parts.empty()) return input.sharded.empty() ? "" : "a bucket has shards, and it has no parts";
  for (const Part& part : input.parts) {
    const std::string error = size_error({type.dtype, part.shape, {}}, mesh);
    if (!error.empty()) return "'" + part.name + "': " + error;
  }
  if (!input.sharded.empty() && type.varying != input.sharded) {
    return "its shards vary over " + mesh.to_string(input.sharded) + ", and it is " + to_string(type, mesh);
  }
  const std::int64_t least = offsets_of(input.parts).back(), shards = mesh.group_size(input.sharded);
  if (type.shape.size() == 1 && type.shape[0] % bucket_unit == 0 && type.shape[0] * shards >= least) return "";
  return "its parts need one dimension of a multiple of " + std::to_string(bucket_unit) + " elements, at least " +
         std::to_string(least) + (shards == 1 ? "" : " in the " + std::to_string(shards) + " shards together") +
         ", and it has " + to_string(type.shape);
}

}  // namespace pmaptrain
