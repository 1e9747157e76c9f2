// What validate and explain show of a config's plan.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/app/call.h"
#include "tests/app/process.h"
#include "tests/catch.h"
#include "tests/golden.h"

using namespace pmaptrain;
using nlohmann::json;
using pmaptrain::tests::call;
using pmaptrain::tests::contains;
using pmaptrain::tests::Finished;
using pmaptrain::tests::linear;
using pmaptrain::tests::run_shell;
using pmaptrain::tests::TemporaryFolder;

namespace {

// The regression as three members with a device for each row of the mesh.
const std::vector<std::string> as_members = {
    "--set", "mesh.axes=[{members: 3}, {batch: 8}]", "--set",
    "ensemble={axis: members, vary: {seed: [4, 5, 6], optimizer.learning_rate: [0.1, 0.02, 0.3]}}"};

std::vector<std::string> of_members(std::vector<std::string> command) {
  command.insert(command.end(), as_members.begin(), as_members.end());
  return command;
}

}  // namespace

TEST_CASE("validate shows shapes, traffic, memory and steps of the convolutional network", "[app]") {
  const Finished result = call({"validate", "configs/cnn.yaml", "--workers", "2"});
  CHECK(result.status == 0);
  CHECK(result.err.empty());
  for (const char* part :
       {"cnn: valid\n", "mesh: 8 logical devices along axis 'devices', carried by 2 workers",
        "  conv_1      conv      (16, 16, 64)      18,496\n", "  total                                   60,362\n",
        "inputs   u8 (8, 16, 32, 32, 3)  devices, per device, height, width, channels",
        "steps: 3,900 in 10 epochs of 390 steps", "each epoch skips 80 examples", "over axis 'devices'", "available"}) {
    INFO(part);
    CHECK(contains(result.out, part));
  }
}

TEST_CASE("validate shows the layout of the regression's samples", "[app]") {
  CHECK(contains(call({"validate", linear}).out, "inputs   f32 (8, 100, 5)  batch, per device, features"));
}

TEST_CASE("validate shows the rates of a schedule at some of its steps", "[app]") {
  const std::string rate =
      "optimizer.learning_rate={warmup_cosine_decay: {init_value: 0.01, peak_value: 0.1, warmup: 10, decay: 30}}";
  const std::vector<std::string> command{"validate", linear, "--set", rate, "--set", "train.duration=30 steps"};
  const std::string plan = call(command).out;
  CHECK(contains(plan,
                 "sgd at a learning rate by warmup_cosine_decay\n"
                 "  step  learning rate\n"
                 "     1  0.01\n"
                 "    11  0.1\n"
                 "    15  0.0904508\n"
                 "    30  0.000615583\n"));
  CHECK(contains(plan, "note: optimizer.learning_rate.warmup_cosine_decay") == false);
  std::vector<std::string> as_json = command;
  as_json.emplace_back("--json");
  const json rates = json::parse(call(as_json).out)["learning_rates"];
  REQUIRE(rates.size() == 4);
  CHECK(rates[1] == json{{"step", 11}, {"learning_rate", 0.1}});
  CHECK(rates[3]["step"] == 30);
  CHECK_FALSE(json::parse(call({"validate", linear, "--json"}).out).contains("learning_rates"));
}

TEST_CASE("validate tells the precision, of the config and of each layer", "[app]") {
  const std::vector<std::string> command = {"validate", "configs/cnn.yaml",
                                            "--set",    "precision=mixed_bfloat16",
                                            "--set",    "model.layers.7={dense: 10, precision: float32}"};
  const std::string plan = call(command).out;
  CHECK(contains(plan,
                 "\nprecision: mixed_bfloat16: products and activations are bf16 but where a layer says float32; "
                 "parameters, gradients, optimizer, loss and metrics are f32\n"));
  CHECK(contains(plan, "  conv_0      conv      bf16 (32, 32, 32)         896\n"));
  CHECK(contains(plan, "  dense_0     dense     f32 (10,)              40,970\n"));
  CHECK_FALSE(contains(call({"validate", "configs/cnn.yaml"}).out, "f32"));
  std::vector<std::string> as_json = command;
  as_json.emplace_back("--json");
  const json document = json::parse(call(as_json).out);
  CHECK(document["precision"] == "mixed_bfloat16");
  CHECK(document["layers"][0]["dtype"] == "bf16");
  CHECK(document["layers"][7]["dtype"] == "f32");
  CHECK(json::parse(call({"validate", "configs/cnn.yaml", "--json"}).out)["precision"] == "float32");
}

