// The text of generated kernels that find the largest element of a long row and the sum of exponentials in one pass,
// against f64 and against three passes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/graph/text.h"
#include "core/ops/all.h"
#include "core/ops/fused_rows/fused_rows.h"
#include "core/passes/pipeline.h"
#include "tests/catch.h"
#include "tests/cuda/generated.h"
#include "tests/gpu/gpus.h"
#include "tests/gpu/networks.h"

namespace pmaptrain::test {
namespace {

constexpr std::int64_t rows = 4;

// Softmax cross-entropy as core/losses/equations.cpp has it: the largest element, the sum of exponentials, the loss,
// and the gradient in the type of the logits, from `wide` statistics.
Program softmax_program(std::int64_t length, const std::string& dtype, const std::string& wide) {
  const std::string text = R"(batch %x:TYPE[4,LENGTH]{}
batch %t:i32[4,1]{}
batch %w:WIDE[4]{}
%m, %s, %y, %g = fused_rows[length=LENGTH] %x, %t, %w (%p:TYPE[4,LENGTH]{}, %q:i32[4,1]{}, %r:WIDE[4]{}) {
  %c = cast[dtype=WIDE] %p
  %max = reduce_max[dims=[1]] %c
  %still = stop_gradient %max
  %mb = broadcast[shape=[4,LENGTH], dims=[0]] %still
  %h = sub %c, %mb
  %e = exp %h
  %sum = reduce_sum[dims=[1]] %e
  %log = log %sum
  %label = reshape[shape=[4]] %q
  %o = one_hot[depth=LENGTH, dtype=WIDE] %label
  %ho = mul %h, %o
  %k = reduce_sum[dims=[1]] %ho
  %loss = sub %log, %k
  %share = div %r, %sum
  %sb = broadcast[shape=[4,LENGTH], dims=[0]] %share
  %a = mul %sb, %e
  %rb = broadcast[shape=[4,LENGTH], dims=[0]] %r
  %b = mul %rb, %o
  %d = sub %a, %b
  %n = cast[dtype=TYPE] %d
  yield %max, %sum, %loss, %n
}
return m = %m
return s = %s
return y = %y
return g = %g
)";
  std::string filled = text;
  for (const auto& [word, value] :
       {std::pair<std::string, std::string>{"LENGTH", std::to_string(length)}, {"TYPE", dtype}, {"WIDE", wide}}) {
    for (std::size_t at = filled.find(word); at != std::string::npos; at = filled.find(word)) {
      filled.replace(at, word.size(), value);
    }
  }
  return parse_program(filled, "softmax.pmt", all_ops(), {});
}

KernelCase softmax_case(Generated& kernels, std::int64_t length, const std::string& dtype, const std::string& wide) {
  const Program& program = kernels.keep(softmax_program(length, dtype, wide));
  return case_of(program, program.equations.front());
}

template <class T>
const T* elements(const Bytes& bytes) {
  return reinterpret_cast<const T*>(bytes.data());
}

// In f64: the sum of exponentials and the loss of each row, and the gradient of each element, which is the difference
// of two numbers; `sizes` are their sums.
struct InF64 {
  std::vector<double> sums, losses, gradients, sizes;
};
template <class X, class Wide>
InF64 in_f64(const std::vector<Bytes>& values, std::int64_t length) {
  InF64 found;
  for (std::int64_t row = 0; row < rows; ++row) {
    const X* const x = elements<X>(values[0]) + row * length;
    const auto at = [&](std::int64_t j) { return static_cast<double>(static_cast<Wide>(x[j])); };
    const std::int64_t label = elements<std::int32_t>(values[1])[row];
    const auto weight = static_cast<double>(elements<Wide>(values[2])[row]);
    double largest = at(0);
    for (std::int64_t j = 1; j < length; ++j) largest = std::max(largest, at(j));
    long double exact = 0;
    for (std::int64_t j = 0; j < length; ++j) exact += std::exp(static_cast<long double>(at(j) - largest));
    const auto sum = static_cast<double>(exact);
    found.sums.push_back(sum);
    found.losses.push_back(static_cast<double>(std::log(exact) - (at(label) - largest)));
    for (std::int64_t j = 0; j < length; ++j) {
      const double share = std::exp(at(j) - largest) / sum, of_label = j == label ? 1 : 0;
      found.gradients.push_back(weight * (share - of_label));
      found.sizes.push_back(weight * (share + of_label));
    }
  }
  return found;
}

// The largest difference, relative to sizes of at least `least`.
template <class T>
double error_of(const Bytes& found, const std::vector<double>& expected, const std::vector<double>& sizes,
                double least = 0) {
  double most = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(static_cast<double>(elements<T>(found)[i]) - expected[i]);
    most = std::max(most, difference == 0 ? 0 : difference / std::max(std::abs(sizes[i]), least));
  }
  return most;
}

