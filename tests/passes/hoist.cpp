#include "core/passes/hoist.h"

#include <string>

#include "core/graph/passes.h"
#include "core/graph/text.h"
#include "core/ops/all.h"
#include "core/passes/sink_pvary.h"
#include "tests/catch.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {
namespace {

// The text after the pass, of a program whose values it must not change.
std::string hoisted(const std::string& text) {
  const auto before = test::program_of(text);
  const Program after = hoist(simplify(*before));
  const test::Values inputs = test::random_inputs(*before, 3);
  const bool same = test::interpreted(after, inputs, 2) == test::interpreted(*before, inputs, 2);
  CHECK(same);
  return to_text(after);
}

// A loop over %c, to which `body` adds %t, of `shape` as %c: both are read by what the loop carries.
std::string with_const(const std::string& shape, const std::string& body, const std::string& last) {
  return "state %sum:f32[]{}\nparams %c:f32" + shape +
         "{}\n%s = loop[iterations=3, consts=1, carries=1] %c, %sum (%d:f32" + shape + "{}, %k:f32[]{}) {\n" + body +
         "\n  %ts = reduce_sum[dims=[0]] %t\n  %u = mul %ts, %k\n  %n = reduce_sum[dims=[0]] %u\n" + last +
         "}\nupdate %sum = %s\n";
}
const std::string reads_both = "  %ds = mul %d, %k\n  %e = reduce_sum[dims=[0,1]] %ds\n  %f = add %n, %e\n  yield %f\n";
const std::string reads_result = "  yield %n\n";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
// Whether `op` stands in a region.
bool is_inside(const std::string& text, const std::string& op) {
  for (std::size_t at = text.find(" = " + op); at != std::string::npos; at = text.find(" = " + op, at + 1)) {
    if (text[text.rfind('\n', at) + 1] == ' ') return true;
  }
  return false;
}

TEST_CASE("what is the same in every iteration is computed before the loop", "[passes]") {
  CHECK(hoisted(R"(
params %w:f32[2,3]{}
state %sum:f32[2]{}
batch %x:f32[8,3]{}
%s = loop[iterations=4, consts=1, carries=1] %w, %sum, %x (%c:f32[2,3]{}, %k:f32[2]{}, %p:f32[2,3]{}) {
  %t = transpose[permutation=[1,0]] %c
  %half = constant[dtype=f32, shape=[], value=0.5]
  %h = mul %t, %half
  %y = matmul %p, %h
  %z = reduce_sum[dims=[0]] %y
  %n = add %k, %z
  yield %n
}
update %sum = %s
)") == R"(params %w:f32[2,3]{}
state %sum:f32[2]{}
batch %x:f32[8,3]{}
%0:f32[3,2]{} = transpose[permutation=[1,0]] %w
%1:f32[]{} = constant[dtype=f32, shape=[], value=0.5]
%2:f32[3,2]{} = mul %0, %1
%3:f32[2]{} = loop[iterations=4, consts=1, carries=1] %2, %sum, %x (%4:f32[3,2]{}, %5:f32[2]{}, %6:f32[2,3]{}) {
  %7:f32[2,2]{} = matmul[transpose_a=false, transpose_b=false] %6, %4
  %8:f32[2]{} = reduce_sum[dims=[0]] %7
  %9:f32[2]{} = add %5, %8
  yield %9
}
update %sum = %3
)");
}

TEST_CASE("a large result leaves a loop only where its operand is not needed there any more", "[passes]") {
  const std::string transpose = "  %t = transpose[permutation=[1,0]] %d";
  const std::string alone = hoisted(with_const("[100,80]", transpose, reads_result));
  INFO(alone);
  CHECK(!is_inside(alone, "transpose"));
  CHECK(contains(alone, "consts=1"));
  const std::string both = hoisted(with_const("[100,80]", transpose, reads_both));
  INFO(both);
  CHECK(is_inside(both, "transpose"));
  CHECK(contains(both, "consts=1"));
}

TEST_CASE("a result of at most 4096 elements leaves a loop though its operand stays", "[passes]") {
  const std::string transpose = "  %t = transpose[permutation=[1,0]] %d";
  CHECK(!is_inside(hoisted(with_const("[64,64]", transpose, reads_both)), "transpose"));
  CHECK(is_inside(hoisted(with_const("[64,65]", transpose, reads_both)), "transpose"));
}

TEST_CASE("a result with more elements than its operands stays in its loop", "[passes]") {
  const std::string twice = hoisted(with_const("[2,3]", "  %t = concatenate[dim=0] %d, %d", reads_both));
  INFO(twice);
  CHECK(is_inside(twice, "concatenate"));
}

TEST_CASE("two results of one operand do not both take its place", "[passes]") {
  const std::string text =
      hoisted(with_const("[100,80]", "  %a = neg %d\n  %b = exp %d\n  %t = sub %a, %b", reads_result));
  INFO(text);
  CHECK(is_inside(text, "neg"));
  CHECK(is_inside(text, "exp"));
}

TEST_CASE("what costs nothing in a loop stays there, and is copied for what leaves", "[passes]") {
  const std::string text = hoisted(R"(
mesh a=2
params %w:f32[3]{}
state %sum:f32[4,3]{}
%begin = pvary[axes={a}] %sum
%s = loop[iterations=4, consts=1, carries=1] %w, %begin (%c:f32[3]{}, %k:f32[4,3]{a}) {
  %v = pvary[axes={a}] %c
  %e = exp %v
  %rows = broadcast[shape=[4,3], dims=[1]] %v
  %more = broadcast[shape=[4,3], dims=[1]] %e
  %m = mul %k, %rows
  %n = add %m, %more
  yield %n
}
return s = %s
)");
  CHECK(text == R"(mesh a=2
params %w:f32[3]{}
state %sum:f32[4,3]{}
%0:f32[4,3]{a} = pvary[axes={a}] %sum
%1:f32[3]{a} = pvary[axes={a}] %w
%2:f32[3]{a} = exp %1
%3:f32[4,3]{a} = loop[iterations=4, consts=2, carries=1] %w, %2, %0 (%4:f32[3]{}, %5:f32[3]{a}, %6:f32[4,3]{a}) {
  %7:f32[3]{a} = pvary[axes={a}] %4
  %8:f32[4,3]{a} = broadcast[shape=[4,3], dims=[1]] %7
  %9:f32[4,3]{a} = broadcast[shape=[4,3], dims=[1]] %5
  %10:f32[4,3]{a} = mul %6, %8
  %11:f32[4,3]{a} = add %10, %9
  yield %11
}
return s = %3
)");
}

TEST_CASE("what leaves an inner loop leaves the outer one too, and an inner loop leaves as a whole", "[passes]") {
  const std::string text = hoisted(R"(
params %w:f32[3]{}
state %sum:f32[3]{}
%s = loop[iterations=2, consts=1, carries=1] %w, %sum (%c:f32[3]{}, %k:f32[3]{}) {
  %power = loop[iterations=3, consts=1, carries=1] %c, %c (%base:f32[3]{}, %now:f32[3]{}) {
    %next = mul %base, %now
    yield %next
  }
  %n = loop[iterations=2, consts=2, carries=1] %power, %c, %k (%p:f32[3]{}, %q:f32[3]{}, %l:f32[3]{}) {
    %r = sub %p, %q
    %next = add %l, %r
    yield %next
  }
  yield %n
}
update %sum = %s
)");
  CHECK(text == R"(params %w:f32[3]{}
state %sum:f32[3]{}
%0:f32[3]{} = loop[iterations=3, consts=1, carries=1] %w, %w (%1:f32[3]{}, %2:f32[3]{}) {
  %3:f32[3]{} = mul %1, %2
  yield %3
}
%4:f32[3]{} = sub %0, %w
%5:f32[3]{} = loop[iterations=2, consts=1, carries=1] %4, %sum (%6:f32[3]{}, %7:f32[3]{}) {
  %8:f32[3]{} = loop[iterations=2, consts=1, carries=1] %6, %7 (%9:f32[3]{}, %10:f32[3]{}) {
    %11:f32[3]{} = add %10, %9
    yield %11
  }
  yield %8
}
update %sum = %5
)");
}

TEST_CASE("a reduction over devices that reads consts alone leaves its loop", "[passes]") {
  const std::string text = hoisted(R"(
mesh a=2
params %w:f32[3]{}
batch %x:f32[3]{a}
state %sum:f32[3]{}
%s = loop[iterations=2, consts=2, carries=1] %x, %w, %sum (%c:f32[3]{a}, %d:f32[3]{}, %k:f32[3]{}) {
  %all = psum[axes={a}] %c
  %n = add %k, %all
  %m = mul %n, %d
  yield %m
}
update %sum = %s
)");
  INFO(text);
  CHECK(!is_inside(text, "psum"));
  CHECK(contains(text, "consts=2, carries=1] %w, %0, %sum"));
}

TEST_CASE("a loop may yield what has left it", "[passes]") {
  const std::string text = hoisted(R"(
params %w:f32[3]{}
state %sum:f32[3]{}
%s = loop[iterations=2, consts=1, carries=1] %w, %sum (%c:f32[3]{}, %k:f32[3]{}) {
  %n = neg %c
  yield %n
}
update %sum = %s
)");
  INFO(text);
  CHECK(!is_inside(text, "neg"));
  CHECK(contains(text, "  yield %2"));
}

TEST_CASE("a cast of a parameter in the loop over microbatches is computed once in a step, for all devices",
          "[passes]") {
  const auto program = test::program_of(R"(
mesh devices=4
params %w:f32[3,2]{}
batch %x:f64[8,3]{devices}
%v = pvary[axes={devices}] %w
%zero = constant[dtype=f64, shape=[2], value=0.0]
%begin = pvary[axes={devices}] %zero
%sum = loop[iterations=2, consts=1, carries=1] %v, %begin, %x (%c:f32[3,2]{devices}, %k:f64[2]{devices}, %p:f64[4,3]{devices}) {
  %d = cast[dtype=f64] %c
  %y = matmul %p, %d
  %z = reduce_sum[dims=[0]] %y
  %n = add %k, %z
  yield %n
}
return sum = %sum
)");
  const std::string text = to_text(sink_pvary(hoist(*program)));
  INFO(text);
  CHECK(contains(text, "%2:f64[3,2]{} = cast[dtype=f64] %w\n%3:f64[3,2]{devices} = pvary[axes={devices}] %2\n"));
  CHECK(!is_inside(text, "cast"));
}

}  // namespace
}  // namespace pmaptrain
