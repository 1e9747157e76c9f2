// explain --kernels: the command, and what stands out in its table.
#include <regex>
#include <sstream>

#include "core/base/text.h"
#include "core/report/kernels.h"
#include "tests/app/call.h"
#include "tests/catch.h"
#include "tests/train/steps.h"

using namespace pmaptrain;
using pmaptrain::tests::call;
using pmaptrain::tests::contains;
using pmaptrain::tests::Finished;
using pmaptrain::tests::linear;

namespace {

// The line of the table that holds `part`; empty where none does.
std::string line_with(const std::string& text, const std::string& part) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (contains(line, part)) return line;
  }
  return {};
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("explain --kernels lists every step of the plan by stage, with cost and total", "[app]") {
  const Finished result = call({"explain", linear, "--kernels", "--workers", "1"});
  INFO(result.out);
  CHECK(result.status == 0);
  CHECK(contains(result.out, " kernel steps:\n"));
  CHECK(contains(result.out, "8 logical devices, 1 worker; workers meet once a step\n"));
  CHECK(contains(result.out, "stage 1 of 2, one piece of 800 rows:\n"));
  CHECK(contains(result.out, "stage 2 of 2, every worker for itself:\n"));
  // 2 · 800 · 5 in each of the two products.
  CHECK(contains(line_with(result.out, "dense_0.grad"), "8 k"));
  CHECK(contains(line_with(result.out, "synchronise"), "pieces in order"));
  CHECK_FALSE(line_with(result.out, "  total").empty());
  CHECK_FALSE(contains(result.out, "% roof"));
}

TEST_CASE("explain says which backend runs an equation, and --measure times it there", "[app]") {
  const Finished result =
      call({"explain", linear, "--kernels", "--measure", "--memory", "--set", "mesh.backend=reference"});
  INFO(result.out);
  CHECK(result.status == 0);
  CHECK(contains(result.out, "8 logical devices, 1 worker; workers never meet in a step\n"));
  CHECK(contains(line_with(result.out, "matmul"), "reference"));
  CHECK_FALSE(line_with(result.out, "  values ").empty());
}

TEST_CASE("explain --kernels shows what a loop repeats, indented", "[app]") {
  const Finished result = call({"explain", linear, "--kernels", "--workers", "1", "--set", "data.microbatches=2"});
  INFO(result.out);
  CHECK(contains(line_with(result.out, "  loop "), "2 times, slices of "));
  CHECK(contains(result.out, "\n    matmul "));
}

TEST_CASE("explain --kernels lists what GPUs will run, where there are none", "[app]") {
  const auto text_of = [](const std::string& config, const std::string& gpus) {
    const Finished result = call({"explain", config, "--kernels", "--set", "mesh.backend=cuda", "--workers", gpus});
    INFO(result.err);
    CHECK(result.status == 0);
    return result.out;
  };
  const std::string one = text_of("configs/cnn.yaml", "1");
  INFO(one);
  CHECK(contains(one, "each GPU:"));
  CHECK(line_with(one, "  conv  ").ends_with("  cuDNN"));
  CHECK(line_with(one, "  matmul  ").ends_with("  cuBLASLt"));
  CHECK(line_with(one, "fused_rows").ends_with("  generated"));
  CHECK(line_with(one, "  max_pool  ").ends_with("  max_pool_f32"));
  CHECK_FALSE(contains(one, "between GPUs"));
  const std::string four = text_of("configs/cnn.yaml", "4");
  CHECK(contains(four, "8 logical devices, 4 GPUs; GPUs meet once a step\n"));
  CHECK(contains(four, "all_reduce between GPUs"));
}

