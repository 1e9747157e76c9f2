// The planned runtime against the interpreter, bit by bit.
#include <cstring>
#include <string>
#include <vector>

#include "core/graph/text.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {
namespace {

using test::check_on_all_meshes;
using test::check_runtime;

TEST_CASE("chains of elementwise ops take over each other's memory", "[runtime]") {
  check_on_all_meshes(R"(
batch %x:f32[5]{a}
batch %w:f32[5]{}
batch %s:f32[]{a}
%1 = add %x, %w
%2 = mul %1, %x
%3 = tanh %2
%4 = mul %3, %s
%5 = sub %4, %1
%6 = neg %w
%7 = exp %6
%8 = lt %5, %x
%9 = select %8, %5, %2
return a = %9
return b = %7
return c = %3
)");
}

TEST_CASE("views share memory and stay alive with it", "[runtime]") {
  check_on_all_meshes(R"(
batch %x:f32[2,3]{a}
params %w:f32[2,3]{}
%f = reshape[shape=[6]] %x
%y = neg %f
%g = reshape[shape=[3,2]] %y
%h = stop_gradient %g
%v = pvary[axes={a}] %w
%u = add %v, %x
%z = exp %h
update %w = %w
return same = %f
return g = %g
return v = %v
return u = %u
return z = %z
)");
}

TEST_CASE("matmul, reductions and broadcasts of values that vary and that do not", "[runtime]") {
  check_on_all_meshes(R"(
batch %x:f32[4,3]{a}
params %w:f32[3,2]{}
%y = matmul %x, %w
%t = transpose[permutation=[1,0]] %y
%s = reduce_sum[dims=[1]] %t
%b = broadcast[shape=[4,2], dims=[1]] %s
%z = sub %y, %b
%m = reduce_max[dims=[0,1]] %z
%ww = matmul[transpose_a=true] %w, %w
%total = psum[axes={a}] %s
return z = %z
return m = %m
return ww = %ww
return total = %total
)");
}

TEST_CASE("states that change places, and updates that take another input's old value", "[runtime]") {
  check_on_all_meshes(R"(
state %a1:f32[3]{}
state %b1:f32[3]{}
state %c1:f32[3]{a}
state %d1:f32[3]{a}
state %e1:f32[3]{}
state %f1:f32[3]{}
state %g1:f32[3]{a}
state %h1:f32[3]{a}
state %i1:f32[3]{}
state %j1:f32[3]{}
batch %x:f32[3]{a}
%f2 = add %f1, %a1
%h2 = add %h1, %x
%j2 = neg %j1
update %a1 = %b1
update %b1 = %a1
update %c1 = %d1
update %d1 = %c1
update %e1 = %f1
update %f1 = %f2
update %g1 = %h1
update %h1 = %h2
update %i1 = %j2
update %j1 = %j2
return old = %h1
return new = %h2
)");
}

TEST_CASE("large states that change places, in ranges", "[runtime]") {
  check_on_all_meshes(R"(
state %a1:f32[5001]{}
state %b1:f32[5001]{}
state %c1:f32[5001]{}
state %d1:f32[5001]{}
%d2 = neg %d1
%d3 = add %d2, %a1
update %a1 = %b1
update %b1 = %a1
update %c1 = %d1
update %d1 = %d3
return a = %a1
return d = %d2
)");
}

TEST_CASE("outputs that are inputs, constants, or the same value twice", "[runtime]") {
  check_on_all_meshes(R"(
state %s:f32[3]{}
state %t:f32[3]{a}
state %l:f32[5000]{}
batch %x:f32[3]{a}
hyper %h:f32[]{}
%c = constant[dtype=f32, shape=[2], value=3.0]
%i = iota[dtype=i32, shape=[2,3], dim=1]
%s2 = mul %s, %h
%t2 = add %t, %x
%l2 = add %l, %l
update %s = %s2
update %t = %t2
update %l = %l2
return s = %s
return t = %t
return l = %l
return s2 = %s2
return again = %s2
return x = %x
return h = %h
return c = %c
return i = %i
)");
}

TEST_CASE("a state that becomes a constant, or an input's value", "[runtime]") {
  check_on_all_meshes(R"(
state %s:f32[2]{}
state %t:f32[2]{a}
state %u:f32[2]{a}
batch %x:f32[2]{a}
batch %w:f32[2]{}
%c = constant[dtype=f32, shape=[2], value=3.0]
%v = pvary[axes={a}] %c
%y = pvary[axes={a}] %w
update %s = %c
update %t = %v
update %u = %y
return s = %s
return x = %x
)");
}

TEST_CASE("large values that are the same everywhere are split between workers", "[runtime]") {
  check_on_all_meshes(R"(
params %w:f32[70,100]{}
state %m:f32[70,100]{}
batch %x:f32[70,100]{a}
hyper %rate:f32[]{}
%g = psum[axes={a}] %x
%d = mul %g, %rate
%m2 = add %m, %d
%n = neg %m2
%p = gt %n, %w
%k = select %p, %n, %d
%sq = mul %k, %k
%norm = reduce_sum[dims=[0,1]] %k
%e = mul %sq, %rate
%f = add %e, %norm
%w2 = sub %w, %k
%t = transpose[permutation=[1,0]] %w2
%v = add %x, %w2
update %w = %w2
update %m = %m2
return norm = %norm
return f = %f
return t = %t
return v = %v
)");
}

TEST_CASE("an update that is read in the same stage by other workers is not made in place", "[runtime]") {
  check_on_all_meshes(R"(
params %w:f32[5000]{}
params %v:f32[3]{}
batch %x:f32[5000]{a}
batch %y:f32[3]{a}
%half = constant[dtype=f32, shape=[], value=0.5]
%w2 = mul %w, %half
%s = reduce_sum[dims=[0]] %w
%v2 = mul %v, %half
%z = add %x, %w
%u = add %y, %v
update %w = %w2
update %v = %v2
return s = %s
return z = %z
return u = %u
)");
}

TEST_CASE("values cross stages while the arena is used again", "[runtime]") {
  check_on_all_meshes(R"(
batch %x:f32[4]{a}
%1 = exp %x
%2 = neg %x
%3 = mul %2, %x
%s = psum[axes={a}] %3
%4 = reshape[shape=[2,2]] %1
%5 = reduce_sum[dims=[1]] %4
%6 = add %x, %s
%7 = mul %6, %6
%t = psum[axes={a}] %7
%8 = reduce_sum[dims=[0]] %4
%9 = add %5, %8
%10 = add %7, %t
return a = %9
return b = %10
)");
}

TEST_CASE("a program without a mesh, without equations, and with values of no elements", "[runtime]") {
  check_runtime("batch %x:f32[2]{}\nstate %s:f32[2]{}\n%y = add %x, %s\nupdate %s = %y\nreturn y = %y\n");
  check_runtime("batch %x:f32[2]{}\nreturn y = %x\n");
  check_runtime("");
  check_on_all_meshes(
      "batch %x:f32[0,3]{a}\n%y = neg %x\n%s = reduce_sum[dims=[0]] %y\n%t = psum[axes={a}] %s\n"
      "%e = psum[axes={a}] %y\nreturn t = %t\nreturn y = %y\nreturn e = %e\n");
}

TEST_CASE("results that are not whole numbers have the same bits for every number of workers", "[runtime]") {
  const auto program = test::program_of(R"(mesh a=20
params %w:f32[5,3]{}
params %big:f32[5000]{}
batch %x:f32[7,5]{a}
%y = matmul %x, %w
%t = tanh %y
%g = matmul[transpose_a=true] %x, %t
%third = constant[dtype=f32, shape=[], value=0.333]
%h = mul %g, %third
%s, %loss = psum[axes={a}] %h, %t
%n = mul %s, %third
%w2 = sub %w, %n
%norm = reduce_sum[dims=[0]] %big
%scaled = mul %big, %third
%b2 = add %scaled, %norm
update %w = %w2
update %big = %b2
return loss = %loss
)");
  const auto inputs = test::random_inputs(*program, 3);
  const auto expected = test::run_program(program, inputs, {1, false, 4, false, KernelChoice::reference});
  for (const int workers : {1, 2, 3, 5, 11}) {
    for (const bool private_copies : {false, true}) {
      const bool same =
          test::run_program(program, inputs, {workers, private_copies, 4, workers == 2, KernelChoice::reference}) ==
          expected;
      CHECK(same);
    }
  }
}

TEST_CASE("library kernels give the same bits for every number of workers and with private copies", "[runtime]") {
  for (const std::int64_t devices : {3, 20}) {
    const auto program = test::program_of(R"(mesh a=1
params %k:f32[3,3,3,8]{}
params %w:f32[392,64]{}
state %m:f32[392,64]{}
batch %x:f32[4,14,14,3]{a}
batch %key:u32[2]{}
batch %rows:i64[4]{a}
hyper %rate:f32[]{}
%small = constant[dtype=f32, shape=[], value=0.0078125]
%r = random_normal[shape=[14,14,3]] %key, %rows
%xr = add %x, %r
%y = conv[strides=[1,1], padding=[1:1,1:1]] %xr, %k
%z = relu %y
%p = max_pool[window=[2,2], strides=[2,2]] %z
%f = reshape[shape=[4,392]] %p
%h = matmul %f, %w
%t = tanh %h
%gw = matmul[transpose_a=true] %f, %t
%gf = matmul[transpose_b=true] %t, %w
%gp = reshape[shape=[4,7,7,8]] %gf
%gz = max_pool_grad[window=[2,2], strides=[2,2]] %z, %gp
%gk = conv_kernel_grad[strides=[1,1], padding=[1:1,1:1], kernel_shape=[3,3,3,8]] %xr, %gz
%sk, %sw = psum[axes={a}] %gk, %gw
%dk = mul %sk, %small
%k2 = sub %k, %dk
%dw = mul %sw, %small
%m2 = add %m, %dw
%w2 = sub %w, %m2
update %k = %k2
update %w = %w2
update %m = %m2
return h = %h
)",
                                          {{"a", devices}});
    const auto inputs = test::random_inputs(*program, 5);
    const auto expected = test::run_program(program, inputs, {1, false, 3, false, KernelChoice::best});
    for (const int workers : {1, 2, 3, 5}) {
      for (const bool private_copies : {false, true}) {
        INFO("devices " << devices << ", workers " << workers << ", private " << private_copies);
        const bool same = test::run_program(program, inputs,
                                            {workers, private_copies, 3, workers == 2, KernelChoice::best}) == expected;
        CHECK(same);
      }
    }
  }
}

