// How far chains reach, and how long the search for them takes.
#include <algorithm>
#include <cstdint>
#include <string>

#include "core/graph/passes.h"
#include "core/passes/fuse.h"
#include "tests/catch.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {
namespace {

std::int64_t fused_equations(const Program& program) {
  return std::count_if(program.equations.begin(), program.equations.end(),
                       [](const Equation& equation) { return equation.op.name() == "fused"; });
}

TEST_CASE("the search for chains looks at few equations for each of a deep model", "[passes]") {
  // A layer's gradient meets its activations only through all layers above, and its update meets both.
  constexpr int layers = 100;
  std::string text = "batch %x:f32[8,16]{}\n%h0 = neg %x\n", inputs, forward, backward, update;
  for (int i = 1; i <= layers; ++i) {
    const std::string n = std::to_string(i), below = std::to_string(i - 1);
    inputs += "params %w" + n + ":f32[16,16]{}\nstate %m" + n + ":f32[16,16]{}\n";
    forward += "%y" + n + " = matmul %h" + below + ", %w" + n + "\n%t" + n + " = tanh %y" + n + "\n%s" + n +
               " = mul %y" + n + ", %t" + n + "\n%h" + n + " = add %s" + n + ", %t" + n + "\n";
    backward = "%a" + n + " = mul %d" + n + ", %t" + n + "\n%b" + n + " = mul %a" + n + ", %y" + n + "\n%c" + n +
               " = add %b" + n + ", %d" + n + "\n%g" + n + " = matmul[transpose_a=true] %h" + below + ", %c" + n +
               "\n%d" + below + " = matmul[transpose_b=true] %c" + n + ", %w" + n + "\n" + backward;
    update += "%p" + n + " = add %m" + n + ", %m" + n + "\n%q" + n + " = add %p" + n + ", %g" + n + "\n%v" + n +
              " = sub %w" + n + ", %q" + n + "\nupdate %m" + n + " = %q" + n + "\nupdate %w" + n + " = %v" + n + "\n";
  }
  const std::string top = "%d" + std::to_string(layers) + " = neg %h" + std::to_string(layers) + "\n";
  const auto program = test::program_of(inputs + text + forward + top + backward + update);
  FuseWork work;
  const Program after = fuse(simplify(*program), work);
  CHECK(fused_equations(after) == 3 * layers - 1);
  const auto equations = static_cast<std::int64_t>(program->equations.size());
  CHECK(work.search_visits < 100 * equations);
  CHECK(work.level_visits < 10 * equations);
}

TEST_CASE("a chain reads no more values than a kernel takes", "[passes]") {
  std::string inputs, sums = "%s0 = neg %x0\n";
  constexpr int values = 3000;
  for (int i = 0; i < values; ++i) inputs += "batch %x" + std::to_string(i) + ":f32[]{}\n";
  for (int i = 1; i < values; ++i) {
    const std::string n = std::to_string(i);
    sums += "%s" + n + " = add %s" + std::to_string(i - 1) + ", %x" + n + "\n";
  }
  const auto program = test::program_of(inputs + sums + "return s = %s" + std::to_string(values - 1) + "\n");
  const Program after = fuse(simplify(*program));
  std::size_t most = 0;
  for (const Equation& equation : after.equations) most = std::max(most, equation.operands.size());
  CHECK(most <= 1536);
  CHECK(after.equations.size() <= 3);
}

TEST_CASE("the search for chains looks at few equations for each of many arrays that meet in a scalar", "[passes]") {
  // The norm of all gradients is in the update of each parameter, whose other part needs neither.
  constexpr int parameters = 1000;
  std::string inputs = "batch %n0:f32[]{}\nhyper %r:f32[]{}\n", norms, update;
  for (int i = 1; i <= parameters; ++i) {
    const std::string n = std::to_string(i), before = std::to_string(i - 1);
    inputs += "params %w" + n + ":f32[16,4]{}\nbatch %g" + n + ":f32[16,4]{}\n";
    norms += "%s" + n + " = reduce_max[dims=[0, 1]] %g" + n + "\n%n" + n + " = add %n" + before + ", %s" + n + "\n";
    update += "%a" + n + " = mul %g" + n + ", %n" + std::to_string(parameters) + "\n%b" + n + " = mul %w" + n +
              ", %r\n%c" + n + " = add %a" + n + ", %b" + n + "\n%v" + n + " = sub %w" + n + ", %c" + n +
              "\nupdate %w" + n + " = %v" + n + "\n";
  }
  const auto program = test::program_of(inputs + norms + update);
  FuseWork work;
  const Program after = fuse(simplify(*program), work);
  CHECK(fused_equations(after) == parameters + 1);
  CHECK(work.search_visits < 20 * static_cast<std::int64_t>(program->equations.size()));
}

TEST_CASE("the search for chains looks at few equations for each of many scalars that cannot meet", "[passes]") {
  // A number of each layer is in the input of the next, so none of them is computed together with another.
  constexpr int layers = 200;
  std::string inputs = "batch %h0:f32[8,16]{}\n", forward;
  for (int i = 1; i <= layers; ++i) {
    const std::string n = std::to_string(i), below = std::to_string(i - 1);
    inputs += "params %w" + n + ":f32[16,16]{}\n";
    forward += "%y" + n + " = matmul %h" + below + ", %w" + n + "\n%m" + n + " = reduce_max[dims=[0, 1]] %y" + n +
               "\n%t" + n + " = tanh %m" + n + "\n%s" + n + " = mul %t" + n + ", %m" + n + "\n%b" + n +
               " = broadcast[shape=[8,16], dims=[]] %s" + n + "\n%h" + n + " = add %y" + n + ", %b" + n + "\n";
  }
  const auto program = test::program_of(inputs + forward + "return h = %h" + std::to_string(layers) + "\n");
  FuseWork work;
  fuse(simplify(*program), work);
  CHECK(work.search_visits < 2 * layers * static_cast<std::int64_t>(program->equations.size()));
}

}  // namespace
}  // namespace pmaptrain
