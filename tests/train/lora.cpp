// Runs with adapters: what is trained, what checkpoints have, and that a run goes on from one.
#include <algorithm>
#include <filesystem>
#include <set>

#include "core/evaluate/evaluator.h"
#include "core/exports/exporter.h"
#include "core/run/files/file_writer.h"
#include "core/setup/make_setup.h"
#include "core/setup/values.h"
#include "core/spec/load.h"
#include "core/train/resume.h"
#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/train/steps.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

namespace fs = std::filesystem;

// Images of 4x4 in 3 classes on 4 devices, two dense layers; three steps to an epoch.
const std::string without_lora = R"(mesh: {axes: {devices: 4}}
data: {source: {synthetic_images: {height: 4, width: 4, classes: 3, train: 48, test: 16}}, batch_size: 16}
model: {layers: [flatten, {dense: 8}, tanh, {dense: 6}, {name: head, dense: 3}]}
loss: softmax_cross_entropy
metrics: [accuracy]
optimizer: {adam: {}, learning_rate: 0.01}
train: {duration: 6 steps, log_every: 1 step, eval_every: 3 steps}
)";
const std::string with_lora =
    without_lora + "lora: {rank: 2, alpha: 4, dropout: 0.25, parameters: [\"dense_*\"], also_train: [\"head.*\"]}\n";

const std::set<std::string> lora_names{"dense_0.lora_a", "dense_0.lora_b", "dense_1.lora_a",
                                       "dense_1.lora_b", "head.kernel",    "head.bias"};

// `with_lora` on the parameters of a run, which `folder` gets.
std::string lora_on_base(const fs::path& folder) {
  if (!fs::exists(folder / "base")) train_setup_in(folder / "base", setup_of_text(without_lora));
  std::string text = with_lora;
  const std::string layers = "{name: head, dense: 3}]";
  text.insert(text.find(layers) + layers.size(), ", init: {from: " + (folder / "base").string() + "}");
  return text;
}

spec::Loaded lora_config(const std::string& text, std::vector<std::string> set = {}) {
  spec::Overrides overrides;
  overrides.set = std::move(set);
  return spec::load_text(text, "test.yaml", ".", overrides);
}

// As `pmaptrain run --resume`.
Trained resume_lora(const fs::path& run, spec::Loaded loaded) {
  std::optional<train::ResumePoint> point = train::find_resume_point(run);
  REQUIRE(point);
  train::check_config_continues(train::read_run_config(run), loaded);
  const setup::Setup setup = train::make_resumed_setup(std::move(loaded), point->checkpoint.state);
  return train_setup_in(run, setup, going_on_from(*point));
}

std::string lora_message(const std::function<void()>& act, ExitStatus status) {
  try {
    act();
  } catch (const Error& error) {
    CHECK(error.status() == status);
    const Diagnostic& first = error.diagnostics().front();
    std::string text = first.message + " | " + first.help;
    for (const std::string& note : first.notes) text += " | " + note;
    return text;
  }
  return "accepted";
}

std::set<std::string> tensor_names(const run::Tensors& tensors) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : tensors) names.insert(name);
  return names;
}

}  // namespace

TEST_CASE("a checkpoint of adapters has what is trained alone, and its optimizer state", "[train]") {
  const Trained trained = train_setup(setup_of_text(with_lora));
  CHECK(tensor_names(trained.parameters) == lora_names);
  for (const auto& [name, tensor] : trained.state) {
    INFO(name);
    CHECK((name.find("dense_") == std::string::npos || name.find(".lora_") != std::string::npos));
  }
  const std::vector<double> b = to_doubles(trained.parameters.at("dense_0.lora_b"));
  CHECK(std::any_of(b.begin(), b.end(), [](double value) { return value != 0; }));
}

