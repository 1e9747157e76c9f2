#include <cmath>
#include <functional>
#include <limits>

#include "core/ops/all.h"
#include "core/ops/elementwise/vector.h"
#include "core/ops/list.h"
#include "tests/arrays.h"
#include "tests/catch.h"
#include "tests/ops/kernels.h"

namespace pmaptrain {
namespace {

using namespace ops;
using namespace test;

const float inf = std::numeric_limits<float>::infinity();
constexpr std::int32_t smallest = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t largest = std::numeric_limits<std::int32_t>::max();

using Floats = std::vector<float>;
using Ints = std::vector<std::int32_t>;
using Bools = std::vector<std::uint8_t>;

Floats unary(const Op& op, const Floats& x) {
  return apply(op, {f32({static_cast<std::int64_t>(x.size())}, x)}).as<float>();
}

}  // namespace

TEST_CASE("elementwise arithmetic takes equal shapes and a scalar on either side", "[ops]") {
  const HostArray x = f32({2, 2}, {1, 2, 3, 4}), y = f32({2, 2}, {10, 20, 30, 40}), two = f32({}, {2});
  CHECK(apply(Add{}, {x, y}).as<float>() == Floats{11, 22, 33, 44});
  CHECK(apply(Sub{}, {x, two}).as<float>() == Floats{-1, 0, 1, 2});
  CHECK(apply(Sub{}, {two, x}).as<float>() == Floats{1, 0, -1, -2});
  CHECK(apply(Mul{}, {two, two}).as<float>() == Floats{4});
  CHECK(apply(Div{}, {y, x}).as<float>() == Floats{10, 10, 10, 10});
  CHECK(apply(Max{}, {x, two}).as<float>() == Floats{2, 2, 3, 4});
  CHECK(apply(Add{}, {x, two}).type.shape == Shape{2, 2});
  CHECK(apply(Add{}, {two, x}).type.shape == Shape{2, 2});
  CHECK(apply(Add{}, {f32({0, 3}, {}), two}).as<float>().empty());
  CHECK(apply(Mul{}, {f64({2}, {0.1, 3}), f64({2}, {0.1, 5})}).as<double>() == std::vector<double>{0.1 * 0.1, 15});
}

TEST_CASE("two operations in one loop have the bits of two loops, on either side and with scalars", "[ops]") {
  const Op ops[] = {Add{}, Sub{}, Mul{}};
  const Floats x[] = {noise(37, 1), noise(37, 2), noise(37, 3)};
  for (const Op& first : ops) {
    for (const Op& second : ops) {
      for (const bool reversed : {false, true}) {
        for (const unsigned scalars : {0U, 1U, 2U, 4U, 5U, 6U}) {
          INFO(first.name() << ' ' << second.name() << ' ' << reversed << ' ' << scalars);
          const auto operand = [&](unsigned i) {
            return (scalars >> i & 1) != 0 ? f32({}, {x[i].front()}) : f32({37}, x[i]);
          };
          const HostArray inner = apply(first, {operand(0), operand(1)}), c = operand(2);
          const Floats expected = (reversed ? apply(second, {c, inner}) : apply(second, {inner, c})).as<float>();
          Floats found(37);
          const auto bytes_of = [&](unsigned i) { return reinterpret_cast<const std::byte*>(x[i].data()); };
          find_pair(*arithmetic_of(first), *arithmetic_of(second), reversed, scalars)(
              bytes_of(0), bytes_of(1), bytes_of(2), reinterpret_cast<std::byte*>(found.data()), 37);
          CHECK(found == expected);
        }
      }
    }
  }
}

TEST_CASE("integers wrap, and dividing them never traps", "[ops]") {
  const HostArray x = i32({3}, {largest, smallest, 7});
  CHECK(apply(Add{}, {x, i32({}, {1})}).as<std::int32_t>() == Ints{smallest, smallest + 1, 8});
  CHECK(apply(Sub{}, {x, i32({}, {1})}).as<std::int32_t>() == Ints{largest - 1, largest, 6});
  CHECK(apply(Mul{}, {x, i32({}, {2})}).as<std::int32_t>() == Ints{-2, 0, 14});
  CHECK(apply(Neg{}, {x}).as<std::int32_t>() == Ints{-largest, smallest, -7});
  CHECK(apply(Div{}, {x, i32({3}, {-1, -1, 0})}).as<std::int32_t>() == Ints{-largest, smallest, 0});
  CHECK(apply(Div{}, {i32({2}, {-7, 7}), i32({}, {2})}).as<std::int32_t>() == Ints{-3, 3});
  CHECK(apply(Rem{}, {x, i32({3}, {10, -1, 0})}).as<std::int32_t>() == Ints{7, 0, 7});
  CHECK(apply(Rem{}, {i32({4}, {-7, 7, -7, 7}), i32({4}, {2, 2, -2, -2})}).as<std::int32_t>() == Ints{-1, 1, -1, 1});
  CHECK(apply(Abs{}, {i32({3}, {smallest, -7, 7})}).as<std::int32_t>() == Ints{smallest, 7, 7});
  CHECK(apply(Sign{}, {i32({3}, {smallest, 0, 7})}).as<std::int32_t>() == Ints{-1, 0, 1});
  CHECK(apply(Min{}, {x, i32({}, {3})}).as<std::int32_t>() == Ints{3, smallest, 3});
  CHECK(apply(Mul{}, {u8({2}, {16, 255}), u8({2}, {17, 255})}).as<std::uint8_t>() == Bools{16, 1});
}

TEST_CASE("a power has the same bits however its operands are stacked", "[ops]") {
  const HostArray base = f32({3}, {1.5F, -2, 0.3F}), exponent = f32({3}, {2.5F, 3, -7}), scalar = f32({}, {3});
  const auto twice = [](HostArray x) {
    x.bytes.insert(x.bytes.end(), x.bytes.begin(), x.bytes.end());
    return x;
  };
  for (const auto& [x, y] : {std::pair{base, exponent}, {base, scalar}, {scalar, base}}) {
    const Floats alone = apply_stacked(Pow{}, {x, y}, 1, {true, true}).as<float>();
    Floats expected = alone;
    expected.insert(expected.end(), alone.begin(), alone.end());
    CHECK(apply_stacked(Pow{}, {twice(x), y}, 2, {true, false}).as<float>() == expected);
    CHECK(apply_stacked(Pow{}, {x, twice(y)}, 2, {false, true}).as<float>() == expected);
    CHECK(apply_stacked(Pow{}, {twice(x), twice(y)}, 2, {true, true}).as<float>() == expected);
    CHECK(apply_stacked(Pow{}, {x, y}, 2, {false, false}).as<float>() == expected);
  }
}

TEST_CASE("functions of one value are the C library's", "[ops]") {
  const Floats x = {0.25F, 1, 2.5F, 80};
  for (std::size_t i = 0; i < x.size(); ++i) {
    CHECK(unary(Exp{}, x)[i] == std::exp(x[i]));
    CHECK(unary(Log{}, x)[i] == std::log(x[i]));
    CHECK(unary(Sqrt{}, x)[i] == std::sqrt(x[i]));
    CHECK(unary(Tanh{}, x)[i] == std::tanh(x[i]));
    CHECK(unary(Expm1{}, x)[i] == std::expm1(x[i]));
    CHECK(unary(Log1p{}, x)[i] == std::log1p(x[i]));
    CHECK(unary(Sin{}, x)[i] == std::sin(x[i]));
    CHECK(unary(Cos{}, x)[i] == std::cos(x[i]));
    CHECK(unary(Erf{}, x)[i] == std::erf(x[i]));
    CHECK(unary(Rsqrt{}, x)[i] == 1 / std::sqrt(x[i]));
    const HostArray three = f32({}, {3}), base = f32({}, {x[i]});
    CHECK(apply(Pow{}, {base, three}).as<float>()[0] == std::pow(x[i], 3.0F));
    CHECK(apply(Rem{}, {base, three}).as<float>()[0] == std::fmod(x[i], 3.0F));
  }
  CHECK(unary(Abs{}, {-1.5F, 2, -inf}) == Floats{1.5F, 2, inf});
  CHECK(unary(Sign{}, {-1.5F, 0, 2, -inf}) == Floats{-1, 0, 1, -1});
  CHECK(std::signbit(unary(Sign{}, {-0.0F})[0]));
  CHECK(unary(Floor{}, {-1.5F, 1.5F, 3, -inf}) == Floats{-2, 1, 3, -inf});
  CHECK(unary(Rsqrt{}, {0, inf}) == Floats{inf, 0});
  CHECK(unary(Neg{}, {1, -2}) == Floats{-1, 2});
  CHECK(unary(Relu{}, {-1, 0, 2, -inf, inf}) == Floats{0, 0, 2, 0, inf});
  CHECK(unary(StopGradient{}, {1, -2}) == Floats{1, -2});
}

TEST_CASE("clamp takes bounds that are scalars or arrays, and the upper one wins", "[ops]") {
  const HostArray x = f32({4}, {-5, 1, 5, 2}), low = f32({4}, {0, 2, 0, 3}), high = f32({4}, {3, 3, 3, 1});
  const HostArray zero = f32({}, {0}), three = f32({}, {3});
  CHECK(apply(Clamp{}, {zero, x, three}).as<float>() == Floats{0, 1, 3, 2});
  CHECK(apply(Clamp{}, {low, x, high}).as<float>() == Floats{0, 2, 3, 1});
  CHECK(apply(Clamp{}, {low, x, three}).as<float>() == Floats{0, 2, 3, 3});
  CHECK(apply(Clamp{}, {zero, x, high}).as<float>() == Floats{0, 1, 3, 1});
  CHECK(apply(Clamp{}, {low, three, high}).as<float>() == Floats{3, 3, 3, 1});
  CHECK(apply(Clamp{}, {i32({}, {0}), i32({2}, {-1, 9}), i32({}, {5})}).as<std::int32_t>() == Ints{0, 5});
}

TEST_CASE("a NaN survives relu, max, min, clamp, sign and abs, so that it reaches the guard", "[ops]") {
  for (const Op& op : {Op(Relu{}), Op(Sign{}), Op(Abs{}), Op(Floor{})}) CHECK(std::isnan(unary(op, {nan_value})[0]));
  const HostArray nan = f32({}, {nan_value}), one = f32({}, {1});
  for (const std::vector<HostArray>& operands :
       {std::vector<HostArray>{nan, one, one}, {one, nan, one}, {one, one, nan}}) {
    CHECK(std::isnan(test::apply(Clamp{}, operands).as<float>()[0]));
  }
  const HostArray x = f32({2}, {nan_value, 1}), y = f32({2}, {1, nan_value});
  for (float found : apply(Max{}, {x, y}).as<float>()) CHECK(std::isnan(found));
  for (float found : apply(Min{}, {x, y}).as<float>()) CHECK(std::isnan(found));
}

TEST_CASE("comparisons give 0 or 1, and false beside a NaN but for ne", "[ops]") {
  const HostArray x = f32({4}, {1, 2, 3, nan_value}), two = f32({}, {2});
  CHECK(apply(Eq{}, {x, two}).as<std::uint8_t>() == Bools{0, 1, 0, 0});
  CHECK(apply(Ne{}, {x, two}).as<std::uint8_t>() == Bools{1, 0, 1, 1});
  CHECK(apply(Lt{}, {x, two}).as<std::uint8_t>() == Bools{1, 0, 0, 0});
  CHECK(apply(Le{}, {x, two}).as<std::uint8_t>() == Bools{1, 1, 0, 0});
  CHECK(apply(Gt{}, {x, two}).as<std::uint8_t>() == Bools{0, 0, 1, 0});
  CHECK(apply(Ge{}, {x, two}).as<std::uint8_t>() == Bools{0, 1, 1, 0});
  CHECK(apply(Eq{}, {boolean({2}, {0, 1}), boolean({}, {1})}).as<std::uint8_t>() == Bools{0, 1});
  CHECK(apply(IsFinite{}, {f32({5}, {0, -3, inf, -inf, nan_value})}).as<std::uint8_t>() == Bools{1, 1, 0, 0, 0});
}

TEST_CASE("select takes scalars in every place", "[ops]") {
  const HostArray p = boolean({3}, {1, 0, 1}), x = i32({3}, {1, 2, 3}), y = i32({3}, {-1, -2, -3});
  const HostArray ten = i32({}, {10}), twenty = i32({}, {20}), yes = boolean({}, {1}), no = boolean({}, {0});
  CHECK(apply(Select{}, {p, x, y}).as<std::int32_t>() == Ints{1, -2, 3});
  CHECK(apply(Select{}, {p, ten, y}).as<std::int32_t>() == Ints{10, -2, 10});
  CHECK(apply(Select{}, {p, x, ten}).as<std::int32_t>() == Ints{1, 10, 3});
  CHECK(apply(Select{}, {p, ten, twenty}).as<std::int32_t>() == Ints{10, 20, 10});
  CHECK(apply(Select{}, {yes, x, y}).as<std::int32_t>() == Ints{1, 2, 3});
  CHECK(apply(Select{}, {no, x, ten}).as<std::int32_t>() == Ints{10, 10, 10});
  CHECK(apply(Select{}, {no, ten, twenty}).as<std::int32_t>() == Ints{20});
}

TEST_CASE("casts round to nearest, towards zero to integers, and saturate", "[ops]") {
  CHECK(apply(Cast{DType::i32}, {f32({7}, {-1.9F, 1.9F, 3e9F, -3e9F, inf, -inf, nan_value})}).as<std::int32_t>() ==
        Ints{-1, 1, largest, smallest, largest, smallest, 0});
  CHECK(apply(Cast{DType::u8}, {f64({3}, {-1, 255.9, 256})}).as<std::uint8_t>() == Bools{0, 255, 255});
  CHECK(apply(Cast{DType::u8}, {i32({3}, {-1, 256, 7})}).as<std::uint8_t>() == Bools{255, 0, 7});
  CHECK(apply(Cast{DType::boolean}, {f32({3}, {0, 0.5F, nan_value})}).as<std::uint8_t>() == Bools{0, 1, 1});
  CHECK(apply(Cast{DType::f32}, {boolean({2}, {0, 1})}).as<float>() == Floats{0, 1});
  CHECK(apply(Cast{DType::f32}, {f64({1}, {0.1})}).as<float>() == Floats{0.1F});
  CHECK(apply(Cast{DType::i64}, {f64({2}, {1e19, -1e19})}).as<std::int64_t>() ==
        std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()});
}

