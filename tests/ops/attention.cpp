// Attention and its gradient: the references against the formula, the CPU's kernels against the references.
#include "core/ops/attention/attention.h"

#include <algorithm>
#include <cmath>

#include "core/graph/text.h"
#include "core/ops/all.h"
#include "core/ops/cast/cast.h"
#include "core/ops/random/random.h"
#include "core/ops/slice/slice.h"
#include "tests/arrays.h"
#include "tests/catch.h"
#include "tests/ops/kernels.h"
#include "tests/ops/targets.h"

namespace pmaptrain {
namespace {

using namespace ops;
using namespace test;

struct HeadSizes {
  std::int64_t examples, queries, keys, heads, kv_heads, width;
  bool causal = false;

  Shape q() const { return {examples, queries, heads, width}; }
  Shape k() const { return {examples, keys, kv_heads, width}; }
};

std::string text_of(const HeadSizes& s) {
  return pmaptrain::to_string(s.q()) + " by " + pmaptrain::to_string(s.k()) + (s.causal ? ", causal" : "");
}

HostArray random_heads(Shape shape, std::uint32_t seed, std::int64_t devices = 1) {
  std::vector<float> values = noise(numel(shape) * devices, seed);
  for (float& value : values) value *= 2;
  return f32(std::move(shape), values);
}

std::vector<HostArray> in_wider(std::vector<HostArray> arrays) {
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const bool is_rate = i > 0 && arrays[i - 1].type.dtype == DType::i64;  // which is f32 always
    if (!is_rate) arrays[i] = in_wider(arrays[i]);
  }
  return arrays;
}

std::vector<HostArray> attention_operands(const HeadSizes& s, std::uint32_t seed = 1) {
  return {random_heads(s.q(), seed), random_heads(s.k(), seed + 1), random_heads(s.k(), seed + 2)};
}

// The operands of the gradient, with the results of the reference.
std::vector<HostArray> attention_grad_operands(const HeadSizes& s, std::uint32_t seed = 1) {
  std::vector<HostArray> operands = attention_operands(s, seed);
  for (HostArray& result : apply_all(Attention{s.causal}, operands)) operands.push_back(std::move(result));
  operands.push_back(random_heads(s.q(), seed + 3));
  operands.push_back(random_heads({s.examples, s.queries, s.heads}, seed + 4));
  return operands;
}

// With the operands of dropout, of rows that need both words of a counter.
std::vector<HostArray> with_dropout(std::vector<HostArray> operands, float rate = 0.3F, std::uint32_t key = 5) {
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < operands[0].type.shape[0]; ++i) rows.push_back((std::int64_t{1} << 33) + 7 * i);
  operands.push_back(array<std::uint32_t>(DType::u32, {2}, {key, 9}));
  operands.push_back(array<std::int64_t>(DType::i64, {operands[0].type.shape[0]}, rows));
  operands.push_back(f32({}, {rate}));
  operands.push_back(f32({}, {1 / (1 - rate)}));
  return operands;
}

// Of those of attention_grad, those of attention.
std::vector<HostArray> forward_operands(const std::vector<HostArray>& operands) {
  std::vector<HostArray> result(operands.begin(), operands.begin() + 3);
  if (operands.size() > 7) result.insert(result.end(), operands.end() - 4, operands.end());
  return result;
}

// The sizes at which blocks, vectors and groups of rows end in different places.
const std::vector<HeadSizes> head_sizes = {
    {1, 1, 1, 1, 1, 1},          {2, 1, 1, 2, 1, 3, true},    {1, 7, 7, 1, 1, 5, true}, {2, 5, 9, 2, 2, 16},
    {1, 64, 64, 2, 1, 8, true},  {1, 65, 65, 3, 1, 20, true}, {1, 130, 70, 2, 2, 33},   {1, 3, 200, 1, 1, 64},
    {2, 96, 96, 4, 2, 32, true}, {1, 129, 129, 1, 1, 7},      {3, 17, 1, 2, 1, 48},     {1, 71, 71, 6, 3, 16, true},
    {1, 16, 200, 2, 2, 32},      {2, 136, 72, 4, 1, 16}};

