// Products, convolutions and poolings of bf16: accumulated in f32, by the library's kernels for bf16 where they are
// faster.
#include <cmath>

#include "core/kernel/in_f32.h"
#include "core/ops/all.h"
#include "core/ops/list.h"
#include "tests/arrays.h"
#include "tests/catch.h"
#include "tests/ops/kernels.h"

namespace pmaptrain {
namespace {

using namespace ops;

test::HostArray cast(DType dtype, const test::HostArray& x) { return test::apply(Cast{dtype}, {x}); }

// Random elements of a type, for `devices` devices.
test::HostArray random_array(Type type, std::int64_t devices, std::uint32_t seed) {
  const DType dtype = type.dtype;
  const std::int64_t elements = numel(type) * devices;
  test::HostArray array = cast(dtype, test::f32({elements}, test::noise(elements, seed)));
  array.type = std::move(type);
  return array;
}

std::vector<double> doubles(const test::HostArray& x, std::int64_t first, std::int64_t count) {
  test::HostArray flat = x;
  flat.type.shape = {std::ssize(x.bytes) / static_cast<std::int64_t>(size_of(x.type.dtype))};
  const auto all = cast(DType::f64, flat).as<double>();
  return {all.begin() + first, all.begin() + first + count};
}

test::HostArray slice(const test::HostArray& x, std::int64_t device) {
  const auto size = static_cast<std::ptrdiff_t>(bytes(x.type));
  return {x.type, {x.bytes.begin() + device * size, x.bytes.begin() + (device + 1) * size}};
}

// The operand of one device in f64, or the magnitudes of its elements.
test::HostArray wide_slice(const test::HostArray& x, std::int64_t device, bool magnitudes) {
  std::vector<double> values = doubles(x, device * numel(x.type), numel(x.type));
  if (magnitudes) {
    for (double& value : values) value = std::abs(value);
  }
  return test::f64(x.type.shape, values);
}

template <class T>
T in_f64(T op) {
  if constexpr (requires { op.preferred_element_type; }) op.preferred_element_type.reset();
  return op;
}

// Each result beside that of the reference in f64, on the same operands. Rounding in f32 is small beside the sum of the
// magnitudes of the terms; a result of bf16 is rounded once more.
template <class T>
void check_product(const T& op, const std::vector<Type>& types, std::int64_t devices, const std::vector<bool>& stacked,
                   std::string* implementation = nullptr) {
  INFO(to_string(op) << " on " << devices << " devices");
  std::vector<test::HostArray> operands;
  for (std::size_t i = 0; i < types.size(); ++i) {
    operands.push_back(random_array(types[i], stacked[i] ? devices : 1, static_cast<std::uint32_t>(i) + 1));
  }
  std::string name;
  const std::vector<test::HostArray> found = test::apply_all_stacked(op, operands, devices, stacked, &name);
  if (implementation != nullptr) *implementation = name;
  INFO(name);
  T of_magnitudes = in_f64(op);
  if constexpr (requires { op.relu; }) of_magnitudes.relu = false;
  for (std::int64_t device = 0; device < devices; ++device) {
    std::vector<test::HostArray> wide, magnitudes, own;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      own.push_back(slice(operands[i], stacked[i] ? device : 0));
      wide.push_back(wide_slice(operands[i], stacked[i] ? device : 0, false));
      magnitudes.push_back(wide_slice(operands[i], stacked[i] ? device : 0, true));
    }
    const std::vector<test::HostArray> expected = test::apply_all(in_f64(op), wide),
                                       scale = test::apply_all(of_magnitudes, magnitudes);
    // However devices share calls of the library.
    const std::vector<test::HostArray> alone = test::apply_all_stacked(op, own, 1, stacked);
    for (std::size_t r = 0; r < found.size(); ++r) {
      const bool same = slice(found[r], device).bytes == alone[r].bytes;
      CHECK(same);
      const std::int64_t n = numel(found[r].type);
      const auto values = doubles(found[r], device * n, n);
      const auto right = expected[r].as<double>(), most = scale[r].as<double>();
      const double last_place = found[r].type.dtype == DType::bf16 ? 0x1p-8 : 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const bool close =
            std::abs(values[i] - right[i]) <= 1.01 * last_place * std::abs(right[i]) + 2e-6 * most[i] + 1e-38;
        if (close) continue;
        INFO("result " << r << ", element " << i << ", of magnitude " << most[i]);
        REQUIRE(values[i] == Approx(right[i]));
        FAIL("off by " << values[i] - right[i]);
      }
    }
  }
}

