// Merge keys, as https://yaml.org/type/merge.html has them.
#include <string>

#include "core/spec/changes/loaded.h"
#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/spec/errors_of.h"
#include "tests/words.h"

using namespace pmaptrain;
using test::contains;

namespace {

constexpr const char* rest = R"(
data: {source: fashion_mnist, batch_size: 128}
model: {layers: [flatten, {dense: 10}]}
loss: softmax_cross_entropy
train: {duration: 1 step}
)";

std::string resolved(const std::string& text, const std::vector<std::string>& set = {}) {
  spec::Overrides overrides;
  overrides.set = set;
  return spec::load_text(text + rest, "c.yaml", "/", overrides).resolved;
}

}  // namespace

TEST_CASE("a merge key adds the keys of other maps, of which its own and then the first count", "[spec]") {
  const std::string written = resolved("optimizer: {sgd: {momentum: 0.9}, learning_rate: 0.25, clip: 2.0}\n");
  for (const char* const text : {
           "x-base: &base {sgd: {momentum: 0.9}, learning_rate: 0.1, clip: 2.0}\n"
           "optimizer:\n  <<: *base\n  learning_rate: 0.25\n",
           "x-base: &base {sgd: {momentum: 0.9}, learning_rate: 0.1, clip: 2.0}\n"
           "optimizer: {learning_rate: 0.25, <<: *base}\n",
           "x-a: &a {clip: 2.0}\nx-b: &b {clip: 3.0, sgd: {momentum: 0.9}, learning_rate: 7}\n"
           "optimizer: {<<: [*a, *b], learning_rate: 0.25}\n",
           "x-a: &a {clip: 2.0}\nx-b: &b {<<: *a, sgd: {momentum: 0.9}}\n"
           "optimizer: {<<: *b, learning_rate: 0.25}\n",
           "x-m: &m {momentum: 0.9}\noptimizer: {sgd: {<<: *m}, <<: {clip: 2.0}, <<: [], learning_rate: 0.25}\n",
       }) {
    INFO(text);
    if (contains(text, "<<: []")) {
      CHECK(contains(errors_of(text + std::string(rest)), "error: duplicate key '<<'"));
      continue;
    }
    CHECK(resolved(text) == written);
  }
}

TEST_CASE("a value set by an option counts in place of a merged one", "[spec]") {
  const std::string text = "x-base: &base {sgd: {momentum: 0.9}, learning_rate: 0.1}\noptimizer: {<<: *base}\n";
  CHECK(resolved(text, {"optimizer.sgd.momentum=0.5", "optimizer.learning_rate=0.25"}) ==
        resolved("optimizer: {sgd: {momentum: 0.5}, learning_rate: 0.25}\n"));
  CHECK(resolved("", {"optimizer={<<: {sgd: {}}, learning_rate: 0.25}"}) ==
        resolved("optimizer: {sgd: {}, learning_rate: 0.25}\n"));
}

TEST_CASE("a mistake in a merged key is shown where it was written", "[spec]") {
  const std::string text = "x-base: &base {sgd: {}, learning_rate: -1}\noptimizer: {<<: *base}\n";
  CHECK(contains(errors_of(text + rest), "c.yaml:1:40: error: learning_rate"));
}

TEST_CASE("quoted '<<' is a key like others", "[spec]") {
  CHECK(contains(errors_of("optimizer: {sgd: {}, learning_rate: 1, \"<<\": {clip: 1}}\n" + std::string(rest)),
                 "error: unknown key '<<'"));
}
