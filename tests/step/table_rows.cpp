// Tables of which a step changes only the rows that its batch names: when that is so, what is exchanged and stored, and
// that no bit depends on the mesh, on shards or on processes.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/runtime/cpu/module.h"
#include "core/setup/plan.h"
#include "core/setup/programs.h"
#include "core/setup/setup.h"
#include "core/step/optimizer.h"
#include "core/step/step_program.h"
#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/slice.h"
#include "tests/step/gathers.h"
#include "tests/train/in_processes.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// 12 examples of 6 tokens below 24 a step, in a table of 3001 rows of 10 or `features` numbers.
std::string tokens(const std::string& features = "10") {
  return R"(
mesh: {axes: [{hosts: 2}, {shards: 2}], blocks: 2}
data:
  source: {npz: {file: tests/parity/data/tokens.npz, train: [x, y]}}
  axes: [hosts, shards]
  batch_size: 12
model:
  layers: [{embedding: {num_embeddings: 3001, features: )" +
         features + R"(}}, global_avg_pool, {dense: 3}]
loss: softmax_cross_entropy
optimizer: {sgd: {}, learning_rate: 0.5}
train: {duration: 3 steps, log_every: 1 step}
)";
}

std::string along(const std::string& axis, int stage) {
  return "parallelism.fsdp={axis: " + axis + ", stage: " + std::to_string(stage) + "}";
}

bool is_by_rows(const std::vector<std::string>& set) {
  const setup::Setup setup = setup_of_text(tokens(), set);
  const std::vector<model::Bucket> buckets = step::buckets_of(setup.model, setup.optimizer(), setup.step.sharding);
  return std::any_of(buckets.begin(), buckets.end(), [](const model::Bucket& bucket) { return bucket.tokens > 0; });
}

std::vector<double> table_of(const Trained& trained) {
  return to_doubles(trained.parameters.at("embedding_0.embedding"));
}

const std::vector<std::string> rules{"optimizer.sgd={}", "optimizer={adagrad: {}, learning_rate: 0.1}"};

}  // namespace

TEST_CASE("a table's gradient is known by rows where the rule leaves other rows alone and the rows are few", "[step]") {
  for (const std::string& rule : rules) CHECK(is_by_rows({rule}));
  CHECK(is_by_rows({"optimizer.clip_by_global_norm=1", "train.ema={decay: 0.9}", along("hosts", 3)}));
  for (const char* const other :
       {"optimizer.sgd={momentum: 0.9}", "optimizer.sgd={weight_decay: 0.1}",
        "optimizer={adam: {}, learning_rate: 0.1}", "data.microbatches=3",
        "optimizer.groups=[{parameters: embedding_0.*, freeze: true}]",
        "model.layers=[{embedding: {num_embeddings: 280, features: 4}}, global_avg_pool, {dense: 3}]",
        "model.layers=[{embedding: {num_embeddings: 3001, features: 4}}, {attend: {embedding: embedding_0}}, "
        "global_avg_pool, {dense: 3}]"}) {
    INFO(other);
    CHECK_FALSE(is_by_rows({other}));
  }
}

TEST_CASE("rows that the batches name are updated as by the whole gradient, and all others keep their bits", "[step]") {
  const std::string backend = any_backend();
  for (const std::string& rule : rules) {
    for (const char* const clip : {"optimizer.clip=10", "optimizer.clip_by_global_norm=0.02"}) {
      INFO(rule << ", " << clip);
      const std::vector<std::string> set{backend, rule, clip};
      const Trained by_rows = train_setup(setup_of_text(tokens(), set));
      // With microbatches the gradient is whole.
      std::vector<std::string> whole_set = set;
      whole_set.emplace_back("data.microbatches=3");
      const Trained whole = train_setup(setup_of_text(tokens(), whole_set));
      std::vector<std::string> start_set = set;
      start_set.emplace_back("optimizer.learning_rate=0");
      const Trained start = train_setup(setup_of_text(tokens(), start_set));
      const std::vector<double> found = table_of(by_rows), expected = table_of(whole), before = table_of(start);
      REQUIRE(found.size() == 30010);
      std::size_t changed = 0;
      bool is_near = true, is_kept = true;
      for (std::size_t i = 0; i < found.size(); ++i) {
        is_near = is_near && std::abs(found[i] - expected[i]) < 1e-5;
        changed += found[i] != before[i] ? 1U : 0U;
        is_kept = is_kept && (i < 240 || found[i] == before[i]);
      }
      CHECK(is_near);
      CHECK(is_kept);
      CHECK(changed > 200);
      const auto norms = [](const Trained& trained) {
        std::vector<double> all;
        for (const run::Logged& logged : trained.of<run::Logged>()) all.push_back(logged.grad_norm);
        return all;
      };
      CHECK(norms(by_rows).size() == 3);
      for (std::size_t i = 0; i < 3; ++i) CHECK(norms(by_rows)[i] == Approx(norms(whole)[i]).epsilon(1e-5));
    }
  }
}