TEST_CASE("training with adapters leaves the base as it is", "[train]") {
  const setup::Setup setup = setup_of_text(with_lora);
  const std::unique_ptr<Module> module = load_step(setup);
  const auto values_of_base = [&] {
    std::map<std::string, std::vector<std::byte>> values;
    for (const model::Parameter& parameter : setup.model.parameters) {
      if (parameter.lora != layers::LoraRole::base) continue;
      values[parameter.name] = setup::bytes_of(*module, module->input(parameter.name), 0);
    }
    return values;
  };
  const auto before = values_of_base();
  CHECK(before.size() == 4);
  take_steps(*module, 3);
  CHECK(values_of_base() == before);
}

TEST_CASE("the first step of adapters has the loss of the base, since b is zero", "[train]") {
  const std::string set = "lora.dropout=0.0";
  const Trained with = train_setup(setup_of_text(with_lora, {set})), without = train_setup(setup_of_text(without_lora));
  const auto first_loss = [](const Trained& trained) { return trained.of<run::Logged>().front().measures.front(); };
  CHECK(first_loss(with) == first_loss(without));
}

TEST_CASE("a run with adapters goes on bit by bit from its checkpoint", "[train]") {
  const TemporaryFolder root;
  const std::string text = GENERATE(true, false) ? lora_on_base(root.path()) : with_lora;
  const Trained whole = train_setup_in(root / "whole", setup_of_text(text));
  train_setup_in(root / "run", setup_of_text(text), until(3));
  CHECK(resume_lora(root / "run", lora_config(text)).same_bits(whole));
}

TEST_CASE("a run with adapters does not go on from another base, and says where to name it", "[train]") {
  const TemporaryFolder root;
  const std::string text = lora_on_base(root.path());
  train_setup_in(root / "run", setup_of_text(text), until(3));
  train_setup_in(root / "other", setup_of_text(without_lora, {"seed=5"}));
  const auto resume_on = [&](const std::string& base) {
    return lora_message([&] { resume_lora(root / "run", lora_config(text, {"model.init.from.path=" + base})); },
                        ExitStatus::data);
  };
  const std::string changed = resume_on(root / "other");
  CHECK(changed.starts_with("the base of the run has changed: '" + (root / "other") + "' has the identity "));
  CHECK(changed.ends_with(" | restore the file or the run of the base; --base PATH says where it lies by now"));
  fs::rename(root / "base", root / "moved");
  const Trained resumed = resume_lora(root / "run", lora_config(text, {"model.init.from.path=" + (root / "moved")}));
  CHECK(resumed.result().steps == 6);
}

TEST_CASE("a changed section lora is refused where a run goes on", "[train]") {
  const TemporaryFolder root;
  train_setup_in(root / "run", setup_of_text(with_lora), until(3));
  CHECK(lora_message([&] { resume_lora(root / "run", lora_config(with_lora, {"lora.rank=1"})); }, ExitStatus::usage)
            .starts_with("--resume cannot change lora.rank: the run has 2, this config 1"));
}

TEST_CASE("eval of a run with adapters has the measures of its training", "[train]") {
  const TemporaryFolder root;
  const Trained trained = train_setup_in(root / "run", setup_of_text(lora_on_base(root.path())));
  const std::vector<evaluate::Evaluation> evaluations =
      evaluate::evaluate_checkpoint(spec::load(root / "run", {}), root / "run", "last");
  REQUIRE(evaluations.size() == 1);
  CHECK(evaluations.front().measures == trained.of<run::Evaluated>().back().measures);
}

TEST_CASE("an exported model has the adapters in its kernels", "[train]") {
  const TemporaryFolder root;
  const std::string text = lora_on_base(root.path());
  train_setup_in(root / "run", setup_of_text(text));
  const spec::Loaded loaded = spec::load(root / "run", {});
  exports::ExportRequest request;
  request.format = exports::ExportFormat::safetensors;
  const exports::Exporter exporter(loaded, root / "run", request);
  {
    run::Replacement file(root / "merged.safetensors");
    exporter.write(file);
    file.close();
    file.take_place();
  }
  CHECK(exporter.parameters() == 48 * 8 + 8 + 8 * 6 + 6 + 6 * 3 + 3);
  // A run of the merged model, as it begins.
  const std::string from = "{from: " + (root / "merged.safetensors") + "}";
  const Trained merged =
      train_setup(setup_of_text(without_lora, {"model.init=" + from, "optimizer.learning_rate=1.0e-30"}), until(3));
  const auto before = evaluate::evaluate_checkpoint(loaded, root / "run", "last");
  check_near(merged.of<run::Evaluated>().back().measures, before.front().measures);
}

