// predict --features: what a layer gives.
#include <string>
#include <vector>

#include "tests/app/call.h"
#include "tests/app/predicting.h"
#include "tests/catch.h"
#include "tests/data/files.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::tests;

namespace {

struct FeaturesRun : TrainedRun {
  FeaturesRun() {
    folder.write("shop.csv", shop_table(48, true));
    folder.write("new.csv", shop_table(5, false));
    train("  source: {csv: {train: shop.csv, target: bought, categorical: [city]}}\n  normalize: auto\n",
          "{name: body, dense: 3}, {residual: {layers: [{dense: 3}, tanh]}}, dense: 2");
  }
  // Without its header.
  std::string lines(std::vector<std::string> options) const {
    const std::string text = csv("new.csv", std::move(options));
    return text.substr(text.find('\n') + 1);
  }
};

}  // namespace

TEST_CASE("predict --features writes what a layer gives for each example", "[app]") {
  const FeaturesRun run;
  CHECK(run.lines({"--features", "dense_1"}) == run.lines({"--as", "logits"}));
  CHECK(run.csv("new.csv", {"--features", "body"}).starts_with("feature_0,feature_1,feature_2\n"));
  CHECK(run.csv("new.csv", {"--features", "body", "--id", "id"}).starts_with("id,feature_0,feature_1,feature_2\nx0,"));
  const std::string sum = run.lines({"--features", "residual_0"}),
                    inside = run.lines({"--features", "residual_0.tanh_0"});
  CHECK(sum != inside);
  for (const std::string name : {"features.npy", "features.npz"}) {
    const Finished done = run.predict("new.csv", name, {"--features", "residual_0"});
    INFO(done.err);
    REQUIRE(done.status == 0);
    CHECK(test::contains(done.out, name + ": features of residual_0 of 5 examples (last checkpoint "));
  }
  CHECK(test::contains(test::read_text(run.folder / "features.npy"), "'shape': (5, 3)"));
  CHECK(test::contains(test::read_text(run.folder / "features.npz"), "features.npy"));
}

TEST_CASE("features behind the end of a sequence are zeros, whatever layers give there", "[app]") {
  TrainedRun run;
  std::string tokens, labels;
  for (int i = 0; i < 32; ++i) {
    tokens += std::string(1, static_cast<char>(1 + i % 5)) + std::string(i % 2 == 0 ? "\2\3" : std::string(2, '\0'));
    labels += static_cast<char>(i % 2);
  }
  run.folder.write("a.npz", testing::archive({{"x.npy", testing::npy("|u1", "(32, 3)", tokens)},
                                              {"y.npy", testing::npy("|u1", "(32,)", labels)}}));
  run.folder.write("x.npy", testing::npy("|u1", "(2, 3)", tokens.substr(0, 6)));
  run.train("  source: {npz: {file: a.npz, train: [x, y], padding_token: 0}}\n",
            "{embedding: {num_embeddings: 6, features: 2}}, {dense: {features: 2, bias_init: ones}}, global_avg_pool, "
            "{dense: 2}");
  const std::string text = run.csv("x.npy", {"--features", "dense_0"});
  CHECK(text.starts_with("feature_0_0,feature_0_1,feature_1_0,feature_1_1,feature_2_0,feature_2_1\n"));
  const std::string last = text.substr(text.find('\n', text.find('\n') + 1) + 1);
  CHECK(last.ends_with(",0,0,0,0\n"));
  CHECK(run.csv("x.npy", {"--features", "global_avg_pool_0"}).starts_with("feature_0,feature_1\n"));
}

TEST_CASE("predict --features lists the layers where there is none of the name, and refuses options of predictions",
          "[app]") {
  const FeaturesRun run;
  const std::string all = "its layers are body, residual_0.dense_0, residual_0.tanh_0, residual_0, dense_1";
  CHECK(run.refusal(2, "new.csv", {"--features", "zzz"}) == "--features: the model has no layer 'zzz' | " + all);
  CHECK(run.refusal(2, "new.csv", {"--features", "bodi"}) ==
        "--features: the model has no layer 'bodi' | did you mean 'body'? " + all);
  CHECK(run.refusal(2, "new.csv", {"--features", "body", "--as", "logits"}) ==
        "--as is about predictions, and --features writes what a layer gives | omit it");
  CHECK(run.refusal(2, "new.csv", {"--features", "body", "--threshold", "0.4"}) ==
        "--threshold is about predictions, and --features writes what a layer gives | omit it");
  const Finished prompt = call({"predict", run.dir, "--prompt", "a", "--features", "body"});
  CHECK(prompt.status == 2);
  CHECK(test::contains(prompt.err, "--features belongs to --input, and --prompt was given"));
}
