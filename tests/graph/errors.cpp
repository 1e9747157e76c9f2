// Every error of program text, verbatim: tests/golden/program_errors.txt.
#include <string>
#include <vector>

#include "core/graph/text.h"
#include "core/ops/all.h"
#include "tests/catch.h"
#include "tests/golden.h"

namespace pmaptrain {
namespace {

const char* const wrong_programs[] = {
    R"(mesh devices=4
batch %x:f32[4]{devices}
%y = psum[axes={device}] %x
)",
    R"(mesh devices=4
batch %x:f32[4]{devics}
)",
    R"(mesh devices=4
batch %x:f32[4]{devices}
%y = psum[axes={rows}] %x
)",
    R"(batch %x:f32[4]{devices}
)",
    R"(mesh devices=4
batch %x:f32[4]{devices}
%y = pmaen[axes={devices}] %x
)",
    R"(mesh devices=4
%y = convolve
)",
    R"(batch %x:f32[4]{}
%y = reduce_mean[axes=[0]] %x
)",
    R"(batch %x:f32[4]{}
%y = multiply %x, %x
)",
    R"(mesh devices=4
batch %x:f32[4]{devices}
%y = psum[axis={devices}] %x
)",
    R"(batch %x:f32[4]{}
%y = neg[axes={}] %x
)",
    R"(batch %x:f32[4]{}
%y = slice[start=[0], limits=[2]] %x
)",
    R"(batch %x:f32[4]{}
%y = reshape[shape=[4], shape=[2,2]] %x
)",
    R"(batch %total:f32[4]{}
%y = neg %totl
)",
    R"(mesh devices=4
batch %x:f32[4]{devices}
%y:f32[4]{devices} = psum[axes={devices}] %x
)",
    R"(batch %x:f32[4]{}
batch %z:f32[3]{}
%y = add %x, %z
)",
    R"(mesh devices=4
batch %x:f32[4]{}
%y = psum[axes={devices}] %x
)",
    R"(mesh devices=4
batch %x:f32[4]{devices}
%y = psum %x
)",
    R"(batch %x:f16[4]{}
)",
    R"(batch %x:f32[4]{}
batch %x:f32[4]{}
)",
    R"(batch %x:f32[-4]{}
)",
    R"(batch %x:f32[4,
)",
    R"(batch %x:f32[4]{}
%a, %b = neg %x
)",
    R"(batch %x:f32[4]{}
%a = neg %x %x
)",
    R"(batch %x:f32[4]{}
update %x = %x
)",
    R"(state %x:f32[4]{}
%y = neg %x
update %x = %y
update %x = %y
)",
    R"(state %x:f32[4]{}
%y = neg %x
update %y = %y
)",
    R"(batch %x:f32[4]{}
return y = %x
return y = %x
)",
    R"(batch %x:f32[4]{}
%y = neg[later=1, first=2] %x
)",
    R"(mesh a=2 b=2
batch %x:f32[4]{a, b}
%y = all_to_all[axes={a, b}, split=0, concat=0] %x
)",
    R"(mesh a=2
batch %x:f32[4]{a}
%y = ppermute[axes={a}, pairs=[0:1]] %x, %x
)",
    R"(batch %x:f32[4,2]{}
%y = slice[starts=[0], limits=[2]] %x
)",
    R"(batch %x:f32[4,2]{}
%y = pad[low=[0], high=[2]] %x
)",
    R"(batch %x:f32[]{}
batch %i:i32[3]{}
%y = gather %x, %i
)",
    R"(batch %x:f32[4,0]{}
%y = argmax[dim=1] %x
)",
    R"(batch %x:f32[4,4,1]{}
batch %k:f32[2,2,1,1]{}
%y = conv[strides=[1,1], padding=[0:0,0:0]] %x, %k
)",
    R"(batch %key:u32[2]{}
batch %rows:i32[4]{}
%y = random_uniform[shape=[2]] %key, %rows
)",
    R"(batch %key:u32[2]{}
