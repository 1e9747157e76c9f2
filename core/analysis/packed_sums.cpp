#include "core/analysis/packed_sums.h"

#include "core/analysis/row_cut.h"

namespace pmaptrain {

std::map<std::int32_t, PackedSum> packed_sums(const Program& program, const Facts& facts) {
  std::map<std::int32_t, const Equation*> packs;
  std::map<std::int32_t, PackedSum> sums;
  for (const Equation& equation : program.equations) {
    if (equation.op.rules().packs) packs.emplace(equation.results.front().id, &equation);
    if (!is_sum_over_devices(equation.op)) continue;
    for (const Value bucket : equation.operands) {
      const auto pack = packs.find(bucket.id);
      if (pack != packs.end() && facts.of(bucket).uses == 1) sums[bucket.id] = {pack->second, &equation};
    }
  }
  return sums;
}

}  // namespace pmaptrain