TEST_CASE("attention is the mean of v, weighted by the exponentials of scaled scores", "[ops]") {
  for (const bool causal : {false, true}) {
    INFO(causal);
    const HeadSizes s{2, 3, 3, 4, 2, 5, causal};
    const std::vector<HostArray> operands = in_wider(attention_operands(s));
    const std::vector<double> q = operands[0].as<double>(), k = operands[1].as<double>(), v = operands[2].as<double>();
    const std::vector<HostArray> found = apply_all(Attention{causal}, operands);
    CHECK(found[0].type == type(DType::f64, s.q()));
    CHECK(found[1].type == type(DType::f64, {2, 3, 4}));
    const auto at = [](std::int64_t example, std::int64_t position, std::int64_t head, std::int64_t heads,
                       std::int64_t i) {
      return static_cast<std::size_t>(((example * 3 + position) * heads + head) * 5 + i);
    };
    for (std::int64_t example = 0; example < 2; ++example) {
      for (std::int64_t query = 0; query < 3; ++query) {
        for (std::int64_t head = 0; head < 4; ++head) {
          std::vector<double> sums(5);
          double sum = 0;
          for (std::int64_t key = 0; key < (causal ? query + 1 : 3); ++key) {
            double score = 0;
            for (std::int64_t i = 0; i < 5; ++i)
              score += q[at(example, query, head, 4, i)] * k[at(example, key, head / 2, 2, i)];
            const double weight = std::exp(score / std::sqrt(5.0));
            sum += weight;
            for (std::int64_t i = 0; i < 5; ++i)
              sums[static_cast<std::size_t>(i)] += weight * v[at(example, key, head / 2, 2, i)];
          }
          for (std::int64_t i = 0; i < 5; ++i) {
            CHECK(found[0].as<double>()[at(example, query, head, 4, i)] ==
                  Approx(sums[static_cast<std::size_t>(i)] / sum).margin(1e-14));
          }
          CHECK(found[1].as<double>()[at(example, query, head, 4, 0) / 5] == Approx(std::log(sum)));
        }
      }
    }
  }
}

TEST_CASE("dropout multiplies the weights of attention by what random_uniform decides", "[ops]") {
  for (const bool causal : {false, true}) {
    INFO(causal);
    const HeadSizes s{2, 3, 3, 4, 2, 3, causal};
    // v picks the weights out: element i of the v of key i is 1.
    std::vector<double> unit;
    for (int i = 0; i < 2 * 3 * 2 * 3; ++i) unit.push_back(i / 6 % 3 == i % 3 ? 1 : 0);
    std::vector<HostArray> operands = in_wider(with_dropout(attention_operands(s)));
    operands[2] = f64(s.k(), unit);
    const std::vector<HostArray> whole = apply_all(Attention{causal}, {operands.begin(), operands.begin() + 3});
    const std::vector<HostArray> found = apply_all(Attention{causal}, operands);
    CHECK(found[1].bytes == whole[1].bytes);
    const std::vector<float> draws = apply(RandomUniform{{4, 3, 3}}, {operands[3], operands[4]}).as<float>();
    int dropped = 0;
    for (std::size_t i = 0; i < draws.size(); ++i) {
      const std::size_t example = i / 36, head = i / 9 % 4, query = i / 3 % 3, key = i % 3;
      const std::size_t at = ((example * 3 + query) * 4 + head) * 3 + key;
      const bool kept = draws[i] >= 0.3F;
      dropped += kept ? 0 : 1;
      CHECK(found[0].as<double>()[at] ==
            Approx(kept ? whole[0].as<double>()[at] / static_cast<double>(1 - 0.3F) : 0).epsilon(1e-6));
    }
    CHECK(dropped > 8);
    CHECK(dropped < 40);
  }
}

