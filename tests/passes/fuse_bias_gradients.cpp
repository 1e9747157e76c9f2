#include "core/passes/fuse_bias_gradients.h"

#include <cstdint>
#include <string>

#include "core/graph/text.h"
#include "core/ops/all.h"
#include "tests/catch.h"
#include "tests/passes/check_fused.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {
namespace {

// The program after the pass, which gives the same bits, also when its text is parsed again.
Program fused_gradients(const std::string& text) {
  const Program before = parse_program(text, "gradients.pmt", all_ops(), {});
  Program after = fuse_bias_gradients(before);
  INFO(text);
  INFO(to_text(after));
  const test::Values inputs = test::random_inputs(before, 5);
  CHECK(test::interpreted(after, inputs, 2) == test::interpreted(before, inputs, 2));
  CHECK(to_text(parse_program(to_text(after), "again.pmt", all_ops(), {})) == to_text(after));
  return after;
}

const std::string product = "%k = matmul[transpose_a=true, transpose_b=false] %x, %dy\n";
const std::string returned = "return k = %k\nreturn b = %b\n";

}  // namespace

TEST_CASE("the gradient of a dense layer's bias is computed with that of its kernel", "[passes]") {
  const std::string inputs = "mesh a=2\nbatch %x:f32[500,3]{a}\nbatch %dy:f32[500,5]{a}\n";
  const Program plain =
      fused_gradients(inputs + product + "%b = reduce_sum[dims=[0]] %dy\n%g, %h = psum[axes={a}] %k, %b\n" +
                      "return k = %g\nreturn b = %h\n");
  REQUIRE(count(plain, "matmul_kernel_grad") == 1);
  CHECK(count(plain, "reduce_sum") == 0);
  const Equation& both = plain.equations.front();
  CHECK(to_string(plain.type(both.results[0]), plain.mesh) == "f32[3,5]{a}");
  CHECK(to_string(plain.type(both.results[1]), plain.mesh) == "f32[5]{a}");

  // Examples of several rows, of bf16 with sums that are not rounded.
  const Program mixed = fused_gradients(
      "batch %x:bf16[4,70,3]{}\nbatch %dy:bf16[4,70,5]{}\n"
      "%k = matmul[transpose_a=true, transpose_b=false, preferred_element_type=f32] %x, %dy\n"
      "%b = reduce_sum[dims=[0,1], preferred_element_type=f32] %dy\n" +
      returned);
  CHECK(count(mixed, "matmul_kernel_grad") == 1);

  const Program loop = fused_gradients(R"(batch %x:f32[20,9]{}
batch %y:f32[20,4]{}
batch %k:f32[9,4]{}
batch %b:f32[4]{}
%g, %h = loop[iterations=10, consts=0, carries=2] %k, %b, %x, %y (%p:f32[9,4]{}, %q:f32[4]{}, %u:f32[2,9]{}, %v:f32[2,4]{}) {
  %s = matmul[transpose_a=true, transpose_b=false] %u, %v
  %t = reduce_sum[dims=[0]] %v
  %m = add %p, %s
  %n = add %q, %t
  yield %m, %n
}
return g = %g
return h = %h
)");
  std::int64_t inside = 0;
  for_each_equation(loop.equations,
                    [&](const Equation& equation) { inside += equation.op.name() == "matmul_kernel_grad" ? 1 : 0; });
  CHECK(inside == 1);
}

TEST_CASE("a sum that is no gradient of a bias, or of another type, stays apart", "[passes]") {
  const auto stays = [](const std::string& text) { CHECK(count(fused_gradients(text), "matmul_kernel_grad") == 0); };
  const std::string f32 = "batch %x:f32[5,3]{}\nbatch %dy:f32[5,5]{}\n";
  stays(f32 + product + "%b = reduce_sum[dims=[0]] %x\n" + returned);
  stays(f32 + product + "%b = reduce_sum[dims=[1]] %dy\n" + returned);
  stays(f32 + product + "%b = reduce_sum[dims=[0,1]] %dy\n" + returned);
  stays(f32 + "%k = matmul[transpose_a=false, transpose_b=true] %x, %x\n%b = reduce_sum[dims=[0]] %x\n" + returned);
  stays(f32 + "%k = matmul[transpose_a=true, transpose_b=true] %x, %dy\n%b = reduce_sum[dims=[0]] %dy\n" + returned);
  // What reads the sum may stand before the product.
  stays(f32 + "%b = reduce_sum[dims=[0]] %dy\n" + product + returned);
  stays("batch %x:bf16[5,3]{}\nbatch %dy:bf16[5,5]{}\n" + product +
        "%b = reduce_sum[dims=[0], preferred_element_type=f32] %dy\n" + returned);
  stays("batch %x:i32[5,3]{}\nbatch %dy:i32[5,5]{}\n" + product + "%b = reduce_sum[dims=[0]] %dy\n" + returned);
  stays("batch %x:f32[5,0]{}\nbatch %dy:f32[5,5]{}\n" + product + "%b = reduce_sum[dims=[0]] %dy\n" + returned);
}

TEST_CASE("gradients of a kernel and a bias have types that fit", "[passes]") {
  const auto message = [](const std::string& inputs) {
    try {
      parse_program(inputs + "%k, %b = matmul_kernel_grad %x, %dy\n" + returned, "gradients.pmt", all_ops(), {});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message("batch %x:f32[5,3]{}\nbatch %dy:f32[5,4]{}\n").empty());
  CHECK_THAT(message("batch %x:i32[5,3]{}\nbatch %dy:i32[5,4]{}\n"), Catch::Contains("matmul_kernel_grad of i32"));
  CHECK_THAT(message("batch %x:f32[5,3]{}\nbatch %dy:f32[6,4]{}\n"),
             Catch::Contains("they have different rows") || Catch::Contains("would contract"));
}

}  // namespace pmaptrain
