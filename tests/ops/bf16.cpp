// Ops on elements of bf16: computed in f32 from the operands' exact values, and rounded once.
#include <cmath>
#include <limits>

#include "core/ops/all.h"
#include "core/ops/list.h"
#include "tests/arrays.h"
#include "tests/catch.h"

namespace pmaptrain {
namespace {

using namespace ops;
using namespace test;

using Floats = std::vector<float>;

HostArray to(DType dtype, const HostArray& x) { return apply(Cast{dtype}, {x}); }
HostArray bf16s(Shape shape, const Floats& values) { return to(DType::bf16, f32(std::move(shape), values)); }
Floats floats(const HostArray& x) { return to(DType::f32, x).as<float>(); }

// Every bf16 there is.
HostArray all_bf16() {
  std::vector<std::uint16_t> bits;
  for (std::uint32_t i = 0; i < 0x10000; ++i) bits.push_back(static_cast<std::uint16_t>(i));
  return array(DType::bf16, {0x10000}, bits);
}

// Some of every kind: both signs, subnormals, large, infinite, NaN.
HostArray some_bf16() {
  std::vector<std::uint16_t> bits;
  for (std::uint32_t i = 0; i < 0x10000; i += 61) bits.push_back(static_cast<std::uint16_t>(i));
  for (const std::uint32_t special : {0u, 0x8000u, 1u, 0x7F80u, 0xFF80u, 0x7FC0u, 0x3F80u, 0xBF80u, 0x7F7Fu}) {
    bits.push_back(static_cast<std::uint16_t>(special));
  }
  return array(DType::bf16, {static_cast<std::int64_t>(bits.size())}, bits);
}

HostArray part(const HostArray& x, std::int64_t size, std::int64_t offset) {
  const std::int64_t n = x.type.shape[0];
  std::vector<std::uint16_t> bits;
  const auto all = x.as<std::uint16_t>();
  for (std::int64_t i = 0; i < size; ++i) bits.push_back(all[static_cast<std::size_t>((i * 7 + offset) % n)]);
  return array(DType::bf16, {size}, bits);
}

// What the op gives in f32, rounded; for a comparison the same booleans.
HostArray in_f32(const Op& op, std::vector<HostArray> operands) {
  for (HostArray& operand : operands) {
    if (operand.type.dtype == DType::bf16) operand = to(DType::f32, operand);
  }
  const HostArray result = test::apply(op, operands);
  return result.type.dtype == DType::f32 ? to(DType::bf16, result) : result;
}

void check_rounds_once(const Op& op, const std::vector<HostArray>& operands) {
  INFO(to_string(op));
  const HostArray expected = in_f32(op, operands), found = test::apply(op, operands);
  CHECK(found.type == expected.type);
  const bool same = found.bytes == expected.bytes;
  CHECK(same);
}

// Also the CPU kernel.
void check_bits(const Op& op, const std::vector<HostArray>& operands) {
  check_rounds_once(op, operands);
  INFO(to_string(op));
  const HostArray expected = test::apply(op, operands);
  const bool same = apply_stacked(op, operands, 1, std::vector<bool>(operands.size(), true)).bytes == expected.bytes;
  CHECK(same);
}

// The CPU kernel to one unit in the last place: functions in vectors are not libm's.
void check_close(const Op& op, const std::vector<HostArray>& operands) {
  check_rounds_once(op, operands);
  INFO(to_string(op));
  const Floats expected = floats(test::apply(op, operands));
  const Floats found = floats(apply_stacked(op, operands, 1, std::vector<bool>(operands.size(), true)));
  std::size_t differ = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i]) ? std::isnan(found[i]) : found[i] == expected[i]) continue;
    ++differ;
    INFO(expected[i]);
    REQUIRE(std::abs(found[i] - expected[i]) <= std::ldexp(std::abs(expected[i]), -7));
  }
  CHECK(differ * 1000 <= expected.size());
}

template <class... Ops>
void for_each_op(OpList<Ops...>, auto&& f) {
  (f.template operator()<Ops>(), ...);
}

}  // namespace

TEST_CASE("every elementwise op takes bf16: the value in f32, rounded once, in both kernels", "[ops]") {
  const HostArray all = all_bf16(), x = some_bf16(), y = part(x, x.type.shape[0], 3), z = part(x, x.type.shape[0], 11);
  const HostArray scalar = bf16s({}, {1.5F});
  int ops = 0;
  for_each_op(AllOps{}, [&]<class T>() {
    if constexpr (requires { typename T::Of; }) {
      ++ops;
      using F = typename T::Of;
      constexpr bool vectors = requires { T::vectors; };
      if constexpr (std::is_invocable_v<F, float>) {
        vectors ? check_close(T{}, {all}) : check_bits(T{}, {all});
      } else if constexpr (std::is_invocable_v<F, float, float>) {
        for (const auto& [a, b] : {std::pair{x, y}, {x, scalar}, {scalar, x}, {scalar, scalar}}) {
          vectors ? check_close(T{}, {a, b}) : check_bits(T{}, {a, b});
        }
      } else {
        check_bits(T{}, {x, y, z});
        check_bits(T{}, {scalar, y, scalar});
      }
    }
  });
  CHECK(ops > 20);
}

