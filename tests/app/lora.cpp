// Adapters at the command line: validate, a base that has moved, and what export writes.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/run/files/safetensors.h"
#include "tests/app/call.h"
#include "tests/catch.h"
#include "tests/session_run.h"

namespace pmaptrain::testing::lora_commands {
namespace {

namespace fs = std::filesystem;
using test::read_text;
using test::TemporaryFolder;
using tests::call;
using tests::contains;
using tests::Finished;

const std::string config = R"(mesh: {axes: {devices: 2}}
data: {source: {synthetic_images: {height: 4, width: 2, classes: 3, train: 32, test: 8}}, batch_size: 16}
model:
  layers: [flatten, {dense: 8}, tanh, {dense: 6}, relu, {name: head, dense: 3}]
  init: {from: {path: base.safetensors, layout: torch}}
lora: {rank: 2, alpha: 5.0, parameters: ["dense_*"], also_train: ["head.kernel"]}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.01}
train: {duration: 4 steps}
)";

// base.safetensors, of PyTorch's layout, and a run with adapters that begins with it.
struct AdaptedRun {
  TemporaryFolder folder;
  std::string run = folder / "run", base = folder / "base.safetensors";

  AdaptedRun() {
    std::string plain = config;
    for (const std::string key : {"  init:", "lora:"}) {
      const std::size_t begin = plain.find(key);
      plain.erase(begin, plain.find('\n', begin) + 1 - begin);
    }
    folder.write("plain.yaml", plain);
    folder.write("c.yaml", config);
    succeed({"run", folder / "plain.yaml", "--run-dir", folder / "first", "--progress", "none"});
    succeed({"export", folder / "first", "--output", base, "--layout", "torch"});
    succeed({"run", folder / "c.yaml", "--run-dir", run, "--progress", "none"});
  }
  static Finished succeed(const std::vector<std::string>& arguments) {
    Finished done = call(arguments);
    INFO(done.err);
    REQUIRE(done.status == 0);
    return done;
  }
};

}  // namespace

TEST_CASE("validate says how many parameters adapters train, and which kernels have one", "[app]") {
  const AdaptedRun adapted;
  const std::string text = AdaptedRun::succeed({"validate", adapted.folder / "c.yaml"}).out;
  INFO(text);
  // 2 · (24 + 8) and 2 · (8 + 6) of adapters, and 6 · 3 of the head.
  CHECK(contains(text,
                 "lora: 110 of 367 parameters are trained (30 %): adapters of rank 2 beside 2 kernels, and 1 "
                 "parameter as a whole; the base takes 1.0 KiB\n"));
  const auto json = nlohmann::json::parse(AdaptedRun::succeed({"validate", adapted.folder / "c.yaml", "--json"}).out);
  CHECK(json.at("lora") == nlohmann::json{{"trained_parameters", 110}, {"adapted_kernels", 2}, {"base_bytes", 1028}});
}

TEST_CASE("--base says where the base of a run lies by now, to eval, export and --resume", "[app]") {
  const AdaptedRun adapted;
  const std::string before = AdaptedRun::succeed({"eval", adapted.run}).out;
  const std::string moved = adapted.folder / "moved.safetensors";
  fs::rename(adapted.base, moved);
  const std::vector<std::vector<std::string>> commands{
      {"eval", adapted.run},
      {"export", adapted.run, "--output", adapted.folder / "merged.safetensors"},
      {"run", adapted.run, "--run-dir", adapted.run, "--resume", "--set", "train.duration=6 steps", "--progress",
       "none"}};
  for (std::vector<std::string> command : commands) {
    const Finished refused = call(command);
    INFO(refused.err);
    CHECK(refused.status == 3);
    CHECK(contains(refused.err, "cannot open '" + adapted.base + "'"));
    CHECK(contains(refused.err, "--base PATH says where the base of the run lies by now"));
    command.insert(command.end(), {"--base", moved});
    const Finished done = call(command);
    INFO(done.err);
    CHECK(done.status == 0);
    if (command.front() == "eval") CHECK(done.out == before);
  }
}

