// Tokenizers that are made from texts: byte pairs by their counts, and words.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/tokenizers/definition.h"
#include "core/tokenizers/split.h"
#include "core/tokenizers/style.h"

namespace pmaptrain::tokenizers {

struct Training {
  Style style = Style::llama3;
  std::int64_t size = 8192;                 // of the vocabulary
  std::vector<std::string> special_tokens;  // the first ids; of llama2 after <unk>, <s>, </s>
  std::int64_t min_count = 2;               // of a pair of tokens, to be merged
};

// How often pieces occur in texts.
class PieceCounts {
 public:
  explicit PieceCounts(Definition definition);
  void add(std::string_view document);

  std::uint64_t pieces() const { return pieces_; }
  const std::unordered_map<std::string, std::uint64_t>& counts() const { return counts_; }

 private:
  Definition definition_;
  Splitter splitter_;
  std::string well_formed_, normalized_, key_;
  std::unordered_map<std::string, std::uint64_t> counts_;
  std::uint64_t pieces_ = 0;
};

class BpeTrainer {
 public:
  explicit BpeTrainer(Training training);
  void add(std::string_view document) { counts_.add(document); }
  // The tokenizer; of fewer tokens where no pair is left that is as frequent as asked for. Throws Error: usage if the
  // size has no room for single bytes or characters, data for texts without a piece.
  Definition finish() const;

 private:
  Training training_;
  PieceCounts counts_;
};

// A token for each word, at most `size` with <pad>, 0, and <unk>, 1: the most frequent ones that occur at least
// `min_count` times, of equal counts the first in the order of bytes.
class WordTrainer {
 public:
  explicit WordTrainer(bool lowercase);
  void add(std::string_view document) { counts_.add(document); }
  Definition finish(std::int64_t size, std::int64_t min_count) const;

 private:
  Definition definition_;
  PieceCounts counts_;
};

}  // namespace pmaptrain::tokenizers
