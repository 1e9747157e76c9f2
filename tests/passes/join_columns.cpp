// Sums over rows that are joined with the squared differences from their mean, bit by bit as the interpreter has them.
#include "core/passes/join_columns.h"

#include <string>

#include "core/ops/all.h"
#include "core/passes/fuse_columns.h"
#include "core/passes/pipeline.h"
#include "tests/passes/check_fused.h"

namespace pmaptrain {
namespace {

// How many fused_columns equations there are before, and after the pass.
struct Counts {
  std::int64_t before = 0, after = 0;
  bool operator==(const Counts&) const = default;
};

Counts check_joined(const std::string& text) {
  const auto before = std::make_shared<const Program>(fuse_columns(*fused(*test::program_of(text, {{"a", 2}}))));
  const Program after = join_columns(*before);
  INFO(to_text(*before));
  INFO(to_text(after));
  const test::Values inputs = test::random_inputs(*before, 5);
  require_same(test::interpreted(after, inputs, 2), test::interpreted(*before, inputs, 2), "interpreted");
  CHECK(to_text(parse_program(to_text(after), "again.pmt", all_ops(), {})) == to_text(after));
  CHECK(traffic(after) <= traffic(*before));
  return {count(*before, "fused_columns"), count(after, "fused_columns")};
}

// The mean over the rows that a weight selects; `divisor` is what the mean divides by.
std::string begin(const std::string& divisor = "%n") {
  return R"(batch %x:bf16[600,4]{a}
batch %w:f32[600]{a}
batch %n:f32[4]{a}
batch %u:f32[600,4]{a}
%zero = constant[dtype=f32, shape=[], value=0]
%z = pvary[axes={a}] %zero
%i = gt %w, %z
%ib = broadcast[shape=[600,4], dims=[0]] %i
%c = cast[dtype=f32] %x
%k = select %ib, %c, %z
%s = reduce_sum[dims=[0]] %k
%count = reduce_sum[dims=[0]] %w
%nn = broadcast[shape=[4], dims=[]] %count
%m = div %s, )" +
         divisor + "\n%mb = broadcast[shape=[600,4], dims=[1]] %m\n";
}

const std::string squares = R"(%d = sub %c, %mb
%e = mul %d, %d
%q = select %ib, %e, %z
%v = reduce_sum[dims=[0]] %q
return v = %v
)";

}  // namespace

TEST_CASE("a mean and the squared differences from it are one equation", "[passes]") {
  CHECK(check_joined(begin() + squares) == Counts{2, 1});
  CHECK(check_joined(begin() + squares + "return m = %m\nreturn s = %s\n") == Counts{2, 1});
  // What stands between them goes inside, here a mean that divides by a number that is known later than the sum.
  CHECK(check_joined(begin("%nn") + squares + "return m = %m\n") == Counts{2, 1});
  // Without a selection.
  CHECK(check_joined(begin() + "%d = sub %c, %mb\n%e = mul %d, %d\n%v = reduce_sum[dims=[0]] %e\nreturn v = %v\n") ==
        Counts{2, 1});
}

TEST_CASE("sums of anything else that needs a sum stay apart", "[passes]") {
  const auto with = [](const std::string& lines) {
    return check_joined(begin() + lines + "%v = reduce_sum[dims=[0]] %q\nreturn v = %v\n");
  };
  CHECK(with("%d = sub %c, %mb\n%q = abs %d\n") == Counts{2, 2});
  CHECK(with("%d = sub %mb, %c\n%q = mul %d, %d\n") == Counts{2, 2});
  CHECK(with("%d = sub %c, %mb\n%q = mul %d, %u\n") == Counts{2, 2});
  // A selection of something else than zeros.
  CHECK(with("%d = sub %c, %mb\n%e = mul %d, %d\n%q = select %ib, %e, %c\n") == Counts{2, 2});
  // The mean has gone through what is no chain over the columns.
  CHECK(check_joined(begin() + R"(%all = psum[axes={a}] %m
%back = pvary[axes={a}] %all
%b = broadcast[shape=[600,4], dims=[1]] %back
%d = sub %c, %b
%q = mul %d, %d
%v = reduce_sum[dims=[0]] %q
return v = %v
)") == Counts{2, 2});
  // The second one reads no array of the first.
  CHECK(with("%d = sub %u, %mb\n%q = mul %d, %d\n") == Counts{2, 2});
}

TEST_CASE("sums are joined in the body of a loop, and by the passes for GPUs", "[passes]") {
  const std::string text = R"(batch %x:f32[1800,4]{a}
batch %z:f32[4]{a}
%s = loop[iterations=3, consts=0, carries=1] %z, %x (%c:f32[4]{a}, %y:f32[600,4]{a}) {
  %e = exp %y
  %t = reduce_sum[dims=[0]] %e
  %m = mul %t, %c
  %b = broadcast[shape=[600,4], dims=[1]] %m
  %d = sub %e, %b
  %q = mul %d, %d
  %v = reduce_sum[dims=[0]] %q
  yield %v
}
return s = %s
)";
  const auto before = fused(*test::program_of(text, {{"a", 2}}));
  const Program after = run_passes(*before, passes_of_gpus());
  INFO(to_text(after));
  std::int64_t found = 0;
  for_each_equation(after.equations,
                    [&](const Equation& equation) { found += equation.op.name() == "fused_columns" ? 1 : 0; });
  CHECK(found == 1);
  const test::Values inputs = test::random_inputs(*before, 5);
  require_same(test::interpreted(after, inputs, 2), test::interpreted(*before, inputs, 2), "interpreted");
}

}  // namespace pmaptrain
