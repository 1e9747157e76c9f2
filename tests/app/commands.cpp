// The command line in-process: what it accepts, what it prints, and the words of its refusals.
#include "app/commands/commands.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/base/version.h"
#include "tests/app/call.h"
#include "tests/app/process.h"
#include "tests/catch.h"

using namespace pmaptrain;
using nlohmann::json;
using pmaptrain::tests::call;
using pmaptrain::tests::contains;
using pmaptrain::tests::Finished;
using pmaptrain::tests::linear;
using pmaptrain::tests::TemporaryFolder;

TEST_CASE("the program without arguments, --help and --version print commands and versions", "[app]") {
  const Finished alone = call({});
  CHECK(alone.status == 0);
  CHECK(alone.err.empty());
  for (const app::Command& command : app::commands()) {
    CHECK(contains(alone.out, "  " + std::string(command.usage)));
    const Finished help = call({std::string(command.name), "--help"});
    CHECK(help.status == 0);
    CHECK(contains(help.out, "usage: pmaptrain " + std::string(command.name)));
    CHECK(call({"help", std::string(command.name)}).out == help.out);
  }
  CHECK(call({"--help"}).out == alone.out);
  const Finished version = call({"--version"});
  CHECK(contains(version.out, "pmaptrain 0."));
  CHECK(contains(version.out, "commit ") == !pmaptrain::commit.empty());
  CHECK(contains(version.out, "compiler: "));
  CHECK(contains(version.out, "backends: cpu ("));
}

TEST_CASE("the help of run defines devices and workers, and lists no unsupported option", "[app]") {
  const std::string help = call({"run", "--help"}).out;
  CHECK(contains(
      help,
      "--devices sets the number of logical devices, of which one core can run many; --workers sets the number of\n"
      "threads, or GPUs, that run them; `pmaptrain devices` lists the hardware."));
  for (const char* option :
       {"--set KEY=VALUE",    "--name NAME",     "--run-dir DIR", "--overwrite",        "--resume",
        "--change KEY=VALUE", "--max-time TIME", "--devices N",   "--workers N",        "--seed N",
        "--max-steps N",      "--dry-run",       "--json",        "--progress",         "--color",
        "-q, --quiet",        "-v, --verbose",   "--trace FILE",  "--trace-steps A..B", "--verify-replicas"}) {
    CHECK(contains(help, option));
  }
}

TEST_CASE("unknown commands and options are refused with the nearest spelling", "[app]") {
  const Finished command = call({"rnu"});
  CHECK(command.status == 2);
  CHECK(command.out.empty());
  CHECK(command.err == "error: pmaptrain has no command 'rnu'\n  help: did you mean 'run'?\n");
  std::vector<std::string> names;
  for (const app::Command& known : app::commands()) names.emplace_back(known.name);
  CHECK(contains(call({"frobnicate"}).err, "the commands are " + join(names, ", ")));
  CHECK(call({"run", "x.yaml", "--ovrewrite"}).err ==
        "error: pmaptrain run has no option '--ovrewrite'\n  help: did you mean '--overwrite'?\n");
  CHECK(contains(call({"eval", "x.yaml", "--trace"}).err, "pmaptrain eval has no option '--trace'"));
  // Behind "--" nothing is an option, and so none is misspelt.
  CHECK(call({"eval", "runs/x", "--", "--split", "train"}).err ==
        "error: unexpected argument '--split' after '--', which ends the options\n  help: write options before '--', "
        "or omit it; pmaptrain eval --help lists its options\n");
  CHECK(call({"eval", "--", "runs/x", "--help", "--color=always"}).err ==
        "error: unexpected argument '--help' after '--', which ends the options\n  help: write options before '--', or "
        "omit it; pmaptrain eval --help lists its options\n");
  CHECK(contains(call({"eval", "runs/x", "--splot", "--", "y"}).err, "pmaptrain eval has no option '--splot'"));
  CHECK(
      contains(call({"eval", "runs/x", "--", "y"}).err, "unexpected argument 'y'\n  help: pmaptrain eval takes RUN;"));
  CHECK(contains(call({"validate", "--", "--config"}).err, "--config: error: there is no such file"));
  CHECK(contains(call({"validate", "--frobnicate", "3", "x.yaml"}).err, "pmaptrain validate --help lists"));
  CHECK(contains(call({"run", "a", "b"}).err, "unexpected argument 'b'"));
  CHECK(contains(call({"run"}).err, "error: pmaptrain run needs CONFIG\n  help: pmaptrain run configs/"));
}

