// What the GPU backend says of a program before it is loaded, and what the GPUs of a module have in common.
#include "core/runtime/gpu/backend.h"

#include <memory>
#include <optional>
#include <span>

#include "core/base/error.h"
#include "core/passes/fuse.h"
#include "core/report/peaks.h"
#include "tests/catch.h"
#include "tests/gpu/gpus.h"
#include "tests/gpu/programs.h"
#include "tests/words.h"

namespace pmaptrain {

using test::by_reference;

namespace {

gpu::Platform& missing() { fail_resource("there is no NVIDIA driver"); }

}  // namespace

TEST_CASE("the equations of a fused chain count as operations of its kernel", "[gpu]") {
  const auto program = test::program_of("mesh a=4\nbatch %x:f32[8]{a}\n%y = exp %x\n%z = mul %y, %x\nreturn z = %z\n");
  const auto fused = std::make_shared<const Program>(fuse(*program));
  const auto flops = [](const std::shared_ptr<const Program>& of, int gpus) {
    const auto platform = test::make_emulated({.devices = gpus});
    const auto module = test::load_on(*platform, gpus, {{{"test", of, 1}}});
    double all = 0;
    for (const InstructionReport& row : module->instructions(0)) all += row.flops;
    return all;
  };
  REQUIRE(fused->equations.size() == 1);
  CHECK(flops(fused, 1) >= 2 * 4 * 8);
  CHECK(flops(fused, 1) == flops(program, 1));
  CHECK(flops(fused, 2) == flops(program, 1));
}

TEST_CASE("a program with an op that no GPU kernel carries out is refused by the op's name before it is loaded",
          "[gpu]") {
  const auto program = test::program_of("mesh a=2\nbatch %x:f32[8]{a}\n%y = exp %x\n%z = tanh %y\nreturn z = %z\n");
  gpu::GpuOptions options{.gpus = 2};
  options.make_kernel = [](const Op& op, const GpuRequest& request) {
    KernelRules rules = kernels_of(op);
    if (op.name() == "tanh") rules.gpu = nullptr, rules.no_gpu = NoGpu{"its table is on the host"}.because;
    return gpu_kernel_by(rules, op, request);
  };
  const gpu::GpuBackend backend(missing, options);
  CHECK(test::refusal(
            [&] {
              backend.plan({{{"test", program, 1}}})->needs();
            },
            ExitStatus::usage) ==
        "no GPU kernel carries out the op 'tanh': its table is on the host | mesh.backend: cpu runs it");
}

TEST_CASE("a module on GPUs says what its loading took time for", "[gpu]") {
  const auto program = test::program_of("mesh a=2\nbatch %x:f32[8]{a}\n%y = exp %x\nreturn y = %y\n");
  const auto platform = test::make_emulated({.devices = 1});
  const auto module = test::load_on(*platform, 1, {{{"test", program, 1}}});
  std::vector<std::string> names;
  for (const LoadTime& part : module->load_times()) {
    names.push_back(part.what);
    CHECK(part.seconds >= 0);
  }
  CHECK(names == std::vector<std::string>{"convolutions", "attention", "matrix_products", "generated_kernels",
                                          "own_kernels", "memory", "communicators", "graphs"});
}

TEST_CASE("where a GPU's library has no attention, a module runs our own kernels, and its report names them", "[gpu]") {
  const auto program = test::program_of(
      "batch %q:bf16[1,128,2,8]{}\nbatch %d:bf16[1,128,2,8]{}\n%o, %l = attention[causal=true] %q, %q, %q\n"
      "%a, %b, %c = attention_grad[causal=true] %q, %q, %q, %o, %l, %d\nreturn o = %o\nreturn a = %a\n");
  const auto made_by = [&](bool library_has_attention) {
    test::Emulation options;
    options.library_has_attention = library_has_attention;
    const auto platform = test::make_emulated(options);
    const auto module = test::load_on(*platform, 1, {{{"test", program, 1}}}, {}, make_gpu_kernel);
    std::vector<std::string> names;
    for (const InstructionReport& row : module->instructions(0)) {
      names.push_back(row.implementation);
      CHECK(row.on_tensor_cores);
    }
    return names;
  };
  CHECK(made_by(true) == std::vector<std::string>{"cuDNN sdpa", "cuDNN sdpa_backward"});
  CHECK(made_by(false) ==
        std::vector<std::string>{"attention_tiles_w64",
                                 "attention_delta_bf16, attention_grad_q_tiles_w64, attention_grad_kv_tiles_w64"});
}

TEST_CASE("the backend reports the plan that its module has", "[gpu]") {
  const auto program =
      test::program_of("mesh a=4\nbatch %x:f32[8]{a}\n%y = exp %x\n%s = psum[axes={a}] %y\nreturn s = %s\n");
  const auto platform = test::make_emulated({.devices = 2});
  const gpu::GpuBackend backend([&]() -> gpu::Platform& { return *platform; }, {2, {}, by_reference});
  const Source source{{{"test", program, 1}}};
  const std::unique_ptr<Planned> planned = backend.plan(source);
  const PlanReport report = planned->report(0);
  const std::unique_ptr<Module> module = std::move(*planned).load();
  const std::vector<InstructionReport> rows = module->instructions(0);
  REQUIRE(report.instructions.size() == rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(report.instructions[i].name == rows[i].name);
    CHECK(report.instructions[i].implementation == rows[i].implementation);
    CHECK(report.instructions[i].flops == rows[i].flops);
  }
  CHECK(report.stages.size() == module->stages(0).size());
  // A GPU has two of the four devices. It sends their sum, 32 bytes with padding up to 256, and adds both sums.
  REQUIRE(report.rank_steps.size() == 1);
  const auto& [equation, steps] = *report.rank_steps.begin();
  CHECK(equation == &report.program->equations.back());
  REQUIRE(steps.size() == 3);
  CHECK((steps[0].what == "sum_blocks" && steps[0].elements == 8));
  CHECK((steps[1].what == "all_gather" && steps[1].sent == 256));
  CHECK((steps[2].what == "sum_tree" && steps[2].elements == 64));
  CHECK(report.sent_bytes == 256);
}

DEVICE_TEST_CASE("peak rates of GPUs are those of programs on them", "[gpu]") {
  const auto platform = test::open_gpus(2);
  const gpu::GpuBackend backend([&]() -> gpu::Platform& { return *platform; }, {.gpus = 2});
  for (const DType products : {DType::f32, DType::bf16}) {
    const report::Peaks peaks = report::measure_gpu_peaks(backend, 2, products, {16, 4096});
    CHECK(peaks.gemm_flops_per_second > 0);
    CHECK(peaks.copy_bytes_per_second > 0);
  }
}

TEST_CASE("entries with different meshes exchange values among the GPUs that their own mesh has along an axis",
          "[gpu]") {
  const auto two_axes =
      test::program_of("mesh a=2 b=2\nbatch %x:i32[3]{a, b}\n%s = psum[axes={a}] %x\nreturn s = %s\n");
  const auto one_axis = test::program_of("mesh a=4\nbatch %x:i32[3]{a}\n%s = psum[axes={a}] %x\nreturn s = %s\n");
  for (const bool deterministic : {true, false}) {
    const auto platform = test::make_emulated({.devices = 4});
    const auto module =
        test::load_on(*platform, 4, {{{"two", two_axes, 1}, {"one", one_axis, 1}}}, {.deterministic = deterministic});
    for (const std::size_t entry : {std::size_t{0}, std::size_t{1}}) {
      const std::span<std::byte> x = module->batch(entry, 0, "x", 0);
      auto* const values = reinterpret_cast<std::int32_t*>(x.data());
      for (std::int32_t i = 0; i < 12; ++i) values[i] = 1 << i / 3;  // device d has 2^d
      module->wait(module->submit(entry, 0));
      for (std::int64_t device = 0; device < 4; ++device) {
        std::int32_t found[3] = {};
        module->wait(module->read(module->output(entry, "s"), device, std::as_writable_bytes(std::span(found)), 0));
        CHECK(found[2] == (entry == 1 ? 15 : device % 2 == 0 ? 5 : 10));
      }
    }
  }
}

TEST_CASE("all GPUs need the same memory, and zeros are kept once for all values of a type", "[gpu]") {
  // Device 0 gets no value, so that one GPU alone reads zeros.
  const auto program = test::program_of(R"(mesh a=4
batch %x:i32[3]{a}
%y = ppermute[axes={a}, pairs=[0:1, 1:2, 2:3]] %x
%z = ppermute[axes={a}, pairs=[0:1, 1:2, 2:3]] %y
return z = %z
)");
  for (int gpu = 0; gpu < 4; ++gpu) {
    gpu::SharedPools shared;
    const gpu::Plan plan = gpu::make_plan(program, gpu::divide(program->mesh, 4), gpu, {false}, shared);
    CHECK(plan.constants.size() == 1);
    CHECK(plan.constant_bytes == gpu::alignment);
  }
}

TEST_CASE("the least number of GPUs is found on which each needs no more than there is", "[gpu]") {
  const Source source{
      {{"test",
        test::program_of("mesh a=8\nbatch %x:f32[100000]{a}\n%y = exp %x\n%z = reduce_sum[dims=[0]] %y\n"
                         "%s = psum[axes={a}] %z\nreturn s = %s\n"),
        1}}};
  const auto of_each = [&](int gpus) {
    return gpu::GpuBackend(missing, {.gpus = gpus, .make_kernel = by_reference}).plan(source)->needs().total() /
           static_cast<std::size_t>(gpus);
  };
  const gpu::GpuBackend one(missing, {.gpus = 1, .make_kernel = by_reference});
  REQUIRE(of_each(4) < of_each(2));
  CHECK(one.fewest_workers_that_fit(source, {}, of_each(2)) == 2);
  CHECK(one.fewest_workers_that_fit(source, {}, of_each(2) - 1) == 4);
  CHECK(one.fewest_workers_that_fit(source, {}, of_each(8) - 1) == std::nullopt);
  const gpu::GpuBackend four(missing, {.gpus = 4, .make_kernel = by_reference});
  CHECK(four.fewest_workers_that_fit(source, {}, of_each(1)) == 8);
  // Two processes with 2 and 4 GPUs each.
  Source blocks = source;
  blocks.blocks = 2;
  CHECK(one.fewest_workers_that_fit(blocks, {{0, 2}}, of_each(4)) == 2);
  CHECK(one.fewest_workers_that_fit(blocks, {{0, 2}}, of_each(4) - 1) == 4);
}

TEST_CASE("what a GPU needs is what its module allocates, besides the workspace of libraries", "[gpu]") {
  const Source source{
      {{"test",
        test::program_of("mesh a=4\nparams %w:f32[3,2]{}\nbatch %x:f32[5,3]{a}\n%v = pvary[axes={a}] %w\n"
                         "%y = matmul %x, %v\n%g = matmul[transpose_a=true] %x, %y\n%s = psum[axes={a}] %g\n"
                         "%n = sub %w, %s\nupdate %w = %n\n"),
        2}}};
  const auto platform = test::make_emulated({.devices = 2});
  const gpu::GpuBackend backend([&]() -> gpu::Platform& { return *platform; }, {.gpus = 2});
  const MemoryNeeds needs = backend.plan(source)->needs();
  CHECK(needs.gpus == 2);
  CHECK(needs.parameters == 2 * 3 * 2 * sizeof(float));
  CHECK(needs.gradients >= 2 * 3 * 2 * sizeof(float));
  CHECK(needs.workspace == 2 * (std::size_t{32} << 20));
  CHECK(needs.workspace_planned_for.empty());
  const std::size_t buffers = needs.total() - needs.workspace;
  const std::size_t allocated = backend.load(source)->allocated();
  CHECK(allocated >= buffers);
  CHECK(allocated <= needs.total());
}

TEST_CASE("without libraries a workspace is bounded: their budget, and what is copied for them", "[gpu]") {
  const auto workspace = [&](const std::string& text) {
    return gpu::GpuBackend(missing, {.gpus = 1}).plan({{{"test", test::program_of(text), 1}}})->needs().workspace;
  };
  constexpr std::size_t mebibyte = std::size_t{1} << 20;
  CHECK(workspace("mesh a=2\nbatch %x:f32[8]{a}\n%y = exp %x\nreturn y = %y\n") == 0);
  CHECK(workspace("mesh a=2\nbatch %x:f32[4,8]{a}\nbatch %y:f32[8,4]{a}\n%z = matmul %x, %y\nreturn z = %z\n") ==
        32 * mebibyte);
  CHECK(workspace("mesh a=2\nbatch %x:bf16[4,8]{a}\nbatch %y:bf16[8,4]{a}\n%z = matmul %x, %y\nreturn z = %z\n") ==
        32 * mebibyte + std::size_t{32 + 32 + 16} * sizeof(float));  // of a block, which has one device
}

TEST_CASE("a GPU's memory is what the config names, else that of the smallest GPU, else unknown", "[gpu]") {
  const auto platform = test::make_emulated({.devices = 2, .memory = 1 << 20});
  const auto there = [&]() -> gpu::Platform& { return *platform; };
  CHECK(gpu::GpuBackend(there, {}).device_memory() == 1 << 20);
  CHECK(gpu::GpuBackend(there, {.memory = 1000}).device_memory() == 1000);
  CHECK(gpu::GpuBackend(missing, {.memory = 1000}).device_memory() == 1000);
  CHECK(gpu::GpuBackend(missing, {.gpus = 2}).device_memory() == std::nullopt);
  const Source source{{{"test", test::program_of("mesh a=8\nbatch %x:f32[8]{a}\nreturn x = %x\n"), 1}}};
  CHECK(gpu::GpuBackend(there, {}).plan(source)->workers() == 2);
  CHECK(gpu::GpuBackend(missing, {.memory = 1000}).plan(source)->workers() == 1);
  CHECK(gpu::GpuBackend(missing, {.gpus = 4}).plan(source)->workers() == 4);
}

}  // namespace pmaptrain
