// Steps of sequences of similar length: each is padded to one of a few lengths, and what cuts the work leaves the same
// bits.
#include <algorithm>
#include <cmath>
#include <set>

#include "core/report/plan_report.h"
#include "core/setup/plan.h"
#include "core/train/resume.h"
#include "tests/catch.h"
#include "tests/data/files.h"
#include "tests/session_run.h"
#include "tests/train/in_processes.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

constexpr std::int64_t count_of_sequences = 70, positions = 44, width = 2;

// Sequences of `shortest` to 44 positions in an archive, whose class is whether their waves are slow or fast.
class SequenceArchive {
 public:
  explicit SequenceArchive(std::int64_t shortest = 1) {
    std::vector<float> x(count_of_sequences * positions * width, NAN);
    std::vector<std::int64_t> y, each, n;
    std::vector<float> numbers;
    for (std::int64_t i = 0; i < count_of_sequences; ++i) {
      y.push_back(i * 31 % 2);
      n.push_back(shortest + i * 29 % (positions + 1 - shortest));
      for (std::int64_t t = 0; t < positions; ++t) {
        each.push_back(t % 2);
        numbers.push_back(t < n.back() ? static_cast<float>(t % 5 + y.back()) : NAN);
        for (std::int64_t c = 0; c < width && t < n.back(); ++c) {
          const auto phase = static_cast<float>((y.back() == 0 ? 0.3 : 1.1) * static_cast<double>(t) +
                                                static_cast<double>(i * 13 % 7) + static_cast<double>(c));
          x[static_cast<std::size_t>((i * positions + t) * width + c)] = std::sin(phase);
        }
      }
    }
    const std::string count = std::to_string(count_of_sequences), length = std::to_string(positions);
    folder_.write("a.npz", archive({{"x.npy", npy("<f4", "(" + count + ", " + length + ", 2)", raw(x))},
                                    {"y.npy", npy("<i8", "(" + count + ",)", raw(y))},
                                    {"numbers.npy", npy("<f4", "(" + count + ", " + length + ")", raw(numbers))},
                                    {"each.npy", npy("<i8", "(" + count + ", " + length + ", 1)", raw(each))},
                                    {"n.npy", npy("<i8", "(" + count + ",)", raw(n))}}));
  }

  static constexpr const char* of_labels = "    - dense: 2\nloss: softmax_cross_entropy\nmetrics: [accuracy]\n";
  static constexpr const char* of_numbers = "    - dense: 1\nloss: huber\nmetrics: [mean_absolute_error, r2]\n";

  setup::Setup setup(std::vector<std::string> set = {}, const std::string& targets = "y") const {
    const std::string config = R"(name: sequences
mesh: {axes: {devices: 4}}
data:
  source: {npz: {file: )" + (folder_ / "a.npz") +
                               ", train: {inputs: x, targets: " + targets + R"(, lengths: n}}}
  batch_size: 8
  bucket_by_length: 4)" + (targets == "numbers" ? "\n  normalize_targets: auto" : "") +
                               R"(
  validation: 0.1
model:
  layers:
    - dense: 6
    - position_embedding: {length: 44}
    - residual: {layers: [layer_norm, {attention: {heads: 2, use_bias: false}}]}
    - gru: {features: 5}
    - dropout: 0.2
)" + (targets == "y" ? "    - take: last\n" : "") +
                               (targets == "numbers" ? of_numbers : of_labels) +
                               R"(optimizer: {adam: {}, learning_rate: 0.01}
train: {duration: 20 steps, log_every: 1 step}
)";
    return setup_of_text(config, std::move(set));
  }

 private:
  TemporaryFolder folder_;
};

const std::vector<std::vector<std::string>> bucket_variations = {
    {}, {"data.microbatches=2"}, {"data.batch_size=10", "data.remainder=mask"}, {"precision=mixed_bfloat16"}};

}  // namespace

