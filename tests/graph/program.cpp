// Program text, checks, passes.
#include <cmath>
#include <limits>
#include <string>

#include "core/graph/check.h"
#include "core/graph/differentiate.h"
#include "core/graph/passes.h"
#include "core/graph/text.h"
#include "core/ops/all.h"
#include "core/ops/list.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/words.h"

namespace pmaptrain {
namespace {

Program parse(const std::string& text, const std::vector<Axis>& mesh = {}) {
  return parse_program(text, "test.pmt", all_ops(), mesh);
}

// The message, its help and its notes.
std::string refusal(const Program& program, std::string_view after = {}) {
  try {
    check(program, after);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST_CASE("a pass that leaves a program with other types than its ops give is told so", "[graph]") {
  const Program good = parse("mesh a=2\nbatch %x:f32[2]{a}\nbatch %z:f32[2]{a}\n%y = add %x, %z\nreturn y = %y\n");
  CHECK(refusal(good) == "accepted");
  const auto with = [&](auto&& change) {
    Program program = good;
    change(program);
    return refusal(program, "a pass");
  };
  CHECK(test::contains(with([](Program& p) { p.types[1].shape = p.inputs[1].layout.logical = {3}; }),
                       "after a pass: add: the shapes of f32[2], f32[3] differ"));
  CHECK(test::contains(with([](Program& p) { p.types[1].varying = {}; }),
                       "add: its operands vary over different axes: {a} and {}"));
  CHECK(test::contains(with([](Program& p) { p.equations[0].results[0] = Value{7}; }), "a value has no type"));
}

TEST_CASE("what an optimization_barrier waits for may vary over other axes than its result", "[graph]") {
  const Program program = parse(R"(mesh a=2 b=2
params %w:f32[3]{b}
batch %x:f32[4,5]{a, b}
%y = optimization_barrier %w, %x
%z = optimization_barrier %x, %w
update %w = %y
return z = %z
)");
  CHECK(program.equations.size() == 2);  // no pvary
  CHECK(program.type(program.equations[0].results.front()).varying == AxisSet::of(1));
  CHECK(program.type(program.equations[1].results.front()).varying == program.mesh.all());
}

TEST_CASE("the text of a program parses back to the same text", "[graph]") {
  const std::string text = R"(mesh rows=2 cols=3
params %w:f64[4,3]{}
state %count:i32[]{}
batch %x:f64[8,4]{rows, cols}
hyper %rate:f64[]{rows}
%0:f64[4,3]{rows, cols} = pvary[axes={rows, cols}] %w
%1:f64[4,3]{} = constant[dtype=f64, shape=[4,3], value=1.0e-08]
%2:f64[4,3]{rows, cols} = pvary[axes={rows, cols}] %1
%3:f64[4,3]{rows, cols} = loop[iterations=2, consts=1, carries=1] %0, %2, %x (%4:f64[4,3]{rows, cols}, %5:f64[4,3]{rows, cols}, %6:f64[4,4]{rows, cols}) {
  %7:f64[4,3]{rows, cols} = matmul[transpose_a=false, transpose_b=false] %6, %4
  %8:f64[4,3]{rows, cols} = add %5, %7
  yield %8
}
%9:f64[4,3]{rows, cols} = ppermute[axes={cols}, pairs=[0:1,1:0]] %3
%10:f64[4,3]{}, %11:f64[4,3]{} = psum[axes={rows, cols}] %9, %3
%12:i32[]{rows} = axis_index[axes={rows}]
%13:f64[4,5]{} = pad[low=[0,1], high=[0,1]] %10
%14:f64[4,3]{} = sub %w, %11
update %w = %14
return padded = %13
return index = %12
return rate = %rate
)";
  CHECK(to_text(parse(text)) == text);
  CHECK(to_text(parse(to_text(parse(text)))) == text);
}

TEST_CASE("numbers that are not finite, and a negative zero, survive the text", "[graph]") {
  const std::string text = R"(%0:f32[2]{} = constant[dtype=f32, shape=[2], value=-.inf]
%1:f32[]{} = constant[dtype=f32, shape=[], value=.nan]
%2:f64[]{} = constant[dtype=f64, shape=[], value=-0.0]
%3:f32[]{} = constant[dtype=f32, shape=[], value=.inf]
return a = %0
return b = %1
return c = %2
return d = %3
)";
  CHECK(to_text(parse(text)) == text);
}

TEST_CASE("a constant with a list of values keeps each exactly", "[graph]") {
  const std::string text = R"(%0:f32[2,3]{} = constant[dtype=f32, shape=[2,3], values=[0.1,-0.0,.nan,-.inf,1.0e-08,3.0]]
%1:i64[2]{} = constant[dtype=i64, shape=[2], values=[-7.0,9007199254740992.0]]
return a = %0
return b = %1
)";
  CHECK(to_text(parse(text)) == text);
}

TEST_CASE("constants are shared where all of their values are the same bits", "[graph]") {
  const Program program = simplify(parse(R"(%a = constant[dtype=f32, shape=[2], values=[0.0,.nan]]
%b = constant[dtype=f32, shape=[2], values=[0.0,.nan]]
%c = constant[dtype=f32, shape=[2], values=[-0.0,.nan]]
%d = constant[dtype=f32, shape=[2], value=0.0]
return a = %a
return b = %b
return c = %c
return d = %d
)"));
  CHECK(program.equations.size() == 3);
  CHECK(program.find_output("a")->value == program.find_output("b")->value);
}

TEST_CASE("an input that is named by a number keeps its name to itself", "[graph]") {
  const std::string text = R"(batch %1:f32[]{}
%0:f32[]{} = neg %1
%2:f32[]{} = add %0, %1
return r = %2
)";
  CHECK(to_text(parse(text)) == text);
}

TEST_CASE("comments, blank lines, spaces and carriage returns mean nothing", "[graph]") {
  CHECK(to_text(parse("# a step\r\n\r\n  mesh a = 2\r\n\tbatch %x : f32[ 2 ] { a } # in\r\n return y=%x")) ==
        "mesh a=2\nbatch %x:f32[2]{a}\nreturn y = %x\n");
  CHECK(to_text(parse("")) == "");
}

TEST_CASE("a mesh from outside replaces sizes of axes and adds axes, innermost unless it names all", "[graph]") {
  CHECK(to_text(parse("mesh a=2\nbatch %x:f32[]{a, b}\n", {{"b", 5}})) == "mesh a=2 b=5\nbatch %x:f32[]{a, b}\n");
  CHECK(to_text(parse("mesh a=2\nbatch %x:f32[]{a, b}\n", {{"b", 5}, {"a", 3}})) ==
        "mesh b=5 a=3\nbatch %x:f32[]{b, a}\n");
  CHECK(to_text(parse("mesh a=2 b=2\nbatch %x:f32[]{a}\n", {{"c", 4}, {"b", 3}})) ==
        "mesh a=2 b=3 c=4\nbatch %x:f32[]{a}\n");
}

TEST_CASE("operands of different sets are varied before a local op", "[graph]") {
  CHECK(to_text(parse("mesh r=2 c=3\nparams %w:f32[]{}\nbatch %x:f32[]{c}\nbatch %t:f32[]{r}\n"
                      "%y = mul %w, %x\n%z = add %y, %t\nreturn z = %z\n")) ==
        R"(mesh r=2 c=3
params %w:f32[]{}
batch %x:f32[]{c}
batch %t:f32[]{r}
%0:f32[]{c} = pvary[axes={c}] %w
%1:f32[]{c} = mul %0, %x
%2:f32[]{r, c} = pvary[axes={r}] %1
%3:f32[]{r, c} = pvary[axes={c}] %t
%4:f32[]{r, c} = add %2, %3
return z = %4
)");
}

TEST_CASE("pmean is one psum and a division of each result by the size of the group", "[graph]") {
  CHECK(to_text(parse("mesh r=2 c=3\nbatch %x:f32[4]{r, c}\nbatch %y:f64[]{c}\n"
                      "%m, %n = pmean[axes={c}] %x, %y\nreturn m = %m\nreturn n = %n\n")) ==
        R"(mesh r=2 c=3
batch %x:f32[4]{r, c}
batch %y:f64[]{c}
%0:f32[4]{r}, %1:f64[]{} = psum[axes={c}] %x, %y
%2:f32[]{} = constant[dtype=f32, shape=[], value=3.0]
%3:f32[]{r} = pvary[axes={r}] %2
%4:f32[4]{r} = div %0, %3
%5:f64[]{} = constant[dtype=f64, shape=[], value=3.0]
%6:f64[]{} = div %1, %5
return m = %4
return n = %6
)");
}

TEST_CASE("a forgotten reduction is refused with the parameter and the axis named", "[graph]") {
  const std::string text =
      "mesh replicas=2 shards=4\nparams %w:f32[3]{}\nstate %m:f32[3]{replicas}\nbatch %x:f32[3]{replicas, shards}\n"
      "%s = psum[axes={replicas}] %x\n";
  const auto message = [&](const std::string& update) {
    try {
      parse(text + update);
    } catch (const Error& error) {
      return error.diagnostics().front().message + " | " + error.diagnostics().front().help;
    }
    return std::string("accepted");
  };
  CHECK(message("update %w = %s\n") ==
        "parameter 'w' would become different on the devices along {shards}: it is f32[3]{}, but what replaces it is "
        "f32[3]{shards} | a reduction is missing: psum or pmean over {shards} before the update (rule 4)");
  CHECK(message("update %m = %x\n") ==
        "state 'm' would become different on the devices along {shards}: it is f32[3]{replicas}, but what replaces it "
        "is f32[3]{replicas, shards} | a reduction is missing: psum or pmean over {shards} before the update (rule 4)");
  CHECK(message("%t = psum[axes={shards}] %s\nupdate %m = %t\n") ==
        "state 'm' is f32[3]{replicas}, but what replaces it is f32[3]{} | rule 4: the value that replaces it must "
        "have exactly its type");
  CHECK(message("%t = psum[axes={shards}] %s\nupdate %w = %t\n") == "accepted");
}

TEST_CASE("the checker finds what a pass did wrong, and shows the equations around", "[graph]") {
  const Program good = parse(
      "batch %x:f32[2]{}\nstate %s:f32[2]{}\n%y = neg %x\n%z = add %y, %s\nupdate %s = %z\n"
      "return y = %y\n");
  CHECK(refusal(good) == "accepted");

  Program program = good;
  std::swap(program.equations[0], program.equations[1]);
  CHECK(refusal(program, "fuse").find("after fuse: %2 is used where no equation before has defined it") !=
        std::string::npos);
  CHECK(refusal(program, "fuse").find("> %3:f32[2]{} = add %2, %1") != std::string::npos);

  program = good;
  program.equations.push_back(program.equations[0]);
  CHECK(refusal(program).find("%2 is defined twice") != std::string::npos);

  program = good;
  program.types[2].shape = {3};
  CHECK(refusal(program).find("the types of the results are not those that neg gives") != std::string::npos);

  program = good;
  program.outputs[0].value = Value{7};
  CHECK(refusal(program).find("output 'y' is a value that no equation defines") != std::string::npos);

  program = good;
  program.inputs[0].next = Value{2};
  CHECK(refusal(program).find("'x' is a batch input: it has no update") != std::string::npos);

  program = good;
  program.inputs[1].name = "x";
  CHECK(refusal(program).find("two inputs are named 'x'") != std::string::npos);

  program = good;
  program.equations[0].regions.emplace_back();
  CHECK(refusal(program).find("neg has no region") != std::string::npos);
}

TEST_CASE("a region sees its own values only, also for the checker", "[graph]") {
  Program program = parse(R"(batch %x:f32[4]{}
batch %s:f32[]{}
%z = loop[iterations=2, consts=0, carries=1] %s, %x (%a:f32[]{}, %b:f32[2]{}) {
  %n = neg %a
  yield %n
}
return z = %z
)");
  CHECK(refusal(program) == "accepted");
  Program outside = program;
  outside.equations[0].regions[0].equations[0].operands[0] = outside.inputs[1].value;
  CHECK(refusal(outside).find("%1 is used where no equation before has defined it") != std::string::npos);
  outside = program;
  outside.equations[0].regions[0].results[0] = outside.inputs[1].value;
  CHECK(refusal(outside).find("the region yields a value that it does not define") != std::string::npos);
  outside = program;
  outside.equations[0].regions.clear();
  CHECK(refusal(outside).find("loop needs a region") != std::string::npos);
}

TEST_CASE("simplify removes what nothing needs and computes equals once, and no more", "[graph]") {
  const Program program = parse(R"(mesh a=2
state %s:f32[2]{a}
batch %x:f32[2]{a}
%dead = exp %x
%1 = neg %x
%2 = neg %x
%3 = add %1, %2
%4 = mul %s, %3
%zero = constant[dtype=f32, shape=[], value=0.0]
%minus = constant[dtype=f32, shape=[], value=-0.0]
%5 = add %4, %zero
%6 = add %5, %minus
%p = psum[axes={a}] %1
%q = psum[axes={a}] %2
%r = sub %p, %q
%l = loop[iterations=2, consts=0, carries=1] %s, %x (%c:f32[2]{a}, %d:f32[1]{a}) {
  %e = neg %c
  %f = neg %c
  %g = exp %d
  %h = add %e, %f
  yield %h
}
update %s = %6
return r = %r
return l = %l
)");
  CHECK(to_text(simplify(program)) == R"(mesh a=2
state %s:f32[2]{a}
batch %x:f32[2]{a}
%0:f32[2]{a} = neg %x
%1:f32[2]{a} = add %0, %0
%2:f32[2]{a} = mul %s, %1
%3:f32[]{} = constant[dtype=f32, shape=[], value=0.0]
%4:f32[]{} = constant[dtype=f32, shape=[], value=-0.0]
%5:f32[]{a} = pvary[axes={a}] %3
%6:f32[2]{a} = add %2, %5
%7:f32[]{a} = pvary[axes={a}] %4
%8:f32[2]{a} = add %6, %7
%9:f32[2]{} = psum[axes={a}] %0
%10:f32[2]{} = sub %9, %9
%11:f32[2]{a} = loop[iterations=2, consts=0, carries=1] %s, %x (%12:f32[2]{a}, %13:f32[1]{a}) {
  %14:f32[2]{a} = neg %12
  %15:f32[2]{a} = add %14, %14
  yield %15
}
update %s = %8
return r = %10
return l = %11
)");
}

TEST_CASE("simplify tells equations apart by every attribute, and takes all that is not a number as one", "[graph]") {
  const std::string text = R"(batch %x:f32[2,2]{}
%0:f32[2]{} = reduce_sum[dims=[0]] %x
%1:f32[2]{} = reduce_sum[dims=[1]] %x
%2:f32[2,2]{} = transpose[permutation=[1,0]] %x
%3:f32[4]{} = reshape[shape=[4]] %x
%4:f32[4,1]{} = reshape[shape=[4,1]] %x
%5:f32[]{} = constant[dtype=f32, shape=[], value=.nan]
%6:f64[]{} = constant[dtype=f64, shape=[], value=.nan]
return a = %0
return b = %1
return c = %2
return d = %3
return e = %4
return f = %5
return g = %6
)";
  CHECK(to_text(simplify(parse(text))) == text);

