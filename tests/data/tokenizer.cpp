// Texts by a tokenizer: tokens of the source, kept tokens, the end token.
#include "core/data/tokenizer.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/data/texts/encode.h"
#include "core/data/texts/text_source.h"
#include "core/tokenizers/file.h"
#include "core/tokenizers/tokenizer.h"
#include "tests/catch.h"
#include "tests/data/files.h"
#include "tests/data/texts.h"
#include "tests/tokenizers/fixtures.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

using Files = data::TextFiles::Files;
using TokenList = std::vector<std::int32_t>;

const tokenizers::Tokenizer& gpt2() {
  static const tokenizers::Tokenizer made(tests::tokenizer_named("gpt2"));
  return made;
}

data::TextFiles texts_of(const Files& files, const std::string& end = {}) {
  return {files, {}, {}, data::Tokens::bytes, 1, end.empty() ? std::nullopt : std::optional(declare::ColumnName{end}),
          {}};
}

TokenList encoded(const data::TextFiles& text, const tokenizers::Tokenizer& tokenizer,
                  data::TokenCache* cache = nullptr, std::vector<std::string>* said = nullptr) {
  std::vector<std::string> notes;
  const auto windows = data::make_text(text, text.train, notes, {}, &tokenizer, cache);
  if (said != nullptr) *said = notes;
  TokenList tokens(static_cast<std::size_t>(windows->size()) + 1);
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    windows->read(static_cast<std::int64_t>(i), reinterpret_cast<std::byte*>(&tokens[i]),
                  reinterpret_cast<std::byte*>(&tokens[i + 1]));
  }
  return tokens;
}

TokenList ids_by(const tokenizers::Tokenizer& tokenizer, const std::string& text) {
  const auto ids = tokenizers::Encoder(tokenizer).encode(text, false);
  return {ids.begin(), ids.end()};
}

TokenList operator+(TokenList a, const TokenList& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Keeps tokens in memory, and counts.
class KeptInMemory final : public data::TokenCache {
 public:
  std::optional<data::Bytes> find(const std::string& name) override {
    const auto found = kept.find(name);
    if (found == kept.end()) return std::nullopt;
    ++reads;
    return data::Bytes(found->second, *found->second);
  }
  std::optional<data::Bytes> keep(const std::string& name, const std::function<void(const Append&)>& write) override {
    auto bytes = std::make_shared<std::vector<std::byte>>();
    write([&](std::span<const std::byte> more) { bytes->insert(bytes->end(), more.begin(), more.end()); });
    kept[name] = bytes;
    ++writes;
    return data::Bytes(bytes, *bytes);
  }
  std::map<std::string, std::shared_ptr<std::vector<std::byte>>> kept;
  int reads = 0, writes = 0;
};

}  // namespace

TEST_CASE("documents of texts are encoded each by itself, and the end token follows it", "[data]") {
  const TemporaryFolder folder;
  folder.write("a.txt", "the cat ");
  folder.write("b.jsonl", "{\"text\": \"sat on\"}\n{\"text\": \"\"}\n{\"text\": \" the mat\"}\n");
  const Files files{folder / "a.txt", folder / "b.jsonl"};
  CHECK(encoded(texts_of(files), gpt2()) ==
        ids_by(gpt2(), "the cat ") + ids_by(gpt2(), "sat on") + ids_by(gpt2(), " the mat"));
  const TokenList end{0};
  for (const std::string name : {"<|endoftext|>", "0"}) {
    CHECK(encoded(texts_of(files, name), gpt2()) ==
          ids_by(gpt2(), "the cat ") + end + ids_by(gpt2(), "sat on") + end + end + ids_by(gpt2(), " the mat") + end);
  }
  std::vector<std::string> said;
  const TokenList tokens = encoded(texts_of({folder / "a.txt"}), gpt2(), nullptr, &said);
  REQUIRE(said.size() == 1);
  CHECK(contains(said.front(), "has " + std::to_string(tokens.size()) + " tokens of 8 B: "));
}

TEST_CASE("an end token that a tokenizer lacks is refused", "[data]") {
  const auto said = [](const std::string& end, const tokenizers::Tokenizer* tokenizer) {
    return error_of([&] { texts_of({}, end).end_id(tokenizer); }, ExitStatus::usage);
  };
  CHECK(contains(said("<end>", &gpt2()), "'<end>' is no token of data.tokenizer | `pmaptrain tokenize show"));
  CHECK(contains(said("330", &gpt2()), "end_token is 330, and data.tokenizer has tokens from 0 to 329"));
  CHECK(contains(said("<end>", nullptr), "end_token is '<end>', and without data.tokenizer tokens are numbers"));
  CHECK(contains(said("256", nullptr), "end_token is 256, but tokens: bytes has the tokens 0 to 255"));
}