std::vector<float> floats(const PerDevice& values) {
  std::vector<float> numbers;
  for (const auto& bytes : values) {
    float number = 0;
    std::memcpy(&number, bytes.data(), sizeof number);
    numbers.push_back(number);
  }
  return numbers;
}

std::vector<std::int32_t> integers(const PerDevice& values) {
  std::vector<std::int32_t> numbers;
  for (const auto& bytes : values) {
    std::int32_t number = 0;
    std::memcpy(&number, bytes.data(), sizeof number);
    numbers.push_back(number);
  }
  return numbers;
}

std::string shipped(const std::string& name) { return test::read_text("configs/programs/" + name); }

TEST_CASE("scaled_sum gives every device the sum of twice what all have", "[runtime]") {
  for (const auto& [devices, sum] : std::vector<std::pair<std::int64_t, float>>{{1, 0}, {2, 2}, {4, 12}, {20, 380}}) {
    const auto results = test::run_program(test::program_of(shipped("scaled_sum.pmt"), {{"devices", devices}}), {},
                                           {2, false, 1, false, KernelChoice::best});
    CHECK(floats(results.at("output sum")) == std::vector<float>(static_cast<std::size_t>(devices), sum));
  }
}

TEST_CASE("nested_axes sums among the shards of a replica and among the replicas of a shard", "[runtime]") {
  const auto program = test::program_of(shipped("nested_axes.pmt"));
  const auto results = test::run_program(program, {}, {3, false, 1, false, KernelChoice::best});
  CHECK(results == test::interpreted(*program, {}));
  CHECK(integers(results.at("output value")) == std::vector<std::int32_t>{0, 1, 2, 3, 10, 11, 12, 13});
  CHECK(integers(results.at("output over_data_shards")) == std::vector<std::int32_t>{6, 6, 6, 6, 46, 46, 46, 46});
  CHECK(integers(results.at("output over_model_replicas")) ==
        std::vector<std::int32_t>{10, 12, 14, 16, 10, 12, 14, 16});
  CHECK(integers(results.at("output over_both")) == std::vector<std::int32_t>(8, 52));
}

