// A tokenizer: texts to ids, and back.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/tokenizers/added_tokens.h"
#include "core/tokenizers/bpe.h"
#include "core/tokenizers/definition.h"
#include "core/tokenizers/split.h"

namespace pmaptrain::tokenizers {

// A well-formed text after all changes. Sets `beginning`, if it is not null, to how many bytes at the beginning of the
// result are from the first character of a text that is not empty.
std::string normalized(std::string_view text, const std::vector<Normalizer>& steps, std::size_t* beginning = nullptr);

// Threads may share one; each encodes with an Encoder of its own.
class Tokenizer {
 public:
  // Precondition: a definition that read_definition() gives, or one made like it.
  explicit Tokenizer(Definition definition);
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  const Definition& definition() const { return definition_; }
  // One more than the largest id.
  std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }
  // The token with this id as the file has it; empty where there is none.
  const std::string& token(Id id) const { return tokens_[id]; }
  std::optional<Id> id_of(std::string_view token) const;
  bool is_special(Id id) const { return specials_[id]; }

  // The text of ids, each of which is less than size(). Special tokens are left out unless `with_special`.
  std::string decode(std::span<const Id> ids, bool with_special = false) const;

 private:
  friend class Encoder;
  Definition definition_;
  std::vector<std::string> tokens_;
  std::vector<bool> specials_;
  std::unordered_map<std::string_view, Id> ids_;  // of tokens_
  AddedTokens raw_, normalized_;                  // found before normalisation, and after it
  std::optional<Bpe> bpe_;
  std::unordered_map<std::string_view, Id> words_;  // without bpe_, those of the vocabulary
  std::optional<Id> unknown_;
  std::string cuts_at_;
};

// Encodes texts in one thread.
class Encoder {
 public:
  explicit Encoder(const Tokenizer& tokenizer);

  // Calls `take` with the ids of a text, some thousand at a time. Bytes that are no UTF-8 are read as U+FFFD. Memory
  // does not grow with a text that is UTF-8, where the tokenizer has no normalizer and divides texts.
  using Take = std::function<void(std::span<const Id> ids)>;
  void encode(std::string_view text, const Take& take);
  // All ids; with the special tokens that the tokenizer puts around a text, where asked for.
  std::vector<Id> encode(std::string_view text, bool special_tokens);

 private:
  void encode_part(std::string_view text, bool is_first, const Take& take);
  void encode_piece(std::string_view piece);

  // The tokens of pieces that were seen before. A slot has the last piece with its hash.
  class Cache {
   public:
    static constexpr std::size_t longest = 128;  // bytes of a piece that is kept
    Cache();
    std::span<const Id> find(std::string_view piece, std::uint64_t hash) const;  // empty: it is not there
    void put(std::string_view piece, std::uint64_t hash, std::span<const Id> ids);

   private:
    struct Slot {
      std::uint64_t hash = 0;
      std::uint32_t text = 0, ids = 0;  // where they begin
      std::uint16_t bytes = 0, count = 0;
    };
    std::vector<Slot> slots_;
    std::string texts_;
    std::vector<Id> ids_;
  };

  const Tokenizer& tokenizer_;
  Splitter splitter_;
  Cache cache_;
  Bpe::Scratch scratch_;
  std::vector<Id> ids_;  // that were not given away yet
  std::string well_formed_, normalized_;
};

// Decodes ids as they come, for a text that is shown while it grows.
class StreamDecoder {
 public:
  // The text goes on after `before`, whose own is not given again.
  explicit StreamDecoder(const Tokenizer& tokenizer, std::span<const Id> before = {});

  // What the id adds to the text: whole characters, perhaps none as long as a character is not complete.
  std::string next(Id id);
  // What is left at the end.
  std::string rest();

 private:
  bool is_byte(Id id) const;

  const Tokenizer& tokenizer_;
  std::vector<Id> ids_;       // from the last place on where the text was complete, and before it what decodes with it
  std::size_t complete_ = 0;  // of ids_
};

}  // namespace pmaptrain::tokenizers
