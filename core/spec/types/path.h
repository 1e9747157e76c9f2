// Files: one, a pair, a list, or arrays of an archive.
#pragma once

#include <string>
#include <vector>

#include "core/spec/types/takes.h"

namespace pmaptrain::spec {

// Two files: inputs and targets.
template <>
struct Takes<declare::FilePair> {
  static const Type type;
  static void store(const Node& value, declare::FilePair& out) { out = {value.items[0].text, value.items[1].text}; }
};

// A list of files; one file is a list of one.
template <>
struct Takes<std::vector<std::string>> {
  static const Type type;
  static void store(const Node& value, std::vector<std::string>& out);
};

// A file, or the names of two arrays.
template <>
struct Takes<declare::FileOrArrays> {
  static const Type type;
  static void store(const Node& value, declare::FileOrArrays& out);
};

}  // namespace pmaptrain::spec
