#include "core/passes/remove_identities.h"

#include "core/graph/text.h"
#include "core/ops/all.h"
#include "tests/catch.h"

namespace pmaptrain {
namespace {

std::string passed(const std::string& text) {
  return to_text(remove_identities(parse_program(text, "test.prog", all_ops())));
}

TEST_CASE("a product with a list of values is not its other factor, though the first is one", "[passes]") {
  const std::string text = passed(R"(
batch %x:f32[2]{}
%scale = constant[dtype=f32, shape=[2], values=[1.0,2.0]]
%y = mul %x, %scale
return y = %y
)");
  CHECK(text.find("mul %x, %") != std::string::npos);
}

TEST_CASE("a product with ones, however they were spread, is its other factor", "[passes]") {
  const std::string text = passed(R"(
mesh batch=2
batch %mask:f32[4]{batch}
%one:f32[]{} = constant[dtype=f32, shape=[], value=1.0]
%seed:f32[]{batch} = pvary[axes={batch}] %one
%ones:f32[4]{batch} = broadcast[shape=[4], dims=[]] %seed
%left:f32[4]{batch} = mul %ones, %mask
%right:f32[4]{batch} = mul %left, %ones
%negative:f32[4]{batch} = neg %right
return negative = %negative
)");
  INFO(text);
  CHECK(text.find("mul") == std::string::npos);
  CHECK(text.find("broadcast") == std::string::npos);
  CHECK(text.find("= neg %mask") != std::string::npos);
}

TEST_CASE("a product with ones stays where it changes the shape, and so do other constants", "[passes]") {
  const std::string text = passed(R"(
batch %scale:f32[]{}
%ones:f32[4]{} = constant[dtype=f32, shape=[4], value=1.0]
%spread:f32[4]{} = mul %ones, %scale
%two:f32[]{} = constant[dtype=f32, shape=[], value=2.0]
%twice:f32[4]{} = mul %spread, %two
return twice = %twice
)");
  INFO(text);
  std::size_t count = 0;
  for (std::size_t at = text.find("mul"); at != std::string::npos; at = text.find("mul", at + 1)) ++count;
  CHECK(count == 2);
}

TEST_CASE("what a program returns or updates with may be such a product", "[passes]") {
  const std::string text = passed(R"(
params %w:f32[3]{}
batch %x:f32[3]{}
%one:f32[]{} = constant[dtype=f32, shape=[], value=1.0]
%next:f32[3]{} = mul %x, %one
update %w = %next
return next = %next
)");
  INFO(text);
  CHECK(text.find("update %w = %x") != std::string::npos);
  CHECK(text.find("return next = %x") != std::string::npos);
}

}  // namespace
}  // namespace pmaptrain
