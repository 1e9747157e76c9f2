#include "core/ops/matmul/matmul.h"

#include <cmath>
#include <memory>
#include <tuple>

#include "core/ops/all.h"
#include "core/ops/cast/cast.h"
#include "tests/arrays.h"
#include "tests/catch.h"
#include "tests/ops/kernels.h"
#include "tests/ops/targets.h"

namespace pmaptrain {
namespace {

using ops::Matmul;
using test::Case;
using test::Devices;
using Values = std::vector<std::vector<float>>;

constexpr bool flags[] = {false, true};

// The stored shapes of an [m,k] x [k,n] product.
std::vector<Shape> stored(const Matmul& op, std::int64_t m, std::int64_t k, std::int64_t n) {
  return {op.transpose_a ? Shape{k, m} : Shape{m, k}, op.transpose_b ? Shape{n, k} : Shape{k, n}};
}

TEST_CASE("matmul of two small matrices is what one computes by hand", "[ops]") {
  // [1 2 3; 4 5 6] x [1 2; 3 4; 5 6]
  const std::vector<float> a = {1, 2, 3, 4, 5, 6}, at = {1, 4, 2, 5, 3, 6};
  const std::vector<float> b = {1, 2, 3, 4, 5, 6}, bt = {1, 3, 5, 2, 4, 6};
  const std::vector<float> c = {22, 28, 49, 64};
  for (const bool ta : flags) {
    for (const bool tb : flags) {
      const Matmul op{ta, tb};
      const Values operands = {ta ? at : a, tb ? bt : b};
      CHECK(test::run_reference<float>(op, {stored(op, 2, 3, 2)}, operands) == c);
      CHECK(test::run_reference<std::int32_t>(op, {stored(op, 2, 3, 2)}, operands) ==
            std::vector<std::int32_t>(c.begin(), c.end()));
    }
  }
}

TEST_CASE("matmul takes several dimensions of rows, and computes what it does with the rows in one", "[ops]") {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8}, kernel = {1, 2, 3, 4, 5, 6};
  const Matmul op, grad{true, false};
  CHECK(test::run_reference<float>(op, {{{2, 2, 2}, {2, 3}}}, {x, kernel}) ==
        test::run_reference<float>(op, {{{4, 2}, {2, 3}}}, {x, kernel}));
  CHECK(test::run_reference<float>(Matmul{false, true}, {{{2, 2, 2}, {3, 2}}}, {x, kernel}) ==
        test::run_reference<float>(Matmul{false, true}, {{{4, 2}, {3, 2}}}, {x, kernel}));
  CHECK(test::run_reference<float>(grad, {{{1, 2, 2, 2}, {1, 2, 2, 1}}}, {x, {1, 2, 3, 4}}) ==
        test::run_reference<float>(grad, {{{4, 2}, {4, 1}}}, {x, {1, 2, 3, 4}}));
  for (const auto& shapes : std::vector<std::vector<Shape>>{{{5, 7, 40}, {40, 33}}, {{3, 5, 3}, {3, 1}}}) {
    CHECK(test::distance(op, {shapes, 3, {true, false}}, shapes[0].back()) < 4);
    const Shape left = shapes[0], right{left[0], left[1], shapes[1].back()};
    CHECK(test::distance(grad, {{left, right}, 2, {true, true}}, left[0] * left[1]) < 4);
  }
}

TEST_CASE("a product reads some columns of a wider matrix where they are, or copies them", "[ops]") {
  // [rows,48] x [rows,n]: of one operand 48 columns from 16 on of a matrix of 96. Whole numbers, so that sums are
  // exact.
  constexpr std::int64_t of = 96, first = 16, count = 48;
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const std::int64_t rows = GENERATE(40, 1030), n = GENERATE(1, 3, 40, 64);
  const auto whole = [&](Shape shape, std::uint32_t seed) {
    std::vector<float> values = test::noise(numel(shape), seed);
    for (float& value : values) value = std::floor(8 * value);
    return test::apply(ops::Cast{dtype}, {test::f32(std::move(shape), values)});
  };
  const test::HostArray wide = whole({rows, of}, 1), other = whole({rows, n}, 2);
  const auto size = static_cast<std::ptrdiff_t>(size_of(dtype));
  std::vector<std::byte> columns;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto begin = wide.bytes.begin() + (row * of + first) * size;
    columns.insert(columns.end(), begin, begin + count * size);
  }
  for (const std::size_t cut : {std::size_t{0}, std::size_t{1}}) {
    INFO("operand " << cut << " of " << to_string(dtype) << ", " << rows << " rows, beside " << n);
    const Shape narrow{rows, n};
    const std::vector<Type> operands{{dtype, cut == 0 ? Shape{rows, count} : narrow, {}},
                                     {dtype, cut == 1 ? Shape{rows, count} : narrow, {}}};
    Matmul op{true, false};
    if (dtype == DType::bf16) op.preferred_element_type = DType::f32;
    const std::vector<Type> results{test::result_type(op, operands)};
    const auto product = [&](const CpuRequest& request, const std::byte* of_cut) {
      const auto kernel = make_cpu_kernel(op, request);
      std::vector<float> result(static_cast<std::size_t>(numel(results[0])));
      std::vector<std::byte> memory(kernel->scratch_bytes() + 64);
      void* scratch = memory.data();
      std::size_t space = memory.size();
      REQUIRE(std::align(64, kernel->scratch_bytes(), scratch, space) != nullptr);
      const std::byte* const b = other.bytes.data();
      const std::byte* const given[] = {cut == 0 ? of_cut : b, cut == 0 ? b : of_cut};
      std::byte* const into[] = {reinterpret_cast<std::byte*>(result.data())};
      kernel->run({given, into, static_cast<std::byte*>(scratch)});
      return result;
    };
    CpuRequest request{operands, results, 1, {true, true}};
    const std::vector<float> expected = product(request, columns.data());
    request.columns = {cut, of};
    CHECK(product(request, wide.bytes.data() + first * size) == expected);
  }
}

