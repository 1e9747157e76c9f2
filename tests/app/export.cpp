// export: what it writes, what it refuses, and that a run begins with what it wrote.
#include <algorithm>
#include <filesystem>

#include "core/run/files/safetensors.h"
#include "tests/app/call.h"
#include "tests/catch.h"
#include "tests/train/tensors.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

namespace fs = std::filesystem;
using test::read_text;
using test::TemporaryFolder;
using tests::call;
using tests::contains;
using tests::Finished;

const std::string images = R"(mesh: {axes: {devices: 2}}
data:
  source: {synthetic_images: {height: 6, width: 5, channels: 2, classes: 3, train: 32, test: 8}}
  batch_size: 16
  normalize: {mean: [0.4, 0.5], std: [0.2, 0.3]}
model:
  layers:
    - conv: {features: 4, kernel_size: [3, 3], strides: [2, 2]}
    - relu
    - flatten
    - {name: head, dense: 3}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.01}
train: {duration: 3 epochs}
)";

// A run in a folder.
struct ExportedRun {
  TemporaryFolder folder;
  std::string dir = folder / "run";

  explicit ExportedRun(const std::string& config, const std::vector<std::string>& set = {}) {
    folder.write("c.yaml", config);
    train("run", set);
  }
  void train(const std::string& name, const std::vector<std::string>& set) const {
    std::vector<std::string> arguments{"run", folder / "c.yaml", "--run-dir", folder / name, "--progress", "none"};
    for (const std::string& setting : set) arguments.insert(arguments.end(), {"--set", setting});
    const Finished run = call(arguments);
    INFO(run.err);
    REQUIRE(run.status == 0);
  }
  Finished write(const std::string& output, std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {"export", dir, "--output", folder / output});
    return call(options);
  }
  run::Tensors tensors(const std::string& output, const std::vector<std::string>& options = {}) const {
    const Finished done = write(output, options);
    INFO(done.err);
    REQUIRE(done.status == 0);
    return run::read_safetensors(folder / output);
  }
  // The output, without the folder.
  std::string without_folder(std::string text) const {
    const std::string prefix = folder.path().string() + "/";
    for (std::size_t at = 0; (at = text.find(prefix, at)) != std::string::npos;) text.erase(at, prefix.size());
    return text;
  }
};

// What was exported as LAYOUT.safetensors begins a run with the same bits.
void check_returns(const ExportedRun& run, const run::Tensors& ours) {
  // A step too small to change a parameter.
  const std::vector<std::string> still = {"optimizer={sgd: {}, learning_rate: 1.0e-30}", "train.duration=1 step"};
  for (const std::string layout : {"flax", "torch"}) {
    std::vector<std::string> set = still;
    set.push_back("model.init.from={path: " + run.folder / (layout + ".safetensors") + ", layout: " + layout + "}");
    run.train("again_" + layout, set);
    CHECK(run::read_safetensors(run.folder / ("again_" + layout) + "/checkpoints/last/params.safetensors") == ours);
  }
}

}  // namespace

TEST_CASE("parameters leave in the layouts of Flax and PyTorch, and a run begins with their bits", "[app]") {
  const ExportedRun run(images);
  const run::Tensors ours = run::read_safetensors(run.dir + "/checkpoints/last/params.safetensors");
  CHECK(run.tensors("flax.safetensors") == ours);
  const run::Tensors torch = run.tensors("torch.safetensors", {"--layout", "torch"});
  std::vector<std::string> shapes;
  for (const auto& [name, tensor] : torch) shapes.push_back(name + " " + to_string(tensor.shape));
  CHECK(shapes ==
        std::vector<std::string>{"conv_0.bias [4]", "conv_0.weight [4,2,3,3]", "head.bias [3]", "head.weight [3,36]"});
  const std::string text = read_text(run.folder / "torch.safetensors");
  CHECK(contains(text, R"({"__metadata__":{"checkpoint":"step-00000006","format":"pt","normalize_mean":"[0.4,0.5]",)"
                       R"("normalize_std":"[0.2,0.3]"})"));

  check_returns(run, ours);
}

TEST_CASE("the gates of recurrent layers leave in the arrays of PyTorch, and come back with their bits", "[app]") {
  std::string recurrent = images;
  const std::size_t layers = recurrent.find("    - conv"), loss = recurrent.find("loss:");
  recurrent.replace(layers, loss - layers, R"(    - reshape: [6, 10]
    - lstm: {features: 3, bidirectional: true}
    - gru: {features: 4, return: last}
    - {name: head, dense: 3}
)");
  const ExportedRun run(recurrent);
  const run::Tensors ours = run::read_safetensors(run.dir + "/checkpoints/last/params.safetensors");
  std::vector<std::string> shapes;
  for (const auto& [name, tensor] : run.tensors("torch.safetensors", {"--layout", "torch"})) {
    shapes.push_back(name + " " + to_string(tensor.shape));
  }
  CHECK(shapes == std::vector<std::string>{
                      "gru_0.bias_hh_l0 [12]", "gru_0.bias_ih_l0 [12]", "gru_0.weight_hh_l0 [12,4]",
                      "gru_0.weight_ih_l0 [12,6]", "head.bias [3]", "head.weight [3,4]", "lstm_0.bias_hh_l0 [12]",
                      "lstm_0.bias_hh_l0_reverse [12]", "lstm_0.bias_ih_l0 [12]", "lstm_0.bias_ih_l0_reverse [12]",
                      "lstm_0.weight_hh_l0 [12,3]", "lstm_0.weight_hh_l0_reverse [12,3]", "lstm_0.weight_ih_l0 [12,10]",
                      "lstm_0.weight_ih_l0_reverse [12,10]"});
  CHECK(run.tensors("flax.safetensors") == ours);
  check_returns(run, ours);
}