  Program program;
  Builder b(program, all_ops());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  b.output("a", b.constant(DType::f32, nan));
  b.output("b", b.constant(DType::f32, std::copysign(nan, -1)));
  CHECK(simplify(program).equations.size() == 1);
}

TEST_CASE("synchronise sums over what a value varies over beyond its target, in one bucket for each set", "[graph]") {
  Program program = parse("mesh r=2 c=3\nbatch %x:f32[4]{r, c}\nbatch %y:f32[]{r, c}\nbatch %z:f32[]{c}\n");
  Builder b(program, all_ops());
  const Value x = program.inputs[0].value, y = program.inputs[1].value, z = program.inputs[2].value;
  const AxisSet r = AxisSet::of(0), c = AxisSet::of(1);
  const std::vector<Synchronised> wanted{{x, {}}, {y, r}, {z, c}, {y, {}}};
  const std::vector<Value> values = synchronise(b, wanted);
  REQUIRE(values.size() == 4);
  for (std::size_t i = 0; i < values.size(); ++i) b.output("v" + std::to_string(i), values[i]);
  check(program);
  CHECK(to_text(program) == R"(mesh r=2 c=3
batch %x:f32[4]{r, c}
batch %y:f32[]{r, c}
batch %z:f32[]{c}
%0:f32[]{r} = psum[axes={c}] %y
%1:f32[4]{}, %2:f32[]{} = psum[axes={r, c}] %x, %y
return v0 = %1
return v1 = %0
return v2 = %z
return v3 = %2
)");
}

