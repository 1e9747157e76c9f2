// Large products over the rows of all devices, in parts: weight gradients of dense layers and of convolutions.
#include <string>

#include "core/graph/text.h"
#include "tests/catch.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {
namespace {

// A weight gradient of [columns, 40] from 6 rows of each device.
std::string gradient(std::int64_t columns, const std::string& dtype = "f32") {
  const std::string m = std::to_string(columns);
  return "mesh a=8\nparams %w:" + dtype + "[" + m + ",40]{}\nbatch %x:" + dtype + "[6," + m +
         "]{a}\nbatch %y:" + dtype +
         "[6,40]{a}\n%x2 = add %x, %x\n%y2 = neg %y\n%g = matmul[transpose_a=true] %x2, %y2\n"
         "%b = reduce_sum[dims=[0]] %y2\n%s, %t = psum[axes={a}] %g, %b\n%w2 = sub %w, %s\nupdate %w = %w2\n"
         "return s = %s\nreturn t = %t\n";
}

TEST_CASE("a large weight gradient is one product over all devices' rows, in parts, without accumulators",
          "[runtime]") {
  const auto program = test::program_of(gradient(130));
  const cpu::Plan plan = cpu::make_plan(program, {false, 8});
  INFO(to_text(plan));
  CHECK(to_text(plan).find("matmul[transpose_a=true, transpose_b=false] over all rows in 8 parts device+") !=
        std::string::npos);
  REQUIRE(plan.accumulators.size() == 1);
  CHECK(plan.accumulators.front().elements == 40);
  // Fewer columns than 16 for each part are not worth it, nor is a sum that is small beside its rows.
  CHECK(cpu::make_plan(test::program_of(gradient(127)), {false, 8}).accumulators.size() == 2);
  const auto flat = test::program_of(
      "mesh a=8\nbatch %x:f32[512,130]{a}\nbatch %y:f32[512,40]{a}\n%g = matmul[transpose_a=true] %x, %y\n"
      "%s = psum[axes={a}] %g\nreturn s = %s\n");
  CHECK(cpu::make_plan(flat, {false, 8}).accumulators.size() == 1);
}

TEST_CASE("a large weight gradient that is wanted by device too is summed like everything else", "[runtime]") {
  const std::string text = gradient(130) + "return g = %g\n";
  CHECK(cpu::make_plan(test::program_of(text), {false, 8}).accumulators.size() == 2);
  test::check_runtime(text);
}

TEST_CASE("of a gradient that is wider than high, parts are columns", "[runtime]") {
  // Each part reads all of the other operand: 20 columns and not 520.
  const auto wide = [](const std::string& dtype, std::string sum = "") {
    if (sum.empty()) sum = dtype;
    return "mesh a=8\nparams %w:" + sum + "[20,520]{}\nbatch %x:" + dtype + "[6,20]{a}\nbatch %y:" + dtype +
           "[6,520]{a}\n%x2 = add %x, %x\n%y2 = neg %y\n%g = matmul[transpose_a=true" +
           (sum == dtype ? "" : ", preferred_element_type=" + sum) +
           "] %x2, %y2\n"
           "%s = psum[axes={a}] %g\n%w2 = sub %w, %s\nupdate %w = %w2\nreturn s = %s\n";
  };
  const auto program = test::program_of(wide("f32"));
  const std::string text = to_text(cpu::make_plan(program, {false, 8}));
  INFO(text);
  CHECK(text.find("over all rows in 8 parts of columns") != std::string::npos);
  for (const char* const dtype : {"f32", "f64", "i32"}) test::check_runtime(wide(dtype));
  test::check_runtime(wide("bf16", "f32"));
  const auto inputs = test::uneven_inputs(*program, 5);
  for (const std::int64_t blocks : {1, 2, 8}) test::same_for_all_workers(program, inputs, 8, blocks);
}

TEST_CASE("a gradient that is reshaped before it is summed over the devices is computed in parts too", "[runtime]") {
  // As that of the kernels of attention, which have a dimension of heads.
  const std::string text =
      "mesh a=8\nparams %w:f32[130,5,8]{}\nbatch %x:f32[6,130]{a}\nbatch %y:f32[6,40]{a}\n"
      "%x2 = add %x, %x\n%y2 = neg %y\n%f = matmul[transpose_a=true] %x2, %y2\n%g = reshape[shape=[130,5,8]] %f\n"
      "%s = psum[axes={a}] %g\n%w2 = sub %w, %s\nupdate %w = %w2\nreturn s = %s\n";
  const auto program = test::program_of(text);
  const cpu::Plan plan = cpu::make_plan(program, {false, 8});
  CHECK(to_text(plan).find("over all rows in 8 parts") != std::string::npos);
  CHECK(plan.accumulators.empty());
  test::check_runtime(text);
  // What is read as it was computed, too, is summed like everything else.
  const std::string read = text + "%h = neg %f\nreturn h = %h\n";
  CHECK(cpu::make_plan(test::program_of(read), {false, 8}).accumulators.size() == 1);
  test::check_runtime(read);
}

TEST_CASE("a large sum by index takes memory once and has the bits of sums that pieces add up", "[runtime]") {
  const auto text = [](const std::string& index, const std::string& dtype, const std::string& more = "") {
    return "mesh a=4\nparams %w:" + dtype + "[300,20]{}\nbatch %i:" + index + "[6,3]{a}\nbatch %x:" + dtype +
           "[6,3,20]{a}\n%c = constant[dtype=" + index +
           ", shape=[], value=71.0]\n%k = pvary[axes={a}] %c\n"
           "%j = mul %i, %k\n%y = neg %x\n%g = scatter_add[rows=300] %j, %y\n%s = psum[axes={a}] %g\n%w2 = sub %w, %s\n"
           "update %w = %w2\nreturn s = %s\n" +
           more;
  };
  const cpu::Plan plan = cpu::make_plan(test::program_of(text("i32", "f32")), {.pieces = 5, .blocks = 1});
  INFO(to_text(plan));
  CHECK(to_text(plan).find("scatter_add[rows=300] over all rows in 8 parts") != std::string::npos);
  CHECK(plan.accumulators.empty());
  // What two sums read is summed in accumulators of pieces.
  const auto apart = test::program_of(text("i32", "f32", "%r = psum[axes={a}] %g\nreturn r = %r\n"));
  CHECK(cpu::make_plan(apart, {.pieces = 5, .blocks = 1}).accumulators.size() == 2);
  const auto whole = test::program_of(text("i32", "f32"));
  test::Values inputs = test::uneven_inputs(*whole, 5);
  inputs["i"] = test::random_inputs(*whole, 5).at("i");
  for (const std::int64_t blocks : {1, 2, 4}) {
    INFO(blocks << " blocks");
    CHECK(test::same_for_all_workers(whole, inputs, 5, blocks).at("output s") ==
          test::same_for_all_workers(apart, inputs, 5, blocks).at("output s"));
  }
  for (const char* const dtype : {"f32", "f64", "i32"}) test::check_runtime(text("i64", dtype));
}

TEST_CASE("of many products that are computed at the same time, each has fewer parts", "[runtime]") {
  CHECK(cpu::part_count(784) == 16);
  CHECK(cpu::part_count(784, false, 10) == 16);
  CHECK(cpu::part_count(784, false, 36) == 5);
  CHECK(cpu::part_count(784, true, 36) == 5);
  CHECK(cpu::part_count(784, false, 1000) == 1);
  CHECK(cpu::part_count(130) == 8);  // shorter ones, because there would be fewer than 8
  CHECK(cpu::part_count(130, false, 40) == 4);
}

TEST_CASE("parts begin at multiples of sixteen rows and leave out none", "[runtime]") {
  for (const std::int64_t rows : {1, 17, 128, 130, 143, 144, 784}) {
    const std::int64_t parts = cpu::part_count(rows);
    CHECK(parts <= cpu::most_parts);
    CHECK(cpu::part_begin(rows, parts, 0) == 0);
    CHECK(cpu::part_begin(rows, parts, parts) == rows);
    for (std::int64_t part = 0; part < parts; ++part) {
      CHECK(cpu::part_begin(rows, parts, part) % 16 == 0);
      CHECK(cpu::part_begin(rows, parts, part) < cpu::part_begin(rows, parts, part + 1));
    }
  }
}

TEST_CASE("a weight gradient in parts has the interpreter's values, for whole and for other numbers", "[runtime]") {
  for (const char* const dtype : {"f32", "f64", "i32"}) test::check_runtime(gradient(130, dtype));
  const std::string fractions = R"(mesh a=3 b=2
params %w:f32[150,40]{}
state %m:f32[150,40]{}
batch %x:f32[5,150]{a, b}
hyper %rate:f32[]{}
%small = constant[dtype=f32, shape=[], value=0.0078125]
%v = mul %w, %small
%h = matmul %x, %v
%t = tanh %h
%g = matmul[transpose_a=true] %x, %t
%s = psum[axes={a, b}] %g
%d = mul %s, %small
%squares = mul %d, %d
%norm = reduce_sum[dims=[0,1]] %squares
%m2 = add %m, %d
%w2 = sub %w, %m2
update %w = %w2
update %m = %m2
return norm = %norm
return s = %s
)";
  test::check_runtime(fractions);
  const auto program = test::program_of(fractions);
  const auto inputs = test::random_inputs(*program, 3);
  const auto expected = test::run_program(program, inputs, {1, false, 3, false, KernelChoice::best});
  for (const int workers : {1, 2, 3, 5, 9}) {
    for (const bool private_copies : {false, true}) {
      const bool same = test::run_program(program, inputs,
                                          {workers, private_copies, 3, workers == 2, KernelChoice::best}) == expected;
      CHECK(same);
    }
  }
}