TEST_CASE("a CPU without fast instructions for bfloat16 is told once, by validate and by run", "[app][process]") {
  const auto warnings = [](const std::string& command, const std::string& precision) {
    const TemporaryFolder folder;
    const std::string said =
        run_shell("cd " + (folder / ".") + " && ONEDNN_MAX_CPU_ISA=AVX2 exec \"$PROGRAM\" " + command + ' ' +
                  std::filesystem::absolute(linear).string() + " --set precision=" + precision)
            .err;
    int count = 0;
    for (std::size_t at = 0;
         (at = said.find("no fast instructions for bfloat16 (AMX, or AVX512_BF16 of other CPUs than Intel's)", at)) !=
         said.npos;
         ++at) {
      ++count;
    }
    INFO(said);
    CHECK((count == 0 || contains(said, "precision: mixed_bfloat16 is not faster than float32 here")));
    CHECK((count == 0 || contains(said, "; precision: float32 avoids it, and results differ by roundings alone")));
    return count;
  };
  CHECK(warnings("validate", "mixed_bfloat16") == 1);
  CHECK(warnings("run --max-steps 1 --progress none", "mixed_bfloat16") == 1);
  CHECK(warnings("validate", "float32") == 0);
  CHECK(warnings("validate --set mesh.backend=reference", "mixed_bfloat16") == 0);
}