TEST_CASE("a result may be the memory of an operand", "[ops]") {
  Type type{DType::f32, {37}, {}};
  const Type scalar{DType::f32, {}, {}};
  const float two = 2;
  const auto run = [&](const Op& op, Floats& out, const Floats& other, bool first) {
    const ConstArray same{&type, reinterpret_cast<const std::byte*>(out.data())};
    const ConstArray next = other.empty() ? ConstArray{&scalar, reinterpret_cast<const std::byte*>(&two)}
                                          : ConstArray{&type, reinterpret_cast<const std::byte*>(other.data())};
    const std::vector<ConstArray> operands = first ? std::vector{same, next} : std::vector{next, same};
    const Array result{&type, reinterpret_cast<std::byte*>(out.data())};
    kernels_of(op).reference(op.data(), {operands, {&result, 1}});
  };
  Floats x(37), y(37);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i), y[i] = static_cast<float>(100 * i);
  Floats sum = x, difference = x, product = x;
  run(Add{}, sum, y, true);
  run(Sub{}, difference, y, false);
  run(Mul{}, product, {}, true);
  for (std::size_t i = 0; i < x.size(); ++i) {
    CHECK(sum[i] == x[i] + y[i]);
    CHECK(difference[i] == y[i] - x[i]);
    CHECK(product[i] == 2 * x[i]);
  }
}

