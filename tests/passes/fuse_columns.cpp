// Programs whose sums over rows are fused with chains against what they were made from, bit by bit.
#include "core/passes/fuse_columns.h"

#include <string>

#include "core/ops/all.h"
#include "core/passes/pipeline.h"
#include "tests/passes/check_fused.h"

namespace pmaptrain {
namespace {

// With sums fused, after the interpreter has given its bits and those of the program without.
Program check_columns(const std::string& text) {
  const auto before = fused(*test::program_of(text, {{"a", 2}}));
  Program after = fuse_columns(*before);
  INFO(to_text(*before));
  INFO(to_text(after));
  const test::Values inputs = test::random_inputs(*before, 5);
  require_same(test::interpreted(after, inputs, 2), test::interpreted(*before, inputs, 2), "interpreted");
  if (count(after, "fused_columns") > 0) CHECK(traffic(after) < traffic(*before));
  // What is printed is read again.
  const auto again = parse_program(to_text(after), "again.pmt", all_ops(), {});
  CHECK(to_text(again) == to_text(after));
  return after;
}

// The mean and the variance of channels, and the values less the mean, of a batch in bf16 with weights.
const std::string statistics = R"(batch %x:bf16[6,10,10,4]{a}
batch %w:f32[6]{a}
%wb = broadcast[shape=[6,10,10,4], dims=[0]] %w
%c = cast[dtype=f32] %x
%cw = mul %c, %wb
%s = reduce_sum[dims=[0,1,2]] %cw
%n = constant[dtype=f32, shape=[4], value=600]
%nv = pvary[axes={a}] %n
%m = div %s, %nv
%mb = broadcast[shape=[6,10,10,4], dims=[3]] %m
%d = sub %c, %mb
%e = mul %d, %d
%q = mul %e, %wb
%v = reduce_sum[dims=[0,1,2]] %q
%h = cast[dtype=bf16] %d
return m = %m
return v = %v
return h = %h
)";

}  // namespace

TEST_CASE("statistics of a batch are sums whose elements are never stored", "[passes]") {
  const Program program = check_columns(statistics);
  CHECK(count(program, "fused_columns") == 2);
  CHECK(count(program, "reduce_sum") == 0);
  INFO(to_text(program));
  for (const Equation& equation : program.equations) {
    for (const Value result : equation.results) {
      CHECK((program.type(result).dtype == DType::bf16 || numel(program.type(result)) <= 4));
    }
  }
}

TEST_CASE("sums over one chain are one equation, which reads what is stored for others too", "[passes]") {
  // The gradients of a norm's scale and bias. The chain multiplies dy for others too, which read it in bf16.
  const Program program = check_columns(R"(batch %dy:f32[600,8]{a}
batch %x:f32[600,8]{a}
batch %w:f32[600,8]{a}
%p = mul %dy, %w
%e = exp %p
%g = mul %e, %x
%bias = reduce_sum[dims=[0]] %e
%scale = reduce_sum[dims=[0]] %g
%h = cast[dtype=bf16] %e
%k = matmul[transpose_a=false, transpose_b=true] %e, %x
return bias = %bias
return scale = %scale
return h = %h
return k = %k
)");
  REQUIRE(count(program, "fused_columns") == 1);
  const auto sums = std::find_if(program.equations.begin(), program.equations.end(),
                                 [](const Equation& equation) { return equation.op.name() == "fused_columns"; });
  CHECK(sums->results.size() == 2);
  CHECK(sums->operands.size() == 2);  // %e and %x
}

TEST_CASE("reshapes between a chain and its sums go into the fused equation", "[passes]") {
  const Program program = check_columns(R"(batch %x:f32[30,20,6]{a}
%e = exp %x
%y = mul %e, %x
%r = reshape[shape=[600,6]] %y
%s = reduce_sum[dims=[0]] %r
return s = %s
)");
  CHECK(count(program, "fused_columns") == 1);
  CHECK(count(program, "reshape") == 0);
}

