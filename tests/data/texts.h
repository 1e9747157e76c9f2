// Texts as data sets, and the tokens in them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/data/texts/text.h"
#include "core/data/texts/text_source.h"

namespace pmaptrain::testing {

inline std::shared_ptr<const data::Dataset> text_of(const data::TextFiles& text) {
  std::vector<std::string> notes;
  return data::make_text(text, text.train, notes);
}
inline std::shared_ptr<const data::Dataset> text_of(const data::TextFiles::Files& files, data::Tokens tokens,
                                                    std::int64_t length) {
  return text_of(data::TextFiles{files, {}, {}, tokens, length, {}, {}});
}

// All tokens of a text, of at least two.
inline std::vector<std::int32_t> tokens_of(data::TextFiles text) {
  text.length = 1;
  const std::shared_ptr<const data::Dataset> windows = text_of(text);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(windows->size()) + 1);
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    windows->read(static_cast<std::int64_t>(i), reinterpret_cast<std::byte*>(&tokens[i]),
                  reinterpret_cast<std::byte*>(&tokens[i + 1]));
  }
  return tokens;
}

}  // namespace pmaptrain::testing
