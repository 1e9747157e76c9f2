// What the module prepares for a GPU that is only described: no test here needs one, only the module.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/bf16.h"
#include "core/base/error.h"
#include "core/kernel/gpu_budget.h"
#include "core/ops/all.h"
#include "core/ops/elementwise/unary.h"
#include "core/ops/matmul/batch.h"
#include "core/ops/matmul/matmul.h"
#include "core/passes/pipeline.h"
#include "core/runtime/gpu/backend.h"
#include "core/runtime/gpu/executor.h"
#include "core/runtime/gpu/load_platform.h"
#include "core/setup/make_setup.h"
#include "core/setup/plan.h"
#include "core/spec/load.h"
#include "tests/app/process.h"
#include "tests/catch.h"
#include "tests/cuda/kernel_case.h"
#include "tests/cuda/library_cases.h"
#include "tests/cuda/module.h"
#include "tests/files.h"
#include "tests/gpu/gpus.h"
#include "tests/gpu/networks.h"
#include "tests/parity/case.h"
#include "tests/runtime/programs.h"
#include "tests/session_run.h"
#include "tests/words.h"

namespace pmaptrain::test {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20, most_workspace = 1024 * mebibyte;

// The workspace of the kernel that the device prepares for a case.
std::size_t workspace_of(gpu::KernelPreparer& device, KernelCase c) {
  c.infer_results();
  const GpuRequest request = c.request();
  return device.prepare(c.op, request, make_gpu_kernel(c.op, request)).workspace;
}

Type one_array(DType dtype, Shape shape) { return {dtype, std::move(shape), {}}; }

}  // namespace

TEST_CASE("every product, convolution and attention that is compared with its reference on a GPU is prepared there",
          "[cuda][module]") {
  const auto device = described_device();
  if (device == nullptr) return;
  for (const NamedCases& some : library_cases()) {
    for (KernelCase c : some.cases) {
      c.infer_results();
      run_apart(some.name + ", " + to_string(c), [&] { CHECK(workspace_of(*device, c) < most_workspace); });
    }
  }
}

TEST_CASE("fused rows of any length and element type compile for a GPU", "[cuda][module]") {
  const TemporaryFolder folder;
  const Variable cache("XDG_CACHE_HOME", folder.path().string());
  const auto device = described_device(gpu::generate_source);
  if (device == nullptr) return;
  for (const std::string dtype : {"bf16", "f32", "f64", "i32"}) {
    for (const std::string length : {"2", "40", "64", "50000"}) {
      INFO(dtype << ", " << length);
      const std::string type = dtype + "[4," + length + "]";
      // The sum of a softmax, and that of the label's element, where there are exponentials.
      const std::string softmax = "  %mb = broadcast[shape=[4," + length +
                                  "], dims=[0]] %m\n  %h = sub %p, %mb\n  %e = exp %h\n" +
                                  "  %z = reduce_sum[dims=[1]] %e\n  %ho = mul %h, %o\n" +
                                  "  %k = reduce_sum[dims=[1]] %ho\n  %l = sub %z, %k\n";
      const auto program = program_of(
          "batch %x:" + type + "{}\nbatch %t:i32[4]{}\n%a, %b, %c = fused_rows[length=" + length + "] %x, %t (%p:" +
          type + "{}, %q:i32[4]{}) {\n" + "  %m = reduce_max[dims=[1]] %p\n  %s = reduce_sum[dims=[1]] %p\n" +
          "  %i = argmax[dim=1] %p\n  %o = one_hot[depth=" + length + ", dtype=" + dtype + "] %q\n" +
          (dtype == "i32" ? "  %l = sub %m, %s\n" : softmax) + "  %n = sub %s, %l\n  %y = broadcast[shape=[4," +
          length + "], dims=[0]] %n\n  %g = sub %y, %o\n  yield %g, %i, %n\n}\nreturn a = %a\n");
      const Equation& equation = program->equations.front();
      const std::vector<Type> operands = types_of(*program, equation.operands);
      const std::vector<Type> results = types_of(*program, equation.results);
      const GpuRequest request{operands, results, 2, {true, false}, &equation.regions.front(), program->types};
      CHECK_NOTHROW(device->prepare(equation.op, request, {{GpuGenerated{}}, 0}));
    }
  }
}

