// How tokenizers that are made from texts divide these.
#pragma once

#include <string>
#include <vector>

namespace pmaptrain::tokenizers {

// Whose way it is. gpt2, llama3: bytes, by their regular expressions. llama2: characters, with U+2581 for a space, and
// the bytes of rare characters.
enum class Style { gpt2, llama3, llama2 };

// Those beside the ones that a style always has.
inline std::vector<std::string> default_special_tokens(Style style) {
  return style == Style::llama2 ? std::vector<std::string>() : std::vector<std::string>{"<|endoftext|>"};
}

}  // namespace pmaptrain::tokenizers
