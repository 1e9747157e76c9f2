// Programs whose rows are fused against what they were made from, bit by bit.
#include "core/passes/fuse_rows.h"

#include <string>

#include "core/graph/passes.h"
#include "core/graph/text.h"
#include "core/ops/all.h"
#include "core/ops/fused_rows/fused_rows.h"
#include "core/passes/fuse.h"
#include "tests/catch.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {
namespace {

std::int64_t count_of(const Program& program, std::string_view op) {
  std::int64_t total = 0;
  for_each_equation(program.equations, [&](const Equation& equation) { total += equation.op.name() == op ? 1 : 0; });
  return total;
}

// With rows fused, after the interpreter has given its bits and those of the program without.
Program check_rows(const std::string& text) {
  const Program before = fuse(simplify(*test::program_of(text, {{"a", 2}})));
  Program after = fuse_rows(before);
  INFO(to_text(before));
  INFO(to_text(after));
  const test::Values inputs = test::random_inputs(before, 5);
  const test::Values expected = test::interpreted(before, inputs, 2), found = test::interpreted(after, inputs, 2);
  for (const auto& [name, value] : expected) {
    INFO(name);
    const bool same = found.at(name) == value;
    CHECK(same);
  }
  // What is printed is read again.
  const auto again = parse_program(to_text(after), "again.pmt", all_ops(), {});
  CHECK(to_text(again) == to_text(after));
  return after;
}

const std::string softmax = R"(%m = reduce_max[dims=[1]] %x
%n = stop_gradient %m
%mb = broadcast[shape=[6,10], dims=[0]] %n
%h = sub %x, %mb
%e = exp %h
%z = reduce_sum[dims=[1]] %e
)";

}  // namespace

TEST_CASE("softmax cross-entropy, its derivative and the accuracy of a batch are one equation", "[passes]") {
  const Program program = check_rows("batch %x:f32[6,10]{a}\nbatch %t:i32[6]{a}\n" + softmax + R"(%l = log %z
%o = one_hot[depth=10, dtype=f32] %t
%p = mul %h, %o
%k = reduce_sum[dims=[1]] %p
%y = sub %l, %k
%zb = broadcast[shape=[6,10], dims=[0]] %z
%s = div %e, %zb
%g = sub %s, %o
%best = argmax[dim=1] %x
%right = eq %best, %t
return y = %y
return g = %g
return right = %right
return largest = %m
)");
  INFO(to_text(program));
  REQUIRE(program.equations.size() == 1);
  CHECK(program.equations[0].op.as<ops::FusedRows>()->length == 10);
  CHECK(program.equations[0].operands.size() == 2);
  CHECK(program.equations[0].results.size() == 4);
}

TEST_CASE("rows over two dimensions, and of several, are fused", "[passes]") {
  CHECK(check_rows(R"(batch %x:f32[4,3,5]{a}
%m = reduce_sum[dims=[2]] %x
%b = broadcast[shape=[4,3,5], dims=[0,1]] %m
%y = sub %x, %b
return y = %y
)")
            .equations.size() == 1);
  CHECK(check_rows(R"(batch %x:f32[4,3,5]{a}
%m = reduce_sum[dims=[1,2]] %x
%b = broadcast[shape=[4,3,5], dims=[0]] %m
%y = mul %x, %b
return y = %y
)")
            .equations.size() == 1);
}

TEST_CASE("what is needed between two parts of a softmax keeps them apart", "[passes]") {
  // The matmul reads exponentials, and its result is a part of what they are summed with.
  const Program program = check_rows("batch %x:f32[6,10]{a}\nbatch %w:f32[10,10]{a}\n" + softmax + R"(%q = matmul %e, %w
%zb = broadcast[shape=[6,10], dims=[0]] %z
%r = div %q, %zb
%s = reduce_sum[dims=[1]] %r
return s = %s
)");
  CHECK(count_of(program, "fused_rows") == 2);
  CHECK(count_of(program, "matmul") == 1);
}

TEST_CASE("a vector along the rows, another layout and a lone reduction are no part of fused rows", "[passes]") {
  // As many columns as rows, so that shapes alone do not tell them apart.
  const Program vector = check_rows(R"(batch %x:f32[6,6]{a}
batch %v:f32[6]{a}
%s = reduce_sum[dims=[1]] %x
%e = exp %s
%b = broadcast[shape=[6,6], dims=[1]] %e
%y = add %x, %b
return y = %y
)");
  CHECK(count_of(vector, "fused_rows") == 1);
  CHECK(count_of(vector, "fused") == 1);
  const Program turned = check_rows(R"(batch %x:f32[6,10]{a}
%t = transpose[permutation=[1,0]] %x
%s = reduce_sum[dims=[1]] %t
%b = broadcast[shape=[6,10], dims=[1]] %s
%y = add %x, %b
return y = %y
)");
  CHECK(count_of(turned, "fused_rows") == 0);
  CHECK(count_of(check_rows("batch %x:f32[6,10]{a}\n%s = reduce_sum[dims=[1]] %x\nreturn s = %s\n"), "fused_rows") ==
        0);
}