// With results of bf16 and of f32, on one device and on three. `by_library`: whether the library has a kernel of bf16
// for these shapes on a machine with such instructions; none where that depends on the machine.
template <class T>
void check_products(T op, const std::vector<Shape>& shapes, const std::vector<bool>& stacked,
                    std::optional<bool> by_library) {
  std::vector<Type> types;
  for (const Shape& shape : shapes) types.push_back({DType::bf16, shape, {}});
  for (const std::optional<DType> preferred : {std::optional<DType>(), std::optional(DType::f32)}) {
    op.preferred_element_type = preferred;
    for (const std::int64_t devices : {1, 3}) {
      for (const DType bias : {DType::bf16, DType::f32}) {
        if (types.size() == 3) types[2].dtype = bias;
        std::string name;
        check_product(op, types, devices, stacked, &name);
        INFO(name);
        const bool in_bf16 = name.find("in f32") == std::string::npos;
        if (by_library) CHECK(in_bf16 == (*by_library && multiplies_bf16_faster()));
      }
    }
  }
}

}  // namespace

TEST_CASE("products of bf16 are those of f64 but for the rounding of f32 and of the result", "[ops]") {
  for (const bool large : {false, true}) {
    const std::int64_t m = large ? 70 : 3, n = large ? 48 : 5, k = large ? 130 : 4;
    for (const bool a : {false, true}) {
      for (const bool b : {false, true}) {
        const std::vector<Shape> shapes{a ? Shape{k, m} : Shape{m, k}, b ? Shape{n, k} : Shape{k, n}};
        check_products(Matmul{a, b}, shapes, {true, false}, large);
        check_products(Matmul{a, b}, shapes, {true, true}, large);
        const std::vector<Shape> batched{{2, shapes[0][0], shapes[0][1]}, {2, shapes[1][0], shapes[1][1]}};
        check_products(BatchMatmul{a, b}, batched, {true, true}, large);
      }
    }
    for (const bool relu : {false, true}) {
      check_products(Matmul{false, false, relu}, {{m, k}, {k, n}, {n}}, {true, false, false}, large);
    }
  }
  check_products(Matmul{}, {{200, 5}, {5, 1}}, {true, false}, false);
}

TEST_CASE("rows of bf16 have the same bits whatever rows are multiplied with them", "[ops]") {
  for (const std::int64_t m : {1, 2, 5, 16, 33, 64}) {
    for (const std::int64_t n : {1, 3, 16, 48, 100}) {
      for (const std::int64_t k : {3, 32, 65, 130, 520}) {
        const Matmul to_f32{false, false, false, DType::f32};
        const Type a{DType::bf16, {m, k}, {}}, b{DType::bf16, {k, n}, {}};
        INFO(m << " x " << k << " x " << n);
        const test::HostArray rows = random_array(a, 3, 1), weights = random_array(b, 1, 2);
        const test::HostArray together = test::apply_stacked(to_f32, {rows, weights}, 3, {true, false});
        for (std::int64_t d = 0; d < 3; ++d) {
          const test::HostArray alone = test::apply_stacked(to_f32, {slice(rows, d), weights}, 1, {true, false});
          const bool same = slice(together, d).bytes == alone.bytes;
          CHECK(same);
        }
      }
    }
  }
}

