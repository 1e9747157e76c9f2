// Tokens of texts, kept beside run folders.
#pragma once

#include <filesystem>
#include <memory>

#include "core/data/texts/encode.h"

namespace pmaptrain::run {

// Keeps them in the folder .tokens beside a run folder, which the first of them makes: the eight that were written
// last.
std::shared_ptr<data::TokenCache> tokens_beside(const std::filesystem::path& run_dir);

}  // namespace pmaptrain::run
