#include "core/passes/gather_batch.h"

#include <string>

#include "core/graph/text.h"
#include "tests/catch.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {

TEST_CASE("a gathered batch is taken by row number from data in the place of the batch inputs", "[passes]") {
  const auto before = test::program_of(R"(mesh a=2
params %w:f32[2]{}
batch %inputs:u8[3,2]{a}
batch %targets:i32[3]{a}
batch %mask:f32[3]{a}
hyper %rate:f32[]{}
%x = cast[dtype=f32] %inputs
%r = mul %mask, %rate
return x = %x
return t = %targets
return r = %r
)");
  constexpr std::string_view names[] = {"inputs", "targets"};
  const Program after = gather_batch(*before, names, "data/train", 9);
  const std::string text = to_text(after);
  CHECK(text == R"(mesh a=2
params %w:f32[2]{}
data %data/train/inputs:u8[9,2]{}
data %data/train/targets:i32[9]{}
batch %mask:f32[3]{a}
hyper %rate:f32[]{}
batch %examples:i32[3]{a}
%0:u8[9,2]{a} = pvary[axes={a}] %data/train/inputs
%1:u8[3,2]{a} = gather %0, %examples
%2:i32[9]{a} = pvary[axes={a}] %data/train/targets
%3:i32[3]{a} = gather %2, %examples
%4:f32[3,2]{a} = cast[dtype=f32] %1
%5:f32[]{a} = pvary[axes={a}] %rate
%6:f32[3]{a} = mul %mask, %5
return x = %4
return t = %3
return r = %6
)");
  CHECK(to_text(*test::program_of(text)) == text);
}

}  // namespace pmaptrain
