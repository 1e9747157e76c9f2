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

TEST_CASE("an axis that is given from outside needs a device", "[graph]") {
  CHECK(error_of("mesh a=2\n", {{"a", 0}}) == "axis 'a' needs at least 1 device");
}

}  // namespace
}  // namespace pmaptrain
