// Evaluations and predictions that several processes carry: the numbers of one process, whole and in order.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/evaluate/evaluator.h"
#include "core/evaluate/predictor.h"
#include "core/run/files/npy.h"
#include "tests/catch.h"
#include "tests/runtime/placements.h"
#include "tests/session_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

namespace fs = std::filesystem;

struct Evaluated {
  std::vector<evaluate::Evaluation> members;
  std::optional<evaluate::Evaluation> together;
};

Evaluated evaluated(const setup::Setup& setup, const fs::path& run, Agreement* agreement = nullptr) {
  const evaluate::CheckpointEvaluation evaluation(setup.loaded, run, "last", "test", spec::Weights::ema, std::nullopt,
                                                  true, evaluate::SharedBatches(agreement));
  Evaluated found{evaluation.evaluate_members(), std::nullopt};
  if (setup.spec().ensemble) found.together = evaluation.evaluate_average();
  return found;
}

void check_same(const evaluate::Evaluation& found, const evaluate::Evaluation& expected) {
  CHECK(found.measures == expected.measures);
  CHECK(found.examples == expected.examples);
  CHECK(found.member == expected.member);
  CHECK(found.confusion == expected.confusion);
}

struct Rows {
  std::vector<std::byte> bytes;
  std::vector<std::int64_t> firsts;
  int signal = 0;
  friend bool operator==(const Rows&, const Rows&) = default;
};

Rows predict(const setup::Setup& setup, const fs::path& run, const std::string& input, Agreement* agreement = nullptr,
             const std::atomic<int>* stop = nullptr) {
  evaluate::PredictionRequest request;
  request.input.path = input;
  if (!setup.spec().ensemble) request.kind = model::PredictionKind::logits;
  evaluate::Predictor predictor(setup.loaded, run, request, evaluate::SharedBatches(agreement));
  Rows rows;
  rows.signal = predictor.run(
      [&](std::int64_t first, std::span<const std::byte> bytes) {
        rows.firsts.push_back(first);
        rows.bytes.insert(rows.bytes.end(), bytes.begin(), bytes.end());
      },
      stop);
  return rows;
}

// Images for the model of small_images.
std::string write_images(const TemporaryFolder& folder, const std::string& name, int count, int seed) {
  run::Tensor tensor{DType::u8, {count, 6, 6, 1}, {}};
  for (int i = 0; i < count * 36; ++i) tensor.bytes.push_back(static_cast<std::byte>((i * 7 + seed) % 251));
  run::write_npz(folder / name, {{"images", tensor}});
  return folder / name;
}

// Calls f(process, agreement) in each process. Returns what went wrong in each.
std::vector<std::string> in_processes(int processes, const std::function<void(int process, Agreement& agreement)>& f) {
  test::MemoryTransport transport(processes);
  std::vector<std::string> failures(static_cast<std::size_t>(processes));
  test::on_each_process(transport, processes, [&](int process) {
    Agreement agreement({{process, processes}, &transport.end(process)});
    try {
      f(process, agreement);
      agreement.end(0);
    } catch (const Error& error) {
      agreement.fail(error.status());
      failures[static_cast<std::size_t>(process)] = error.diagnostics().front().message;
    }
  });
  return failures;
}

// Where a process looks for the run, which only process 0 sees.
fs::path run_of(int process, const TemporaryFolder& root) { return root / (process == 0 ? "run" : "gone"); }

const std::vector<std::vector<std::string>> variations = {
    {"mesh.blocks=4"},
    {"mesh.blocks=4", "metrics=[accuracy, confusion_matrix]"},
    {"mesh.blocks=4", "train.ema={decay: 0.5}"},
    {"mesh.axes=[{a: 2}, {b: 4}]", "mesh.blocks=4", "ensemble={axis: a, vary: {seed: [0, 1]}}"},
};

}  // namespace