TEST_CASE("explain --kernels counts what runs on tensor cores of a GPU", "[app]") {
  const auto share_of = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "explain");
    arguments.insert(arguments.end(), {"--kernels", "--workers", "1", "--set", "mesh.backend=cuda"});
    const Finished result = call(arguments);
    INFO(result.out << result.err);
    std::smatch found;
    REQUIRE(
        std::regex_search(result.out, found, std::regex("([0-9.]+) % of [0-9.]+ [kMGT]? ?FLOP are on tensor cores\n")));
    return std::stod(found[1]);
  };
  CHECK(share_of({"configs/cnn.yaml"}) == 0);
  CHECK(share_of({"configs/cnn.yaml", "--set", "mesh.tf32=true"}) > 90);
  CHECK(share_of({"configs/cnn.yaml", "--set", "precision=mixed_bfloat16"}) > 90);
  const std::string text = "data.source.text.";
  const std::string gpt = call({"explain", "configs/gpt.yaml", "--kernels", "--workers", "1", "--set",
                                "mesh.backend=cuda", "--set", "precision=mixed_bfloat16"})
                              .out;
  CHECK(line_with(gpt, "  attention  ").ends_with("  cuDNN sdpa"));
  CHECK(line_with(gpt, "  attention_grad  ").ends_with("  cuDNN sdpa_backward"));
  CHECK(share_of({"configs/gpt2.yaml", "--set", "mesh.axes.devices=1", "--set", "data.batch_size=8", "--set",
                  "data.microbatches=1", "--set", text + "train=/usr/share/common-licenses/GPL-3", "--set",
                  text + "validation=/usr/share/common-licenses/MPL-2.0", "--set", text + "tokens=bytes", "--set",
                  text + "end_token=null"}) > 99);
}

TEST_CASE("explain --kernels --measure adds times, shares and the roof", "[app]") {
  const Finished result = call({"explain", linear, "--kernels", "--measure", "--workers", "1"});
  INFO(result.out);
  CHECK(result.status == 0);
  CHECK(contains(result.out, "a step takes "));
  CHECK(contains(result.out, "; the roof is "));
  // A share of 100 % and more makes its column wider.
  CHECK(std::regex_search(result.out, std::regex("% step +% roof +implementation\n")));
  CHECK(contains(line_with(result.out, "matmul"), "s  "));
  CHECK(call({"explain", linear, "--measure"}).err ==
        "error: --measure is about kernels\n  help: say --kernels --measure\n");
}

TEST_CASE("plain loops that take more than a few percent stand out, and so do large changes of layout", "[app]") {
  const setup::Setup setup = testing::small_cnn();
  const CpuBackend backend({.workers = 1});
  const std::unique_ptr<Planned> planned = backend.plan(setup::step_source(setup));
  report::KernelReport report = report::kernel_report(backend, *planned);
  for (report::KernelLine& line : report.lines) {
    line.layout_changes.clear();
    line.layout_bytes = 0;
    if (line.implementation == "reference") line.implementation = "vectors";
  }
  const auto text = [&] { return report::kernels_text(report); };
  const auto line_of = [&](std::string_view op) -> report::KernelLine& {
    for (report::KernelLine& line : report.lines) {
      if (line.name == op) return line;
    }
    throw std::runtime_error("no such line");
  };
  CHECK_FALSE(contains(text(), "<=="));

  line_of("conv").implementation = "reference";
  CHECK(contains(line_with(text(), "<=="), "  reference  <== plain loops: "));
  CHECK(contains(line_with(text(), "<=="), " % of the step's bytes"));
  line_of("reduce_max").implementation = "reference";  // of next to nothing
  CHECK(count(text(), "<==") == 1);

  report.times = {0.010, {100e9, 10e9}};
  for (report::KernelLine& line : report.lines) line.seconds = 1e-6;
  CHECK_FALSE(contains(text(), "<=="));
  line_of("reduce_max").seconds = 0.001;
  CHECK(contains(line_with(text(), "<=="), "reference  <== plain loops: 10.0 % of the step"));
  CHECK(contains(line_with(text(), "reduce_max"), "  1 ms    10.0  "));
  line_of("reduce_max").implementation = "reference, stacked";
  CHECK(contains(line_with(text(), "<=="), "reference, stacked  <== plain loops: 10.0 % of the step"));

  line_of("reduce_max").seconds = 1e-6;
  report::KernelLine& pool = line_of("max_pool");
  pool.layout_changes = {"operand 0"};
  pool.layout_bytes = 0.05 * pool.bytes;
  CHECK(contains(text(), "\n      changes the layout of operand 0\n"));
  pool.layout_bytes = pool.bytes;
  CHECK(contains(line_with(text(), "changes the layout of operand 0"), "  <== moves "));
}
