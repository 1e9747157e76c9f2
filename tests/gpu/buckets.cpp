// Buckets on emulated GPUs: arrays that are ranges of a bucket, sums over devices of what pack joins, and the zeros
// between the arrays.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/runtime/gpu/plan.h"
#include "tests/catch.h"
#include "tests/gpu/programs.h"
#include "tests/slice.h"

namespace pmaptrain {
namespace {

using test::check_program_on_all;
using test::places_of;
using test::program_of;

// One or two buckets of gradients of every kind: sums over rows, values that are there, constants; with a number beside
// them. Each bucket is summed over all axes or over one of them.
std::string random_sums(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto up_to = [&](std::uint32_t most) { return static_cast<std::uint32_t>(random() % (most + 1)); };
  const std::vector<std::string> meshes{"a=8", "a=2 b=4", "a=4 b=2", "a=3 b=4", "a=16", "a=9", "a=10"};
  const std::string mesh = meshes[up_to(6)];
  const std::string all = mesh.find('b') == std::string::npos ? "a" : "a, b";
  const std::string over = up_to(2) == 0 ? "a" : all;
  const std::string dtype = up_to(3) == 0 ? "f64" : "f32";
  std::string text = "mesh " + mesh + "\nbatch %x:" + dtype + "[4,6]{" + all + "}\n", equations, buckets, sums, returns;
  int number = 0;
  for (std::uint32_t bucket = 0; bucket <= up_to(1); ++bucket) {
    std::string packed;
    for (std::uint32_t i = 0; i <= up_to(4); ++i) {
      const std::string k = std::to_string(number++),
                        size = std::to_string(std::vector{0, 1, 3, 64, 70, 128}[up_to(5)]);
      text += "batch %v" + k + ":" + dtype + "[4," + size + "]{" + all + "}\n";
      const std::vector<std::string> kinds{"%g" + k + " = reduce_sum[dims=[0]] %v" + k + "\n",
                                           "%g" + k + " = matmul[transpose_a=true] %x, %v" + k + "\n",
                                           "%g" + k + " = add %v" + k + ", %v" + k + "\n",
                                           "%g" + k + " = pvary[axes={" + all + "}] %c" + k + "\n",
                                           "%g" + k + " = reshape[shape=[2,2," + size + "]] %v" + k + "\n"};
      const std::uint32_t kind = up_to(4);
      if (kind == 3) equations += "%c" + k + " = constant[dtype=" + dtype + ", shape=[" + size + "], value=3]\n";
      equations += kinds[kind];
      packed += (packed.empty() ? "%g" : ", %g") + k;
      if (up_to(4) == 0) packed += ", %g" + k;
      if (up_to(9) == 0) returns += "return g" + k + " = %g" + k + "\n";
    }
    const std::string b = std::to_string(bucket);
    buckets += "%p" + b + " = pack " + packed + "\n";
    sums += (bucket == 0 ? "%p" : ", %p") + b;
    returns += "return s" + b + " = %s" + b + "\n";
  }
  const bool two = returns.find("return s1") != std::string::npos;
  return text + equations + "%n = reduce_sum[dims=[0,1]] %x\n" + buckets + "%s0, " + (two ? "%s1, " : "") +
         "%m = psum[axes={" + over + "}] " + sums + ", %n\n" + returns + "return m = %m\n";
}

}  // namespace

TEST_CASE("random sums of buckets are the interpreter's on every number of GPUs", "[gpu]") {
  for (const std::uint32_t seed :
       test::some_seeds(4 / test::slices_with_sanitizer(2), 24, 4 * test::slices_with_sanitizer(5))) {
    INFO("seed " << seed);
    check_program_on_all(program_of(random_sums(seed)));
  }
}

TEST_CASE("buckets of every element type give the interpreter's values on every number of GPUs", "[gpu]") {
  // With elements of 1, 4 and 8 bytes in each slice.
  test::Slice slice(test::slices_with_sanitizer(2));
  for (const std::string dtype : {"f32", "u8", "f64", "i64", "i32", "u32"}) {
    if (!slice.takes(dtype == "f32" || dtype == "u8")) continue;
    INFO(dtype);
    check_program_on_all(program_of("mesh a=8\nstate %bucket:" + dtype + "[192]{}\nbatch %x:" + dtype +
                                    "[3]{a}\nbatch %y:" + dtype + "[70]{a}\n%g = pack %x, %y\n" +
                                    "%s = psum[axes={a}] %g\n%new = max %bucket, %s\n" +
                                    "%u, %v = unpack[shapes=[[3],[70]]] %new\nupdate %bucket = %new\n" +
                                    "return s = %s\nreturn u = %u\nreturn v = %v\n"));
  }
}

TEST_CASE("pack joins values of any memory: inputs, constants, ranges of buckets, and one value twice", "[gpu]") {
  check_program_on_all(program_of(R"(mesh a=4 b=2
params %bucket:f32[192]{}
state %own:f32[128]{b}
batch %x:f32[3]{a, b}
%w, %c = unpack[shapes=[[70],[]]] %bucket
%o, %p = unpack[shapes=[[3],[2,2]]] %own
%vw = pvary[axes={a, b}] %w
%vc = pvary[axes={a, b}] %c
%vo = pvary[axes={a}] %o
%two = constant[dtype=f32, shape=[2], value=2]
%vtwo = pvary[axes={a, b}] %two
%g = pack %x, %vw, %vtwo, %vc, %vo, %x
%s = psum[axes={a, b}] %g
%inner = psum[axes={a}] %vo
%h = pack %inner, %p
%t = psum[axes={b}] %h
%n = max %own, %h
update %own = %n
return s = %s
return t = %t
return inner = %inner
)"));
}

TEST_CASE("a bucket that is summed and also read, or summed twice, is there as a whole", "[gpu]") {
  for (const std::string use : {"%u = add %g, %g\n%t = psum[axes={a}] %u\nreturn t = %t\n", "return t = %g\n",
                                "%t = psum[axes={a}] %g\nreturn t = %t\n", "%m = pmax[axes={a}] %g\nreturn t = %m\n"}) {
    check_program_on_all(
        program_of("mesh a=4\nbatch %x:f32[3]{a}\nbatch %y:f32[2,2]{a}\n%g = pack %x, %y\n"
                   "%s = psum[axes={a}] %g\nreturn s = %s\n" +
                   use));
  }
}

TEST_CASE("parameters and packed gradients are not copied, and their message has no memory before they are complete",
          "[gpu]") {
  // The activations of 16 KiB are gone when the gradients are summed, which are as large.
  const std::string text = R"(mesh a=8
params %bucket:f32[4160]{}
batch %x:f32[64,64]{a}
%w, %b = unpack[shapes=[[64,64],[64]]] %bucket
%vw = pvary[axes={a}] %w
%y = tanh %x
%z = matmul %y, %vw
%gw = matmul[transpose_a=true] %y, %z
%gb = reduce_sum[dims=[0]] %z
%g = pack %gw, %gb
%s = psum[axes={a}] %g
%new = sub %bucket, %s
update %bucket = %new
)";
  const std::size_t bucket = 4160 * sizeof(float), activations = 64 * 64 * sizeof(float);
  const std::size_t gathered = 8 * bucket;
  test::for_each_plan(program_of(text), {1, 2, 8}, [&](const gpu::Plan& plan, int gpus, bool deterministic) {
    INFO(to_string(plan));
    CHECK(places_of<gpu::Copy>(plan).empty());
    CHECK(test::launches_of(plan, "pack").empty());
    CHECK(places_of<gpu::Collect>(plan).size() == (gpus > 1 ? 1 : 0));
    if (gpus < 8) return;
    CHECK(plan.transient_bytes <= bucket + std::max(2 * activations, bucket) + (deterministic ? gathered : 0));
  });
}

}  // namespace pmaptrain
