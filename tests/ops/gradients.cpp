#include "tests/gradients.h"

#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "core/base/philox.h"
#include "core/graph/differentiate.h"
#include "core/ops/all.h"
#include "core/ops/list.h"
#include "core/runtime/interpreter.h"
#include "tests/catch.h"

namespace pmaptrain {
namespace {

using namespace ops;
using test::check_gradient;
using test::GradientInputs;

// Four devices: 0 to 3 in two replicas of two shards.
const Mesh mesh({{"replicas", 2}, {"shards", 2}});
const AxisSet replicas = AxisSet::of(0), shards = AxisSet::of(1), both = replicas | shards;

Type wide(Shape shape, AxisSet varying = {}) { return {DType::f64, std::move(shape), varying}; }
Type ints(Shape shape, AxisSet varying = {}) { return {DType::i32, std::move(shape), varying}; }

struct GradientCase {
  std::string name;
  GradientInputs inputs;
  test::BuildFunction build;
  std::optional<Op> op = {};  // where there is no more than this one
};

// One op on all inputs.
GradientCase of(Op op, GradientInputs inputs) {
  std::string name = to_string(op, &mesh);
  return {std::move(name), std::move(inputs),
          [op](Builder& b, std::span<const Value> x) { return b.emit_all(op, x).front(); }, op};
}

std::vector<GradientCase> elementwise_cases() {
  std::vector<GradientCase> cases;
  for (const Op& op : {Op(Add{}), Op(Sub{}), Op(Mul{}), Op(Max{}), Op(Min{})}) {
    cases.push_back(of(op, {.types = {wide({2, 3}, shards), wide({2, 3})}}));
    cases.push_back(of(op, {.types = {wide({2, 3}, shards), wide({}, replicas)}}));
    cases.push_back(of(op, {.types = {wide({}), wide({2, 3}, shards)}}));
  }
  for (const Shape& shape : {Shape{2, 3}, Shape{}}) {
    cases.push_back(of(Div{}, {.types = {wide({2, 3}, shards), wide(shape)}, .low = 0.5}));
    cases.push_back(of(Div{}, {.types = {wide(shape, both), wide({2, 3})}, .low = -3, .high = -0.5}));
  }
  for (const Shape& shape : {Shape{2, 3}, Shape{}}) {
    cases.push_back(of(Rem{}, {.types = {wide({2, 3}, shards), wide(shape)}, .low = 0.5}));
    cases.push_back(of(Pow{}, {.types = {wide({2, 3}, shards), wide(shape)}, .low = 0.5}));
    cases.push_back(of(Pow{}, {.types = {wide(shape, both), wide({2, 3})}, .low = 0.5}));
    cases.push_back(of(Clamp{}, {.types = {wide(shape), wide({2, 3}, shards), wide(shape)}}));
    cases.push_back(of(Clamp{}, {.types = {wide({2, 3}), wide(shape, shards), wide({2, 3})}}));
  }
  for (const Op& op : {Op(Neg{}), Op(Exp{}), Op(Tanh{}), Op(Relu{}), Op(Cast{DType::f64}), Op(Abs{}), Op(Sign{}),
                       Op(Floor{}), Op(Expm1{}), Op(Sin{}), Op(Cos{}), Op(Erf{}), Op(OptimizationBarrier{})}) {
    cases.push_back(of(op, {.types = {wide({7}, shards)}}));
  }
  for (const Op& op : {Op(Log{}), Op(Sqrt{}), Op(Rsqrt{}), Op(Log1p{})})
    cases.push_back(of(op, {.types = {wide({7}, shards)}, .low = 0.5}));
  for (const Shape& shape : {Shape{2, 3}, Shape{}}) {
    cases.push_back({"select",
                     {.types = {wide({2, 3}, shards), wide(shape), wide({2, 3})}},
                     [](Builder& b, std::span<const Value> x) {
                       const Value predicate = b.emit(Gt{}, {x[2], b.constant(DType::f64, 0)});
                       return b.emit(Select{}, {predicate, x[0], x[1]});
                     }});
    cases.push_back(
        {"select", {.types = {wide(shape, replicas), wide({2, 3})}}, [](Builder& b, std::span<const Value> x) {
           return b.emit(Select{}, {b.constant(DType::boolean, 1), x[0], x[1]});
         }});
  }
  return cases;
}

std::vector<GradientCase> shape_cases() {
  const auto x = [](Shape shape) { return GradientInputs{.types = {wide(std::move(shape), shards)}}; };
  std::vector<GradientCase> cases = {
      of(Reshape{{3, 4}}, x({2, 6})),
      of(Transpose{{2, 0, 1}}, x({2, 3, 4})),
      of(Transpose{{1, 0}}, x({3, 2})),
      of(Broadcast{{2, 3, 4}, {1}}, x({3})),
      of(Broadcast{{2, 3}, {}}, x({})),
      of(Broadcast{{2, 3, 2}, {0, 2}}, x({2, 2})),
      of(Slice{{1, 0}, {3, 2}}, x({4, 3})),
      of(Pad{{1, 0}, {0, 2}}, x({2, 3})),
      of(Concatenate{1}, {.types = {wide({2, 3}, shards), wide({2, 1}), wide({2, 2}, replicas)}}),
      of(Concatenate{0}, x({3})),
      of(Pack{}, {.types = {wide({2, 3}, shards), wide({65}), wide({}, replicas)}}),
      of(Unpack{{{2, 3}, {65}, {}}}, {.types = {wide({256}, shards)}}),
      of(Reverse{{0, 2}}, x({2, 2, 3})),
      of(Reverse{{1}}, x({2, 2, 3})),
      of(Cumsum{1}, x({2, 3, 2})),
      of(Cumsum{0, true}, x({4})),
      of(TopK{2}, x({2, 4})),
      of(TopK{3}, x({3})),
      of(ScatterAdd{3}, {.types = {ints({2, 2}, shards), wide({2, 2, 2})}}),
      of(ScatterAdd{2}, {.types = {ints({5}, shards), wide({5}, replicas)}, .below = 3}),
      of(ReduceSum{{0}}, x({3, 2})),
      of(ReduceSum{{0, 2}}, x({2, 3, 2})),
      of(ReduceSum{{0, 1}}, x({2, 3})),
      of(ReduceMax{{1}}, x({3, 4})),
      of(ReduceMax{{0, 2}}, x({2, 3, 2})),
      of(Gather{}, {.types = {wide({3, 2, 2}), ints({2, 3}, shards)}}),
      of(Gather{}, {.types = {wide({3}, replicas), ints({}, shards)}}),
      of(Gather{}, {.types = {wide({2, 2}), ints({5}, shards)}, .below = 3}),  // some indices are out of range
  };
  return cases;
}

std::vector<GradientCase> contraction_cases() {
  const std::vector<std::pair<std::int64_t, std::int64_t>> padding = {{1, 0}, {0, 2}},
                                                           of_volume = {{1, 0}, {0, 1}, {0, 0}};
  return {
      of(Matmul{}, {.types = {wide({2, 3}, shards), wide({3, 2})}}),
      of(Matmul{true, false}, {.types = {wide({3, 2}, shards), wide({3, 2})}}),
      of(Matmul{false, true}, {.types = {wide({2, 3}, shards), wide({2, 3})}}),
      of(Matmul{true, true}, {.types = {wide({3, 2}), wide({2, 3}, shards)}}),
      of(Matmul{}, {.types = {wide({2, 2, 3}, shards), wide({3, 2}), wide({2})}}),
      of(Matmul{true, false}, {.types = {wide({2, 3, 2}, shards), wide({2, 3, 1})}}),
      of(Matmul{false, true}, {.types = {wide({2, 1, 3}, shards), wide({2, 3})}}),
      of(BatchMatmul{}, {.types = {wide({2, 1, 2, 3}, shards), wide({2, 1, 3, 2})}}),
      of(BatchMatmul{true, false}, {.types = {wide({2, 3, 2}, shards), wide({2, 3, 2})}}),
      of(BatchMatmul{false, true}, {.types = {wide({2, 2, 3}, shards), wide({2, 2, 3})}}),
      of(BatchMatmul{true, true}, {.types = {wide({3, 2}), wide({2, 3}, shards)}}),
      of(Conv{{2, 1}, padding}, {.types = {wide({1, 4, 3, 2}, shards), wide({2, 2, 2, 1})}}),
      of(ConvInputGrad{{2, 1}, padding, {1, 4, 3, 2}}, {.types = {wide({2, 2, 2, 1}), wide({1, 2, 4, 1}, shards)}}),
      of(Conv{{1, 2, 1}, of_volume, false, {1, 1, 1}},
         {.types = {wide({1, 2, 3, 2, 2}, shards), wide({2, 2, 1, 2, 1}), wide({1})}}),
      of(ConvInputGrad{{1, 2, 1}, of_volume, {1, 2, 3, 2, 2}, {1, 1, 1}},
         {.types = {wide({2, 2, 1, 2, 1}), wide({1, 2, 2, 2, 1}, shards)}}),
      of(ConvKernelGrad{{1, 2, 1}, of_volume, {2, 2, 1, 2, 1}, true, {1, 1, 1}},
         {.types = {wide({1, 2, 3, 2, 2}, shards), wide({1, 2, 2, 2, 1})}}),
      of(ConvKernelGrad{{2, 1}, padding, {2, 2, 2, 1}}, {.types = {wide({1, 4, 3, 2}, shards), wide({1, 2, 4, 1})}}),
      of(AvgPool{{2, 2}, {1, 2}, {{0, 1}, {1, 0}}, false}, {.types = {wide({1, 3, 3, 2}, shards)}}),
      of(AvgPoolGrad{{2, 2}, {2, 2}, {{0, 0}, {0, 0}}, true, {1, 4, 3, 1}}, {.types = {wide({1, 2, 1, 1}, shards)}}),
      of(MaxPool{{2, 2}, {1, 2}, {{0, 1}, {1, 0}}}, {.types = {wide({1, 3, 3, 2}, shards)}}),
      of(Attention{}, {.types = {wide({1, 2, 2, 3}, shards), wide({1, 3, 1, 3}), wide({1, 3, 1, 3}, replicas)}}),
      of(Attention{true}, {.types = {wide({2, 3, 2, 2}, shards), wide({2, 3, 2, 2}), wide({2, 3, 2, 2})}}),
      of(Lstm{}, {.types = {wide({2, 3, 8}, shards), wide({2, 8})}}),
      of(Lstm{true}, {.types = {wide({1, 3, 4}, shards), wide({1, 4}, replicas)}}),
      of(Lstm{}, {.types = {wide({2, 1, 4}, shards), wide({1, 4})}}),
      of(Gru{}, {.types = {wide({2, 3, 6}, shards), wide({2, 6}), wide({2})}}),
      of(Gru{true}, {.types = {wide({1, 3, 3}, shards), wide({1, 3}, replicas), wide({1})}}),
  };
}

std::vector<GradientCase> collective_cases() {
  return {
      of(Pvary{shards}, {.types = {wide({2}, replicas)}}),
      of(Psum{shards}, {.types = {wide({2}, both)}}),
      of(Psum{both}, {.types = {wide({2}, both)}}),
      of(AllGather{shards, 1}, {.types = {wide({2, 2}, both)}}),
      of(AllGatherInvariant{shards, 0}, {.types = {wide({2, 2}, both)}}),
      of(AllGatherInvariant{shards, 1}, {.types = {wide({2, 2}, shards)}}),
      of(AllToAll{shards, 0, 1}, {.types = {wide({4, 3}, both)}}),
      of(AllToAll{replicas, 1, 1}, {.types = {wide({3, 2}, both)}}),
      of(AllGatherInvariant{both, 0}, {.types = {wide({2, 2}, both)}}),
      of(AllSlice{shards, 0}, {.types = {wide({4, 2}, replicas)}}),
      of(AllSlice{both, 1}, {.types = {wide({2, 8})}}),
      of(PsumScatter{shards, 0}, {.types = {wide({4}, both)}}),
      of(PsumScatter{both, 1}, {.types = {wide({2, 4}, both)}}),
      of(Pack{256}, {.types = {wide({2, 3}, shards), wide({65})}}),
      of(Ppermute{shards, {{0, 1}}}, {.types = {wide({2}, both)}}),
  };
}

std::vector<GradientCase> composed_cases() {
  return {
      {"softmax cross-entropy with a shared weight",
       {.types = {wide({3, 4}, shards), wide({4, 3}), ints({3}, shards)}},
       [](Builder& b, std::span<const Value> x) {
         const Value logits = b.emit(Matmul{}, {x[0], x[1]});
         const Value top = b.emit(StopGradient{}, {b.emit(ReduceMax{{1}}, {logits})});
         const Value shifted = b.emit(Sub{}, {logits, b.emit(Broadcast{{3, 3}, {0}}, {top})});
         const Value total = b.emit(Log{}, {b.emit(ReduceSum{{1}}, {b.emit(Exp{}, {shifted})})});
         const Value target = b.emit(OneHot{3, DType::f64}, {x[2]});
         const Value chosen = b.emit(ReduceSum{{1}}, {b.emit(Mul{}, {shifted, target})});
         const Value loss = b.emit(ReduceSum{{0}}, {b.emit(Sub{}, {total, chosen})});
         return b.emit(Psum{shards}, {loss});
       }},
      {"both results of attention, or one of them",
       {.types = {wide({1, 3, 2, 2}, shards), wide({1, 3, 1, 2}), wide({1, 3, 1, 2})}},
       [](Builder& b, std::span<const Value> x) {
         const std::vector<Value> both = b.emit_all(Attention{true}, x);
         const Value lse = b.emit_all(Attention{}, x)[1];
         const Value heads = b.emit(Add{}, {b.emit(ReduceSum{{3}}, {b.emit(Exp{}, {both[0]})}), both[1]});
         return b.emit(Mul{}, {heads, lse});
       }},
      {"a value used twice",
       {.types = {wide({3}, shards)}},
       [](Builder& b, std::span<const Value> x) {
         return b.emit(Mul{}, {x[0], b.emit(Add{}, {x[0], b.emit(Exp{}, {x[0]})})});
       }},
      {"an integer on the way has no cotangent",
       {.types = {wide({2, 3}, shards)}},
       [](Builder& b, std::span<const Value> x) {
         const Value best = b.emit(OneHot{3, DType::f64}, {b.emit(Argmax{1}, {x[0]})});
         return b.emit(Mul{}, {x[0], best});
       }},
  };
}

// What the derivative rules give at one point on one device, for ties and other points without a difference quotient.
std::vector<double> gradient_at(const test::BuildFunction& build, const Shape& shape, const std::vector<double>& x) {
  Program program;
  Builder b(program, all_ops());
  const std::vector<Value> input = {b.input(Group::batch, "x", wide(shape))};
  const Value y = build(b, input);
  const Value seed = b.constant(DType::f64, 1, b.type(y).shape);
  b.output("g", differentiate(b, y, seed, input)[0]);
  std::vector<std::byte> bytes(x.size() * sizeof(double));
  if (!x.empty()) std::memcpy(bytes.data(), x.data(), bytes.size());
  const PerDevice g = interpret(program, {{"x", {bytes}}}).outputs.at("g");
  std::vector<double> gradient(x.size());
  if (!x.empty()) std::memcpy(gradient.data(), g[0].data(), bytes.size());
  return gradient;
}

// The gradients of an op on one device with respect to its floating operands, at points and with a cotangent that bf16
// holds too.
std::vector<std::vector<double>> gradients_at(const Op& op, const std::vector<Type>& types, const GradientInputs& at) {
  Program program;
  Builder b(program, all_ops());
  std::vector<Value> values, wrt;
  for (const Type& type : types) {
    values.push_back(b.input(Group::batch, "x" + std::to_string(values.size()), type));
    if (is_floating(type.dtype)) wrt.push_back(values.back());
  }
  const Value y = b.emit_all(op, values).front();
  const Value seed = b.input(Group::batch, "seed", b.type(y));
  const std::vector<Value> gradients = differentiate(b, y, seed, wrt);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    CHECK(b.type(gradients[i]) == b.type(wrt[i]));
    b.output("g" + std::to_string(i), gradients[i]);
  }
  std::map<std::string, PerDevice> inputs;
  for (const Input& input : program.inputs) {
    const Type& type = program.type(input.value);
    std::vector<std::byte>& array = inputs[input.name].emplace_back(bytes(type));
    for (std::int64_t e = 0; e < numel(type); ++e) {
      const auto word = philox4x32(stream_key(1, input.name), {static_cast<std::uint32_t>(e), 0, 0, 0})[0];
      const bf16 point(at.low + static_cast<double>(word) * 0x1.0p-32 * (at.high - at.low));
      dispatch(type.dtype, [&]<class T>() {
        T value{};
        if constexpr (FloatingElement<T>) {
          value = static_cast<T>(static_cast<float>(point));
        } else {
          value = static_cast<T>(word % static_cast<std::uint32_t>(at.below));
        }
        std::memcpy(array.data() + static_cast<std::size_t>(e) * sizeof value, &value, sizeof value);
      });
    }
  }
  const auto outputs = interpret(program, inputs).outputs;
  std::vector<std::vector<double>> found;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const std::vector<std::byte>& array = outputs.at("g" + std::to_string(i)).front();
    found.push_back(dispatch_floating(b.type(gradients[i]).dtype, [&]<class T>() {
      std::vector<T> elements(array.size() / sizeof(T));
      std::memcpy(elements.data(), array.data(), array.size());
      return std::vector<double>(elements.begin(), elements.end());
    }));
  }
  return found;
}