TEST_CASE("export says what it wrote, of which checkpoint", "[app]") {
  const ExportedRun run(images);
  const Finished done = run.write("model.onnx");
  CHECK(done.status == 0);
  CHECK(done.err.empty());
  CHECK(run.without_folder(done.out) == "model.onnx: 187 parameters in ONNX (last checkpoint step-00000006 of run)\n");
  const std::string model = read_text(run.folder / "model.onnx");
  CHECK(contains(model, "pmaptrain"));
  CHECK(contains(model, "step-00000006"));
  CHECK(run.without_folder(run.write("a.bin", {"--format", "safetensors", "--layout", "torch"}).out) ==
        "a.bin: 187 parameters in the layout of PyTorch (last checkpoint step-00000006 of run)\n");
  // The same file again, and nothing else beside it.
  CHECK(run.write("model.onnx", {"--overwrite", "--format", "onnx"}).status == 0);
  CHECK(read_text(run.folder / "model.onnx") == model);
  CHECK(std::distance(fs::directory_iterator(run.folder.path()), fs::directory_iterator()) == 4);
}

TEST_CASE("export takes the checkpoint and the weights that eval takes", "[app]") {
  // The loss falls, so the best checkpoint is the first one.
  const ExportedRun run(
      images, {"train.checkpoint={every: 1 epoch, best: {metric: loss, mode: max}}", "train.ema={decay: 0.5}"});
  const auto file = [&](const std::string& checkpoint, const std::string& name) {
    return run::read_safetensors(run.dir + "/checkpoints/" + checkpoint + "/" + name);
  };
  const Finished done = run.write("best.safetensors");
  CHECK(contains(done.err, "note: this is the best checkpoint, "));
  CHECK(run::read_safetensors(run.folder / "best.safetensors") == file("best", "ema.safetensors"));
  CHECK(run.tensors("last.safetensors", {"--checkpoint", "last"}) == file("last", "ema.safetensors"));
  CHECK(run.tensors("raw.safetensors", {"--checkpoint", "last", "--weights", "raw"}) ==
        file("last", "params.safetensors"));
  CHECK(run.tensors("first.safetensors", {"--checkpoint", "2", "--weights", "raw"}) ==
        file("step-00000002", "params.safetensors"));
}

TEST_CASE("of an ensemble a member is exported, or the mean of what the members predict", "[app]") {
  const ExportedRun run(images, {"mesh.axes=[{members: 3}, {devices: 2}]",
                                 "ensemble={axis: members, vary: {seed: [0, 1, 2]}}", "train.duration=1 epoch"});
  const Finished mean = run.write("mean.onnx");
  CHECK(run.without_folder(mean.out) ==
        "mean.onnx: 187 parameters in ONNX, the mean of 3 members (last checkpoint step-00000002 of run)\n");
  CHECK(contains(read_text(run.folder / "mean.onnx"), "member_2/head/Gemm"));
  const run::Tensors all = run::read_safetensors(run.dir + "/checkpoints/last/params.safetensors");
  const run::Tensors second = run.tensors("second.safetensors", {"--member", "1"});
  const std::vector<std::byte>& biases = all.at("head.bias").bytes;
  CHECK(second.at("head.bias").shape == Shape{3});
  CHECK(std::equal(biases.begin() + 12, biases.begin() + 24, second.at("head.bias").bytes.begin()));
  CHECK(run.write("second.onnx", {"--member", "1"}).status == 0);
  CHECK(run.without_folder(run.write("none.safetensors").err) ==
        "error: --format safetensors takes one member of an ensemble: the parameters of its 3 members have no mean "
        "that predicts\n"
        "  help: choose one, --member 0 to --member 2, or --format onnx, which has the mean of their predictions\n");
  CHECK(contains(run.write("none.onnx", {"--member", "3"}).err, "member"));
  CHECK_FALSE(fs::exists(run.folder / "none.onnx"));
}