TEST_CASE("options and commands of other tools are told what does the same here", "[app]") {
  const auto help = [](std::vector<std::string> arguments) {
    const std::string err = call(std::move(arguments)).err;
    return err.substr(err.find("  help: ") + 8);
  };
  CHECK(help({"run", "x.yaml", "--epochs", "3"}) == "write --set 'train.duration=3 epochs'\n");
  CHECK(help({"run", "x.yaml", "--batch_size=32"}) == "write --set data.batch_size=32\n");
  CHECK(help({"run", "x.yaml", "--gpus", "2"}) == "write --set mesh.backend=cuda --workers 2\n");
  CHECK(help({"run", "x.yaml", "--gpu"}) == "write --set mesh.backend=cuda; --workers N says how many GPUs\n");
  CHECK(help({"run", "x.yaml", "--device", "gpu"}) ==
        "write --set mesh.backend=cuda; --workers N says how many threads or GPUs\n");
  CHECK(help({"run", "x.yaml", "--optimizer", "adam"}) == "write --set 'optimizer.adam={}'\n");
  CHECK(help({"run", "x.yaml", "--optimizer=AdamW"}) == "write --set 'optimizer.adamw={}'\n");
  CHECK(help({"run", "x.yaml", "--optimizer", "momentum"}) == "write --set 'optimizer.sgd={}'\n");
  CHECK(help({"run", "x.yaml", "--optimizer", "lamb"}) ==
        "optimizer 'lamb' is not supported: the nearest are adam and adamw\n");
  CHECK(help({"run", "x.yaml", "--loss", "mse"}) == "write --set loss=mean_squared_error\n");
  CHECK(help({"run", "x.yaml", "--metrics", "mse"}) == "write --set 'metrics=[mean_squared_error]'\n");
  CHECK(help({"run", "x.yaml", "--precision", "fp32"}) == "write --set precision=float32\n");
  CHECK(help({"run", "x.yaml", "--weight-decay", "0.01"}) == "write --set 'optimizer.adamw={weight_decay: 0.01}'\n");
  CHECK(help({"run", "x.yaml", "--wd", "0.01"}) == "write --set 'optimizer.adamw={weight_decay: 0.01}'\n");
  CHECK(help({"run", "x.yaml", "--momentum", "0.9"}) == "write --set 'optimizer.sgd={momentum: 0.9}'\n");
  CHECK(help({"run", "x.yaml", "-e", "3"}) == "write --set 'train.duration=3 epochs'\n");
  CHECK(help({"run", "x.yaml", "--n_epochs", "3"}) == "write --set 'train.duration=3 epochs'\n");
  CHECK(help({"run", "x.yaml", "--duration", "10k"}) == "write --set 'train.duration=10000 steps'\n");
  CHECK(help({"run", "x.yaml", "--dataset", "cifar"}) == "write --set data.source=cifar10\n");
  CHECK(contains(help({"run", "x.yaml", "--wandb"}), "every run writes metrics.jsonl, "));
  CHECK(help({"run", "x.yaml", "--output-dir", "r"}) == "did you mean '--run-dir'?\n");
  CHECK(help({"run", "x.yaml", "--optimizer.learning_rate=0.1"}) ==
        "a key of the config is set by --set: write --set optimizer.learning_rate=0.1\n");
  CHECK(help({"export", "runs/x", "--output", "a.onnx", "--opset", "13"}) ==
        "the operator set of files is 17, which ONNX Runtime 1.12 and later read\n");
  CHECK(contains(help({"export", "runs/x", "--output", "a", "--layout", "tensorflow"}), "did you mean 'flax'?"));
  CHECK(
      contains(help({"export", "runs/x", "--output", "a", "--format", "torchscript"}),
               "did you mean 'safetensors'? With --layout torch it has the parameters as PyTorch names them; onnx has "
               "the whole model"));
  CHECK(help({"run", "x.yaml", "duration=10k steps"}) ==
        "a key of the config is set by --set: write --set 'train.duration=10000 steps'\n");
  CHECK(help({"run", "x.yaml", "--run_dir", "r"}) == "did you mean '--run-dir'?\n");
  CHECK(help({"run", "x.yaml", "data.batch_size=32"}) ==
        "a key of the config is set by --set: write --set data.batch_size=32\n");
  CHECK(help({"run", "x.yaml", "optimizer.lr=0.1"}) ==
        "a key of the config is set by --set: write --set optimizer.learning_rate=0.1\n");
  CHECK(help({"run", "x.yaml", "~data.shuffle"}) ==
        "--set restores the default of a key: write --set data.shuffle=null\n");
  CHECK(help({"run", "x.yaml", "~data.shuffle=true"}) ==
        "--set restores the default of a key: write --set data.shuffle=null\n");
  CHECK(help({"run", "x.yaml", "--set", "data.batch_size", "32"}) == "write --set data.batch_size=32\n");
  CHECK(help({"train", "x.yaml"}) == "did you mean 'run'?\n");
  CHECK(help({"evaluate", "runs/x"}) == "did you mean 'eval'?\n");
  CHECK(call({"run", "a b.pmt"}).err ==
        "a b.pmt: error: this is the text of a program, not a config\n  help: pmaptrain exec 'a b.pmt' runs it\n");
  CHECK(contains(call({"collectives", "--mesh", "d=2", "--op", "allreduce"}).err, "help: did you mean 'psum'?"));
  // Not every command sets keys of a config.
  CHECK(help({"devices", "a=b"}) ==
        "pmaptrain devices takes only options; pmaptrain devices --help lists its options\n");
}

