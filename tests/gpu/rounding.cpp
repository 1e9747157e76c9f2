#include "tests/gpu/rounding.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/type_list.h"
#include "tests/catch.h"
#include "tests/runtime/programs.h"

namespace pmaptrain::test {
namespace {

class Chains {
 public:
  explicit Chains(const Program& program) : program_(program) {}

  double longest(const std::vector<Equation>& equations) {
    double most = 0;
    for (const Equation& equation : equations) {
      double before = 0;
      for (const Value operand : equation.operands) before = std::max(before, chains_[operand]);
      const double after = before + of(equation);
      for (const Value result : equation.results) chains_[result] = after;
      most = std::max(most, after);
    }
    return most;
  }

 private:
  double of(const Equation& equation) {
    if (equation.op.rules().view) return 0;
    if (!equation.regions.empty()) {
      const double times = equation.op.is_loop() ? static_cast<double>(equation.op.loop().iterations) : 1;
      return times * longest(equation.regions.front().equations);
    }
    const std::span<const Type> results = results_.of(program_, equation.results);
    std::int64_t elements = 1;
    for (const Type& type : results) elements = std::max(elements, numel(type));
    const double operations = equation.op.cost(program_.mesh, operands_.of(program_, equation.operands), results).flops;
    return std::ceil(operations / static_cast<double>(elements));
  }

  const Program& program_;
  TypeList operands_, results_;
  std::map<Value, double> chains_;
};

}  // namespace

double longest_chain(const Program& program) { return Chains(program).longest(program.equations); }

double apart_by_order(double chain) { return 2 * 8 * std::sqrt(chain) * std::ldexp(1, -24); }

}  // namespace pmaptrain::test

TEST_CASE("the longest chain of roundings of a program is that of its longest sums, one after another", "[gpu]") {
  using pmaptrain::test::longest_chain, pmaptrain::test::program_of;
  const std::string inputs = "params %w:f32[50,4]{}\nbatch %x:f32[8,50]{}\n";
  const std::string product = inputs + "%y = matmul %x, %w\n", sum = product + "%s = reduce_sum[dims=[0, 1]] %y\n";
  CHECK(longest_chain(*program_of(product + "return y = %y\n")) == 100);
  CHECK(longest_chain(*program_of(sum + "return s = %s\n")) == 132);
  // What is beside the longest way adds nothing.
  CHECK(longest_chain(*program_of(sum + "%t = reduce_sum[dims=[0, 1]] %x\nreturn s = %s\nreturn t = %t\n")) == 400);
  CHECK(pmaptrain::test::apart_by_order(10000) < 1e-4);
}
