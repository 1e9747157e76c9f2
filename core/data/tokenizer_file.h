// Tokenizers from files.
#pragma once

#include <memory>
#include <string>

#include "core/tokenizers/tokenizer.h"

namespace pmaptrain::data {

// The tokenizer in a file tokenizer.json. Throws Error (data), about that file.
std::shared_ptr<const tokenizers::Tokenizer> open_tokenizer(const std::string& path);

}  // namespace pmaptrain::data
