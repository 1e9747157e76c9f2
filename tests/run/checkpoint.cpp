// What a run leaves can be read back, evaluates to the same, and is not believed when it is damaged.
#include "core/run/checkpoint.h"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <span>
#include <thread>
#include <tuple>

#include "core/base/error.h"
#include "tests/catch.h"
#include "tests/session_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

namespace fs = std::filesystem;

std::pair<ExitStatus, Diagnostic> error_of(const setup::Setup& setup, const fs::path& run,
                                           const std::string& checkpoint = "last", const std::string& split = "test") {
  try {
    evaluate::evaluate_checkpoint(setup.loaded, run, checkpoint, split);
  } catch (const Error& error) {
    return {error.status(), error.diagnostics().front()};
  }
  return {ExitStatus::done, {}};
}

void flip_byte(const fs::path& path, std::streamoff at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const int byte = file.get();
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 1));
}

}  // namespace

TEST_CASE("the last checkpoint evaluates to exactly the run's final test measures", "[run]") {
  const TemporaryFolder root;
  const setup::Setup setup = setup_of_text(small_images, {"mesh.axes={a: 5}", "data.remainder=mask"});
  const Trained trained = train_setup_in(root / "run", setup);
  const evaluate::Evaluation evaluation =
      evaluate::evaluate_checkpoint(setup.loaded, root / "run", "last", "test").front();
  REQUIRE(trained.result().final_measures.size() == 2);
  CHECK(trained.result().final_measures[1].first == "test");
  CHECK(evaluation.measures == trained.result().final_measures[1].second);
  CHECK(evaluation.examples == 21);
  CHECK(evaluation.split == "test");
  CHECK(evaluate::evaluate_checkpoint(setup.loaded, root / "run", "4", "test").front().measures == evaluation.measures);
  const evaluate::Evaluation on_train =
      evaluate::evaluate_checkpoint(setup.loaded, root / "run", "last", "train").front();
  CHECK(on_train.examples == 48);
  CHECK(on_train.split == "train");
}

TEST_CASE("a checkpoint holds every parameter and slot, and says where training stands", "[run]") {
  const TemporaryFolder root;
  const setup::Setup setup = setup_of_text(small_images);
  const Trained trained = train_setup_in(root / "run", setup);
  CHECK(trained.parameters.size() == 4);
  for (const auto& [name, tensor] : trained.parameters) {
    INFO(name);
    for (const char* slot : {"adam.mu/", "adam.nu/"}) {
      REQUIRE(trained.state.contains(slot + name));
      CHECK(trained.state.at(slot + name).shape == tensor.shape);
    }
  }
  CHECK(to_doubles(trained.state.at("step")) == std::vector<double>{4});
  const std::string state = read_text(root / "run/checkpoints/step-00000004/state.json");
  CHECK(state.find("\"step\": 4") != std::string::npos);
  CHECK(state.find("\"example_cursor\": 64") != std::string::npos);
  CHECK(state.find("\"steps_skipped\": 0") != std::string::npos);
}

TEST_CASE("a damaged checkpoint is refused with the file's name", "[run]") {
  const TemporaryFolder root;
  const setup::Setup setup = setup_of_text(small_images);
  train_setup_in(root / "run", setup);
  const fs::path checkpoint = root / "run/checkpoints/step-00000004";
  const fs::path parameters = checkpoint / "params.safetensors", state = checkpoint / "state.json";

  flip_byte(parameters, static_cast<std::streamoff>(fs::file_size(parameters)) - 3);
  auto [status, diagnostic] = error_of(setup, root / "run");
  CHECK(status == ExitStatus::data);
  CHECK(diagnostic.message == "'" + (root / "run/checkpoints/step-00000004/params.safetensors") +
                                  "' is damaged: it does not have the checksum that state.json gives");
  CHECK(diagnostic.help == "use another checkpoint of the run");

  const std::string state_text = read_text(state);
  for (const char* text : {"{", "[]", "{\"checksums\": 3}", "{\"checksums\": [1]}", "{\"checksums\": {}}",
                           "{\"checksums\": {\"params.safetensors\": 7}}"}) {
    INFO(text);
    std::ofstream(state) << text;
    CHECK(error_of(setup, root / "run").first == ExitStatus::data);
    CHECK(error_of(setup, root / "run").second.message.ends_with("state.json' is damaged: it is not what was written"));
  }

  std::ofstream(state) << "";
  CHECK(error_of(setup, root / "run").second.message.ends_with("state.json' is empty"));

  std::ofstream(state) << state_text;
  fs::remove(parameters);
  std::tie(status, diagnostic) = error_of(setup, root / "run");
  CHECK(status == ExitStatus::data);
  CHECK(diagnostic.message ==
        "cannot open '" + (root / "run/checkpoints/step-00000004/params.safetensors") + "': No such file or directory");
  CHECK(diagnostic.help == "the checkpoint is not complete: use another one of the run");
}

