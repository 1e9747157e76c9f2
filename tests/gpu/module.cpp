// The GPU backend on emulated GPUs beside the interpreter.
#include <cstring>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/graph/passes.h"
#include "core/graph/text.h"
#include "core/passes/fuse.h"
#include "core/passes/pipeline.h"
#include "core/runtime/gpu/backend.h"
#include "tests/catch.h"
#include "tests/gpu/programs.h"
#include "tests/runtime/program_writer.h"
#include "tests/runtime/programs.h"
#include "tests/slice.h"
#include "tests/words.h"

namespace pmaptrain {
namespace {

using test::check_program;
using test::run_on_gpus;

// Every program of the CPU backend's tests runs on GPUs too, in two ways.
void check_in_short(const std::shared_ptr<const Program>& program) {
  const test::Values inputs = test::random_inputs(*program, 3);
  const test::Values expected = test::interpreted(*program, inputs, 3);
  const int most = gpu::possible_gpu_counts(program->mesh, 4).back();
  check_program(program, inputs, expected, {most, false, true, 3});
  const int whole = gpu::possible_gpu_counts(program->mesh, 4, gpu::Parts::whole_blocks).back();
  check_program(program, inputs, expected, {whole, true, false, 3});
}

const bool is_added = (test::other_backends().push_back(check_in_short), true);

}  // namespace

TEST_CASE("random programs over two axes run on 1 to 4 GPUs as the interpreter says", "[gpu]") {
  for (const std::uint32_t seed : test::some_seeds(3, 30, 4)) {
    INFO("seed " << seed);
    const auto program = test::program_of(test::ProgramWriter(seed, DType::i32, seed % 2 == 1).write());
    check_program(program);
    Program passed = run_passes(simplify(*program), passes_of_all_backends());
    check_program(std::make_shared<const Program>(std::move(passed)));
  }
}

TEST_CASE("a loop's carry that is summed over a group of one is replaced after it was read", "[gpu]") {
  for (const std::string yields : {"%n, %v", "%v, %n"}) {
    for (const std::string mesh : {"a=1", "a=2 b=1"}) {
      const std::string one = mesh == "a=1" ? "a" : "b", all = mesh == "a=1" ? "a" : "a, b";
      check_program(test::program_of("mesh " + mesh + "\nbatch %x:i32[4]{" + all + "}\nbatch %y:i32[4]{" + all +
                                     "}\n%1, %2 = loop[iterations=3, consts=0, carries=2] %x, %y (%p:i32[4]{" + all +
                                     "}, %q:i32[4]{" + all + "}) {\n  %s = psum[axes={" + one +
                                     "}] %p\n  %v = pvary[axes={" + one + "}] %s\n  %n = add %p, %q\n  yield " +
                                     yields + "\n}\nreturn a = %1\nreturn b = %2\n"));
    }
  }
}

TEST_CASE("a sum in a loop that reads what each device computes from its own parameter has the rows of one device",
          "[gpu]") {
  check_program(test::program_of(R"(mesh a=2
params %w:f32[4]{a}
batch %x:f32[16,4]{a}
%z = constant[dtype=f32, shape=[4], value=0.0]
%zero = pvary[axes={a}] %z
%s = loop[iterations=2, consts=1, carries=1] %w, %zero, %x (%v:f32[4]{a}, %c:f32[4]{a}, %rows:f32[8,4]{a}) {
  %u = mul %v, %v
  %t = fused_columns %rows, %u (%p:f32[8,4]{a}, %q:f32[4]{a}) {
    %b = broadcast[shape=[8,4], dims=[1]] %q
    %m = mul %p, %b
    %r = reduce_sum[dims=[0]] %m
    yield %r
  }
  %n = add %c, %t
  yield %n
}
%all = psum[axes={a}] %s
return all = %all
)"));
}

TEST_CASE("a loop of many iterations launches its body again and again, also inside of another one", "[gpu]") {
  // With a collective before it, in it and after it.
  check_program(test::program_of(R"(mesh a=4
batch %x:i32[140,3]{a}
batch %c:i32[3]{a}
%t = psum[axes={a}] %c
%k = pvary[axes={a}] %t
%g = loop[iterations=70, consts=1, carries=1] %k, %c, %x (%q:i32[3]{a}, %acc:i32[3]{a}, %rows:i32[2,3]{a}) {
  %r = reduce_sum[dims=[0]] %rows
  %m = max %r, %q
  %l = psum[axes={a}] %m
  %v = pvary[axes={a}] %l
  %n = sub %v, %acc
  yield %n
}
%s = psum[axes={a}] %g
%u = add %s, %t
return s = %u
)"));
  check_program(test::program_of(R"(mesh a=2
batch %x:i32[60,3]{a}
batch %c:i32[3]{a}
%g = loop[iterations=30, consts=0, carries=1] %c, %x (%acc:i32[3]{a}, %rows:i32[2,3]{a}) {
  %h = loop[iterations=60, consts=1, carries=1] %rows, %acc (%p:i32[2,3]{a}, %q:i32[3]{a}) {
    %r = reduce_sum[dims=[0]] %p
    %m = max %r, %q
    %n = sub %m, %r
    yield %n
  }
  %n = sub %h, %acc
  yield %n
}
%s = psum[axes={a}] %g
return s = %s
)"));
}

TEST_CASE("a GPU adds up the rows of its logical devices in one product", "[gpu]") {
  const auto program = test::program_of(R"(mesh a=8
params %w:i32[3,2]{}
batch %x:i32[4,3]{a}
%v = pvary[axes={a}] %w
%y = matmul %x, %v
%g = matmul[transpose_a=true] %x, %y
%s = psum[axes={a}] %g
%w2 = sub %w, %s
update %w = %w2
)");
  check_program(program);
  const gpu::Plan plan = test::plan_of(program, 2, {.deterministic = false});
  // The weights are read by all devices; the sum over their rows is one call.
  CHECK(to_string(plan) ==
        R"(%2[0] = matmul[transpose_a=false, transpose_b=false] %1[0], %0  # 4 slices
%3 = matmul[transpose_a=true, transpose_b=false] %1[0], %2[0]  # 1 slices
%4 = all_reduce_sum %3  # {a}
await
%5 = sub %0, %4  # 1 slices
)");
}

TEST_CASE("blocks of a mesh that eight does not divide lie on GPUs as a whole", "[gpu]") {
  CHECK(gpu::possible_gpu_counts(Mesh({{"a", 10}}), 10, gpu::Parts::whole_blocks) == std::vector<int>{1, 5});
  CHECK(gpu::possible_gpu_counts(Mesh({{"a", 16}}), 16, gpu::Parts::whole_blocks) == std::vector<int>{1, 2, 4, 8});
}

TEST_CASE("a sum over rows reads a value that has a private copy on each device", "[gpu]") {
  check_program(test::program_of(R"(mesh a=2 b=2
batch %x:i32[4,3]{a}
batch %q:i32[4,2]{a, b}
%s = psum[axes={b}] %q
%m = matmul[transpose_a=true] %x, %s
%t = psum[axes={a}] %m
return t = %t
)"));
}

TEST_CASE("examples that stay are gathered from one copy on each GPU, for all members and private copies", "[gpu]") {
  const auto program = test::program_of(R"(mesh a=4
data %d:i32[9,3]{}
params %w:i32[3,2]{}
batch %r:i32[5]{a}
%v = pvary[axes={a}] %d
%x = gather %v, %r
%u = pvary[axes={a}] %w
%y = matmul %x, %u
%s = psum[axes={a}] %y
return x = %x
return s = %s
)");
  check_program(program);
  for (const bool private_copies : {false, true}) {
    gpu::SharedPools shared;
    const gpu::Plan plan = gpu::make_plan(program, gpu::divide(program->mesh, 2), 0, {true, private_copies}, shared);
    CHECK(plan.buffer(plan.inputs.front()).bytes() == 9 * 3 * 4);
    CHECK(shared.data == gpu::alignment);
  }
  const auto platform = test::make_emulated({.devices = 2});
  const gpu::GpuBackend backend([&]() -> gpu::Platform& { return *platform; }, {.gpus = 2});
  const Source source{{{"test", program, 1}}, false, 3};
  CHECK(backend.plan(source)->needs().data == 2 * 9 * 3 * 4);
  const auto module = backend.load(source);
  CHECK(module->allocated() == backend.plan(source)->needs().total());
  // In two parts, for all members at once.
  std::vector<std::int32_t> rows(27), weights(6, 1), found(15);
  std::iota(rows.begin(), rows.end(), 0);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(rows));
  const DeviceOfMember everywhere(every_device, every_member);
  module->write(module->input("d"), everywhere, bytes.first(40), 0);
  module->write(module->input("d"), everywhere, bytes.subspan(40), 40);
  module->write(module->input("w"), everywhere, std::as_bytes(std::span(weights)));
  const std::span<std::byte> batch = module->batch(0, 0, "r");
  const std::vector<std::int32_t> numbers(20, 7);
  std::memcpy(batch.data(), numbers.data(), batch.size());
  module->submit(0, 0);
  for (const std::int64_t member : {0, 2}) {
    module->wait(module->read(module->output(0, "x"), {3, member}, std::as_writable_bytes(std::span(found))));
    CHECK(found == std::vector<std::int32_t>{21, 22, 23, 21, 22, 23, 21, 22, 23, 21, 22, 23, 21, 22, 23});
  }
  CHECK_THROWS_WITH(module->wait(module->write(module->input("d"), {every_device, 1}, bytes)),
                    Catch::Contains("input 'd' is kept once for all members"));
}

TEST_CASE("more GPUs than there are, and memory that is short on one, are told as what they are", "[gpu]") {
  const auto program = test::program_of(
      "mesh a=8\nstate %w:f32[1000000]{}\nbatch %x:f32[8]{a}\n%s = psum[axes={a}] %x\nreturn s = %s\n");
  const auto refused = [&](const test::Emulation& emulation, int gpus) {
    const auto platform = test::make_emulated(emulation);
    return test::refusal([&] { test::load_on(*platform, gpus, {{{"test", program, 1}}}); }, ExitStatus::resource);
  };
  CHECK(refused({.devices = 2}, 4) ==
        "4 GPUs are asked for (mesh.workers, --workers), and there are 2 | --workers 2 would do");
  CHECK(test::contains(refused({.devices = 2, .memory = 1 << 20}, 2), "out of memory"));
}

TEST_CASE("axes that do not divide over the GPUs say what would", "[gpu]") {
  const Mesh mesh({{"replicas", 2}, {"shards", 3}});
  CHECK(gpu::possible_gpu_counts(mesh, 8) == std::vector<int>{1, 2, 3, 6});
  CHECK(test::refusal([&] { gpu::divide(mesh, 4); }, ExitStatus::usage) ==
        "the 6 logical devices of the mesh do not divide over 4 GPUs | 1, 2, 3 or 6 would do");
}

TEST_CASE("each GPU has a box of the mesh, and all of them have each device once", "[gpu]") {
  const Mesh mesh({{"replicas", 4}, {"shards", 3}, {"heads", 2}});
  for (const int gpus : gpu::possible_gpu_counts(mesh, 24)) {
    const gpu::Division division = gpu::divide(mesh, gpus);
    CHECK(division.gpus() == gpus);
    for (std::int64_t device = 0; device < mesh.devices(); ++device) {
      const int gpu = division.gpu_of(device);
      REQUIRE((gpu >= 0 && gpu < gpus));
      CHECK(division.device_of(gpu, division.local_of(device)) == device);
    }
  }
}

}  // namespace pmaptrain