TEST_CASE("several devices' elements are one call where operands are stacked or shared scalars", "[ops]") {
  std::string implementation;
  const Floats six = {1, 2, 3, 4, 5, 6};
  // The types are one device's; the bytes three devices'.
  const auto slices = [](const Shape& shape, const Floats& values) {
    HostArray a = f32(shape, values);
    return a;
  };
  CHECK(apply_stacked(Add{}, {slices({2}, six), f32({}, {10})}, 3, {true, false}, &implementation).as<float>() ==
        Floats{11, 12, 13, 14, 15, 16});
  CHECK(implementation == "vectors");
  CHECK(apply_stacked(Mul{}, {slices({2}, six), slices({2}, six)}, 3, {true, true}, &implementation).as<float>() ==
        Floats{1, 4, 9, 16, 25, 36});
  CHECK(implementation == "vectors");
  CHECK(apply_stacked(Cast{DType::i32}, {slices({2}, six)}, 3, {true}, &implementation).as<std::int32_t>() ==
        Ints{1, 2, 3, 4, 5, 6});
  CHECK(implementation == "vectors");
  // One scalar for each device, and a vector that all devices share, differ from device to device.
  CHECK(apply_stacked(Add{}, {slices({2}, six), slices({}, {10, 20, 30})}, 3, {true, true}, &implementation)
            .as<float>() == Floats{11, 12, 23, 24, 35, 36});
  CHECK(implementation == "vectors");
  CHECK(apply_stacked(Add{}, {slices({2}, six), f32({2}, {10, 20})}, 3, {true, false}, &implementation).as<float>() ==
        Floats{11, 22, 13, 24, 15, 26});
  CHECK(implementation == "vectors");
  CHECK(apply_stacked(Relu{}, {f32({2}, {-1, 1})}, 2, {false}).as<float>() == Floats{0, 1, 0, 1});
}

