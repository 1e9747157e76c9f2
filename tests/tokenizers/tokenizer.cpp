// Texts to ids and back, as the package tokenizers has them.
#include "core/tokenizers/tokenizer.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "core/tokenizers/characters.h"
#include "tests/catch.h"
#include "tests/tokenizers/fixtures.h"

using namespace pmaptrain;
using tokenizers::Id;

namespace {

using Ids = std::vector<Id>;

// A tokenizer of these tokens, of which the merges are pairs, without a division of texts.
tokenizers::Definition pairs_of(const std::vector<std::string>& tokens,
                                const std::vector<std::pair<std::string, std::string>>& merges) {
  tokenizers::Definition made;
  made.model.tokens = tokens;
  const auto id = [&](const std::string& token) {
    return static_cast<Id>(std::find(tokens.begin(), tokens.end(), token) - tokens.begin());
  };
  for (const auto& [left, right] : merges) made.model.merges.emplace_back(id(left), id(right));
  return made;
}

}  // namespace

TEST_CASE("ids and decoded texts are those of the package tokenizers", "[tokenizers]") {
  for (const auto& [name, fixture] : tests::tokenizer_fixtures()["tokenizers"].items()) {
    const tokenizers::Tokenizer tokenizer(tests::tokenizer_named(name));
    tokenizers::Encoder encoder(tokenizer);
    for (const auto& one : fixture["cases"]) {
      const auto text = one["text"].get<std::string>();
      INFO(name << ": '" << text << "'");
      const Ids ids = encoder.encode(text, true);
      CHECK(ids == one["ids"].get<Ids>());
      CHECK(encoder.encode(text, false) == one["plain"].get<Ids>());
      CHECK(tokenizer.decode(ids) == one["decoded"].get<std::string>());
      CHECK(tokenizer.decode(ids, true) == one["with_special"].get<std::string>());
    }
  }
}

TEST_CASE("what is put before the first word stands before that of the original text, whatever becomes of it",
          "[tokenizers]") {
  const auto& fixtures = tests::tokenizer_fixtures()["beginnings"];
  std::size_t with_one = 0;
  for (const auto& one : fixtures["cases"]) {
    nlohmann::json file = fixtures["file"];
    file["normalizer"] = one["normalizer"];
    const tokenizers::Tokenizer tokenizer(tokenizers::read_definition(file.dump(), "tokenizer.json"));
    INFO(one.dump());
    const Ids ids = tokenizers::Encoder(tokenizer).encode(one["text"].get<std::string>(), true);
    CHECK(ids == one["ids"].get<Ids>());
    if (!ids.empty() && ids.front() == 1) ++with_one;
  }
  CHECK((with_one > 20 && with_one + 20 < fixtures["cases"].size()));
}

TEST_CASE("bytes that are no UTF-8 are replaced as Python replaces them", "[tokenizers]") {
  for (const auto& one : tests::tokenizer_fixtures()["broken"]) {
    std::string bytes, storage;
    for (const auto& byte : one["bytes"]) bytes += static_cast<char>(byte.get<int>());
    CHECK(tokenizers::well_formed(bytes, storage) == one["text"].get<std::string>());
  }
  std::string storage;
  const std::string text = "well \xc3\xa9";
  CHECK(tokenizers::well_formed(text, storage).data() == text.data());
}

TEST_CASE("a text without special tokens is itself again after bytes are merged", "[tokenizers]") {
  const tokenizers::Tokenizer tokenizer(tests::tokenizer_named("gpt2"));
  tokenizers::Encoder encoder(tokenizer);
  std::mt19937 engine(1);
  const auto draw = [&] { return static_cast<char32_t>(engine()); };
  for (int round = 0; round < 50; ++round) {
    std::string text;
    for (int i = 0; i < 300; ++i) {
      tokenizers::append_utf8(draw() % 3 != 0 ? 32 + draw() % 95 : 0xa0 + draw() % 0x3000, text);
    }
    CHECK(tokenizer.decode(encoder.encode(text, false)) == text);
  }
}

TEST_CASE("the pair of the lowest rank is merged first, of equal ones the first, in pieces of any length",
          "[tokenizers]") {
  const std::vector<std::pair<std::string, std::string>> merges{{"b", "c"}, {"a", "b"},   {"a", "bc"},
                                                                {"c", "a"}, {"ab", "ca"}, {"a", "a"}};
  const tokenizers::Tokenizer tokenizer(pairs_of({"a", "b", "c", "bc", "ab", "abc", "ca", "abca", "aa"}, merges));
  // The plain algorithm.
  const auto expected = [&](const std::string& text) {
    std::vector<std::string> parts;
    for (const char c : text) parts.emplace_back(1, c);
    for (bool merged = true; merged;) {
      merged = false;
      for (std::size_t rank = 0; rank < merges.size() && !merged; ++rank) {
        for (std::size_t i = 0; i + 1 < parts.size() && !merged; ++i) {
          if (std::pair(parts[i], parts[i + 1]) != merges[rank]) continue;
          parts[i] += parts[i + 1];
          parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1);
          merged = true;
        }
      }
    }
    Ids ids;
    for (const std::string& part : parts) ids.push_back(*tokenizer.id_of(part));
    return ids;
  };
  tokenizers::Encoder encoder(tokenizer);
  std::mt19937 draw(2);
  for (const std::size_t length : std::vector<std::size_t>{1, 2, 3, 7, 20, 47, 48, 49, 50, 127, 128, 129, 400}) {
    for (int round = 0; round < 5; ++round) {
      std::string text;
      for (std::size_t i = 0; i < length; ++i) text += static_cast<char>('a' + draw() % 3);
      CHECK(encoder.encode(text, false) == expected(text));
    }
  }
}

