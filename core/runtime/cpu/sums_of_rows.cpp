#include "core/runtime/cpu/sums_of_rows.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/analysis/row_cut.h"
#include "core/ops/all.h"
#include "core/passes/uses.h"

namespace pmaptrain::cpu {
namespace {

class Completing {
 public:
  Completing(const Program& program, RowFacts rows) : program_(program), rows_(std::move(rows)) {}

  Program run() {
    std::map<std::int32_t, int> whole_reads;
    for_each_whole_read(program_, rows_, [&](Value value) {
      if (rows_.of(value) == RowKind::partial) ++whole_reads[value.id];
    });
    find_whole_views(whole_reads);
    for (const auto& [id, reads] : whole_reads) read_whole_.insert(id);
    add_sums(program_.equations);
    for_each_whole_read(program_, rows_, [&](Value& value) {
      const auto sum = sums_.find(value.id);
      if (sum != sums_.end()) value = sum->second;
    });
    return std::move(program_);
  }

 private:
  // A view that all read whole reads its operand whole itself, so that one sum serves an array and its views, as of a
  // bucket of gradients. Moves their reads to their operands.
  void find_whole_views(std::map<std::int32_t, int>& whole_reads) {
    const Uses uses(program_);
    std::vector<const Equation*> views;
    std::set<std::int32_t> computed;  // where add_sums() can put a sum
    const auto look_into = [&](const auto& self, const std::vector<Equation>& equations) -> void {
      for (const Equation& equation : equations) {
        if (equation.op.is_loop() && communicates(equation)) self(self, equation.regions.front().equations);
        if (equation.op.rules().view && equation.results.size() == 1) views.push_back(&equation);
        for (const Value result : equation.results) computed.insert(result.id);
      }
    };
    look_into(look_into, program_.equations);
    for (auto view = views.rbegin(); view != views.rend(); ++view) {
      const Value result = (*view)->results.front(), operand = (*view)->operands.front();
      const auto reads = whole_reads.find(result.id);
      if (reads == whole_reads.end() || reads->second != uses.of(result)) continue;
      if (rows_.of(operand) != RowKind::partial || !computed.contains(operand.id)) continue;
      whole_reads.erase(reads);
      ++whole_reads[operand.id];
      whole_views_.insert(result.id);
    }
  }

  void add_sums(std::vector<Equation>& equations) {
    std::vector<Equation> all;
    for (Equation& equation : equations) {
      if (equation.op.is_loop() && communicates(equation)) add_sums(equation.regions.front().equations);
      if (whole_views_.contains(equation.results.front().id)) {
        equation.operands.front() = sums_.at(equation.operands.front().id);
      }
      const Equation& added = all.emplace_back(std::move(equation));
      std::vector<Value> partial;
      for (const Value result : added.results) {
        if (read_whole_.contains(result.id)) partial.push_back(result);
      }
      for (const Value value : partial) {
        const Value sum{static_cast<std::int32_t>(program_.types.size())};
        program_.types.push_back(Type(program_.type(value)));
        rows_.kinds.push_back(RowKind::whole);
        rows_.all_rows_equal.push_back(false);
        sums_.emplace(value.id, sum);
        all.push_back({all_ops().psum(AxisSet()), {value}, {sum}, all.back().origin});
      }
    }
    equations = std::move(all);
  }

  Program program_;
  RowFacts rows_;
  std::set<std::int32_t> read_whole_;   // sums over rows that must be complete
  std::set<std::int32_t> whole_views_;  // views of these
  std::map<std::int32_t, Value> sums_;  // the complete sums
};

}  // namespace

std::shared_ptr<const Program> with_sums_of_rows(std::shared_ptr<const Program> program) {
  if (examples_vary(*program)) return program;
  RowFacts rows = find_row_facts(*program, analyse(*program));
  if (rows.count == 0) return program;
  return std::make_shared<const Program>(Completing(*program, std::move(rows)).run());
}

}  // namespace pmaptrain::cpu
