#include "core/passes/widen.h"

#include <algorithm>
#include <optional>

#include "core/graph/check.h"
#include "core/graph/passes.h"
#include "core/ops/list.h"
#include "core/passes/chains.h"
#include "core/passes/uses.h"

namespace pmaptrain {
namespace {

// The op with f32 results; nothing if the op has no such form, or has f32 results already.
template <class T>
std::optional<Op> widened_as(const Op& op) {
  const T* const narrow = op.as<T>();
  if (narrow == nullptr || narrow->preferred_element_type) return std::nullopt;
  T wide = *narrow;
  wide.preferred_element_type = DType::f32;
  return wide;
}

std::optional<Op> widened(const Op& op) {
  std::optional<Op> wide;
  const auto take = [&]<class T>() {
    if (!wide) wide = widened_as<T>(op);
  };
  take.operator()<ops::Matmul>();
  take.operator()<ops::BatchMatmul>();
  take.operator()<ops::Conv>();
  take.operator()<ops::ConvInputGrad>();
  take.operator()<ops::ConvKernelGrad>();
  take.operator()<ops::ReduceSum>();
  return wide;
}

// Whether the same layer, or its derivative, has added both equations.
bool in_one_scope(const Equation& a, const Equation& b) {
  return a.origin == b.origin || (a.origin && b.origin && a.origin->scope == b.origin->scope);
}

class Widener {
 public:
  explicit Widener(Program& program) : program_(program), uses_(program) {}

  // Returns whether an equation changed.
  bool run() {
    run(program_.equations);
    return any_;
  }

 private:
  void run(std::vector<Equation>& equations) {
    for (Equation& equation : equations) {
      for (Region& region : equation.regions) run(region.equations);
    }
    definitions_.add(equations);
    std::vector<bool> gone(equations.size(), false);
    for (std::size_t i = 0; i < equations.size(); ++i) gone[i] = take_cast(equations, i);
    std::size_t i = 0;
    any_ |= std::erase_if(equations, [&](const Equation&) { return gone[i++]; }) > 0;
  }

  // If equation `at` casts a bf16 result to f32 and the op of that result can give f32, lets it do so. Returns whether
  // the cast is then superfluous.
  bool take_cast(std::vector<Equation>& equations, std::size_t at) {
    const ops::Cast* const cast = equations[at].op.as<ops::Cast>();
    if (cast == nullptr || cast->dtype != DType::f32) return false;
    const Value narrow = equations[at].operands.front();
    const std::size_t* const made = definitions_.find(narrow);
    if (made == nullptr || program_.type(narrow).dtype != DType::bf16 || uses_.of(narrow) != 1) return false;
    Equation& maker = equations[*made];
    if (!in_one_scope(maker, equations[at])) return false;
    if (maker.op.as<ops::Cast>() != nullptr && program_.type(maker.operands.front()).dtype == DType::f32) {
      equations[at].operands.front() = maker.operands.front();  // remove_identities removes a cast to its own type
      any_ = true;
      return false;
    }
    const std::optional<Op> wide = maker.results.size() == 1 ? widened(maker.op) : std::nullopt;
    if (!wide) return false;
    maker.op = *wide;
    maker.results = equations[at].results;
    return true;
  }

  Program& program_;
  const Uses uses_;
  Definitions definitions_;
  bool any_ = false;
};

}  // namespace

Program widen(Program program) {
  if (!Widener(program).run()) return program;
  check(program, "widen");
  return simplify(std::move(program));
}

}  // namespace pmaptrain