TEST_CASE("a step trains on sequences at the shortest length that has them as at the whole one", "[train]") {
  const SequenceArchive archive;
  for (const char* const targets : {"y", "each", "numbers"}) {
    for (const std::vector<std::string>& set : {bucket_variations[0], bucket_variations[1], bucket_variations[2]}) {
      setup::Setup setup = archive.setup(set, targets);
      REQUIRE(setup.shorter.size() == 3);
      CHECK(setup.shorter[0].positions == 16);
      CHECK(setup.shorter[1].positions == 32);
      CHECK(setup.shorter[2].positions == 40);
      const Trained found = train_setup(setup);
      setup.shorter.clear();
      const Trained whole = train_setup(setup);
      CHECK(found.parameters != whole.parameters);  // the rows of shorter steps are cut elsewhere
      check_same_training(found, whole, {1e-4, 1e-4});
    }
  }
}

TEST_CASE("sequences of similar length leave the same bits with any workers, processes and stage of FSDP",
          "[train][placements]") {
  const SequenceArchive archive;
  for (const std::vector<std::string>& set : bucket_variations) {
    INFO((set.empty() ? "plain" : set.front()));
    std::vector<std::string> base = set;
    base.emplace_back("mesh.blocks=4");
    const std::string targets = set.empty() ? "numbers" : "y";
    setup::Setup setup = archive.setup(base, targets);
    setup.warnings.clear();
    const Trained expected = train_setup(setup);
    const auto with = [&](const std::string& more) {
      std::vector<std::string> all = base;
      all.push_back(more);
      return train_setup(archive.setup(all, targets));
    };
    CHECK(with("mesh.workers=3").same_bits(expected));
    CHECK(with("parallelism.fsdp={axis: devices, stage: 3}").parameters == expected.parameters);
    const TemporaryFolder root;
    const Ends ends =
        train_in_processes(2, root / "run", [&](int, Agreement&, train::SessionOptions&) { return setup; });
    for (const std::string& failure : ends.failures) CHECK(failure.empty());
    CHECK(ends.trained.same_bits(expected));
  }
}

TEST_CASE("a table whose gradient is known by the rows of its tokens is updated by the tokens of a shorter step",
          "[train]") {
  TemporaryFolder folder;
  std::vector<std::int32_t> tokens;
  std::vector<std::int64_t> labels, lengths;
  for (std::int32_t i = 0; i < 64; ++i) {
    labels.push_back(i % 2);
    lengths.push_back(1 + i * 13 % 40);
    for (std::int32_t t = 0; t < 40; ++t) tokens.push_back(t < lengths.back() ? (i * 37 + t * t) % 20000 : 0);
  }
  folder.write("a.npz", archive({{"x.npy", npy("<i4", "(64, 40)", raw(tokens))},
                                 {"y.npy", npy("<i8", "(64,)", raw(labels))},
                                 {"n.npy", npy("<i8", "(64,)", raw(lengths))}}));
  setup::Setup setup = setup_of_text("mesh: {axes: {devices: 2}}\ndata: {source: {npz: {file: " + (folder / "a.npz") +
                                     ", train: {inputs: x, targets: y, lengths: n}}}, batch_size: 16, "
                                     "bucket_by_length: 2}\nmodel: {layers: [{embedding: "
                                     "{num_embeddings: 20000, features: 4}}, global_avg_pool, {dense: 2}]}\nloss: "
                                     "softmax_cross_entropy\noptimizer: {sgd: "
                                     "{}, learning_rate: 0.5}\ntrain: {duration: 12 steps}\n");
  REQUIRE_FALSE(setup.shorter.empty());
  REQUIRE(setup.optimizer().parameter_options.front().tokens > 0);
  const Trained found = train_setup(setup);
  setup.shorter.clear();
  check_same_training(found, train_setup(setup));
}

TEST_CASE("steps of sequences of similar length are nearly those of any mesh and microbatches", "[train]") {
  const SequenceArchive archive;
  const Trained expected = train_setup(archive.setup());
  for (const char* const set : {"mesh.axes={devices: 1}", "mesh.axes={devices: 2}", "data.microbatches=2"}) {
    INFO(set);
    const Trained found = train_setup(archive.setup({set}));
    REQUIRE(found.parameters.size() == expected.parameters.size());
    for (const auto& [name, tensor] : expected.parameters) {
      INFO(name);
      const std::vector<double> numbers = to_doubles(found.parameters.at(name)), same = to_doubles(tensor);
      for (std::size_t i = 0; i < same.size(); ++i) CHECK(numbers[i] == Approx(same[i]).epsilon(1e-3).margin(1e-4));
    }
  }
}

