#include "core/runtime/cpu/sums_of_rows.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/analysis/row_cut.h"
#include "core/ops/all.h"

namespace pmaptrain::cpu {
namespace {

class Completing {
 public:
  Completing(const Program& program, RowFacts rows) : program_(program), rows_(std::move(rows)) {}

  Program run() {
    for_each_whole_read(program_, rows_, [&](Value value) {
      if (rows_.of(value) == RowKind::partial) read_whole_.insert(value.id);
    });
    add_sums(program_.equations);
    for_each_whole_read(program_, rows_, [&](Value& value) {
      const auto sum = sums_.find(value.id);
      if (sum != sums_.end()) value = sum->second;
    });
    return std::move(program_);
  }

 private:
  void add_sums(std::vector<Equation>& equations) {
    std::vector<Equation> all;
    for (Equation& equation : equations) {
      if (equation.op.is_loop() && communicates(equation)) add_sums(equation.regions.front().equations);
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