TEST_CASE("what is made of sums is computed with them, unless it needs what comes later", "[passes]") {
  const std::string begin = R"(batch %x:bf16[600,4]{a}
batch %c:f32[4]{a}
batch %z:f32[4,600]{a}
%f = cast[dtype=f32] %x
%g = neg %f
%s = reduce_sum[dims=[0]] %g
)";
  const Program program = check_columns(begin + R"(%t = mul %s, %c
%u = exp %t
%v = add %u, %t
return v = %v
)");
  REQUIRE(program.equations.size() == 1);
  CHECK(program.equations[0].results.size() == 1);
  // A sum that another equation reads too is yielded beside what is made of it.
  const Program both = check_columns(begin + R"(%t = mul %s, %c
%u = exp %t
%k = concatenate[dim=0] %s, %s
return u = %u
return k = %k
)");
  REQUIRE(both.equations.front().op.name() == "fused_columns");
  CHECK(both.equations.front().results.size() == 2);
  // The matmul comes after the sum.
  const Program later = check_columns(begin + R"(%m = matmul[transpose_a=false, transpose_b=false] %z, %f
%mb = reduce_sum[dims=[0]] %m
%t = mul %mb, %s
%u = exp %t
return u = %u
)");
  CHECK(later.equations.back().op.name() == "fused");
}

TEST_CASE("sums stay apart where one needs the other, or where nothing is gained", "[passes]") {
  const auto fused_in = [](const std::string& lines) {
    return count(check_columns("batch %x:f32[600,6]{a}\nbatch %z:f32[600,6]{a}\n" + lines), "fused_columns");
  };
  // The second sum is of the same chain, but another equation reads the first sum before.
  CHECK(fused_in(R"(%e = exp %x
%f = neg %e
%s = reduce_sum[dims=[0]] %f
%b = broadcast[shape=[600,6], dims=[1]] %s
%m = matmul[transpose_a=true, transpose_b=false] %b, %x
%g = mul %e, %z
%t = reduce_sum[dims=[0]] %g
return m = %m
return t = %t
)") == 2);
  // A sum of what is stored in any case; sums over columns, and over the first of three dimensions.
  CHECK(fused_in("%e = exp %x\n%s = reduce_sum[dims=[0]] %e\nreturn e = %e\nreturn s = %s\n") == 0);
  CHECK(fused_in("%e = exp %x\n%n = neg %e\n%s = reduce_sum[dims=[1]] %n\nreturn s = %s\n") == 0);
  CHECK(fused_in("%e = exp %x\n%n = neg %e\n%r = reshape[shape=[300,2,6]] %n\n"
                 "%s = reduce_sum[dims=[1]] %r\nreturn s = %s\n") == 0);
  // More is read than the chain writes.
  CHECK(fused_in("%e = exp %x\n%d = add %e, %z\n%w = cast[dtype=f64] %d\n%h = cast[dtype=bf16] %w\n"
                 "%s = reduce_sum[dims=[0]] %h\nreturn d = %d\nreturn s = %s\n") == 0);
}

TEST_CASE("an equation has at most eight sums", "[passes]") {
  std::string lines = "batch %x:f32[600,64]{a}\n", returns;
  for (int i = 0; i < 9; ++i) {
    const std::string n = std::to_string(i);
    lines += "%k" + n + " = constant[dtype=f32, shape=[], value=" + n + "]\n%v" + n + " = pvary[axes={a}] %k" + n +
             "\n%y" + n + " = add %x, %v" + n + "\n%z" + n + " = mul %y" + n + ", %y" + n + "\n%s" + n +
             " = reduce_sum[dims=[0]] %z" + n + "\n";
    returns += "return s" + n + " = %s" + n + "\n";
  }
  CHECK(count(check_columns(lines + returns), "fused_columns") == 2);
}

TEST_CASE("sums in the body of a loop are fused", "[passes]") {
  const Program program = check_columns(R"(batch %x:f32[1800,4]{a}
batch %z:f32[4]{a}
%s = loop[iterations=3, consts=0, carries=1] %z, %x (%c:f32[4]{a}, %y:f32[600,4]{a}) {
  %e = exp %y
  %f = mul %e, %y
  %t = reduce_sum[dims=[0]] %f
  %u = add %c, %t
  yield %u
}
return s = %s
)");
  std::int64_t found = 0;
  for_each_equation(program.equations,
                    [&](const Equation& equation) { found += equation.op.name() == "fused_columns" ? 1 : 0; });
  CHECK(found == 1);
}

}  // namespace pmaptrain
