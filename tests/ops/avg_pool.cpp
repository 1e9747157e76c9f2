#include "core/ops/avg_pool/avg_pool.h"

#include <limits>

#include "core/ops/list.h"
#include "core/ops/max_pool/geometry.h"
#include "tests/arrays.h"
#include "tests/catch.h"
#include "tests/gradients.h"
#include "tests/ops/kernels.h"

namespace pmaptrain {
namespace {

using namespace ops;
using test::Case;

struct Pooling {
  Shape x;
  std::vector<std::int64_t> window, strides;
  std::vector<std::pair<std::int64_t, std::int64_t>> padding;

  Shape y() const { return pool_geometry("avg_pool", x, window, strides, padding).y_shape(); }
  AvgPool pool(bool count) const { return {window, strides, padding, count}; }
  AvgPoolGrad grad(bool count) const { return {window, strides, padding, count, x}; }
};

TEST_CASE("average pooling counts padding as zeros, or leaves it out", "[ops]") {
  const Pooling p{{1, 2, 2, 1}, {2, 2}, {1, 1}, {{1, 0}, {0, 1}}};
  const Case c{{p.x}};
  CHECK(test::run_reference<float>(p.pool(true), c, {{4, 8, 12, 16}}) == std::vector<float>{3, 2, 10, 6});
  CHECK(test::run_reference<float>(p.pool(false), c, {{4, 8, 12, 16}}) == std::vector<float>{6, 8, 10, 12});
  const Case g{{p.y()}};
  CHECK(test::run_reference<float>(p.grad(true), g, {{4, 8, 12, 16}}) == std::vector<float>{4, 10, 3, 7});
  CHECK(test::run_reference<float>(p.grad(false), g, {{4, 8, 12, 16}}) == std::vector<float>{5, 21, 3, 11});
}

TEST_CASE("average pooling is close to exact for every size, stride, padding and stacking", "[ops]") {
  const Pooling p = GENERATE(Pooling{{1, 1, 1, 1}, {1, 1}, {1, 1}, {{0, 0}, {0, 0}}},
                             Pooling{{3, 13, 11, 5}, {3, 3}, {2, 2}, {{1, 1}, {1, 1}}},
                             Pooling{{4, 28, 28, 32}, {2, 2}, {2, 2}, {{0, 0}, {0, 0}}},
                             Pooling{{3, 15, 17, 33}, {3, 4}, {1, 3}, {{0, 2}, {3, 1}}},
                             Pooling{{2, 30, 17, 8}, {2, 2}, {3, 3}, {{0, 0}, {1, 0}}},
                             Pooling{{5, 32, 32, 3}, {8, 8}, {8, 8}, {{0, 0}, {0, 0}}});
  CAPTURE(to_string(p.x));
  for (const bool count : {true, false}) {
    for (const std::int64_t devices : {1, 3}) {
      for (const bool stacked : {true, false}) {
        CAPTURE(count, devices, stacked);
        CHECK(test::distance(p.pool(count), {{p.x}, devices, {stacked}}, 4) < 4);
        CHECK(test::distance(p.grad(count), {{p.y()}, devices, {stacked}}, 4) < 4);
#ifndef PMAPTRAIN_REFERENCE_KERNELS
        if (devices == 1 || test::cpu_kernel(p.pool(count), {{p.x}, devices, {stacked}}) == nullptr) continue;
        const auto expected = stacked ? test::Devices::merged : test::Devices::apart;
        CHECK(test::same_bits_alone(p.pool(count), {{p.x}, devices, {stacked}}, expected));
        CHECK(test::same_bits_alone(p.grad(count), {{p.y()}, devices, {stacked}}, expected));
#endif
      }
    }
  }
}

#ifndef PMAPTRAIN_REFERENCE_KERNELS
TEST_CASE("a large average pooling takes the library's kernel", "[ops]") {
  const Pooling p{{16, 28, 28, 32}, {2, 2}, {2, 2}, {{0, 0}, {0, 0}}};
  const auto pool = test::cpu_kernel(p.pool(true), {{p.x}}), grad = test::cpu_kernel(p.grad(true), {{p.y()}});
  REQUIRE(pool != nullptr);
  REQUIRE(grad != nullptr);
  CHECK(pool->implementation().find("ref") == std::string::npos);
  CHECK(grad->implementation().find("ref") == std::string::npos);
}
#endif

TEST_CASE("a mean whose sum overflows is infinite in a small image and in a large one", "[ops]") {
  for (const std::int64_t size : {4, 128}) {
    const Shape shape = {1, size, size, 1};
    const auto x =
        test::array<float>(DType::f32, shape, std::vector<float>(static_cast<std::size_t>(size * size), 3e38F));
    const auto y = test::apply_stacked(AvgPool{}, {x}, 1, {true}).as<float>();
    CHECK(y.front() == std::numeric_limits<float>::infinity());
    CHECK(y.back() == std::numeric_limits<float>::infinity());
  }
}

TEST_CASE("a window of any number of elements divides by that number", "[ops]") {
  // Windows of 2^30 elements, which the library could count, of 2^31 and more, and of 2^32, which is 0 in 32 bits.
  for (const auto& [rows, columns] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {32768, 32768}, {65536, 32768}, {65536, 65536}, {3, std::int64_t{1} << 30}}) {
    const Pooling p{{1, 1, 2, 2}, {rows, columns}, {1, 1}, {{rows - 1, 0}, {columns - 2, 0}}};
    CAPTURE(rows, columns);
    const double cells = static_cast<double>(rows) * static_cast<double>(columns);
    const auto x = test::f32(p.x, {1, 2, 3, 4});
    REQUIRE(p.y() == Shape{1, 1, 1, 2});
    for (const bool count : {true, false}) {
      const double divisor = count ? cells : 2;
      const auto y = test::apply_stacked(p.pool(count), {x}, 1, {true}).as<float>();
      CHECK(y == std::vector{static_cast<float>(4 / divisor), static_cast<float>(6 / divisor)});
      const auto dx = test::apply_stacked(p.grad(count), {test::f32(p.y(), {8, 16})}, 1, {true}).as<float>();
      const auto of = [&](double dy) { return static_cast<float>(dy / divisor); };
      CHECK(dx == std::vector{of(8), of(16), of(8), of(16)});
    }
  }
}

TEST_CASE("the derivatives of average pooling and of its gradient agree with differences", "[ops]") {
  const Mesh mesh({{"devices", 2}});
  const Pooling p{{1, 4, 3, 2}, {2, 3}, {1, 2}, {{1, 0}, {1, 2}}};
  for (const bool count : {true, false}) {
    test::check_gradient(mesh, {.types = {{DType::f64, p.x, mesh.all()}}},
                         [&](Builder& b, std::span<const Value> x) { return b.emit(p.pool(count), x); });
    test::check_gradient(mesh, {.types = {{DType::f64, p.y(), mesh.all()}}},
                         [&](Builder& b, std::span<const Value> x) { return b.emit(p.grad(count), x); });
  }
}

TEST_CASE("an average pooling that does not fit says why", "[ops]") {
  CHECK(test::refusal(AvgPool{{2, 2}, {2, 2}, {{2, 0}, {0, 0}}}, {{DType::f32, {1, 4, 4, 1}, {}}}) ==
        "avg_pool of [1,4,4,1] with window [2,2] and padding [(2,0),(0,0)]: a window would see padding only | padding "
        "is smaller than the window, and the image is not empty");
  CHECK(test::refusal(AvgPool{}, {{DType::i32, {1, 4, 4, 1}, {}}}) ==
        "avg_pool: x is i32 | avg_pool takes bf16, f32 or f64, the same for all operands");
  CHECK(
      test::refusal(AvgPoolGrad{{2, 2}, {2, 2}, {{0, 0}, {0, 0}}, true, {1, 4, 4, 1}},
                    {{DType::f32, {1, 4, 4, 1}, {}}}) ==
      "avg_pool_grad: x [1,4,4,1] pools to [1,2,2,1], but dy is [1,4,4,1] | dy has the shape of the pooling's result");
}

}  // namespace
}  // namespace pmaptrain