std::string derivative_error(const std::string& op) {
  Program program = parse("mesh a=2\nbatch %x:f64[2]{a}\n%m = " + op + "\nreturn m = %m\n");
  Builder b(program, all_ops());
  const Value m = program.outputs[0].value;
  const Value seed = b.vary(b.constant(b.type(m).dtype, 1.0, b.type(m).shape), b.type(m).varying);
  try {
    differentiate(b, m, seed, std::vector{program.inputs[0].value});
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST_CASE("a cotangent that reaches pmax or pmin is refused where it stands", "[graph]") {
  CHECK(derivative_error("pmax[axes={a}] %x") ==
        "test.pmt:3:6: error: pmax has no derivative: which device holds the largest value is not differentiable\n"
        "    3 | %m = pmax[axes={a}] %x\n"
        "      |      ^~~~\n"
        "  help: stop_gradient on its operand keeps the derivative from reaching it (rule 3)\n");
  CHECK(derivative_error("pmin[axes={a}] %x").find("pmin has no derivative") != std::string::npos);
  CHECK(derivative_error("stop_gradient %x\n%n = pmax[axes={a}] %m") == "accepted");
}

TEST_CASE("a value that the result does not depend on has a zero cotangent of its exact type", "[graph]") {
  Program program = parse("mesh a=2\nparams %w:f32[3]{}\nbatch %x:f32[2]{a}\n%y = mul %x, %x\nreturn y = %y\n");
  Builder b(program, all_ops());
  const Value y = program.outputs[0].value;
  const Value seed = b.vary(b.constant(DType::f32, 1.0, {2}), AxisSet::of(0));
  const auto gradients = differentiate(b, y, seed, std::vector{program.inputs[0].value, program.inputs[1].value, y});
  REQUIRE(gradients.size() == 3);
  CHECK(to_string(b.type(gradients[0]), program.mesh) == "f32[3]{}");
  CHECK(to_string(b.type(gradients[1]), program.mesh) == "f32[2]{a}");
  CHECK(gradients[2] == seed);
  check(program);
}

std::string manual() { return test::read_text("docs/program.md"); }

TEST_CASE("the programs in docs/program.md are programs", "[graph]") {
  const std::string text = manual();
  const std::string begin = "```\nmesh ";
  int programs = 0;
  for (std::size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1)) {
    const std::size_t first = at + 4;
    CHECK_NOTHROW(parse(text.substr(first, text.find("```", first) - first)));
    ++programs;
  }
  CHECK(programs == 4);
}

template <class... Ops, class F>
void for_each_op(ops::OpList<Ops...>, F f) {
  (f(std::string(Ops::name)), ...);
}

TEST_CASE("docs/program.md has a section or a row for every op", "[graph]") {
  const std::string text = manual();
  for_each_op(ops::AllOps{}, [&](const std::string& name) {
    INFO(name);
    CHECK(text.find("| `" + name + "` |") != std::string::npos);
  });
}

}  // namespace
}  // namespace pmaptrain
