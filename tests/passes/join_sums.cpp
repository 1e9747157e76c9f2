// Programs whose sums are joined against what they were made from, bit by bit.
#include "core/passes/join_sums.h"

#include <algorithm>
#include <string>

#include "core/graph/passes.h"
#include "core/graph/text.h"
#include "core/ops/all.h"
#include "core/passes/fuse.h"
#include "tests/catch.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {
namespace {

// How many equations of an op there are, after the interpreter has given the bits of the program before.
std::int64_t left_after_joining(const std::string& text, const std::string& op) {
  const Program before = fuse(simplify(*test::program_of(text, {{"a", 2}})));
  const Program after = join_sums(before);
  INFO(to_text(before));
  INFO(to_text(after));
  const test::Values inputs = test::random_inputs(before, 5);
  const test::Values expected = test::interpreted(before, inputs, 2), found = test::interpreted(after, inputs, 2);
  CHECK(found == expected);
  const auto again = parse_program(to_text(after), "again.pmt", all_ops(), {});
  CHECK(to_text(again) == to_text(after));
  std::int64_t count = 0;
  for_each_equation(after.equations, [&](const Equation& equation) { count += equation.op.name() == op ? 1 : 0; });
  return count;
}

const std::string inputs =
    "batch %x:f32[100]{a}\nbatch %y:f32[100,1]{a}\nbatch %z:f32[70]{a}\nbatch %w:f64[100]{a}\nbatch %v:bf16[100]{a}\n";

}  // namespace

TEST_CASE("sums of values of one size are one equation", "[passes]") {
  const std::string text = inputs + "%s = reduce_sum[dims=[0]] %x\n%e = exp %y\n%t = reduce_sum[dims=[0]] %e\n" +
                           "%p, %q = psum[axes={a}] %s, %t\nreturn p = %p\nreturn q = %q\n";
  CHECK(left_after_joining(text, "fused_rows") == 1);
  CHECK(left_after_joining(text, "psum") == 1);
  // One in the region for each.
  CHECK(left_after_joining(text, "reduce_sum") == 2);
}

TEST_CASE("a sum that another one needs, or of another size or type, stays apart", "[passes]") {
  const auto stays = [](const std::string& rest) { CHECK(left_after_joining(inputs + rest, "fused_rows") == 0); };
  const std::string first = "%s = reduce_sum[dims=[0]] %x\n", returned = "return s = %s\nreturn t = %t\n";
  stays(first + "%b = broadcast[shape=[100], dims=[]] %s\n%m = mul %x, %b\n%t = reduce_sum[dims=[0]] %m\n" + returned);
  stays(first + "%t = reduce_sum[dims=[0]] %z\n" + returned);
  stays(first + "%t = reduce_sum[dims=[0]] %w\n" + returned);
  stays("%s = reduce_sum[dims=[0]] %v\n%u = neg %v\n%t = reduce_sum[dims=[0]] %u\n" + returned);
  stays(first + "%t = reduce_max[dims=[0]] %x\n" + returned);
}

TEST_CASE("sums are joined in the body of a loop, and long ones stay apart", "[passes]") {
  const std::string loop = R"(batch %x:f32[20,9]{a}
batch %c:f32[9]{a}
%i = reduce_sum[dims=[0]] %c
%n = neg %i
%g, %h = loop[iterations=10, consts=0, carries=2] %n, %i, %x (%p:f32[]{a}, %q:f32[]{a}, %two:f32[2,9]{a}) {
  %s = reduce_sum[dims=[0,1]] %two
  %e = exp %two
  %t = reduce_sum[dims=[0,1]] %e
  %u = add %p, %s
  %v = add %q, %t
  yield %u, %v
}
return g = %g
return h = %h
)";
  CHECK(left_after_joining(loop, "fused_rows") == 1);
  const std::string long_ones = "batch %x:f32[9000]{a}\n%s = reduce_sum[dims=[0]] %x\n%y = neg %x\n" +
                                std::string("%t = reduce_sum[dims=[0]] %y\nreturn s = %s\nreturn t = %t\n");
  CHECK(left_after_joining(long_ones, "fused_rows") == 0);
}

}  // namespace pmaptrain
