// Facts about programs, from their text alone.
#include "core/analysis/facts.h"

#include "core/analysis/cost.h"
#include "tests/catch.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {
namespace {

// The result `result` of equation number `equation` of the program's own list, from 0.
Value result_of(const Program& program, std::size_t equation, std::size_t result = 0) {
  return program.equations[equation].results[result];
}

TEST_CASE("stages count the collectives before a value, and views have their operand's memory", "[analysis]") {
  const auto program = test::program_of(R"(mesh a=2 b=2
params %w:f32[4,3]{}
batch %x:f32[2,4]{a, b}
%v = pvary[axes={a, b}] %w
%y = matmul %x, %v
%s = psum[axes={a}] %y
%t = psum[axes={b}] %s
%r = reshape[shape=[6]] %t
%z = neg %y
return r = %r
return z = %z
)");
  const Facts facts = analyse(*program);
  CHECK(facts.of(result_of(*program, 1)).collective_depth == 0);
  CHECK(facts.of(result_of(*program, 2)).collective_depth == 1);
  CHECK(facts.of(result_of(*program, 3)).collective_depth == 2);
  CHECK(facts.of(result_of(*program, 5)).collective_depth == 0);
  CHECK(facts.of(result_of(*program, 0)).root == program->inputs[0].value.id);
  CHECK(facts.of(result_of(*program, 4)).root == result_of(*program, 3).id);
  CHECK(facts.of(result_of(*program, 2)).axes == AxisSet::of(1));
}

TEST_CASE("a value lives until the last equation that reads it or a view of it", "[analysis]") {
  const auto program = test::program_of(R"(mesh a=2
batch %x:f32[4]{a}
%y = neg %x
%v = reshape[shape=[2,2]] %y
%z = exp %v
%u = add %z, %z
%w = abs %z
return u = %u
return w = %w
)");
  const Facts facts = analyse(*program);
  const Value y = result_of(*program, 0), z = result_of(*program, 2), u = result_of(*program, 3);
  CHECK(facts.of(y).defined_at == 1);
  CHECK(facts.of(y).last_use == 3);
  CHECK(facts.of(z).last_use == 5);
  CHECK(facts.of(z).uses == 3);
  CHECK(facts.of(u).last_use == 6);  // an output: after the last equation
}

TEST_CASE("what a loop reads from outside lives until its end", "[analysis]") {
  const auto program = test::program_of(R"(mesh a=2
batch %x:f32[8,3]{a}
%c = neg %x
%k = reduce_sum[dims=[0]] %c
%g = loop[iterations=4, consts=1, carries=1] %k, %k, %x (%q:f32[3]{a}, %acc:f32[3]{a}, %rows:f32[2,3]{a}) {
  %r = reduce_sum[dims=[0]] %rows
  %m = mul %r, %q
  %next = add %acc, %m
  yield %next
}
return g = %g
)");
  const Facts facts = analyse(*program);
  const Value k = result_of(*program, 1), r = program->equations[2].regions[0].equations[0].results[0];
  CHECK(facts.of(k).defined_at == 2);
  CHECK(facts.of(k).last_use == 6);
  CHECK(facts.of(r).last_use == 5);
  CHECK(facts.of(program->equations[2].regions[0].params[0]).root == k.id);
}

TEST_CASE("a step's cost counts devices and iterations, and replicated work once", "[analysis]") {
  const auto program = test::program_of(R"(mesh a=4
params %w:f32[10]{}
batch %x:f32[8,3]{a}
%n = neg %w
%zero = constant[dtype=f32, shape=[3], value=0.0]
%c = pvary[axes={a}] %zero
%g = loop[iterations=4, consts=0, carries=1] %c, %x (%acc:f32[3]{a}, %rows:f32[2,3]{a}) {
  %r = reduce_sum[dims=[0]] %rows
  %next = add %acc, %r
  yield %next
}
%s = psum[axes={a}] %g
return n = %n
return s = %s
)");
  const Cost cost = cost_of(*program);
  const double neg = 10, add = 3 * 4 * 4, sum = 6 * 4 * 4;
  CHECK(cost.flops >= neg + add + sum);
  CHECK(cost.flops < neg + add + sum + 50);
  REQUIRE(cost.wire.size() == 1);
  CHECK(cost.wire.front().first == AxisSet::of(0));
}

}  // namespace
}  // namespace pmaptrain
