// The source of texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/opening.h"
#include "core/data/source.h"
#include "core/data/texts/token_store.h"

namespace pmaptrain::tokenizers {
class Tokenizer;
}  // namespace pmaptrain::tokenizers

namespace pmaptrain::data {

// Windows of `length` tokens; the targets are the tokens that follow.
struct TextFiles {
  using Files = std::vector<std::string>;  // absolute paths of files and folders, which follow one another
  Files train;
  std::optional<Files> validation, test;
  Tokens tokens = Tokens::bytes;
  std::int64_t length = 64;
  std::optional<ColumnName> end_token;  // follows each document: an id, or a token's text
  std::optional<std::string> field;     // of JSON lines; none: "text"

  // The id of end_token; none without one. Throws Error (usage) for a text that is no token of the tokenizer, or
  // without one, and for an id that is too large.
  std::optional<std::int64_t> end_id(const tokenizers::Tokenizer* tokenizer) const;

  static Declaration<TextFiles> declaration();
  Source open(const Opening& opening) const;
};

}  // namespace pmaptrain::data
