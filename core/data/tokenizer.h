// What turns texts into tokens: the kinds of data.tokenizer.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/declare/kind.h"
#include "core/tokenizers/style.h"

namespace pmaptrain::tokenizers {
class Tokenizer;

constexpr std::array<declare::Word<Style>, 3> words_of(declare::Tag<Style>) {
  return {{{"llama3", Style::llama3}, {"gpt2", Style::gpt2}, {"llama2", Style::llama2}}};
}
}  // namespace pmaptrain::tokenizers

namespace pmaptrain::data {

using tokenizers::Tokenizer;

// Calls `take` for each document of the files that are trained on.
using Documents = std::function<void(const std::function<void(std::string_view document)>& take)>;

// The interface of all kinds.
class TokenizerRules {
 public:
  virtual ~TokenizerRules() = default;
  virtual const std::string& name() const = 0;
  // The tokenizer; null where each byte is a token. Throws Error (data), about the file that has it.
  virtual std::shared_ptr<const Tokenizer> open(const Documents& training) const = 0;
  // The options of one that is learned from the texts; else empty.
  virtual std::string learned_as() const = 0;
};

template <class Kind>
class HeldTokenizer final : public declare::Holds<TokenizerRules, Kind> {
 public:
  using declare::Holds<TokenizerRules, Kind>::Holds;
  std::shared_ptr<const Tokenizer> open(const Documents& training) const override { return this->kind_.open(training); }
  std::string learned_as() const override {
    if constexpr (requires(const Kind& kind) { kind.learned_as(); }) return this->kind_.learned_as();
    return {};
  }
};

// A tokenizer of any kind; without one, texts are bytes.
struct TokenizerKind : declare::Any<TokenizerRules, HeldTokenizer> {
  using Any::Any;
};
const std::vector<declare::AnyKind>& family(declare::Tag<TokenizerKind>);

// Each byte is a token.
struct ByteTokens {
  static declare::Declaration<ByteTokens> declaration();
  std::shared_ptr<const Tokenizer> open(const Documents&) const { return nullptr; }
};

// A token for each word that is frequent in the texts that are trained on.
struct WordTokens {
  std::int64_t size = 20000, min_count = 2;
  bool lowercase = true;

  std::string learned_as() const;
  static declare::Declaration<WordTokens> declaration();
  std::shared_ptr<const Tokenizer> open(const Documents& training) const;
};

// Pairs of bytes, or of characters, that are frequent in the texts that are trained on.
struct BytePairs {
  std::int64_t size = 8192, min_count = 2;
  tokenizers::Style style = tokenizers::Style::llama3;

  std::string learned_as() const;
  static declare::Declaration<BytePairs> declaration();
  std::shared_ptr<const Tokenizer> open(const Documents& training) const;
};

// A file tokenizer.json.
struct TokenizerFile {
  std::string path;

  static declare::Declaration<TokenizerFile> declaration();
  std::shared_ptr<const Tokenizer> open(const Documents&) const;
};

// The tokenizer in a file tokenizer.json. Throws Error (data), about that file.
std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& path);

// Its tokenizer.json; none for null.
std::optional<std::string> text_of(const Tokenizer* tokenizer);

// What a tokenizer is, as 16 hexadecimal digits: equal ones make the same ids.
std::string hash_of(const Tokenizer& tokenizer);

}  // namespace pmaptrain::data