TEST_CASE("a single op by vectors has the bits of its functor, whatever is a scalar and whatever is stacked", "[ops]") {
  const Floats special = {0.0F, -0.0F, 1.5F, -1.5F, 2.5F, 1e9F, -1e-40F, inf, -inf, nan_value, 3.25F};
  constexpr std::size_t elements = 70;
  const auto values = [&](DType dtype, bool scalar, std::size_t devices, std::size_t shift) {
    const std::size_t count = (scalar ? 1 : elements) * devices;
    Floats from(count);
    for (std::size_t i = 0; i < count; ++i) from[i] = special[(i * 7 + shift + i / 11) % special.size()];
    const HostArray all = apply(Cast{dtype}, {f32({static_cast<std::int64_t>(count)}, from)});
    return HostArray{{dtype, scalar ? Shape{} : Shape{elements}, {}}, all.bytes};
  };
  const auto device = [](const HostArray& all, bool stacked, std::size_t d) {
    const auto size = static_cast<std::ptrdiff_t>(bytes(all.type)),
               from = stacked ? static_cast<std::ptrdiff_t>(d) * size : 0;
    return HostArray{all.type, {all.bytes.begin() + from, all.bytes.begin() + from + size}};
  };
  const auto check = [&](const Op& op, DType dtype, std::size_t count) {
    for (unsigned scalars = 0; scalars + 1 < 1u << count; ++scalars) {
      for (unsigned shared = 0; shared < 1u << count; ++shared) {
        CAPTURE(op.name(), dtype, scalars, shared);
        std::vector<HostArray> operands;
        std::vector<bool> stacked;
        for (std::size_t i = 0; i < count; ++i) {
          stacked.push_back((shared >> i & 1) == 0);
          operands.push_back(values(dtype, (scalars >> i & 1) != 0, stacked[i] ? 3 : 1, i));
        }
        std::string implementation;
        const HostArray found = apply_stacked(op, operands, 3, stacked, &implementation);
        CHECK(implementation == "vectors");
        std::vector<std::byte> expected;
        for (std::size_t d = 0; d < 3; ++d) {
          std::vector<HostArray> own;
          for (std::size_t i = 0; i < count; ++i) own.push_back(device(operands[i], stacked[i], d));
          const HostArray one = test::apply(op, own);
          expected.insert(expected.end(), one.bytes.begin(), one.bytes.end());
        }
        CHECK(found.bytes == expected);
      }
    }
  };
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const Op& op : std::vector<Op>{Floor{}, Sqrt{}, Rsqrt{}, Abs{}, Sign{}, Relu{}, Neg{}, IsFinite{}}) {
      check(op, dtype, 1);
    }
  }
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64}) {
    for (const Op& op : std::vector<Op>{Add{}, Mul{}, Div{}, Max{}, Min{}, Eq{}, Ne{}, Lt{}, Le{}, Gt{}, Ge{}}) {
      check(op, dtype, 2);
    }
    check(Clamp{}, dtype, 3);
  }
}

