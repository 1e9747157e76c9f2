// Which equations run on rows, from the text of programs alone.
#include "core/analysis/rows.h"

#include <utility>
#include <vector>

#include "core/analysis/row_cut.h"
#include "tests/catch.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {
namespace {

struct Found {
  std::shared_ptr<const Program> program;
  RowFacts rows;

  RowKind of(std::size_t equation, std::size_t result = 0) const {
    return rows.of(program->equations[equation].results[result]);
  }
};

Found rows_of(const std::string& text) {
  const auto program = test::program_of(text);
  return {program, find_row_facts(*program, analyse(*program))};
}

TEST_CASE("a layer keeps rows, and its gradients are sums over them", "[analysis]") {
  const Found found = rows_of(R"(mesh a=2
params %w:f32[4,3]{}
batch %x:f32[8,4]{a}
%y = matmul %x, %w
%z = tanh %y
%g = matmul[transpose_a=true] %x, %z
%b = reduce_sum[dims=[0]] %z
%m = reduce_max[dims=[1]] %z
%s, %t = psum[axes={a}] %g, %b
return s = %s
return t = %t
return m = %m
)");
  CHECK(found.rows.count == 8);
  // The parser puts a pvary of %w first, which is a view of what is complete.
  CHECK(found.of(0) == RowKind::whole);
  CHECK(found.of(1) == RowKind::rows);
  CHECK(found.of(2) == RowKind::rows);
  CHECK(found.of(3) == RowKind::partial);
  CHECK(found.of(4) == RowKind::partial);
  CHECK(found.of(5) == RowKind::rows);
  CHECK(found.of(6) == RowKind::whole);
}

TEST_CASE("a weight that varies with the batch is read whole by each row", "[analysis]") {
  const Found found = rows_of(R"(mesh a=2
params %w:f32[3,5]{a}
params %b:f32[5]{a}
batch %x:f32[4,3]{a}
%y = matmul %x, %w, %b
%z = tanh %y
%m = reduce_sum[dims=[1]] %z
%g = matmul[transpose_a=true] %x, %z
%s = reduce_sum[dims=[0]] %z
return m = %m
return g = %g
return s = %s
)");
  for (std::size_t equation : {0U, 1U, 2U}) CHECK(found.of(equation) == RowKind::rows);
  for (std::size_t equation : {3U, 4U}) CHECK(found.of(equation) == RowKind::partial);
  CHECK(found.rows.of(found.program->inputs[0].value) == RowKind::whole);
}

TEST_CASE("what needs all rows at once is whole, and so is what needs the whole sum", "[analysis]") {
  const Found found = rows_of(R"(mesh a=2
batch %x:f32[8,4]{a}
%y = neg %x
%r = reverse[dims=[0]] %y
%s = reduce_sum[dims=[0]] %y
%e = exp %s
%z = abs %r
return e = %e
return z = %z
)");
  CHECK(found.of(0) == RowKind::rows);
  CHECK(found.of(1) == RowKind::whole);
  CHECK(found.of(2) == RowKind::partial);
  CHECK(found.of(3) == RowKind::whole);
  CHECK(found.of(4) == RowKind::whole);
}

TEST_CASE("a statistic with as many channels as the batch has rows is no value on rows", "[analysis]") {
  // 4 channels and 4 rows. A chain reads all of the mean for each row.
  const Found found = rows_of(R"(mesh a=2
batch %x:f32[4,3,4]{a}
%n = neg %x
%s = reduce_sum[dims=[0,1]] %n
%v = exp %s
%y = fused %v, %n (%c:f32[4]{a}, %r:f32[4,3,4]{a}) {
  %b = broadcast[shape=[4,3,4], dims=[2]] %c
  %d = sub %r, %b
  yield %d
}
return y = %y
)");
  const auto chain = found.program->equations.size() - 1;
  CHECK(found.of(1) == RowKind::partial);
  CHECK(found.of(chain) == RowKind::rows);
  const Region& region = found.program->equations[chain].regions.front();
  CHECK(found.rows.of(region.params[0]) == RowKind::uniform);
  CHECK(found.rows.of(region.params[1]) == RowKind::rows);
}

TEST_CASE("a loop over microbatches runs on the rows of one, and its sums begin with zeros", "[analysis]") {
  const auto loop = [](const std::string& first) {
    return rows_of("mesh a=2\nbatch %x:f32[8,4]{a}\n%zero = constant[dtype=f32, shape=[4], value=" + first +
                   "]\n%s0 = pvary[axes={a}] %zero\n"
                   "%s = loop[iterations=4, consts=0, carries=1] %s0, %x (%c:f32[4]{a}, %y:f32[2,4]{a}) {\n"
                   "  %z = exp %y\n  %1 = reduce_sum[dims=[0]] %z\n  %2 = add %c, %1\n  yield %2\n}\n"
                   "%t = psum[axes={a}] %s\nreturn t = %t\n");
  };
  const Found found = loop("0");
  CHECK(found.rows.count == 2);
  CHECK(found.of(2) == RowKind::partial);
  // What begins with ones would have them once for each piece.
  CHECK(loop("1").rows.count == 0);
}

TEST_CASE("the rows of a broadcast are equal, so any of them will do", "[analysis]") {
  const Found found = rows_of(R"(mesh a=2
params %b:f32[4]{}
batch %x:f32[8,4]{a}
%bb = broadcast[shape=[8,4], dims=[1]] %b
%y = add %x, %bb
return y = %y
)");
  CHECK(found.rows.all_rows_equal[static_cast<std::size_t>(found.program->equations[0].results.front().id)]);
  CHECK(found.of(2) == RowKind::rows);
}

TEST_CASE("work is cut by the rows of most of it, and a program without a batch not at all", "[analysis]") {
  const Found found = rows_of(R"(mesh a=2
batch %x:f32[8,4]{a}
batch %u:f32[300,40]{a}
%y = neg %x
%v = exp %u
return y = %y
return v = %v
)");
  CHECK(found.rows.count == 300);
  CHECK(found.of(0) == RowKind::whole);
  CHECK(found.of(1) == RowKind::rows);
  CHECK(rows_of("mesh a=2\nstate %s:f32[8]{a}\n%t = neg %s\nupdate %s = %t\n").rows.count == 0);
}

// A layer that is divided by columns over `model`, and one that is divided by rows.
std::string divided_layers(const std::string& mesh, const std::string& batch) {
  const std::string spread = batch.empty() ? "optimization_barrier %w" : "pvary[axes={" + batch + "}] %w";
  return "mesh " + mesh + "\nparams %w:f32[4,3]{model}\nbatch %x:f32[8,4]{" + batch + "}\n%v = " + spread + R"(
%z = pvary[axes={model}] %x
%h = matmul %z, %v
%y0 = matmul[transpose_b=true] %h, %v
%y = psum[axes={model}] %y0
%e = sub %y, %x
%b = reduce_sum[dims=[0]] %e
%d = pvary[axes={model}] %e
%g = matmul[transpose_a=true] %d, %h
return b = %b
return g = %g
)";
}