TEST_CASE("invalid values of options are shown in their argument", "[app]") {
  CHECK(call({"run", linear, "--seed", "-1"}).err ==
        "--seed:1:8: error: --seed takes an integer from 0 to 2^64 - 1, not '-1'\n"
        "    1 | --seed -1\n"
        "      |        ^~\n");
  CHECK(contains(call({"run", linear, "--devices", "0"}).err, "--devices takes an integer of at least 1, not '0'"));
  CHECK(contains(call({"run", linear, "--max-steps=1.5"}).err, "not '1.5'"));
  CHECK(contains(call({"run", linear, "--progress", "bra"}).err, "did you mean 'bar'?"));
  CHECK(contains(call({"run", linear, "--name"}).err, "error: --name needs a value\n  help: --name NAME"));
  CHECK(contains(call({"run", linear, "--set="}).err, "--set needs a value"));
  CHECK(contains(call({"run", linear, "--run-dir", ""}).err, "--run-dir needs a value, and this one is empty"));
}

TEST_CASE("--workers auto is what a config has without the key", "[app]") {
  const Finished found = call({"validate", linear, "--set", "mesh.workers=1", "--workers", "auto", "--print-config"});
  CHECK(found.status == 0);
  CHECK(contains(found.out, "workers: auto"));
  CHECK(contains(call({"run", linear, "--workers", "all"}).err,
                 "--workers takes an integer of at least 1, or auto, not 'all'"));
}

TEST_CASE("--set takes one value each time, with or without an equals sign", "[app]") {
  const Finished plain = call({"validate", "--set", "seed=3", linear, "--print-config"});
  CHECK(plain.status == 0);
  CHECK(contains(plain.out, "seed: 3"));
  CHECK(call({"validate", linear, "--set=seed=2", "--set=seed=3", "--print-config"}).out == plain.out);
  CHECK(call({"validate", linear, "--seed", "3", "--print-config"}).out == plain.out);
}

