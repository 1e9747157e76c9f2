#include "core/base/wildcards.h"

#include <cstddef>

#include "core/base/text.h"

namespace pmaptrain {

std::optional<std::vector<std::string_view>> wildcards(std::string_view pattern, std::string_view text) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) {
    return pattern == text ? std::optional(std::vector<std::string_view>()) : std::nullopt;
  }
  if (!text.starts_with(pattern.substr(0, star)) || !matches(pattern, text)) return std::nullopt;
  text.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  for (std::size_t length = 0; length <= text.size(); ++length) {
    auto rest = wildcards(pattern, text.substr(length));
    if (!rest) continue;
    rest->insert(rest->begin(), text.substr(0, length));
    return rest;
  }
  return std::nullopt;
}

std::string with_wildcards(std::string_view pattern, const std::vector<std::string_view>& texts) {
  std::string text;
  std::size_t next = 0;
  for (const char c : pattern) {
    if (c == '*') {
      text += texts[next++];
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace pmaptrain
