// Plans as golden text, and what they promise about memory.
#include <set>
#include <string>

#include "core/graph/text.h"
#include "tests/catch.h"
#include "tests/golden.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {
namespace {

const std::string microbatches = R"(mesh a=20
params %w:f32[3,2]{}
state %step:i32[]{}
batch %x:f32[8,3]{a}
hyper %rate:f32[]{}
%v = pvary[axes={a}] %w
%zero = constant[dtype=f32, shape=[3,2], value=0.0]
%g0 = pvary[axes={a}] %zero
%g = loop[iterations=4, consts=1, carries=1] %v, %g0, %x (%k:f32[3,2]{a}, %acc:f32[3,2]{a}, %rows:f32[2,3]{a}) {
  %y = matmul %rows, %k
  %t = tanh %y
  %h = matmul[transpose_a=true] %rows, %t
  %next = add %acc, %h
  yield %next
}
%s = psum[axes={a}] %g
%d = mul %s, %rate
%w2 = sub %w, %d
%one = constant[dtype=i32, shape=[], value=1]
%step2 = add %step, %one
update %w = %w2
update %step = %step2
return norm = %d
)";

const std::string stages = R"(mesh r=2 c=2
state %p:f32[5000]{}
state %q:f32[5000]{}
batch %x:f32[6]{r, c}
%i = axis_index[axes={c}]
%1 = neg %x
%2 = exp %1
%3 = psum[axes={c}] %2
%4 = add %1, %3
%5 = psum[axes={r, c}] %4
%6 = neg %p
%7 = mul %6, %6
update %p = %q
update %q = %7
return five = %5
return i = %i
)";

TEST_CASE("plans are what the golden text says", "[runtime]") {
  std::string all;
  for (const std::string& text : {microbatches, stages}) {
    const auto program = test::program_of(text);
    for (const bool private_copies : {false, true}) {
      all += std::string(private_copies ? "private copies\n" : "shared copies\n") +
             to_text(make_plan(program, {private_copies})) + "\n";
    }
  }
  test::check_golden("plans.txt", all);
}

TEST_CASE("the runtime carries out what the golden plans show", "[runtime]") {
  test::check_runtime(stages);
  const auto program = test::program_of(microbatches);
  const auto inputs = test::random_inputs(*program, 2);
  const auto expected = test::run(program, inputs, {1, false, 2, false, KernelChoice::reference});
  for (const int workers : {2, 3, 5}) {
    for (const bool private_copies : {false, true}) {
      const bool same =
          test::run(program, inputs, {workers, private_copies, 2, true, KernelChoice::reference}) == expected;
      CHECK(same);
    }
  }
}

TEST_CASE("a chain of any length needs the arena of its widest place, and a carry no second copy", "[runtime]") {
  std::string text = "mesh a=8\nbatch %x:f32[1024]{a}\n%v0 = neg %x\n";
  for (int i = 1; i < 30; ++i) text += "%v" + std::to_string(i) + " = exp %v" + std::to_string(i - 1) + "\n";
  text += "%s = reduce_sum[dims=[0]] %v29\n%t = psum[axes={a}] %s\nreturn t = %t\n";
  const Plan plan = make_plan(test::program_of(text));
  CHECK(plan.pools.arena == 4096 * static_cast<std::size_t>(plan.blocks.front().count));
}

TEST_CASE("sixty-four devices hold eight accumulators, not sixty-four", "[runtime]") {
  const auto program = test::program_of("mesh a=64\nbatch %x:f32[100000]{a}\n%s = psum[axes={a}] %x\nreturn s = %s\n");
  const Plan plan = make_plan(program);
  CHECK(plan.blocks.size() == 8);
  CHECK(plan.pools.accumulators == 400000);
  CHECK(plan.pools.total(2, 8) == plan.pools.devices + plan.pools.shared + 2 * plan.pools.worker + 2 * 8 * 400000);
}

TEST_CASE("little work is cut into few blocks, whatever the number of devices", "[runtime]") {
  const auto program = test::program_of("mesh a=64\nbatch %x:f32[8]{a}\n%s = psum[axes={a}] %x\nreturn s = %s\n");
  CHECK(make_plan(program).blocks.size() == 2);
}

TEST_CASE("a weight gradient is one call over the rows of a block", "[runtime]") {
  const auto program = test::program_of(
      "mesh a=8\nbatch %x:f32[4,3]{a}\nbatch %y:f32[4,2]{a}\n%g = matmul[transpose_a=true] %x, %y\n"
      "%b = reduce_sum[dims=[0]] %y\n%s, %t = psum[axes={a}] %g, %b\nreturn s = %s\nreturn t = %t\n");
  const std::string text = to_text(make_plan(program));
  CHECK(text.find("accumulator 0 = matmul[transpose_a=true, transpose_b=false] over the block's rows") !=
        std::string::npos);
  CHECK(text.find("accumulator 1 = reduce_sum[dims=[0]] over the block's rows") != std::string::npos);
  test::check_runtime(to_text(*program), {});
}

}  // namespace
}  // namespace pmaptrain
