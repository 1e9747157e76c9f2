#include "core/tokenizers/added_tokens.h"

#include <algorithm>

#include "core/base/utf8.h"
#include "core/tokenizers/characters.h"

namespace pmaptrain::tokenizers {
namespace {

// The character that ends before `end`.
char32_t character_before(std::string_view text, std::size_t end) {
  std::size_t at = end - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80) --at;
  return utf8_at(text, at).code;
}

bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) {
  return (begin == 0 || !is_of_words(character_before(text, begin))) &&
         (end == text.size() || !is_of_words(utf8_at(text, end).code));
}

std::size_t without_spaces_at_end(std::string_view text, std::size_t end, std::size_t least) {
  while (end > least && is_space(character_before(text, end))) {
    do --end;
    while (end > least && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80);
  }
  return end;
}

std::size_t after_spaces(std::string_view text, std::size_t begin) {
  while (begin < text.size()) {
    const Utf8Character character = utf8_at(text, begin);
    if (!is_space(character.code)) break;
    begin += character.bytes;
  }
  return begin;
}

}  // namespace

void AddedTokens::add(const AddedToken& token, std::string_view content) {
  if (content.empty()) return;
  std::uint32_t node = 0;
  for (const char c : content) {
    auto& next = nodes_[node].next;
    const auto found = std::find_if(next.begin(), next.end(), [&](const auto& edge) { return edge.first == c; });
    if (found != next.end()) {
      node = found->second;
      continue;
    }
    const auto made = static_cast<std::uint32_t>(nodes_.size());
    next.emplace_back(c, made);
    nodes_.emplace_back();
    node = made;
  }
  if (nodes_[node].token < 0) nodes_[node].token = static_cast<std::int32_t>(tokens_.size());
  tokens_.push_back(token);
  first_bytes_[static_cast<unsigned char>(content.front())] = true;
}

AddedTokens::Match AddedTokens::find(std::string_view text, std::size_t from) const {
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    if (!first_bytes_[static_cast<unsigned char>(text[begin])]) continue;
    Match longest;
    std::uint32_t node = 0;
    for (std::size_t at = begin; at < text.size(); ++at) {
      const auto& next = nodes_[node].next;
      const auto found =
          std::find_if(next.begin(), next.end(), [&](const auto& edge) { return edge.first == text[at]; });
      if (found == next.end()) break;
      node = found->second;
      if (nodes_[node].token >= 0) longest = {begin, at + 1, nodes_[node].token};
    }
    if (longest.token >= 0) return longest;
  }
  return {text.size(), text.size(), -1};
}

void AddedTokens::each(std::string_view text, const Take& take) const {
  std::size_t taken = 0;
  for (Match match = find(text, 0); match.token >= 0; match = find(text, match.end)) {
    const AddedToken& token = tokens_[static_cast<std::size_t>(match.token)];
    if (token.single_word && !stands_alone(text, match.begin, match.end)) continue;
    const std::size_t begin =
        token.lstrip ? without_spaces_at_end(text, match.begin, std::min(taken, match.begin)) : match.begin;
    const std::size_t end = token.rstrip ? after_spaces(text, match.end) : match.end;
    if (begin > taken) take(std::nullopt, text.substr(taken, begin - taken));
    take(token.id, text.substr(begin, end - begin));
    taken = end;
  }
  if (taken < text.size()) take(std::nullopt, text.substr(taken));
}

}  // namespace pmaptrain::tokenizers