TEST_CASE("an instruction on one element has the bits of the op's reference", "[ops]") {
  const auto check = [](const Op& op, DType dtype, const std::vector<HostArray>& operands) {
    CAPTURE(op.name(), dtype);
    const VectorFunction function = find_scalar_function(op, dtype);
    REQUIRE(function != nullptr);
    std::array<const std::byte*, 3> from{};
    for (std::size_t i = 0; i < operands.size(); ++i) from[i] = operands[i].bytes.data();
    const HostArray expected = apply(op, operands);
    std::vector<std::byte> found(expected.bytes.size());
    function(from[0], from[1], from[2], found.data(), 1);
    CHECK(found == expected.bytes);
  };
  const HostArray yes = apply(Cast{DType::boolean}, {f32({}, {1})}), no = apply(Cast{DType::boolean}, {f32({}, {0})});
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64}) {
    for (const float a : {0.0F, -0.0F, 1.5F, -2.5F, 7.0F, inf, nan_value}) {
      for (const float b : {0.0F, 3.0F, -inf, nan_value}) {
        const HostArray x = apply(Cast{dtype}, {f32({}, {a})}), y = apply(Cast{dtype}, {f32({}, {b})});
        for (const Op& op : std::vector<Op>{Add{}, Sub{}, Mul{}, Div{}, Max{}, Min{}, Eq{}, Ne{}, Lt{}, Ge{}}) {
          check(op, dtype, {x, y});
        }
        check(Clamp{}, dtype, {x, y, x});
        check(Select{}, dtype, {yes, x, y});
        check(Select{}, dtype, {no, x, y});
      }
      const HostArray x = apply(Cast{dtype}, {f32({}, {a})});
      for (const DType to : {DType::f32, DType::f64, DType::i64, DType::u8, DType::boolean})
        check(Cast{to}, dtype, {x});
    }
  }
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const float a : {0.0F, 2.0F, 1e-40F, inf}) {
      const HostArray x = apply(Cast{dtype}, {f32({}, {a})});
      for (const Op& op : std::vector<Op>{Sqrt{}, Abs{}, Neg{}, IsFinite{}}) check(op, dtype, {x});
    }
  }
}

