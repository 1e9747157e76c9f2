// Ops that move and fill memory.
#include "core/ops/all.h"
#include "core/ops/list.h"
#include "tests/catch.h"
#include "tests/cuda/kernel_case.h"
#include "tests/gpu/gpus.h"

using namespace pmaptrain;
using namespace pmaptrain::test;

DEVICE_TEST_CASE("the GPU's transpose moves elements of every type", "[cuda][kernels]") {
  for (const DType dtype : all_dtypes) check_launches(ops::Transpose{{2, 0, 1}}, {{dtype, {3, 5, 7}, {}}});
  check_launches(ops::Transpose{{1, 0}}, {{DType::f32, {1, 9}, {}}});
  check_launches(ops::Transpose{{0, 1, 2}}, {{DType::f32, {2, 3, 4}, {}}});
  check_launches(ops::Transpose{{}}, {{DType::f32, {}, {}}});
  check_launches(ops::Transpose{{1, 0}}, {{DType::f32, {0, 3}, {}}});
  check_launches(ops::Transpose{{7, 5, 3, 1, 6, 4, 2, 0}}, {{DType::u8, {2, 3, 2, 3, 2, 3, 2, 3}, {}}});
}

DEVICE_TEST_CASE("the GPU's broadcast repeats along every dimension", "[cuda][kernels]") {
  for (const DType dtype : all_dtypes) check_launches(ops::Broadcast{{4, 3, 5}, {1}}, {{dtype, {3}, {}}});
  check_launches(ops::Broadcast{{6, 7}, {}}, {{DType::f32, {}, {}}});
  check_launches(ops::Broadcast{{2, 3, 4, 5}, {0, 2}}, {{DType::f32, {2, 4}, {}}});
  check_launches(ops::Broadcast{{2, 1, 3}, {0, 1}}, {{DType::f32, {2, 1}, {}}});
  check_launches(ops::Broadcast{{0, 3}, {1}}, {{DType::f32, {3}, {}}});
}

DEVICE_TEST_CASE("the GPU's slice, pad and reverse keep to their boxes", "[cuda][kernels]") {
  for (const DType dtype : all_dtypes) {
    check_launches(ops::Slice{{1, 0, 2}, {3, 4, 5}}, {{dtype, {3, 4, 6}, {}}});
    check_launches(ops::Pad{{1, 0, 2}, {0, 3, 1}}, {{dtype, {2, 3, 4}, {}}});
    check_launches(ops::Reverse{{0, 2}}, {{dtype, {3, 4, 5}, {}}});
  }
  check_launches(ops::Slice{{2}, {2}}, {{DType::f32, {5}, {}}});
  check_launches(ops::Pad{{2}, {1}}, {{DType::f32, {0}, {}}});
  check_launches(ops::Pad{{}, {}}, {{DType::f32, {}, {}}});
  check_launches(ops::Reverse{{}}, {{DType::f32, {3}, {}}});
  check_launches(ops::Reverse{{1}}, {{DType::f32, {3, 0}, {}}});
}

DEVICE_TEST_CASE("the GPU's concatenate puts operands of any size one after another", "[cuda][kernels]") {
  for (const DType dtype : all_dtypes) {
    check_launches(ops::Concatenate{1}, {{dtype, {3, 2, 4}, {}}, {dtype, {3, 0, 4}, {}}, {dtype, {3, 5, 4}, {}}});
  }
  check_launches(ops::Concatenate{0}, {{DType::f32, {2, 3}, {}}, {DType::f32, {4, 3}, {}}});
  check_launches(ops::Concatenate{0}, {{DType::f32, {0}, {}}, {DType::f32, {0}, {}}});
  check_launches(ops::Concatenate{0}, {{DType::i32, {3}, {}}});
}

DEVICE_TEST_CASE("the GPU's reshape, iota and constant fill their results", "[cuda][kernels]") {
  check_launches(ops::Reshape{{6, 2}}, {{DType::f32, {3, 4}, {}}});
  check_launches(ops::Reshape{{0}}, {{DType::f32, {3, 0}, {}}});
  for (const DType dtype : number_types) {
    check_launches(ops::Iota{dtype, {3, 5, 2}, 1}, {});
    check_launches(ops::Iota{dtype, {0, 5}, 1}, {});
    check_launches(ops::Constant{dtype, {3, 5}, 7}, {});
  }
  check_launches(ops::Constant{DType::f64, {3}, -0.1}, {});
  check_launches(ops::Constant{DType::boolean, {}, 1}, {});
  check_launches(ops::Constant{DType::f32, {300, 300}, std::numeric_limits<double>::infinity()}, {});
}