TEST_CASE("every failure is a JSON document where --json is among the arguments", "[app]") {
  const auto failure = [](const std::vector<std::string>& arguments, int status) {
    const Finished result = call(arguments);
    CHECK(result.status == status);
    CHECK(result.err.empty());
    const json document = json::parse(result.out);
    CHECK(document["exit_status"] == status);
    REQUIRE(document["errors"].size() >= 1);
    for (const char* key : {"kind", "file", "line", "column", "message", "help"}) {
      CHECK(document["errors"][0].contains(key));
    }
    return document;
  };
  CHECK(failure({"rnu", "--json"}, 2)["errors"][0]["help"] == "did you mean 'run'?");
  CHECK(failure({"run", "--json", "--frob", linear}, 2)["errors"][0]["kind"] == "usage");
  CHECK_FALSE(failure({"run", "--json", "nothing.yaml"}, 2).contains("valid"));
  const json invalid = failure({"validate", linear, "--json", "--set", "data.batch_size=801"}, 2);
  CHECK(invalid["valid"] == false);
  CHECK(failure({"exec", "nothing.pmt", "--json"}, 2)["errors"][0]["line"].is_null());

  const TemporaryFolder folder;
  const std::string config = folder.write("bad.yaml", "mesh:\n  axes: {devices: 8}\nsede: 1\n");
  const json located = failure({"validate", config, "--json"}, 2);
  bool found = false;
  for (const json& error : located["errors"]) {
    if (error["line"] != 3) continue;
    found = true;
    CHECK(error["file"] == config);
    CHECK(error["column"] == 1);
  }
  CHECK(found);
}

TEST_CASE("a config's backend is the one that is planned, run and evaluated on", "[app]") {
  const TemporaryFolder folder;
  const std::string config = "configs/gradient_averaging.yaml", run = folder / "run", set = "mesh.backend=reference";
  CHECK(contains(call({"validate", config, "--set", set}).out, "carried by 1 worker (backend reference)"));
  CHECK(json::parse(call({"validate", config, "--json", "--set", set}).out)["backend"] == "reference");
  const json devices = json::parse(call({"devices", "--json"}).out);
  const json usable = devices["gpus"].empty() ? json{"cpu", "reference"} : json{"cpu", "cuda", "reference"};
  CHECK(devices["backends"] == usable);
  CHECK(contains(call({"devices"}).out, "reference (the interpreter"));
  REQUIRE(call({"run", config, "--run-dir", run, "-q", "--set", set}).status == 0);
  const json there = json::parse(call({"eval", run, "--split", "train", "--json"}).out);
  const json here = json::parse(call({"eval", run, "--split", "train", "--json", "--set", "mesh.backend=cpu"}).out);
  CHECK(there["loss"].get<double>() == Approx(here["loss"].get<double>()).epsilon(1e-6));
}

TEST_CASE("the resolved config that is printed validates to itself", "[app]") {
  const TemporaryFolder folder;
  const std::string first = call({"validate", linear, "--print-config"}).out;
  const std::string again = folder.write("linear_regression.yaml", first);
  CHECK(call({"validate", again, "--print-config"}).out == first);
}

TEST_CASE("init lists the shipped configs, writes one, and replaces nothing", "[app]") {
  const TemporaryFolder folder;
  const std::string list = call({"init"}).out;
  for (const char* name : {"cnn", "fashion_mnist", "gpt", "gpt2", "gpt_bpe", "gradient_averaging", "linear_regression",
                           "resnet18", "resnet_fashion", "reviews", "shops", "signals", "unet", "vit", "volumes"}) {
    CHECK(contains(list, "\n  " + std::string(name) + " "));
  }
  const std::string file = folder / "mine.yaml", schema = folder / "pmaptrain.schema.json";
  const std::string written =
      "# yaml-language-server: $schema=pmaptrain.schema.json\n" + tests::read_text("configs/cnn.yaml");
  const Finished first = call({"init", "cnn", file});
  CHECK(first.status == 0);
  CHECK(first.out.starts_with("wrote " + file + " and " + schema + "\n\n  pmaptrain validate "));
  CHECK(tests::read_text(file) == written);
  CHECK(call({"validate", file}).status == 0);
  const Finished again = call({"init", "linear_regression", file});
  CHECK(again.status == 2);
  CHECK(contains(again.err, "exists, and init does not replace files"));
  CHECK(tests::read_text(file) == written);
  CHECK(contains(call({"init", "cn"}).err, "did you mean 'cnn'?"));
}