TEST_CASE("texts are encoded once: again only where the text, the tokenizer or the end token is another one",
          "[data]") {
  const TemporaryFolder folder;
  const Files files{folder / "a.txt"};
  folder.write("a.txt", "the cat sat on the mat");
  KeptInMemory kept;
  const TokenList tokens = encoded(texts_of(files), gpt2(), &kept);
  CHECK(kept.writes == 1);
  CHECK(encoded(texts_of(files), gpt2(), &kept) == tokens);
  CHECK((kept.writes == 1 && kept.reads == 1));
  CHECK(encoded(texts_of(files, "0"), gpt2(), &kept) == tokens + TokenList{0});
  CHECK(kept.writes == 2);
  const tokenizers::Tokenizer other(tests::tokenizer_named("llama3"));
  CHECK(encoded(texts_of(files), other, &kept) == ids_by(other, "the cat sat on the mat"));
  CHECK(kept.writes == 3);
  folder.write("a.txt", "the cat sat on the hat");
  CHECK(encoded(texts_of(files), gpt2(), &kept) == ids_by(gpt2(), "the cat sat on the hat"));
  CHECK(kept.writes == 4);
  // What is damaged is made again: cut off, also after whole ids, and changed.
  KeptInMemory one;
  encoded(texts_of(files), gpt2(), &one);
  const auto damage = [&](auto&& change) {
    REQUIRE(one.kept.size() == 1);
    change(*one.kept.begin()->second);
    const int writes = one.writes;
    CHECK(encoded(texts_of(files), gpt2(), &one) == ids_by(gpt2(), "the cat sat on the hat"));
    CHECK(one.writes == writes + 1);
  };
  damage([](std::vector<std::byte>& bytes) { bytes.resize(3); });
  damage([](std::vector<std::byte>& bytes) { bytes.resize(bytes.size() - 4); });
  damage([](std::vector<std::byte>& bytes) { bytes.erase(bytes.begin(), bytes.begin() + 2); });
  damage([](std::vector<std::byte>& bytes) { bytes.front() ^= std::byte{1}; });
}

TEST_CASE("ids above 65,535 are kept in 32 bits, and files have them as uint32", "[data]") {
  tokenizers::Definition large = tests::tokenizer_named("gpt2");
  while (large.model.tokens.size() < 70000)
    large.model.tokens.push_back("#" + std::to_string(large.model.tokens.size()));
  large.added.push_back({.id = 70000, .content = "<far>", .special = true});
  const tokenizers::Tokenizer tokenizer(std::move(large));
  const TemporaryFolder folder;
  folder.write("a.txt", "the<far>cat");
  CHECK(encoded(texts_of({folder / "a.txt"}), tokenizer) ==
        ids_by(gpt2(), "the") + TokenList{70000} + ids_by(gpt2(), "cat"));
  data::TextFiles ids = texts_of({folder / "ids.bin"});
  ids.tokens = data::Tokens::uint32;
  folder.write("ids.bin", little(3, 4) + little(70000, 4) + little(5, 4));
  CHECK(tokens_of(ids) == TokenList{3, 70000, 5});
  CHECK(encoded(ids, tokenizer) == TokenList{3, 70000, 5});  // a tokenizer decodes them only
  CHECK(contains(error_of([&] { encoded(ids, gpt2()); }),
                 "has the token 70000, and data.tokenizer has tokens from 0 to 329 | the files were made by another "
                 "tokenizer"));
  folder.write("ids.bin", little(3, 4) + little(7, 2));
  CHECK(contains(error_of([&] { tokens_of(ids); }),
                 "has 6 bytes, which are not whole tokens of 4 bytes | tokens: uint32 takes a flat array of 32-bit"));
}

TEST_CASE("a tokenizer of words has those of the files that are trained on", "[data]") {
  const TemporaryFolder folder;
  folder.write("train.txt", "the cat the dog the cat");
  folder.write("test.txt", "the bird sees the cat");
  data::TextFiles text = texts_of({folder / "train.txt"});
  text.test = Files{folder / "test.txt"};
  const data::TokenizerKind words = data::WordTokens{20, 2, true};
  const data::Skipped none;
  data::Opening opening{0, 1, {}, {}, nullptr, none};
  opening.tokenizer = words.operator->();
  const data::Source source = text.open(opening);
  REQUIRE(source.tokenizer != nullptr);
  CHECK(source.tokenizer->size() == 4);  // <pad>, <unk>, the, cat
  CHECK(source.encoding.tokenizer == data::hash_of(*source.tokenizer));
  CHECK(source.train->input().tokens == 4);
  std::int32_t input = 0, target = 0;
  source.test->read(0, reinterpret_cast<std::byte*>(&input), reinterpret_cast<std::byte*>(&target));
  CHECK((input == 2 && target == 1));
}

TEST_CASE("a tokenizer that is learned from texts is learned once", "[data]") {
  const TemporaryFolder folder;
  folder.write("a.txt", "the cat the dog the cat");
  data::TextFiles text = texts_of({folder / "a.txt"});
  KeptInMemory kept;
  const data::Skipped none;
  data::Opening opening{0, 1, {}, {}, nullptr, none};
  opening.token_cache = &kept;
  const auto opened = [&](const data::TokenizerKind& kind) {
    opening.tokenizer = kind.operator->();
    return data::hash_of(*text.open(opening).tokenizer);
  };
  const std::string first = opened(data::WordTokens{20, 2, true});
  CHECK(kept.writes == 2);  // and the tokens
  CHECK(opened(data::WordTokens{20, 2, true}) == first);
  CHECK(kept.writes == 2);
  CHECK(opened(data::WordTokens{20, 1, true}) != first);
  CHECK(kept.writes == 4);
  CHECK(opened(data::BytePairs{260, 2, tokenizers::Style::gpt2}) !=
        opened(data::BytePairs{259, 2, tokenizers::Style::gpt2}));
  folder.write("a.txt", "the cat the dog the dog");
  CHECK(opened(data::WordTokens{20, 2, true}) != first);
}
