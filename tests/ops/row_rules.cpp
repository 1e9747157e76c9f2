// The row rules of all ops: what a rule promises is compared with the reference kernel on some of the rows.
#include <algorithm>
#include <cstring>
#include <set>

#include "core/graph/text.h"
#include "core/ops/all.h"
#include "core/ops/list.h"
#include "tests/arrays.h"
#include "tests/catch.h"

namespace pmaptrain {
namespace {

using namespace ops;
using test::HostArray;
using Kind = RowRule::Kind;

// An op on operands of these types, with the region that belongs to it, if any.
struct Instance {
  Op op;
  std::vector<Type> operands, results;
  const Region* region = nullptr;
  std::span<const Type> types = {};

  RowRule rule() const { return op.rows(operands, results); }
};

Instance instance_of(Op op, std::vector<Type> operands) {
  const Mesh mesh({{"a", 2}});
  std::vector<Type> results = op.infer({.mesh = mesh, .operands = operands});
  return {std::move(op), std::move(operands), std::move(results)};
}

// Small whole numbers, so that sums of their products are exact in any order.
HostArray numbers(const Type& type, std::uint32_t seed) {
  HostArray result{type, std::vector<std::byte>(bytes(type))};
  dispatch(type.dtype, [&]<class T>() {
    for (std::size_t i = 0; i < result.bytes.size() / sizeof(T); ++i) {
      seed = seed * 1664525U + 1013904223U;
      const auto value = static_cast<T>(seed >> 16 & (std::is_same_v<T, bool> ? 1U : 3U));
      std::memcpy(result.bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
  return result;
}

HostArray rows_of(const HostArray& array, std::int64_t first, std::int64_t last) {
  HostArray result{array.type, {}};
  result.type.shape[0] = last - first;
  const auto row = static_cast<std::ptrdiff_t>(array.bytes.size()) / array.type.shape[0];
  result.bytes.assign(array.bytes.begin() + first * row, array.bytes.begin() + last * row);
  return result;
}

std::vector<HostArray> run_rule(const Instance& x, const std::vector<HostArray>& operands,
                                const std::vector<Type>& result_types) {
  std::vector<HostArray> results;
  for (const Type& type : result_types) results.push_back({type, std::vector<std::byte>(bytes(type), std::byte{77})});
  if (x.op.rules().view && kernels_of(x.op).reference == nullptr) {  // pvary
    results[0].bytes = operands[0].bytes;
    return results;
  }
  std::vector<ConstArray> from;
  for (const HostArray& a : operands) from.push_back({&a.type, a.bytes.data()});
  std::vector<Array> to;
  for (HostArray& a : results) to.push_back({&a.type, a.bytes.data()});
  kernels_of(x.op).reference(x.op.data(), {from, to, x.region, x.types});
  return results;
}

void append(HostArray& to, const HostArray& more) {
  to.type.shape[0] += more.type.shape[0];
  to.bytes.insert(to.bytes.end(), more.bytes.begin(), more.bytes.end());
}

void add(HostArray& to, const HostArray& more) {
  dispatch(to.type.dtype, [&]<class T>() {
    for (std::size_t at = 0; at < to.bytes.size(); at += sizeof(T)) {
      T a, b;
      std::memcpy(&a, to.bytes.data() + at, sizeof(T));
      std::memcpy(&b, more.bytes.data() + at, sizeof(T));
      a = static_cast<T>(a + b);
      std::memcpy(to.bytes.data() + at, &a, sizeof(T));
    }
  });
}

// None where the op refuses these operands.
std::vector<Type> types_of_results(const Op& op, const std::vector<HostArray>& operands) {
  std::vector<Type> types;
  for (const HostArray& operand : operands) types.push_back(operand.type);
  try {
    return op.infer({Mesh(), types});
  } catch (const TypeError&) {
    return {};
  }
}

// Whether the reference on the first rows and on the other ones gives, put together as `rule` says, the bits that it
// gives on all rows.
bool holds(const Instance& x, const RowRule& rule) {
  std::vector<HostArray> operands;
  for (const Type& type : x.operands) operands.push_back(numbers(type, static_cast<std::uint32_t>(operands.size())));
  const std::vector<HostArray> expected = run_rule(x, operands, x.results);

  std::int64_t rows = rule.kind == Kind::keeps ? x.results[0].shape[0] : -1;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!rule.reads_all_of(i)) rows = x.operands[i].shape.at(0);
  }
  REQUIRE(rows > 1);
  std::vector<HostArray> found;
  for (const auto& [first, last] : {std::pair(std::int64_t{0}, rows / 2), std::pair(rows / 2, rows)}) {
    std::vector<HostArray> some = operands;
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (!rule.reads_all_of(i)) some[i] = rows_of(operands[i], first, last);
    }
    std::vector<Type> types = x.results;
    if (rule.kind == Kind::keeps) {
      for (Type& type : types) type.shape.at(0) = last - first;
    }
    // Sums of some rows have the type of the whole, or the rule is wrong already.
    if (rule.kind == Kind::sums && types_of_results(x.op, some) != types) return false;
    const std::vector<HostArray> part = run_rule(x, some, types);
    if (found.empty()) {
      found = part;
    } else {
      for (std::size_t i = 0; i < part.size(); ++i)
        rule.kind == Kind::keeps ? append(found[i], part[i]) : add(found[i], part[i]);
    }
  }
  return std::equal(found.begin(), found.end(), expected.begin(), expected.end(),
                    [](const HostArray& a, const HostArray& b) { return a.type == b.type && a.bytes == b.bytes; });
}

Type f64_type(Shape shape) { return {DType::f64, std::move(shape), {}}; }
Type i32_type(Shape shape) { return {DType::i32, std::move(shape), {}}; }

struct RowCase {
  Kind kind;
  Op op;
  std::vector<Type> operands;
};

std::vector<RowCase> row_cases() {
  constexpr Kind keeps = Kind::keeps, sums = Kind::sums, whole = Kind::whole;
  const Type key{DType::u32, {2}, {}}, counters{DType::i64, {5}, {}};
  const std::vector<std::pair<std::int64_t, std::int64_t>> padding = {{1, 0}, {0, 2}}, none = {{0, 0}, {0, 0}};
  return {
      {keeps, Cast{DType::i32}, {f64_type({5, 3})}},
      {keeps, Reshape{{5, 2, 3}}, {f64_type({5, 6})}},
      {whole, Reshape{{6, 5}}, {f64_type({5, 6})}},
      {keeps, OptimizationBarrier{}, {f64_type({5, 6})}},
      {keeps, OptimizationBarrier{}, {f64_type({5, 6}), f64_type({5, 2, 3})}},
      {whole, OptimizationBarrier{}, {f64_type({5, 6}), f64_type({6})}},
      {keeps, Transpose{{0, 2, 1}}, {f64_type({5, 2, 3})}},
      {whole, Transpose{{1, 0}}, {f64_type({5, 3})}},
      {keeps, Broadcast{{5, 2, 3}, {0, 2}}, {f64_type({5, 3})}},
      {keeps, Broadcast{{5, 3}, {1}}, {f64_type({3})}},
      {keeps, Broadcast{{5, 3}, {}}, {f64_type({})}},
      {whole, Broadcast{{}, {}}, {f64_type({})}},
      {keeps, Slice{{0, 1}, {5, 3}}, {f64_type({5, 3})}},
      {whole, Slice{{1, 0}, {5, 3}}, {f64_type({5, 3})}},
      {whole, Slice{{0, 0}, {4, 3}}, {f64_type({5, 3})}},
      {keeps, Pad{{0, 1}, {0, 2}}, {f64_type({5, 3})}},
      {whole, Pad{{0, 0}, {1, 0}}, {f64_type({5, 3})}},
      {keeps, Concatenate{1}, {f64_type({5, 3}), f64_type({5, 1}), f64_type({5, 2})}},
      {whole, Concatenate{0}, {f64_type({5, 3}), f64_type({5, 3})}},
      {keeps, Reverse{{1, 2}}, {f64_type({5, 3, 2})}},
      {whole, Reverse{{0}}, {f64_type({5, 3})}},
      {keeps, ReduceSum{{1}}, {f64_type({5, 3})}},
      {keeps, ReduceSum{{1, 2}}, {f64_type({5, 3, 2, 4})}},
      {sums, ReduceSum{{0}}, {f64_type({5, 3})}},
      {sums, ReduceSum{{0, 2}}, {i32_type({5, 3, 2})}},
      {keeps, ReduceMax{{2}}, {f64_type({5, 3, 2})}},
      {whole, ReduceMax{{0}}, {f64_type({5, 3})}},
      {keeps, Argmax{1}, {f64_type({5, 3})}},
      {whole, Argmax{0}, {f64_type({5, 3})}},
      {keeps, Cumsum{1, true}, {f64_type({5, 3})}},
      {whole, Cumsum{0}, {f64_type({5, 3})}},
      {keeps, TopK{2}, {f64_type({5, 4})}},
      {whole, TopK{2}, {f64_type({5})}},
      {keeps, Gather{}, {f64_type({3, 2}), i32_type({5, 2})}},
      {whole, Gather{}, {f64_type({3, 2}), i32_type({})}},
      {sums, ScatterAdd{3}, {i32_type({5, 2}), f64_type({5, 2, 2})}},
      {whole, ScatterAdd{3}, {i32_type({}), f64_type({2})}},
      {keeps, OneHot{3, DType::f32}, {i32_type({5, 2})}},
      {whole, OneHot{3, DType::f32}, {i32_type({})}},
      {keeps, RandomUniform{{3}}, {key, counters}},
      {keeps, RandomNormal{{3}}, {key, counters}},
      {keeps, RandomBernoulli{{3}, 0.4}, {key, counters}},
      {keeps, RandomUniform{{3}, {2}}, {key, counters, i32_type({})}},
      {keeps, RandomNormal{{3}}, {key, counters, i32_type({})}},
      {keeps, RandomBernoulli{{3}, 0.4, {2}}, {key, counters, i32_type({})}},
      {keeps, RandomPermutation{4}, {key, counters}},
      {keeps, Matmul{}, {f64_type({5, 3}), f64_type({3, 2})}},
      {keeps, Matmul{false, true, true}, {f64_type({5, 3}), f64_type({2, 3}), f64_type({2})}},
      {sums, Matmul{true, false}, {f64_type({5, 3}), f64_type({5, 2})}},
      {whole, Matmul{true, true}, {f64_type({5, 3}), f64_type({2, 5})}},
      {sums, MatmulKernelGrad{}, {f64_type({5, 3}), f64_type({5, 2})}},
      {sums, MatmulKernelGrad{}, {f64_type({5, 4, 3}), f64_type({5, 4, 2})}},
      {keeps, BatchMatmul{true, true}, {f64_type({5, 3, 4}), f64_type({5, 2, 3})}},
      {keeps, BatchMatmul{false, true}, {f64_type({5, 3}), f64_type({2, 3})}},
      {sums, BatchMatmul{true, false}, {f64_type({5, 3}), f64_type({5, 2})}},
      {whole, BatchMatmul{true, true}, {f64_type({5, 3}), f64_type({2, 5})}},
      {keeps, Conv{{2, 1}, padding}, {f64_type({3, 4, 3, 2}), f64_type({2, 2, 2, 1}), f64_type({1})}},
      {keeps, ConvInputGrad{{2, 1}, padding, {3, 4, 3, 2}}, {f64_type({2, 2, 2, 1}), f64_type({3, 2, 4, 1})}},
      {sums, ConvKernelGrad{{2, 1}, padding, {2, 2, 2, 1}, true}, {f64_type({3, 4, 3, 2}), f64_type({3, 2, 4, 1})}},
      {keeps, MaxPool{{2, 2}, {2, 2}, none}, {f64_type({3, 4, 4, 2})}},
      {keeps, MaxPoolGrad{{2, 2}, {2, 2}, none}, {f64_type({3, 4, 4, 2}), f64_type({3, 2, 2, 2})}},
      {keeps, AvgPool{{2, 2}, {1, 2}, {{0, 1}, {1, 0}}, false}, {f64_type({3, 3, 3, 2})}},
      {keeps, AvgPoolGrad{{2, 2}, {2, 2}, none, true, {3, 4, 3, 1}}, {f64_type({3, 2, 1, 1})}},
      {keeps, Lstm{}, {f64_type({3, 4, 8}), f64_type({2, 8})}},
      {keeps, LstmGrad{true}, {f64_type({8, 2}), f64_type({3, 4, 2}), f64_type({3, 4, 8}), f64_type({3, 4, 2})}},
      {keeps, Gru{true}, {f64_type({3, 4, 6}), f64_type({2, 6}), f64_type({2})}},
      {keeps, GruGrad{}, {f64_type({6, 2}), f64_type({3, 4, 2}), f64_type({3, 4, 8}), f64_type({3, 4, 2})}},
      {keeps, Attention{true}, {f64_type({3, 4, 2, 3}), f64_type({3, 4, 1, 3}), f64_type({3, 4, 1, 3})}},
      {keeps,
       AttentionGrad{},
       {f64_type({3, 4, 2, 3}), f64_type({3, 2, 2, 3}), f64_type({3, 2, 2, 3}), f64_type({3, 4, 2, 3}),
        f64_type({3, 4, 2}), f64_type({3, 4, 2, 3})}},
      {keeps,
       Attention{},
       {f64_type({5, 4, 2, 3}),
        f64_type({5, 4, 1, 3}),
        f64_type({5, 4, 1, 3}),
        key,
        counters,
        {DType::f32, {}, {}},
        f64_type({})}},
      {keeps,
       AttentionGrad{true},
       {f64_type({5, 4, 2, 3}),
        f64_type({5, 4, 1, 3}),
        f64_type({5, 4, 1, 3}),
        f64_type({5, 4, 2, 3}),
        f64_type({5, 4, 2}),
        f64_type({5, 4, 2, 3}),
        key,
        counters,
        {DType::f32, {}, {}},
        f64_type({})}},
      {keeps,
       Attention{false, true},
       {f64_type({5, 4, 2, 3}),
        f64_type({5, 4, 1, 3}),
        f64_type({5, 4, 1, 3}),
        key,
        counters,
        {DType::f32, {}, {}},
        f64_type({}),
        i32_type({})}},
      {keeps,
       AttentionGrad{true, true},
       {f64_type({5, 4, 2, 3}),
        f64_type({5, 4, 1, 3}),
        f64_type({5, 4, 1, 3}),
        f64_type({5, 4, 2, 3}),
        f64_type({5, 4, 2}),
        f64_type({5, 4, 2, 3}),
        key,
        counters,
        {DType::f32, {}, {}},
        f64_type({}),
        i32_type({})}},
      {keeps, Pvary{AxisSet::of(0)}, {f64_type({5, 3})}},
      {keeps, Norms{}, {f64_type({5, 3})}},
      {keeps, Norms{}, {f64_type({5, 2, 3})}},
      {whole, Norms{}, {f64_type({5})}},
      {whole, Iota{DType::i32, {5, 3}, 1}, {}},
      {whole, Constant{DType::f64, {5}, 1.0}, {}},
  };
}

// Every elementwise op without attributes, on operands of one shape and with a scalar in each place.
void add_elementwise(std::vector<Instance>& instances) {
  const DType number = DType::f64;
  const std::vector<std::vector<DType>> signatures = {
      {number}, {number, number}, {number, number, number}, {DType::boolean, number, number}};
  for (const OpRules* rules : all_ops().all) {
    if (!rules->elementwise || rules->region || rules->name == Cast::name) continue;
    const Op op(*rules, rules->make());
    const std::size_t before = instances.size();
    for (const std::vector<DType>& signature : signatures) {
      std::vector<Type> operands;
      for (DType dtype : signature) operands.push_back({dtype, {5, 3}, {}});
      if (test::refusal_of(op, operands) != "accepted") continue;
      instances.push_back(instance_of(op, operands));
      for (std::size_t i = 0; i < operands.size() && operands.size() > 1; ++i) {
        std::vector<Type> with_scalar = operands;
        with_scalar[i].shape.clear();
        instances.push_back(instance_of(op, with_scalar));
      }
    }
    INFO(rules->name);
    REQUIRE(instances.size() > before);
  }
}

}  // namespace

TEST_CASE("what a row rule promises, the reference on some of the rows keeps", "[ops]") {
  std::vector<Instance> instances;
  add_elementwise(instances);
  for (const Instance& x : instances) {
    INFO(x.op.name());
    CHECK(x.rule().kind == Kind::keeps);
  }
  for (const RowCase& c : row_cases()) {
    INFO(to_string(c.op));
    instances.push_back(instance_of(c.op, c.operands));
    CHECK(instances.back().rule().kind == c.kind);
  }
  std::set<std::string_view> covered;
  for (const Instance& x : instances) {
    const RowRule rule = x.rule();
    if (rule.kind == Kind::whole) continue;
    INFO(to_string(x.op));
    CHECK(holds(x, rule));
    covered.insert(x.op.name());
  }
  covered.insert({Fused::name, FusedRows::name});  // below: they need a region
  for (const OpRules* rules : all_ops().all) {
    INFO(rules->name << " says how it depends on rows, and has no case here");
    CHECK((rules->rows == nullptr) == !rules->whole_rows.empty());
    CHECK((rules->rows == nullptr || covered.contains(rules->name)));
  }
}

TEST_CASE("a chain keeps rows where all of it is as long, scalars aside", "[ops]") {
  const Program program = parse_program(R"(batch %x:f32[5,2,3]{}
batch %f:f32[5,6]{}
batch %s:f32[]{}
batch %v:f32[3]{}
%a, %b = fused %x, %f, %s (%p:f32[5,2,3]{}, %q:f32[5,6]{}, %r:f32[]{}) {
  %t = reshape[shape=[5,6]] %p
  %u = mul %t, %q
  %w = broadcast[shape=[5,6], dims=[]] %r
  %y = add %u, %w
  %z = reshape[shape=[5,3,2]] %y
  yield %y, %z
}
%c = fused %x, %v (%p:f32[5,2,3]{}, %q:f32[3]{}) {
  %t = broadcast[shape=[5,2,3], dims=[2]] %q
  %u = mul %p, %t
  yield %u
}
%d = fused %x (%p:f32[5,2,3]{}) {
  %t = neg %p
  %u = reshape[shape=[6,5]] %t
  yield %u
}
return a = %a
return b = %b
return c = %c
return d = %d
)",
                                        "chains.pmt", all_ops(), {});
  std::vector<Instance> chains;
  for (const Equation& equation : program.equations) {
    chains.push_back({equation.op, types_of(program, equation.operands), types_of(program, equation.results),
                      &equation.regions.front(), program.types});
  }
  REQUIRE(chains.size() == 3);
  CHECK(chains[0].rule().kind == Kind::keeps);
  CHECK(chains[0].rule().whole_operands == 0b100);
  CHECK(holds(chains[0], chains[0].rule()));
  CHECK(chains[1].rule().kind == Kind::whole);  // the vector is repeated
  CHECK(chains[2].rule().kind == Kind::whole);  // other rows
}

TEST_CASE("fused rows keep dimension 0 where all operands have it, scalars and vectors aside", "[ops]") {
  const Program program = parse_program(R"(batch %x:f32[5,2,3]{}
batch %f:f32[10,3]{}
batch %r:f32[5,2]{}
batch %s:f32[]{}
batch %v:f32[3]{}
%a, %b = fused_rows[length=3] %x, %r, %s (%p:f32[5,2,3]{}, %q:f32[5,2]{}, %u:f32[]{}) {
  %m = reduce_max[dims=[2]] %p
  %d = sub %q, %m
  %e = mul %d, %u
  %t = broadcast[shape=[5,2,3], dims=[0,1]] %e
  %y = mul %p, %t
  yield %y, %d
}
%c = fused_rows[length=3] %f, %r (%p:f32[10,3]{}, %q:f32[5,2]{}) {
  %t = reshape[shape=[10]] %q
  %m = reduce_sum[dims=[1]] %p
  %y = add %m, %t
  yield %y
}
%g = fused_rows[length=3] %x, %v (%p:f32[5,2,3]{}, %q:f32[3]{}) {
  %m = reduce_max[dims=[2]] %p
  %t = broadcast[shape=[5,2,3], dims=[2]] %q
  %y = mul %p, %t
  yield %y
}
return a = %a
return b = %b
return c = %c
return g = %g
)",
                                        "rows.pmt", all_ops(), {});
  std::vector<Instance> found;
  for (const Equation& equation : program.equations) {
    found.push_back({equation.op, types_of(program, equation.operands), types_of(program, equation.results),
                     &equation.regions.front(), program.types});
  }
  REQUIRE(found.size() == 3);
  CHECK(found[0].rule().kind == Kind::keeps);
  CHECK(found[0].rule().whole_operands == 0b100);
  CHECK(holds(found[0], found[0].rule()));
  CHECK(found[1].rule().kind == Kind::whole);
  CHECK(found[2].rule().kind == Kind::keeps);
  CHECK(found[2].rule().whole_operands == 0b10);
  CHECK(holds(found[2], found[2].rule()));
}

TEST_CASE("a wrong row rule is found", "[ops]") {
  const auto claimed = [](Op op, std::vector<Type> operands, RowRule rule) {
    return holds(instance_of(std::move(op), std::move(operands)), rule);
  };
  CHECK_FALSE(claimed(Reverse{{0}}, {f64_type({5, 3})}, {Kind::keeps}));
  CHECK_FALSE(claimed(Cumsum{0}, {f64_type({5, 3})}, {Kind::keeps}));
  CHECK_FALSE(claimed(ReduceMax{{0}}, {f64_type({5, 3})}, {Kind::sums}));
  CHECK_FALSE(claimed(Gather{}, {f64_type({5, 2}), i32_type({5})}, {Kind::keeps}));        // cuts the table
  CHECK_FALSE(claimed(Add{}, {f64_type({5, 3}), f64_type({5, 3})}, {Kind::keeps, 0b10}));  // one operand is not cut
  CHECK_FALSE(claimed(Matmul{false, false, true}, {f64_type({5, 5}), f64_type({5, 5})}, {Kind::sums}));
}

}  // namespace pmaptrain
