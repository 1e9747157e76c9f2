// Loops in the planned runtime against the interpreter, bit by bit.
#include <string>

#include "tests/catch.h"
#include "tests/runtime/programs.h"
#include "tests/words.h"

namespace pmaptrain {
namespace {

using test::check_on_all_meshes;

TEST_CASE("a loop accumulates over slices, and its carries change places", "[runtime]") {
  check_on_all_meshes(R"(
batch %x:f32[6,2]{a}
params %w:f32[2]{}
state %p:f32[2]{a}
state %q:f32[2]{a}
%zero = constant[dtype=f32, shape=[2], value=0.0]
%acc = pvary[axes={a}] %zero
%v = pvary[axes={a}] %w
%r, %p1, %q1, %k = loop[iterations=3, consts=1, carries=4] %v, %acc, %p, %q, %q, %x (%c:f32[2]{a}, %s:f32[2]{a}, %l:f32[2]{a}, %m:f32[2]{a}, %o:f32[2]{a}, %y:f32[2,2]{a}) {
  %1 = reduce_sum[dims=[0]] %y
  %2 = mul %1, %c
  %3 = add %s, %2
  %4 = add %l, %s
  yield %3, %m, %4, %4
}
%g = psum[axes={a}] %r
%n = sub %w, %g
update %w = %n
update %p = %q1
update %q = %p1
return r = %r
return k = %k
)");
}

TEST_CASE("carries that rotate, that stay, and that read what another has just become", "[runtime]") {
  check_on_all_meshes(R"(
batch %x:f32[4]{a}
batch %y:f32[4]{a}
batch %z:f32[4]{a}
%1, %2, %3, %4, %5 = loop[iterations=5, consts=0, carries=5] %x, %y, %z, %x, %y (%a:f32[4]{a}, %b:f32[4]{a}, %c:f32[4]{a}, %d:f32[4]{a}, %e:f32[4]{a}) {
  %n = add %d, %a
  %m = sub %n, %d
  %o = neg %e
  yield %b, %c, %a, %n, %m
}
return a = %1
return b = %2
return c = %3
return d = %4
return e = %5
)");
}

TEST_CASE("a loop within a loop", "[runtime]") {
  check_on_all_meshes(R"(
batch %x:f32[4,2]{a}
batch %s:f32[2]{a}
%r, %u = loop[iterations=2, consts=1, carries=2] %x, %s, %s, %x (%all:f32[4,2]{a}, %c:f32[2]{a}, %d:f32[2]{a}, %y:f32[2,2]{a}) {
  %t = neg %c
  %i = loop[iterations=2, consts=2, carries=1] %t, %d, %c, %y (%k:f32[2]{a}, %k2:f32[2]{a}, %e:f32[2]{a}, %z:f32[1,2]{a}) {
    %1 = reduce_sum[dims=[0]] %z
    %2 = add %e, %1
    %3 = sub %2, %k
    %4 = add %3, %k2
    yield %4
  }
  %5 = reduce_sum[dims=[0]] %all
  %6 = add %i, %5
  %7 = add %d, %t
  yield %6, %7
}
return r = %r
return u = %u
)");
}

TEST_CASE("a loop over what is the same on every device runs in every worker", "[runtime]") {
  check_on_all_meshes(R"(
state %s:f32[2]{}
batch %w:f32[4,2]{}
batch %big:f32[2,5000]{}
%r = loop[iterations=2, consts=1, carries=1] %big, %s, %w (%b:f32[2,5000]{}, %c:f32[2]{}, %y:f32[2,2]{}) {
  %1 = reduce_sum[dims=[0]] %y
  %2 = reduce_max[dims=[1]] %b
  %3 = add %c, %1
  %4 = add %3, %2
  yield %4
}
update %s = %r
return r = %r
)");
}

TEST_CASE("collectives inside loops run, loops around them and beside them included", "[runtime]") {
  check_on_all_meshes(R"(
batch %x:f32[12,2]{a}
state %s:f32[2]{}
params %w:f32[2]{}
%r, %n = loop[iterations=3, consts=1, carries=2] %w, %s, %s, %x (%k:f32[2]{}, %c:f32[2]{}, %d:f32[2]{}, %y:f32[4,2]{a}) {
  %z = reduce_sum[dims=[0]] %y
  %inner = loop[iterations=2, consts=0, carries=1] %z, %y (%e:f32[2]{a}, %v:f32[2,2]{a}) {
    %1 = reduce_max[dims=[0]] %v
    %2 = add %e, %1
    yield %2
  }
  %m = psum[axes={a}] %inner
  %3 = add %m, %c
  %4 = sub %3, %k
  yield %d, %4
}
update %s = %r
return r = %r
return n = %n
)");
}

TEST_CASE("a loop with collectives that would be too long written out is refused in words", "[runtime]") {
  const auto program = test::program_of(R"(mesh a=2
batch %x:f32[60000]{a}
state %s:f32[1]{}
%r = loop[iterations=60000, consts=0, carries=1] %s, %x (%c:f32[1]{}, %y:f32[1]{a}) {
  %1 = psum[axes={a}] %y
  %2 = add %c, %1
  yield %2
}
return r = %r
)");
  CHECK(test::refusal([&] { cpu::make_plan(program); }, ExitStatus::usage) ==
        "a loop with a collective is written out for its iterations, here in more than 100,000 equations | "
        "fewer iterations, or a reduction after the loop (rule 7)");
}

TEST_CASE("a loop that no plan can run is refused in words", "[runtime]") {
  const auto program = test::program_of(R"(mesh a=2
batch %x:f32[4]{a}
batch %s:f32[2]{}
%r = loop[iterations=2, consts=0, carries=1] %s, %x (%c:f32[2]{}, %y:f32[2]{a}) {
  %1 = neg %y
  yield %c
}
return r = %r
)");
  CHECK(test::refusal([&] { cpu::make_plan(program); }, ExitStatus::usage) ==
        "loop: a carry of type f32[2]{} is the same on every device, in a loop over values that vary | "
        "pvary the carry before the loop (rule 7)");
}

}  // namespace
}  // namespace pmaptrain