using LogitAt = std::function<double(std::mt19937&, double place)>;  // place: from 0 at the first to 1
struct Logits {
  std::string name;
  LogitAt at;
};
std::vector<Logits> kinds_of_logits() {
  const auto normal = [](std::mt19937& random) { return std::normal_distribution<double>()(random); };
  return {{"normal", [=](std::mt19937& random, double) { return normal(random); }},
          {"wide", [=](std::mt19937& random, double) { return 40 * normal(random); }},
          {"mean 10,000", [=](std::mt19937& random, double) { return 10000 + normal(random); }},
          // The largest so far changes with each element, or never.
          {"rising", [](std::mt19937&, double place) { return 30 * place; }},
          {"falling", [](std::mt19937&, double place) { return -30 * place; }},
          {"equal", [](std::mt19937&, double) { return -3.0; }},
          {"one far above", [=](std::mt19937& random, double place) {
             return normal(random) + (place > 0.5 && place < 0.5003 ? 12 : 0);
           }}};
}

template <class X, class Wide>
std::vector<Bytes> values_of(std::int64_t length, const LogitAt& element) {
  std::mt19937 random(7);
  std::vector<X> x;
  std::vector<std::int32_t> labels;
  std::vector<Wide> weights;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t j = 0; j < length; ++j) {
      x.push_back(
          static_cast<X>(static_cast<Wide>(element(random, static_cast<double>(j) / static_cast<double>(length)))));
    }
    labels.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(length)));
    weights.push_back(static_cast<Wide>(row) / 2);
  }
  return {bytes_of(x), bytes_of(labels), bytes_of(weights)};
}

// With a rest after the wide groups, without one, with more groups than a block has.
constexpr std::int64_t lengths[] = {2049, 2112, 16384 + 130};

template <class X, class Wide>
void check_softmax(const std::string& dtype, const std::string& wide) {
  Generated kernels;
  struct Made {
    std::string name;
    KernelCase made;
    std::int64_t length;
  };
  std::vector<Made> made;
  for (const std::int64_t length : lengths) {
    for (const Logits& logits : kinds_of_logits()) {
      KernelCase c = softmax_case(kernels, length, dtype, wide);
      c.values = values_of<X, Wide>(length, logits.at);
      c.complete(1);
      made.push_back({logits.name, c, length});
      kernels.add(std::move(c));
    }
  }
  const std::vector<std::vector<Bytes>> results = kernels.run();
  for (std::size_t i = 0; i < made.size(); ++i) {
    const auto& [name, c, length] = made[i];
    INFO(name << ", " << dtype << "[" << length << "]");
    const std::vector<Bytes> three_passes = run_reference(c);
    const InF64 expected = in_f64<X, Wide>(c.values, length);
    CHECK((results[i][0] == three_passes[0]));
    // Where the largest element so far changes, what has been added up is multiplied, and rounded once more; an
    // exponential of a GPU is off by up to two units. A loss near 0 is the difference of two numbers of about 1. A
    // gradient in bf16 may round to the other neighbour.
    const double unit = std::ldexp(1.0, -std::numeric_limits<Wide>::digits);
    const double unit_of_x = std::ldexp(1.0, -std::numeric_limits<X>::digits);
    const auto errors = [&](const std::vector<Bytes>& found) {
      return std::array{error_of<Wide>(found[1], expected.sums, expected.sums),
                        error_of<Wide>(found[2], expected.losses, expected.losses, 1),
                        error_of<X>(found[3], expected.gradients, expected.sizes, 1e-30)};
    };
    const auto [sums, losses, gradients] = errors(results[i]);
    const auto [sums_before, losses_before, gradients_before] = errors(three_passes);
    CHECK(sums <= sums_before + 8 * unit);
    CHECK(losses <= losses_before + 8 * unit);
    CHECK(gradients <= gradients_before + 8 * unit + (std::is_same_v<X, bf16> ? unit_of_x / 16 : 0));
  }
}

// How often the kernel of an equation reads its rows.
int reads_of(const Program& program, const Equation& equation) {
  KernelCase c = case_of(program, equation);
  c.infer_results();
  const std::string text = ops::gpu_source(c.op, c.request(), "k").text;
  INFO(text);
  int reads = 0;
  for (const std::string pass : {"reduce_by_block<", "argmax_by_block<", "for (std::uint32_t j = threadIdx.x;"}) {
    for (std::size_t at = text.find(pass); at != std::string::npos; at = text.find(pass, at + 1)) ++reads;
  }
  return reads;
}