// A derivative is a few equations, of which each rounds.
void check_bf16_gradient(const Op& narrow, std::vector<Type> types, const Op& wide, const GradientInputs& at) {
  INFO(to_string(narrow));
  for (Type& type : types) type.varying = {};
  const auto found = gradients_at(narrow, types, at);
  for (Type& type : types) {
    if (is_floating(type.dtype)) type.dtype = DType::f64;
  }
  const auto expected = gradients_at(wide, types, at);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    double most = 0;
    for (const double value : expected[i]) most = std::max(most, std::abs(value));
    for (std::size_t e = 0; e < expected[i].size(); ++e) {
      INFO("operand " << i << ", element " << e);
      CHECK(std::abs(found[i][e] - expected[i][e]) <= 0x1p-6 * most);
    }
  }
}

}  // namespace

TEST_CASE("every derivative agrees with central differences on four devices", "[ops]") {
  std::set<std::string> covered;
  for (const auto& cases :
       {elementwise_cases(), shape_cases(), contraction_cases(), collective_cases(), composed_cases()}) {
    for (const GradientCase& c : cases) {
      INFO(c.name);
      for (std::string& name : check_gradient(mesh, c.inputs, c.build)) covered.insert(std::move(name));
    }
  }
  for (const OpRules* rules : all_ops().all) {
    if (rules->derivative == nullptr) continue;
    INFO(rules->name << " has a derivative and no case here");
    CHECK(covered.contains(std::string(rules->name)));
  }
}