namespace {

enum class Kernels : std::uint8_t { all, of_libraries };

// Prepares the kernels of a training step as GPUs would that run it. Returns how many there are.
int prepare_step(gpu::KernelPreparer& device, const Program& training, const std::string& title, Kernels kernels) {
  const auto program = std::make_shared<const Program>(run_passes(training, passes_of_gpus()));
  int count = 0;
  for (const bool deterministic : {false, true}) {
    gpu::SharedPools shared;
    const int gpus = gpu::possible_gpu_counts(program->mesh, 2).back();
    const gpu::Plan plan = gpu::make_plan(program, gpu::divide(program->mesh, gpus), 0, {deterministic}, shared);
    const auto for_each_kernel = [&](auto&& f) {
      gpu::for_each_command(plan.commands, [&](const gpu::Command& command) {
        const auto* const launch = std::get_if<gpu::Launch>(&command);
        if (launch == nullptr) return;
        const Op& op = launch->equation->op;
        const GpuRequest request = gpu::request_of(plan, *launch);
        const GpuKernel kernel = make_gpu_kernel(op, request);
        if (kernel.is_by_library() || kernels == Kernels::all) f(op, request, kernel);
      });
    };
    for_each_kernel([&](const Op& op, const GpuRequest& request, const GpuKernel& kernel) {
      device.begin_preparing(op, request, kernel);
    });
    for_each_kernel([&](const Op& op, const GpuRequest& request, const GpuKernel& kernel) {
      run_apart(title + ": " + to_string(op), [&] {
        const std::size_t workspace = device.prepare(op, request, kernel).workspace;
        CHECK(workspace < most_workspace);
        // A product that gives bf16 has no sums of f32 beside its result, at most its bias.
        const auto* const product = kernel.find<GpuMatmul>();
        if (product != nullptr && product->result == DType::bf16) {
          CHECK(workspace <=
                matmul_budget + 256 + static_cast<std::size_t>(product->batch * product->n) * sizeof(bf16));
        }
      });
      ++count;
    });
  }
  return count;
}

}  // namespace

TEST_CASE("every kernel of the shipped configs is prepared for a GPU: built in, generated, or by a library",
          "[cuda][module]") {
  const TemporaryFolder folder;
  const Variable cache("XDG_CACHE_HOME", folder.path().string());
  const auto device = described_device(gpu::generate_source);
  if (device == nullptr) return;
  std::vector<Network> networks = small_networks();
  for (const std::string& config : testing::shipped_configs()) networks.push_back({config, config, {}});
  int count = 0;
  for (const std::string precision : {"float32", "mixed_bfloat16"}) {
    const auto prepare = [&](const Network& network, Kernels kernels) {
      const std::string title = network.name + ", " + precision;
      count += prepare_step(*device, *setup_of(network, precision).training, title, kernels);
    };
    for (const Network& network : networks) prepare(network, Kernels::all);
    for (const Network& network : whole_networks()) prepare(network, Kernels::of_libraries);
  }
  CHECK(count > 1500);
}

TEST_CASE("every product and convolution of the cases that are compared with JAX on a GPU is prepared there",
          "[cuda][module]") {
  const auto device = described_device();
  if (device == nullptr) return;
  int count = 0;
  for (const std::string& name : parity::listed_cases()) {
    const std::filesystem::path config = parity::folder / "cases" / name / "config.yaml";
    count += prepare_step(*device, *setup::make_setup(spec::load(config.string(), {})).training, name,
                          Kernels::of_libraries);
  }
  CHECK(count > 500);
}

