// The text of generated kernels that add up squared differences from a mean in one pass, against f64.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/graph/text.h"
#include "core/ops/all.h"
#include "tests/catch.h"
#include "tests/cuda/generated.h"
#include "tests/gpu/gpus.h"

namespace pmaptrain::test {
namespace {

struct Size {
  std::int64_t rows, columns;
};

// The mean of each column over the rows that are inside, the sum of squared differences from it, and that of the
// differences' squares times 2, as a second chain makes it of the sum. `wide` is the type of the statistics.
Program variance_program(Size size, const std::string& dtype, const std::string& wide) {
  std::string text = R"(batch %x:TYPE[ROWS,COLUMNS]{}
batch %w:WIDE[ROWS]{}
batch %n:WIDE[]{}
%m, %v, %t = fused_columns %x, %w, %n (%p:TYPE[ROWS,COLUMNS]{}, %q:WIDE[ROWS]{}, %r:WIDE[]{}) {
  %c = cast[dtype=WIDE] %p
  %z = constant[dtype=WIDE, shape=[], value=0]
  %b = broadcast[shape=[ROWS,COLUMNS], dims=[0]] %q
  %i = gt %b, %z
  %k = select %i, %c, %z
  %sum = reduce_sum[dims=[0]] %k
  %mean = div %sum, %r
  %mb = broadcast[shape=[ROWS,COLUMNS], dims=[1]] %mean
  %d = sub %c, %mb
  %dd = mul %d, %d
  %dk = select %i, %dd, %z
  %squares = reduce_sum[dims=[0]] %dk
  %twice = add %squares, %squares
  yield %mean, %squares, %twice
}
return m = %m
return v = %v
return t = %t
)";
  for (const auto& [word, value] : {std::pair<std::string, std::string>{"ROWS", std::to_string(size.rows)},
                                    {"COLUMNS", std::to_string(size.columns)},
                                    {"TYPE", dtype},
                                    {"WIDE", wide}}) {
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word)) {
      text.replace(at, word.size(), value);
    }
  }
  return parse_program(text, "variance.pmt", all_ops(), {});
}

// Elements by row and column, and whether a row counts.
using Element = std::function<double(std::mt19937&, std::int64_t row)>;
using IsInside = std::function<bool(std::int64_t row)>;

template <class X, class Wide>
std::vector<Bytes> values_of(Size size, const Element& element, const IsInside& is_inside, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<X> x;
  std::vector<Wide> weights;
  Wide count = 0;
  for (std::int64_t row = 0; row < size.rows; ++row) {
    for (std::int64_t column = 0; column < size.columns; ++column) {
      const double value = element(random, row);
      x.push_back(is_inside(row) ? static_cast<X>(static_cast<Wide>(value)) : std::numeric_limits<X>::quiet_NaN());
    }
    weights.push_back(is_inside(row) ? 1 : 0);
    count += weights.back();
  }
  return {bytes_of(x), bytes_of(weights), bytes_of(std::vector<Wide>{std::max(count, Wide{1})})};
}

// In two passes in f64, by column.
template <class X, class Wide>
std::vector<double> squares_in_f64(const std::vector<Bytes>& values, Size size) {
  const auto* const x = reinterpret_cast<const X*>(values[0].data());
  const auto* const weights = reinterpret_cast<const Wide*>(values[1].data());
  std::vector<double> found;
  for (std::int64_t column = 0; column < size.columns; ++column) {
    const auto over_rows = [&](const auto& of) {
      double sum = 0;
      for (std::int64_t row = 0; row < size.rows; ++row) {
        if (weights[row] > 0) sum += of(static_cast<double>(static_cast<Wide>(x[row * size.columns + column])));
      }
      return sum;
    };
    const double count = over_rows([](double) { return 1.0; });
    const double mean = over_rows([](double value) { return value; }) / std::max(count, 1.0);
    found.push_back(over_rows([&](double value) { return (value - mean) * (value - mean); }));
  }
  return found;
}

// The largest relative difference.
template <class Wide>
double error_of(const Bytes& found, const std::vector<double>& expected) {
  const auto* const values = reinterpret_cast<const Wide*>(found.data());
  double most = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(static_cast<double>(values[i]) - expected[i]);
    most = std::max(most, difference == 0 ? 0 : difference / expected[i]);
  }
  return most;
}

// Wide rows of one row and of many; one block and several; with rows that are left after the last wide row.
constexpr Size sizes[] = {{2, 3}, {260, 200}, {2000, 5}, {16 * 256 + 3, 3}, {700, 64}, {9000, 34}};