TEST_CASE("the JSON of validate is as documented", "[app]") {
  const json plan = json::parse(call({"validate", "configs/cnn.yaml", "--json", "--workers", "2"}).out);
  CHECK(plan["valid"] == true);
  CHECK(plan["mesh"] == json{{"devices", 8}});
  CHECK(plan["logical_devices"] == 8);
  CHECK(plan["workers"] == 2);
  CHECK(plan["backend"] == "cpu");
  CHECK(plan["parameters"] == 60362);
  CHECK(plan["batch"] == json{{"global", 128}, {"per_device", 16}, {"microbatch", 16}});
  CHECK(plan["steps_per_epoch"] == 390);
  CHECK(plan["examples_skipped_per_epoch"] == 80);
  CHECK(plan["examples_padded_per_epoch"] == 0);
  for (const char* item :
       {"parameters", "optimizer", "gradients", "activations", "batch", "total_per_process", "available"}) {
    CHECK(plan["memory_bytes"][item].get<std::int64_t>() > 0);
  }
  CHECK(plan["flops_per_step"].get<std::int64_t>() > 1'000'000'000);
  CHECK(plan["collective_bytes_per_step"]["devices"].get<std::int64_t>() > 4 * 60362 / 2);
  CHECK(plan["layers"].size() == 8);
  CHECK(plan["layers"][0] ==
        json{{"name", "conv_0"}, {"kind", "conv"}, {"output_shape", {32, 32, 32}}, {"parameters", 896}});
  CHECK(json::parse(call({"run", "configs/cnn.yaml", "--dry-run", "--json", "--workers", "2"}).out)["parameters"] ==
        60362);
}

TEST_CASE("validate shows an ensemble: members, what varies, what all of them need", "[app]") {
  const std::string text = call(of_members({"validate", linear})).out;
  for (const char* part :
       {"mesh: 24 logical devices: axes members 3 x batch 8",
        "ensemble: 3 members along axis 'members', each on 8 logical devices; each has the batch and the layers below\n"
        "  seed                     4, 5, 6\n"
        "  optimizer.learning_rate  0.1, 0.02, 0.3\n",
        "sgd at learning rates of 0.1, 0.02, 0.3", "inputs   f32 (8, 100, 5)  batch, per device, features",
        "each device sends 0 B over axis 'members'"}) {
    INFO(part);
    CHECK(contains(text, part));
  }
  const json plan = json::parse(call(of_members({"validate", linear, "--json"})).out);
  const json alone = json::parse(call({"validate", linear, "--json"}).out);
  CHECK(plan["ensemble"] == json{{"axis", "members"},
                                 {"members", 3},
                                 {"vary", {{"seed", {4, 5, 6}}, {"optimizer.learning_rate", {0.1, 0.02, 0.3}}}}});
  CHECK(plan["logical_devices"] == 24);
  CHECK(plan["flops_per_step"].get<double>() == Approx(3 * alone["flops_per_step"].get<double>()).epsilon(1e-3));
  CHECK(plan["collective_bytes_per_step"]["members"] == 0);
  CHECK(plan["collective_bytes_per_step"]["batch"] == alone["collective_bytes_per_step"]["batch"]);
  CHECK(plan["memory_bytes"]["parameters"] == 3 * alone["memory_bytes"]["parameters"].get<std::int64_t>());
  CHECK(plan["memory_bytes"]["batch"] == alone["memory_bytes"]["batch"]);  // all members read the same
  CHECK_FALSE(alone.contains("ensemble"));
}

TEST_CASE("explain shows the program of a member, which is that of a run of its own", "[app]") {
  const std::string text = call(of_members({"explain", linear})).out;
  CHECK(text ==
        "# 3 members along axis 'members': each runs this program, that of one member, on 8 logical devices of its "
        "own\n" +
            call({"explain", linear}).out);
  // A plan is that of one member. Several members have several workers, each of which runs whole steps.
  const auto kernels = [](const std::string& out) { return out.substr(out.find("\n\n")); };
  const std::string of_all = call(of_members({"explain", linear, "--kernels", "--workers", "2"})).out;
  CHECK(kernels(of_all) == kernels(call({"explain", linear, "--kernels"}).out));
  CHECK(contains(of_all, "8 logical devices, 2 workers; workers never meet in a step\n"));
}

TEST_CASE("a mesh of one device is warned about unless the config gives it", "[app]") {
  CHECK_FALSE(contains(call({"validate", "configs/gpt.yaml"}).err, "fewer than 2 logical devices"));
  const Finished result = call({"validate", linear, "--devices", "1"});
  CHECK(result.status == 0);
  CHECK(contains(result.err,
                 "warning: the mesh has fewer than 2 logical devices: there is nothing to synchronise (mesh.axes, "
                 "--devices)\n"));
  CHECK(contains(result.out, "mesh: 1 logical device along axis 'batch'"));
  CHECK(contains(result.out, "\nprocesses: 1\n"));  // there is nothing to divide
}

TEST_CASE("explain prints each stage, kernels and memory", "[app]") {
  const std::string final = call({"explain", linear}).out;
  CHECK(contains(final, "mesh batch=8\n"));
  CHECK(contains(final, "psum[axes={batch}]"));
  CHECK(contains(final, "# synchronise"));
  CHECK(contains(final, "update %bucket_0"));
  const std::string model = call({"explain", linear, "--stage", "model"}).out;
  CHECK(contains(model, "matmul"));
  CHECK_FALSE(contains(model, "psum"));
  CHECK_FALSE(contains(call({"explain", linear, "--stage=grad"}).out, "psum"));
  const std::string kernels = call({"explain", linear, "--kernels", "--workers", "1"}).out;
  CHECK(contains(kernels, "kernel steps:"));
  CHECK(contains(kernels, "tiles"));
  const std::string memory = call({"explain", linear, "--memory", "--workers", "1"}).out;
  CHECK(contains(memory, "pools, with 1 worker"));
  CHECK(contains(memory, "accumulators"));
  CHECK(contains(memory,
                 "  params  bucket_0                 f32[128]  512 B\n"
                 "            dense_0.bias        0  f32[1]      4 B\n"
                 "            dense_0.kernel     64  f32[5,1]   20 B\n"));
  CHECK(contains(call({"explain", linear, "--stage", "model", "--kernels"}).err, "leave out --stage"));
}

TEST_CASE("explain shows what each of several processes sends and adds", "[app]") {
  const std::vector<std::string> explain{"explain", linear, "--stage", "ranks", "--processes", "4"};
  std::vector<std::string> sharded = explain;
  sharded.insert(sharded.end(), {"--set", "parallelism.fsdp={axis: batch, stage: 2}"});
  test::check_golden("ranks.txt", call(explain).out + "\n" + call(sharded).out);
  CHECK(call({"explain", linear, "--stage", "ranks"}).out.starts_with("# rank 0 of 1: sends 0 bytes in a step\n"));
  CHECK(contains(call({"explain", linear, "--processes", "4"}).err, "say --stage ranks --processes N"));
  CHECK(contains(call({"explain", linear, "--stage", "ranks", "--kernels"}).err, "leave out --kernels"));
}

TEST_CASE("validate shows which parameters are frozen", "[app]") {
  const std::string path = "optimizer.groups=[{parameters: [\"conv_*\", dense_0.bias], freeze: true}]";
  const std::string out = call({"validate", "configs/cnn.yaml", "--set", path}).out;
  const auto line_of = [&](const std::string& layer) {
    const std::size_t at = out.find("\n  " + layer + " ");
    return at == std::string::npos ? "" : out.substr(at + 1, out.find('\n', at + 1) - at - 1);
  };
  CHECK(line_of("conv_0").ends_with("  frozen"));
  CHECK(line_of("dense_0").ends_with("  frozen: bias"));
  CHECK(contains(line_of("total"), " of them frozen"));
  CHECK_FALSE(contains(call({"validate", "configs/cnn.yaml"}).out, "frozen"));
}