TEST_CASE("the workspace of a config is planned for a described GPU, and is within the bound", "[cuda][module]") {
  std::optional<gpu::DescribedGpu> described_gpu = described();
  if (!described_gpu) return;
  const auto missing = []() -> gpu::Platform& { fail_resource("there is no NVIDIA driver"); };
  const gpu::OpenPlanningGpu planner = [&]() -> gpu::DescribedGpu& { return *described_gpu; };
  for (const char* const precision : {"precision=float32", "precision=mixed_bfloat16"}) {
    INFO(precision);
    const Source source = setup::run_source(testing::setup_of_config("cnn.yaml", {precision}));
    const MemoryNeeds planned =
        gpu::GpuBackend(missing, {.gpus = 2, .open_planning_gpu = planner}).plan(source)->needs();
    const MemoryNeeds bound = gpu::GpuBackend(missing, {.gpus = 2}).plan(source)->needs();
    CHECK(planned.workspace_planned_for == "NVIDIA H100 80GB HBM3");
    CHECK(bound.workspace_planned_for.empty());
    CHECK(planned.workspace > 0);
    CHECK(planned.workspace <= bound.workspace);
    CHECK(planned.total() - planned.workspace == bound.total() - bound.workspace);
  }
}

TEST_CASE("convolutions of bf16 with a bias of float32 and relu are one kernel, without copies as float32",
          "[cuda][module]") {
  const auto device = described_device();
  if (device == nullptr) return;
  for (const std::int64_t channels : {3, 32}) {
    INFO(channels << " channels");
    const Convolution conv{{128, 32, 32, channels}, {3, 3, channels, 64}, {1, 1}, {{1, 1}, {1, 1}}};
    KernelCase forward = three_of(conv, DType::bf16, true).forward;
    forward.operands[2].dtype = DType::f32;
    CHECK(workspace_of(*device, forward) < mebibyte);
  }
}

namespace {

// What cuDNN's frontend writes while a config is planned.
std::string log_of_planning(const std::string& config, const std::string& precision, bool deterministic = false) {
  const TemporaryFolder folder;
  const std::string log = (folder.path() / "log").string();
  const Variable module("PMAPTRAIN_CUDA_MODULE", std::filesystem::absolute(cuda_module()).string());
  const Variable tells("CUDNN_FRONTEND_LOG_INFO", "1"), file("CUDNN_FRONTEND_LOG_FILE", log);
  const tests::Finished done =
      tests::run_binary({"validate", "configs/" + config, "--workers", "1", "--set", "mesh.backend=cuda", "--set",
                         "mesh.gpu_memory=80GiB", "--set", "precision=" + precision, "--set",
                         std::string("mesh.deterministic=") + (deterministic ? "true" : "false")});
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  return read_text(log);
}

// Each plan's engine and notes, after an underscore for each operation of its graph.
std::vector<std::string> plans_in(const std::string& log) {
  std::vector<std::string> plans;
  const std::string mark = "EXECUTION_PLAN_DESCRIPTOR : ";
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (const std::size_t at = line.find(mark); at != line.npos) plans.push_back(line.substr(at + mark.size()));
  }
  return plans;
}

}  // namespace

TEST_CASE("a convolution with relu is planned without it as well, for a library whose relu loses NaN",
          "[cuda][module][process]") {
  if (cuda_module().empty()) return;
  const auto count = [](const std::vector<std::string>& plans, const std::string& begin) {
    return std::count_if(plans.begin(), plans.end(), [&](const std::string& plan) { return plan.starts_with(begin); });
  };
  for (const std::string precision : {"float32", "mixed_bfloat16"}) {
    const std::vector<std::string> plans = plans_in(log_of_planning("cnn.yaml", precision));
    INFO(precision);
    CHECK(count(plans, "___eng") > 0);
    CHECK(count(plans, "__eng") == count(plans, "___eng"));
  }
}

