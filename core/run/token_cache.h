// Tokens of texts, kept beside run folders.
#pragma once

#include <filesystem>
#include <memory>

#include "core/data/texts/encode.h"

namespace pmaptrain::run {

// Keeps them in the folder .tokens beside a run folder, which the first of them makes: the eight that were written
// last. Of several processes that need the same, one makes them, and the others wait for it, where the file system has
// locks. One that only reads keeps none.
enum class Keeps { yes, no };
std::shared_ptr<data::TokenCache> tokens_beside(const std::filesystem::path& run_dir, Keeps keeps = Keeps::yes);

}  // namespace pmaptrain::run