TEST_CASE("attention and its gradient are close to exact for every size", "[ops]") {
  for (const HeadSizes& s : head_sizes) {
    INFO(text_of(s));
    const std::vector<HostArray> dropping = with_dropout(attention_grad_operands(s));
    CHECK(worst_error(kernel_results(Attention{s.causal}, forward_operands(dropping)),
                      apply_all(Attention{s.causal}, in_wider(forward_operands(dropping)))) < 3e-6);
    CHECK(worst_error(kernel_results(AttentionGrad{s.causal}, dropping),
                      apply_all(AttentionGrad{s.causal}, in_wider(dropping))) < 1e-5);
    const std::vector<HostArray> operands = attention_grad_operands(s), wide = in_wider(operands);
    const std::vector<HostArray> three(operands.begin(), operands.begin() + 3);
    CHECK(worst_error(kernel_results(Attention{s.causal}, three),
                      apply_all(Attention{s.causal}, {wide.begin(), wide.begin() + 3})) < 2e-6);
    std::vector<HostArray> six(operands.begin(), operands.begin() + 6);
    CHECK(worst_error(kernel_results(AttentionGrad{s.causal}, six),
                      apply_all(AttentionGrad{s.causal}, {wide.begin(), wide.begin() + 6})) < 1e-5);
    CHECK(worst_error(kernel_results(AttentionGrad{s.causal}, operands), apply_all(AttentionGrad{s.causal}, wide)) <
          4e-6);
  }
}

TEST_CASE("a query whose first scores overflow sees the later ones", "[ops]") {
  constexpr std::int64_t keys = 65;  // one more than a block
  std::vector<float> k(keys * 2, 0.0F), v(keys * 2, 1.0F);
  for (std::size_t i = 0; i + 2 < k.size(); i += 2) k[i] = -1e30F;
  v[keys * 2 - 2] = 5, v[keys * 2 - 1] = 7;
  const std::vector<HostArray> operands{f32({1, 1, 1, 2}, {1e30F, 0}), f32({1, keys, 1, 2}, k),
                                        f32({1, keys, 1, 2}, v)};
  CHECK(kernel_results(Attention{}, operands)[0].as<float>() == std::vector<float>{5, 7});
  CHECK(apply_all(Attention{}, operands)[0].as<float>() == std::vector<float>{5, 7});
}

TEST_CASE("large scores neither overflow nor vanish", "[ops]") {
  const HeadSizes s{1, 70, 70, 1, 1, 4, true};
  for (const float factor : {30.0F, 1e10F}) {
    INFO(factor);
    std::vector<HostArray> operands = attention_operands(s);
    for (std::size_t i = 0; i < 2; ++i) {
      std::vector<float> values = operands[i].as<float>();
      for (float& value : values) value *= factor;
      operands[i] = f32(operands[i].type.shape, values);
    }
    const std::vector<HostArray> found = kernel_results(Attention{true}, operands);
    // The larger ones have no neighbours: a query has the v of its largest score.
    const double error = worst_error({found[0]}, {apply_all(Attention{true}, in_wider(operands))[0]});
    CHECK(error < (factor > 100 ? 1e-6 : 2e-4));
  }
}

TEST_CASE("a device's attention has the same bits beside other devices", "[ops]") {
  const HeadSizes s = GENERATE(HeadSizes{2, 33, 33, 2, 1, 12, true}, HeadSizes{2, 40, 40, 2, 1, 16, true});
  constexpr std::int64_t devices = 3;
  for (const bool gradient : {false, true}) {
    const Op op = gradient ? Op(AttentionGrad{true}) : Op(Attention{true});
    const std::vector<HostArray> one = with_dropout(gradient ? attention_grad_operands(s) : attention_operands(s));
    const std::size_t dropout = one.size() - 4;
    for (unsigned choice = 0; choice < (1U << one.size()); choice += gradient ? 67 : 3) {
      std::vector<bool> stacked;
      std::vector<HostArray> all = one;
      std::vector<std::vector<HostArray>> each(devices, one);
      for (std::size_t i = 0; i < one.size(); ++i) {
        stacked.push_back((choice >> i & 1U) == 0);
        if (!stacked[i]) continue;
        all[i].bytes.clear();
        for (std::size_t d = 0; d < devices; ++d) {
          const auto seed = static_cast<std::uint32_t>(7 * d + i);
          each[d][i] = i >= dropout ? with_dropout({one[0]}, 0.2F + 0.1F * static_cast<float>(d), seed)[i - dropout + 1]
                                    : random_heads(one[i].type.shape, seed);
          all[i].bytes.insert(all[i].bytes.end(), each[d][i].bytes.begin(), each[d][i].bytes.end());
        }
      }
      const std::vector<HostArray> together = apply_all_stacked(op, all, devices, stacked);
      for (std::size_t d = 0; d < devices; ++d) {
        const std::vector<HostArray> alone = kernel_results(op, each[d]);
        for (std::size_t r = 0; r < alone.size(); ++r) {
          const std::size_t size = alone[r].bytes.size();
          const bool same = std::equal(alone[r].bytes.begin(), alone[r].bytes.end(),
                                       together[r].bytes.begin() + static_cast<std::ptrdiff_t>(d * size));
          CHECK(same);
        }
      }
    }
  }
}

