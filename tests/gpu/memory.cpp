// Whether a run fits into the memory of GPUs, what would fit, and what `auto` takes.
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "core/runtime/plan_count.h"
#include "core/setup/plan.h"
#include "core/train/checkpoint_writer.h"
#include "core/train/resources.h"
#include "tests/app/call.h"
#include "tests/catch.h"
#include "tests/cuda/module.h"
#include "tests/emulated_gpu/platform.h"
#include "tests/gpu/gpus.h"
#include "tests/session_run.h"
#include "tests/words.h"

namespace pmaptrain::testing {
namespace {

using test::contains;
using tests::call;
using tests::Finished;

// Large activations and small parameters, on eight logical devices.
const std::vector<std::string> wide = {"mesh.axes={devices: 8}", "mesh.backend=cuda",
                                       "data.source.synthetic_images.train=16384", "data.batch_size=16384",
                                       "model.layers=[flatten, {dense: 512}, relu, {dense: 3}]"};

std::vector<std::string> with(std::vector<std::string> set, const std::vector<std::string>& more) {
  set.insert(set.end(), more.begin(), more.end());
  return set;
}

// A run, and what it needs of memory.
struct Estimated {
  explicit Estimated(const std::vector<std::string>& set)
      : setup(setup_of_text(small_images, set)), estimate(train::estimate_memory(setup, needs())) {}
  MemoryNeeds needs() const { return backend->plan(source)->needs(); }
  std::string refusal() const {
    return test::refusal([&] { train::check_memory(estimate, setup, *backend, source); }, ExitStatus::resource);
  }