TEST_CASE("a checkpoint or split that is not there is refused with those there are", "[run]") {
  const TemporaryFolder root;
  const setup::Setup setup = setup_of_text(small_images);
  train_setup_in(root / "run", setup);
  CHECK(error_of(setup, root / "run", "7").first == ExitStatus::usage);
  CHECK(error_of(setup, root / "run", "7").second.help == "it has 4, last");
  CHECK(error_of(setup, root / "nothing").first == ExitStatus::usage);
  CHECK(error_of(setup, root / "run", "last", "validation").first == ExitStatus::usage);
  CHECK(error_of(setup, root / "run", "last", "validation").second.help == "there are train, test");
  const setup::Setup without_test = setup_of_text(test::read_text("configs/linear_regression.yaml"));
  CHECK(error_of(without_test, root / "run").second.help == "there is train: add --split train");
}

TEST_CASE("a checkpoint of another model is refused with the tensor that does not fit", "[run]") {
  const TemporaryFolder root;
  train_setup_in(root / "run", setup_of_text(small_images));
  const auto refusal = [&](const std::string& set) {
    const auto [status, diagnostic] = error_of(setup_of_text(small_images, {set}), root / "run");
    CHECK(status == ExitStatus::data);
    CHECK(diagnostic.help == "it is of another model or optimizer");
    return diagnostic.message.substr(diagnostic.message.find("params.safetensors'"));
  };
  CHECK(refusal("model.layers.0.conv.features=5") ==
        "params.safetensors': 'conv_0.kernel' is f32[3,3,1,3]; the model needs f32[3,3,1,5]");
  CHECK(refusal("model.layers=[flatten, {dense: 3}]") ==
        "params.safetensors' has a tensor 'conv_0.bias', which this model does not have");
  CHECK(refusal("model.layers=[{conv: {features: 3, kernel_size: [3, 3]}}, relu, {max_pool: {window_shape: [2, 2], "
                "strides: [2, 2]}}, flatten, {dense: 3}, {dense: 3}]") ==
        "params.safetensors' has no tensor 'dense_1.kernel'");
}

TEST_CASE("weights are of one checkpoint, whatever a run under way writes and removes meanwhile", "[run]") {
  const TemporaryFolder root;
  const fs::path run = root / "run";
  train_setup_in(run, setup_of_text(small_images, {"train.ema={decay: 0.9}", "train.checkpoint.every=2 steps"}));
  // Two checkpoints, which the run writes in turn: that of step 4 at even steps.
  std::map<std::int64_t, std::map<std::string, std::string>> files;
  for (const std::int64_t step : {2, 4}) {
    for (const char* name : {"params.safetensors", "ema.safetensors", "state.json"}) {
      files[step][name] = read_text(run / "checkpoints" / run::checkpoint_name(step) / name);
    }
  }
  const auto written_at = [](std::int64_t step) { return step % 2 == 0 ? 4 : 2; };
  run::RunFolderOptions options;
  options.overwrite = true;
  const run::RunFolder folder = run::RunFolder::claim(run, options);
  folder.link_checkpoint("best", run::checkpoint_name(4));
  std::atomic<bool> stop = false;
  std::string problem, problem_of_writer;
  std::thread writer([&] {
    try {
      for (std::int64_t step = 5; !stop; ++step) {
        folder.commit_checkpoint(step, [&](const run::Directory& into) {
          for (const auto& [name, text] : files.at(written_at(step))) test::write_text(into.path() / name, text);
        });
        folder.link_checkpoint("best", run::checkpoint_name(step));
        folder.prune_checkpoints(1);
      }
    } catch (const std::exception& error) {
      problem_of_writer = error.what();
    }
  });
  for (int i = 0; i < 300 && problem.empty(); ++i) {
    try {
      const bool raw = i % 3 == 0;
      const auto loaded =
          run::load_weights(run, i % 2 == 0 ? "last" : "best", raw ? spec::Weights::raw : spec::Weights::ema);
      const std::int64_t step = written_at(run::checkpoint_step(loaded.folder.filename().string()).value());
      const std::string& file = files.at(step).at(raw ? "params.safetensors" : "ema.safetensors");
      const auto bytes = std::as_bytes(std::span(file));
      const auto found = loaded.parameters.file.view();
      if (loaded.state.step != step || !std::equal(found.begin(), found.end(), bytes.begin(), bytes.end())) {
        problem = "parts of several checkpoints";
      }
    } catch (const Error& error) {
      problem = error.what();
    }
  }
  stop = true;
  writer.join();
  CHECK(problem == "");
  CHECK(problem_of_writer == "");
}