TEST_CASE("init tells the kind of data that a path names, and predict what it does not read", "[app]") {
  CHECK(contains(call({"init", "a.npz"}).err, "\n  help: pmaptrain init npz a.npz\n"));
  CHECK(contains(call({"init", "data/a.csv"}).err, "\n  help: pmaptrain init csv data/a.csv\n"));
  const TemporaryFolder folder;
  CHECK(contains(call({"init", folder / ""}).err, "\n  help: pmaptrain init images "));
  CHECK(contains(call({"init", "text"}).err, "pmaptrain init gpt writes a config of a model of text"));
  // Before the config, which exists, is looked at.
  const Finished other = call({"init", "csv", "a.npz", "configs/cnn.yaml"});
  CHECK(other.status == 2);
  CHECK(contains(other.err, "'a.npz' is not what pmaptrain init csv reads\n  help: pmaptrain init npz a.npz\n"));
  CHECK(contains(call({"tune"}).err, "did you mean 'sweep'?"));
}

TEST_CASE("init writes the schema beside the config, brings an older one up to date, and replaces no other", "[app]") {
  const TemporaryFolder folder;
  const std::string schema = folder / "pmaptrain.schema.json";
  const std::string current = call({"schema"}).out;
  REQUIRE(call({"init", "cnn", folder / "a.yaml"}).status == 0);
  CHECK(tests::read_text(schema) == current);
  CHECK(call({"init", "cnn", folder / "b.yaml"}).out.starts_with("wrote " + (folder / "b.yaml") + "\n\n"));

  folder.write("pmaptrain.schema.json", "{\n  \"title\": \"A config of pmaptrain\",\n  \"type\": \"object\"\n}\n");
  CHECK(call({"init", "cnn", folder / "c.yaml"}).status == 0);
  CHECK(tests::read_text(schema) == current);

  folder.write("pmaptrain.schema.json", "{}");
  const Finished refused = call({"init", "cnn", folder / "d.yaml"});
  CHECK(refused.status == 2);
  CHECK(refused.err == "error: '" + schema +
                           "' is not a schema of pmaptrain, and init does not replace other files\n  help: init writes "
                           "the schema for editors to this path; write the config to another folder\n");
  CHECK(tests::read_text(schema) == "{}");
  CHECK_FALSE(std::filesystem::exists(folder / "d.yaml"));
}

TEST_CASE("schema prints a JSON Schema and takes no arguments", "[app]") {
  const Finished result = call({"schema"});
  CHECK(result.status == 0);
  CHECK(result.err.empty());
  CHECK(json::parse(result.out)["properties"]["train"]["required"] == json{"duration"});
  CHECK(contains(call({"schema", "x"}).err, "unexpected argument 'x'"));
}

TEST_CASE("help describes keys and commands", "[app]") {
  CHECK(contains(call({"help", "optimizer.adam"}).out, "b1"));
  CHECK(contains(call({"help"}).out, "optimizer"));
  CHECK(call({"help", "losses"}).out == call({"help", "loss"}).out);
  CHECK(call({"help", "layer"}).out == call({"help", "layers"}).out);
  CHECK(contains(call({"help", "layers"}).out, "padding (default SAME)"));
  const std::string precision = call({"help", "precision"}).out;
  CHECK(precision.starts_with("precision\n"));
  CHECK(contains(precision,
                 "of the same name\n  pmaptrain help model.layers.precision\n  pmaptrain help metrics.precision\n"));
  CHECK(contains(call({"run", "--help"}).out, "stop after step N of the run, with a checkpoint; steps before\n"));
  const std::string errors = "With --json an error is a JSON document on standard output too";
  CHECK(contains(call({"eval", "--help"}).out, errors));
  CHECK_FALSE(contains(call({"predict", "--help"}).out, errors));
  const Finished named = call({"help", "Gradient"});
  CHECK(named.status == 0);
  CHECK(named.out.starts_with("no key is named 'gradient'; these have the word in their name or meaning\n"));
  CHECK(contains(named.out, "\n  optimizer.clip_by_global_norm  "));
  const Finished hinted = call({"help", "kernel"});
  CHECK(hinted.out.starts_with("no key is named 'kernel': did you mean 'kernel_size'?\nthese have the word in their "));
  const Finished wrong = call({"help", "optimzer"});
  CHECK(wrong.status == 2);
  CHECK(contains(wrong.err, "did you mean 'optimizer'?"));
}

TEST_CASE("an error in an option has its line and column in JSON", "[app]") {
  const Finished result = call({"validate", linear, "--set", "train.duratoin=1", "--json"});
  CHECK(result.status == 2);
  const json error = json::parse(result.out)["errors"][0];
  CHECK(error["file"] == "--set");
  CHECK(error["line"] == 1);
  CHECK(error["column"] == 7);
}