TEST_CASE("a layer norm with its scale and bias is one equation", "[passes]") {
  const std::string norm = R"(batch %x:f32[6,10]{a}
params %g:f32[10]{}
params %c:f32[10]{}
%s = reduce_sum[dims=[1]] %x
%sb = broadcast[shape=[6,10], dims=[0]] %s
%d = sub %x, %sb
%q = mul %d, %d
%v = reduce_sum[dims=[1]] %q
%vb = broadcast[shape=[6,10], dims=[0]] %v
%h = mul %d, %vb
%gv = pvary[axes={a}] %g
%gb = broadcast[shape=[6,10], dims=[1]] %gv
%cv = pvary[axes={a}] %c
%cb = broadcast[shape=[6,10], dims=[1]] %cv
%k = mul %h, %gb
%y = add %k, %cb
return y = %y
)";
  const Program program = check_rows(norm);
  CHECK(count_of(program, "fused_rows") == 1);
  CHECK(count_of(program, "fused") == 0);
  // A vector that is computed from the rows stands between what computes it and what reads it.
  const Program between = check_rows(R"(batch %x:f32[6,10]{a}
%s = reduce_sum[dims=[1]] %x
%sb = broadcast[shape=[6,10], dims=[0]] %s
%d = sub %x, %sb
%t = reduce_sum[dims=[0]] %d
%b = broadcast[shape=[6,10], dims=[1]] %t
%q = mul %d, %b
%v = reduce_sum[dims=[1]] %q
return v = %v
)");
  CHECK(count_of(between, "fused_rows") == 2);
}

TEST_CASE("constants alone are no rows to fuse, and no vector", "[passes]") {
  check_rows(R"(batch %x:f32[6,10]{a}
%k = constant[dtype=f32, shape=[10], value=3]
%v = pvary[axes={a}] %k
%b = broadcast[shape=[6,10], dims=[1]] %v
%s = reduce_sum[dims=[1]] %x
%sb = broadcast[shape=[6,10], dims=[0]] %s
%d = sub %x, %sb
%y = mul %d, %b
return y = %y
)");
  CHECK(count_of(check_rows(R"(batch %x:f32[6,10]{a}
%k = constant[dtype=f32, shape=[6,10], value=3]
%s = reduce_sum[dims=[1]] %k
%n = neg %s
return n = %n
)"),
                 "fused_rows") == 0);
}

TEST_CASE("few long rows stay separate kernels, many are fused", "[passes]") {
  const auto fused = [](const std::string& rows, const std::string& length) {
    const std::string shape = "[" + rows + "," + length + "]";
    const auto program =
        test::program_of("batch %x:f32" + shape + "{a}\n%s = reduce_sum[dims=[1]] %x\n%b = broadcast[" +
                             "shape=" + shape + ", dims=[0]] %s\n%y = sub %x, %b\nreturn y = %y\n",
                         {{"a", 2}});
    return count_of(fuse_rows(fuse(*program)), "fused_rows") == 1;
  };
  CHECK(fused("2", "1024"));
  CHECK_FALSE(fused("2", "1025"));
  CHECK(fused("1024", "50000"));
  CHECK_FALSE(fused("1", "1024"));
}

TEST_CASE("rows are fused inside of a loop", "[passes]") {
  const Program program = check_rows(R"(batch %x:f32[12,10]{a}
%c = constant[dtype=f32, shape=[], value=0]
%v = pvary[axes={a}] %c
%l = loop[iterations=2, consts=0, carries=1] %v, %x (%acc:f32[]{a}, %r:f32[6,10]{a}) {
  %m = reduce_max[dims=[1]] %r
  %mb = broadcast[shape=[6,10], dims=[0]] %m
  %h = sub %r, %mb
  %e = exp %h
  %z = reduce_sum[dims=[1]] %e
  %s = reduce_sum[dims=[0]] %z
  %n = add %acc, %s
  yield %n
}
return l = %l
)");
  CHECK(count_of(program, "fused_rows") == 1);
  CHECK(count_of(program, "reduce_max") == 1);  // in its region
  CHECK(count_of(program, "reduce_sum") == 2);
}

}  // namespace pmaptrain
