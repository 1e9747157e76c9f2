#include "core/passes/sink_pvary.h"

#include <string>

#include "core/graph/passes.h"
#include "core/graph/text.h"
#include "core/ops/all.h"
#include "tests/catch.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {
namespace {

// The text after the pass, of a program whose values it must not change.
std::string sunk(const std::string& text) {
  const auto before = test::program_of(text);
  const Program after = sink_pvary(simplify(*before));
  const test::Values inputs = test::random_inputs(*before, 3);
  const bool same = test::interpreted(after, inputs, 2) == test::interpreted(*before, inputs, 2);
  CHECK(same);
  return to_text(after);
}

TEST_CASE("what is computed of replicated values alone is replicated until a varying value meets it", "[passes]") {
  CHECK(sunk(R"(
mesh a=2
params %w:f32[3,4]{}
batch %x:f32[5,3]{a}
%v = pvary[axes={a}] %w
%t = transpose[permutation=[1,0]] %v
%e = exp %t
%y = matmul[transpose_b=true] %x, %e
return y = %y
)") == R"(mesh a=2
params %w:f32[3,4]{}
batch %x:f32[5,3]{a}
%0:f32[4,3]{} = transpose[permutation=[1,0]] %w
%1:f32[4,3]{} = exp %0
%2:f32[4,3]{a} = pvary[axes={a}] %1
%3:f32[5,4]{a} = matmul[transpose_a=false, transpose_b=true] %x, %2
return y = %3
)");
}

TEST_CASE("operands of different sets meet over the axes of both, and vary over the rest afterwards", "[passes]") {
  CHECK(sunk(R"(
mesh a=2 b=3 c=2
params %w:f32[4]{}
batch %x:f32[4]{a}
%v = pvary[axes={a, b, c}] %w
%u = pvary[axes={b}] %x
%t = pvary[axes={c}] %u
%y = add %v, %t
return y = %y
)") == R"(mesh a=2 b=3 c=2
params %w:f32[4]{}
batch %x:f32[4]{a}
%0:f32[4]{a} = pvary[axes={a}] %w
%1:f32[4]{a} = add %0, %x
%2:f32[4]{a, b, c} = pvary[axes={b, c}] %1
return y = %2
)");
}

TEST_CASE("elementwise equations on arrays stay in the chain of the varying values that read them", "[passes]") {
  const std::string begin = R"(
mesh a=2
params %w:f32[4]{}
batch %x:f32[4]{a}
%v = pvary[axes={a}] %w
%e = exp %v
%f = neg %e
%r = reshape[shape=[4]] %f
%y = mul %x, %r
return y = %y
)";
  const std::string in_chain = sunk(begin);
  INFO(in_chain);
  CHECK(in_chain.find("f32[4]{a} = exp") != std::string::npos);
  CHECK(in_chain.find("f32[4]{a} = neg") != std::string::npos);
  // Stored on every device otherwise.
  const std::string stored = sunk(begin + "return f = %f\n");
  INFO(stored);
  CHECK(stored.find("f32[4]{} = exp %w") != std::string::npos);
  CHECK(stored.find("f32[4]{} = neg") != std::string::npos);
}

TEST_CASE("scalars are computed before they vary, whatever reads them", "[passes]") {
  const std::string text = sunk(R"(
mesh a=2
hyper %rate:f32[]{}
batch %x:f32[4]{a}
%v = pvary[axes={a}] %rate
%e = exp %v
%y = mul %x, %e
return y = %y
)");
  INFO(text);
  CHECK(text.find("f32[]{} = exp %rate") != std::string::npos);
}

TEST_CASE("a broadcast stays behind its pvary, and what it repeats does not", "[passes]") {
  const std::string text = sunk(R"(
mesh a=2
params %w:f32[3]{}
batch %x:f32[4,3]{a}
%v = pvary[axes={a}] %w
%e = exp %v
%rows = broadcast[shape=[4,3], dims=[1]] %e
%y = mul %x, %rows
return y = %y
return rows = %rows
)");
  INFO(text);
  CHECK(text.find("f32[3]{} = exp %w") != std::string::npos);
  CHECK(text.find("f32[4,3]{a} = broadcast") != std::string::npos);
}

TEST_CASE("collectives keep their operands, and all results of an equation move", "[passes]") {
  CHECK(sunk(R"(
mesh a=2
params %w:f32[4]{}
%v = pvary[axes={a}] %w
%big, %which = top_k[k=2] %v
%s, %t = psum[axes={a}] %big, %which
return s = %s
return t = %t
)") == R"(mesh a=2
params %w:f32[4]{}
%0:f32[2]{}, %1:i32[2]{} = top_k[k=2] %w
%2:f32[2]{a} = pvary[axes={a}] %0
%3:i32[2]{a} = pvary[axes={a}] %1
%4:f32[2]{}, %5:i32[2]{} = psum[axes={a}] %2, %3
return s = %4
return t = %5
)");
}

TEST_CASE("a pvary sinks inside the region of a loop, whose parameters keep their types", "[passes]") {
  CHECK(sunk(R"(
mesh a=2
params %w:f32[3,3]{}
batch %x:f32[8,3]{a}
%zero = constant[dtype=f32, shape=[3], value=0.0]
%begin = pvary[axes={a}] %zero
%s = loop[iterations=2, consts=1, carries=1] %w, %begin, %x (%c:f32[3,3]{}, %k:f32[3]{a}, %p:f32[4,3]{a}) {
  %v = pvary[axes={a}] %c
  %t = transpose[permutation=[1,0]] %v
  %y = matmul %p, %t
  %z = reduce_sum[dims=[0]] %y
  %n = add %k, %z
  yield %n
}
return s = %s
)") == R"(mesh a=2
params %w:f32[3,3]{}
batch %x:f32[8,3]{a}
%0:f32[3]{} = constant[dtype=f32, shape=[3], value=0.0]
%1:f32[3]{a} = pvary[axes={a}] %0
%2:f32[3]{a} = loop[iterations=2, consts=1, carries=1] %w, %1, %x (%3:f32[3,3]{}, %4:f32[3]{a}, %5:f32[4,3]{a}) {
  %6:f32[3,3]{} = transpose[permutation=[1,0]] %3
  %7:f32[3,3]{a} = pvary[axes={a}] %6
  %8:f32[4,3]{a} = matmul[transpose_a=false, transpose_b=false] %5, %7
  %9:f32[3]{a} = reduce_sum[dims=[0]] %8
  %10:f32[3]{a} = add %4, %9
  yield %10
}
return s = %2
)");
}

}  // namespace
}  // namespace pmaptrain