TEST_CASE("a table by rows has the same bits in shards of any stage, along any axes and on every backend", "[step]") {
  const std::string backend = any_backend();
  test::Slice slice(test::slices_with_sanitizer(4));
  for (const std::string& rule : rules) {
    // A row of 64 numbers is a unit of a bucket; with rows of 10 a shard begins at a multiple of 32 rows.
    for (const char* const features : {"10", "64"}) {
      const std::vector<std::string> set{backend, rule, "optimizer.clip_by_global_norm=0.02", "train.ema={decay: 0.9}",
                                         "train.verify_replicas=1 step"};
      const Trained plain = train_setup(setup_of_text(tokens(features), set));
      CHECK(plain.ended.exit_status == 0);
      for (const char* const axis : {"hosts", "shards", "[hosts, shards]"}) {
        for (const int stage : {1, 2, 3}) {
          if (!slice.takes()) continue;
          INFO(rule << ", " << features << " features, stage " << stage << " along " << axis);
          std::vector<std::string> sharded = set;
          sharded.push_back(along(axis, stage));
          CHECK(train_setup(setup_of_text(tokens(features), sharded)).same_bits(plain));
        }
      }
    }
  }
}

TEST_CASE("a table by rows has the same bits in several processes, which exchange rows", "[step]") {
  const auto config = [](int stage) {
    std::vector<std::string> set{"mesh.blocks=4", "optimizer.adagrad={}"};
    if (stage > 0) set.push_back(along("shards", stage));
    return setup_of_text(tokens("64"), set);
  };
  const Trained plain = train_setup(config(0));
  for (const int stage : {0, 1, 3}) {
    for (const int processes : {2, 4}) {
      INFO(processes << " processes, stage " << stage);
      const test::TemporaryFolder folder;
      const Ends ends = train_in_processes(processes, folder.path() / "run",
                                           [&](int, Agreement&, train::SessionOptions&) { return config(stage); });
      for (const std::string& failure : ends.failures) CHECK(failure.empty());
      CHECK(ends.trained.parameters == plain.parameters);
    }
  }
}

TEST_CASE("a step of a table by rows sends and stores its rows, and no array of the table's size", "[step]") {
  const std::string large =
      "model.layers=[{embedding: {num_embeddings: 100000, features: 64}}, global_avg_pool, {dense: 3}]";
  const std::size_t table = 100000 * 64 * sizeof(float);
  const auto cost = [&](const std::string& rule) {
    return setup::cost_of(*setup_of_text(tokens(), {large, rule}).training);
  };
  const auto sent = [&](const std::string& rule) {
    double bytes = 0;
    for (const auto& [axis, of_axis] : cost(rule).wire_bytes) bytes += static_cast<double>(of_axis);
    return bytes;
  };
  CHECK(sent("optimizer.sgd={momentum: 0.9}") > static_cast<double>(table));
  for (const std::string& rule : rules) {
    INFO(rule);
    CHECK(sent(rule) < static_cast<double>(table) / 100);
    const setup::Setup setup = setup_of_text(tokens(), {large, rule});
    const MemoryNeeds needs = CpuBackend({.workers = 1}).plan(setup::run_source(setup))->needs();
    CHECK(needs.activations + needs.gradients < table / 20);
  }
}

TEST_CASE("workers share the rows of a table", "[step]") {
  const std::string wide =
      "model.layers=[{embedding: {num_embeddings: 20000, features: 512}}, global_avg_pool, {dense: 3}]";
  const setup::Setup setup = setup_of_text(tokens(), {wide, "data.batch_size=52"});
  REQUIRE(step::buckets_of(setup.model, setup.optimizer(), {}).back().tokens == 52 * 6);
  const std::size_t rows = 52 * 6 * 512 * sizeof(float);
  const auto temporaries = [&](int workers) {
    return CpuBackend({.workers = workers}).plan(setup::run_source(setup))->needs().activations;
  };
  CHECK(temporaries(1) > 2 * rows);
  CHECK(temporaries(16) - temporaries(1) < 4 * rows);  // what pieces need; not two arrays of rows for each
}