TEST_CASE("sharded_parameters gathers what each device has, and scatters the sum of the gradients", "[runtime]") {
  const auto program = test::program_of(shipped("sharded_parameters.pmt"));
  const auto results = test::run_program(program, {}, {3, false, 1, false, KernelChoice::best});
  CHECK(results == test::interpreted(*program, {}));
  CHECK(floats(results.at("output sum")) == std::vector<float>{168, 260, 352, 444});
  CHECK(floats(results.at("output w")) == std::vector<float>{-42, -64, -86, -108});
}

TEST_CASE("divided_layers adds up what devices have of the outputs, and of the gradient of the input", "[runtime]") {
  const auto program = test::program_of(shipped("divided_layers.pmt"));
  const auto results = test::run_program(program, {}, {3, false, 1, false, KernelChoice::best});
  CHECK(results == test::interpreted(*program, {}));
  const auto of_both = [&](const std::string& name) {
    std::vector<float> numbers;
    for (const auto& bytes : results.at("output " + name)) {
      std::vector<float> own(bytes.size() / sizeof(float));
      std::memcpy(own.data(), bytes.data(), bytes.size());
      numbers.insert(numbers.end(), own.begin(), own.end());
    }
    return numbers;
  };
  CHECK(of_both("part") == std::vector<float>{5, 4, 3, 6});
  CHECK(of_both("y") == std::vector<float>{8, 10, 8, 10});
  CHECK(of_both("grad_b") == std::vector<float>{-3, 0, -3, -2});
  CHECK(of_both("grad_a") == std::vector<float>{-3, -6, 0, 0, -3, -12, 0, -6});
  CHECK(of_both("grad_x") == std::vector<float>{2, 3, -10, 0, 2, 3, -10, 0});
}

