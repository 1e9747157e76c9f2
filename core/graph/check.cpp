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
      check_storage(input);
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

  void check_storage(const Input& input) {
    const StorageError error = storage_error(input, program_.type(input.value), program_.mesh);
    if (!error.message.empty()) fail(error.message, nullptr, 0, error.help);
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

namespace {

// Why no array of this layout has local arrays of `dtype` on the mesh; empty where one has.
std::string help_for_layout(const Layout& layout, DType dtype, const Mesh& mesh) {
  std::string error = layout_error(layout, mesh);
  if (error.empty()) error = size_error({dtype, layout.logical, {}}, mesh);
  return error;
}

// Why devices cannot have such parts of an input; empty where they can.
std::string help_for_input(const Input& input, const Type& type, const Mesh& mesh) {
  std::string error = help_for_layout(input.layout, type.dtype, mesh);
  if (!error.empty()) return error;
  const AxisSet missing = input.layout.axes() - type.varying;
  if (!missing.empty()) {
    return "its parts vary over " + mesh.to_string(input.layout.axes()) + ", and it is " + to_string(type, mesh);
  }
  const Shape local = local_shape(input.layout, mesh);
  return local == type.shape ? ""
                             : "a device has " + to_string(local) + " of " + to_string(input.layout, mesh) +
                                   ", and it is " + to_string(type, mesh);
}

// Why a bucket cannot have its parts; empty where it can.
std::string help_for_parts(const Input& input, const Type& type, const Mesh& mesh) {
  for (const Part& part : input.parts) {
    const auto of_part = [&](const std::string& why) { return "'" + part.name + "': " + why; };
    const std::string error = help_for_layout(part.layout, type.dtype, mesh);
    if (!error.empty()) return of_part(error);
    const AxisSet axes = part.layout.axes();
    if (!(axes & input.layout.axes()).empty()) {
      return of_part("the bucket is divided along " + mesh.to_string(axes & input.layout.axes()) + " already");
    }
    if (!type.varying.contains(axes)) {
      return of_part("it varies over " + mesh.to_string(axes) + ", and the bucket is " + to_string(type, mesh));
    }
  }
  const std::int64_t least = offsets_of(input.parts, mesh).back(), shards = mesh.group_size(input.layout.axes());
  const bool is_even = type.shape.size() == 1 && type.shape[0] * shards == input.layout.logical[0];
  if (is_even && type.shape[0] % bucket_unit == 0 && input.layout.logical[0] >= least) return "";
  return "its parts need one dimension of a multiple of " + std::to_string(bucket_unit) + " elements, at least " +
         std::to_string(least) + (shards == 1 ? "" : " in the " + std::to_string(shards) + " shards together") +
         ", and it has " + to_string(type.shape);
}

}  // namespace

StorageError storage_error(const Input& input, const Type& type, const Mesh& mesh) {
  std::string help = help_for_input(input, type, mesh);
  if (!help.empty()) return {"'" + input.name + "' cannot be divided so", std::move(help)};
  if (input.parts.empty()) return {};
  help = help_for_parts(input, type, mesh);
  return help.empty() ? StorageError{}
                      : StorageError{"'" + input.name + "' is no bucket of its parts", std::move(help)};
}

}  // namespace pmaptrain