TEST_CASE("ids do not depend on what was encoded before", "[tokenizers]") {
  const tokenizers::Tokenizer tokenizer(tests::tokenizer_named("llama3"));
  tokenizers::Encoder used(tokenizer);
  std::mt19937 draw(3);
  std::vector<std::string> texts;
  for (int i = 0; i < 400; ++i) {
    std::string text;
    for (int k = 0; k < 500; ++k) text += static_cast<char>(draw() % 4 == 0 ? ' ' : 'a' + draw() % 26);
    texts.push_back(text);
  }
  for (const std::string& text : texts) used.encode(text, false);  // pieces take the places of others in the cache
  for (std::size_t i = 0; i < texts.size(); i += 40) {
    CHECK(used.encode(texts[i], false) == tokenizers::Encoder(tokenizer).encode(texts[i], false));
  }
}

TEST_CASE("a long text is given in portions", "[tokenizers]") {
  for (const std::string name : {"gpt2", "llama2"}) {
    const tokenizers::Tokenizer tokenizer(tests::tokenizer_named(name));
    tokenizers::Encoder encoder(tokenizer);
    std::string text;
    for (int i = 0; i < 40000; ++i) text += "the cat ";
    std::size_t largest = 0, portions = 0;
    Ids all;
    encoder.encode(text, [&](std::span<const Id> ids) {
      largest = std::max(largest, ids.size());
      ++portions;
      all.insert(all.end(), ids.begin(), ids.end());
    });
    INFO(name);
    CHECK(portions > 3);
    CHECK(largest < 17000);
    CHECK(all == encoder.encode(text, false));
  }
}

TEST_CASE("a text that is decoded as it grows has whole characters, and is the text in the end", "[tokenizers]") {
  for (const std::string name : {"gpt2", "llama2", "llama2_pieces", "words"}) {
    const tokenizers::Tokenizer tokenizer(tests::tokenizer_named(name));
    const Ids ids = tokenizers::Encoder(tokenizer).encode("the cat 日本語😀 sat on \xd7\x90", false);
    for (const std::size_t before : {std::size_t{0}, std::size_t{2}}) {
      tokenizers::StreamDecoder decoder(tokenizer, std::span(ids).first(before));
      std::string text = tokenizer.decode(std::span(ids).first(before));
      for (std::size_t i = before; i < ids.size(); ++i) {
        const std::string added = decoder.next(ids[i]);
        std::string storage;
        CHECK(tokenizers::well_formed(added, storage) == added);
        CHECK(added.find("\xef\xbf\xbd") == std::string::npos);
        text += added;
      }
      INFO(name << " after " << before);
      CHECK(text + decoder.rest() == tokenizer.decode(ids));
    }
    // What ends within a character.
    if (name != "gpt2") continue;
    tokenizers::StreamDecoder cut(tokenizer);
    CHECK(cut.next(*tokenizer.id_of(tokenizers::byte_level_text("\xe6"))).empty());
    CHECK(cut.rest() == "\xef\xbf\xbd");
  }
}

TEST_CASE("bytes that turn out to be no character are given when a character follows", "[tokenizers]") {
  const tokenizers::Tokenizer tokenizer(tests::tokenizer_named("llama2"));
  const auto byte = [&](const std::string& name) { return *tokenizer.id_of(name); };
  const Ids ids{byte("<0xF0>"), byte("<0x9F>"),          byte("<0x98>"), byte("<0x80>"),
                byte("<0xFF>"), byte("\xe2\x96\x81the"), byte("<0xC3>")};
  tokenizers::StreamDecoder decoder(tokenizer);
  std::string text;
  for (const Id id : ids) text += decoder.next(id);
  CHECK(text + decoder.rest() == tokenizer.decode(ids));
}

TEST_CASE("a word is looked up in the vocabulary, and not among added tokens", "[tokenizers]") {
  tokenizers::Definition words = tests::tokenizer_named("words");
  const auto id = static_cast<Id>(words.model.tokens.size());
  words.added.push_back({.id = id, .content = "zz", .single_word = true});
  const tokenizers::Tokenizer tokenizer(std::move(words));
  CHECK(tokenizers::Encoder(tokenizer).encode("zz", false) == Ids{id});
  CHECK(tokenizers::Encoder(tokenizer).encode("ZZ", false) == Ids{1});  // in small letters it is a word
}

TEST_CASE("characters of bytes stand for all bytes, and others for none", "[tokenizers]") {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  CHECK(tokenizers::bytes_of(tokenizers::byte_level_text(bytes)) == bytes);
  CHECK(tokenizers::byte_level_text("a b\n") == "aĠbĊ");
  CHECK_FALSE(tokenizers::bytes_of("日"));
  CHECK(tokenizers::nfc("Zwo\xcc\x88lf") == "Zw\xc3\xb6lf");
  CHECK(tokenizers::lower_case("\xc4\xb0\xc3\x84"
                               "B") ==
        "i\xcc\x87\xc3\xa4"
        "b");
}