TEST_CASE("setting and reading values by name, with the mistakes answered", "[runtime]") {
  const auto program = test::program_of(
      "mesh a=2\nparams %p:f32[2]{}\nbatch %x:f32[2]{a}\nbatch %w:f32[2]{}\n%y = add %x, %w\nreturn y = %y\n");
  test::Single single(program, {2, KernelChoice::reference});
  CpuModule& module = single.module();
  const std::vector<std::byte> two(8), one(4);
  const auto message = [&](auto&& f) {
    try {
      f();
    } catch (const Error& error) {
      return error.diagnostics().front().message;
    }
    return std::string("accepted");
  };
  CHECK(message([&] { module.input("v"); }) == "the module has no input 'v'");
  CHECK(message([&] { module.output(0, "z"); }) == "the entry 'test' has no output 'z'");
  CHECK(module.batch(0, 0, "x").size() == 16);
  CHECK(module.batch(0, 0, "w").size() == 8);
  CHECK(module.batch(0, 0, "p").empty());
  CHECK(module.batch(0, 0, "none").empty());
  CHECK(module.workers() == 2);
  CHECK(module.allocated() > 0);
  single.run(0);
  single.run();
  CHECK(message([&] { single.set("p", 0, two); }) == "input 'p' is kept once for all devices");
  // What is refused has changed nothing.
  CHECK(message([&] { single.run(); }) == "accepted");
  test::Single other(program, {1, KernelChoice::reference});
  CHECK(message([&] { other.set("p", one); }) == "input 'p' takes 8 bytes, not 4");
  test::Single third(program, {1, KernelChoice::reference});
  Module& parts = third.module();
  CHECK(message([&] { parts.wait(parts.write(parts.input("p"), every_device, two, 4)); }) ==
        "input 'p' takes 8 bytes, not 8 from byte 4 on");
}