TEST_CASE("export refuses what it cannot do, with what helps", "[app]") {
  const ExportedRun run(images);
  run.folder.write("there.onnx", "x");
  struct Refused {
    std::vector<std::string> arguments;  // after the run
    std::string says;
  };
  const std::string to = run.folder / "";
  const std::vector<Refused> cases = {
      {{}, "error: export needs --output FILE\n  help: what to write, such as --output model.onnx\n"},
      {{"--output", to + "model.pt"}, "error: the ending of 'model.pt' does not say what to write\n"},
      {{"--output", to + "model.pt"},
       "  help: it is .onnx or .safetensors; for a file with another ending, --format onnx or --format safetensors\n"},
      {{"--output", to + "a.safetensors", "--format", "onnx"},
       "error: the ending of 'a.safetensors' is that of safetensors, and --format is onnx\n"},
      {{"--output", to + "a.onnx", "--layout", "torch"},
       "error: --layout is for safetensors; an ONNX file has its own\n  help: leave out --layout\n"},
      {{"--output", to + "none/a.onnx"}, "error: there is no folder 'none'\n"},
      {{"--output", to + "there.onnx"}, "error: 'there.onnx' exists\n"},
      {{"--output", to + "run", "--format", "onnx"}, "error: 'run' is no regular file\n"},
      {{"--output", to + "run/checkpoints/last/params.safetensors", "--overwrite"},
       "error: --output is a file of the run's checkpoint\n"},
      {{"--output", to + "a.onnx", "--format", "onxx"}, "error: --format takes one of onnx, safetensors, not 'onxx'\n"},
      {{"--output", to + "a.safetensors", "--layout", "keras"},
       "error: --layout takes one of flax, torch, hf_gpt2, hf_llama, hf_vit, torchvision_resnet, peft, not 'keras'\n"},
      {{"--output", to + "a.safetensors", "--layout", "hf_vit"},
       "error: the layout hf_vit is that of models with 'class_token_0.token', which this one lacks\n"},
      {{"--output", to + "a.safetensors", "--layout", "hf_gpt2"}, "error: the layout hf_gpt2 has no name for '"},
      {{"--output", to + "a.onnx", "--checkpoint", "5"}, "has no checkpoint '5'\n  help: it has 6, last\n"},
      {{"--output", to + "a.onnx", "--member", "0"}, "error: "},
  };
  for (const Refused& refused : cases) {
    std::vector<std::string> arguments{"export", run.dir};
    arguments.insert(arguments.end(), refused.arguments.begin(), refused.arguments.end());
    const Finished done = call(arguments);
    CHECK(done.status == 2);
    CHECK(done.out.empty());
    CHECK(contains(run.without_folder(done.err), refused.says));
  }
  CHECK_FALSE(fs::exists(run.folder / "a.onnx"));
  CHECK(contains(call({"export", run.folder / "none", "--output", "a.onnx"}).err,
                 "' is not a run folder: there is no such folder\n  help: export takes a folder that pmaptrain run "
                 "wrote: runs/NAME\n"));
  CHECK(contains(call({"export"}).err, "error: pmaptrain export needs RUN\n  help: pmaptrain export runs/"));

  // A config that was changed by hand.
  std::string config = read_text(run.dir + "/config.yaml");
  config.replace(config.find("features: 4"), 11, "features: 5");
  test::write_text(run.dir + "/config.yaml", config);
  const Finished changed = run.write("a.onnx");
  CHECK(changed.status == 3);
  CHECK(contains(run.without_folder(changed.err),
                 "error: 'run/checkpoints/step-00000006/params.safetensors' has no tensor 'conv_0.kernel' "
                 "f32[3,3,2,5]\n  help: the config of the run describes another model\n"));
}

TEST_CASE("parameters of a table tell its columns, with their categories and what a missing number becomes", "[app]") {
  const TemporaryFolder table;
  table.write("t.csv", "age,city,y\n1,Oslo,a\n,Rome,b\n3,,a\n5,Rome,b\n");
  const std::string config = "mesh: {axes: {devices: 2}}\ndata:\n  source: {csv: {train: " + table / "t.csv" +
                             ", target: y, categorical: [city], missing: fill}}\n  batch_size: all\n  normalize: auto\n"
                             "model: {layers: [dense: 2]}\nloss: softmax_cross_entropy\n"
                             "optimizer: {adam: {}, learning_rate: 0.01}\ntrain: {duration: 1 step}\n";
  const std::string columns =
      R"("columns":"[{\"name\":\"age\",\"missing\":3.0},{\"name\":\"city\",\"categories\":[\"\",\"Oslo\",\"Rome\"]}]")";
  const ExportedRun run(config);
  for (const std::string layout : {"flax", "torch"}) {
    run.tensors(layout + ".safetensors", {"--layout", layout});
    const std::string text = read_text(run.folder / (layout + ".safetensors"));
    CHECK(contains(text, columns));
    CHECK(contains(text, R"("classes":"[\"a\",\"b\"]")"));
    CHECK(contains(text, R"("normalize_mean":"[3.0,0.0,0.0,0.0]")"));
    CHECK(contains(text, R"("unknown":"error")"));
  }
  const ExportedRun ignoring(config, {"data.source.csv.unknown=ignore"});
  ignoring.tensors("a.safetensors");
  CHECK(contains(read_text(ignoring.folder / "a.safetensors"), R"("unknown":"ignore")"));
}
