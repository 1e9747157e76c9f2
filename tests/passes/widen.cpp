// Which roundings to bf16 a step leaves out.
#include "core/passes/widen.h"

#include "core/graph/text.h"
#include "core/passes/remove_identities.h"
#include "tests/catch.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {
namespace {

std::string widened(const std::string& text) { return to_text(remove_identities(widen(*test::program_of(text)))); }

TEST_CASE("a product of bf16 that is only cast to f32 is made in f32", "[passes]") {
  CHECK(widened(R"(mesh a=2
params %w:bf16[3,5]{}
batch %x:bf16[4,3]{a}
%v = pvary[axes={a}] %w
%y = matmul %x, %v
%z = cast[dtype=f32] %y
return z = %z
)") == R"(mesh a=2
params %w:bf16[3,5]{}
batch %x:bf16[4,3]{a}
%0:bf16[3,5]{a} = pvary[axes={a}] %w
%1:f32[4,5]{a} = matmul[transpose_a=false, transpose_b=false, preferred_element_type=f32] %x, %0
return z = %1
)");
}

TEST_CASE("a product that is read as bf16 too is rounded for all that read it", "[passes]") {
  const std::string text = widened(R"(mesh a=2
batch %x:bf16[4,3]{a}
%y = reduce_sum[dims=[1]] %x
%z = cast[dtype=f32] %y
return y = %y
return z = %z
)");
  CHECK(text.find("preferred_element_type") == std::string::npos);
  CHECK(text.find("cast[dtype=f32]") != std::string::npos);
}

TEST_CASE("a value of f32 that is rounded only to be cast back stays as it is, inside of loops too", "[passes]") {
  const std::string text = widened(R"(mesh a=2
batch %x:f32[4,3]{a}
%zero = constant[dtype=f32, shape=[3], value=0.0]
%first = pvary[axes={a}] %zero
%r = loop[iterations=2, consts=0, carries=1] %first, %x (%sum:f32[3]{a}, %rows:f32[2,3]{a}) {
  %s = reduce_sum[dims=[0]] %rows
  %n = cast[dtype=bf16] %s
  %w = cast[dtype=f32] %n
  %next = add %sum, %w
  yield %next
}
return r = %r
)");
  CHECK(text.find("bf16") == std::string::npos);
}

TEST_CASE("a value that is wanted in bf16 is rounded once, before it is read", "[passes]") {
  const std::string text = widened(R"(mesh a=2
batch %x:f32[4]{a}
%n = cast[dtype=bf16] %x
%m = neg %n
%w = cast[dtype=f32] %m
return w = %w
)");
  CHECK(text.find("cast[dtype=bf16]") != std::string::npos);
  CHECK(text.find("neg") != std::string::npos);
}

}  // namespace
}  // namespace pmaptrain