DEVICE_TEST_CASE("the GPU's product of integers, and over nothing, needs no library", "[cuda][kernels]") {
  const auto transposed = [](Shape shape, bool swap) {
    if (swap) std::swap(shape[shape.size() - 2], shape[shape.size() - 1]);
    return shape;
  };
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      for (const DType dtype : {DType::i32, DType::i64, DType::u8, DType::u32}) {
        const ops::Matmul op{.transpose_a = a, .transpose_b = b, .relu = dtype == DType::i32};
        check_launches(op, {{dtype, transposed({5, 7}, a), {}}, {dtype, transposed({7, 3}, b), {}}, {dtype, {3}, {}}});
      }
      const ops::BatchMatmul batch{.transpose_a = a, .transpose_b = b};
      check_launches(batch,
                     {{DType::i32, transposed({2, 3, 5, 7}, a), {}}, {DType::i32, transposed({2, 3, 7, 4}, b), {}}});
    }
  }
  for (const DType dtype : floating_types) {
    check_launches(ops::Matmul{}, {{dtype, {4, 0}, {}}, {dtype, {0, 3}, {}}});
    check_launches(ops::Matmul{.relu = true}, {{dtype, {4, 0}, {}}, {dtype, {0, 3}, {}}, {dtype, {3}, {}}});
    check_launches(ops::BatchMatmul{}, {{dtype, {2, 4, 0}, {}}, {dtype, {2, 0, 3}, {}}});
    check_launches(ops::Matmul{}, {{dtype, {0, 4}, {}}, {dtype, {4, 3}, {}}});
    check_launches(ops::Conv{.padding = {{1, 1}, {1, 1}}, .relu = true},
                   {{dtype, {2, 5, 5, 0}, {}}, {dtype, {3, 3, 0, 4}, {}}, {dtype, {4}, {}}});
    check_launches(ops::Conv{}, {{dtype, {0, 5, 5, 3}, {}}, {dtype, {3, 3, 3, 4}, {}}});
    check_launches(ops::ConvInputGrad{.input_shape = {2, 5, 5, 3}},
                   {{dtype, {3, 3, 3, 0}, {}}, {dtype, {2, 3, 3, 0}, {}}});
    check_launches(ops::ConvKernelGrad{.kernel_shape = {3, 3, 3, 4}, .bias = true},
                   {{dtype, {0, 5, 5, 3}, {}}, {dtype, {0, 3, 3, 4}, {}}});
  }
  check_launches(ops::Matmul{.relu = true, .preferred_element_type = DType::f32},
                 {{DType::bf16, {4, 0}, {}}, {DType::bf16, {0, 3}, {}}, {DType::f32, {3}, {}}});
}

TEST_CASE("a library takes logical devices as one batch where it can, and else is called for each", "[cuda]") {
  const DType dtype = GENERATE(DType::bf16, DType::f32, DType::f64);
  const auto kernel_of = [dtype](const auto& call) {
    KernelCase c{call.op, {}, 3, call.stacked};
    for (const Shape& shape : call.shapes) c.operands.push_back({dtype, shape, {}});
    c.infer_results();
    return make_gpu_kernel(c.op, c.request());
  };
  struct Product {
    Op op;
    std::vector<Shape> shapes;
    std::vector<bool> stacked;
    std::int64_t m, batch, calls;
    std::vector<std::int64_t> strides;  // where there is a batch
  };
  const Product products[] = {
      {ops::Matmul{}, {{2, 3}, {3, 4}, {4}}, {true, false, false}, 6, 1, 1, {}},
      {ops::Matmul{}, {{2, 3}, {3, 4}, {4}}, {true, false, true}, 2, 3, 1, {6, 0, 4}},
      {ops::Matmul{}, {{2, 3}, {3, 4}}, {true, true}, 2, 3, 1, {6, 12, 0}},
      {ops::Matmul{.transpose_a = true}, {{3, 2}, {3, 4}}, {true, false}, 2, 3, 1, {6, 0, 0}},
      {ops::BatchMatmul{}, {{5, 2, 3}, {5, 3, 4}}, {true, true}, 2, 15, 1, {6, 12, 0}},
      {ops::BatchMatmul{}, {{5, 2, 3}, {5, 3, 4}}, {true, false}, 2, 5, 3, {6, 12, 0}},
  };
  for (const Product& product : products) {
    INFO(to_string(product.op) << ", " << product.batch << " products, " << product.calls << " calls");
    const GpuKernel kernel = kernel_of(product);
    const GpuMatmul* const call = kernel.find<GpuMatmul>();
    REQUIRE(call != nullptr);
    CHECK(call->m == product.m);
    CHECK(call->batch == product.batch);
    CHECK(call->calls == product.calls);
    if (product.strides.empty()) continue;
    CHECK(std::vector{call->a_stride, call->b_stride, call->bias_stride} == product.strides);
  }

  struct Convolution {
    Op op;
    std::vector<Shape> shapes;
    std::vector<bool> stacked;
    std::int64_t examples, calls;
  };
  const Convolution convolutions[] = {
      {ops::Conv{}, {{2, 5, 5, 3}, {3, 3, 3, 4}, {4}}, {true, false, false}, 6, 1},
      {ops::Conv{}, {{2, 5, 5, 3}, {3, 3, 3, 4}, {4}}, {true, false, true}, 2, 3},
      {ops::ConvInputGrad{.input_shape = {2, 5, 5, 3}}, {{3, 3, 3, 4}, {2, 3, 3, 4}}, {false, true}, 6, 1},
      {ops::ConvInputGrad{.input_shape = {2, 5, 5, 3}}, {{3, 3, 3, 4}, {2, 3, 3, 4}}, {true, true}, 2, 3},
      {ops::ConvKernelGrad{.kernel_shape = {3, 3, 3, 4}}, {{2, 5, 5, 3}, {2, 3, 3, 4}}, {true, true}, 2, 3},
  };
  for (const Convolution& convolution : convolutions) {
    INFO(to_string(convolution.op) << ", " << convolution.calls << " calls");
    const GpuKernel kernel = kernel_of(convolution);
    const GpuConv* const call = kernel.find<GpuConv>();
    REQUIRE(call != nullptr);
    CHECK(call->x == Shape{convolution.examples, 5, 5, 3});
    CHECK(call->y == Shape{convolution.examples, 3, 3, 4});
    CHECK(call->calls == convolution.calls);
  }
}
