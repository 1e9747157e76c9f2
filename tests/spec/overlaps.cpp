// Values of options that later ones replace.
#include <optional>
#include <string>
#include <vector>

#include "core/spec/changes/loaded.h"
#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/spec/errors_of.h"

using namespace pmaptrain;

namespace {

std::vector<std::string> notes_of(std::vector<std::string> set, std::optional<std::uint64_t> seed = {}) {
  spec::Overrides overrides;
  overrides.set = std::move(set);
  overrides.seed = seed;
  return spec::load_text(base, "c.yaml", "/", overrides).notes;
}

using Notes = std::vector<std::string>;

}  // namespace

TEST_CASE("a line names two options of which the later replaces a value of the earlier", "[spec]") {
  CHECK(notes_of({"optimizer.learning_rate=0.1", "optimizer.learning_rate=0.2"}) ==
        Notes{"--set optimizer.learning_rate=0.2 replaces what --set optimizer.learning_rate=0.1 has set"});
  CHECK(notes_of({"optimizer.adam.b1=0.5", "optimizer={adam: {}, learning_rate: 0.1}"}) ==
        Notes{"--set optimizer={adam: {}, learning_rate: 0.1} replaces what --set optimizer.adam.b1=0.5 has set"});
  CHECK(
      notes_of({"optimizer={adam: {b1: 0.5}, learning_rate: 0.1}", "optimizer.adam.b1=0.6"}) ==
      Notes{"--set optimizer.adam.b1=0.6 replaces what --set optimizer={adam: {b1: 0.5}, learning_rate: 0.1} has set"});
  CHECK(notes_of({"optimizer.adam.b1=0.5", "optimizer.sgd.momentum=0.9"}) ==
        Notes{"--set optimizer.sgd.momentum=0.9 replaces what --set optimizer.adam.b1=0.5 has set",
              "optimizer.sgd replaces optimizer.adam"});
  CHECK(notes_of({"model.layers.1.dense=5", "model.layers.dense_0.dense.features=6"}) ==
        Notes{"--set model.layers.dense_0.dense.features=6 replaces what --set model.layers.1.dense=5 has set"});
  CHECK(notes_of({"data.batch_size=64", "data.batch_size_per_device=64"}) ==
        Notes{"--set data.batch_size_per_device=64 replaces what --set data.batch_size=64 has set",
              "data.batch_size_per_device replaces data.batch_size"});
  CHECK(notes_of({"train.log_every=2", "train.log_every=null"}) ==
        Notes{"--set train.log_every=null replaces what --set train.log_every=2 has set"});
  CHECK(notes_of({"seed=2"}, 3) == Notes{"--seed 3 replaces what --set seed=2 has set"});
}

TEST_CASE("options that keep each other's values are told nothing of", "[spec]") {
  CHECK(notes_of({"seed=2", "seed=2"}).empty());
  CHECK(notes_of({"optimizer={sgd: {}, learning_rate: 0.1}", "optimizer.sgd.momentum=0.9"}).empty());
  CHECK(notes_of({"optimizer.learning_rate=0.1", "optimizer.adam.b1=0.5"}).empty());
}
