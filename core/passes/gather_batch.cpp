#include "core/passes/gather_batch.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/graph/builder.h"
#include "core/graph/check.h"
#include "core/ops/all.h"
#include "core/ops/gather/gather.h"

namespace pmaptrain {
namespace {

class Gatherer {
 public:
  explicit Gatherer(Program& program) : program_(program), b_(program, all_ops()) {}

  void run(std::span<const std::string_view> names, const std::string& split, std::int64_t examples) {
    std::vector<Equation> equations = std::exchange(program_.equations, {});
    std::vector<std::size_t> gathered;
    for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
      const Input& input = program_.inputs[i];
      const bool is_named = std::find(names.begin(), names.end(), input.name) != names.end();
      if (input.group == Group::batch && is_named) gathered.push_back(i);
    }
    const Type first = b_.type(program_.inputs[gathered.front()].value);
    const Value rows =
        b_.input(Group::batch, std::string(row_numbers_input), {DType::i32, {first.shape.front()}, first.varying});
    const Builder::Scope scope(b_, {"data", {}});
    for (const std::size_t i : gathered) {
      const Value batch = program_.inputs[i].value;
      Type type = b_.type(batch);
      type.shape.front() = examples;
      type.varying = {};
      // New inputs are declared last, so the input is moved to its place afterwards.
      const Value table = b_.input(Group::data, split + "/" + program_.inputs[i].name, std::move(type));
      program_.inputs[i] = std::move(program_.inputs.back());
      program_.inputs.pop_back();
      replacements_[batch.id] = b_.emit(ops::Gather{}, {table, rows});
    }
    for (Equation& equation : equations) {
      for (Value& operand : equation.operands) replace(operand);
    }
    for (Input& input : program_.inputs) {
      if (input.next) replace(*input.next);
    }
    for (Output& output : program_.outputs) replace(output.value);
    std::move(equations.begin(), equations.end(), std::back_inserter(program_.equations));
  }

 private:
  void replace(Value& value) const {
    if (const auto found = replacements_.find(value.id); found != replacements_.end()) value = found->second;
  }

  Program& program_;
  Builder b_;
  std::unordered_map<std::int32_t, Value> replacements_;  // by batch input: the gathered value
};

}  // namespace

Program gather_batch(Program program, std::span<const std::string_view> names, const std::string& split,
                     std::int64_t examples) {
  Gatherer(program).run(names, split, examples);
  check(program, "gathering the batch");
  return program;
}

}  // namespace pmaptrain