// The gradient of a kernel of 3x3, 8 -> `channels`, from images of 4x4 that each device has `rows` of.
std::string kernel_gradient(std::int64_t channels, std::int64_t rows, const std::string& dtype = "f32") {
  const std::string o = std::to_string(channels), n = std::to_string(rows);
  return "mesh a=2 b=3\nparams %w:" + dtype + "[3,3,8," + o + "]{}\nbatch %x:" + dtype + "[" + n +
         ",4,4,8]{a, b}\nbatch %y:" + dtype + "[" + n + ",4,4," + o +
         "]{a, b}\n%d = neg %y\n%g = conv_kernel_grad[strides=[1,1], padding=[1:1,1:1], kernel_shape=[3,3,8," + o +
         "]] %x, %d\n%s = psum[axes={a, b}] %g\n%w2 = sub %w, %s\nupdate %w = %w2\n";
}

TEST_CASE("the large gradient of a kernel is computed in parts of output channels, without accumulators", "[runtime]") {
  const auto in_parts = [](const std::string& text) {
    return to_text(cpu::make_plan(test::program_of(text), {false, 8})).find("over all rows in") != std::string::npos;
  };
  CHECK(in_parts(kernel_gradient(130, 2)));
  CHECK_FALSE(in_parts(kernel_gradient(112, 2)));  // too narrow
  CHECK_FALSE(in_parts(kernel_gradient(130, 9)));  // the rows of all devices take more memory than eight accumulators
  for (const char* const dtype : {"f32", "f64"}) test::check_runtime(kernel_gradient(130, 2, dtype));
}