batch %rows:i64[4]{}
%y = random_uniform[shape=[65536,65536]] %key, %rows
)",
    R"(batch %s:f32[]{}
%z = loop[iterations=0, consts=0, carries=1] %s (%a:f32[]{}) {
  yield %a
}
)",
    R"(batch %x:f32[4]{}
%y = fused %x (%a:f32[2]{}) {
  %r = neg %a
  yield %r
}
)",
    R"(batch %x:f32[4]{}
%y = fused %x (%a:f32[4]{}) {
  yield
}
)",
    R"(batch %x:f32[4]{}
%y, %z = fused %x (%a:f32[4]{}) {
  %r = neg %a
  %c = constant[dtype=f32, shape=[], value=1.0]
  yield %r, %c
}
)",
    R"(mesh a=2
batch %x:f32[4]{a}
%y = fused %x (%a:f32[4]{a}) {
  %c = constant[dtype=f32, shape=[4], value=1.0]
  yield %c
}
)",
    R"(batch %x:f32[2,3]{}
%y = fused %x (%a:f32[2,3]{}) {
  %b = broadcast[shape=[2,4,3], dims=[0,2]] %a
  yield %b
}
)",
    R"(mesh a=2 a=3
)",
    R"(mesh a=0
)",
    R"(mesh a=65537
)",
    R"(%c = constant[dtype=f32, shape=[], value=one]
)",
    R"(%c = constant[dtype=i32, shape=[], value=1.5]
)",
    R"(%c = constant[dtype=i64, shape=[], value=9007199254740993]
)",
    R"(%i = iota[dtype=u8, shape=[258], dim=0]
)",
    R"(mesh devices=2
batch %x:i32[]{devices}
%y = pmean[axes={devices}] %x
)",
    R"(mesh devices=2
batch %x:i32[]{devices}
%y = pmean[axis={devices}] %x
)",
    R"(batch %x:f32[4]{}
%s = loop[iterations=2, consts=1, carries=0] %x
)",
    R"(batch %x:f32[4]{}
%z = neg %x (%y:f32[4]{}) {
}
)",
    R"(batch %x:f32[4]{}
batch %s:f32[]{}
%z = loop[iterations=2, consts=0, carries=1] %s, %x (%a:f32[]{}, %b:f32[4]{}) {
  yield %a
}
)",
    R"(batch %x:f32[4]{}
batch %s:f32[]{}
%z = loop[iterations=2, consts=0, carries=1] %s, %x (%a:f32[]{}, %b:f32[2]{}) {
  %c = add %a, %s
  yield %c
}
)",
    R"(batch %x:f32[4]{}
batch %s:f32[]{}
%z = loop[iterations=2, consts=0, carries=1] %s, %x (%a:f32[]{}, %b:f32[2]{}) {
  yield %b
}
)",
    R"(batch %x:f32[4]{}
batch %s:f32[]{}
%z = loop[iterations=2, consts=0, carries=1] %s, %x (%a:f32[]{}, %b:f32[2]{}) {
  yield %a, %a
}
)",
    R"(batch %x:f32[4]{}
batch %s:f32[]{}
%z = loop[iterations=3, consts=0, carries=1] %s, %x (%a:f32[]{}, %b:f32[2]{}) {
  yield %a
}
)",
    R"(batch %x:f32[4]{}
%z = loop[iterations=2, consts=0, carries=1] %x (%a:f32[4]{}) {
  %b = neg %a
)",
    R"(mesh devices=2
params %w:f32[3]{}
batch %x:f32[3]{devices}
%g = mul %w, %x
%n = sub %w, %g
update %w = %n
)",
    R"(mesh devices=2
state %w:f32[3]{}
batch %x:f32[3]{devices}
update %w = %x
)",
    R"(params %w:f32[3]{}
batch %x:f32[2]{}
update %w = %x
)",
    R"(what is this
)",
    R"(%1 = neg
)",
    R"(batch %a:f32[2]{}
