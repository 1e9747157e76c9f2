#include "core/passes/join_sums.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/graph/check.h"
#include "core/ops/fused_rows/fused_rows.h"
#include "core/ops/reduce/reduce.h"
#include "core/passes/slice.h"

namespace pmaptrain {
namespace {

// The most elements of a joined sum, over all devices of the mesh. One GPU may run all of these devices, and computes a
// joined sum with few threads.
constexpr std::int64_t most_elements = 16384;

// Sums that become one equation.
struct ShortSums {
  std::vector<std::size_t> members;                         // indices of equations
  std::size_t first_reader = static_cast<std::size_t>(-1);  // the first equation that reads one of them
};

class SumJoiner {
 public:
  SumJoiner(Program& program, std::vector<Equation>& equations) : program_(program), equations_(equations) {
    for (std::size_t i = 0; i < equations.size(); ++i) {
      for (const Value operand : equations[i].operands) first_reader_.try_emplace(operand.id, i);
    }
  }

  bool run() {
    std::vector<ShortSums> all;
    for (std::size_t i = 0; i < equations_.size(); ++i) {
      if (!is_short_sum(equations_[i])) continue;
      auto open = std::find_if(all.rbegin(), all.rend(), [&](const ShortSums& sums) {
        return sums.first_reader > i && are_alike(equations_[sums.members.front()], equations_[i]);
      });
      if (open == all.rend()) {
        all.emplace_back();
        open = all.rbegin();
      }
      open->members.push_back(i);
      const auto reader = first_reader_.find(equations_[i].results[0].id);
      if (reader != first_reader_.end()) open->first_reader = std::min(open->first_reader, reader->second);
    }
    std::erase_if(all, [](const ShortSums& sums) { return sums.members.size() < 2; });
    for (const ShortSums& sums : all) join(sums);
    std::erase_if(equations_, [](const Equation& equation) { return equation.results.empty(); });
    return !all.empty();
  }

 private:
  const Type& type(Value value) const { return program_.type(value); }

  bool is_short_sum(const Equation& equation) const {
    if (equation.op.as<ops::ReduceSum>() == nullptr) return false;
    const Type &from = type(equation.operands[0]), &to = type(equation.results[0]);
    // Joining could change where a sum in bf16 is rounded (once for each device, or once for all devices of a GPU).
    return (from.dtype == DType::f32 || from.dtype == DType::f64) && to.dtype == from.dtype && numel(to) == 1 &&
           numel(from) > 1 && !from.varying.empty() &&
           numel(from) * program_.mesh.group_size(from.varying) <= most_elements &&
           ops::reduces_rows(equation.op, from.shape, numel(from));
  }

  bool are_alike(const Equation& a, const Equation& b) const {
    const Type &x = type(a.operands[0]), &y = type(b.operands[0]);
    return x.dtype == y.dtype && x.varying == y.varying && x.shape[0] == y.shape[0] && numel(x) == numel(y);
  }

  // The joined equation replaces the last member. The other members lose their results.
  void join(const ShortSums& sums) {
    Region region;
    std::vector<Value> operands, results;
    for (const std::size_t i : sums.members) {
      Equation& member = equations_[i];
      operands.push_back(member.operands[0]);
      results.push_back(member.results[0]);
      region.params.push_back(new_value(program_, operands.back()));
      region.results.push_back(new_value(program_, results.back()));
      region.equations.push_back({member.op, {region.params.back()}, {region.results.back()}, member.origin, {}});
      member.results.clear();
    }
    const Equation& first = equations_[sums.members.front()];
    Equation joined{ops::FusedRows{numel(type(operands.front()))}, operands, results, first.origin, {}};
    joined.regions.push_back(std::move(region));
    equations_[sums.members.back()] = std::move(joined);
  }

  Program& program_;
  std::vector<Equation>& equations_;
  std::unordered_map<std::int32_t, std::size_t> first_reader_;  // by value: the index of an equation
};

bool join_in(Program& program, std::vector<Equation>& equations) {
  bool found = false;
  for (Equation& equation : equations) {
    if (equation.op.is_loop()) found |= join_in(program, equation.regions[0].equations);
  }
  return SumJoiner(program, equations).run() || found;
}

}  // namespace

Program join_sums(Program program) {
  if (join_in(program, program.equations)) check(program, "join_sums");
  return program;
}

}  // namespace pmaptrain
