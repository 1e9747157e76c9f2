// The tokens of a text, in files that are mapped and in memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/data/file.h"
#include "core/declare/kind.h"

namespace pmaptrain::data {

// How a file stores tokens. uint16, uint32: in little-endian order.
enum class Tokens { bytes, uint16, uint32 };
constexpr std::array<declare::Word<Tokens>, 3> words_of(declare::Tag<Tokens>) {
  return {{{"bytes", Tokens::bytes}, {"uint16", Tokens::uint16}, {"uint32", Tokens::uint32}}};
}

// The bytes of a token.
std::size_t bytes_of(Tokens tokens);
// Decodes as many tokens as `bytes` has whole ones, and writes one i32 for each, which of 32-bit tokens past 2^31 - 1
// is negative.
void decode_tokens(std::span<const std::byte> bytes, Tokens tokens, std::byte* to);

// Their inverse: the bytes of tokens, each of which the type can hold.
std::vector<std::byte> encode_tokens(std::span<const std::uint32_t> values, Tokens tokens);

// A sequence of tokens that grows at its end. It is in parts, none of which moves, so memory holds no token twice.
class TokenStore {
 public:
  // `name` is for messages.
  TokenStore(Tokens tokens, std::string name) : tokens_(tokens), name_(std::move(name)) {}

  Tokens tokens() const { return tokens_; }
  std::int64_t size() const { return static_cast<std::int64_t>(bytes_ / bytes_of(tokens_)); }
  std::size_t bytes() const { return bytes_; }

  // Appends whole tokens: a file, which stays mapped, or a copy.
  void map(Bytes file);
  void append(std::span<const std::byte> bytes);
  // Memory at the end, at least a token, and how many bytes of it were filled. Before anything else is appended they
  // are whole tokens. Throws Error (resource) if there is too little memory.
  std::span<std::byte> room();
  void take(std::size_t bytes);
  void append_token(std::int64_t token);

  // Tokens `first` to first + count - 1, as i32.
  void read(std::int64_t first, std::int64_t count, std::byte* to) const;

  // As Bytes::check_intact() and check_unchanged(), of all files that are mapped.
  void check_intact() const;
  void check_unchanged() const;

 private:
  struct Part {
    std::int64_t first;  // token
    Bytes bytes;
  };

  Tokens tokens_;
  std::string name_;
  std::vector<Part> parts_;
  std::size_t bytes_ = 0;
  Memory block_;            // what follows the last part
  std::size_t filled_ = 0;  // bytes of the block
  std::size_t begin_ = 0;   // of the last part, in the block
  bool is_open_ = false;    // whether the last part grows with the block
};

}  // namespace pmaptrain::data
