// Poolings and their gradients.
#include "core/ops/all.h"
#include "core/ops/list.h"
#include "tests/catch.h"
#include "tests/cuda/gpus.h"
#include "tests/cuda/kernel_case.h"

using namespace pmaptrain;
using namespace pmaptrain::test;

namespace {

struct Pooling {
  std::vector<std::int64_t> window, strides;
  std::vector<std::pair<std::int64_t, std::int64_t>> padding;
};
const Pooling poolings[] = {{{2, 2}, {2, 2}, {{0, 0}, {0, 0}}},  // windows apart
                            {{3, 3}, {2, 2}, {{1, 1}, {1, 1}}},  // overlapping, with padding
                            {{3, 2}, {1, 3}, {{2, 0}, {0, 1}}},  // gaps in one direction
                            {{5, 7}, {1, 1}, {{0, 0}, {0, 0}}}};
const Shape image{2, 7, 9, 3};
constexpr DType floating[] = {DType::bf16, DType::f32, DType::f64};

Shape pooled(const Pooling& p) {
  const Mesh mesh;
  const std::vector<Type> x{{DType::f32, image, {}}};
  return Op(ops::MaxPool{p.window, p.strides, p.padding}).infer({.mesh = mesh, .operands = x})[0].shape;
}

}  // namespace

TEST_CASE("the GPU's max_pool and its gradient find the first maximum, or NaN", "[cuda][gpu][kernels]") {
  if (!has_gpus()) return;
  for (const Pooling& p : poolings) {
    for (const DType dtype : floating) {
      const Type x{dtype, image, {}}, dy{dtype, pooled(p), {}};
      check_launches(ops::MaxPool{p.window, p.strides, p.padding}, {x});
      for (const bool relu : {false, true}) {
        check_launches(ops::MaxPoolGrad{p.window, p.strides, p.padding, relu}, {x, dy});
      }
    }
  }
  check_launches(ops::MaxPool{}, {{DType::f32, {0, 4, 4, 3}, {}}});
  check_launches(ops::MaxPoolGrad{}, {{DType::f32, {0, 4, 4, 3}, {}}, {DType::f32, {0, 2, 2, 3}, {}}});
}

TEST_CASE("the GPU's avg_pool and its gradient add in the windows' order", "[cuda][gpu][kernels]") {
  if (!has_gpus()) return;
  for (const Pooling& p : poolings) {
    for (const DType dtype : floating) {
      for (const bool counts : {false, true}) {
        const Type x{dtype, image, {}}, dy{dtype, pooled(p), {}};
        check_launches(ops::AvgPool{p.window, p.strides, p.padding, counts}, {x});
        check_launches(ops::AvgPoolGrad{p.window, p.strides, p.padding, counts, image}, {dy});
      }
    }
  }
  check_launches(ops::AvgPool{}, {{DType::f32, {0, 4, 4, 3}, {}}});
}