  const setup::Setup setup;
  const Source source = setup::run_source(setup);
  const std::shared_ptr<const Backend> backend = setup::backend_of(setup.spec().mesh);
  const setup::MemoryEstimate estimate;
};

// What each GPU needs.
std::size_t total_of(const std::vector<std::string>& set) { return Estimated(set).estimate.total(); }

std::size_t number_after(const std::string& text, const std::string& words) {
  std::smatch found;
  REQUIRE(std::regex_search(text, found, std::regex(words + "([0-9]+)")));
  return std::stoul(found[1]);
}

}  // namespace

TEST_CASE("a run that does not fit into a GPU is refused with what was planned to fit", "[gpu][module]") {
  const test::WithGpus gpus(1);
  constexpr std::size_t mebibyte = std::size_t{1} << 20;
  const std::size_t all = total_of(wide), limit = (all / 2 + 16 * mebibyte) / mebibyte;
  REQUIRE(all > 64 * mebibyte);
  const std::vector<std::string> set = with(wide, {"mesh.gpu_memory=" + std::to_string(limit) + "MiB"});
  const Estimated run(set);
  CHECK(run.estimate.gpus == 1);
  CHECK(run.estimate.available == limit * mebibyte);
  const std::string told = run.refusal();
  INFO(told);
  CHECK(told.starts_with("the plan needs "));
  CHECK(contains(told, " of memory on the GPU, and " + std::to_string(limit) + ".0 MiB is available"));
  CHECK(contains(told, "the largest item is "));
  CHECK(told.ends_with(" would fit"));

  // Each of them fits, and half a step less does not.
  const std::size_t available = limit * mebibyte;
  const std::size_t workers = number_after(told, "--workers "), batch = number_after(told, "data.batch_size: "),
                    parts = number_after(told, "data.microbatches: ");
  const auto needs = [&](const std::string& key, std::size_t value) {
    return total_of(with(set, {key + "=" + std::to_string(value)}));
  };
  CHECK(needs("mesh.workers", workers) <= available);
  if (workers > 2) CHECK(needs("mesh.workers", workers / 2) > available);
  CHECK(needs("data.batch_size", batch) <= available);
  CHECK(needs("data.batch_size", batch * 2) > available);
  CHECK(needs("data.microbatches", parts) <= available);
  if (parts > 2) CHECK(needs("data.microbatches", parts / 2) > available);
}

TEST_CASE("a run whose parameters alone do not fit asks for a smaller model", "[gpu][module]") {
  const test::WithGpus gpus(1);
  const Estimated run({"mesh.axes={devices: 2}", "mesh.backend=cuda", "mesh.gpu_memory=40MiB",
                       "model.layers=[flatten, {dense: 4000}, {dense: 4000}, {dense: 3}]"});
  CHECK(run.refusal().ends_with("| a smaller model would fit; smaller batches and more microbatches are not enough"));
}

TEST_CASE("a run that fits only with shards is told the first stage of sharding with which it does", "[gpu][module]") {
  const test::WithGpus gpus(4);
  const auto with_stage = [](const std::string& memory, const std::string& stage) {
    std::vector<std::string> set{"mesh.axes=[{a: 2}, {b: 2}]",
                                 "data.axes=[a, b]",
                                 "mesh.backend=cuda",
                                 "mesh.workers=4",
                                 "mesh.gpu_memory=" + memory,
                                 "model.layers=[flatten, {dense: 2000}, {dense: 2000}, {dense: 2000}, {dense: 3}]"};
    if (!stage.empty()) set.push_back("parallelism.fsdp={axis: [a, b], stage: " + stage + "}");
    return Estimated(set);
  };
  const auto total = [&](const std::string& stage) { return with_stage("80GiB", stage).estimate.total(); };
  const std::size_t plain = total(""), first = total("1"), third = total("3");
  CHECK(first < plain);
  CHECK(third < first);
  const std::size_t mebibyte = std::size_t{1} << 20U;
  for (const auto& [bytes, stage] : {std::pair(first, 1), std::pair(third, 3)}) {
    INFO("stage " << stage);
    const Estimated run = with_stage(std::to_string(bytes / mebibyte + 1) + "MiB", "");
    CHECK(
        run.refusal().ends_with("| parallelism.fsdp: {axis: [a, b], stage: " + std::to_string(stage) + "} would fit"));
  }
}

TEST_CASE("validate states what each GPU needs and whether it fits; run refuses before it writes", "[gpu][module]") {
  const test::WithGpus gpus(2);
  const TemporaryFolder folder;
  const std::string config = folder.write("c.yaml", small_images);
  const Finished fits = call({"validate", config, "--set", "mesh.backend=cuda", "--set", "mesh.gpu_memory=80GiB"});
  INFO(fits.out << fits.err);
  CHECK(fits.status == 0);
  CHECK(contains(fits.out, "carried by 2 GPUs (backend cuda)"));
  CHECK(contains(fits.out, "memory of each of 2 GPUs:"));
  for (const char* const item : {"parameters", "optimizer state", "gradients", "activations", "batches", "workspace"}) {
    CHECK(contains(fits.out, item));
  }
  CHECK(contains(fits.out, "available  "));
  CHECK(contains(fits.out, "it fits: "));

  const Finished refused =
      call({"run", config, "--run-dir", folder / "run", "--set", "mesh.backend=cuda", "--set", "mesh.gpu_memory=1MiB"});
  CHECK(refused.status == static_cast<int>(ExitStatus::resource));
  CHECK(contains(refused.err, "on each of 2 GPUs, and 1.0 MiB is available"));
  CHECK(contains(refused.err, "it needs: parameters "));
  CHECK(contains(refused.err, "the bound of the libraries' workspace "));
  CHECK_FALSE(std::filesystem::exists(folder / "run"));

  const Finished unused = call({"validate", config, "--set", "mesh.gpu_memory=80GiB"});
  CHECK(contains(unused.out + unused.err, "mesh.gpu_memory does nothing: mesh.backend is cpu"));
  const Finished rounded = call({"validate", config, "--set", "mesh.tf32=true", "--set", "mesh.backend=reference"});
  CHECK(contains(rounded.out + rounded.err, "mesh.tf32 does nothing: mesh.backend is reference; with cuda it lets "));
}

TEST_CASE("validate states what a run on GPUs needs of the process's memory, as it is then pinned", "[gpu][module]") {
  for (const int count : {1, 2}) {
    const test::WithGpus gpus(test::make_emulated({.devices = count}));
    const Estimated run({"mesh.backend=cuda", "train.duration=90 steps", "train.checkpoint.every=1 epoch"});
    const auto& host = run.estimate.host;
    CHECK(host.snapshot == train::snapshot_bytes(run.setup));
    CHECK(host.snapshot > 0);
    const std::unique_ptr<Module> module = run.backend->load(run.source);
    CHECK(test::calls_of(gpus.platform()).pinned == host.pinned);
  }
  const test::WithGpus gpus(2);
  const TemporaryFolder folder;
  const std::string config = folder.write("c.yaml", small_images);
  const Finished text = call({"validate", config, "--set", "mesh.backend=cuda"});
  INFO(text.out);
  CHECK(std::regex_search(
      text.out, std::regex("memory of this process beside it:\n  pinned memory for batches and copies +[^\n]+\n"
                           "  snapshot for checkpoints +[^\n]+\n  values that are read or made before the first "
                           "step +[^\n]+\n  total +[^\n]+\n  available +")));
  const auto json = nlohmann::json::parse(call({"validate", config, "--json", "--set", "mesh.backend=cuda"}).out);
  const auto& host = json["memory_bytes"]["host"];
  CHECK(host["total"] ==
        host["pinned"].get<std::size_t>() + host["snapshot"].get<std::size_t>() + host["passing"].get<std::size_t>());
  CHECK_FALSE(call({"validate", config}).out.find("memory of this process beside it") != std::string::npos);
}

TEST_CASE("a run on GPUs that needs more of the process's memory than there is, is refused", "[gpu][module]") {
  constexpr std::size_t mebi = std::size_t{1} << 20;
  const setup::Setup setup = setup_of_text(small_images);
  setup::MemoryEstimate estimate;
  estimate.gpus = 2;
  estimate.available = std::nullopt;
  estimate.host = {30 * mebi, 60 * mebi, 10 * mebi, 100 * mebi};
  setup::check_memory(estimate, setup.batch);
  const auto refused = [&] {
    return test::refusal([&] { setup::check_memory(estimate, setup.batch); }, ExitStatus::resource);
  };
  estimate.host.available = 90 * mebi;
  CHECK(refused() ==
        "the plan needs 100.0 MiB of this process's memory beside that of the GPUs, and 90.0 MiB is available | "
        "train.checkpoint.every: never writes one checkpoint, at the end, without a snapshot");
  estimate.host.available = 30 * mebi;  // too little without a snapshot, too
  CHECK(refused().ends_with(" | smaller batches and a smaller model need less"));
}

TEST_CASE("auto takes GPUs that can run the config, and says why it takes the CPU", "[gpu][module]") {
  const auto chosen = [](const std::vector<std::string>& more) {
    const setup::Setup setup =
        setup_of_text(small_images, with({"mesh.axes={devices: 6}", "data.batch_size=12", "mesh.backend=auto"}, more));
    const setup::PlannedSource run = setup::plan_run(setup);
    return std::string(run.backend->name()) + ": " + run.because;
  };
  {
    const test::WithGpus gpus(4);
    CHECK(chosen({}).starts_with("cuda: 4 GPUs found, the first is "));
    CHECK(chosen({"mesh.workers=3"}).starts_with("cuda: "));
    CHECK(chosen({"mesh.workers=4"}) == "cpu: the 6 logical devices of the mesh do not divide over 4 GPUs");
    CHECK(chosen({"mesh.workers=5"}) == "cpu: mesh.workers is 5, and there are 4 GPUs");
    // What is too large is refused: another backend would take another time.
    CHECK(chosen({"mesh.gpu_memory=1MiB"}).starts_with("cuda: "));
    const setup::Setup of_two = setup_of_text(
        small_images, {"mesh.axes={devices: 6}", "mesh.blocks=2", "data.batch_size=12", "mesh.backend=auto"});
    const setup::PlannedSource run = setup::plan_run(of_two, false, KernelChoice::best, {{0, 2}});
    CHECK(run.backend->name() == "cpu");
    CHECK(run.because == "several processes carry the run; backend: cuda would use the 4 GPUs found here");
  }
  const test::Variable nowhere("PMAPTRAIN_CUDA_MODULE", "/nowhere/module.so");
  if (!find_gpus().all.empty()) return;  // found before
  CHECK(chosen({}) == "cpu: module.so was not found in /nowhere");
}

TEST_CASE("validate, explain and run say which backend auto has taken", "[gpu][module]") {
  const TemporaryFolder folder;
  const std::string config = folder.write("c.yaml", small_images), set = "mesh.backend=auto";
  const test::WithGpus gpus(2);
  const std::string said = "taken by auto: 2 GPUs found, the first is ";
  CHECK(contains(call({"validate", config, "--set", set}).out, "carried by 2 GPUs (backend cuda, " + said));
  CHECK(contains(call({"explain", config, "--memory", "--set", set}).out, "carried by 2 GPUs (backend cuda, " + said));
  const Finished run = call({"run", config, "--run-dir", folder / "run", "--quiet", "--set", set});
  INFO(run.out << run.err);
  CHECK(run.status == 0);
  CHECK(contains(read_text(folder / "run/log.txt"), "carried by 2 GPUs (backend cuda, " + said));
}

TEST_CASE("where splits may stay on GPUs, the first GPU's plans are made twice, and the others' once",
          "[gpu][module]") {
  const TemporaryFolder folder;
  const std::string config = folder.write("c.yaml", small_images);
  constexpr int count = 2;
  const test::WithGpus gpus(count);
  const std::vector<std::string> set{"--set", "mesh.backend=cuda"};
  const auto planned_by = [&](const std::vector<std::string>& command) {
    const std::int64_t before = plans_made();
    const Finished ran = call(with(command, set));
    INFO(ran.out << ran.err);
    REQUIRE(ran.status == 0);
    return plans_made() - before;
  };
  const std::int64_t entries = std::ssize(setup::run_source(setup_of_text(small_images)).entries);
  CHECK(planned_by({"validate", config}) == 2 * entries);
  CHECK(planned_by({"explain", config, "--memory", "--parallelism", "--kernels"}) == 2 * entries);
  CHECK(planned_by({"run", config, "--run-dir", folder / "run", "--quiet"}) == (count + 1) * entries);
}

}  // namespace pmaptrain::testing
