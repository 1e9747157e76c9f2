// Loops in the planned runtime against the interpreter, bit by bit.
#include <string>

#include "tests/catch.h"
#include "tests/runtime/programs.h"
#include "tests/slice.h"
#include "tests/words.h"

namespace pmaptrain {
namespace {

using test::check_runtime;

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

TEST_CASE("in loops with collectives, large arrays are updated in chunks, and pieces have rows", "[runtime]") {
  check_on_all_meshes(R"(
batch %x:f32[12,40]{a}
params %w:f32[40,150]{}
state %s:f32[40,150]{}
%t = exp %w
%r, %sum = loop[iterations=3, consts=1, carries=2] %t, %w, %s, %x (%k:f32[40,150]{}, %c:f32[40,150]{}, %d:f32[40,150]{}, %y:f32[4,40]{a}) {
  %v = pvary[axes={a}] %c
  %h = matmul %y, %v
  %g = matmul[transpose_a=true] %y, %h
  %m = psum[axes={a}] %g
  %n = psum[axes={a}] %h
  %half = constant[dtype=f32, shape=[], value=0.0625]
  %1 = mul %m, %half
  %2 = sub %k, %1
  %3 = add %d, %m
  %4 = abs %2
  yield %4, %3
}
%after = add %t, %r
update %w = %r
update %s = %sum
return after = %after
)");
}

TEST_CASE("carries of loops with collectives swap, vary, and are yielded as they are", "[runtime]") {
  check_on_all_meshes(R"(
batch %x:f32[12,2]{a}
state %s:f32[2]{}
%v = reduce_sum[dims=[0]] %x
%r, %n, %u, %same = loop[iterations=5, consts=0, carries=4] %s, %s, %v, %s (%c:f32[2]{}, %d:f32[2]{}, %e:f32[2]{a}, %f:f32[2]{}) {
  %m = psum[axes={a}] %e
  %1 = add %m, %c
  %2 = neg %1
  %p = pvary[axes={a}] %2
  %3 = add %e, %p
  yield %d, %2, %3, %f
}
%rv = add %r, %n
%all = psum[axes={a}] %u
update %s = %same
return rv = %rv
return all = %all
)");
}

TEST_CASE("rows that vary over some axes only are read from private copies, too", "[runtime]") {
  // In a loop with collectives, without a loop, and as a constant and a slice of a loop on rows.
  for (const char* mesh : {"mesh a=2 b=2\n", "mesh b=3 a=2\n", "mesh a=2 b=2 c=2\n"}) {
    check_runtime(mesh + std::string(R"(
batch %x:f32[12,4]{a}
state %s:f32[4]{}
state %t:f32[12,4]{a}
%r = loop[iterations=3, consts=0, carries=1] %s, %x (%c:f32[4]{}, %y:f32[4,4]{a}) {
  %z = reduce_sum[dims=[0]] %y
  %m = psum[axes={a}] %z
  %e = add %c, %m
  yield %e
}
%y2 = add %x, %t
%k = reduce_sum[dims=[0]] %y2
%all = psum[axes={a}] %k
%zero = constant[dtype=f32, shape=[4], value=0.0]
%v = pvary[axes={a}] %zero
%h = slice[starts=[0,0], limits=[4,4]] %t
%g = loop[iterations=3, consts=1, carries=1] %h, %v, %t (%w:f32[4,4]{a}, %c:f32[4]{a}, %y:f32[4,4]{a}) {
  %p = mul %y, %w
  %z = reduce_sum[dims=[0]] %p
  %e = add %c, %z
  yield %e
}
%sum = psum[axes={a}] %g
update %s = %r
update %t = %y2
return all = %all
return sum = %sum
)"));
  }
}

TEST_CASE("loops with collectives nest, and follow each other", "[runtime]") {
  check_on_all_meshes(R"(
batch %x:f32[12,2]{a}
state %s:f32[2]{}
%r = loop[iterations=3, consts=0, carries=1] %s, %x (%c:f32[2]{}, %y:f32[4,2]{a}) {
  %i = loop[iterations=2, consts=1, carries=1] %c, %c, %y (%k:f32[2]{}, %e:f32[2]{}, %z:f32[2,2]{a}) {
    %1 = reduce_sum[dims=[0]] %z
    %2 = psum[axes={a}] %1
    %3 = sub %2, %e
    %4 = add %3, %k
    yield %4
  }
  %j = loop[iterations=2, consts=0, carries=1] %i, %y (%e:f32[2]{}, %z:f32[2,2]{a}) {
    %1 = reduce_max[dims=[0]] %z
    %2 = pmax[axes={a}] %1
    %3 = sub %2, %e
    yield %3
  }
  %5 = add %j, %c
  yield %5
}
%q = loop[iterations=2, consts=0, carries=1] %r, %x (%e:f32[2]{}, %z:f32[6,2]{a}) {
  %1 = reduce_sum[dims=[0]] %z
  %2 = psum[axes={a}] %1
  %3 = sub %2, %e
  yield %3
}
update %s = %q
return r = %r
)");
}

TEST_CASE("a loop with collectives exchanges and scatters in each iteration", "[runtime]") {
  for (const char* mesh : {"mesh a=4\n", "mesh a=8\n"}) {
    check_runtime(mesh + std::string(R"(
batch %x:f32[16,8]{a}
batch %s:f32[8]{a}
%r = loop[iterations=4, consts=0, carries=1] %s, %x (%c:f32[8]{a}, %y:f32[4,8]{a}) {
  %1 = reduce_sum[dims=[0]] %y
  %2 = add %1, %c
  %3 = ppermute[axes={a}, pairs=[0:1,1:2,2:3,3:0]] %2
  %4 = sub %3, %c
  yield %4
}
return r = %r
)"));
  }
}

TEST_CASE("the new value of a carry that nothing reads may be read by other devices", "[runtime]") {
  check_on_all_meshes(R"(
batch %x:f32[6,2]{a}
state %s:f32[2]{a}
%v = reduce_sum[dims=[0]] %x
%unread, %q = loop[iterations=3, consts=0, carries=2] %v, %s, %x (%c:f32[2]{a}, %d:f32[2]{a}, %y:f32[2,2]{a}) {
  %1 = reduce_max[dims=[0]] %y
  %2 = neg %1
  %3 = ppermute[axes={a}, pairs=[0:0]] %2
  %4 = sub %3, %d
  yield %2, %4
}
update %s = %q
return q = %q
)");
}

TEST_CASE("the plan of a loop with collectives does not grow with its iterations", "[runtime]") {
  const auto plan_of = [](std::int64_t iterations) {
    const std::string n = std::to_string(iterations);
    return cpu::make_plan(test::program_of("mesh a=2\nbatch %x:f32[" + n + R"(]{a}
state %s:f32[1]{}
%r = loop[iterations=)" + n + R"(, consts=0, carries=1] %s, %x (%c:f32[1]{}, %y:f32[1]{a}) {
  %1 = psum[axes={a}] %y
  %2 = add %c, %1
  yield %2
}
update %s = %r
return r = %r
)"));
  };
  const std::int64_t iterations = 6000 / static_cast<std::int64_t>(test::slices_with_sanitizer(10));
  const std::string n = std::to_string(iterations);
  const cpu::Plan two = plan_of(2), many = plan_of(iterations);
  CHECK(two.stages.size() == many.stages.size());
  CHECK(two.transient.worker == many.transient.worker);
  CHECK(two.transient.devices == many.transient.devices);
  CHECK(many.barriers_per_step() > 2 * iterations - 2);
  check_runtime("mesh a=2\nbatch %x:f32[" + n + R"(]{a}
state %s:f32[1]{}
%r = loop[iterations=)" +
                n + R"(, consts=0, carries=1] %s, %x (%c:f32[1]{}, %y:f32[1]{a}) {
  %1 = psum[axes={a}] %y
  %2 = add %c, %1
  yield %2
}
update %s = %r
return r = %r
)");
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