TEST_CASE("rows of examples may vary over more axes than the examples, which may vary over none", "[analysis]") {
  for (const auto& [mesh, batch] :
       {std::pair("model=2", ""), std::pair("data=2 model=2", "data"), std::pair("model=2 data=3", "data")}) {
    INFO(mesh);
    const Found found = rows_of(divided_layers(mesh, batch));
    const Program& program = *found.program;
    CHECK(found.rows.count == 8);
    CHECK(found.rows.axes == program.type(program.inputs[1].value).varying);
    CHECK(found.of(0) == RowKind::whole);  // a weight
    CHECK(found.of(2) == RowKind::rows);   // of each device along `model`
    CHECK(found.of(3) == RowKind::rows);
    CHECK(found.of(4) == RowKind::rows);  // their sum: of the examples
    CHECK(found.of(5) == RowKind::rows);
    CHECK(found.of(6) == RowKind::partial);
    CHECK(found.of(7) == RowKind::rows);  // a view
    CHECK(found.of(8) == RowKind::partial);
    const Facts facts = analyse(program);
    const AxisSet of_examples = found.rows.axes, of_both = program.type(program.equations[2].results[0]).varying;
    CHECK(found.rows.axis_sets(program) == std::vector<AxisSet>{of_both, of_examples});
    // The sums are outputs, of which each device has its own. The weights bound the pieces along `model` as well.
    CHECK(axes_that_bound_pieces(program, facts, found.rows, of_examples) == of_examples);
    CHECK(axes_that_bound_pieces(program, facts, found.rows, of_both) == of_both);
    CHECK(row_access_of(program, facts, found.rows, program.equations[8], 0) == RowAccess::same_rows);

    RowFacts examples = found.rows;
    examples.forget(program, of_both);
    CHECK(examples.axis_sets(program) == std::vector<AxisSet>{of_examples});
    CHECK(examples.of(program.equations[8].results[0]) == RowKind::whole);
  }
}

