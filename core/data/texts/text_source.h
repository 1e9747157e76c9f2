// The source of texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/opening.h"
#include "core/data/texts/token_store.h"

namespace pmaptrain::data {

// Windows of `length` tokens; the targets are the tokens that follow.
struct TextFiles {
  using Files = std::vector<std::string>;  // absolute paths of files and folders, which follow one another
  Files train;
  std::optional<Files> validation, test;
  Tokens tokens = Tokens::bytes;
  std::int64_t length = 64;
  std::optional<std::int64_t> end_token;  // follows each document
  std::optional<std::string> field;       // of JSON lines; none: "text"

  static Declaration<TextFiles> declaration();
  Source open(const Opening& opening) const;
};

}  // namespace pmaptrain::data
