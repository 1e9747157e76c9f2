// What ranks do for collectives, from the program and the placement alone.
#include "core/analysis/distribute.h"

#include <string>

#include "tests/catch.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {
namespace {

// The steps of each equation for which a rank sends something, one a line: bytes sent and received, or elements.
std::string steps_of(const Program& program, std::int64_t blocks, Placement placement) {
  const Facts facts = analyse(program);
  const RowFacts rows = find_row_facts(program, facts);
  const Distribution distribution(program, facts, rows, Share(program.mesh, blocks, placement));
  std::string text;
  for (const Equation& equation : program.equations) {
    for (const RankStep& step : distribution.steps(equation)) {
      text += step.what + " " +
              (step.elements > 0 ? std::to_string(step.elements)
                                 : std::to_string(step.sent) + " " + std::to_string(step.received)) +
              "\n";
    }
  }
  return text;
}

// A sum of f32[`size`] over all of these axes, and what reads it.
std::string sum_over(const std::string& mesh, const std::string& axes, const std::string& size,
                     const std::string& readers) {
  return "mesh " + mesh + "\nbatch %x:f32[" + size + "]{" + axes + "}\n%s = psum[axes={" + axes + "}] %x\n" + readers;
}

TEST_CASE("ranks get small sums whole, and add large ones in parts that they gather", "[analysis]") {
  const auto small = test::program_of(sum_over("a=4", "a", "100", "return s = %s\n"));
  CHECK(steps_of(*small, 4, {0, 4}) == "sum_blocks 100\nexchange 1200 1200\nsum_tree 100\n");
  // 65,536 elements are 8 chunks.
  const auto large = test::program_of(sum_over("a=4", "a", "65536", "return s = %s\n"));
  CHECK(steps_of(*large, 4, {0, 4}) ==
        "sum_blocks 65536\nexchange[parts] 196608 196608\nsum_tree[parts] 16384\ngather[parts] 196608 196608\n");
  CHECK(steps_of(*large, 4, {0, 1}).empty());
  // Of three ranks with four blocks the last one has two: one subtree.
  CHECK(steps_of(*large, 4, {2, 3}) ==
        "sum_blocks 65536\nexchange[parts] 163840 196608\nsum_tree[parts] 24576\ngather[parts] 196608 163840\n");
  // Of two ranks with six blocks, the first has the subtrees {0, 1} and {2}, the other one {3} and {4, 5}.
  const auto six = test::program_of(sum_over("a=6", "a", "100", "return s = %s\n"));
  CHECK(steps_of(*six, 6, {0, 2}) == "sum_blocks 200\nexchange 800 800\nsum_tree 100\n");
}

TEST_CASE("ranks gather no parts of a sum that devices read by all_slice alone", "[analysis]") {
  const auto steps = [](const std::string& readers) {
    return steps_of(*test::program_of(sum_over("a=2 b=2", "a, b", "65536", readers)), 4, {0, 4});
  };
  const std::string parts = "sum_blocks 65536\nexchange[parts] 196608 196608\nsum_tree[parts] 16384\n";
  const std::string along_all = " = all_slice[axes={a, b}, dim=0] %s\n";
  CHECK(steps("%p" + along_all + "return p = %p\n") == parts);
  CHECK(steps("%p" + along_all + "return p = %p\nreturn s = %s\n") == parts + "gather[parts] 196608 196608\n");
  CHECK(steps("%p = all_slice[axes={a}, dim=0] %s\n%q" + along_all + "return p = %p\nreturn q = %q\n") ==
        parts + "gather[parts] 196608 196608\n");
  // The two ranks that read the same half gather it.
  CHECK(steps("%p = all_slice[axes={b}, dim=0] %s\nreturn p = %p\n") == parts + "gather[parts] 65536 65536\n");
  const auto scatter =
      test::program_of("mesh a=4\nbatch %x:f32[65536]{a}\n%s = psum_scatter[axes={a}, dim=0] %x\nreturn s = %s\n");
  CHECK(steps_of(*scatter, 4, {0, 4}) == parts);
}

TEST_CASE("ranks send the instances that a collective moves to those that lack them", "[analysis]") {
  const auto program = test::program_of(R"(mesh a=2 b=2
batch %x:f32[10]{a, b}
%g = all_gather[axes={b}, dim=0] %x
%p = ppermute[axes={a}, pairs=[0:1]] %x
return g = %g
return p = %p
)");
  CHECK(steps_of(*program, 4, {0, 4}) == "send_receive 120 120\nsend_receive 120 120\n");
  CHECK(steps_of(*program, 4, {1, 2}) == "send_receive 80 80\nsend_receive 80 80\n");
}

}  // namespace
}  // namespace pmaptrain