TEST_CASE("the rows of a matmul with several dimensions of rows are those of its first operand", "[ops]") {
  const auto refused = [](const Matmul& op, Shape a, Shape b) -> std::string {
    const std::vector<Type> operands = {{DType::f32, std::move(a), {}}, {DType::f32, std::move(b), {}}};
    const Mesh mesh({{"a", 1}});
    try {
      Op(op).infer({.mesh = mesh, .operands = operands});
    } catch (const TypeError& error) {
      return std::string(error.what()) + " | " + error.help;
    }
    return "accepted";
  };
  CHECK(refused({}, {2, 3, 4}, {4, 5}) == "accepted");
  CHECK(refused({true}, {2, 3, 4}, {2, 3, 5}) == "accepted");
  CHECK(refused({}, {2, 3}, {3, 4, 5}) ==
        "matmul of a [2,3] and b [3,4,5] | several dimensions of rows are those of a, or with transpose_a those of a "
        "and b alike");
  CHECK(
      refused({true, true}, {2, 3, 4}, {5, 6}) ==
      "matmul of a [2,3,4] (transposed) and b [5,6] (transposed) | several dimensions of rows are those of a, or with "
      "transpose_a those of a and b alike");
  CHECK(refused({true}, {2, 3, 4}, {3, 2, 5}) ==
        "matmul of a [2,3,4] (transposed) and b [3,2,5]: they have different rows | all dimensions but the last are "
        "contracted, and are equal");
  CHECK(refused({}, {4}, {4, 5}) ==
        "matmul of a [4] and b [4,5] | both operands have two dimensions; reshape the others into them");
}

TEST_CASE("matmul with an empty dimension gives zeros, or nothing", "[ops]") {
  for (const bool ta : flags) {
    for (const bool tb : flags) {
      const Matmul op{ta, tb};
      const Case contraction{stored(op, 2, 0, 2)};
      CHECK(test::run_reference<float>(op, contraction, {{}, {}}) == std::vector<float>(4, 0.0F));
      CHECK(test::cpu_kernel(op, contraction) == nullptr);
      CHECK(test::run_reference<float>(op, {stored(op, 0, 3, 2)}, {{}, std::vector<float>(6)}).empty());
    }
  }
}

TEST_CASE("matmul is close to exact for every size, transpose and stacking", "[ops]") {
  const auto [m, k, n] = GENERATE(std::tuple{1, 1, 1}, std::tuple{100, 5, 1}, std::tuple{1, 8192, 1},
                                  std::tuple{17, 63, 33}, std::tuple{16, 784, 128}, std::tuple{1, 129, 257});
  for (const bool ta : flags) {
    for (const bool tb : flags) {
      const Matmul op{ta, tb};
      for (const bool stacked_a : flags) {
        for (const bool stacked_b : flags) {
          const Case c{stored(op, m, k, n), 3, {stacked_a, stacked_b}};
          INFO(m << "x" << k << "x" << n << " transposes " << ta << tb << " stacked " << stacked_a << stacked_b);
          CHECK(test::distance(op, c, k) < 4);
        }
      }
    }
  }
}

TEST_CASE("small matmuls, and all that are not f32, stay on our own kernel", "[ops]") {
  CHECK(test::cpu_kernel(Matmul{}, {{{100, 5}, {5, 2}}}) == nullptr);
  const std::vector<Type> operands = {{DType::f64, {64, 64}, {}}, {DType::f64, {64, 64}, {}}};
  const std::vector<Type> results = {{DType::f64, {64, 64}, {}}};
  CHECK(Matmul{}.cpu({operands, results, 1, {true, true}}) == nullptr);
}

#ifndef PMAPTRAIN_REFERENCE_KERNELS
TEST_CASE("narrow rows times a vector have the reference's bits, bias and relu included", "[ops]") {
  for (std::int64_t width = 1; width <= 16; ++width) {
    for (const std::int64_t rows : {1, 7, 16, 33, 100}) {
      for (const bool relu : flags) {
        INFO(rows << " rows of " << width << (relu ? ", relu" : ""));
        const Matmul op{false, false, relu};
        const Case c{{{rows, width}, {width, 1}, {1}}, 3, {true, false, false}};
        const auto expected = test::run_reference<float>(op, c, c.operands());
        test::on_every_target([&] {
          const auto kernel = test::cpu_kernel(op, c);
          REQUIRE(kernel != nullptr);
          const bool equal = test::run_kernel(*kernel, c.operands(), rows * 3) == expected;
          CHECK(equal);
          CHECK(test::same_bits_alone(op, c, Devices::apart));
        });
      }
    }
  }
}

