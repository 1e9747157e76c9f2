// Windows of texts as a report shows them.
#include "core/report/runs/text_windows.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/tokenizers/tokenizer.h"
#include "tests/catch.h"
#include "tests/tokenizers/fixtures.h"

using namespace pmaptrain;
using report::PredictedTokens;
using report::ShownToken;
using report::TokenReader;

namespace {

PredictedTokens window_of(const std::vector<std::int32_t>& targets) {
  return {targets, std::vector<std::int32_t>(targets.size(), -1), std::vector<double>(targets.size(), 1.0)};
}

PredictedTokens window_of_bytes(const std::string& bytes) {
  std::vector<std::int32_t> targets;
  for (const char byte : bytes) targets.push_back(static_cast<unsigned char>(byte));
  return window_of(targets);
}

std::vector<std::string> texts_in(const std::vector<ShownToken>& tokens) {
  std::vector<std::string> texts;
  for (const ShownToken& token : tokens) texts.push_back(token.text);
  return texts;
}

constexpr double not_counted = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("of a window the tokens with the largest losses side by side are shown", "[report]") {
  PredictedTokens window = window_of_bytes("abcdef");
  window.losses = {9, 0, 2, 3, not_counted, 0};
  window.likeliest = {'a', 'x', 'c', 0xc3, -1, 'f'};
  const TokenReader reader(nullptr, data::Tokens::bytes);
  CHECK(window.sum() == 14);
  CHECK(window.count() == 5);
  CHECK(texts_in(reader.show('!', window, 6)) == std::vector<std::string>{"a", "b", "c", "d", "e", "f"});
  CHECK(texts_in(reader.show('!', window, 1)) == std::vector<std::string>{"a"});
  window.losses[0] = 1;
  const std::vector<ShownToken> shown = reader.show('!', window, 3);
  CHECK(texts_in(shown) == std::vector<std::string>{"b", "c", "d"});
  CHECK(shown[0].likeliest == "x");
  CHECK(shown[1].likeliest.empty());
  CHECK(shown[2].likeliest == "byte 0xc3");
  CHECK((shown[1].loss == 2 && shown[2].loss == 3));
}

TEST_CASE("bytes are shown as characters, each with its last byte, and tokens without a tokenizer as numbers",
          "[report]") {
  const TokenReader bytes(nullptr, data::Tokens::bytes), numbers(nullptr, data::Tokens::uint16);
  CHECK(texts_in(bytes.show(0, window_of_bytes("\xa9z\xc3\xa9\xe2\x82\xac\xc3w"), 99)) ==
        std::vector<std::string>{"\xa9", "z", "", "\xc3\xa9", "", "", "\xe2\x82\xac", "", "\xc3w"});
  CHECK_FALSE(bytes.bytes(window_of_bytes("ab")));  // each token is one
  CHECK(texts_in(numbers.show(0, window_of({7, 300}), 99)) == std::vector<std::string>{"7 ", "300 "});
  CHECK_FALSE(numbers.bytes(window_of({7, 300})));
}

TEST_CASE("tokens are shown as what they add to the text, with special tokens by their names", "[report]") {
  for (const std::string name : {"gpt2", "llama3", "llama2", "llama2_pieces"}) {
    const tokenizers::Tokenizer tokenizer(tests::tokenizer_named(name));
    const std::string text = "the cat sat Größe \xf0\x9f\x98\x80!";
    std::vector<std::int32_t> targets;
    for (const tokenizers::Id id : tokenizers::Encoder(tokenizer).encode(text, false)) {
      targets.push_back(static_cast<std::int32_t>(id));
    }
    const TokenReader reader(&tokenizer, data::Tokens::bytes);
    const std::int32_t before = targets.front();
    targets.erase(targets.begin());
    const std::string first = tokenizer.decode(std::vector<tokenizers::Id>{static_cast<tokenizers::Id>(before)});
    INFO(name);
    std::string shown;
    for (const std::string& one : texts_in(reader.show(before, window_of(targets), 99))) shown += one;
    CHECK(first + shown == text);
  }
  const tokenizers::Tokenizer tokenizer(tests::tokenizer_named("gpt2"));
  const TokenReader reader(&tokenizer, data::Tokens::bytes);
  std::vector<std::int32_t> targets;
  for (const tokenizers::Id id : tokenizers::Encoder(tokenizer).encode(" catß<|endoftext|>", false)) {
    targets.push_back(static_cast<std::int32_t>(id));
  }
  PredictedTokens window = window_of(targets);
  CHECK(reader.bytes(window) == 6);
  window.losses.front() = not_counted;  // does not count
  CHECK(*reader.bytes(window) < 6);
  window.likeliest.back() = targets.front();
  const std::vector<ShownToken> shown = reader.show(targets.front(), window, 99);
  CHECK(shown.back().text == "<|endoftext|>");
  CHECK(shown.back().likeliest ==
        tokenizer.decode(std::vector<tokenizers::Id>{static_cast<tokenizers::Id>(targets[0])}));
  const tokenizers::Tokenizer words(tests::tokenizer_named("words"));
  CHECK_FALSE(TokenReader(&words, data::Tokens::bytes).bytes(window_of({2, 3})));
}
