// Models of texts that see what they are to predict are told before they are trained.
#include "core/setup/looking_ahead.h"

#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

TEST_CASE("a model of texts that sees the token after a position is told, with its layer", "[setup]") {
  const TemporaryFolder folder;
  folder.write("t.txt", "a text of a few words, and a few more of them");
  const auto told = [&](const std::string& layers) {
    return setup_of_text("data: {source: {text: {train: " + folder / "t.txt" +
                         ", length: 4}}, batch_size: 2}\nmesh: {axes: {devices: 2}}\nmodel:\n  layers:\n"
                         "    - embedding: {num_embeddings: 256, features: 8}\n" +
                         layers +
                         "    - dense: 256\nloss: softmax_cross_entropy\noptimizer: {adam: {}, learning_rate: 0.01}\n"
                         "train: {duration: 3 steps}\n")
        .warnings;
  };
  CHECK(told("").empty());
  CHECK(told("    - attention: {heads: 2, causal: true}\n").empty());
  CHECK(told("    - residual: {layers: [layer_norm, attention: {heads: 2, causal: true}]}\n").empty());
  const auto plain = told("    - attention: {heads: 2}\n");
  REQUIRE(plain.size() == 1);
  CHECK(test::contains(plain.front(), "each position of a text is to predict the token after it, and attention_0 ("));
  CHECK(test::contains(plain.front(),
                       ":6:7) shows it that token: the model learns to copy it, so its loss says nothing, and predict "
                       "--prompt refuses it; write causal: true in it"));
  const auto nested =
      told("    - repeat: {times: 2, layers: [residual: {layers: [layer_norm, attention: {heads: 2}]}]}\n");
  REQUIRE(nested.size() == 1);
  CHECK(test::contains(nested.front(), "attention_0 ("));
  // Other layers that mix positions.
  for (const std::string layer : {"group_norm: {num_groups: 2}", "transpose: [0, 1]", "reshape: [4, 8]"}) {
    INFO(layer);
    const auto mixed = told("    - " + layer + "\n");
    REQUIRE(mixed.size() == 1);
    CHECK(test::contains(mixed.front(), "leave it out; attention: {causal: true} sees no token ahead"));
  }
}
