// tokenizer.json: what this program reads of it, and what it writes.
#pragma once

#include <string>
#include <string_view>

#include "core/tokenizers/definition.h"

namespace pmaptrain::tokenizers {

// Throws Error (data) for a text that is no such file, that contradicts itself, or has parts that are not supported,
// which it names by their place in the file. `name` is that of the file, for messages.
Definition read_definition(std::string_view text, const std::string& name);

// Its inverse: a file that the package reads as well.
std::string definition_text(const Definition& definition);

}  // namespace pmaptrain::tokenizers