TEST_CASE("pieces of different numbers of devices have the same bits under the best kernels for all workers",
          "[runtime]") {
  const std::string body = R"(params %k:f32[3,3,8,16]{}
params %c:f32[16]{}
params %w:f32[400,40]{}
params %b:f32[40]{}
batch %i:f32[4,10,10,8]{a}
%small = constant[dtype=f32, shape=[], value=0.013]
%x = mul %i, %small
%z = conv[strides=[1,1], padding=[1:1,1:1], relu=true] %x, %k, %c
%p = max_pool[window=[2,2], strides=[2,2], padding=[0:0,0:0]] %z
%f = reshape[shape=[4,400]] %p
%h = matmul %f, %w, %b
%hs = mul %h, %small
%t = tanh %hs
%gw = matmul[transpose_a=true] %f, %t
%gf = matmul[transpose_b=true] %t, %w
%gp = reshape[shape=[4,5,5,16]] %gf
%gz = max_pool_grad[window=[2,2], strides=[2,2], padding=[0:0,0:0]] %z, %gp
%gk, %gc = conv_kernel_grad[strides=[1,1], padding=[1:1,1:1], kernel_shape=[3,3,8,16], bias=true] %x, %gz
%gx = conv_input_grad[strides=[1,1], padding=[1:1,1:1], input_shape=[4,10,10,8]] %k, %gz
%gb = reduce_sum[dims=[0]] %t
%sk, %sc, %sw, %sb = psum[axes={a}] %gk, %gc, %gw, %gb
%dw = mul %sw, %small
%w2 = sub %w, %dw
update %w = %w2
return sk = %sk
return sc = %sc
return sb = %sb
return gx = %gx
)";
  struct Ragged {
    std::int64_t devices, pieces;
  };
  for (const Ragged& ragged : {Ragged{17, 8}, Ragged{5, 3}, Ragged{7, 3}}) {
    const auto program = test::program_of("mesh a=1\n" + body, {{"a", ragged.devices}});
    const cpu::Plan plan = cpu::make_plan(program, {false, ragged.pieces});
    INFO(ragged.devices << " devices in " << ragged.pieces << " pieces");
    const cpu::Cut& rows = plan.cuts.front();
    CHECK(rows.rows_per_instance == 4);
    CHECK(rows.largest() > rows.pieces.front().count);
    const test::Values inputs = test::random_inputs(*program, 5);
    test::same_for_all_workers(program, inputs, ragged.pieces);
  }
}

// Forward and backward, as a dense layer of as many outputs as inputs has them.
TEST_CASE("a square matrix and its transpose are packed each for itself", "[runtime]") {
  const auto program = test::program_of(R"(mesh a=1
batch %x:f32[32,256]{a}
params %w:f32[256,256]{}
%v = pvary[axes={a}] %w
%y = matmul %x, %v
%z = matmul[transpose_b=true] %y, %v
%u = matmul %z, %v
return y = %y
return z = %z
return u = %u
)");
  const test::Values inputs = test::random_inputs(*program, 3);
  const test::Values expected = test::run_program(program, inputs, {1, false, 1, false, KernelChoice::reference});
  for (const auto& [name, values] : test::run_program(program, inputs, {1, false, 1, false, KernelChoice::best})) {
    INFO(name);
    const bool same = test::close(DType::f32, values, expected.at(name));
    CHECK(same);
  }
}

}  // namespace
}  // namespace pmaptrain