TEST_CASE("the gradient of a kernel in parts has the same bits whoever computes it, block by block", "[runtime]") {
  const auto program = test::program_of(kernel_gradient(144, 2));
  const auto inputs = test::uneven_inputs(*program, 5);
  for (const std::int64_t blocks : {1, 2, 6}) test::same_for_all_workers(program, inputs, 8, blocks);
}

TEST_CASE("pieces whose matrices do not fit the cache together run abreast, with the same bits for all workers",
          "[runtime]") {
  const auto program_of = [](const std::string& width) {
    const std::string matrix = "f32[" + width + "," + width + "]{}\n";
    return test::program_of("mesh a=1\nbatch %x:f32[40," + width + "]{a}\nparams %w:" + matrix + "params %v:" + matrix +
                                R"(%small = constant[dtype=f32, shape=[], value=0.013]
%y = matmul %x, %w
%ys = mul %y, %small
%t = tanh %ys
%z = matmul %t, %v
%zs = mul %z, %small
%u = add %zs, %t
%r = reduce_sum[dims=[0]] %u
%s = psum[axes={a}] %r
return s = %s
return u = %u
)",
                            {{"a", 6}});
  };
  const auto program = program_of("640");
  const cpu::Plan plan = cpu::make_plan(program);
  CHECK(plan.abreast == 4);
  CHECK(plan.transient.arena == 4 * plan.arena_bytes);
  CHECK(cpu::make_plan(program_of("512")).abreast == 1);  // both matrices stay in the cache
  test::same_for_all_workers(program, test::random_inputs(*program, 5), plan.max_pieces());
}

}  // namespace
}  // namespace pmaptrain
