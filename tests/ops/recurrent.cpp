// The recurrences of an LSTM and of a GRU: the references against the formulas, the CPU's kernels against the
// references.
#include "core/ops/recurrent/recurrent.h"

#include <algorithm>
#include <cmath>

#include "core/graph/text.h"
#include "core/ops/all.h"
#include "core/ops/cast/cast.h"
#include "core/ops/transpose/transpose.h"
#include "tests/arrays.h"
#include "tests/catch.h"
#include "tests/ops/kernels.h"
#include "tests/ops/targets.h"

namespace pmaptrain {
namespace {

using namespace ops;
using namespace test;

struct SequenceSizes {
  std::int64_t examples, positions, features;

  Shape of(std::int64_t columns) const { return {examples, positions, columns * features}; }
};

// Ends of vectors, of panels, of groups of rows, and of the rows that run together.
const SequenceSizes sequence_sizes[] = {{1, 1, 1},  {2, 1, 3},  {3, 4, 8}, {1, 3, 17},
                                        {9, 2, 33}, {66, 2, 5}, {2, 3, 70}};

enum class Recurrence : std::uint8_t { lstm, lstm_grad, gru, gru_grad };
const Recurrence recurrences[] = {Recurrence::lstm, Recurrence::lstm_grad, Recurrence::gru, Recurrence::gru_grad};

bool is_gradient(Recurrence of) { return of == Recurrence::lstm_grad || of == Recurrence::gru_grad; }
bool is_lstm(Recurrence of) { return of == Recurrence::lstm || of == Recurrence::lstm_grad; }

Op op_of(Recurrence of, bool reverse) {
  switch (of) {
    case Recurrence::lstm: return Lstm{reverse};
    case Recurrence::lstm_grad: return LstmGrad{reverse};
    case Recurrence::gru: return Gru{reverse};
    default: return GruGrad{reverse};
  }
}

HostArray drawn(Shape shape, std::uint32_t seed, float scale = 1) {
  std::vector<float> values = noise(numel(shape), seed);
  for (float& value : values) value *= scale;
  return f32(std::move(shape), values);
}

HostArray transpose_of(const HostArray& matrix) { return apply(Transpose{{1, 0}}, {matrix}); }

// Operands of an op; a gradient has the results of the reference among them.
std::vector<HostArray> recurrent_operands(Recurrence of, const SequenceSizes& s, bool reverse, std::uint32_t seed = 1) {
  const std::int64_t gates = is_lstm(of) ? 4 : 3;
  std::vector<HostArray> forward = {drawn(s.of(gates), seed, 2), drawn({s.features, gates * s.features}, seed + 1)};
  if (!is_lstm(of)) forward.push_back(drawn({s.features}, seed + 2));
  if (!is_gradient(of)) return forward;
  const std::vector<HostArray> results =
      apply_all(op_of(is_lstm(of) ? Recurrence::lstm : Recurrence::gru, reverse), forward);
  const std::size_t first = is_lstm(of) ? 1 : 0;
  return {transpose_of(forward[1]), results[first], results[first + 1], drawn(s.of(1), seed + 3)};
}

std::vector<HostArray> all_in_wider(std::vector<HostArray> arrays) {
  for (HostArray& x : arrays) x = in_wider(x);
  return arrays;
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// What the formulas give for one example, position by position in the order of the steps.
std::vector<double> by_formula(bool lstm, bool reverse, const SequenceSizes& s,
                               const std::vector<HostArray>& operands) {
  const auto x = operands[0].as<double>(), kernel = operands[1].as<double>();
  const auto features = static_cast<std::size_t>(s.features), positions = static_cast<std::size_t>(s.positions);
  const std::size_t columns = features * (lstm ? 4 : 3);
  std::vector<double> out(static_cast<std::size_t>(s.examples) * positions * features);
  for (std::size_t example = 0; example < static_cast<std::size_t>(s.examples); ++example) {
    std::vector<double> h(features), c(features);
    for (std::size_t step = 0; step < positions; ++step) {
      const std::size_t row = example * positions + (reverse ? positions - 1 - step : step);
      std::vector<double> products(columns);
      for (std::size_t k = 0; k < features; ++k) {
        for (std::size_t j = 0; j < columns; ++j) products[j] += h[k] * kernel[k * columns + j];
      }
      for (std::size_t f = 0; f < features; ++f) {
        const auto input = [&](std::size_t gate) { return x[row * columns + gate * features + f]; };
        const auto sum = [&](std::size_t gate) { return input(gate) + products[gate * features + f]; };
        if (lstm) {
          c[f] = logistic(sum(1)) * c[f] + logistic(sum(0)) * std::tanh(sum(2));
          h[f] = logistic(sum(3)) * std::tanh(c[f]);
        } else {
          const double bias = operands[2].as<double>()[f], z = logistic(sum(1));
          const double n = std::tanh(input(2) + logistic(sum(0)) * (products[2 * features + f] + bias));
          h[f] = (1 - z) * n + z * h[f];
        }
        out[row * features + f] = h[f];
      }
    }
  }
  return out;
}

TEST_CASE("an LSTM and a GRU go through positions by their formulas, from either end", "[ops]") {
  for (const Recurrence of : {Recurrence::lstm, Recurrence::gru}) {
    for (const bool reverse : {false, true}) {
      const SequenceSizes s{2, 4, 3};
      const std::vector<HostArray> operands = all_in_wider(recurrent_operands(of, s, reverse));
      const std::vector<HostArray> found = apply_all(op_of(of, reverse), operands);
      CHECK(found[0].type == type(DType::f64, s.of(1)));
      CHECK(found.back().type == type(DType::f64, s.of(4)));
      const std::vector<double> out = found[0].as<double>();
      const std::vector<double> expected = by_formula(is_lstm(of), reverse, s, operands);
      REQUIRE(out.size() == expected.size());
      for (std::size_t i = 0; i < out.size(); ++i) CHECK(std::abs(out[i] - expected[i]) < 1e-12);
    }
  }
}

TEST_CASE("the CPU's recurrences are close to exact for every size", "[ops]") {
  for (const Recurrence of : recurrences) {
    for (const SequenceSizes& s : sequence_sizes) {
      for (const bool reverse : {false, true}) {
        const Op op = op_of(of, reverse);
        INFO(to_string(op) << " of " << to_string(s.of(1)));
        const std::vector<HostArray> operands = recurrent_operands(of, s, reverse);
        CHECK(worst_error(kernel_results(op, operands), apply_all(op, all_in_wider(operands))) < 1e-5);
      }
    }
  }
}

TEST_CASE("an example's bits in a recurrence do not depend on the examples and devices beside it", "[ops]") {
  constexpr std::int64_t devices = 3;
  for (const Recurrence of : recurrences) {
    const Op op = op_of(of, true);
    const SequenceSizes s{5, 3, 9};
    const std::vector<HostArray> one = recurrent_operands(of, s, true);
    for (unsigned choice = 0; choice < (1U << one.size()); ++choice) {
      std::vector<bool> stacked;
      std::vector<HostArray> all = one;
      std::vector<std::vector<HostArray>> each(devices, one);
      for (std::size_t i = 0; i < one.size(); ++i) {
        stacked.push_back((choice >> i & 1U) == 0);
        if (!stacked[i]) continue;
        all[i].bytes.clear();
        for (std::size_t d = 0; d < devices; ++d) {
          each[d][i] = drawn(one[i].type.shape, static_cast<std::uint32_t>(7 * d + i));
          all[i].bytes.insert(all[i].bytes.end(), each[d][i].bytes.begin(), each[d][i].bytes.end());
        }
      }
      const std::vector<HostArray> together = apply_all_stacked(op, all, devices, stacked);
      for (std::size_t d = 0; d < devices; ++d) {
        for (std::size_t example = 0; example < 5; ++example) {
          std::vector<HostArray> mine = each[d];
          for (HostArray& x : mine) {
            if (x.type.shape.size() != 3) continue;
            x.type.shape[0] = 1;
            const std::size_t size = bytes(x.type);
            x.bytes = {x.bytes.begin() + static_cast<std::ptrdiff_t>(example * size),
                       x.bytes.begin() + static_cast<std::ptrdiff_t>((example + 1) * size)};
          }
          const std::vector<HostArray> found = kernel_results(op, mine);
          for (std::size_t r = 0; r < found.size(); ++r) {
            const std::size_t size = found[r].bytes.size();
            const bool same =
                std::equal(found[r].bytes.begin(), found[r].bytes.end(),
                           together[r].bytes.begin() + static_cast<std::ptrdiff_t>((d * 5 + example) * size));
            CHECK(same);
          }
        }
      }
    }
  }
}

TEST_CASE("a recurrence of bf16 is that of the same values in f32, rounded once", "[ops]") {
  for (const Recurrence of : recurrences) {
    const Op op = op_of(of, false);
    std::vector<HostArray> narrow = recurrent_operands(of, {3, 5, 20}, false);
    for (HostArray& x : narrow) x = apply(Cast{DType::bf16}, {x});
    const std::vector<HostArray> expected = kernel_results(op, all_in_wider(narrow)),
                                 found = kernel_results(op, narrow);
    for (std::size_t r = 0; r < found.size(); ++r) {
      const bool same = found[r].bytes == apply(Cast{DType::bf16}, {expected[r]}).bytes;
      CHECK(same);
    }
  }
}

TEST_CASE("a NaN reaches the positions of its example that come after it", "[ops]") {
  for (const Recurrence of : {Recurrence::lstm, Recurrence::gru}) {
    for (const bool reverse : {false, true}) {
      const SequenceSizes s{2, 5, 3};
      std::vector<HostArray> operands = recurrent_operands(of, s, reverse);
      std::vector<float> x = operands[0].as<float>();
      x[static_cast<std::size_t>((5 + 2) * s.of(is_lstm(of) ? 4 : 3)[2])] = nan_value;  // of the second example
      operands[0] = f32(operands[0].type.shape, x);
      for (const auto& found :
           {apply_all(op_of(of, reverse), operands), kernel_results(op_of(of, reverse), operands)}) {
        const std::vector<float> out = found[0].as<float>();
        for (std::size_t row = 0; row < 10; ++row) {
          const bool after = row >= 5 && (reverse ? row <= 7 : row >= 7);
          CHECK(std::isnan(out[row * 3]) == after);
        }
      }
    }
  }
}

TEST_CASE("recurrences refuse operands that do not fit, and say what fits", "[ops]") {
  const auto f = [](Shape shape) { return type(DType::f32, std::move(shape)); };
  const Type x = f({2, 5, 12}), kernel = f({3, 12}), out = f({2, 5, 3}), gates = f({2, 5, 12});
  CHECK(refusal_of(Lstm{}, {x, kernel}) == "accepted");
  CHECK(refusal_of(Lstm{}, {x}) == "lstm of 1 operands (lstm takes 2: x, kernel)");
  CHECK(refusal_of(Lstm{}, {x, type(DType::bf16, {3, 12})}) ==
        "lstm: kernel is bf16 and x is f32 (lstm takes bf16, f32 or f64, the same for all operands)");
  CHECK(
      refusal_of(Lstm{}, {f({2, 5, 10}), kernel}) ==
      "lstm: x is f32[2,5,10] (it has three dimensions: examples, positions, at least one, and features, of which each "
      "has 4 columns)");
  CHECK(
      refusal_of(Lstm{}, {f({2, 0, 12}), kernel}) ==
      "lstm: x is f32[2,0,12] (it has three dimensions: examples, positions, at least one, and features, of which each "
      "has 4 columns)");
  CHECK(refusal_of(Lstm{}, {x, f({12, 3})}) ==
        "lstm: x is f32[2,5,12], but kernel is f32[12,3] (with this x, kernel is f32[3,12])");
  CHECK(refusal_of(LstmGrad{}, {f({12, 3}), out, gates, out}) == "accepted");
  CHECK(
      refusal_of(LstmGrad{}, {kernel, out, gates, out}) ==
      "lstm_grad: cells is f32[2,5,3], but the transposed kernel is f32[3,12] (with this cells, the transposed kernel "
      "is f32[12,3])");
  CHECK(refusal_of(LstmGrad{}, {f({12, 3}), out, out, out}) ==
        "lstm_grad: cells is f32[2,5,3], but gates is f32[2,5,3] (with this cells, gates is f32[2,5,12])");
  CHECK(refusal_of(LstmGrad{}, {f({12, 3}), out, gates, gates}) ==
        "lstm_grad: cells is f32[2,5,3], but dout is f32[2,5,12] (with this cells, dout is f32[2,5,3])");
  CHECK(refusal_of(LstmGrad{}, {f({12, 3}), f({2, 3}), gates, out}) ==
        "lstm_grad: cells is f32[2,3] (it has three dimensions: examples, positions, at least one, and features)");
  CHECK(refusal_of(Gru{}, {f({2, 5, 9}), f({3, 9}), f({3})}) == "accepted");
  CHECK(refusal_of(Gru{}, {f({2, 5, 9}), f({3, 9}), f({9})}) ==
        "gru: x is f32[2,5,9], but bias is f32[9] (with this x, bias is f32[3])");
  CHECK(refusal_of(Gru{}, {f({2, 5, 9}), f({3, 9})}) == "gru of 2 operands (gru takes 3: x, kernel, bias)");
  CHECK(refusal_of(GruGrad{}, {f({9, 3}), out, gates, out}) == "accepted");
  CHECK(refusal_of(GruGrad{}, {f({9, 3}), out, f({2, 5, 9}), out}) ==
        "gru_grad: out is f32[2,5,3], but gates is f32[2,5,9] (with this out, gates is f32[2,5,12])");
}

TEST_CASE("a program with recurrences is parsed from the text that it is printed as", "[ops]") {
  const Program program = parse_program(R"(batch %x:f32[2,5,12]{}
batch %k:f32[3,12]{}
batch %t:f32[12,3]{}
%out, %cells, %gates = lstm[reverse=true] %x, %k
%dx = lstm_grad[reverse=true] %t, %cells, %gates, %out
%far, %c, %g = lstm %x, %k
return dx = %dx
return far = %far
)",
                                        "step.pmt", all_ops());
  const std::string text = to_text(program);
  CHECK(to_text(parse_program(text, "step.pmt", all_ops())) == text);
  for (const char* const part : {"= lstm[reverse=true] ", "= lstm_grad[reverse=true] ", "= lstm "}) {
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("the operations of a recurrence are those of its products and a share for each cell", "[ops]") {
  const Mesh mesh;
  const auto flops = [&](Recurrence of) {
    std::vector<Type> types;
    for (const HostArray& operand : recurrent_operands(of, {2, 5, 3}, false)) types.push_back(operand.type);
    const Op op = op_of(of, false);
    return op.cost(mesh, types, op.infer({.mesh = mesh, .operands = types})).flops;
  };
  const double cells = 60.0 * 2 * 5 * 3, product = 2.0 * 2 * 4 * 3 * 3;
  CHECK(flops(Recurrence::lstm) == 4 * product + cells);
  CHECK(flops(Recurrence::lstm_grad) == 4 * product + cells);
  CHECK(flops(Recurrence::gru) == 3 * product + cells);
  CHECK(flops(Recurrence::gru_grad) == 3 * product + cells);
}

#ifndef PMAPTRAIN_REFERENCE_KERNELS

TEST_CASE("recurrences by vectors are close to exact on every instruction set", "[ops]") {
  for (const Recurrence of : recurrences) {
    const Op op = op_of(of, false);
    const std::vector<HostArray> operands = recurrent_operands(of, {5, 3, 37}, false);
    const std::vector<HostArray> expected = apply_all(op, all_in_wider(operands));
    on_every_target([&] { CHECK(worst_error(kernel_results(op, operands), expected) < 1e-5); });
  }
}

TEST_CASE("a kernel of a recurrence reads a matrix that was packed before, with the same bits", "[ops]") {
  for (const Recurrence of : recurrences) {
    const Op op = op_of(of, false);
    const std::vector<HostArray> operands = recurrent_operands(of, {4, 3, 21}, false);
    std::string name;
    const std::vector<HostArray> expected = kernel_results(op, operands, &name);
    CHECK(name == "recurrence by panels");
    const std::size_t matrix = is_gradient(of) ? 0 : 1;
    std::vector<Type> types, results;
    std::vector<const std::byte*> from;
    for (const HostArray& operand : operands) {
      types.push_back(operand.type);
      from.push_back(operand.bytes.data());
    }
    std::vector<HostArray> found = expected;
    std::vector<std::byte*> to;
    for (HostArray& result : found) {
      results.push_back(result.type);
      std::fill(result.bytes.begin(), result.bytes.end(), std::byte{0x4d});
      to.push_back(result.bytes.data());
    }
    CpuRequest request{types, results, 1, std::vector<bool>(types.size(), true)};
    CHECK(make_preparation(op, request) == nullptr);  // of a matrix of each device
    request.stacked[matrix] = false;
    const auto preparation = make_preparation(op, request);
    REQUIRE(preparation != nullptr);
    CHECK(preparation->layout() == "panels of " + pmaptrain::to_string(types[matrix].shape));
    std::vector<float> packed(preparation->bytes() / sizeof(float));
    preparation->run(from[matrix], reinterpret_cast<std::byte*>(packed.data()), nullptr);
    from[matrix] = reinterpret_cast<const std::byte*>(packed.data());
    request.packed = matrix;
    const auto kernel = make_cpu_kernel(op, request);
    std::vector<float> scratch(kernel->scratch_bytes() / sizeof(float) + 16);
    auto* const aligned =
        reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(scratch.data()) + 63) / 64 * 64);
    kernel->run({from.data(), to.data(), aligned});
    for (std::size_t r = 0; r < found.size(); ++r) {
      const bool same = found[r].bytes == expected[r].bytes;
      CHECK(same);
    }
  }
}

#endif  // PMAPTRAIN_REFERENCE_KERNELS

}  // namespace
}  // namespace pmaptrain
