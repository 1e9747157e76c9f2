#include "core/analysis/packed_sums.h"

namespace pmaptrain {

std::map<std::int32_t, PackedSum> packed_sums(const Program& program, const Facts& facts) {
  std::map<std::int32_t, const Equation*> packs;
  std::map<std::int32_t, PackedSum> sums;
  for (const Equation& equation : program.equations) {
    if (equation.op.rules().packs) packs.emplace(equation.results.front().id, &equation);
    if (equation.op.rules().communication != Communication::sum) continue;
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
      const Value bucket = equation.operands[i];
      const auto pack = packs.find(bucket.id);
      if (pack != packs.end() && facts.of(bucket).uses == 1) sums[bucket.id] = {pack->second, equation.results[i]};
    }
  }
  return sums;
}

}  // namespace pmaptrain
