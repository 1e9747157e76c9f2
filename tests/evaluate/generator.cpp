// Continuing texts: the choice of a token, and the context that the model sees.
#include "core/evaluate/generator.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/setup/make_setup.h"
#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using test::contains;

namespace {

const std::vector<float> logits{1.0F, 3.0F, 0.0F, 3.0F, 2.0F};

// How often each token is drawn, as a share.
std::map<std::int32_t, double> shares_of(const evaluate::Sampling& sampling) {
  constexpr int draws = 20000;
  std::map<std::int32_t, double> shares;
  for (int i = 0; i < draws; ++i) shares[evaluate::next_token(logits, sampling, i)] += 1.0 / draws;
  return shares;
}

// A text of the letters a, b, c, d, over and over, and a small model that reads eight of them.
struct Letters {
  TemporaryFolder folder;

  explicit Letters(const std::string& attention = "{heads: 2, causal: true}", const std::string& more = "") {
    std::ofstream text(folder / "letters.txt");
    for (int i = 0; i < 600; ++i) text << "abcd"[i % 4];
    text.close();
    std::ofstream(folder / "config.yaml") << "mesh: {axes: {devices: 2}}\n"
                                             "data: {source: {text: {train: letters.txt, length: 8}}, batch_size: 8}\n"
                                             "model:\n"
                                             "  layers:\n"
                                             "    - {name: tokens, embedding: {num_embeddings: 128, features: 16}}\n"
                                             "    - position_embedding: {length: 8}\n"
                                             "    - residual: {layers: [layer_norm, attention: "
                                          << attention
                                          << "]}\n"
                                             "    - attend: {embedding: tokens}\n"
                                             "loss: softmax_cross_entropy\n"
                                             "optimizer: {adam: {}, learning_rate: 0.006}\n"
                                             "train: {duration: 300 steps, log_every: never, eval_every: never}\n"
                                          << more;
    train_setup_in(folder / "run", setup::make_setup(spec::load(folder / "config.yaml", {})));
  }

  evaluate::Generator generator(run::MemberNumber member = std::nullopt, std::vector<std::string> set = {}) const {
    spec::Overrides overrides;
    overrides.set = std::move(set);
    return evaluate::Generator(spec::load(folder / "run", overrides), folder / "run", "last", spec::Weights::ema,
                               member);
  }
};

std::string continued(evaluate::Generator& generator, const std::string& prompt, std::int64_t count,
                      const evaluate::Sampling& sampling = {}) {
  std::string text;
  const std::vector<std::int32_t> tokens(prompt.begin(), prompt.end());
  generator.run(tokens, count, sampling, [&](std::int32_t token) { text += static_cast<char>(token); });
  return text;
}

std::string refused(const auto& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.diagnostics().front().message + " | " + error.diagnostics().front().help;
  }
  return {};
}

}  // namespace

TEST_CASE("without a temperature the most probable token is taken, of equal ones the lower", "[evaluate]") {
  CHECK(evaluate::next_token(logits, {}, 0) == 1);
  CHECK(evaluate::next_token(logits, {}, 7) == 1);
}

TEST_CASE("tokens are drawn by the softmax of the logits divided by the temperature", "[evaluate]") {
  for (const double temperature : {0.5, 1.0, 2.0}) {
    double all = 0;
    for (const float logit : logits) all += std::exp(static_cast<double>(logit) / temperature);
    std::map<std::int32_t, double> shares = shares_of({temperature});
    for (std::int32_t token = 0; token < 5; ++token) {
      INFO("token " << token << " at " << temperature);
      const double expected =
          std::exp(static_cast<double>(logits[static_cast<std::size_t>(token)]) / temperature) / all;
      CHECK(shares[token] == Approx(expected).margin(0.012));
    }
  }
}

TEST_CASE("top-k and top-p draw from the most probable tokens alone", "[evaluate]") {
  CHECK(shares_of({1.0, 1}).size() == 1);
  CHECK(shares_of({1.0, 3}).size() == 3);
  CHECK(shares_of({1.0, 3}).contains(4));
  CHECK(shares_of({1.0, 99}).size() == 5);
  CHECK(shares_of({1.0, std::nullopt, 0.01}).size() == 1);
  CHECK(shares_of({1.0, std::nullopt, 0.5}).size() == 2);  // two of 40 % each
}

TEST_CASE("draws depend on the seed and on the place in what is generated", "[evaluate]") {
  const auto drawn = [](std::uint64_t seed) {
    std::vector<std::int32_t> tokens;
    for (int i = 0; i < 50; ++i) tokens.push_back(evaluate::next_token(logits, {1.0, std::nullopt, 1.0, seed}, i));
    return tokens;
  };
  CHECK(drawn(1) == drawn(1));
  CHECK(drawn(1) != drawn(2));
}

TEST_CASE("a logit that is not finite ends the text", "[evaluate]") {
  const std::vector<float> wrong{1.0F, std::numeric_limits<float>::quiet_NaN()};
  CHECK(contains(refused([&] { evaluate::next_token(wrong, {}, 0); }), "is not finite"));
}