TEST_CASE("sums of narrow rows by weight are close to exact", "[ops]") {
  for (std::int64_t width = 1; width <= 16; ++width) {
    for (const std::int64_t rows : {1, 7, 16, 33, 100, 1000}) {
      INFO(rows << " rows of " << width);
      const Matmul op{true, false};
      const Case c{{{rows, width}, {rows, 1}}, 2, {true, true}};
      test::on_every_target([&] {
        REQUIRE(test::cpu_kernel(op, c) != nullptr);
        CHECK(test::distance(op, c, rows) < 4);
        CHECK(test::same_bits_alone(op, c, Devices::apart));
      });
    }
  }
}

// Rows of several devices are merged where the library's kernels, for one device's rows and for all of them, compute
// each row by itself.
Devices expected_of(const Matmul& op, const Case& c) {
  Case one = c, all = c;
  one.devices = all.devices = 1;
  all.shapes[0][0] *= c.devices;
  const auto independent = [&op](const Case& x) {
    return test::cpu_kernel(op, x)->implementation().starts_with("brg:avx512");
  };
  return independent(one) && independent(all) ? Devices::merged : Devices::apart;
}

TEST_CASE("a row's bits in a plain matmul do not depend on the rows beside it", "[ops]") {
  for (const std::int64_t devices : {2, 3, 8}) {
    for (const auto& [op, c] :
         {std::pair(Matmul{}, Case{{{16, 784}, {784, 128}}, devices, {true, false}}),
          std::pair(Matmul{}, Case{{{16, 128}, {128, 10}}, devices, {true, false}}),
          std::pair(Matmul{false, true}, Case{{{16, 128}, {784, 128}}, devices, {true, false}})}) {
      CHECK(test::same_bits_alone(op, c, expected_of(op, c)));
    }
    CHECK(test::same_bits_alone(Matmul{true, false}, {{{16, 784}, {16, 128}}, devices, {true, true}}, Devices::apart));
  }
}

TEST_CASE("devices share a multiplication only where their bits stay as they are alone, for many shapes", "[ops]") {
  for (const bool transpose_b : {false, true}) {
    for (const std::int64_t m : {1, 3, 16, 100}) {
      for (const std::int64_t k : {31, 257, 1500, 3136}) {
        for (const std::int64_t n : {1, 10, 33, 256}) {
          INFO(m << " " << k << " " << n << (transpose_b ? " transposed" : ""));
          const Shape b = transpose_b ? Shape{n, k} : Shape{k, n};
          const Matmul op{false, transpose_b};
          const Case c{{{m, k}, b}, 8, {true, false}};
          const bool has_kernel = test::cpu_kernel(op, c) != nullptr;
          CHECK(has_kernel == (m * k * n >= ops::least_products));
          if (has_kernel) CHECK(test::same_bits_alone(op, c, expected_of(op, c)));
        }
      }
    }
  }
}
#endif

TEST_CASE("a matmul that does not fit says which sizes meet", "[ops]") {
  const auto refusal = [](const Matmul& op, const Shape& a, const Shape& b) {
    return test::refusal(op, {{DType::f32, a, {}}, {DType::f32, b, {}}});
  };
  CHECK(refusal({}, {16, 784}, {128, 10}) ==
        "matmul of a [16,784] and b [128,10]: it would contract 784 elements with 128 | a has as many columns as b "
        "has rows");
  CHECK(refusal({true, false}, {16, 784}, {784, 10}) ==
        "matmul of a [16,784] (transposed) and b [784,10]: it would contract 16 elements with 784 | a has as many "
        "columns as b has rows");
  CHECK(refusal({}, {16, 28, 28}, {784, 10}) ==
        "matmul of a [16,28,28] and b [784,10]: it would contract 28 elements with 784 | a has as many columns as b "
        "has rows");
  CHECK(test::refusal(Matmul{}, {{DType::f32, {1, 1}, {}}, {DType::i32, {1, 1}, {}}}) ==
        "matmul of a [1,1] and b [1,1]: a is f32 and b is i32 | both operands have the same numeric element type; cast "
        "one of them");
}

TEST_CASE("matmul costs two operations for each multiplication", "[ops]") {
  const std::vector<Type> operands = {{DType::f32, {16, 784}, {}}, {DType::f32, {784, 10}, {}}};
  const std::vector<Type> results = {{DType::f32, {16, 10}, {}}};
  const Cost cost = Matmul{}.cost(Mesh{}, operands, results);
  CHECK(cost.flops == 2.0 * 16 * 784 * 10);
  CHECK(cost.bytes == 4.0 * (16 * 784 + 784 * 10 + 16 * 10));
}

}  // namespace
}  // namespace pmaptrain