TEST_CASE("a run of sequences of similar length goes on as if it had not stopped", "[train]") {
  const SequenceArchive archive;
  const setup::Setup setup = archive.setup();
  const Trained whole = train_setup(setup);
  const TemporaryFolder root;
  train_setup_in(root / "run", setup, until(11));
  std::optional<train::ResumePoint> point = train::find_resume_point(root / "run");
  REQUIRE(point);
  const Trained resumed = train_setup_in(root / "run", setup, going_on_from(*point));
  CHECK(resumed.parameters == whole.parameters);
  CHECK(resumed.metrics == whole.metrics);
}

TEST_CASE("members of an ensemble that see the same sequences train as they would alone", "[train]") {
  const SequenceArchive archive;
  const Trained members = train_setup(archive.setup(
      {"mesh.axes=[{members: 2}, {devices: 4}]", "data.seed=0", "ensemble={axis: members, vary: {seed: [0, 1]}}"}));
  for (const int seed : {0, 1}) {
    const Trained alone = train_setup(archive.setup({"data.seed=0", "seed=" + std::to_string(seed)}));
    const std::vector<run::Logged> all = members.of<run::Logged>(), own = alone.of<run::Logged>();
    std::vector<run::Measures> of_member, of_run;
    for (const run::Logged& line : all) {
      if (line.member == seed) of_member.push_back(line.measures);
    }
    for (const run::Logged& line : own) of_run.push_back(line.measures);
    CHECK(of_member == of_run);
  }
}

TEST_CASE("every backend trains sequences of similar length alike", "[train]") {
  const SequenceArchive archive;
  const std::string backend = any_backend();
  check_same_training(train_setup(archive.setup({backend})), train_setup(archive.setup({"mesh.backend=reference"})),
                      {1e-4, 1e-4});
}

TEST_CASE("a layer that needs more positions has no program for fewer", "[train]") {
  const SequenceArchive archive;
  const setup::Setup setup =
      archive.setup({"model.layers=[{conv: {features: 3, kernel_size: [20], padding: VALID}}, "
                     "global_avg_pool, {dense: 2}]"});
  REQUIRE(setup.shorter.size() == 2);
  CHECK(setup.shorter[0].positions == 32);
}

TEST_CASE("a warning says where a layer needs more positions than shorter sequences have", "[train]") {
  const setup::Setup setup = SequenceArchive().setup({"model.layers=[{take: 43}, {dense: 2}]"});
  CHECK(setup.shorter.empty());
  CHECK(std::ranges::any_of(setup.warnings, [](const std::string& warning) {
    return test::contains(warning,
                          "makes no step shorter: a layer needs more positions than the shorter sequences have");
  }));
}

TEST_CASE("members that draw their order from their own seeds have no batches by length", "[train]") {
  const SequenceArchive archive;
  const std::string refused = error_of(
      [&] {
        archive.setup(
            {"mesh.axes=[{members: 2}, {devices: 4}]", "ensemble={axis: members, vary: {data.seed: [0, 1]}}"});
      },
      ExitStatus::usage);
  CHECK(refused ==
        "bucket_by_length pads the batches of a step to one length, and members that draw their order from seeds of "
        "their own have other sequences in it | leave data.seed out of ensemble.vary, so that all members have one "
        "order, "
        "or remove bucket_by_length");
}

TEST_CASE("validate says to what sequences are padded, and how much of the steps is theirs", "[train]") {
  const SequenceArchive archive;
  const setup::Setup setup = archive.setup();
  const setup::PlannedSource run = setup::plan_run(setup);
  const std::string text = report::validate_text(setup, report::make_validate_report(setup, run, 1), 1000);
  INFO(text);
  CHECK(test::contains(text,
                       "each step pads its sequences to 16, 32, 40 or 44 positions, as its longest one needs "
                       "(data.bucket_by_length): "));
}

TEST_CASE("a warning says where sorting by length makes no step shorter", "[train]") {
  const setup::Setup setup = SequenceArchive(41).setup();
  CHECK(setup.shorter.empty());
  const auto told = std::ranges::find_if(setup.warnings, [](const std::string& warning) {
    return test::contains(warning,
                          "makes no step shorter: even among the quarter of the sequences that are shortest, "
                          "one has nearly all 44 positions");
  });
  REQUIRE(told != setup.warnings.end());
  CHECK(told->starts_with("data.bucket_by_length ("));
}