TEST_CASE("past the positions of a model, the last half of them is kept", "[evaluate]") {
  CHECK(evaluate::forgotten(1, 8) == 0);
  CHECK(evaluate::forgotten(8, 8) == 0);
  CHECK(evaluate::forgotten(9, 8) == 4);
  CHECK(evaluate::forgotten(12, 8) == 4);
  CHECK(evaluate::forgotten(13, 8) == 8);
  CHECK(evaluate::forgotten(4, 3) == 2);
  CHECK(evaluate::forgotten(2, 1) == 1);
}

TEST_CASE("a model that has learnt a text continues it, far past its positions", "[evaluate]") {
  const Letters letters;
  evaluate::Generator generator = letters.generator();
  CHECK(generator.positions() == 8);
  CHECK(generator.vocabulary() == 128);
  CHECK(continued(generator, "ab", 22) == "cdabcdabcdabcdabcdabcd");
  CHECK(continued(generator, "cdabcdabcdabcdabcdab", 5) == "cdabc");
  // A token that is not seen changes nothing.
  const std::vector<std::int32_t> one{'a', 'b', 'c'};
  const std::span<const float> found = generator.logits_after(one);
  const std::vector<float> first(found.begin(), found.end());
  generator.logits_after(std::vector<std::int32_t>{'d', 'd', 'd', 'd', 'd', 'd', 'd'});
  const std::span<const float> again = generator.logits_after(one);
  CHECK(std::vector<float>(again.begin(), again.end()) == first);
  const evaluate::Sampling sampling{1.0, std::nullopt, 1.0, 3};
  CHECK(continued(generator, "ab", 40, sampling) == continued(generator, "ab", 40, sampling));
}

TEST_CASE("a token after those in memory has the logits of a whole pass", "[evaluate]") {
  const std::string attention =
      GENERATE("{heads: 2, causal: true}", "{heads: 4, kv_heads: 2, causal: true, use_bias: false}",
               "{heads: 2, causal: true, rotary: {base: 100.0}, qk_norm: true, dropout: 0.1}",
               "{heads: 2, causal: true}, {conv: {features: 16, kernel_size: [3], padding: CAUSAL}}",
               "{heads: 2, causal: true}, {lstm: 16}, {gru: 16}",
               "{heads: 2, causal: true}, {parallel: {branches: [[], [{attention: {heads: 2, causal: true}}], [tanh]], "
               "join: add}}, {parallel: {branches: [[], [tanh]], join: concat}}, {dense: 16}");
  const bool mixed = GENERATE(false, true);
  const Letters letters(attention, mixed ? "precision: mixed_bfloat16\n" : "");
  evaluate::Generator one = letters.generator(), whole = letters.generator();
  const std::string text = "abcdabcabdacdbab";
  std::vector<std::int32_t> tokens;
  float furthest = 0, largest = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    tokens.push_back(text[i]);
    const std::span<const float> found = one.logits_after(tokens);
    whole.logits_after(std::vector<std::int32_t>{'x'});  // forgets what is in memory
    const std::span<const float> expected = whole.logits_after(tokens);
    for (std::size_t k = 0; k < expected.size(); ++k) {
      furthest = std::max(furthest, std::abs(found[k] - expected[k]));
      largest = std::max(largest, std::abs(expected[k]));
    }
  }
  CHECK(largest > 1);
  CHECK(furthest < (mixed ? 3e-2F : 1e-5F) * largest);
}

TEST_CASE("a text ends before the end token, whatever the number of tokens", "[evaluate]") {
  const Letters letters;
  evaluate::Generator until_d = letters.generator(std::nullopt, {"data.source.text.end_token=100"});
  CHECK(continued(until_d, "ab", 22) == "c");
  CHECK(continued(until_d, "abc", 22).empty());
  CHECK(continued(until_d, "abcd", 22) == "abc");  // one in the prompt ends nothing
  CHECK(continued(until_d, "abcd", 2) == "ab");
}

TEST_CASE("a text is continued by one causal model, from tokens that it knows", "[evaluate]") {
  const Letters letters;
  evaluate::Generator generator = letters.generator();
  CHECK(refused([&] { continued(generator, "", 1); }) ==
        "--prompt is empty | it has at least one token, from which the text goes on");
  CHECK(contains(refused([&] { continued(generator, "ab\xc3", 1); }), "token 2 of --prompt is"));
  const Letters sees_all("{heads: 2}");
  CHECK(refused([&] { sees_all.generator(); }) ==
        "--prompt continues texts, and in this model attention_0 shows a position the tokens after it | attention: "
        "{causal: true} sees no token ahead; train such a model");
  const Letters two("{heads: 2, causal: true}", "ensemble: {axis: devices, vary: {seed: [0, 1]}}\n");
  CHECK(refused([&] { two.generator(); }) ==
        "--prompt continues a text with one model, and the run has 2 | choose one of them: --member 0");
  evaluate::Generator second = two.generator(1);
  CHECK(continued(second, "ab", 6) == "cdabcd");
}
