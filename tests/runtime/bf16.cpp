// Programs on values of bf16: the interpreter and the CPU backend agree to the bit where no sum's order is in play.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "core/graph/passes.h"
#include "core/passes/fuse.h"
#include "tests/catch.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {
namespace {

std::vector<double> numbers_of(const Program& program, const std::string& result, std::span<const std::byte> bytes) {
  return dispatch_floating(test::dtype_of(program, result), [&]<class T>() {
    std::vector<T> elements(bytes.size() / sizeof(T));
    std::memcpy(elements.data(), bytes.data(), bytes.size());
    return std::vector<double>(elements.begin(), elements.end());
  });
}

void check_bits(const std::string& text) {
  const auto program = test::program_of(text);
  const auto fused = std::make_shared<const Program>(fuse(*program));
  bool has_chain = false;
  for_each_equation(fused->equations, [&](const Equation& e) { has_chain = has_chain || e.op.name() == "fused"; });
  CHECK(has_chain);
  const test::Values inputs = test::random_inputs(*program, 5);
  const test::Values expected = test::interpreted(*program, inputs, 3);
  for (const auto& [name, of] : {std::pair{"alone", program}, {"fused", fused}}) {
    INFO(name);
    const bool as_interpreted = test::interpreted(*of, inputs, 3) == expected;
    CHECK(as_interpreted);
    for (const int workers : {1, 2, 3, 5}) {
      for (const KernelChoice kernels : {KernelChoice::best, KernelChoice::reference}) {
        INFO("workers " << workers);
        const bool same = test::run_program(of, inputs, {workers, false, 3, false, kernels}) == expected;
        CHECK(same);
      }
    }
  }
}

TEST_CASE("a chain of bf16 rounds at each of its equations", "[runtime]") {
  check_bits(R"(mesh a=3
state %s:bf16[40,33]{a}
batch %x:bf16[40,33]{a}
batch %row:bf16[40]{a}
batch %mask:bool[40,33]{a}
batch %wide:f32[40,33]{a}
hyper %k:bf16[]{}
%third = constant[dtype=bf16, shape=[], value=0.3333]
%r = broadcast[shape=[40,33], dims=[0]] %row
%a = mul %x, %third
%b = add %a, %r
%c = mul %b, %k
%d = div %c, %third
%e = relu %d
%narrow = cast[dtype=bf16] %wide
%f = add %e, %narrow
%g = select %mask, %f, %x
%h = cast[dtype=f32] %g
%i = mul %h, %wide
%j = cast[dtype=bf16] %i
%l = sub %j, %s
%big = gt %l, %third
update %s = %l
return h = %h
return big = %big
)");
}

TEST_CASE("a sum over the rows of bf16 is rounded once, of all rows, on any number of workers", "[runtime]") {
  const auto program = test::program_of(R"(mesh a=2
batch %x:bf16[1001,2]{a}
%zero = constant[dtype=bf16, shape=[], value=0.0]
%none = mul %x, %zero
%one = constant[dtype=bf16, shape=[], value=1.0]
%ones = add %none, %one
%s = reduce_sum[dims=[0]] %ones
%w = cast[dtype=f32] %s
%t = psum[axes={a}] %w
return t = %t
)");
  const test::Values inputs = test::random_inputs(*program, 5);
  const test::Values expected = test::interpreted(*program, inputs, 1);
  for (const int workers : {1, 2, 3, 5}) {
    for (const std::int64_t pieces : {1, 3, 8}) {
      const test::Values found =
          test::run_program(program, inputs, {workers, false, 1, false, KernelChoice::best, pieces});
      const bool same = found == expected;
      CHECK(same);
      float sum = 0;
      std::memcpy(&sum, found.at("output t").front().data(), sizeof sum);
      CHECK(sum == 2 * 1000);  // 1001 rounds to 1000
    }
  }
}

TEST_CASE("a step in bf16 with gradients in f32 has the same bits for all workers", "[runtime]") {
  const std::string body = R"(params %k:f32[3,3,8,16]{}
params %c:f32[16]{}
params %w:f32[400,40]{}
params %b:f32[40]{}
batch %i:f32[4,10,10,8]{a}
%small = constant[dtype=f32, shape=[], value=0.013]
%x32 = mul %i, %small
%x = cast[dtype=bf16] %x32
%kn = cast[dtype=bf16] %k
%wn = cast[dtype=bf16] %w
%z = conv[strides=[1,1], padding=[1:1,1:1], relu=true] %x, %kn, %c
%p = max_pool[window=[2,2], strides=[2,2], padding=[0:0,0:0]] %z
%f = reshape[shape=[4,400]] %p
%h = matmul[preferred_element_type=f32] %f, %wn, %b
%hs = mul %h, %small
%t32 = tanh %hs
%t = cast[dtype=bf16] %t32
%gw = matmul[transpose_a=true, preferred_element_type=f32] %f, %t
%gf = matmul[transpose_b=true] %t, %wn
%gp = reshape[shape=[4,5,5,16]] %gf
%gz = max_pool_grad[window=[2,2], strides=[2,2], padding=[0:0,0:0]] %z, %gp
%gk, %gc = conv_kernel_grad[strides=[1,1], padding=[1:1,1:1], kernel_shape=[3,3,8,16], bias=true, preferred_element_type=f32] %x, %gz
%gx = conv_input_grad[strides=[1,1], padding=[1:1,1:1], input_shape=[4,10,10,8]] %kn, %gz
%gb = reduce_sum[dims=[0], preferred_element_type=f32] %t
%sk, %sc, %sw, %sb = psum[axes={a}] %gk, %gc, %gw, %gb
%dw = mul %sw, %small
%w2 = sub %w, %dw
update %w = %w2
return sk = %sk
return sc = %sc
return sb = %sb
return gx = %gx
)";
  for (const std::int64_t devices : {1, 5, 17}) {
    const auto program = test::program_of("mesh a=1\n" + body, {{"a", devices}});
    const test::Values inputs = test::random_inputs(*program, 5);
    INFO(devices << " devices");
    const test::Values expected = test::same_for_all_workers(program, inputs);
    // The interpreter sums in another order, and so may round an activation to its neighbour.
    const test::Values oracle = test::interpreted(*program, inputs, 3);
    for (const auto& [name, value] : oracle) {
      INFO(name);
      const std::vector<double> a = numbers_of(*program, name, expected.at(name).front());
      const std::vector<double> b = numbers_of(*program, name, value.front());
      double most = 0, apart = 0;
      for (std::size_t e = 0; e < b.size(); ++e) {
        most = std::max(most, std::abs(b[e]));
        apart = std::max(apart, std::abs(a[e] - b[e]));
      }
      CHECK(apart <= 0x1p-7 * most);
    }
  }
}

}  // namespace
}  // namespace pmaptrain
