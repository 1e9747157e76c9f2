// How large a value's elements are: exact squares in f64, and the largest magnitude.
#include <cmath>
#include <cstring>
#include <limits>

#include "core/graph/passes.h"
#include "core/ops/all.h"
#include "core/ops/list.h"
#include "tests/arrays.h"
#include "tests/catch.h"
#include "tests/ops/kernels.h"
#include "tests/ops/targets.h"

namespace pmaptrain {
namespace {

using namespace ops;
using namespace test;

using Floats = std::vector<float>;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

struct Found {
  double squares;
  float largest;
  friend bool operator==(const Found&, const Found&) = default;
};

Found norms(const Floats& x) {
  const std::vector<HostArray> found = apply_all(Norms{}, {f32({static_cast<std::int64_t>(x.size())}, x)});
  return {found[0].as<double>().front(), found[1].as<float>().front()};
}

double square(float x) { return static_cast<double>(x) * static_cast<double>(x); }

TEST_CASE("norms are the sum of squares in f64, where f32 does not overflow, and the largest magnitude", "[ops]") {
  constexpr float most = std::numeric_limits<float>::max();
  CHECK(norms({}) == Found{0, 0});
  CHECK(norms({3, -4}) == Found{25, 4});
  CHECK(norms({most, -most}) == Found{2 * square(most), most});
  CHECK(norms({1e-45F}).squares == square(1e-45F));
  const Found many = norms(Floats(1000, -1e30F));
  CHECK(many.squares == Approx(1000 * square(1e30F)).epsilon(1e-14));
  CHECK(many.largest == 1e30F);
  const std::vector<HostArray> wide = apply_all(Norms{}, {f64({2, 2}, {1, -2, 3, 0.5})});
  CHECK(wide[0].as<double>() == std::vector<double>{5, 9.25});  // by row
  CHECK(wide[1].as<double>() == std::vector<double>{2, 3});
}

TEST_CASE("one infinite element makes both norms infinite, and a NaN both NaN", "[ops]") {
  for (const std::size_t at : {std::size_t{0}, std::size_t{31}, std::size_t{64}, std::size_t{98}}) {
    INFO(at);
    Floats x(99, 1);
    x[at] = -infinity;
    CHECK(norms(x) == Found{static_cast<double>(infinity), infinity});
    x[at] = not_a_number;
    x[(at + 40) % 99] = infinity;
    CHECK(std::isnan(norms(x).squares));
    CHECK(std::isnan(norms(x).largest));
  }
}

TEST_CASE("norms refuse what is not floating", "[ops]") {
  CHECK(refusal_of(Norms{}, {{DType::i32, {2}, {}}}) == "norms: i32[2] is not floating (cast it to f32 or f64 first)");
  CHECK(refusal_of(Norms{}, {{DType::f32, {}, {}}}) == "norms: f32[] has no dimension (reshape it to [1] first)");
}

TEST_CASE("what stands behind an optimization barrier is computed again", "[ops]") {
  Program program;
  Builder b(program, all_ops());
  const Value x = b.input(Group::batch, "x", {DType::f32, {2}, {}});
  const Value plain = b.emit(Exp{}, {x}), again = b.emit(Exp{}, {x});
  const Value apart = b.emit(Exp{}, {b.emit(OptimizationBarrier{}, {x})});
  b.output("plain", plain), b.output("again", again), b.output("apart", apart);
  const Program simple = simplify(program);
  CHECK(simple.find_output("again")->value == simple.find_output("plain")->value);
  CHECK(simple.find_output("apart")->value != simple.find_output("plain")->value);
}

#ifndef PMAPTRAIN_REFERENCE_KERNELS

TEST_CASE("norms by vectors have the bits of the reference on every instruction set", "[ops]") {
  for (const std::int64_t n : {1, 2, 31, 32, 33, 64, 100, 1000, 4096, 40001}) {
    INFO(n);
    constexpr std::int64_t devices = 3;
    Floats x = noise(devices * n, 7);
    for (float& value : x) value *= 1e25F;
    x[static_cast<std::size_t>(n)] = 3e38F;
    const Type operand{DType::f32, {n}, {}};
    const std::vector<Type> operands = {operand}, results = {{DType::f64, {}, {}}, {DType::f32, {}, {}}};
    const auto kernel = Norms{}.cpu({operands, results, devices, {true}});
    REQUIRE(kernel != nullptr);
    on_every_target([&] {
      std::vector<double> squares(devices);
      Floats largest(devices);
      const std::byte* const from[] = {reinterpret_cast<const std::byte*>(x.data())};
      std::byte* const to[] = {reinterpret_cast<std::byte*>(squares.data()),
                               reinterpret_cast<std::byte*>(largest.data())};
      kernel->run({from, to, nullptr});
      for (std::size_t d = 0; d < devices; ++d) {
        const auto first = x.begin() + static_cast<std::ptrdiff_t>(d) * n;
        CHECK(Found{squares[d], largest[d]} == norms({first, first + n}));
      }
    });
  }
}

#endif  // PMAPTRAIN_REFERENCE_KERNELS

}  // namespace
}  // namespace pmaptrain