int reads_of(const Program& program) { return reads_of(program, program.equations.front()); }

// Rows of 3,000 elements. The lines reduce the exponentials %e and the differences %h.
int reads_with(const std::string& lines, const std::string& yields, const std::string& type = "f32") {
  std::string text = R"(batch %x:TYPE[4,3000]{}
batch %t:i32[4]{}
%a = fused_rows[length=3000] %x, %t (%p:TYPE[4,3000]{}, %q:i32[4]{}) {
  %m = reduce_max[dims=[1]] %p
  %mb = broadcast[shape=[4,3000], dims=[0]] %m
  %h = sub %p, %mb
  %e = exp %h
  %o = one_hot[depth=3000, dtype=TYPE] %q
)" + lines + "  yield " +
                     yields + "\n}\nreturn a = %a\n";
  for (std::size_t at = text.find("TYPE"); at != std::string::npos; at = text.find("TYPE")) text.replace(at, 4, type);
  return reads_of(parse_program(text, "reads.pmt", all_ops(), {}));
}

}  // namespace

DEVICE_TEST_CASE("a softmax in one pass is as accurate as in two", "[cuda][kernels][process]") {
  check_softmax<float, float>("f32", "f32");
  check_softmax<bf16, float>("bf16", "f32");
  check_softmax<double, double>("f64", "f64");
}

DEVICE_TEST_CASE("a softmax in one pass has the infinities and NaN of one in two passes", "[cuda][kernels][process]") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  constexpr float huge = 3e38F;
  constexpr std::int32_t length = 2500, label = 1234;
  struct Row {
    float others;                                         // all other elements
    std::vector<std::pair<std::int32_t, float>> special;  // by place
    std::int32_t label = 1234;
  };
  const std::vector<Row> all = {
      // One element that is not -inf: the label's, another one, none.
      {-infinity, {{label, 2}}},
      {-infinity, {{7, 2}}},
      {-infinity, {{2499, -1e38F}}},
      {-infinity, {}},
      // -inf and inf alone: of the label, of another element, of two.
      {1, {{label, -infinity}}},
      {1, {{0, -infinity}}},
      {1, {{0, -infinity}, {label, -infinity}}},
      {1, {{label, infinity}}},
      {1, {{2480, infinity}}},
      {1, {{2480, infinity}, {5, infinity}}},
      {infinity, {}},
      {infinity, {{label, -infinity}}},
      // NaN at the beginning, in the rest after the last wide group, everywhere.
      {1, {{0, nan}}},
      {1, {{2499, nan}}},
      {1, {{label, nan}}},
      {-infinity, {{64, nan}}},
      {nan, {}},
      // Differences that overflow, or underflow.
      {1, {{3, 1e38F}}},
      {1, {{label, 1e38F}}},
      {-huge, {{label, huge}}},
      {0, {{3, huge}, {label, -huge}}},
      {0, {{3, huge}, {4, -huge}}},
      {-huge, {}},
      {1e38F, {}},
      {0, {{5, 1e-39F}}},
      // Labels that are none, and those at the ends.
      {1, {{3, 2}}, -1},
      {1, {{3, 2}}, length},
      {1, {{3, -infinity}}, length},
      {1, {{0, 2}}, 0},
      {1, {{0, -infinity}}, 0},
      {1, {{2499, 2}}, length - 1},
      {1, {{2499, -infinity}}, length - 1},
  };
  Generated kernels;
  std::vector<KernelCase> cases;
  for (std::size_t first = 0; first < all.size(); first += rows) {
    KernelCase c = softmax_case(kernels, length, "f32", "f32");
    std::vector<float> x;
    std::vector<std::int32_t> labels;
    for (std::size_t row = 0; row < rows; ++row) {
      std::vector<float> elements(length, all[first + row].others);
      for (const auto& [place, value] : all[first + row].special) elements[static_cast<std::size_t>(place)] = value;
      x.insert(x.end(), elements.begin(), elements.end());
      labels.push_back(all[first + row].label);
    }
    c.values = {bytes_of(x), bytes_of(labels), bytes_of(std::vector<float>{1, 1, 0.5F, 1})};
    c.complete(1);
    cases.push_back(c);
    kernels.add(std::move(c));
  }
  const std::vector<std::vector<Bytes>> results = kernels.run();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    // All but a few elements of a row are equal, so one pass and two add up equally many of them.
    const double tolerance = 1e-6;
    expect_none(difference(cases[i].results, results[i], run_reference(cases[i]), tolerance), cases[i],
                fmt::format("rows from {} on", i * rows));
  }
}

