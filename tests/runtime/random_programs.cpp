// Random programs over two axes: what the schedule, the memory plan and the passes make of any mixture of ops.
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "core/graph/passes.h"
#include "core/graph/text.h"
#include "core/passes/pipeline.h"
#include "tests/catch.h"
#include "tests/runtime/program_writer.h"
#include "tests/runtime/programs.h"
#include "tests/slice.h"

namespace pmaptrain {
namespace {

void check_plans(std::shared_ptr<const Program> program, const test::Values& inputs, const test::Values& expected) {
  static test::Turns turns;
  turns.next(2);  // so that an odd number of turns is taken, and the next program has the other pairs
  for (const int workers : {1, 2, 5}) {
    for (const bool private_copies : {false, true}) {
      for (const std::size_t step_by_step : turns.next(2)) {
        INFO("workers " << workers << ", private copies " << private_copies << ", step by step " << step_by_step);
        const bool same =
            test::run_program(program, inputs, {workers, private_copies, 4, step_by_step == 1}) == expected;
        REQUIRE(same);
      }
    }
    // The best kernels, and pieces of other numbers of devices.
    INFO("workers " << workers << ", best kernels");
    const bool same =
        test::run_program(program, inputs, {workers, false, 4, false, KernelChoice::best, 2 + workers}) == expected;
    REQUIRE(same);
  }
  for (std::int64_t blocks = 2; blocks <= program->mesh.devices(); ++blocks) {
    if (program->mesh.devices() % blocks != 0) continue;
    INFO(blocks << " blocks");
    const test::Run how{2, turns.next(2).front() == 1, 4, false, KernelChoice::reference, 8, blocks};
    const bool same = test::run_program(program, inputs, how) == expected;
    REQUIRE(same);
  }
}

// A program on each mesh, and of the others a slice. More, by hand: PMAPTRAIN_RANDOM_PROGRAMS=FIRST:LAST
std::vector<std::uint32_t> seeds_of_programs(DType dtype) {
  std::uint32_t first = 0, last = 40;
  test::Slice slice(8);
  if (const char* range = std::getenv("PMAPTRAIN_RANDOM_PROGRAMS")) {
    const std::string text = range;
    first = static_cast<std::uint32_t>(std::stoul(text));
    last = static_cast<std::uint32_t>(std::stoul(text.substr(text.find(':') + 1)));
    slice = test::Slice(1);
  }
  std::set<std::string> meshes;
  std::vector<std::uint32_t> seeds;
  test::Slice with_sanitizer(test::slices_with_sanitizer(3));
  for (std::uint32_t seed = first; seed < last; ++seed) {
    const std::string text = test::ProgramWriter(seed, dtype).write();
    const bool is_taken = slice.takes(meshes.insert(text.substr(0, text.find('\n'))).second);
    if (is_taken && with_sanitizer.takes()) seeds.push_back(seed);
  }
  return seeds;
}

void check_random_programs(DType dtype, bool with_rows = false) {
  for (const std::uint32_t seed : seeds_of_programs(dtype)) {
    const auto program = test::program_of(test::ProgramWriter(seed, dtype, with_rows).write());
    INFO("seed " << seed << "\n" << to_text(*program));
    const test::Values inputs = test::random_inputs(*program, seed);
    const test::Values expected = test::interpreted(*program, inputs, 4);
    const bool first =
        test::run_program(program, inputs, {2, false, 1, false}) == test::interpreted(*program, inputs, 1);
    REQUIRE(first);
    check_plans(program, inputs, expected);
    Program passed = run_passes(simplify(*program), passes_of_all_backends());
    INFO("after the passes\n" << to_text(passed));
    const bool same = test::interpreted(passed, inputs, 4) == expected;
    REQUIRE(same);
    check_plans(std::make_shared<const Program>(std::move(passed)), inputs, expected);
  }
}

TEST_CASE("random programs over two axes run as the interpreter says, with passes and without", "[runtime]") {
  check_random_programs(DType::i32);
}

TEST_CASE("random programs that replace rows of arrays, some in place, run as the interpreter says", "[runtime]") {
  check_random_programs(DType::i32, true);
}

TEST_CASE("random programs of bf16 run as the interpreter says, with passes and without", "[runtime]") {
  check_random_programs(DType::bf16);
}

// CI repeats this with older vector instructions.
TEST_CASE("library kernels give random programs the interpreter's values, the same for 1 and 3 workers",
          "[runtime][vectors]") {
  for (const DType dtype : {DType::i32, DType::bf16}) {
    for (std::uint32_t seed = 0; seed < 5; ++seed) {
      const auto program = test::program_of(test::ProgramWriter(seed, dtype).write());
      INFO(to_string(dtype) << ", seed " << seed << "\n" << to_text(*program));
      const test::Values inputs = test::random_inputs(*program, seed);
      const test::Values expected = test::interpreted(*program, inputs, 2);
      for (const int workers : {1, 3}) {
        INFO("workers " << workers);
        const bool same =
            test::run_program(program, inputs, {workers, false, 2, false, KernelChoice::best}) == expected;
        CHECK(same);
      }
    }
  }
}

TEST_CASE("memory is not used again while chunks over other axes read the value that was there", "[runtime]") {
  const auto program = test::program_of(R"(mesh a=17 b=1
batch %x:i32[5000]{}
batch %y:i32[5000]{a, b}
batch %i:i32[]{a}
state %s:i32[5000]{}
%same = pvary[axes={a, b}] %x
%first = psum[axes={a, b}] %same
%v = pvary[axes={a}] %first
%large = add %v, %i
%sum = psum[axes={a, b}] %y
%p = psum[axes={a}] %large
%next = mul %p, %sum
update %s = %next
)");
  const test::Values inputs = test::random_inputs(*program, 5);
  check_plans(program, inputs, test::interpreted(*program, inputs, 4));
}

// One step, and several: a value that a plan reads too early may be the step before's.
void check_program(const std::string& text) {
  const auto program = test::program_of(text);
  INFO(to_text(*program));
  const test::Values inputs = test::random_inputs(*program, 5);
  for (const std::int64_t steps : {1, 4}) {
    const test::Values expected = test::interpreted(*program, inputs, steps);
    for (const int workers : {1, 3}) {
      for (const bool private_copies : {false, true}) {
        for (const std::int64_t pieces : {1, 2, 5, 8}) {
          INFO("workers " << workers << ", private " << private_copies << ", steps " << steps << ", pieces " << pieces);
          const bool same =
              test::run_program(program, inputs,
                                {workers, private_copies, steps, false, KernelChoice::reference, pieces}) == expected;
          CHECK(same);
        }
      }
    }
  }
}

TEST_CASE("a row that reads all rows of a value, through a view, waits for them", "[runtime]") {
  check_program(R"(mesh a=2
batch %x:i32[4,2]{a}
%y = add %x, %x
%t = reshape[shape=[2,4]] %y
%z = matmul %y, %t
%m = reduce_max[dims=[0,1]] %z
return max = %m
)");
}

TEST_CASE("the equal rows of a constant inside a loop are as many as a device has", "[runtime]") {
  check_program(R"(mesh a=6
batch %x:i32[6,2]{a}
%z = constant[dtype=i32, shape=[2], value=0]
%zv = pvary[axes={a}] %z
%r = loop[iterations=2, consts=0, carries=1] %zv, %x (%c:i32[2]{a}, %y:i32[3,2]{a}) {
  %k = constant[dtype=i32, shape=[3,2], value=7]
  %m = mul %y, %k
  %s = reduce_sum[dims=[0]] %m
  %t = add %c, %s
  yield %t
}
%g = psum[axes={a}] %r
return g = %g
)");
}

TEST_CASE("sums over rows of two stages may be added", "[runtime]") {
  check_program(R"(mesh a=2
batch %x:i32[4,3]{a}
%g = reduce_sum[dims=[0]] %x
%t = reduce_sum[dims=[0,1]] %x
%m = psum[axes={a}] %t
%y = mul %x, %m
%h = reduce_sum[dims=[0]] %y
%s = add %g, %h
%p = psum[axes={a}] %s
return p = %p
)");
}

TEST_CASE("a carry may vary over fewer axes than its loop", "[runtime]") {
  check_program(R"(mesh a=2 b=3
batch %x:i32[2]{a, b}
state %s:i32[2]{a}
state %w:i32[4]{b}
%r, %v, %n = loop[iterations=2, consts=1, carries=3] %x, %s, %w, %x (%k:i32[2]{a, b}, %c:i32[2]{a}, %d:i32[4]{b}, %e:i32[2]{a, b}) {
  %1 = add %c, %c
  %2 = add %d, %d
  %3 = add %e, %k
  yield %1, %2, %3
}
%q = add %r, %r
%u = neg %v
update %s = %q
update %w = %u
return n = %n
return r = %r
)");
}

TEST_CASE("private copies of what varies over one axis of two are kept apart", "[runtime]") {
  check_program("mesh a=2 b=3\nbatch %x:i32[1]{a}\n%y = add %x, %x\nreturn y = %y\n");
  check_program(
      "mesh a=3 b=2\nbatch %x:i32[4,2]{b}\nparams %w:i32[2]{}\n%y = mul %x, %x\n"
      "%g = reduce_sum[dims=[0]] %y\n%s = psum[axes={b}] %g\n%w2 = add %w, %s\nupdate %w = %w2\n"
      "return y = %y\n");
}

TEST_CASE("the operands of one reduction over some of the axes may have different sets", "[runtime]") {
  const auto program = test::program_of(R"(mesh a=2 b=2
%i = axis_index[axes={a}]
%j = axis_index[axes={b}]
%x = add %i, %j
%p, %q = psum[axes={a}] %x, %i
%r = add %q, %q
%s, %t = psum[axes={a}] %i, %x
return r = %r
return t = %t
)");
  const test::Values expected = test::interpreted(*program, {}, 4);
  const auto first_byte = [](const PerDevice& value) {
    std::vector<int> numbers;
    for (const auto& bytes : value) numbers.push_back(std::to_integer<int>(bytes.front()));
    return numbers;
  };
  CHECK(first_byte(expected.at("output r")) == std::vector<int>{2, 2, 2, 2});
  CHECK(first_byte(expected.at("output t")) == std::vector<int>{1, 3, 1, 3});
  check_plans(program, {}, expected);
}

TEST_CASE("a state of each device becomes a value that varies over one axis, whatever instances a piece has",
          "[runtime]") {
  const auto program = test::program_of(R"(mesh a=2 b=5
batch %x:i32[25000]{b}
batch %y:i32[10000]{a}
state %s:i32[5000]{a, b}
state %t:i32[5000]{a, b}
%inner = psum_scatter[axes={b}, dim=0] %x
%of_inner = pvary[axes={a}] %inner
%outer = psum_scatter[axes={a}, dim=0] %y
%of_outer = pvary[axes={b}] %outer
update %s = %of_inner
update %t = %of_outer
)");
  const test::Values inputs = test::random_inputs(*program, 5);
  const test::Values expected = test::interpreted(*program, inputs, 4);
  check_plans(program, inputs, expected);
  for (int pieces = 1; pieces <= 10; ++pieces) {
    INFO(pieces << " pieces");
    const bool same =
        test::run_program(program, inputs, {1, false, 4, false, KernelChoice::reference, pieces}) == expected;
    CHECK(same);
  }
}

}  // namespace
}  // namespace pmaptrain
