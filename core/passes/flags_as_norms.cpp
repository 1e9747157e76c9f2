#include "core/passes/flags_as_norms.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/graph/check.h"
#include "core/ops/cast/cast.h"
#include "core/ops/fused/fused.h"
#include "core/ops/norms/norms.h"
#include "core/ops/reduce/reduce.h"
#include "core/passes/uses.h"

namespace pmaptrain {
namespace {

// A chain of flags and their maximum, as indices of equations.
struct Flags {
  std::size_t chain = 0, largest = 0;
  DType dtype = DType::f32;          // type of the numbers that replace the flags
  std::vector<std::size_t> readers;  // the equations that read the maximum
};

class Finder {
 public:
  explicit Finder(const Program& program) : program_(program), uses_(program) {
    for (std::size_t i = 0; i < program.equations.size(); ++i) {
      for (const Value result : program.equations[i].results) made_by_[result.id] = i;
    }
    for (std::size_t i = 0; i < program.equations.size(); ++i) {
      for (const Value operand : program.equations[i].operands) readers_[operand.id].push_back(i);
    }
  }

  std::vector<Flags> all() const {
    std::vector<Flags> found;
    for (std::size_t i = 0; i < program_.equations.size(); ++i) {
      if (std::optional<Flags> flags = at(i)) found.push_back(*std::move(flags));
    }
    return found;
  }

 private:
  // The flags whose maximum equation `i` computes, if it does.
  std::optional<Flags> at(std::size_t i) const {
    const Equation& largest = program_.equations[i];
    if (largest.op.as<ops::ReduceMax>() == nullptr || !program_.type(largest.results[0]).shape.empty()) return {};
    const Value marks = largest.operands[0];
    const auto made = made_by_.find(marks.id);
    if (program_.type(marks).dtype != DType::u8 || made == made_by_.end() || uses_.of(marks) != 1) return {};
    const Equation& chain = program_.equations[made->second];
    if (chain.op.as<ops::Fused>() == nullptr || chain.results.size() != 1) return {};
    const auto array = std::find_if(chain.operands.begin(), chain.operands.end(), [&](const Value operand) {
      const Type& type = program_.type(operand);
      return is_floating(type.dtype) && numel(type) == numel(program_.type(marks));
    });
    const auto read = readers_.find(largest.results[0].id);
    if (array == chain.operands.end() || read == readers_.end()) return {};
    const bool by_chains = uses_.of(largest.results[0]) == std::ssize(read->second) &&
                           std::all_of(read->second.begin(), read->second.end(), [&](std::size_t reader) {
                             return program_.equations[reader].op.as<ops::Fused>() != nullptr;
                           });
    if (!by_chains) return {};
    return Flags{made->second, i, program_.type(*array).dtype, read->second};
  }

  const Program& program_;
  const Uses uses_;
  std::map<std::int32_t, std::size_t> made_by_;
  std::map<std::int32_t, std::vector<std::size_t>> readers_;
};

Value new_value(Program& program, Type type) {
  program.types.push_back(std::move(type));
  return Value{static_cast<std::int32_t>(program.types.size() - 1)};
}

void rewrite(Program& program, const Flags& flags) {
  const auto like = [&](Value value, DType dtype) {
    const Type& type = program.type(value);
    return Type{dtype, type.shape, type.varying};
  };
  Equation& chain = program.equations[flags.chain];
  Region& region = chain.regions.front();
  const Value inside = new_value(program, like(region.results.front(), flags.dtype));
  region.equations.push_back({ops::Cast{flags.dtype}, {region.results.front()}, {inside}, chain.origin, {}});
  region.results.front() = inside;
  const Value marks = new_value(program, like(chain.results.front(), flags.dtype));
  chain.results.front() = marks;

  Equation& norms = program.equations[flags.largest];
  const Value before = norms.results.front();
  const Value squares = new_value(program, like(before, DType::f64));
  const Value largest = new_value(program, like(before, flags.dtype));
  norms = {ops::Norms{}, {marks}, {squares, largest}, norms.origin, {}};

  for (const std::size_t reader : flags.readers) {
    Equation& equation = program.equations[reader];
    const auto at = std::find(equation.operands.begin(), equation.operands.end(), before) - equation.operands.begin();
    equation.operands[static_cast<std::size_t>(at)] = largest;
    Region& body = equation.regions.front();
    const Value known =
        std::exchange(body.params[static_cast<std::size_t>(at)], new_value(program, like(largest, flags.dtype)));
    const Value param = body.params[static_cast<std::size_t>(at)];
    body.equations.insert(body.equations.begin(), {ops::Cast{DType::u8}, {param}, {known}, equation.origin, {}});
  }
}

}  // namespace

Program flags_as_norms(Program program) {
  const std::vector<Flags> all = Finder(program).all();
  if (all.size() < 2) return program;  // norms of one array would take two launches too
  for (const Flags& flags : all) rewrite(program, flags);
  check(program, "flags_as_norms");
  return program;
}

}  // namespace pmaptrain
