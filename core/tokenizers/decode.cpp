// Ids to text.
#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/tokenizers/characters.h"
#include "core/tokenizers/tokenizer.h"

namespace pmaptrain::tokenizers {
namespace {

using Tokens = std::vector<std::string>;
// The byte of a token <0x00> to <0xFF>.
std::optional<char> byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  unsigned byte = 0;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  if (error != std::errc() || end != token.data() + 5) return std::nullopt;
  return static_cast<char>(byte);
}

Tokens decoded(const ByteLevel&, const Tokens& tokens) {
  std::string bytes, storage;
  for (const std::string& token : tokens) bytes += bytes_of(token).value_or(token);
  return {std::string(well_formed(bytes, storage))};
}

Tokens decoded(const Metaspace& meta, Tokens tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool drops = i == 0 && meta.prepend != Metaspace::Scheme::never;
    tokens[i] = replaced(tokens[i], meta.replacement, drops ? "" : " ");
  }
  return tokens;
}

Tokens decoded(const Replace& replace, Tokens tokens) {
  for (std::string& token : tokens) token = replaced(token, replace.pattern, replace.content);
  return tokens;
}

// Bytes side by side are a text, or U+FFFD each.
Tokens decoded(const ByteFallback&, const Tokens& tokens) {
  Tokens texts;
  std::string bytes;
  const auto end_bytes = [&] {
    if (bytes.empty()) return;
    if (is_utf8(bytes)) {
      texts.push_back(bytes);
    } else {
      for (std::size_t i = 0; i < bytes.size(); ++i) texts.emplace_back(replacement);
    }
    bytes.clear();
  };
  for (const std::string& token : tokens) {
    if (const std::optional<char> byte = byte_of(token)) {
      bytes += *byte;
      continue;
    }
    end_bytes();
    texts.push_back(token);
  }
  end_bytes();
  return texts;
}

Tokens decoded(const Fuse&, const Tokens& tokens) { return {join(tokens, "")}; }

Tokens decoded(const Strip& strip, Tokens tokens) {
  for (std::string& token : tokens) {
    std::size_t begin = 0, end = token.size();
    const std::size_t width = strip.content.size();
    for (std::uint64_t i = 0; i < strip.start && end - begin >= width; ++i) {
      if (token.compare(begin, width, strip.content) != 0) break;
      begin += width;
    }
    for (std::uint64_t i = 0; i < strip.stop && end - begin >= width; ++i) {
      if (token.compare(end - width, width, strip.content) != 0) break;
      end -= width;
    }
    token = token.substr(begin, end - begin);
  }
  return tokens;
}

}  // namespace

std::string Tokenizer::decode(std::span<const Id> ids, bool with_special) const {
  Tokens tokens;
  for (const Id id : ids) {
    if (tokens_[id].empty() || (specials_[id] && !with_special)) continue;
    tokens.push_back(tokens_[id]);
  }
  if (definition_.decoders.empty()) return join(tokens, " ");
  for (const Decoder& decoder : definition_.decoders) {
    tokens = std::visit([&](const auto& step) { return decoded(step, std::move(tokens)); }, decoder);
  }
  return join(tokens, "");
}

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, std::span<const Id> before) : tokenizer_(tokenizer) {
  constexpr std::size_t window = 16;  // tokens that may decode otherwise beside others
  std::size_t first = before.size() > window ? before.size() - window : 0;
  while (first > 0 && is_byte(before[first])) --first;
  ids_.assign(before.begin() + static_cast<std::ptrdiff_t>(first), before.end());
  complete_ = ids_.size();
}

// Bytes side by side are decoded together, so those that come may change what those before them are.
bool StreamDecoder::is_byte(Id id) const {
  const auto falls_back = [](const Decoder& step) { return std::holds_alternative<ByteFallback>(step); };
  const std::vector<Decoder>& steps = tokenizer_.definition().decoders;
  return std::any_of(steps.begin(), steps.end(), falls_back) && byte_of(tokenizer_.token(id)).has_value();
}

std::string StreamDecoder::next(Id id) {
  ids_.push_back(id);
  if (is_byte(id)) return {};
  const std::string before = tokenizer_.decode(std::span(ids_).first(complete_));
  std::string all = tokenizer_.decode(ids_);
  // The bytes of a character may be in several tokens.
  if (all.size() <= before.size() || all.ends_with(replacement) || !all.starts_with(before)) return {};
  std::string added = all.substr(before.size());
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(complete_));
  complete_ = ids_.size();
  return added;
}

std::string StreamDecoder::rest() {
  const std::string before = tokenizer_.decode(std::span(ids_).first(complete_));
  const std::string all = tokenizer_.decode(ids_);
  ids_.clear();
  complete_ = 0;
  // What was given may end within a run of bytes that reads otherwise as a whole.
  std::size_t common = 0;
  while (common < std::min(before.size(), all.size()) && before[common] == all[common]) ++common;
  while (common > 0 && common < all.size() && (static_cast<unsigned char>(all[common]) & 0xc0U) == 0x80) --common;
  return all.substr(common);
}

}  // namespace pmaptrain::tokenizers