TEST_CASE("attention of bf16 is that of the same values in f32, rounded once", "[ops]") {
  for (const HeadSizes& s : {HeadSizes{2, 70, 70, 4, 2, 20, true}, HeadSizes{1, 9, 33, 2, 1, 32}}) {
    std::vector<HostArray> operands = with_dropout(attention_grad_operands(s));
    for (HostArray& x : operands) {
      if (x.type.shape.size() == 4) x = apply(Cast{DType::bf16}, {x});
    }
    const auto check = [](const Op& op, const std::vector<HostArray>& narrow) {
      std::vector<HostArray> wide = narrow;
      for (HostArray& x : wide) x = x.type.dtype == DType::bf16 ? in_wider(x) : x;
      std::vector<HostArray> expected = kernel_results(op, wide);
      const std::vector<HostArray> found = kernel_results(op, narrow);
      for (std::size_t r = 0; r < found.size(); ++r) {
        if (found[r].type.dtype == DType::bf16) expected[r] = apply(Cast{DType::bf16}, {expected[r]});
        CHECK(found[r].type == expected[r].type);
        const bool same = found[r].bytes == expected[r].bytes;
        CHECK(same);
      }
    };
    check(Attention{s.causal}, forward_operands(operands));
    check(AttentionGrad{s.causal}, operands);
    operands.resize(operands.size() - 4);
    check(Attention{s.causal}, forward_operands(operands));
    check(AttentionGrad{s.causal}, operands);
  }
}

TEST_CASE("a NaN in q, k or v reaches the queries that see it, and no block of queries before them", "[ops]") {
  const HeadSizes s{1, 130, 130, 1, 1, 6, true};
  for (std::size_t operand = 0; operand < 3; ++operand) {
    for (const std::int64_t position : {0, 5, 63, 64, 101, 129}) {
      INFO("operand " << operand << ", position " << position);
      std::vector<HostArray> operands = attention_operands(s);
      std::vector<float> values = operands[operand].as<float>();
      values[static_cast<std::size_t>(position * 6 + 3)] = nan_value;
      operands[operand] = f32(operands[operand].type.shape, values);
      for (const bool kernel : {false, true}) {
        const std::vector<float> out =
            (kernel ? kernel_results(Attention{true}, operands) : apply_all(Attention{true}, operands))[0].as<float>();
        for (std::int64_t query = 0; query < 130; ++query) {
          const bool sees = operand == 0 ? query == position : query >= position;
          const bool before = query < position / 8 * 8;  // of the queries that are computed together
          const bool found = std::isnan(out[static_cast<std::size_t>(query * 6 + 3)]);
          if (sees || before || !kernel) CHECK(found == sees);
        }
      }
    }
  }
}

TEST_CASE("attention whose scores overflow is NaN", "[ops]") {
  for (const float sign : {1.0F, -1.0F}) {
    const std::vector<HostArray> operands = {f32({1, 1, 1, 2}, {1e30F, 0}),
                                             f32({1, 2, 1, 2}, {sign * 1e30F, 0, sign * 2e30F, 0}),
                                             f32({1, 2, 1, 2}, {1, 2, 3, 4})};
    for (const auto& results : {apply_all(Attention{}, operands), kernel_results(Attention{}, operands)}) {
      for (const HostArray& result : results) {
        for (const float value : result.as<float>()) CHECK(std::isnan(value));
      }
    }
  }
}

