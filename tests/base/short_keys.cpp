// Short names of keys.
#include "core/base/short_keys.h"

#include "tests/catch.h"

using namespace pmaptrain;

TEST_CASE("the short name of a key is as many of its last segments as no other key ends in", "[base]") {
  using Keys = std::vector<std::string>;
  CHECK(short_keys({"optimizer.learning_rate", "data.batch_size", "seed"}) ==
        Keys{"learning_rate", "batch_size", "seed"});
  CHECK(short_keys({"model.layers.0.dense", "model.layers.2.dense"}) == Keys{"0.dense", "2.dense"});
  CHECK(short_keys({"model.layers.0.a.dense", "model.layers.1.a.dense", "b.dense"}) ==
        Keys{"0.a.dense", "1.a.dense", "b.dense"});
  CHECK(short_keys({"rate", "optimizer.rate", "optimizer.heavy_rate"}) == Keys{"rate", "optimizer.rate", "heavy_rate"});
  CHECK(short_keys({"model.layers.1"}) == Keys{"layers.1"});
  CHECK(short_keys({"model.layers.1", "loss.weights.1", "7"}) == Keys{"layers.1", "weights.1", "7"});
  CHECK(short_keys({}).empty());
}
