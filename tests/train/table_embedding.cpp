// Runs whose first layer is table_embedding: how a run is divided changes none of their bits, and what they leave is
// read again.
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/evaluate/evaluator.h"
#include "core/evaluate/predictor.h"
#include "core/run/checkpoint.h"
#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/train/in_processes.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// Two classes by a number and one of 12 shops, which the tables learn.
std::string rows_of_shops(int rows, int first = 0) {
  std::string text = "x,shop,kind of day,class\n";
  for (int i = first; i < first + rows; ++i) {
    const int x = i * 7 % 11 - 5, shop = i * 5 % 12, day = i % 3;
    text += std::to_string(x) + ".25,s" + std::to_string(shop) + ",d" + std::to_string(day) + "," +
            ((shop * 7 % 5 - 2) * x + 2 * day > 1 ? "yes" : "no") + "\n";
  }
  return text;
}

struct ShopRun {
  TemporaryFolder folder;
  std::string config;
  ShopRun() {
    config = "mesh: {axes: {devices: 4}, blocks: 4}\ndata:\n  source: {csv: {train: " +
             folder.write("train.csv", rows_of_shops(92)) +
             ", test: " + folder.write("test.csv", rows_of_shops(30, 92) + "1.5,unseen,d1,no\n") + R"(,
                 target: class, categorical: [shop, kind of day], unknown: ignore}}
  batch_size: 20
  remainder: mask
  normalize: auto
model: {layers: [{table_embedding: {dropout: 0.25}}, {dense: 6}, tanh, {dense: 2}]}
loss: softmax_cross_entropy
metrics: [accuracy]
optimizer: {adam: {}, learning_rate: 0.02}
train: {duration: 12 steps, eval_every: 6 steps, log_every: 1 step}
)";
  }
  setup::Setup setup(std::vector<std::string> set = {}) const { return setup_of_text(config, std::move(set)); }
};

}  // namespace

TEST_CASE("tables of categories are the same bits on any number of workers, processes and stages of sharding",
          "[train][placements]") {
  const ShopRun run;
  for (const std::vector<std::string>& set : std::vector<std::vector<std::string>>{
           {"data.microbatches=1"}, {"data.microbatches=2", "precision=mixed_bfloat16"}, {"optimizer.sgd={}"}}) {
    INFO(set.front());
    setup::Setup setup = run.setup(set);
    setup.loaded.spec.mesh.workers = 1;
    const Trained one = train_setup(setup);
    REQUIRE(one.parameters.contains("table_embedding_0.kind_of_day.embedding"));
    setup.loaded.spec.mesh.workers = 3;
    CHECK(train_setup(setup).same_bits(one));
    for (const int processes : {2, 4}) {
      const TemporaryFolder root;
      const Ends ends = testing::train_in_processes(processes, root / "run",
                                                    [&](int, Agreement&, train::SessionOptions&) { return setup; });
      for (const std::string& failure : ends.failures) CHECK(failure.empty());
      CHECK(ends.trained.same_bits(one));
    }
    for (const std::string stage : {"1", "2", "3"}) {
      INFO("stage " << stage);
      std::vector<std::string> sharded = set;
      sharded.push_back("parallelism.fsdp={axis: devices, stage: " + stage + "}");
      CHECK(train_setup(run.setup(sharded)).parameters == one.parameters);
    }
  }
}

TEST_CASE("a member of an ensemble has the tables that it has alone", "[train]") {
  const ShopRun run;
  const Trained both = train_setup(
      run.setup({"mesh.axes=[{members: 2}, {devices: 4}]", "ensemble={axis: members, vary: {seed: [0, 7]}}"}));
  const Trained alone = train_setup(run.setup({"data.seed=0", "seed=7"}));
  const std::string name = "table_embedding_0.shop.embedding";
  const run::Tensor &of_both = both.parameters.at(name), &of_one = alone.parameters.at(name);
  CHECK(of_one.shape == Shape{13, 6});
  REQUIRE(of_both.bytes.size() == 2 * of_one.bytes.size());
  CHECK(std::memcmp(of_both.bytes.data() + of_one.bytes.size(), of_one.bytes.data(), of_one.bytes.size()) == 0);
}

TEST_CASE("a run with tables is evaluated and resumed by its encoding, and row 0 stays zeros", "[train]") {
  const ShopRun run;
  const setup::Setup setup = run.setup();
  const std::filesystem::path dir = run.folder / "run";
  const Trained trained = train_setup_in(dir, setup);
  const data::Encoding encoding = run::load_run_state(dir / "checkpoints/last").encoding;
  CHECK(encoding == setup.source.encoding);
  CHECK(encoding.columns[1].numbered);
  CHECK(setup.source.test->input().shape == Shape{3});
  const std::vector<double> table = to_doubles(trained.parameters.at("table_embedding_0.shop.embedding"));
  for (std::size_t i = 0; i < 6; ++i) CHECK(table[i] == 0);
  std::filesystem::remove(run.folder / "train.csv");
  const auto evaluations = evaluate::evaluate_checkpoint(setup.loaded, dir, "last", std::nullopt);
  REQUIRE(evaluations.size() == 1);
  for (const auto& [split, measures] : trained.result().final_measures) {
    if (split == "test") CHECK(evaluations.front().measures == measures);
  }
}
