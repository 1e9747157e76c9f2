#include "core/passes/fuse_bias_gradients.h"

#include <cstddef>
#include <vector>

#include "core/graph/check.h"
#include "core/ops/list.h"

namespace pmaptrain {
namespace {

// A product that may be the gradient of a dense layer's kernel.
bool is_kernel_gradient(const Equation& equation) {
  const auto* const matmul = equation.op.as<ops::Matmul>();
  return matmul != nullptr && matmul->transpose_a && !matmul->transpose_b && !matmul->relu &&
         equation.operands.size() == 2;
}

class BiasGradients {
 public:
  explicit BiasGradients(Program& program) : program_(program) {}

  // Returns whether an equation changed.
  bool fuse(std::vector<Equation>& equations) {
    bool any = false;
    for (Equation& equation : equations) {
      for (Region& region : equation.regions) any |= fuse(region.equations);
    }
    std::vector<bool> gone(equations.size(), false);
    for (std::size_t i = 0; i < equations.size(); ++i) gone[i] = join(equations, i);
    std::size_t i = 0;
    return std::erase_if(equations, [&](const Equation&) { return gone[i++]; }) > 0 || any;
  }

 private:
  // If equation `at` is a sum of the dy of an earlier product, gives its result to the product.
  bool join(std::vector<Equation>& equations, std::size_t at) const {
    const auto* const sum = equations[at].op.as<ops::ReduceSum>();
    if (sum == nullptr) return false;
    const Value dy = equations[at].operands[0], result = equations[at].results[0];
    if (sum->dims.size() + 1 != program_.type(dy).shape.size() || program_.type(result).shape.size() != 1) return false;
    for (std::size_t d = 0; d < sum->dims.size(); ++d) {
      if (sum->dims[d] != static_cast<std::int64_t>(d)) return false;
    }
    for (std::size_t i = 0; i < at; ++i) {
      Equation& product = equations[i];
      if (!is_kernel_gradient(product) || product.operands[1] != dy) continue;
      const Type& type = program_.type(product.results[0]);
      if (!is_floating(type.dtype) || numel(type) == 0 || type.dtype != program_.type(result).dtype) continue;
      product.op = ops::MatmulKernelGrad{product.op.as<ops::Matmul>()->preferred_element_type};
      product.results.push_back(result);
      return true;
    }
    return false;
  }

  const Program& program_;
};

}  // namespace

Program fuse_bias_gradients(Program program) {
  if (BiasGradients(program).fuse(program.equations)) check(program, "fuse_bias_gradients");
  return program;
}

}  // namespace pmaptrain