TEST_CASE("attention refuses operands that do not fit, and says what fits", "[ops]") {
  const auto f = [](Shape shape) { return type(DType::f32, std::move(shape)); };
  const Shape q{2, 3, 4, 5}, k{2, 3, 2, 5}, lse{2, 3, 4};
  const auto of = [&](const Shape& a, const Shape& b, const Shape& c, bool causal = false) {
    return refusal_of(Attention{causal}, {f(a), f(b), f(c)});
  };
  CHECK(of(q, k, k, true) == "accepted");
  CHECK(of(q, {2, 7, 1, 5}, {2, 7, 1, 5}) == "accepted");
  CHECK(refusal_of(Attention{}, {f(q), f(k)}) == "attention of 2 operands (attention takes 3: q, k, v)");
  CHECK(refusal_of(Attention{}, {f(q), f(k), type(DType::bf16, k)}) ==
        "attention: v is bf16 and q is f32 (attention takes bf16, f32 or f64, the same for all operands)");
  CHECK(of({2, 3, 20}, k, k) ==
        "attention: q is f32[2,3,20] (it has four dimensions: examples, positions, heads, and the elements of a head)");
  CHECK(of(q, k, {2, 3, 4, 5}) ==
        "attention: k is f32[2,3,2,5] and v is f32[2,3,4,5] (both have the same positions, heads and elements)");
  CHECK(of(q, {1, 3, 2, 5}, {1, 3, 2, 5}) ==
        "attention: q is f32[2,3,4,5] and k is f32[1,3,2,5] (both have the same examples (dimension 0) and elements of "
        "a head (dimension 3))");
  CHECK(of(q, {2, 0, 2, 5}, {2, 0, 2, 5}) ==
        "attention: k is f32[2,0,2,5] (it has at least one position, head and element)");
  CHECK(of(q, {2, 3, 3, 5}, {2, 3, 3, 5}) ==
        "attention: q has 4 heads, and k and v have 3 (q has as many heads as k and v, or a multiple of them)");
  CHECK(of(q, {2, 7, 2, 5}, {2, 7, 2, 5}, true) ==
        "attention: causal=true with 3 queries and 7 keys (a causal mask needs as many keys as queries; write "
        "causal=false for other keys)");

  const auto gradient = [&](std::vector<Type> operands) { return refusal_of(AttentionGrad{}, operands); };
  CHECK(gradient({f(q), f(k), f(k), f(q), f(lse), f(q)}) == "accepted");
  CHECK(gradient({f(q), f(k), f(k), f(q), f(lse), f(q), f(lse)}) == "accepted");
  CHECK(gradient({f(q), f(k), f(k), f(q), f(lse)}) ==
        "attention_grad of 5 operands (attention_grad takes q, k, v, out, lse, dout, optionally dlse, and with dropout "
        "key, rows, rate and scale)");
  CHECK(gradient({f(q), f(k), f(k), f(q), f(q), f(q)}) ==
        "attention_grad: q is f32[2,3,4,5], but lse is f32[2,3,4,5] (lse is f32[2,3,4], as the op attention gives it)");
  CHECK(gradient({f(q), f(k), f(k), f(q), f(lse), f(k)}) ==
        "attention_grad: q is f32[2,3,4,5], but dout is f32[2,3,2,5] (dout is f32[2,3,4,5], as the op attention gives "
        "it)");

  const Type key = type(DType::u32, {2}), rows = type(DType::i64, {2}), rate = f({}), scale = f({});
  const auto dropout = [&](const Type& a, const Type& b, const Type& c, const Type& d) {
    return refusal_of(Attention{}, {f(q), f(k), f(k), a, b, c, d});
  };
  CHECK(dropout(key, rows, rate, scale) == "accepted");
  CHECK(gradient({f(q), f(k), f(k), f(q), f(lse), f(q), key, rows, rate, scale}) == "accepted");
  CHECK(gradient({f(q), f(k), f(k), f(q), f(lse), f(q), f(lse), key, rows, rate, scale}) == "accepted");
  CHECK(dropout(type(DType::u32, {3}), rows, rate, scale) ==
        "attention: the key of its dropout is u32[3] (with q f32[2,3,4,5] it is u32[2])");
  CHECK(dropout(key, type(DType::i64, {3}), rate, scale) ==
        "attention: rows of its dropout is i64[3] (with q f32[2,3,4,5] it is i64[2])");
  CHECK(dropout(key, rows, type(DType::f64, {}), scale) ==
        "attention: the rate of its dropout is f64[] (with q f32[2,3,4,5] it is f32[])");
  CHECK(dropout(key, rows, rate, type(DType::bf16, {})) ==
        "attention: the scale of its dropout is bf16[] (with q f32[2,3,4,5] it is f32[])");
  const auto with_offset = [&](const Type& offset) {
    return refusal_of(Attention{false, true}, {f(q), f(k), f(k), key, rows, rate, scale, offset});
  };
  CHECK(with_offset(type(DType::i32, {})) == "accepted");
  CHECK(with_offset(type(DType::i64, {})) == "accepted");
  CHECK(with_offset(type(DType::i64, {1})) ==
        "attention: the offset of its dropout is i64[1] (with q f32[2,3,4,5] it is i64[])");
  CHECK(with_offset(type(DType::u32, {})) ==
        "attention: the offset of its dropout is u32[] (with q f32[2,3,4,5] it is i32[])");
  CHECK(refusal_of(Attention{false, true}, {f(q), f(k), f(k), key, rows, rate, scale}) ==
        "attention: offset=true with 7 operands (it takes q, k, v, and of dropout key, rows, rate, scale and offset)");
  const Type offset = type(DType::i32, {});
  CHECK(refusal_of(AttentionGrad{false, true},
                   {f(q), f(k), f(k), f(q), f(lse), f(q), key, rows, rate, scale, offset}) == "accepted");
  CHECK(refusal_of(AttentionGrad{false, true}, {f(q), f(k), f(k), f(q), f(lse), f(q)}) ==
        "attention_grad of 6 operands (attention_grad takes q, k, v, out, lse, dout, optionally dlse, and with dropout "
        "key, rows, rate and scale, and with offset=true an offset)");
  const Type long_q = f({2, 1 << 16, 1, 5}), long_k = f({2, 1 << 16, 1, 5});
  CHECK(refusal_of(Attention{}, {long_q, long_k, long_k, key, rows, rate, scale}) ==
        "attention: an example has 4294967296 weights (with dropout it has fewer than 2^32: the counter of random "
        "values has 32 bits for them)");
}