TEST_CASE("packed weights give the bits of plain ones, of bf16 too", "[ops]") {
  struct Case {
    Op op;
    Shape x, weights, y;
    std::size_t packed;
  };
  const std::vector<std::int64_t> ones = {1, 1};
  const Padding same = {{1, 1}, {1, 1}};
  const Shape image = {4, 12, 12, 32}, kernel = {3, 3, 32, 64}, y = {4, 12, 12, 64};
  for (const Case& of : {Case{Matmul{}, {64, 200}, {200, 96}, {64, 96}, 1}, Case{Conv{ones, same}, image, kernel, y, 1},
                         Case{ConvInputGrad{ones, same, image}, kernel, y, image, 0}}) {
    bool is_packed_in_f32 = false;
    for (const DType dtype : {DType::f32, DType::bf16}) {
      INFO(to_string(of.op) << " of " << to_string(dtype));
      const std::vector<Type> types{{dtype, of.x, {}}, {dtype, of.weights, {}}}, results{{dtype, of.y, {}}};
      std::vector<bool> stacked(2, true);
      stacked[of.packed] = false;
      const std::vector<test::HostArray> operands{random_array(types[0], 1, 1), random_array(types[1], 1, 2)};
      const test::HostArray expected = test::apply_stacked(of.op, operands, 1, stacked);
      CpuRequest request{types, results, 1, stacked, of.packed};
      const auto preparation = make_preparation(of.op, request);
      const bool in_f32 = dtype == DType::f32 || !multiplies_bf16_faster();
      if (dtype == DType::f32) is_packed_in_f32 = preparation != nullptr;
      if (in_f32 && is_packed_in_f32) REQUIRE(preparation != nullptr);
      if (of.op.as<Matmul>() != nullptr && multiplies_bf16_faster()) REQUIRE(preparation != nullptr);
      if (!preparation) continue;  // the library may take plain layouts
      const auto made = make_cpu_kernel(of.op, request);
      CHECK((made->implementation().find("in f32") != std::string::npos) == (dtype == DType::bf16 && in_f32));
      struct alignas(64) Line {
        std::byte bytes[64];
      };
      const auto lines = [](std::size_t bytes) { return std::vector<Line>(bytes / 64 + 1); };
      std::vector<Line> packed = lines(preparation->bytes());
      std::vector<Line> scratch = lines(std::max(preparation->scratch_bytes(), made->scratch_bytes()));
      preparation->run(operands[of.packed].bytes.data(), packed.data()->bytes, scratch.data()->bytes);
      std::vector<std::byte> found(expected.bytes.size());
      const std::byte* from[] = {operands[0].bytes.data(), operands[1].bytes.data()};
      from[of.packed] = packed.data()->bytes;
      std::byte* const to[] = {found.data()};
      made->run({from, to, scratch.data()->bytes});
      CHECK(found == expected.bytes);
    }
  }
}

TEST_CASE("convolutions of bf16 and their gradients are those of f64 but for rounding", "[ops]") {
  const std::vector<std::int64_t> ones = {1, 1}, twos = {2, 2};
  const Padding same = {{1, 1}, {1, 1}};
  for (const std::int64_t c : {1, 3, 16}) {
    for (const bool large : {false, true}) {
      const std::int64_t n = large ? 4 : 1, size = large ? 12 : 4, o = large ? 32 : 2;
      const Shape x = {n, size, size, c}, kernel = {3, 3, c, o}, y = {n, size, size, o},
                  half = {n, size / 2, size / 2, o};
      for (const bool relu : {false, true}) {
        check_products(Conv{ones, same, relu}, {x, kernel, {o}}, {true, false, false}, large);
        check_products(Conv{twos, same, relu}, {x, kernel}, {true, false}, large);
      }
      check_products(ConvInputGrad{ones, same, x}, {kernel, y}, {false, true}, large);
      check_products(ConvInputGrad{twos, same, x}, {kernel, half}, {false, true}, large);
      for (const bool bias : {false, true}) {
        check_products(ConvKernelGrad{ones, same, kernel, bias}, {x, y}, {true, true}, large);
        check_products(ConvKernelGrad{twos, same, kernel, bias}, {x, half}, {true, true}, large);
      }
    }
  }
  // Large kernels, whose gradient is computed in tiles of f32, or by the library where the processor has AMX.
  const Shape x = {2, 28, 28, 1}, kernel = {33, 33, 1, 8}, y = {2, 28, 28, 8};
  const Padding wide = {{16, 16}, {16, 16}};
  check_products(ConvInputGrad{ones, wide, x}, {kernel, y}, {false, true}, true);
  for (const bool bias : {false, true}) {
    check_products(ConvKernelGrad{ones, wide, kernel, bias}, {x, y}, {true, true}, std::nullopt);
  }
  // Small images with many channels, whose gradient is a product for each tap where the processor has AMX.
  const Shape many = {20, 4, 3, 64}, taps = {3, 3, 64, 128};
  for (const bool bias : {false, true}) {
    check_products(ConvKernelGrad{ones, same, taps, bias}, {many, {20, 4, 3, 128}}, {true, true}, true);
    check_products(ConvKernelGrad{ones, same, taps, bias}, {many, {20, 4, 3, 128}}, {false, true}, true);
  }
  check_products(ConvKernelGrad{twos, {{2, 2}, {0, 2}}, taps, false, {2, 1}}, {{30, 5, 5, 64}, {30, 3, 3, 128}},
                 {true, true}, true);
  // Depthwise, by loops of ours in f32.
  check_products(Conv{ones, same, false, ones, 8}, {{4, 12, 12, 8}, {3, 3, 1, 16}}, {true, false}, false);
}

