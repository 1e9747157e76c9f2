#include "core/base/short_keys.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace pmaptrain {
namespace {

// Where the segment before the one at `begin` begins; 0 for the first.
std::size_t segment_before(std::string_view key, std::size_t begin) {
  if (begin < 2) return 0;
  const std::size_t dot = key.rfind('.', begin - 2);
  return dot == std::string_view::npos ? 0 : dot + 1;
}

std::size_t last_name(std::string_view key) {
  const std::size_t begin = segment_before(key, key.size() + 1);
  const bool is_number = key.find_first_not_of("0123456789", begin) == std::string_view::npos;
  return is_number ? segment_before(key, begin) : begin;
}

bool ends_in(std::string_view key, std::string_view suffix) {
  return key.ends_with(suffix) && (key.size() == suffix.size() || key[key.size() - suffix.size() - 1] == '.');
}

}  // namespace

std::vector<std::string> short_keys(const std::vector<std::string>& keys) {
  std::vector<std::string> names;
  for (const std::string& key : keys) {
    std::size_t begin = last_name(key);
    const auto is_of_another = [&](const std::string& other) {
      return other != key && ends_in(other, std::string_view(key).substr(begin));
    };
    while (begin > 0 && std::any_of(keys.begin(), keys.end(), is_of_another)) begin = segment_before(key, begin);
    names.push_back(key.substr(begin));
  }
  return names;
}

}  // namespace pmaptrain