%b = matmul[transpose_a=maybe] %a, %a
)",
    R"(mesh devices=2
batch %a:f32[2]{devices}
%b = ppermute[axes={devices}, pairs=[0:1,0:0]] %a
)",
    R"(mesh devices=2
batch %a:f32[2]{devices}
%b = ppermute[axes={devices}, pairs=[0:2]] %a
)",
    R"(mesh devices=2
batch %a:f32[2]{devices}
%b = pvary[axes={devices}] %a
)",
    R"(mesh devices=2
batch %a:f32[3]{devices}
%b = psum_scatter[axes={devices}, dim=0] %a
)",
    R"(mesh devices=2
batch %a:f32[3]{devices}
%b = all_gather[axes={devices}, dim=1] %a
)",
    R"(mesh devices=2
batch %a:f32[3]{devices}
%b = all_to_all[axes={devices}, split=0, concat=0] %a
)",
    R"(mesh devices=2
batch %a:f32[4]{devices}
%b = all_to_all[axes={devices}, split=0, concat=1] %a
)",
    R"(%b = axis_index[axes={}]
)",
    R"(mesh devices=2
batch %a:bool[2]{devices}
%b = psum_scatter[axes={devices}, dim=0] %a
)",
    R"(mesh devices=2
batch %a:bool[2]{devices}
%b = pmax[axes={devices}] %a
)",
    R"(batch %x:f32[2]{}
%y = neg %missing
)",
    R"(%c = constant[dtype=f32, shape=[4294967296,4294967296], value=0.0]
)",
    R"(%c = constant[dtype=f32, shape=[4611686018427387904], value=0.0]
)",
    R"(%c = constant[dtype=f32, shape=[0,4294967296,4294967296], value=0.0]
)",
    R"(batch %x:i32[4]{}
%y = one_hot[depth=4611686018427387904, dtype=f32] %x
)",
    R"(batch %x:f32[]{}
%y = broadcast[shape=[4611686018427387904], dims=[]] %x
)",
    R"(batch %x:f32[1000000]{}
%y = pad[low=[9223372036854775807], high=[9223372036854775807]] %x
)",
    R"(batch %x:f32[1000000]{}
%y = pad[low=[999999999999], high=[1]] %x
)",
    R"(batch %x:f32[1]{}
%y = slice[starts=[-9223372036854775808], limits=[9223372036854775807]] %x
)",
    R"(batch %x:f32[0]{}
%y = reshape[shape=[4294967296,4294967296]] %x
)",
    R"(batch %k:u32[2]{}
batch %r:i64[4]{}
%y = random_normal[shape=[4294967296,4294967296]] %k, %r
)",
    R"(mesh devices=65536
batch %x:f32[1000]{devices}
%y = all_gather[axes={devices}, dim=0] %x
%z = all_gather[axes={devices}, dim=0] %y
)",
    R"(mesh devices=65536
batch %x:f32[100000000000]{}
)",
    R"(batch %x:f32[1,4,4,1]{}
batch %k:f32[2,2,1,1]{}
%y = conv_input_grad[strides=[1,1], padding=[1:1,1:1], input_shape=[1,9223372036854775807,4,1]] %k, %x
)",
    R"(batch %x:f32[1,4,4,1]{}
%y = conv_kernel_grad[strides=[1,1], padding=[1:1,1:1], kernel_shape=[2,2,1,4611686018427387904]] %x, %x
)",
    R"(batch %x:f32[1,4,4,1]{}
%y = max_pool[window=[9223372036854775807,2], strides=[1,1], padding=[0:0,0:0]] %x
)",
    R"(batch %x:f32[4]{}
%s = loop[iterations=1, consts=9223372036854775807, carries=1] %x (%a:f32[4]{}) {
  yield %a
}
)",
    R"(batch %xa:f32[4]{}
batch %xb:f32[4]{}
%y = neg %xc
)",
    R"(batch %x:f32[4]{}
