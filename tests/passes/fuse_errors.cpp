// What a chain, and what fused rows cannot be.
#include <string>

#include "core/base/error.h"
#include "tests/catch.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {
namespace {

std::string refusal(const std::string& text) {
  try {
    (void)test::program_of(text);
  } catch (const Error& error) {
    return error.diagnostics().front().message;
  }
  return "accepted";
}

TEST_CASE("what does not belong into a chain is refused", "[passes]") {
  const auto with = [](const std::string& line) {
    return refusal("batch %x:f32[2,2]{}\nbatch %v:f32[2]{}\n%1 = fused %x, %v (%a:f32[2,2]{}, %b:f32[2]{}) {\n  %r = " +
                   line + "\n  yield %r\n}\nreturn r = %1\n");
  };
  CHECK(with("neg %a") == "accepted");
  CHECK(with("matmul %a, %a") == "fused: matmul is not elementwise");
  CHECK(with("constant[dtype=f32, shape=[2], values=[1.0,2.0]]") == "fused: a constant with values is not elementwise");
  CHECK(refusal("batch %x:f32[6]{}\nbatch %v:f32[2]{}\n%1 = fused %x, %v (%a:f32[6]{}, %b:f32[2]{}) {\n  %r = neg %b\n"
                "  %s = broadcast[shape=[3,2], dims=[1]] %r\n  yield %s\n}\nreturn r = %1\n") ==
        "fused: neg reads f32[2], in a chain over 6 elements");
}

TEST_CASE("a chain repeats its parameters only, to as many elements as it yields", "[passes]") {
  // A kernel has what it repeats as a whole, and so only where that is given to it.
  CHECK(refusal("batch %x:f32[4000]{}\nbatch %p:f32[1000]{}\n%r = fused %x, %p (%a:f32[4000]{}, %q:f32[1000]{}) {\n"
                "  %b = broadcast[shape=[1000,2], dims=[0]] %q\n  %c = broadcast[shape=[2,1000,2], dims=[1,2]] %b\n"
                "  %f = reshape[shape=[4000]] %c\n  %n = add %a, %f\n  yield %n\n}\nreturn r = %r\n") ==
        "fused: broadcast gives f32[1000,2], in a chain over 4000 elements");
  CHECK(refusal("batch %x:f32[4096]{}\nbatch %p:f32[3]{}\n%r = fused %x, %p (%a:f32[4096]{}, %q:f32[3]{}) {\n"
                "  %d = broadcast[shape=[3,0], dims=[0]] %q\n  %n = neg %a\n  yield %n\n}\nreturn r = %r\n") ==
        "fused: broadcast gives f32[3,0], in a chain over 4096 elements");
  CHECK(refusal("batch %x:f32[6]{}\n%r = fused %x (%a:f32[6]{}) {\n  %k = constant[dtype=f32, shape=[3], value=1.0]\n"
                "  %b = broadcast[shape=[2,3], dims=[1]] %k\n  %f = reshape[shape=[6]] %b\n  %n = add %a, %f\n"
                "  yield %n\n}\nreturn r = %r\n") == "fused: broadcast reads f32[3], in a chain over 6 elements");
  CHECK(refusal("batch %x:f32[6]{}\nbatch %p:f32[3]{}\n%r = fused %x, %p (%a:f32[6]{}, %q:f32[3]{}) {\n"
                "  %b = broadcast[shape=[2,3], dims=[1]] %q\n  %f = reshape[shape=[6]] %b\n  %n = add %a, %f\n"
                "  yield %n\n}\nreturn r = %r\n") == "accepted");
}

TEST_CASE("what does not belong into fused rows is refused", "[passes]") {
  const auto with = [](const std::string& length, const std::string& shape, const std::string& lines) {
    return refusal("batch %x:f32[3,3]{}\nbatch %v:f32" + shape + "{}\n%y = fused_rows[length=" + length +
                   "] %x, %v (%a:f32[3,3]{}, %b:f32" + shape + "{}) {\n" + lines + "\n}\nreturn y = %y\n");
  };
  const std::string sum = "  %s = reduce_sum[dims=[1]] %a\n";
  CHECK(with("3", "[3]", sum + "  %r = add %s, %b\n  yield %r") == "accepted");
  CHECK(with("3", "[3]", "  %r = neg %a\n  yield %r") == "fused_rows: nothing in its region reduces rows of 3");
  CHECK(with("3", "[3]", "  %r = reduce_sum[dims=[0]] %a\n  yield %r") ==
        "fused_rows: nothing in its region reduces rows of 3");
  CHECK(with("1", "[3]", sum + "  yield %s") == "fused_rows: nothing in its region reduces rows of 1");
  CHECK(with("3", "[4]", sum + "  yield %s") == "fused_rows: reads f32[4], with 3 rows of 3");
  CHECK(with("3", "[]", sum + "  yield %b") == "fused_rows: yields f32[], with 3 rows of 3");
  // A vector along the rows; one that has as many elements as there are rows; one that is computed inside.
  CHECK(refusal("batch %x:f32[2,3]{}\nbatch %v:f32[3]{}\n%y = fused_rows[length=3] %x, %v (%a:f32[2,3]{}, %b:f32[3]{}) "
                "{\n  %s = reduce_sum[dims=[1]] %a\n  %r = broadcast[shape=[2,3], dims=[1]] %b\n  %z = mul %a, %r\n"
                "  yield %z\n}\nreturn y = %y\n") == "accepted");
  CHECK(refusal("batch %x:f32[2,3]{}\nbatch %v:f32[3]{}\n%y = fused_rows[length=3] %x, %v (%a:f32[2,3]{}, %b:f32[3]{}) "
                "{\n  %s = reduce_sum[dims=[1]] %a\n  %n = neg %b\n  %r = broadcast[shape=[2,3], dims=[1]] %n\n"
                "  %z = mul %a, %r\n  yield %z\n}\nreturn y = %y\n") ==
        "fused_rows: neg gives f32[3], with 2 rows of 3");
  CHECK(with("3", "[3]", sum + "  %r = broadcast[shape=[3,3], dims=[1]] %b\n  yield %r") ==
        "fused_rows: broadcast gives f32[3,3], with 3 rows of 3");
  CHECK(with("3", "[3]", sum + "  %r = matmul %a, %a\n  yield %r") ==
        "fused_rows: matmul gives f32[3,3], with 3 rows of 3");
}

TEST_CASE("what does not belong into fused columns is refused", "[passes]") {
  const auto with = [](const std::string& shape, const std::string& lines) {
    return refusal("batch %x:f32[4,3]{}\nbatch %v:f32" + shape +
                   "{}\n%y = fused_columns %x, %v (%a:f32[4,3]{}, %b:f32" + shape + "{}) {\n" + lines +
                   "\n}\nreturn y = %y\n");
  };
  const std::string sum = "  %s = reduce_sum[dims=[0]] %a\n";
  CHECK(with("[3]", sum + "  yield %s") == "accepted");
  CHECK(with("[3]", "  %r = neg %a\n  yield %r") == "fused_columns: nothing in its region sums the rows of a matrix");
  CHECK(with("[3]", "  %r = reduce_sum[dims=[1]] %a\n  yield %r") ==
        "fused_columns: nothing in its region sums the rows of a matrix");
  CHECK(with("[6,2]", sum + "  %t = reduce_sum[dims=[0]] %b\n  yield %s") ==
        "fused_columns: sums f32[6,2], beside a sum over 4 rows of 3");
  CHECK(with("[3]", sum + "  yield %b") == "fused_columns: yields f32[3], which is no sum");
  CHECK(with("[3]", sum + "  %t = add %s, %b\n  yield %t") == "accepted");
  // A sum that needs another one, in the one way that is known.
  const std::string repeated = sum + "  %t = broadcast[shape=[4,3], dims=[1]] %s\n";
  CHECK(with("[3]", repeated + "  %u = mul %t, %a\n  %w = reduce_sum[dims=[0]] %u\n  yield %w") ==
        "fused_columns: computes elements of a sum from other sums");
  CHECK(with("[3]", repeated + "  %u = sub %a, %t\n  %w = mul %u, %u\n  %y = reduce_sum[dims=[0]] %w\n  yield %y") ==
        "accepted");
  CHECK(with("[3]", repeated + "  %u = mul %t, %a\n  yield %u") == "fused_columns: yields f32[4,3], which is no sum");
  CHECK(with("[2]", sum + "  %t = broadcast[shape=[3], dims=[]] %b\n  yield %s") != "accepted");
  CHECK(with("[3]", sum + "  %t = matmul[transpose_a=true, transpose_b=false] %a, %a\n  yield %s") ==
        "fused_columns: matmul is not elementwise");
  CHECK(refusal("batch %v:f32[3]{}\n%y = fused_columns %v (%b:f32[3]{}) {\n  %t = broadcast[shape=[4,3], dims=[1]] %b\n"
                "  %s = reduce_sum[dims=[0]] %t\n  yield %s\n}\nreturn y = %y\n") ==
        "fused_columns: no operand has 4 rows of 3");
}

}  // namespace
}  // namespace pmaptrain
