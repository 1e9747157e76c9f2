#include "tests/cuda/library_cases.h"

#include <utility>

#include "core/ops/all.h"
#include "core/ops/list.h"

namespace pmaptrain::test {
namespace {

Type array_of(DType dtype, Shape shape) { return {dtype, std::move(shape), {}}; }

Shape transposed(Shape shape, bool swap) {
  if (swap) std::swap(shape[shape.size() - 2], shape[shape.size() - 1]);
  return shape;
}

// The op on one logical device, and twice on three of them: first only the stacked operands differ between the devices,
// then all operands do.
void add_stacked(std::vector<KernelCase>& cases, const Op& op, const std::vector<Type>& operands,
                 const std::vector<bool>& stacked) {
  cases.push_back({op, operands});
  cases.push_back({op, operands, 3, stacked});
  cases.push_back({op, operands, 3});
}

std::vector<NamedCases> joined(std::initializer_list<std::vector<NamedCases>> lists) {
  std::vector<NamedCases> all;
  for (const std::vector<NamedCases>& some : lists) all.insert(all.end(), some.begin(), some.end());
  return all;
}

Shape result_of(const Op& op, const std::vector<Type>& operands) {
  const Mesh mesh;
  return op.infer({.mesh = mesh, .operands = operands})[0].shape;
}

std::vector<NamedCases> product_cases() {
  std::vector<NamedCases> all;
  for (const DType dtype : {DType::bf16, DType::f32, DType::f64}) {
    std::vector<KernelCase> cases;
    for (const bool a : {false, true}) {
      for (const bool b : {false, true}) {
        const Type x = array_of(dtype, transposed({37, 65}, a)), y = array_of(dtype, transposed({65, 10}, b));
        add_stacked(cases, ops::Matmul{.transpose_a = a, .transpose_b = b}, {x, y}, {true, false});
        for (const bool relu : {false, true}) {
          const ops::Matmul op{.transpose_a = a, .transpose_b = b, .relu = relu};
          add_stacked(cases, op, {x, y, array_of(dtype, {10})}, {true, false, false});
        }
        const ops::BatchMatmul batch{.transpose_a = a, .transpose_b = b};
        add_stacked(cases, batch,
                    {array_of(dtype, transposed({3, 6, 33}, a)), array_of(dtype, transposed({3, 33, 5}, b))},
                    {true, false});
      }
    }
    all.push_back({"products of " + std::string(pmaptrain::to_string(dtype)), std::move(cases)});
  }
  return all;
}

std::vector<NamedCases> long_product_cases() {
  std::vector<NamedCases> all;
  const ops::Matmul op{.relu = true};
  for (const DType dtype : {DType::bf16, DType::f32}) {
    const auto product = [dtype](std::int64_t m, std::int64_t k, std::int64_t n) {
      return std::vector<Type>{array_of(dtype, {m, k}), array_of(dtype, {k, n}), array_of(dtype, {n})};
    };
    all.push_back({"long products of " + std::string(pmaptrain::to_string(dtype)),
                   {{op, product(65536, 10, 10)}, {op, product(37, 65, 1)}, {op, product(37, 65, 8), 3}}});
  }
  return all;
}

std::vector<NamedCases> mixed_product_cases() {
  const Type x = array_of(DType::bf16, {16, 256}), y = array_of(DType::bf16, {256, 8}),
             bias = array_of(DType::f32, {8});
  return {{"products of bf16 with f32",
           {{ops::Matmul{}, {x, y, bias}},
            {ops::Matmul{.preferred_element_type = DType::f32}, {x, y}},
            {ops::Matmul{.relu = true}, {x, y, bias}, 3, {true, false, false}},
            {ops::Matmul{.relu = true}, {x, y, bias}, 3},
            {ops::Matmul{}, {x, array_of(DType::bf16, {256, 5}), array_of(DType::f32, {5})}, 3},
            {ops::Matmul{.relu = true, .preferred_element_type = DType::f32}, {x, y, bias}}}}};
}

// Gradients of dense layers: sums whose places are aligned to 16 bytes, and such that are not.
std::vector<NamedCases> kernel_gradient_cases() {
  std::vector<NamedCases> all;
  for (const DType dtype : {DType::bf16, DType::f32, DType::f64}) {
    std::vector<KernelCase> cases;
    const ops::MatmulKernelGrad plain, wide{DType::f32};
    for (const std::int64_t columns : {64, 10}) {
      const std::vector<Type> operands{array_of(dtype, {300, 24}), array_of(dtype, {300, columns})};
      add_stacked(cases, plain, operands, {true, false});
      if (dtype == DType::bf16) add_stacked(cases, wide, operands, {false, true});
    }
    cases.push_back({plain, {array_of(dtype, {4, 70, 24}), array_of(dtype, {4, 70, 64})}});
    cases.push_back({plain, {array_of(dtype, {1, 24}), array_of(dtype, {1, 64})}});
    cases.push_back({plain, {array_of(dtype, {5000, 3}), array_of(dtype, {5000, 8})}});
    all.push_back({"gradients of dense layers of " + std::string(pmaptrain::to_string(dtype)), std::move(cases)});
  }
  return all;
}

// The same, where a GPU may add in any order.
std::vector<NamedCases> in_any_order(std::vector<NamedCases> all) {
  for (NamedCases& some : all) {
    some.name += ", in any order";
    for (KernelCase& c : some.cases) c.deterministic = false;
  }
  return all;
}

std::vector<NamedCases> convolution_cases() {
  std::vector<NamedCases> all;
  for (const Convolution& c : convolutions()) {
    for (const DType dtype : {DType::bf16, DType::f32}) {
      std::vector<KernelCase> cases;
      for (const bool relu : {false, true}) {
        const KernelCase forward = three_of(c, dtype, relu).forward;
        add_stacked(cases, forward.op, forward.operands, {true, false, false});
      }
      const Three three = three_of(c, dtype);
      add_stacked(cases, three.input_grad.op, three.input_grad.operands, {false, true});
      for (const bool with_bias : {false, true}) {
        const ops::ConvKernelGrad op{c.strides, c.padding, c.kernel, with_bias, c.dilation, c.groups, {}};
        add_stacked(cases, op, three.kernel_grad.operands, {true, true});
      }
      all.push_back({name_of(c, dtype), std::move(cases)});
    }
  }
  return all;
}

// Of sizes that suit Winograd's algorithm.
std::vector<NamedCases> large_convolution_cases() {
  std::vector<NamedCases> all;
  for (const DType dtype : {DType::bf16, DType::f32}) {
    const Convolution c{{8, 16, 16, 64}, {3, 3, 64, 64}, {1, 1}, {{1, 1}, {1, 1}}};
    const Three three = three_of(c, dtype);
    all.push_back({name_of(c, dtype), {three.forward, three.input_grad, three.kernel_grad}});
  }
  return all;
}

std::vector<NamedCases> bias_gradient_cases() {
  const Type x = array_of(DType::f32, {8, 130, 128, 1}), y = array_of(DType::f32, {8, 130, 128, 3});
  return {{"the gradient of a bias",
           {{ops::ConvKernelGrad{{1, 1}, {{0, 0}, {0, 0}}, {1, 1, 1, 3}, true, {1, 1}, 1, {}}, {x, y}}}}};
}

}  // namespace

const std::vector<Convolution>& convolutions() {
  static const std::vector<Convolution> all = {
      {{4, 9, 7, 5}, {3, 2, 5, 7}, {1, 1}, {{0, 0}, {0, 0}}},            // no size is a multiple of another
      {{4, 28, 28, 1}, {3, 3, 1, 32}, {1, 1}, {{1, 1}, {1, 1}}},         // one channel
      {{2, 16, 16, 64}, {3, 3, 64, 32}, {2, 2}, {{0, 1}, {0, 1}}},       // strides, padding at the end
      {{2, 12, 12, 8}, {3, 3, 8, 8}, {1, 1}, {{2, 2}, {2, 2}}, {2, 2}},  // dilation
      {{2, 8, 8, 12}, {3, 3, 3, 8}, {1, 1}, {{1, 1}, {1, 1}}, {1, 1}, 4},
      {{2, 8, 8, 16}, {3, 3, 1, 32}, {1, 1}, {{1, 1}, {1, 1}}, {1, 1}, 16},  // depthwise, two results for a channel
      {{2, 5, 6, 7, 8}, {3, 2, 3, 8, 16}, {1, 2, 1}, {{1, 1}, {0, 0}, {1, 1}}, {1, 1, 1}},  // a volume
  };
  return all;
}

std::string name_of(const Convolution& c, DType dtype) {
  return std::string(pmaptrain::to_string(dtype)) + pmaptrain::to_string(c.x) + " by " + pmaptrain::to_string(c.kernel);
}

Three three_of(const Convolution& c, DType dtype, bool relu) {
  const Type x = array_of(dtype, c.x), kernel = array_of(dtype, c.kernel), bias = array_of(dtype, {c.kernel.back()});
  const ops::Conv conv{c.strides, c.padding, relu, c.dilation, c.groups, {}};
  const Type y = array_of(dtype, result_of(conv, {x, kernel}));
  return {{conv, {x, kernel, bias}},
          {ops::ConvInputGrad{c.strides, c.padding, c.x, c.dilation, c.groups, {}}, {kernel, y}},
          {ops::ConvKernelGrad{c.strides, c.padding, c.kernel, true, c.dilation, c.groups, {}}, {x, y}}};
}

std::vector<NamedCases> product_and_convolution_cases() {
  return joined({product_cases(), long_product_cases(), mixed_product_cases(), kernel_gradient_cases(),
                 in_any_order(kernel_gradient_cases()), convolution_cases(), in_any_order(large_convolution_cases()),
                 bias_gradient_cases()});
}

std::vector<NamedCases> mixed_convolution_cases() {
  std::vector<KernelCase> cases;
  for (const Convolution& c : convolutions()) {
    Three three = three_of(c, DType::bf16, true);
    three.forward.operands[2].dtype = DType::f32;
    add_stacked(cases, three.forward.op, three.forward.operands, {true, false, false});
    const ops::ConvKernelGrad op{c.strides, c.padding, c.kernel, true, c.dilation, c.groups, DType::f32};
    add_stacked(cases, op, three.kernel_grad.operands, {true, true});
  }
  return {{"convolutions of bf16 with f32", std::move(cases)}};
}

std::vector<NamedCases> tf32_cases() {
  const Three three = three_of(convolutions()[1], DType::f32);
  std::vector<KernelCase> cases = {{ops::Matmul{}, {array_of(DType::f32, {64, 256}), array_of(DType::f32, {256, 32})}},
                                   three.forward,
                                   three.input_grad,
                                   three.kernel_grad};
  for (KernelCase& c : cases) c.tf32 = true;
  return {{"TF32", std::move(cases)}};
}

KernelCase product_of_special_values(DType dtype, bool relu) {
  return {ops::Matmul{.relu = relu}, {array_of(dtype, {40, 64}), array_of(dtype, {64, 16}), array_of(dtype, {16})}};
}

Three convolution_of_special_values(DType dtype, bool relu) {
  return three_of({{3, 10, 9, 8}, {3, 2, 8, 16}, {1, 1}, {{0, 0}, {0, 0}}}, dtype, relu);
}

AttentionCase attention_of(const Shape& q_shape, std::int64_t keys, bool causal, bool deterministic) {
  const Type q = array_of(DType::bf16, q_shape), lse = array_of(DType::f32, {q_shape[0], q_shape[1], q_shape[2]});
  const Type k = array_of(DType::bf16, {q_shape[0], keys, q_shape[2], q_shape[3]});
  AttentionCase both{{ops::Attention{causal}, {q, k, k}}, {ops::AttentionGrad{causal}, {q, k, k, q, lse, q}}};
  both.forward.deterministic = both.gradient.deterministic = deterministic;
  return both;
}

// Widths of either kind of tile, full and not; one block of positions and several, as many of queries as of keys or
// not; one head and several.
std::vector<AttentionCase> attention_cases() {
  std::vector<AttentionCase> all;
  for (const bool deterministic : {false, true}) {
    all.push_back(attention_of({2, 128, 3, 8}, 128, true, deterministic));
    all.push_back(attention_of({1, 384, 2, 64}, 384, true, deterministic));
    all.push_back(attention_of({1, 128, 2, 40}, 256, false, deterministic));
    all.push_back(attention_of({1, 256, 1, 128}, 128, false, deterministic));
    all.push_back(attention_of({1, 256, 1, 120}, 256, true, deterministic));
  }
  AttentionCase several = attention_of({1, 128, 2, 16}, 128, true);
  several.forward.devices = several.gradient.devices = 3;
  all.push_back(std::move(several));
  return all;
}

std::vector<NamedCases> recurrent_cases() {
  std::vector<NamedCases> all;
  struct Sizes {
    std::int64_t examples, positions, features;
  };
  for (const Sizes& s : {Sizes{2, 3, 4}, Sizes{5, 4, 3}, Sizes{0, 2, 2}, Sizes{1, 2, 259}}) {
    for (const DType dtype : floating_types) {
      // A library takes states that are rounded to bf16. Many of them, or many steps, move a result further.
      if (dtype == DType::bf16 && (s.features > 100 || s.positions > 3)) continue;
      const auto sequences = [&](std::int64_t columns) {
        return array_of(dtype, {s.examples, s.positions, columns * s.features});
      };
      const auto matrix = [&](std::int64_t rows, std::int64_t columns) {
        return array_of(dtype, {rows * s.features, columns * s.features});
      };
      const Type out = sequences(1), gates = sequences(4), bias = array_of(dtype, {s.features});
      std::vector<KernelCase> cases;
      for (const bool reverse : {false, true}) {
        add_stacked(cases, ops::Lstm{reverse}, {sequences(4), matrix(1, 4)}, {true, false});
        add_stacked(cases, ops::LstmGrad{reverse}, {matrix(4, 1), out, gates, out}, {false, true, true, true});
        add_stacked(cases, ops::Gru{reverse}, {sequences(3), matrix(1, 3), bias}, {true, false, false});
        add_stacked(cases, ops::GruGrad{reverse}, {matrix(3, 1), out, gates, out}, {false, true, true, true});
        cases.push_back({ops::Gru{reverse}, {sequences(3), matrix(1, 3), bias}, 3, {false, true, true}});
        cases.push_back({ops::LstmGrad{reverse}, {matrix(4, 1), out, gates, out}, 3, {true, false, true, false}});
      }
      all.push_back(
          {"recurrences of " + std::to_string(s.features) + " features of " + std::string(pmaptrain::to_string(dtype)),
           std::move(cases)});
    }
  }
  return all;
}

std::vector<NamedCases> library_cases() {
  std::vector<NamedCases> all =
      joined({product_and_convolution_cases(), mixed_convolution_cases(), tf32_cases(), recurrent_cases()});
  for (const AttentionCase& attention : attention_cases()) {
    all.push_back({"attention", {attention.forward, attention.gradient}});
  }
  for (const DType dtype : {DType::bf16, DType::f32}) {
    for (const bool relu : {false, true}) {
      const Three three = convolution_of_special_values(dtype, relu);
      all.push_back({"special values of " + std::string(pmaptrain::to_string(dtype)),
                     {product_of_special_values(dtype, relu), three.forward, three.input_grad, three.kernel_grad}});
    }
  }
  return all;
}

}  // namespace pmaptrain::test
