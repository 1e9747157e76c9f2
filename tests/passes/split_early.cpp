// Programs whose chains are split against what they were made from, bit by bit.
#include "core/passes/split_early.h"

#include <string>

#include "core/ops/all.h"
#include "core/passes/fuse_rows.h"
#include "tests/passes/check_fused.h"

namespace pmaptrain {
namespace {

// Split, after the interpreter has given its bits and those of the program before.
Program check_split(const std::string& text) {
  const auto before = fused(*test::program_of(text, {{"a", 2}}));
  Program after = split_early(*before);
  INFO(to_text(*before));
  INFO(to_text(after));
  const test::Values inputs = test::random_inputs(*before, 5);
  require_same(test::interpreted(after, inputs, 2), test::interpreted(*before, inputs, 2), "interpreted");
  const auto again = parse_program(to_text(after), "again.pmt", all_ops(), {});
  CHECK(to_text(again) == to_text(after));
  return after;
}

// How many equations read or give an array of all logits, of a batch of weighted sequences.
std::int64_t equations_of_logits(const std::string& batch) {
  std::string text = R"(batch %x:f32[SEQUENCES,5,10]{a}
batch %t:i32[SEQUENCES,5]{a}
batch %w:f32[SEQUENCES]{a}
%m = reduce_max[dims=[2]] %x
%mb = broadcast[shape=[SEQUENCES,5,10], dims=[0,1]] %m
%h = sub %x, %mb
%e = exp %h
%z = reduce_sum[dims=[2]] %e
%o = one_hot[depth=10, dtype=f32] %t
%p = mul %h, %o
%k = reduce_sum[dims=[2]] %p
%l = log %z
%y = sub %l, %k
%s = reduce_sum[dims=[1]] %y
%v = mul %w, %w
%loss = mul %s, %v
%vb = broadcast[shape=[SEQUENCES,5], dims=[0]] %v
%c = div %vb, %z
%cb = broadcast[shape=[SEQUENCES,5,10], dims=[0,1]] %c
%g = mul %e, %cb
%total = reduce_sum[dims=[0]] %loss
return total = %total
return g = %g
)";
  for (std::size_t at = text.find("SEQUENCES"); at != std::string::npos; at = text.find("SEQUENCES")) {
    text.replace(at, 9, batch);
  }
  const Program program = check_split(text);
  const Program rows = fuse_rows(program);
  INFO(to_text(rows));
  std::int64_t large = 0;
  for (const Equation& equation : rows.equations) {
    const auto is_large = [&](Value value) { return numel(rows.type(value)) == 50 * std::stoi(batch); };
    const bool any = std::any_of(equation.operands.begin(), equation.operands.end(), is_large) ||
                     std::any_of(equation.results.begin(), equation.results.end(), is_large);
    large += any ? 1 : 0;
  }
  return large;
}

}  // namespace

TEST_CASE("the softmax, the loss of weighted sequences and the gradient are one equation", "[passes]") {
  CHECK(equations_of_logits("4") == 1);
  CHECK(equations_of_logits("1") == 1);
}

TEST_CASE("a chain that reads no reduction of rows, or nothing else, stays whole", "[passes]") {
  const auto equations_of = [](const std::string& lines) {
    return check_split("batch %x:f32[6,10]{a}\nbatch %w:f32[6]{a}\nbatch %c:f32[10]{a}\n" + lines).equations.size();
  };
  // A reduction of rows and constants.
  CHECK(equations_of("%s = reduce_sum[dims=[1]] %x\n%e = exp %s\n%n = neg %e\nreturn n = %n\n") == 2);
  // A reduction of columns.
  CHECK(equations_of("%s = reduce_sum[dims=[0]] %x\n%v = mul %c, %c\n%n = mul %s, %v\nreturn n = %n\n") == 2);
  // Rows that are too few and too long to be fused, and rows of another length.
  CHECK(equations_of("batch %y:f32[6,4096]{a}\n%s = reduce_sum[dims=[1]] %y\n%v = mul %w, %w\n%n = mul %s, %v\n"
                     "return n = %n\n") == 2);
  // And one that is split.
  CHECK(equations_of("%s = reduce_sum[dims=[1]] %x\n%v = mul %w, %w\n%n = mul %s, %v\nreturn n = %n\n") == 3);
}

}  // namespace pmaptrain