DEVICE_TEST_CASE("a softmax of one device has the same bits, however many devices a launch is for",
                 "[cuda][kernels][process]") {
  constexpr std::int64_t length = 2500;
  check_bits_of_devices(softmax_program(length, "bf16", "f32"),
                        [](unsigned device) { return values_of<bf16, float>(length, kinds_of_logits()[device].at); });
}

TEST_CASE("a long row is read once for its softmax and loss, and once more for a gradient", "[cuda]") {
  CHECK(reads_of(softmax_program(50257, "f32", "f32")) == 2);
  CHECK(reads_of(softmax_program(50257, "bf16", "f32")) == 2);
  const std::string sums = "  %s = reduce_sum[dims=[1]] %e\n";
  const std::string loss = sums + "  %l = log %s\n  %ho = mul %o, %h\n  %k = reduce_sum[dims=[1]] %ho\n";
  CHECK(reads_with(loss + "  %y = sub %l, %k\n", "%y") == 1);
  CHECK(reads_with(sums, "%s") == 1);
  // Other reductions of x are in the same pass.
  CHECK(reads_with("  %n = reduce_sum[dims=[1]] %p\n" + loss + "  %y = sub %n, %k\n  %z = sub %y, %l\n", "%z") == 1);
  CHECK(reads_with(loss + "  %b = argmax[dim=1] %p\n  %f = cast[dtype=f32] %b\n  %y = sub %f, %k\n", "%y") == 2);
}

TEST_CASE("of GPT-2, logits are read twice, and their gradient is written in bf16", "[cuda]") {
  const std::vector<Network> networks = whole_networks();
  const auto gpt2 = std::find_if(networks.begin(), networks.end(), [](const Network& n) { return n.name == "GPT-2"; });
  REQUIRE(gpt2 != networks.end());
  // All eight sequences on a device, and one.
  for (const int devices : {1, 8}) {
    Network network = *gpt2;
    network.set.push_back(fmt::format("mesh.axes={{devices: {}}}", devices));
    const Program program = run_passes(*setup_of(network, "mixed_bfloat16").training, passes_of_gpus());
    const std::int64_t logits = 8 / devices * 1024 * 50257;
    const auto types_with_logits = [&](const std::vector<Value>& values) {
      std::vector<DType> types;
      for (const Value value : values) {
        if (numel(program.type(value)) == logits) types.push_back(program.type(value).dtype);
      }
      return types;
    };
    int found = 0;
    for_each_equation(program.equations, [&](const Equation& equation) {
      const auto* const fused = equation.op.as<ops::FusedRows>();
      if (fused == nullptr || fused->length != 50257) return;
      ++found;
      CHECK(reads_of(program, equation) == 2);
      CHECK((types_with_logits(equation.operands) == std::vector{DType::f32}));  // as the product has them
      CHECK((types_with_logits(equation.results) == std::vector{DType::bf16}));
    });
    CHECK(found == 1);
  }
}

TEST_CASE("rows are read again for a sum that is no part of a softmax", "[cuda]") {
  const std::string sums = "  %s = reduce_sum[dims=[1]] %e\n";
  // Sums of the differences, without exponentials and beside them.
  CHECK(reads_with("  %k = reduce_sum[dims=[1]] %h\n", "%k") == 2);
  CHECK(reads_with(sums + "  %k = reduce_sum[dims=[1]] %h\n  %y = sub %s, %k\n", "%y") == 2);
  CHECK(reads_with(sums + "  %hh = mul %h, %h\n  %k = reduce_sum[dims=[1]] %hh\n  %y = sub %s, %k\n", "%y") == 2);
  // Each element is rounded to bf16.
  CHECK(reads_with(sums, "%s", "bf16") == 2);
  // What needs the sum needs another pass.
  const std::string shares = sums + "  %sb = broadcast[shape=[4,3000], dims=[0]] %s\n  %d = div %e, %sb\n";
  CHECK(reads_with(shares + "  %k = reduce_max[dims=[1]] %d\n", "%k") == 2);
  // A label that is computed from the row.
  const std::string found = "  %b = argmax[dim=1] %p\n  %c = one_hot[depth=3000, dtype=f32] %b\n";
  CHECK(reads_with(sums + found + "  %ho = mul %h, %c\n  %k = reduce_sum[dims=[1]] %ho\n  %y = sub %s, %k\n", "%y") ==
        4);
}

}  // namespace pmaptrain::test
