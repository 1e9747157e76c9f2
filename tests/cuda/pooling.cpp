// Poolings and their gradients.
#include "core/ops/all.h"
#include "core/ops/list.h"
#include "tests/catch.h"
#include "tests/cuda/kernel_case.h"
#include "tests/emulated_gpu/host_kernels.h"
#include "tests/gpu/gpus.h"

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

Shape pooled(const Pooling& p) {
  const Mesh mesh;
  const std::vector<Type> x{{DType::f32, image, {}}};
  return Op(ops::MaxPool{p.window, p.strides, p.padding}).infer({.mesh = mesh, .operands = x})[0].shape;
}

}  // namespace

DEVICE_TEST_CASE("the GPU's max_pool and its gradient find the first maximum, or NaN", "[cuda][kernels]") {
  for (const Pooling& p : poolings) {
    for (const DType dtype : floating_types) {
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

DEVICE_TEST_CASE("the GPU's avg_pool and its gradient add in the windows' order", "[cuda][kernels]") {
  for (const Pooling& p : poolings) {
    for (const DType dtype : floating_types) {
      for (const bool counts : {false, true}) {
        const Type x{dtype, image, {}}, dy{dtype, pooled(p), {}};
        check_launches(ops::AvgPool{p.window, p.strides, p.padding, counts}, {x});
        check_launches(ops::AvgPoolGrad{p.window, p.strides, p.padding, counts, image}, {dy});
      }
    }
  }
  check_launches(ops::AvgPool{}, {{DType::f32, {0, 4, 4, 3}, {}}});
}

TEST_CASE("the GPU's poolings give the same with indices of 64 bits, which images beyond 2^28 elements need",
          "[cuda]") {
  for (const Pooling& p : poolings) {
    const Type x{DType::f32, image, {}}, dy{DType::f32, pooled(p), {}};
    for (KernelCase c : {KernelCase{ops::MaxPool{p.window, p.strides, p.padding}, {x}, 3},
                         KernelCase{ops::MaxPoolGrad{p.window, p.strides, p.padding, true}, {x, dy}, 3, {false, true}},
                         KernelCase{ops::AvgPool{p.window, p.strides, p.padding, false}, {x}, 3},
                         KernelCase{ops::AvgPoolGrad{p.window, p.strides, p.padding, false, image}, {dy}, 3}}) {
      INFO(c.op.name());
      c.complete(7);
      GpuLaunch launch = std::get<GpuLaunch>(make_gpu_kernel(c.op, c.request()).commands.at(0));
      REQUIRE(launch.arguments.back().value == 1);
      std::vector<const std::byte*> from;
      for (const Bytes& value : c.values) from.push_back(value.data());
      const auto run = [&] {
        Bytes result(run_reference(c)[0].size());
        std::byte* const to = result.data();
        launch_on_host(launch, {from, {&to, 1}});
        return result;
      };
      const Bytes narrow = run();
      launch.arguments.back().value = 0;
      CHECK(run() == narrow);
    }
  }
}

TEST_CASE("indices of a pooling have 32 bits only where these are enough", "[cuda]") {
  const auto is_narrow = [](Shape shape, std::vector<std::int64_t> strides) {
    const Type x{DType::bf16, std::move(shape), {}};
    const ops::MaxPool op{{2, 2}, std::move(strides), {{0, 0}, {0, 0}}};
    KernelCase c{op, {x}, 1, {true}, {{}}};
    const Mesh mesh;
    c.results = op.infer({.mesh = mesh, .operands = c.operands});
    return std::get<GpuLaunch>(make_gpu_kernel(c.op, c.request()).commands.at(0)).arguments.back().value == 1;
  };
  CHECK(is_narrow({4096, 64, 64, 8}, {2, 2}));
  CHECK_FALSE(is_narrow({4096, 64, 64, 16}, {2, 2}));
  CHECK_FALSE(is_narrow({4, 64, 64, 8}, {std::int64_t{1} << 29, 2}));
}