TEST_CASE("casts of bf16 are exact to wider types, and to integers as those of f32", "[ops]") {
  const HostArray all = all_bf16();
  const Floats wide = floats(all);
  for (const DType dtype : {DType::i32, DType::i64, DType::u8, DType::u32, DType::boolean, DType::f64}) {
    INFO(to_string(dtype));
    const HostArray expected = apply(Cast{dtype}, {f32({0x10000}, wide)}), found = apply(Cast{dtype}, {all});
    const bool same = found.bytes == expected.bytes;
    CHECK(same);
    const bool same_kernel = apply_stacked(Cast{dtype}, {all}, 1, {true}).bytes == expected.bytes;
    CHECK(same_kernel);
  }
  CHECK(floats(to(DType::bf16, i32({3}, {256, 257, 259}))) == Floats{256, 256, 260});
  CHECK(floats(to(DType::bf16, f64({1}, {1 + 0x1p-8 + 0x1p-40}))) == Floats{1 + 0x1p-7F});
  CHECK(floats(to(DType::bf16, boolean({2}, {0, 1}))) == Floats{0, 1});
}

TEST_CASE("bf16 is moved, chosen and compared as it is", "[ops]") {
  const HostArray x = bf16s({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(floats(apply(Transpose{{1, 0}}, {x})) == Floats{1, 4, 2, 5, 3, 6});
  CHECK(floats(apply(Reverse{{1}}, {x})) == Floats{3, 2, 1, 6, 5, 4});
  CHECK(floats(apply(Slice{{0, 1}, {2, 3}}, {x})) == Floats{2, 3, 5, 6});
  CHECK(floats(apply(Broadcast{{2, 2}, {1}}, {bf16s({2}, {7, 8})})) == Floats{7, 8, 7, 8});
  CHECK(floats(apply(Gather{}, {x, i32({2}, {1, 0})})) == Floats{4, 5, 6, 1, 2, 3});
  CHECK(floats(apply(Concatenate{0}, {x, x})) == Floats{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6});
  CHECK(floats(apply(Select{}, {boolean({}, {0}), x, bf16s({}, {9})})) == Floats(6, 9));
  CHECK(floats(apply(Iota{DType::bf16, {3}, 0}, {})) == Floats{0, 1, 2});
  CHECK(floats(apply(Constant{DType::bf16, {2}, 0.1}, {})) == Floats(2, 0.10009765625F));
  CHECK(floats(apply(OneHot{3, DType::bf16}, {i32({1}, {2})})) == Floats{0, 0, 1});
  CHECK(apply(Argmax{1}, {bf16s({1, 3}, {1, nan_value, 3})}).as<std::int32_t>()[0] == 1);
  const std::vector<HostArray> top = apply_all(TopK{2}, {bf16s({1, 4}, {1, 5, 3, 4})});
  CHECK(floats(top[0]) == Floats{5, 4});
  CHECK(refusal_of(Iota{DType::bf16, {258}, 0}, {}) ==
        "iota: bf16 does not hold the 258 indices of dimension 0 of [258] (it holds every whole number up to 256; i64 "
        "holds more)");
  CHECK(refusal_of(Constant{DType::bf16, {}, 3.4e38}, {}) ==
        "constant: 3.4e+38 is not a value of bf16 (a bool is 0 or 1, an integer has no fraction, and each type has its "
        "range)");
}

TEST_CASE("sums of bf16 are accumulated in f32 and rounded at the end", "[ops]") {
  const HostArray ones = bf16s({1000}, Floats(1000, 1)), rows = bf16s({1000, 2}, Floats(2000, 1));
  const std::vector<std::pair<Op, HostArray>> sums{{ReduceSum{{0}}, ones}, {ReduceSum{{0}}, rows}};
  for (const auto& [op, x] : sums) {
    for (const float sum : floats(apply(op, {x}))) CHECK(sum == 1000);
    for (const float sum : floats(apply_stacked(op, {x}, 1, {true}))) CHECK(sum == 1000);
  }
  CHECK(floats(apply(Cumsum{0}, {ones}))[999] == 1000);
  CHECK(floats(apply_stacked(Cumsum{0}, {ones}, 1, {true}))[999] == 1000);
  CHECK(floats(apply(ScatterAdd{1}, {i32({1000}, std::vector<std::int32_t>(1000, 0)), ones}))[0] == 1000);
  CHECK(floats(apply(ReduceMax{{0}}, {bf16s({3}, {1, 5, 3})}))[0] == 5);
  const std::vector<HostArray> norms = apply_all(Norms{}, {ones});
  CHECK(norms[0].as<double>()[0] == 1000);
  CHECK(floats(norms[1])[0] == 1);
}

}  // namespace pmaptrain