TEST_CASE("the derivatives of bf16 are those of f64 at the same points, but for rounding", "[ops]") {
  std::set<std::string_view> covered;
  for (const auto& cases : {elementwise_cases(), shape_cases(), contraction_cases()}) {
    for (const GradientCase& c : cases) {
      if (!c.op) continue;
      covered.insert(c.op->name());
      std::vector<Type> types = c.inputs.types;
      for (Type& type : types) {
        if (type.dtype == DType::f64) type.dtype = DType::bf16;
      }
      check_bf16_gradient(*c.op, types, *c.op, c.inputs);
    }
  }
  CHECK(covered.size() > 45);

  // Results of f32 from operands of bf16, and a bias of either type.
  const auto bf16s = [](Shape shape) { return Type{DType::bf16, std::move(shape), {}}; };
  const std::vector<std::int64_t> strides = {2, 1};
  const Padding padding = {{1, 0}, {0, 2}};
  const Type x = bf16s({1, 4, 3, 2}), kernel = bf16s({2, 2, 2, 3}), y = bf16s({1, 2, 4, 3});
  for (const std::optional<DType> result : {std::optional<DType>(), std::optional(DType::f32)}) {
    for (const DType bias : {DType::bf16, DType::f32}) {
      for (const bool relu : {false, true}) {
        check_bf16_gradient(Matmul{false, true, relu, result}, {bf16s({4, 3}), bf16s({2, 3}), {bias, {2}, {}}},
                            Matmul{false, true, relu}, {});
        check_bf16_gradient(Conv{strides, padding, relu, {1, 1}, 1, result}, {x, kernel, {bias, {3}, {}}},
                            Conv{strides, padding, relu}, {});
      }
    }
    check_bf16_gradient(Matmul{true, false, false, result}, {bf16s({3, 4}), bf16s({3, 2})}, Matmul{true, false}, {});
    check_bf16_gradient(BatchMatmul{true, false, result}, {bf16s({2, 3, 4}), bf16s({2, 3, 2})},
                        BatchMatmul{true, false}, {});
    check_bf16_gradient(ConvInputGrad{strides, padding, x.shape, {1, 1}, 1, result}, {kernel, y},
                        ConvInputGrad{strides, padding, x.shape}, {});
    check_bf16_gradient(ConvKernelGrad{strides, padding, kernel.shape, true, {1, 1}, 1, result}, {x, y},
                        ConvKernelGrad{strides, padding, kernel.shape, true}, {});
    check_bf16_gradient(ReduceSum{{1}, result}, {bf16s({2, 3})}, ReduceSum{{1}}, {});
  }
}

