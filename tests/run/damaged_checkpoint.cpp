// Every truncation and every flipped bit of a checkpoint is found; the one before is used then.
#include <algorithm>
#include <filesystem>
#include <functional>

#include "core/base/error.h"
#include "core/evaluate/predictor.h"
#include "core/run/files/npy.h"
#include "core/train/resume.h"
#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

namespace fs = std::filesystem;

// Two checkpoints, at steps 2 and 4, and one file of the newer, which is damaged again and again.
class Damage {
 public:
  Damage() {
    const std::vector<std::string> set = {"train.checkpoint.every=2 steps", "train.ema={decay: 0.9}"};
    train_setup_in(run(), setup_of_text(small_images, set));
  }

  fs::path run() const { return root_.path() / "run"; }
  fs::path newest() const { return run() / "checkpoints/step-00000004"; }

  // Whether loading the newest checkpoint names `file`, which has these bytes, as what is wrong with it.
  bool is_found(const std::string& file, const std::string& bytes) const {
    test::write_text(newest() / file, bytes);
    try {
      run::load_checkpoint(newest());
    } catch (const Error& error) {
      return error.status() == ExitStatus::data &&
             error.diagnostics().front().message.find((newest() / file).string()) != std::string::npos;
    }
    return false;
  }

 private:
  TemporaryFolder root_;
};

// What is told of a file that is gone: the data error of a call.
std::string told(const std::function<void()>& call) { return test::refusal(call, ExitStatus::data); }

const std::vector<std::string> files = {"params.safetensors", "optimizer.safetensors", "ema.safetensors", "state.json"};

}  // namespace

TEST_CASE("a truncated or flipped file of a checkpoint is found, and the checkpoint before is used", "[run]") {
  const Damage damage;
  for (const std::string& file : files) {
    INFO(file);
    const std::string whole = read_text(damage.newest() / file);
    // Every place of the state, and enough of the tensors to meet the header's length, the header and the elements.
    const std::size_t stride = file == "state.json" ? 1 : std::max<std::size_t>(1, whole.size() / 150);
    int undetected = 0, tried = 0;
    for (std::size_t at = 0; at < whole.size(); at += at < 16 ? 1 : stride) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
      undetected += damage.is_found(file, flipped) ? 0 : 1;
      undetected += damage.is_found(file, whole.substr(0, at)) ? 0 : 1;
      tried += 2;
    }
    undetected += damage.is_found(file, whole + "\n") ? 0 : 1;
    CHECK(tried >= 200);
    CHECK(undetected == 0);
    const auto before = train::find_resume_point(damage.run());
    CHECK(before->checkpoint.state.step == 2);
    REQUIRE(before->warnings.size() == 1);
    CHECK(before->warnings.front().find((damage.newest() / file).string()) != std::string::npos);
    fs::remove(damage.newest() / file);
    CHECK(train::find_resume_point(damage.run())->checkpoint.state.step == 2);
    test::write_text(damage.newest() / file, whole);
    CHECK(train::find_resume_point(damage.run())->checkpoint.state.step == 4);
    CHECK(train::find_resume_point(damage.run())->warnings.empty());
  }
}

TEST_CASE("a run without a whole checkpoint is refused with the file that is damaged in each", "[run]") {
  const Damage damage;
  const fs::path older = damage.run() / "checkpoints/step-00000002";
  test::write_text(older / "ema.safetensors", "");
  test::write_text(damage.newest() / "state.json", "{}");
  try {
    train::find_resume_point(damage.run());
    FAIL("a damaged checkpoint was taken");
  } catch (const Error& error) {
    CHECK(error.status() == ExitStatus::data);
    const Diagnostic& diagnostic = error.diagnostics().front();
    CHECK(diagnostic.message.starts_with("no checkpoint of '" + damage.run().string() + "' is whole: "));
    CHECK(diagnostic.message.find((damage.newest() / "state.json").string()) != std::string::npos);
    CHECK(diagnostic.message.find((older / "ema.safetensors").string()) != std::string::npos);
    CHECK(diagnostic.help == "--overwrite begins the run anew");
  }
}

TEST_CASE("weights whose file is gone are refused, and no others are taken in their place", "[run]") {
  const Damage damage;
  const spec::Loaded loaded = spec::load(damage.run().string(), {});
  const TemporaryFolder folder;
  run::write_npy(folder / "new.npy", {DType::f32, {1, 6, 6, 1}, std::vector<std::byte>(36 * sizeof(float))});
  for (const auto& [file, weights] : {std::pair{"ema.safetensors", "ema"}, std::pair{"params.safetensors", "raw"}}) {
    const fs::path path = damage.newest() / file;
    const auto chosen = weights == std::string("ema") ? spec::Weights::ema : spec::Weights::raw;
    const std::string whole = read_text(path);
    for (const bool loops : {false, true}) {
      INFO(file << (loops ? " is a loop of links" : " is missing"));
      fs::remove(path);
      if (loops) fs::create_symlink(path.filename(), path);
      const std::string expected = "cannot open '" + path.string() +
                                   (loops ? "': Too many levels of symbolic links" : "': No such file or directory") +
                                   " | the checkpoint is not complete: use another one of the run";
      CHECK(told([&] { evaluate::evaluate_checkpoint(loaded, damage.run(), "last", "test", chosen); }) == expected);
      evaluate::PredictionRequest request;
      request.input.path = folder / "new.npy";
      request.weights = chosen;
      CHECK(told([&] { evaluate::Predictor(loaded, damage.run(), request); }) == expected);
      const std::string from = "model.init.from={path: " + damage.run().string() + ", weights: " + weights + "}";
      CHECK(told([&] { setup_of_text(small_images, {from}); }) == expected);
      CHECK(train::find_resume_point(damage.run())->checkpoint.state.step == 2);
    }
    fs::remove(path);
    test::write_text(path, whole);
  }
  CHECK(evaluate::evaluate_checkpoint(loaded, damage.run(), "last").front().checkpoint == "step-00000004");
}
