// Windows of a text that a language model predicts, as texts with the loss of each token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/data/texts/token_store.h"

namespace pmaptrain::tokenizers {
class Tokenizer;
}  // namespace pmaptrain::tokenizers

namespace pmaptrain::report {

// A token that a model predicted.
struct ShownToken {
  std::string text;       // what it adds to the text; empty where a character goes on in the next one
  double loss = 0;        // in nats; NaN where it does not count
  std::string likeliest;  // the token with the largest probability; empty if that is this one
};

// Of each position of a window the token that follows, the one that the model holds most likely, and the loss.
struct PredictedTokens {
  std::vector<std::int32_t> targets, likeliest;  // likeliest: -1 where it is not known
  std::vector<double> losses;                    // in nats; NaN of targets that do not count

  // The losses of those that count: their sum, and how many they are.
  double sum() const;
  std::int64_t count() const;
};

// How tokens are read: by a tokenizer, or null, where they are bytes, or numbers alone.
class TokenReader {
 public:
  TokenReader(const tokenizers::Tokenizer* tokenizer, data::Tokens stored) : tokenizer_(tokenizer), stored_(stored) {}

  // The tokens of a window that follows `before`, which is a token. Of more than `most` those side by side with the
  // largest sum of losses.
  std::vector<ShownToken> show(std::int32_t before, const PredictedTokens& window, std::size_t most) const;
  // The bytes of the text of the targets that count, where a tokenizer joins byte pairs; else none.
  std::optional<std::int64_t> bytes(const PredictedTokens& window) const;

 private:
  std::string alone(std::int32_t token) const;

  const tokenizers::Tokenizer* tokenizer_;
  data::Tokens stored_;
};

}  // namespace pmaptrain::report