TEST_CASE("ties split the cotangent as rule 5 says", "[ops]") {
  const auto relu = [](Builder& b, std::span<const Value> x) { return b.emit(Relu{}, x); };
  CHECK(gradient_at(relu, {3}, {-1, 0, 2}) == std::vector<double>{0, 0, 1});
  const auto max = [](Builder& b, std::span<const Value> x) {
    return b.emit(Max{}, {x[0], b.constant(DType::f64, 1)});
  };
  CHECK(gradient_at(max, {3}, {0, 1, 2}) == std::vector<double>{0, 0.5, 1});
  const auto min = [](Builder& b, std::span<const Value> x) {
    return b.emit(Min{}, {x[0], b.constant(DType::f64, 1)});
  };
  CHECK(gradient_at(min, {3}, {0, 1, 2}) == std::vector<double>{1, 0.5, 0});
  const auto clamp = [](Builder& b, std::span<const Value> x) {
    const Value low = b.constant(DType::f64, 0);
    return b.emit(Clamp{}, {low, x[0], b.constant(DType::f64, 1)});
  };
  CHECK(gradient_at(clamp, {5}, {-1, 0, 0.5, 1, 2}) == std::vector<double>{0, 0, 1, 0, 0});
  const auto abs = [](Builder& b, std::span<const Value> x) { return b.emit(Abs{}, x); };
  CHECK(gradient_at(abs, {3}, {-2, 0, 2}) == std::vector<double>{-1, 0, 1});
  const auto reduce_max = [](Builder& b, std::span<const Value> x) { return b.emit(ReduceMax{{1}}, x); };
  CHECK(gradient_at(reduce_max, {2, 4}, {1, 3, 3, 2, 5, 5, 5, 5}) ==
        std::vector<double>{0, 0.5, 0.5, 0, 0.25, 0.25, 0.25, 0.25});
}