TEST_CASE("rows that more devices have than those of an operand end where the operand's do", "[analysis]") {
  const Found found = rows_of(R"(mesh data=2 model=2
batch %x:f32[8,4]{data}
%n = neg %x
%v = pvary[axes={model}] %n
%y = exp %v
return y = %y
)");
  const Program& program = *found.program;
  const AxisSet data = AxisSet::of(0), model = AxisSet::of(1);
  CHECK(found.rows.axis_sets(program) == std::vector<AxisSet>{data, data | model});
  CHECK(axes_that_bound_pieces(program, analyse(program), found.rows, data).empty());
  CHECK(axes_that_bound_pieces(program, analyse(program), found.rows, data | model) == model);
}

TEST_CASE("each sum over rows is bounded by what reads it, and by what sums that it is added to are", "[analysis]") {
  const Found found = rows_of(R"(mesh data=2 model=2
params %w:f32[4,3]{model}
batch %x:f32[8,4]{data}
%own = reduce_sum[dims=[0]] %x
%a = reduce_sum[dims=[0]] %x
%b = reduce_sum[dims=[0]] %x
%ab = add %a, %b
%c = reduce_sum[dims=[0]] %x
%d = reduce_sum[dims=[0]] %x
%cd = add %c, %d
%v = pvary[axes={model}] %x
%h = matmul %v, %w
%e = reduce_sum[dims=[0]] %h
%s, %t = psum[axes={data}] %ab, %e
return own = %own
return d = %d
return s = %s
return t = %t
return cd = %cd
)");
  const Program& program = *found.program;
  const std::vector<AxisSet> bounds = axes_that_bound_sums(program, analyse(program), found.rows, {});
  const AxisSet data = AxisSet::of(0), model = AxisSet::of(1), none;
  std::vector<AxisSet> of_sums;
  for (const Equation& equation : program.equations) {
    if (found.rows.of(equation.results[0]) != RowKind::partial) continue;
    of_sums.push_back(bounds[static_cast<std::size_t>(equation.results[0].id)]);
  }
  CHECK(of_sums == std::vector<AxisSet>{data, none, none, none, data, data, data, model});
}

TEST_CASE("what varies over no axis has no example's rows where a batch varies", "[analysis]") {
  const Found found = rows_of(R"(mesh a=2
batch %x:f32[8,4]{a}
batch %u:f32[80,40]{}
%y = neg %x
%v = exp %u
return y = %y
return v = %v
)");
  CHECK(found.rows.count == 8);
  CHECK(found.of(1) == RowKind::whole);
}

}  // namespace
}  // namespace pmaptrain
