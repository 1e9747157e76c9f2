#include "core/data/texts/token_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "core/base/machine.h"
#include "core/base/text.h"

namespace pmaptrain::data {
namespace {

// Each block is as large as all before it, so that little is reserved for a short text, up to a size at which the
// number of blocks does not matter.
constexpr std::size_t least_block = std::size_t{1} << 16, most_block = std::size_t{64} << 20;

}  // namespace

std::size_t bytes_of(Tokens tokens) { return tokens == Tokens::bytes ? 1 : tokens == Tokens::uint16 ? 2 : 4; }

void decode_tokens(std::span<const std::byte> bytes, Tokens tokens, std::byte* to) {
  const std::size_t width = bytes_of(tokens);
  for (std::size_t at = 0; at + width <= bytes.size(); at += width, to += sizeof(std::int32_t)) {
    auto token = std::to_integer<std::uint32_t>(bytes[at]);
    for (std::size_t k = 1; k < width; ++k) token |= std::to_integer<std::uint32_t>(bytes[at + k]) << (8 * k);
    std::memcpy(to, &token, sizeof(token));
  }
}

std::vector<std::byte> encode_tokens(std::span<const std::uint32_t> values, Tokens tokens) {
  const std::size_t width = bytes_of(tokens);
  std::vector<std::byte> bytes(values.size() * width);
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t k = 0; k < width; ++k) bytes[i * width + k] = static_cast<std::byte>(values[i] >> (8 * k) & 255U);
  }
  return bytes;
}

void TokenStore::map(Bytes file) {
  assert(file.size() % bytes_of(tokens_) == 0);
  is_open_ = false;
  const std::int64_t first = size();
  bytes_ += file.size();
  parts_.push_back({first, std::move(file)});
}

std::span<std::byte> TokenStore::room() {
  if (block_.view.size() - filled_ < bytes_of(tokens_)) {
    const std::size_t next = std::clamp(bytes_, least_block, most_block);
    demand_memory(
        next, fmt::format("the rest of {}, of which {} are read,", name_, human_bytes(bytes_)),
        "a single file that is neither compressed nor JSON lines needs none: it is read from the disk as it is "
        "used");
    block_ = allocate(next, name_);
    filled_ = 0;
    is_open_ = false;
  }
  return block_.view.subspan(filled_);
}

void TokenStore::take(std::size_t bytes) {
  if (bytes == 0) return;
  assert(bytes <= block_.view.size() - filled_);
  if (!is_open_) {
    begin_ = filled_;
    parts_.push_back({size(), {}});
    is_open_ = true;
  }
  filled_ += bytes;
  bytes_ += bytes;
  parts_.back().bytes = Bytes(block_.owner, block_.view.subspan(begin_, filled_ - begin_));
}

void TokenStore::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::span<std::byte> free = room();
    const std::size_t count = std::min(free.size(), bytes.size());
    std::memcpy(free.data(), bytes.data(), count);
    take(count);
    bytes = bytes.subspan(count);
  }
}

void TokenStore::append_token(std::int64_t token) {
  const auto value = static_cast<std::uint32_t>(token);
  append(encode_tokens(std::span(&value, 1), tokens_));
}

void TokenStore::read(std::int64_t first, std::int64_t count, std::byte* to) const {
  assert(first >= 0 && count >= 0 && first + count <= size());
  auto part = std::upper_bound(parts_.begin(), parts_.end(), first,
                               [](std::int64_t token, const Part& one) { return token < one.first; });
  const std::size_t width = bytes_of(tokens_);
  for (; count > 0; ++part) {
    const Part& from = *(part - 1);
    const auto skipped = static_cast<std::size_t>(first - from.first) * width;
    const std::size_t here = std::min(static_cast<std::size_t>(count) * width, from.bytes.size() - skipped);
    decode_tokens(from.bytes.view().subspan(skipped, here), tokens_, to);
    const auto read = static_cast<std::int64_t>(here / width);
    first += read;
    count -= read;
    to += here / width * sizeof(std::int32_t);
  }
}

void TokenStore::check_intact() const {
  for (const Part& part : parts_) part.bytes.check_intact();
}

void TokenStore::check_unchanged() const {
  for (const Part& part : parts_) part.bytes.check_unchanged();
}

}  // namespace pmaptrain::data