TEST_CASE("engines that differ from run to run, and Winograd's, are planned without deterministic alone",
          "[cuda][module][process]") {
  if (cuda_module().empty()) return;
  const auto count = [](bool deterministic) {
    const std::vector<std::string> plans = plans_in(log_of_planning("cnn.yaml", "float32", deterministic));
    CHECK(plans.size() > 10);
    return std::count_if(plans.begin(), plans.end(), [](const std::string& plan) {
      return contains(plan, "NONDETERMINISTIC") || contains(plan, "WINOGRAD");
    });
  };
  CHECK(count(true) == 0);
  CHECK(count(false) > 0);
}

TEST_CASE("convolutions of shipped configs in mixed precision work on bf16 alone, gradients of kernels too",
          "[cuda][module][process]") {
  if (cuda_module().empty()) return;
  // The tensors x, kernel and y of a graph have these numbers. A plan that needs copies as float32 is looked for last.
  const auto tensors = [](const std::string& log, const std::string& type) {
    const std::regex tensor("Datatype: \\[\"" + type + "\"\\]\\s+Id: [123]\\s");
    return std::distance(std::sregex_iterator(log.begin(), log.end(), tensor), {});
  };
  for (const std::string config : {"cnn.yaml", "resnet18.yaml", "vit.yaml"}) {
    INFO(config);
    const std::string log = log_of_planning(config, "mixed_bfloat16");
    CHECK(contains(log, "CONV_WGRAD"));
    CHECK(tensors(log, "BFLOAT16") >= 3 * 5);
    CHECK(tensors(log, "FLOAT") == 0);
  }
  CHECK(tensors(log_of_planning("cnn.yaml", "float32"), "FLOAT") >= 3 * 5);
}

TEST_CASE("convolutions of float32 have another plan where tensor cores may round to TF32", "[cuda][module]") {
  const auto device = described_device();
  if (device == nullptr) return;
  const Convolution conv{{128, 32, 32, 32}, {3, 3, 32, 64}, {1, 1}, {{1, 1}, {1, 1}}};
  const KernelCase exact = three_of(conv, DType::f32).input_grad;
  KernelCase rounded = exact;
  rounded.tf32 = true;
  CHECK(workspace_of(*device, rounded) != workspace_of(*device, exact));
}

TEST_CASE("a matrix product's workspace is the library's, and a bias in the type of the result", "[cuda][module]") {
  const auto device = described_device();
  if (device == nullptr) return;
  const auto workspace = [&](DType operands, DType bias, std::int64_t n = 128, bool stacked = false) {
    const std::vector<Type> types{one_array(operands, {64, 96}), one_array(operands, {96, n}), one_array(bias, {n})};
    return workspace_of(*device, {ops::Matmul{}, types, 4, {true, false, stacked}}) - 32 * mebibyte;
  };
  CHECK(workspace(DType::f32, DType::f32) == 0);
  CHECK(workspace(DType::bf16, DType::bf16) == 0);
  CHECK(workspace(DType::bf16, DType::f32) == 128 * sizeof(bf16));
  CHECK(workspace(DType::bf16, DType::f32, 128, true) == std::size_t{4} * 128 * sizeof(bf16));
  CHECK(workspace(DType::f64, DType::f64) == 0);
  // Biases of 20 bytes, one after another, are not aligned for the library. A kernel adds them to sums in f32.
  CHECK(workspace(DType::bf16, DType::f32, 10, true) == std::size_t{4} * 64 * 10 * sizeof(float));
  // What no op leaves to the library.
  const std::vector<Type> f32(2, one_array(DType::f32, {0, 0})), i32(2, one_array(DType::i32, {4, 4}));
  const GpuKernel nothing{{GpuMatmul{.m = 4, .n = 4}}, 0};
  CHECK(device->prepare(ops::Matmul{}, {f32, {f32.data(), 1}, 1, {true, true}}, nothing).workspace == 0);
  const GpuKernel whole{{GpuMatmul{.m = 4, .n = 4, .k = 4, .operands = DType::i32, .result = DType::i32}}, 0};
  CHECK_THROWS_WITH(device->prepare(ops::BatchMatmul{}, {i32, {i32.data(), 1}, 1, {true, true}}, whole),
                    Catch::Contains("batch_matmul of i32 is not supported"));
}