TEST_CASE("a program with attention is parsed from the text that it is printed as", "[ops]") {
  const Program program = parse_program(R"(batch %q:f32[2,3,4,5]{}
batch %k:f32[2,3,1,5]{}
%out, %lse = attention[causal=true] %q, %k, %k
%dq, %dk, %dv = attention_grad[causal=true] %q, %k, %k, %out, %lse, %out
%far, %sum = attention[causal=false] %q, %k, %k
return dq = %dq
return far = %far
)",
                                        "step.pmt", all_ops());
  const std::string text = to_text(program);
  CHECK(to_text(parse_program(text, "step.pmt", all_ops())) == text);
  for (const char* const part :
       {"= attention[causal=true] ", "= attention_grad[causal=true] ", "= attention[causal=false] "}) {
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("the operations of attention are those of its products, half of them where it is causal", "[ops]") {
  const Mesh mesh;
  const auto flops = [&](const Op& op, const std::vector<HostArray>& operands) {
    std::vector<Type> types;
    for (const HostArray& operand : operands) types.push_back(operand.type);
    return op.cost(mesh, types, op.infer({.mesh = mesh, .operands = types})).flops;
  };
  const HeadSizes s{2, 5, 5, 4, 2, 3};
  CHECK(flops(Attention{}, attention_operands(s)) == 4.0 * 2 * 4 * 3 * 25);
  CHECK(flops(Attention{true}, attention_operands(s)) == 4.0 * 2 * 4 * 3 * 15);
  CHECK(flops(AttentionGrad{}, attention_grad_operands(s)) == 10.0 * 2 * 4 * 3 * 25);
  CHECK(flops(Attention{true}, with_dropout(attention_operands(s))) == (4.0 * 3 + 60) * 2 * 4 * 15);
}

#ifndef PMAPTRAIN_REFERENCE_KERNELS

TEST_CASE("attention by vectors is close to exact on every instruction set, with the same bits by FMA", "[ops]") {
  for (const HeadSizes& s :
       {HeadSizes{1, 70, 70, 2, 1, 20, true}, HeadSizes{1, 9, 100, 1, 1, 33}, HeadSizes{1, 72, 72, 2, 1, 16, true}}) {
    const std::vector<HostArray> operands = with_dropout(attention_grad_operands(s)), wide = in_wider(operands);
    const auto expected = apply_all(AttentionGrad{s.causal}, wide);
    const auto expected_forward = apply_all(Attention{s.causal}, forward_operands(wide));
    on_every_target([&] {
      CHECK(worst_error(kernel_results(Attention{s.causal}, forward_operands(operands)), expected_forward) < 3e-6);
      CHECK(worst_error(kernel_results(AttentionGrad{s.causal}, operands), expected) < 1e-5);
    });
#ifndef __clang__  // Releases are GCC's; Clang's code for the two differs in last bits.
    std::vector<std::vector<std::byte>> bits;
    for (const std::int64_t target : {HWY_AVX2, HWY_AVX3}) {
      if ((hwy::SupportedTargets() & target) == 0) continue;
      hwy::GetChosenTarget().Update(target);
      bits.emplace_back();
      for (const auto& results : {kernel_results(Attention{s.causal}, forward_operands(operands)),
                                  kernel_results(AttentionGrad{s.causal}, operands)}) {
        for (const HostArray& x : results) bits.back().insert(bits.back().end(), x.bytes.begin(), x.bytes.end());
      }
    }
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    for (const auto& found : bits) {
      const bool same = found == bits.front();
      CHECK(same);
    }
#endif
  }
}

// Rows of 64 heads of 16 elements are 4,096 bytes apart and are copied, those of a sixteenth are read where they are.
TEST_CASE("a head has the same bits whether its rows are read in place or copied", "[ops]") {
  const bool causal = GENERATE(false, true);
  const std::int64_t kv_heads = GENERATE(64, 32);
  const HeadSizes s{2, 72, 72, 64, kv_heads, 16, causal};
  const std::vector<HostArray> all = attention_grad_operands(s);
  const auto first_heads = [&](const HostArray& x) {
    Shape end = x.type.shape;
    end[2] /= 16;
    return apply_all(Slice{Shape(end.size(), 0), end}, {x}).front();
  };
  std::vector<HostArray> few;
  for (const HostArray& operand : all) few.push_back(first_heads(operand));
  const auto same = [&](const std::vector<HostArray>& copied, const std::vector<HostArray>& in_place) {
    REQUIRE(copied.size() == in_place.size());
    for (std::size_t i = 0; i < copied.size(); ++i) CHECK((first_heads(copied[i]).bytes == in_place[i].bytes));
  };
  same(kernel_results(Attention{causal}, forward_operands(all)),
       kernel_results(Attention{causal}, forward_operands(few)));
  same(kernel_results(AttentionGrad{causal}, all), kernel_results(AttentionGrad{causal}, few));
}

TEST_CASE("without queries the gradients of keys and values are 0", "[ops]") {
  const HeadSizes s{2, 0, 3, 2, 1, 16};
  for (const HostArray& gradient : kernel_results(AttentionGrad{}, attention_grad_operands(s))) {
    CHECK(std::all_of(gradient.bytes.begin(), gradient.bytes.end(), [](std::byte x) { return x == std::byte{0}; }));
  }
}

TEST_CASE("attention has kernels for f32 and bf16 whose memory is linear in the positions", "[ops]") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const auto scratch = [&](std::int64_t positions, bool gradient) {
      const Type q = type(dtype, {2, positions, 4, 32}), lse = type(DType::f32, {2, positions, 4});
      const std::vector<Type> three = {q, q, q}, six = {q, q, q, q, lse, q}, two = {q, lse};
      const std::vector<bool> stacked(6, true);
      const auto kernel = gradient ? AttentionGrad{true}.cpu({six, three, 1, stacked})
                                   : Attention{true}.cpu({three, two, 1, {true, true, true}});
      REQUIRE(kernel != nullptr);
      CHECK(kernel->implementation() == "attention by blocks");
      return kernel->scratch_bytes();
    };
    for (const bool gradient : {false, true}) CHECK(scratch(4096, gradient) < 4 * scratch(1024, gradient));
  }
}

#endif  // PMAPTRAIN_REFERENCE_KERNELS

}  // namespace
}  // namespace pmaptrain