TEST_CASE("several processes measure what one process measures, and each gets it", "[evaluate][placements]") {
  for (const std::vector<std::string>& set : variations) {
    INFO(set.back());
    const TemporaryFolder root;
    const setup::Setup setup = setup_of_text(small_images, set);
    train_setup_in(root / "run", setup);
    const Evaluated expected = evaluated(setup, root / "run");
    for (const int processes : {2, 3, 4}) {
      INFO(processes << " processes");
      std::vector<Evaluated> found(static_cast<std::size_t>(processes));
      const auto failures = in_processes(processes, [&](int process, Agreement& agreement) {
        found[static_cast<std::size_t>(process)] = evaluated(setup, run_of(process, root), &agreement);
      });
      for (const std::string& failure : failures) REQUIRE(failure == "");
      for (const Evaluated& each : found) {
        REQUIRE(each.members.size() == expected.members.size());
        for (std::size_t m = 0; m < each.members.size(); ++m) check_same(each.members[m], expected.members[m]);
        REQUIRE(each.together.has_value() == expected.together.has_value());
        if (each.together) check_same(*each.together, *expected.together);
      }
    }
  }
}

TEST_CASE("several processes predict the rows of one process, in their order", "[evaluate][placements]") {
  for (const std::vector<std::string>& set : variations) {
    INFO(set.back());
    const TemporaryFolder root;
    const setup::Setup setup = setup_of_text(small_images, set);
    train_setup_in(root / "run", setup);
    const std::string input = write_images(root, "images.npz", 37, 0);
    const Rows expected = predict(setup, root / "run", input);
    REQUIRE(expected.firsts.size() > 2);
    for (const int processes : {2, 3, 4}) {
      INFO(processes << " processes");
      std::vector<Rows> found(static_cast<std::size_t>(processes));
      const auto failures = in_processes(processes, [&](int process, Agreement& agreement) {
        found[static_cast<std::size_t>(process)] = predict(setup, run_of(process, root), input, &agreement);
      });
      for (const std::string& failure : failures) REQUIRE(failure == "");
      for (const Rows& rows : found) CHECK(rows == expected);
    }
  }
}

TEST_CASE("what only one process cannot do, or does otherwise, ends all that evaluate or predict",
          "[evaluate][placements]") {
  const TemporaryFolder root;
  const setup::Setup setup = setup_of_text(small_images, {"mesh.blocks=4"});
  train_setup_in(root / "run", setup);
  const std::string input = write_images(root, "images.npz", 37, 0);
  const std::string other = write_images(root, "other.npz", 37, 1);

  const auto unreadable = in_processes(3, [&](int process, Agreement& agreement) {
    predict(setup, root / "run", process == 1 ? root / "none.npz" : input, &agreement);
  });
  CHECK(unreadable[1].starts_with("cannot open '"));
  CHECK(unreadable[0] == "process 1 has failed");
  CHECK(unreadable[2] == "process 1 has failed");

  const auto different = in_processes(3, [&](int process, Agreement& agreement) {
    predict(setup, root / "run", process == 2 ? other : input, &agreement);
  });
  for (const std::string& failure : different) {
    CHECK(failure.starts_with("the data '"));
    CHECK(failure.ends_with("(--input) of process 2 is not that of process 0"));
  }

  const auto without_run = in_processes(3, [&](int process, Agreement& agreement) {
    evaluated(setup, process == 0 ? root / "gone" : root / "run", &agreement);
  });
  CHECK(without_run[0] == "'" + root / "gone" + "' is not a run folder: there is no such folder");
  CHECK(without_run[1] == "process 0 has failed");
  CHECK(without_run[2] == "process 0 has failed");

  const setup::Setup wider = setup_of_text(small_images, {"mesh.blocks=4", "data.batch_size=8"});
  const auto configs = in_processes(
      3, [&](int process, Agreement& agreement) { evaluated(process == 1 ? wider : setup, root / "run", &agreement); });
  for (const std::string& failure : configs) CHECK(failure == "the config of process 1 is not that of process 0");
}

TEST_CASE("a signal to one process stops a prediction in all before the same batch", "[evaluate][placements]") {
  const TemporaryFolder root;
  const setup::Setup setup = setup_of_text(small_images, {"mesh.blocks=4"});
  train_setup_in(root / "run", setup);
  const std::string input = write_images(root, "images.npz", 37, 0);
  std::vector<Rows> found(3);
  const std::atomic<int> stop = 15;
  const auto failures = in_processes(3, [&](int process, Agreement& agreement) {
    found[static_cast<std::size_t>(process)] =
        predict(setup, root / "run", input, &agreement, process == 1 ? &stop : nullptr);
  });
  for (const std::string& failure : failures) CHECK(failure == "");
  for (const Rows& rows : found) {
    CHECK(rows.signal == 15);
    CHECK(rows.firsts.empty());
  }
}
