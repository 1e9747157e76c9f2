#include "core/passes/split_psum_scatter.h"

#include <set>
#include <utility>
#include <vector>

#include "core/ops/collective/collective.h"
#include "core/passes/uses.h"

namespace pmaptrain {

Program split_psum_scatter(Program program) {
  const Uses uses(program);
  std::set<std::int32_t> buckets;
  std::vector<Equation> equations;
  equations.reserve(program.equations.size());
  for (Equation& equation : program.equations) {
    if (equation.op.rules().packs) buckets.insert(equation.results.front().id);
    const ops::PsumScatter* const scatter = equation.op.as<ops::PsumScatter>();
    if (scatter == nullptr || !buckets.contains(equation.operands.front().id) ||
        uses.of(equation.operands.front()) > 1) {
      equations.push_back(std::move(equation));
      continue;
    }
    Type whole = program.type(equation.operands.front());
    whole.varying = whole.varying - scatter->axes;
    const Value sum{static_cast<std::int32_t>(program.types.size())};
    program.types.push_back(std::move(whole));
    equations.push_back({ops::Psum{scatter->axes}, equation.operands, {sum}, equation.origin});
    equations.push_back({ops::AllSlice{scatter->axes, scatter->dim}, {sum}, equation.results, equation.origin});
  }
  program.equations = std::move(equations);
  return program;
}

}  // namespace pmaptrain