TEST_CASE("the derivatives of a power are finite where the base or the exponent is 0", "[ops]") {
  const auto power = [](double exponent) {
    return [exponent](Builder& b, std::span<const Value> x) {
      return b.emit(Pow{}, {x[0], b.constant(DType::f64, exponent)});
    };
  };
  CHECK(gradient_at(power(0), {2}, {0, 3}) == std::vector<double>{0, 0});
  CHECK(gradient_at(power(2), {2}, {0, 3}) == std::vector<double>{0, 6});
  const auto exponent = [](Builder& b, std::span<const Value> x) {
    return b.emit(Pow{}, {b.constant(DType::f64, 0), x[0]});
  };
  CHECK(gradient_at(exponent, {4}, {1, 2, 0, -1}) == std::vector<double>{0, 0, 0, 0});
}

TEST_CASE("what has no elements has a derivative, and so has a scalar beside nine dimensions", "[ops]") {
  const auto gather = [](Builder& b, std::span<const Value> x) {
    return b.emit(Gather{}, {x[0], b.constant(DType::i32, 0)});
  };
  CHECK(gradient_at(gather, {0}, {}).empty());
  const auto top_k = [](Builder& b, std::span<const Value> x) { return b.emit_all(TopK{2}, x)[0]; };
  CHECK(gradient_at(top_k, {0, 3}, {}).empty());
  const auto scaled = [](Builder& b, std::span<const Value> x) {
    const Value ones = b.emit(Constant{DType::f64, {2, 1, 1, 1, 1, 1, 1, 1, 3}, 1.0}, {});
    return b.emit(Mul{}, {ones, x[0]});
  };
  CHECK(gradient_at(scaled, {}, {5}) == std::vector<double>{6});
}

TEST_CASE("a derivative passes an optimization barrier unchanged", "[ops]") {
  const auto square = [](Builder& b, std::span<const Value> x) {
    return b.emit(Mul{}, {x[0], b.emit(OptimizationBarrier{}, x)});
  };
  CHECK(gradient_at(square, {2}, {3, 4}) == std::vector<double>{6, 8});
  const auto waits = [](Builder& b, std::span<const Value> x) {
    return b.emit(Mul{}, {x[0], b.emit(OptimizationBarrier{}, {x[0], b.emit(Mul{}, {x[0], x[0]})})});
  };
  CHECK(gradient_at(waits, {2}, {3, 4}) == std::vector<double>{6, 8});
}

TEST_CASE("no derivative passes stop_gradient", "[ops]") {
  const auto square = [](Builder& b, std::span<const Value> x) {
    return b.emit(Mul{}, {x[0], b.emit(StopGradient{}, x)});
  };
  CHECK(gradient_at(square, {2}, {3, 4}) == std::vector<double>{3, 4});
}

}  // namespace pmaptrain