%a, %a = psum %x, %x
)",
    R"(params %bucket:f32[100]{} of %w:[5,3], %b:[3]
)",
    R"(params %bucket:f32[3,64]{} of %w:[3,64]
)",
    R"(params %bucket:f32[128]{} of %w:[5,3], %w:[3]
)",
    R"(params %bucket:f32[64]{} of w:[5,3]
)",
    R"(params %bucket:f32[64]{} of %w
)",
    R"(params %bucket:f32[64]{} of %w:[-1]
)",
    R"(params %bucket:f32[64]{} of %w:[9223372036854775807], %v:[9223372036854775807]
)",
    R"(params %bucket:f32[64]{} of %bucket:[3]
)",
    R"(params %bucket:f32[128]{}
%w, %b = unpack[shapes=[[5,3],[70]]] %bucket
)",
    R"(params %bucket:f32[128]{}
%w = unpack[shapes=[]] %bucket
)",
    R"(params %bucket:f32[128]{}
%w = unpack[shapes=[[999999999999],[999999999999]]] %bucket
)",
    R"(params %w:f32[3]{}
params %v:f64[3]{}
%b = pack %w, %v
)",
    R"(%b = pack
)",
    R"(params %x:f32[3]{}
params %s:i32[3]{}
%y = segment_sum %x, %s
)"};

TEST_CASE("every mistake in program text is answered in the words of the golden text", "[graph]") {
  std::string all;
  for (const std::string text : wrong_programs) {
    all += text;
    try {
      all += "accepted:\n" + to_text(parse_program(text, "step.pmt", all_ops()));
    } catch (const Error& error) {
      CHECK(error.status() == ExitStatus::usage);
      all += error.what();
    }
    all += "\n";
  }
  CHECK(all.find("accepted:") == std::string::npos);
  test::check_golden("program_errors.txt", all);
}

std::string error_of(const std::string& text, const std::vector<Axis>& mesh = {}) {
  try {
    parse_program(text, "step.pmt", all_ops(), mesh);
  } catch (const Error& error) {
    return error.diagnostics().front().message;
  }
  return "accepted";
}

TEST_CASE("program text that is not UTF-8 is refused", "[graph]") {
  CHECK(error_of("batch %x\xff") == "the program is not UTF-8 text");
}

TEST_CASE("regions stand in each other to a depth that no reader of programs minds", "[graph]") {
  const auto nested = [](int depth) {
    std::string text = "batch %x:f32[]{}\n", end;
    for (int i = 0; i < depth; ++i) {
      text += "%y = loop[iterations=1, consts=0, carries=1] %x (%x:f32[]{}) {\n";
      end += "yield %y\n}\n";
    }
    return text + "%y = neg %x\n" + end + "return y = %y\n";
  };
  CHECK(error_of(nested(64)) == "accepted");
  CHECK(error_of(nested(65)) == "a region inside 64 others");
  CHECK(error_of(nested(100000)) == "a region inside 64 others");
}

TEST_CASE("a program of many equations is read in time that grows with its length", "[graph]") {
  std::string text = "batch %x:f32[]{}\n";
  for (int i = 0; i < 20000; ++i) text += "%v" + std::to_string(i) + " = neg %x\n";
  CHECK(error_of(text) == "accepted");
}

TEST_CASE("an axis stands in a set once", "[graph]") {
  CHECK(error_of("mesh a=2 b=2\nbatch %x:f32[]{a, a}\n") == "axis 'a' is named twice");
  CHECK(error_of("mesh a=2 b=2\nbatch %x:f32[]{a, b}\n%y = psum[axes={b, a, b}] %x\n") == "axis 'b' is named twice");
  CHECK(error_of("mesh a=2 b=2\nbatch %x:f32[]{a, b}\n%y = psum[axes={b, a}] %x\n") == "accepted");
}

TEST_CASE("an axis that is given from outside needs a device", "[graph]") {
  CHECK(error_of("mesh a=2\n", {{"a", 0}}) == "axis 'a' needs at least 1 device");
}

}  // namespace
}  // namespace pmaptrain