TEST_CASE("--base is refused where there is no base to name", "[app]") {
  const AdaptedRun adapted;
  CHECK(contains(call({"eval", adapted.folder / "first", "--base", adapted.base}).err,
                 "error: --base was given, and the config has no lora\n  help: leave it out: without adapters a "
                 "checkpoint has all parameters"));
  CHECK(contains(call({"validate", adapted.folder / "c.yaml", "--set", "model.init=null", "--base", adapted.base}).err,
                 "error: --base was given, and the base of this config is drawn from its seed\n  help: leave it out; "
                 "model.init.from takes the base from a file or a run"));
}

TEST_CASE("export --layout peft writes the files of peft, by PyTorch's names", "[app]") {
  const AdaptedRun adapted;
  const std::string folder = adapted.folder / "peft";
  const Finished done = AdaptedRun::succeed({"export", adapted.run, "--output", folder, "--layout", "peft"});
  CHECK(contains(done.out, ": 113 parameters in the files of peft (last checkpoint step-00000004 of "));
  const run::Tensors tensors = run::read_safetensors(folder + "/adapter_model.safetensors");
  const run::Tensors trained = run::read_safetensors(adapted.run + "/checkpoints/last/params.safetensors");
  std::string shapes;
  for (const auto& [name, tensor] : tensors) shapes += name + " " + to_string(tensor.shape) + "\n";
  CHECK(shapes ==
        "base_model.model.dense_0.lora_A.weight [2,24]\nbase_model.model.dense_0.lora_B.weight [8,2]\n"
        "base_model.model.dense_1.lora_A.weight [2,8]\nbase_model.model.dense_1.lora_B.weight [6,2]\n"
        "base_model.model.head.bias [3]\nbase_model.model.head.weight [3,6]\n");
  const std::vector<double> a = to_doubles(trained.at("dense_1.lora_a"));
  const std::vector<double> theirs = to_doubles(tensors.at("base_model.model.dense_1.lora_A.weight"));
  for (std::size_t i = 0; i < 8; ++i) {
    for (std::size_t k = 0; k < 2; ++k) CHECK(theirs[k * 8 + i] == a[i * 2 + k]);
  }
  // What is not trained of a module that is saved whole.
  const run::Tensors base = run::read_safetensors(adapted.base);
  CHECK(tensors.at("base_model.model.head.bias") == base.at("head.bias"));
  const auto json = nlohmann::json::parse(read_text(folder + "/adapter_config.json"));
  CHECK(json.at("peft_type") == "LORA");
  CHECK(json.at("r") == 2);
  CHECK(json.at("lora_alpha") == 5);
  CHECK(json.at("target_modules") == nlohmann::json{"dense_0", "dense_1"});
  CHECK(json.at("modules_to_save") == nlohmann::json{"head"});
  CHECK(json.at("fan_in_fan_out") == false);
  CHECK(contains(call({"export", adapted.run, "--output", folder, "--layout", "peft"}).err, "--overwrite replaces it"));
}

TEST_CASE("export --layout peft says what it needs", "[app]") {
  const AdaptedRun adapted;
  const std::string output = adapted.folder / "peft";
  CHECK(contains(call({"export", adapted.folder / "first", "--output", output, "--layout", "peft"}).err,
                 "error: --layout peft writes adapters, and the run has none\n  help: runs of a config with lora have "
                 "some; export without --layout writes the parameters"));
  AdaptedRun::succeed({"run", adapted.folder / "c.yaml", "--run-dir", adapted.folder / "drawn", "--progress", "none",
                       "--set", "model.init=null"});
  CHECK(contains(call({"export", adapted.folder / "drawn", "--output", output, "--layout", "peft"}).err,
                 "error: --layout peft needs the names that the base has in PyTorch, and this base has none"));
  AdaptedRun::succeed({"run", adapted.folder / "c.yaml", "--run-dir", adapted.folder / "biases", "--progress", "none",
                       "--set", "lora.also_train=dense_0.bias"});
  CHECK(contains(call({"export", adapted.folder / "biases", "--output", output, "--layout", "peft"}).err,
                 "error: peft trains whole modules beside adapters, and 'dense_0.bias' is beside an adapter in its "
                 "module"));
}

}  // namespace pmaptrain::testing::lora_commands