TEST_CASE("eval of a missing folder suggests a run folder", "[app]") {
  const Finished result = call({"eval", "nope"});
  CHECK(result.status == 2);
  CHECK(result.err ==
        "error: 'nope' is not a run folder: there is no such folder\n"
        "  help: eval takes a folder that pmaptrain run wrote: runs/NAME\n");
}

TEST_CASE("a missing program file is also named in JSON", "[app]") {
  const json document = json::parse(call({"exec", "nope.pmt", "--json"}).out);
  CHECK(document["errors"][0]["file"] == "nope.pmt");
  CHECK(document["errors"][0]["message"] == "the file cannot be read: No such file or directory");
}

TEST_CASE("missing data files of an option are reported at the option", "[app]") {
  const Finished given =
      call({"validate", "configs/fashion_mnist.yaml", "--set", "data.source.fashion_mnist.dir=nope"});
  CHECK(given.status == 3);
  CHECK(given.err.starts_with("--set:1:31: error: cannot open '"));
  CHECK(contains(given.err, "help: a relative path in an option is relative to the current directory\n"));
  CHECK_FALSE(contains(given.err, "apt-get"));
}

TEST_CASE("initial values that cannot be read are refused by validate, where they are named", "[app]") {
  const TemporaryFolder folder;
  const Finished missing = call({"validate", linear, "--set", "model.init.from=nope.safetensors"});
  CHECK(missing.status == 3);
  CHECK(missing.err.starts_with("--set:1:12: error: cannot open '"));
  CHECK(contains(missing.err, "help: a relative path in an option is relative to the current directory\n"));
  const std::string damaged = folder.write("w.safetensors", "not one");
  const Finished result = call({"validate", linear, "--set", "model.init.from=" + damaged});
  CHECK(result.status == 3);
  CHECK(result.err.starts_with("--set:1:12: error: '" + damaged + "' is not a sound safetensors file: "));
}

TEST_CASE("evaluation that the data cannot give is warned about where it was asked for", "[app]") {
  const Finished asked = call({"validate", linear, "--set", "train.eval_every=5 steps"});
  CHECK(asked.status == 0);
  CHECK(contains(
      asked.err,
      "warning: train.eval_every (--set:1:18) does nothing: the data has no test split; data.validation would make "
      "one to evaluate on\n"));
  CHECK(call({"validate", linear}).err.empty());
}

TEST_CASE("with --max-steps a run counts its epochs among all of its config", "[app]") {
  const TemporaryFolder folder;
  const std::string config =
      folder.write("c.yaml",
                   "mesh: {axes: {devices: 2}}\n"
                   "data: {source: {synthetic_linear: {examples_per_device: 40}}, batch_size: 8}\n"
                   "model: {layers: [{dense: 1}]}\nloss: mean_squared_error\n"
                   "optimizer: {adam: {}, learning_rate: 0.01}\n"
                   "train: {duration: 5 epochs}\n");
  const std::string run = folder / "run";
  const Finished done = call({"run", config, "--run-dir", run, "--max-steps", "3"});
  REQUIRE(done.status == 0);
  const std::string log = test::read_text(run + "/log.txt");
  CHECK(contains(log, "step 3/3  epoch 1/5  loss"));
  CHECK(contains(log, "epoch 1/5  train mean  loss"));
  CHECK(contains(done.out, "stopped at --max-steps after 3 steps (less than an epoch, 24 examples)"));
}

TEST_CASE("a run that is resumed with a smaller --max-steps says where it is, and takes no step", "[app]") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  REQUIRE(call({"run", linear, "--run-dir", run, "--max-steps", "5", "--quiet"}).status == 0);
  std::filesystem::remove(std::filesystem::path(run) / "summary.json");  // as a kill at the very end leaves it
  const Finished resumed = call({"run", linear, "--run-dir", run, "--resume", "--max-steps", "3"});
  CHECK(resumed.status == 0);
  const std::string log = test::read_text(run + "/log.txt");
  CHECK(contains(log, "the run is at step 5 already, past --max-steps 3: no step is taken"));
  CHECK_FALSE(contains(log, "5/3"));
  CHECK(contains(resumed.out, "after 5 steps"));
}
