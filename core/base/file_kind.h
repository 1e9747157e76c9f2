// What a file is, by its first bytes: formats that are often given in place of another one.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace pmaptrain {

struct FileKind {
  std::string_view name;  // "a Parquet file"
  std::string_view help;  // what makes of it what was expected; empty where that depends on what it holds
};

// Of as many bytes of the beginning as there are; about 300 tell all of them. Empty for text, and for what is not
// known.
std::optional<FileKind> kind_of_file(std::span<const std::byte> beginning);

// The file that stands for another one in a checkout without Git LFS or git-annex; empty for any other one.
std::optional<FileKind> pointer_kind(std::span<const std::byte> beginning);

}  // namespace pmaptrain
