// Tokens of texts, kept beside run folders.
#pragma once

#include <filesystem>
#include <memory>

#include "core/data/texts/encode.h"

namespace pmaptrain::run {

// Keeps them in the folder .tokens of `folder`, which the first of them makes: the eight that were used last. Where
// nothing can be written there, they are made in memory.
std::shared_ptr<data::TokenCache> tokens_beside(const std::filesystem::path& folder);

}  // namespace pmaptrain::run
