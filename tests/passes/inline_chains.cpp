// Programs whose chains are computed again in others against what they were made from, bit by bit.
#include "core/passes/inline_chains.h"

#include <string>

#include "core/ops/all.h"
#include "core/passes/fuse_columns.h"
#include "tests/passes/check_fused.h"

namespace pmaptrain {
namespace {

// With chains inlined, after the interpreter has given its bits and those of the program before.
Program check_inlined(const std::string& lines) {
  const std::string inputs_of_all = "batch %dy:bf16[1024,64]{a}\nbatch %x:bf16[1024,64]{a}\nbatch %v:f32[64]{a}\n";
  const Program before = fuse_columns(*fused(*test::program_of(inputs_of_all + lines, {{"a", 2}})));
  Program after = inline_chains(before);
  INFO(to_text(before));
  INFO(to_text(after));
  const test::Values inputs = test::random_inputs(before, 5);
  require_same(test::interpreted(after, inputs, 2), test::interpreted(before, inputs, 2), "interpreted");
  CHECK(traffic(after) <= traffic(before));
  const auto again = parse_program(to_text(after), "again.pmt", all_ops(), {});
  CHECK(to_text(again) == to_text(after));
  return after;
}

bool stores_f32(const Program& program) {
  for (const Equation& equation : program.equations) {
    for (const Value result : equation.results) {
      if (numel(program.type(result)) == 65536 && program.type(result).dtype == DType::f32) return true;
    }
  }
  return false;
}

// The gradient through a relu, in f32, and the sums of the norm before it.
const std::string norm = R"(%zero = constant[dtype=bf16, shape=[1024,64], value=0]
%zv = pvary[axes={a}] %zero
%p = gt %x, %zv
%r = select %p, %dy, %zv
%g = cast[dtype=f32] %r
%f = cast[dtype=f32] %x
%q = mul %g, %f
%s = reduce_sum[dims=[0]] %g
%t = reduce_sum[dims=[0]] %q
%u = add %s, %t
%ub = broadcast[shape=[1024,64], dims=[1]] %u
%d = mul %g, %ub
%h = cast[dtype=bf16] %d
)";

}  // namespace

TEST_CASE("a chain is computed again in sums of columns and in the chain after them", "[passes]") {
  const Program program = check_inlined(norm + "return h = %h\nreturn t = %t\n");
  CHECK_FALSE(stores_f32(program));
  CHECK(count(program, "fused_columns") == 1);
}

TEST_CASE("what others read too is stored, and so is what is read once more than it saves", "[passes]") {
  CHECK(stores_f32(check_inlined(norm + "return h = %h\nreturn g = %g\n")));
  // Two arrays are read for one of the same size.
  const std::string two = R"(batch %a:f32[1024,64]{a}
batch %b:f32[1024,64]{a}
batch %c:f32[1024,64]{a}
%e = add %a, %b
%k = mul %e, %c
%n = exp %k
%s = reduce_sum[dims=[0]] %n
%sb = broadcast[shape=[1024,64], dims=[1]] %s
%m = mul %n, %sb
%l = add %m, %sb
%t = reduce_sum[dims=[0]] %l
%tb = broadcast[shape=[1024,64], dims=[1]] %t
%o = mul %n, %tb
%h = cast[dtype=bf16] %o
return h = %h
return t = %t
)";
  CHECK(stores_f32(check_inlined(two)));
}

TEST_CASE("sums of columns keep an operand with all elements", "[passes]") {
  const Program program = check_inlined(R"(batch %r:f32[40000]{a}
batch %c:f32[2]{a}
%rb = broadcast[shape=[40000,2], dims=[0]] %r
%cb = broadcast[shape=[40000,2], dims=[1]] %c
%m = lt %rb, %cb
%f = cast[dtype=f32] %m
%s = reduce_sum[dims=[0]] %f
%sb = broadcast[shape=[40000,2], dims=[1]] %s
%d = select %m, %sb, %cb
%t = reduce_sum[dims=[0]] %d
return s = %s
return t = %t
)");
  CHECK(count(program, "fused_columns") > 0);
}

TEST_CASE("a chain that a broadcast or an op that is no chain reads stays", "[passes]") {
  const auto same = [](const std::string& lines) {
    const std::string inputs = "batch %dy:bf16[1024,64]{a}\nbatch %x:bf16[1024,64]{a}\nbatch %v:f32[64]{a}\n";
    const Program before = fuse_columns(*fused(*test::program_of(inputs + lines, {{"a", 2}})));
    return to_text(inline_chains(before)) == to_text(before);
  };
  CHECK(same("%e = exp %x\n%n = neg %e\n%m = matmul[transpose_a=false, transpose_b=true] %n, %x\nreturn m = %m\n"));
  CHECK(
      same("%e = exp %v\n%n = neg %e\n%b = broadcast[shape=[1024,64], dims=[1]] %n\n%f = cast[dtype=f32] %x\n"
           "%y = mul %f, %b\nreturn y = %y\n"));
}

}  // namespace pmaptrain
