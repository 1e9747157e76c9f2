// Tokenizers that are made from texts.
#include "core/tokenizers/train.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/tokenizers/characters.h"
#include "core/tokenizers/file.h"
#include "core/tokenizers/tokenizer.h"
#include "tests/catch.h"
#include "tests/tokenizers/fixtures.h"
#include "tests/words.h"

using namespace pmaptrain;
using tokenizers::Style;

namespace {

tokenizers::Definition trained(Style style, std::int64_t size, const std::vector<std::string>& special,
                               const std::vector<std::string>& documents) {
  tokenizers::BpeTrainer trainer({style, size, special, 2});
  for (const std::string& document : documents) trainer.add(document);
  return trainer.finish();
}

}  // namespace

TEST_CASE("merges of bytes are those of the package's trainer", "[tokenizers]") {
  const tokenizers::Definition own = trained(Style::gpt2, 330, {"<|endoftext|>"}, tests::fixture_corpus());
  const tokenizers::Definition theirs = tests::tokenizer_named("gpt2");
  CHECK(own.model.tokens == theirs.model.tokens);
  CHECK(own.model.merges == theirs.model.merges);
}

TEST_CASE("a tokenizer of each style decodes the texts that it was made from", "[tokenizers]") {
  for (const Style style : {Style::gpt2, Style::llama3, Style::llama2}) {
    const std::vector<std::string> corpus = tests::fixture_corpus();
    const tokenizers::Tokenizer tokenizer(trained(style, 600, {"<|end|>"}, corpus));
    CHECK(tokenizer.size() <= 600);
    tokenizers::Encoder encoder(tokenizer);
    for (const std::string& text : corpus) {
      const std::vector<tokenizers::Id> ids = encoder.encode(text, false);
      CHECK(tokenizer.decode(ids) == text);
      CHECK(ids.size() < text.size() / 2);
      // It does not depend on the order of the documents.
    }
    std::vector<std::string> reversed(corpus.rbegin(), corpus.rend());
    CHECK(tokenizers::definition_text(trained(style, 600, {"<|end|>"}, reversed)) ==
          tokenizers::definition_text(tokenizer.definition()));
    CHECK(encoder.encode("<|end|>the", false).front() == tokenizer.id_of("<|end|>"));
  }
}

TEST_CASE("pairs that are too rare end the training, and a size without room for bytes is refused", "[tokenizers]") {
  const tokenizers::Definition few = trained(Style::llama3, 8192, {}, {"ab ab ab xy"});
  CHECK(few.model.tokens.size() == 256 + 2);  // "ab", " ab"
  CHECK(test::refusal([] { trained(Style::gpt2, 200, {"<e>"}, {"ab"}); }, ExitStatus::usage) ==
        "a vocabulary of 200 has no room for the 257 special tokens, bytes and characters | size 258 or more; 8192 is "
        "usual for a small model");
  // The size that the help names is enough, and a special token may be a character.
  std::string text;
  for (int i = 0; i < 500; ++i) tokenizers::append_utf8(0x4e00 + static_cast<char32_t>(i), text);
  const std::string said = test::refusal([&] { trained(Style::llama2, 400, {}, {text}); }, ExitStatus::usage);
  INFO(said);
  CHECK(said.find("| size 519 or more") != std::string::npos);
  CHECK(trained(Style::llama2, 519, {}, {text}).model.tokens.size() <= 519);
  const tokenizers::Definition bar = trained(Style::gpt2, 300, {"|"}, {"a|b a|b"});
  CHECK(std::count(bar.model.tokens.begin(), bar.model.tokens.end(), "|") == 1);
  CHECK(test::refusal(
            [] {
              trained(Style::gpt2, 300, {}, {"", ""});
            },
            ExitStatus::data) == "the texts are empty | a tokenizer is trained on text");
}

TEST_CASE("words are the most frequent ones, and others unknown", "[tokenizers]") {
  tokenizers::WordTrainer trainer(true);
  trainer.add("The cat, the dog. THE end, zebra-crossing");
  trainer.add("Zebra dog cat x_1 \xc3\x84pfel \xc3\xa4pfel");
  const auto tokens = [&](std::int64_t size, std::int64_t min_count) {
    return trainer.finish(size, min_count).model.tokens;
  };
  using Words = std::vector<std::string>;
  CHECK(tokens(20, 2) == Words{"<pad>", "<unk>", "the", ",", "cat", "dog", "zebra", "\xc3\xa4pfel"});
  CHECK(tokens(5, 2) == Words{"<pad>", "<unk>", "the", ",", "cat"});
  CHECK(tokens(20, 3) == Words{"<pad>", "<unk>", "the"});
  const tokenizers::Tokenizer tokenizer(trainer.finish(20, 2));
  CHECK(tokenizers::Encoder(tokenizer).encode("A Dog; the \xc3\x84PFEL", false) ==
        std::vector<tokenizers::Id>{1, 5, 1, 2, 7});
}
