// Divides a text into pieces, by the regular expressions of known tokenizers and at spaces.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/tokenizers/definition.h"

namespace pmaptrain::tokenizers {

// An expression as tokenizer.json has it.
std::string_view text_of(Expression expression);

// The versions of the libraries that know the classes of characters: ids of rare characters may depend on them.
std::string unicode_versions();

// Finds the matches of an expression. A compiled expression is shared; a matcher is of one thread.
class Matcher {
 public:
  explicit Matcher(Expression expression);

  // Calls `take` for each piece of a well-formed text, in order.
  template <class Take>
  void each(std::string_view text, Take&& take) {
    std::string_view piece;
    for (std::size_t at = 0; next(text, at, piece);) take(piece);
  }

 private:
  // The first match from `at` on, which becomes its end.
  bool next(std::string_view text, std::size_t& at, std::string_view& piece);

  std::shared_ptr<void> code_, match_;
};

// Divides pieces by all steps of a tokenizer; of one thread.
class Splitter {
 public:
  // `cuts_at` as Metaspace divides, without a change: for models whose pieces may be cut so. Empty for none.
  Splitter(const std::vector<PreTokenizer>& steps, std::string cuts_at);

  using Take = std::function<void(std::string_view piece)>;
  // `is_first`: the text begins what is encoded.
  void each(std::string_view text, bool is_first, const Take& take);

 private:
  std::string_view change(std::size_t step, std::string_view text, bool is_first);
  void apply(std::size_t step, std::string_view text, bool is_first, const Take& take);

  std::vector<PreTokenizer> steps_;
  std::vector<std::unique_ptr<Matcher>> matchers_;  // of the steps that have an expression
  std::vector<std::string> changed_;                // by step, the text that it changes
  std::string cuts_at_;
};

}  // namespace pmaptrain::tokenizers