// cuDNN plans attention only where there is a driver, for it loads the engines that it has compiled.
TEST_CASE("the workspace of attention for a described GPU is the most that it may take", "[cuda][module]") {
  const auto device = described_device();
  if (device == nullptr) return;
  for (AttentionCase c : attention_cases()) {
    for (KernelCase* const each : {&c.forward, &c.gradient}) {
      each->infer_results();
      const GpuKernel kernel = make_gpu_kernel(each->op, each->request());
      CHECK(workspace_of(*device, *each) == attention_workspace(*kernel.find<GpuAttention>()));
    }
  }
}

namespace {

void check_plans_of_attention() {
  const Variable named("PMAPTRAIN_CUDA_MODULE", cuda_module());
  const std::string h100 = gpu::h100, version = "\"deviceVer\": 900";
  REQUIRE(contains(h100, version));
  for (const std::string generation : {"800", "900", "1000"}) {
    std::string description = h100;
    description.replace(description.find(version), version.size(),
                        "\"plansAttention\": true, \"deviceVer\": " + generation);
    const gpu::DescribedGpu device = gpu::describe_gpu(description);
    for (const bool deterministic : {false, true}) {
      // Of GPT-2, of GPT, and of a width that fills no tile.
      for (const auto& [q, causal] :
           {std::pair{Shape{4, 1024, 12, 64}, true}, {{32, 128, 4, 32}, true}, {{1, 256, 1, 120}, false}}) {
        AttentionCase c = attention_of(q, q[1], causal, deterministic);
        for (KernelCase* const each : {&c.forward, &c.gradient}) {
          if (each == &c.forward && deterministic) continue;  // it is the same
          INFO(generation << ", deterministic " << deterministic << ", " << to_string(*each));
          each->infer_results();
          const GpuRequest request = each->request();
          const GpuKernel kernel = make_gpu_kernel(each->op, request);
          const gpu::PreparedKernel prepared = device.kernels->prepare(each->op, request, kernel);
          CHECK_FALSE(prepared.own);
          CHECK(prepared.workspace < attention_workspace(*kernel.find<GpuAttention>()));
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("cuDNN plans attention for GPUs of three generations, within the workspace that is planned without it",
          "[cuda][module][process]") {
  if (cuda_module().empty()) return;
  const char* const with_driver = "PMAPTRAIN_TEST_WITH_DRIVER";  // set in a process of this case alone
  if (std::getenv(with_driver) != nullptr) return check_plans_of_attention();
  const std::string driver = beside_the_tests("driver/libcuda.so.1");
  if (!std::filesystem::exists(driver)) {
    WARN("skipped: " << driver << " is not there");
    return;
  }
  const tests::Finished done = tests::run_shell(
      with_driver + std::string("=1 LD_LIBRARY_PATH=") + std::filesystem::path(driver).parent_path().string() +
      ":$LD_LIBRARY_PATH PMAPTRAIN_TEST_CUDA_MODULE=" + std::filesystem::absolute(cuda_module()).string() + " " +
      std::filesystem::read_symlink("/proc/self/exe").string() + " 'cuDNN plans attention for GPUs*'");
  INFO(done.out << done.err);
  CHECK(done.status == 0);
}

TEST_CASE("what cannot be prepared is refused by its name", "[cuda][module]") {
  const auto device = described_device();
  if (device == nullptr) return;
  CHECK_THROWS_WITH(device->prepare(ops::Neg{}, {}, {{GpuGenerated{}}, 0}),
                    Catch::Contains("nothing generates code for neg"));
  const GpuKernel unknown{{GpuLaunch{"no_such_kernel", {1, 1, 1}, 256, {}}}, 0};
  CHECK_THROWS_WITH(device->prepare(ops::Neg{}, {}, unknown), Catch::Contains("there is no kernel 'no_such_kernel'"));
}

}  // namespace pmaptrain::test