TEST_CASE("poolings of bf16 are those of f64 but for rounding", "[ops]") {
  const std::vector<std::int64_t> threes = {3, 3}, ones = {1, 1};
  const Padding same = {{1, 1}, {1, 1}};
  const Type x{DType::bf16, {2, 9, 9, 16}, {}};
  check_product(AvgPool{threes, ones, same}, {x}, 2, {true});
  check_product(AvgPoolGrad{threes, ones, same, false, x.shape}, {x}, 2, {true});
  check_product(MaxPool{threes, ones, same}, {x}, 2, {true});
  check_product(MaxPoolGrad{threes, ones, same}, {x, x}, 2, {true, true});
  for (const std::int64_t channels : {1, 5, 40}) {
    const Shape image = {2, 8, 8, channels};
    const Type large{DType::bf16, image, {}}, small{DType::bf16, {2, 4, 4, channels}, {}};
    for (const bool relu : {false, true}) {
      std::string name;
      check_product(MaxPool{}, {large}, 2, {true}, &name);
      check_product(MaxPoolGrad{{2, 2}, {2, 2}, {{0, 0}, {0, 0}}, relu}, {large, small}, 2, {true, true}, &name);
      check_product(MaxPoolGrad{{3, 1}, {3, 2}, {{1, 0}, {0, 0}}, relu},
                    {large, {DType::bf16, {2, 3, 4, channels}, {}}}, 2, {true, false}, &name);
      if (name.find("vectors") != std::string::npos) CHECK(name.find("in f32") == std::string::npos);
    }
  }
}

TEST_CASE("the result of a product or a sum of bf16 may be f32, and no other type", "[ops]") {
  const auto type = [](DType dtype, Shape shape) { return Type{dtype, std::move(shape), {}}; };
  const Matmul to_f32{false, false, false, DType::f32}, to_f64{false, false, false, DType::f64};
  const Type narrow = type(DType::bf16, {2, 2}), f32 = type(DType::f32, {2, 2});
  CHECK(test::result_type(Matmul{}, {narrow, narrow}).dtype == DType::bf16);
  CHECK(test::result_type(to_f32, {narrow, narrow}).dtype == DType::f32);
  CHECK(test::result_type(ReduceSum{{0}, DType::f32}, {narrow}) == type(DType::f32, {2}));
  const std::string help = "it is f32, for operands of bf16; without it the result has the operands' type";
  CHECK(test::refusal(to_f32, {f32, f32}) == "matmul: preferred_element_type=f32 for operands of f32 | " + help);
  CHECK(test::refusal(to_f64, {narrow, narrow}) == "matmul: preferred_element_type=f64 for operands of bf16 | " + help);
  CHECK(test::refusal(ReduceSum{{0}, DType::bf16}, {narrow}) ==
        "reduce_sum: preferred_element_type=bf16 for operands of bf16 | " + help);
  CHECK(test::refusal(Matmul{}, {narrow, f32}) ==
        "matmul of a [2,2] and b [2,2]: a is bf16 and b is f32 | both operands have the same numeric element type; "
        "cast one of them");
  CHECK(test::refusal(Matmul{}, {narrow, narrow, type(DType::f64, {2})}) ==
        "matmul: its operands are bf16 and bias is f64 | cast the bias to the operands' element type; beside bf16 it "
        "may be f32");
  CHECK(to_string(Op(to_f32)) == "matmul[transpose_a=false, transpose_b=false, preferred_element_type=f32]");
  CHECK(to_string(Op(Matmul{})) == "matmul[transpose_a=false, transpose_b=false]");
}

}  // namespace pmaptrain