TEST_CASE("averages of train.ema are of what adapters train", "[train]") {
  const TemporaryFolder root;
  train_setup_in(root / "run", setup_of_text(with_lora, {"train.ema.decay=0.5"}));
  CHECK(tensor_names(run::read_safetensors(root / "run/checkpoints/last/ema.safetensors")) == lora_names);
}

TEST_CASE("members of an ensemble share one base, and each is as it would be alone", "[train]") {
  const TemporaryFolder root;
  const std::string text = lora_on_base(root.path());
  const std::string ensemble =
      "ensemble={axis: members, vary: {seed: [0, 7], optimizer.learning_rate: [0.01, 0.02], lora.dropout: [0.1, 0.2]}}";
  const setup::Setup together = setup_of_text(text, {"mesh.axes=[{members: 2}, {devices: 4}]", ensemble});
  const Trained both = train_setup(together);
  const Trained alone =
      train_setup(setup_of_text(text, {"seed=7", "data.seed=0", "optimizer.learning_rate=0.02", "lora.dropout=0.2"}));
  for (const auto& [name, tensor] : alone.parameters) {
    INFO(name);
    const run::Tensor& stacked = both.parameters.at(name);
    const std::size_t size = tensor.bytes.size();
    REQUIRE(stacked.bytes.size() == 2 * size);
    CHECK(std::equal(tensor.bytes.begin(), tensor.bytes.end(),
                     stacked.bytes.begin() + static_cast<std::ptrdiff_t>(size)));
  }
}

TEST_CASE("members that would draw a base each are refused", "[train]") {
  CHECK(lora_message(
            [] {
              setup_of_text(with_lora, {"mesh.axes=[{members: 2}, {devices: 4}]",
                                        "ensemble={axis: members, vary: {seed: [0, 7]}}"});
            },
            ExitStatus::usage) ==
        "members share the base of lora, and dense_0.kernel, dense_1.kernel would be drawn from the seed of each | "
        "model.init.from takes the base from a file or a run; or leave seed out of ensemble.vary");
}

TEST_CASE("a base in bfloat16 is rounded once, and takes half of its memory", "[train]") {
  const TemporaryFolder root;
  const std::string text = lora_on_base(root.path());
  const setup::Setup setup = setup_of_text(text, {"lora.base_precision=bfloat16"});
  const std::unique_ptr<Module> module = load_step(setup);
  const run::Tensors base = run::read_safetensors(root / "base/checkpoints/last/params.safetensors");
  const std::vector<double> whole = to_doubles(base.at("dense_0.kernel"));
  const std::vector<double> rounded = setup::to_doubles(*module, module->input("dense_0.kernel"), 0);
  REQUIRE(rounded.size() == whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) CHECK(rounded[i] == Approx(whole[i]).epsilon(1.0 / 256));
  CHECK(module->type(module->input("dense_0.bias")).dtype == DType::f32);
  const Trained one = train_setup_in(root / "run", setup, until(3));
  CHECK(resume_lora(root / "run", lora_config(text, {"lora.base_precision=bfloat16"}))
            .same_bits(train_setup(setup_of_text(text, {"lora.base_precision=bfloat16"}))));
}

TEST_CASE("initial values are not taken from a run that has adapters alone", "[train]") {
  const TemporaryFolder root;
  train_setup_in(root / "run", setup_of_text(with_lora), until(3));
  CHECK(lora_message([&] { setup_of_text(without_lora, {"model.init={from: " + (root / "run") + "}"}); },
                     ExitStatus::usage) ==
        "'" + (root / "run") +
            "' was trained with adapters (lora), and its checkpoints have these alone | `pmaptrain "
            "export RUN --output FILE.safetensors` writes the whole model, for model.init.from");
}
