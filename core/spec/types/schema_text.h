// Parts of a JSON Schema, as JSON.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/spec/types/key.h"

namespace pmaptrain::spec::schema {

// A string with its quotes.
std::string string(std::string_view text);
std::string any_of(const std::vector<std::string>& alternatives);
// A list with at least `least` and at most `most` items; 0: any number.
std::string list_of(const std::string& items, std::size_t least, std::size_t most = 0);
std::string pair_of(const std::string& first, const std::string& second);
std::string words(const std::vector<std::string>& all);
// A value that a config accepts as text, including 7 and true, which are then not read as a number or a truth value.
std::string text();
// The pattern of names of axes and layers.
inline constexpr std::string_view identifier = "^[A-Za-z_][A-Za-z0-9_]*$";
// An integer or a number in the range of the key.
std::string integer(const Key& key);
std::string number(const Key& key);

}  // namespace pmaptrain::spec::schema