TEST_CASE("elementwise ops say which types do not go together", "[ops]") {
  const Type f32_23{DType::f32, {2, 3}, {}}, f32_32{DType::f32, {3, 2}, {}}, i32_23{DType::i32, {2, 3}, {}},
      bool_23{DType::boolean, {2, 3}, {}}, u8_1{DType::u8, {1}, {}};
  CHECK(refusal_of(Add{}, {f32_23, f32_32}) ==
        "add: the shapes of f32[2,3], f32[3,2] differ (shapes are equal, or one is []; broadcast says along which "
        "dimensions to repeat)");
  CHECK(refusal_of(Mul{}, {f32_23, i32_23}) ==
        "mul: the element types of f32[2,3], i32[2,3] differ (cast one of them)");
  CHECK(refusal_of(Sub{}, {bool_23, bool_23}) ==
        "sub: works on numbers, not on bool (cast a bool to a number: 0 or 1)");
  CHECK(refusal_of(Exp{}, {i32_23}) ==
        "exp: works on floating types, not on i32 (cast the operand to a floating type first)");
  CHECK(refusal_of(Clamp{}, {f32_23, f32_23, i32_23}) ==
        "clamp: the element types of f32[2,3], i32[2,3] differ (cast one of them)");
  CHECK(refusal_of(Pow{}, {i32_23, i32_23}) ==
        "pow: works on floating types, not on i32 (cast the operand to a floating type first)");
  CHECK(refusal_of(Relu{}, {u8_1}) ==
        "relu: works on signed numbers, not on u8 (cast the operand to i32, i64 or a floating type first)");
  CHECK(refusal_of(Div{}, {f32_23}) == "div: takes 2 operands, not 1 (the operands given are f32[2,3])");
  CHECK(refusal_of(Select{}, {f32_23, f32_23, f32_23}) ==
        "select: its predicate is f32[2,3], not bool (a comparison gives a bool)");
  CHECK(refusal_of(Select{}, {bool_23, f32_23, Type{}}) == "accepted");
}

}  // namespace pmaptrain