struct Distribution {
  std::string name;
  Element element;
};
std::vector<Distribution> distributions() {
  const auto normal = [](std::mt19937& random) { return std::normal_distribution<double>()(random); };
  return {
      {"mean 0", [=](std::mt19937& random, std::int64_t) { return normal(random); }},
      {"mean 10,000", [=](std::mt19937& random, std::int64_t) { return 10000 + normal(random); }},
      {"mean -10,000, small", [=](std::mt19937& random, std::int64_t) { return -10000 + 0.01 * normal(random); }},
      {"first far away", [=](std::mt19937& random, std::int64_t row) { return (row == 0 ? 1e4 : 0) + normal(random); }},
      {"parts apart",
       [=](std::mt19937& random, std::int64_t row) { return 100 * static_cast<double>(row / 300) + normal(random); }}};
}

template <class X, class Wide>
void check_accuracy(const std::string& dtype, const std::string& wide) {
  // Up to 64 elements are added up, and then hundreds of these sums. Each addition rounds.
  const double rounding = 32 * static_cast<double>(std::numeric_limits<Wide>::epsilon()) / 2;
  const IsInside all = [](std::int64_t) { return true; };
  for (const bool masked : {false, true}) {
    Generated kernels;
    struct Made {
      std::string name;
      Size size;
      KernelCase c;
    };
    std::vector<Made> cases;
    for (const Size size : sizes) {
      const Program& program = kernels.keep(variance_program(size, dtype, wide));
      for (const Distribution& distribution : distributions()) {
        KernelCase c = case_of(program, program.equations.front());
        const IsInside some = [&](std::int64_t row) { return row % 5 > 1 && row < size.rows - size.rows / 3; };
        c.values = values_of<X, Wide>(size, distribution.element, masked ? some : all, 7);
        c.complete(1);
        kernels.add(c);
        cases.push_back({distribution.name, size, std::move(c)});
      }
    }
    const std::vector<std::vector<Bytes>> results = kernels.run();
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Made& made = cases[i];
      INFO(made.name << ", " << made.size.rows << " rows of " << made.size.columns << ", " << dtype << ", masked "
                     << masked);
      const std::vector<double> expected = squares_in_f64<X, Wide>(made.c.values, made.size);
      const std::vector<Bytes> two_passes = run_reference(made.c);
      const double error = error_of<Wide>(results[i][1], expected), before = error_of<Wide>(two_passes[1], expected);
      // A thread has at most 64 elements. Where the first of them is far from the others, as many times the error of
      // their sums is left (shifted.cuh).
      CHECK(error <= 2 * before + (made.name == "first far away" ? 64 * rounding : rounding));
      if (tests_use_cuda()) continue;
      CHECK((results[i][0] == two_passes[0]));  // the mean has the bits of two passes
      std::vector<double> doubled;
      for (std::size_t column = 0; column < expected.size(); ++column) {
        doubled.push_back(2 * static_cast<double>(reinterpret_cast<const Wide*>(results[i][1].data())[column]));
      }
      CHECK(error_of<Wide>(results[i][2], doubled) == 0);
    }
  }
}

}  // namespace

DEVICE_TEST_CASE("a variance in one pass is as accurate as in two, also at a mean of 10,000",
                 "[cuda][kernels][process]") {
  check_accuracy<float, float>("f32", "f32");
  check_accuracy<bf16, float>("bf16", "f32");
  check_accuracy<double, double>("f64", "f64");
}

DEVICE_TEST_CASE("a variance of one device has the same bits, however many devices a launch is for",
                 "[cuda][kernels][process]") {
  const Size size{1000, 5};
  check_bits_of_devices(variance_program(size, "f32", "f32"), [&](unsigned device) {
    return values_of<float, float>(
        size, distributions()[device].element, [&](std::int64_t row) { return row % 7 != device; }, device);
  });
}

DEVICE_TEST_CASE("a variance in one pass is not finite where that in two passes is not, and is 0 without rows",
                 "[cuda][kernels][process]") {
  Generated kernels;
  const Size size{600, 4};
  const Program& program = kernels.keep(variance_program(size, "f32", "f32"));
  for (const double special :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 3.0}) {
    KernelCase c = case_of(program, program.equations.front());
    // Of equal numbers with a special one at the first row or a later one; the last time no row counts.
    const auto element = [&](std::mt19937& random, std::int64_t row) {
      return row == 0 || random() % 1000 == 0 ? special : 3.0;
    };
    c.values = values_of<float, float>(
        size, element, [&](std::int64_t) { return special != 3.0; }, 3);
    kernels.add(std::move(c));
    KernelCase equal = case_of(program, program.equations.front());
    equal.values = values_of<float, float>(
        size, [](std::mt19937&, std::int64_t) { return 3.0; }, [](std::int64_t) { return true; }, 3);
    kernels.add(std::move(equal));
  }
  kernels.check();
}

}  // namespace pmaptrain::test
