#include "core/passes/fuse_epilogues.h"

#include <algorithm>

#include "core/graph/check.h"
#include "core/graph/passes.h"
#include "core/ops/list.h"
#include "core/passes/chains.h"
#include "core/passes/uses.h"

namespace pmaptrain {
namespace {

// Processes one list of equations, of the program or of a region.
class EpilogueFuser {
 public:
  EpilogueFuser(std::vector<Equation>& equations, Definitions& definitions, const Uses& uses)
      : equations_(equations), definitions_(definitions), uses_(uses) {
    definitions_.add(equations_);
  }

  // Returns whether an equation moved.
  bool run() {
    gone_.assign(equations_.size(), false);
    for (std::size_t i = 0; i < equations_.size(); ++i) {
      if (equations_[i].op.as<ops::Relu>() != nullptr) take_relu(i);
      if (equations_[i].op.as<ops::Select>() != nullptr) take_mask(i);
      if (equations_[i].op.as<ops::ReduceSum>() != nullptr) take_sum(i);
    }
    if (std::find(gone_.begin(), gone_.end(), true) == gone_.end()) return false;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < equations_.size(); ++i) {
      if (gone_[i]) continue;
      if (kept != i) equations_[kept] = std::move(equations_[i]);
      ++kept;
    }
    equations_.erase(equations_.begin() + static_cast<std::ptrdiff_t>(kept), equations_.end());
    return true;
  }

 private:
  // The equation of this list that gives the value; null for an input or a parameter of the region.
  Equation* maker(Value value) {
    const std::size_t* const place = definitions_.find(value);
    return place == nullptr ? nullptr : &equations_[*place];
  }
  template <class T>
  const T* made_by(Value value) {
    const Equation* equation = maker(value);
    return equation == nullptr ? nullptr : equation->op.as<T>();
  }
  bool used_once(Value value) const { return uses_.of(value) == 1; }
  bool is_zero(Value value) {
    if (made_by<ops::Constant>(value) != nullptr) return ops::splat_of(maker(value)->op) == 0;
    if (made_by<ops::Pvary>(value) != nullptr) return is_zero(maker(value)->operands[0]);
    return false;
  }

  void take_relu(std::size_t at) {
    const Value x = equations_[at].operands[0];
    if (!used_once(x)) return;
    if (const auto* conv = made_by<ops::Conv>(x); conv != nullptr && !conv->relu) {
      ops::Conv fused = *conv;
      fused.relu = true;
      replace_by(x, at, fused);
    } else if (const auto* matmul = made_by<ops::Matmul>(x); matmul != nullptr && !matmul->relu) {
      ops::Matmul fused = *matmul;
      fused.relu = true;
      replace_by(x, at, fused);
    }
  }

  // Gives the equation that defines `value` another op and the result of equation `at`, which is removed.
  void replace_by(Value value, std::size_t at, const Op& op) {
    const std::size_t earlier = *definitions_.find(value);
    equations_[earlier].op = op;
    equations_[earlier].results = equations_[at].results;
    definitions_.set(equations_[at].results[0], earlier);
    gone_[at] = true;
  }

  // `select(x > 0, max_pool_grad(x, dy), 0)`: an element with a gradient is the maximum of its window. So the fused op
  // may test whether the maximum is above 0 instead of testing x.
  void take_mask(std::size_t at) {
    const std::vector<Value> operands = equations_[at].operands;
    const auto* gradient = made_by<ops::MaxPoolGrad>(operands[1]);
    if (gradient == nullptr || gradient->relu || !used_once(operands[1]) || !is_zero(operands[2])) return;
    if (made_by<ops::Gt>(operands[0]) == nullptr) return;
    const std::vector<Value>& compared = maker(operands[0])->operands;
    if (compared[0] != maker(operands[1])->operands[0] || !is_zero(compared[1])) return;
    ops::MaxPoolGrad fused = *gradient;
    fused.relu = true;
    replace_by(operands[1], at, fused);
  }

  // The gradient of a bias: a sum over all images and pixels of the dy that a conv_kernel_grad reads as well.
  void take_sum(std::size_t at) {
    const Value dy = equations_[at].operands[0];
    const auto& sum = *equations_[at].op.as<ops::ReduceSum>();
    if (sum.dims != std::vector<std::int64_t>{0, 1, 2}) return;
    for (std::size_t i = 0; i < at; ++i) {
      const auto* gradient = gone_[i] ? nullptr : equations_[i].op.as<ops::ConvKernelGrad>();
      if (gradient == nullptr || gradient->bias || equations_[i].operands[1] != dy) continue;
      if (gradient->preferred_element_type != sum.preferred_element_type) continue;
      ops::ConvKernelGrad fused = *gradient;
      fused.bias = true;
      equations_[i].op = fused;
      equations_[i].results.push_back(equations_[at].results[0]);
      gone_[at] = true;
      return;
    }
  }

  std::vector<Equation>& equations_;
  Definitions& definitions_;
  const Uses& uses_;
  std::vector<bool> gone_;
};

bool fuse(std::vector<Equation>& equations, Definitions& definitions, const Uses& uses) {
  bool moved = false;
  for (Equation& equation : equations) {
    for (Region& region : equation.regions) moved |= fuse(region.equations, definitions, uses);
  }
  return EpilogueFuser(equations, definitions, uses).run() || moved;
}

}  // namespace

Program fuse_epilogues(Program program) {
  const Uses uses(program);
  Definitions definitions;
  if (!fuse(program.equations, definitions, uses)) return program;
  check(program, "fuse_epilogues");
  return simplify(std::move(program));
}

}  // namespace pmaptrain
