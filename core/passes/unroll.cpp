#include "core/passes/unroll.h"

#include <algorithm>
#include <unordered_map>

#include "core/base/error.h"
#include "core/graph/check.h"
#include "core/ops/slice/slice.h"

namespace pmaptrain {
namespace {

constexpr std::size_t most_equations = 100'000;

bool communicates(const Equation& equation) {
  if (reads_other_devices(equation.op.rules().communication)) return true;
  return std::any_of(equation.regions.begin(), equation.regions.end(), [](const Region& region) {
    return std::any_of(region.equations.begin(), region.equations.end(), communicates);
  });
}

bool unrolls(const Equation& equation) { return equation.op.is_loop() && communicates(equation); }

class Unroller {
 public:
  explicit Unroller(const Program& from) : from_(from), program_(from) { program_.equations.clear(); }

  Program run() {
    add(from_.equations);
    for (Output& output : program_.outputs) output.value = now(output.value);
    for (Input& input : program_.inputs) {
      if (input.next) input.next = now(*input.next);
    }
    check(program_, "unrolling loops");
    return std::move(program_);
  }

 private:
  Value now(Value value) const {
    const auto found = now_.find(value.id);
    return found == now_.end() ? value : found->second;
  }
  std::vector<Value> now(const std::vector<Value>& values) const {
    std::vector<Value> all;
    all.reserve(values.size());
    for (Value value : values) all.push_back(now(value));
    return all;
  }

  Value fresh(Type type) {
    program_.types.push_back(std::move(type));
    return Value{static_cast<std::int32_t>(program_.types.size()) - 1};
  }
  // Gives the values of an equation new ids, because the previous iteration may have used theirs.
  void rename(const std::vector<Value>& values) {
    for (Value value : values) now_[value.id] = fresh(from_.type(value));
  }

  void add(const std::vector<Equation>& equations) {
    for (const Equation& equation : equations) {
      if (unrolls(equation)) {
        unroll(equation);
      } else {
        append(depth_ == 0 ? renamed_operands(equation) : copy(equation));
      }
    }
  }

  void append(Equation equation) {
    if (program_.equations.size() >= most_equations) {
      throw Error(ExitStatus::usage,
                  Diagnostic{"program",
                             equation.origin->place,
                             "a loop with a collective is written out for its iterations, here in more than 100,000 "
                             "equations",
                             "fewer iterations, or a reduction after the loop (rule 7)",
                             {}});
    }
    program_.equations.push_back(std::move(equation));
  }

  Equation renamed_operands(const Equation& equation) const {
    Equation copied = equation;
    copied.operands = now(equation.operands);
    return copied;
  }

  // A copy of an equation in which all values are new.
  Equation copy(const Equation& equation) {
    Equation copied{equation.op, now(equation.operands), {}, equation.origin, {}};
    for (const Region& region : equation.regions) {
      Region& inner = copied.regions.emplace_back();
      rename(region.params);
      inner.params = now(region.params);
      for (const Equation& each : region.equations) inner.equations.push_back(copy(each));
      inner.results = now(region.results);
    }
    rename(equation.results);
    copied.results = now(equation.results);
    return copied;
  }

  void unroll(const Equation& loop) {
    const LoopRule rule = loop.op.loop();
    const Region& region = loop.regions.front();
    const auto consts = static_cast<std::size_t>(rule.consts), carries = static_cast<std::size_t>(rule.carries);
    const std::vector<Value> operands = now(loop.operands);
    std::vector<Value> carried(operands.begin() + rule.consts, operands.begin() + rule.consts + rule.carries);
    ++depth_;
    for (std::int64_t k = 0; k < rule.iterations; ++k) {
      for (std::size_t i = 0; i < region.params.size(); ++i) {
        Value& param = now_[region.params[i].id];
        if (i < consts) {
          param = operands[i];
        } else if (i < consts + carries) {
          param = carried[i - consts];
        } else {
          param = part(loop, operands[i], program_.type(operands[i]), from_.type(region.params[i]), k);
        }
      }
      add(region.equations);
      carried = now(region.results);
    }
    --depth_;
    for (std::size_t i = 0; i < carries; ++i) now_[loop.results[i].id] = carried[i];
  }

  // Appends the equation that takes part k of a slice, which iteration k reads. Returns the part.
  Value part(const Equation& loop, Value whole, const Type& of, const Type& type, std::int64_t k) {
    ops::Slice slice{std::vector<std::int64_t>(of.shape.size(), 0), of.shape};
    slice.starts.front() = k * type.shape.front();
    slice.limits.front() = (k + 1) * type.shape.front();
    const Value result = fresh(type);
    append(Equation{std::move(slice), {whole}, {result}, loop.origin, {}});
    return result;
  }

  const Program& from_;
  Program program_;
  std::unordered_map<std::int32_t, Value> now_;  // by value of the given program: its replacement in this iteration
  int depth_ = 0;                                // number of enclosing loops
};

}  // namespace

std::shared_ptr<const Program> unroll_loops_with_collectives(std::shared_ptr<const Program> program) {
  if (std::none_of(program->equations.begin(), program->equations.end(), unrolls)) return program;
  return std::make_shared<const Program>(Unroller(*program).run());
}

}  // namespace pmaptrain
