#include "core/passes/fuse_epilogues.h"

#include "core/graph/text.h"
#include "core/ops/all.h"
#include "tests/catch.h"

namespace pmaptrain {
namespace {

std::string fused(const std::string& text) {
  return to_text(fuse_epilogues(parse_program(text, "test.prog", all_ops())));
}

TEST_CASE("relu goes into the convolution or the product that nobody else reads", "[passes]") {
  CHECK(fused(R"(batch %x:f32[1,4,4,1]{}
params %k:f32[3,3,1,2]{}
params %b:f32[2]{}
params %w:f32[8,3]{}
%0:f32[1,2,2,2]{} = conv[strides=[1,1], padding=[0:0,0:0]] %x, %k, %b
%1:f32[1,2,2,2]{} = relu %0
%2:f32[1,8]{} = reshape[shape=[1,8]] %1
%3:f32[1,3]{} = matmul[transpose_a=false, transpose_b=false] %2, %w
%4:f32[1,3]{} = relu %3
update %k = %k
update %b = %b
update %w = %w
return y = %4
return h = %1
)") == R"(batch %x:f32[1,4,4,1]{}
params %k:f32[3,3,1,2]{}
params %b:f32[2]{}
params %w:f32[8,3]{}
%0:f32[1,2,2,2]{} = conv[strides=[1,1], padding=[0:0,0:0], relu=true] %x, %k, %b
%1:f32[1,8]{} = reshape[shape=[1,8]] %0
%2:f32[1,3]{} = matmul[transpose_a=false, transpose_b=false, relu=true] %1, %w
update %k = %k
update %b = %b
update %w = %w
return y = %2
return h = %0
)");
}

TEST_CASE("a value that something else needs keeps its own relu", "[passes]") {
  const std::string text = R"(batch %a:f32[2,3]{}
batch %b:f32[3,2]{}
%0:f32[2,2]{} = matmul[transpose_a=false, transpose_b=false] %a, %b
%1:f32[2,2]{} = relu %0
return y = %1
return z = %0
)";
  CHECK(fused(text) == text);
}

TEST_CASE("the mask of relu goes into the gradient of pooling, and the sum of pixels beside the kernel's gradient",
          "[passes]") {
  CHECK(fused(R"(batch %image:f32[1,4,4,1]{}
batch %x:f32[1,4,4,2]{}
batch %dy:f32[1,2,2,2]{}
%0:f32[1,4,4,2]{} = max_pool_grad[window=[2,2], strides=[2,2], padding=[0:0,0:0]] %x, %dy
%1:f32[]{} = constant[dtype=f32, shape=[], value=0]
%2:bool[1,4,4,2]{} = gt %x, %1
%3:f32[1,4,4,2]{} = select %2, %0, %1
%4:f32[1,1,1,2]{} = conv_kernel_grad[strides=[1,1], padding=[0:0,0:0], kernel_shape=[1,1,1,2]] %image, %3
%5:f32[2]{} = reduce_sum[dims=[0,1,2]] %3
return dk = %4
return db = %5
)") == R"(batch %image:f32[1,4,4,1]{}
batch %x:f32[1,4,4,2]{}
batch %dy:f32[1,2,2,2]{}
%0:f32[1,4,4,2]{} = max_pool_grad[window=[2,2], strides=[2,2], padding=[0:0,0:0], relu=true] %x, %dy
%1:f32[1,1,1,2]{}, %2:f32[2]{} = conv_kernel_grad[strides=[1,1], padding=[0:0,0:0], kernel_shape=[1,1,1,2], bias=true] %image, %0
return dk = %1
return db = %2
)");
}

TEST_CASE("a mask by another value, or against another bound, stays a select", "[passes]") {
  for (const std::string operand : {"%z, %1", "%x, %5"}) {
    const std::string text = R"(batch %x:f32[1,4,4,2]{}
batch %z:f32[1,4,4,2]{}
batch %dy:f32[1,2,2,2]{}
%0:f32[1,4,4,2]{} = max_pool_grad[window=[2,2], strides=[2,2], padding=[0:0,0:0]] %x, %dy
%1:f32[]{} = constant[dtype=f32, shape=[], value=0]
%5:f32[]{} = constant[dtype=f32, shape=[], value=1]
%2:bool[1,4,4,2]{} = gt )" + operand +
                             R"(
%3:f32[1,4,4,2]{} = select %2, %0, %1
return dx = %3
)";
    CHECK(fused(text).find("select") != std::string::npos);
    CHECK(fused(text).find("relu") == std::string::npos);
  }
}

}  // namespace
}  // namespace pmaptrain
