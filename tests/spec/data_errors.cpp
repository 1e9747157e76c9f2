// What a config may not say of its data, beyond the texts in errors/.
#include <string>

#include "tests/catch.h"
#include "tests/spec/errors_of.h"
#include "tests/words.h"

using namespace pmaptrain;

TEST_CASE("a limit of a split that the data does not have is refused", "[spec]") {
  CHECK(errors_of(base_with("data: {source: fashion_mnist, batch_size: 128, limit: {validation: 7, test: 5}, "
                            "validation: 0.1}"))
            .empty());
}

TEST_CASE("validation shares and limits are bound, and written out in the resolved config", "[spec]") {
  spec::Overrides overrides;
  overrides.set = {"data.validation=0.25", "data.validation.seed=3", "data.limit.train=1 batches",
                   "data.limit.test=1e3"};
  const spec::Loaded loaded = spec::load_text(base, "c.yaml", "/base", overrides);
  REQUIRE(loaded.spec.data.validation);
  CHECK(loaded.spec.data.validation->share == 0.25);
  CHECK(loaded.spec.data.validation->seed == 3);
  CHECK(loaded.spec.data.validation->shuffle);
  REQUIRE(loaded.spec.data.limit.train);
  CHECK(loaded.spec.data.limit.train->batches);
  CHECK(loaded.spec.data.limit.train->count == 1);
  REQUIRE(loaded.spec.data.limit.test);
  CHECK_FALSE(loaded.spec.data.limit.test->batches);
  CHECK(loaded.spec.data.limit.test->count == 1000);
  CHECK_FALSE(loaded.spec.data.limit.validation);
  CHECK(loaded.resolved.find(
            "validation: {share: 0.25, seed: 3, shuffle: true, stratify: false}\n  limit: {train: 1 batch, test: 1000 "
            "examples}\n") != std::string::npos);
  CHECK(spec::load_text(loaded.resolved, "c.yaml", "/base", {}).resolved == loaded.resolved);
}

TEST_CASE("several targets are for a loss of numbers, and each is named once", "[spec]") {
  const auto errors = [](const std::string& targets, const std::string& loss) {
    return errors_of("data: {source: {csv: {train: a.csv, target: " + targets + R"(}}, batch_size: 8}
model: {layers: [{dense: 2}]}
loss: )" + loss + R"(
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)");
  };
  CHECK(errors("[a, b]", "mean_squared_error").empty());
}

TEST_CASE("stratify is for classes that are chosen at random", "[spec]") {
  const auto errors = [](const std::string& validation, const std::string& loss) {
    return errors_of("data: {source: {csv: {train: a.csv, target: y}}, batch_size: 8, validation: " + validation + R"(}
model: {layers: [{dense: 2}]}
loss: )" + loss + R"(
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)");
  };
  CHECK(errors("{share: 0.1, stratify: true}", "softmax_cross_entropy").empty());
  CHECK(test::contains(errors("{share: 0.1, stratify: true}", "huber"),
                       ": error: stratify is for classes; the loss, huber, takes numbers\n"));
  CHECK(test::contains(errors("{share: 0.1, stratify: true, shuffle: false}", "softmax_cross_entropy"),
                       ": error: stratify chooses examples of each class, but shuffle: false takes the last ones\n"));
  CHECK(errors("{share: 0.1, stratify: false, shuffle: false}", "huber").empty());
}
