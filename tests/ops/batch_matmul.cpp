#include "core/ops/list.h"
#include "core/ops/matmul/batch.h"
#include "tests/arrays.h"
#include "tests/catch.h"
#include "tests/ops/kernels.h"

namespace pmaptrain {
namespace {

using namespace ops;
using test::Case;

TEST_CASE("a batch of products is each product, whatever is stored transposed", "[ops]") {
  using test::f32;
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      const Shape a = transpose_a ? Shape{4, 3} : Shape{3, 4}, b = transpose_b ? Shape{5, 4} : Shape{4, 5};
      const std::vector<float> x = test::noise(6 * 12, 1), y = test::noise(6 * 20, 2);
      const auto found =
          test::apply(BatchMatmul{transpose_a, transpose_b}, {f32({2, 3, a[0], a[1]}, x), f32({2, 3, b[0], b[1]}, y)});
      CHECK(found.type.shape == Shape{2, 3, 3, 5});
      const std::vector<float> products = found.as<float>();
      for (std::ptrdiff_t i = 0; i < 6; ++i) {
        const std::vector<float> one =
            test::apply(Matmul{transpose_a, transpose_b}, {f32(a, {x.begin() + i * 12, x.begin() + (i + 1) * 12}),
                                                           f32(b, {y.begin() + i * 20, y.begin() + (i + 1) * 20})})
                .as<float>();
        CHECK(one == std::vector<float>(products.begin() + i * 15, products.begin() + (i + 1) * 15));
      }
    }
  }
  CHECK(test::apply(BatchMatmul{}, {test::i32({1, 2}, {3, 4}), test::i32({2, 1}, {5, 6})}).as<std::int32_t>() ==
        std::vector<std::int32_t>{39});
}

TEST_CASE("batches of products are close to exact for every size and stacking", "[ops]") {
  const Shape sizes = GENERATE(Shape{1, 1, 1, 1}, Shape{7, 13, 5, 17}, Shape{8, 64, 64, 32}, Shape{3, 1, 100, 33},
                               Shape{16, 33, 31, 1});  // batch, m, k, n
  CAPTURE(to_string(sizes));
  const std::int64_t batch = sizes[0], m = sizes[1], k = sizes[2], n = sizes[3];
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      const Shape a = transpose_a ? Shape{batch, k, m} : Shape{batch, m, k};
      const Shape b = transpose_b ? Shape{batch, n, k} : Shape{batch, k, n};
      for (const std::vector<bool>& stacked : {std::vector{true, false}, {false, true}, {true, true}}) {
        CHECK(test::distance(BatchMatmul{transpose_a, transpose_b}, {{a, b}, 3, stacked}, k) < 4);
#ifndef PMAPTRAIN_REFERENCE_KERNELS
        if (batch * m * n * k < least_products) continue;
        CHECK(test::same_bits_alone(BatchMatmul{transpose_a, transpose_b}, {{a, b}, 3, stacked},
                                    stacked[0] && stacked[1] ? test::Devices::merged : test::Devices::apart));
#endif
      }
    }
  }
}

#ifndef PMAPTRAIN_REFERENCE_KERNELS
TEST_CASE("a large batch of products takes the library's kernel", "[ops]") {
  const auto kernel = test::cpu_kernel(BatchMatmul{}, {{{8, 64, 64}, {8, 64, 32}}});
  REQUIRE(kernel != nullptr);
  CHECK(kernel->implementation().find("ref") == std::string::npos);
}

TEST_CASE("batches of products of several devices are one call of the library", "[ops]") {
  const auto calls = [](const std::vector<bool>& stacked) {
    const auto kernel = test::cpu_kernel(BatchMatmul{}, {{{8, 64, 64}, {8, 64, 32}}, 5, stacked});
    return kernel->library_calls();
  };
  CHECK(calls({true, true}) == 1);
  CHECK(calls({true, false}) == 5);  // one operand for all: no batch has it in each of its products
}
#endif

TEST_CASE("a batch of products that does not fit says which sizes meet", "[ops]") {
  const auto f32 = [](Shape shape) { return Type{DType::f32, std::move(shape), {}}; };
  CHECK(
      test::refusal(BatchMatmul{}, {f32({2, 3, 4}), f32({3, 4, 5})}) ==
      "batch_matmul of a f32[2,3,4] and b f32[3,4,5] | both have the same batch dimensions, and then two of a matrix");
  CHECK(test::refusal(BatchMatmul{}, {f32({4}), f32({4})}) ==
        "batch_matmul of a f32[4] and b f32[4] | both have the same batch dimensions, and then two of a matrix");
  CHECK(test::refusal(BatchMatmul{true, false}, {f32({2, 3, 4}), f32({2, 4, 5})}) ==
        "batch_matmul of a f32[2,3,4] (transposed) and b f32[2,4,5]: it would contract 3 elements with 4 | a has as "
        "many columns as b has rows");
  CHECK(test::refusal(BatchMatmul{}, {f32({2, 3, 4}), {DType::f64, {2, 4, 5}, {}}}) ==
        "batch_matmul of a f32[2,3,4] and b f64[2,4,5] | both operands have the same numeric element type; cast one of "
        "them");
}

}  // namespace
}  // namespace pmaptrain
