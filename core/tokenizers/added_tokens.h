// Finds added tokens, such as <|endoftext|>, in a text.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tokenizers/definition.h"

namespace pmaptrain::tokenizers {

class AddedTokens {
 public:
  // Each is found as its content says; where `contents` is given, as that.
  void add(const AddedToken& token, std::string_view content);
  bool empty() const { return tokens_.empty(); }

  // Calls `take` for each part of a well-formed text in order: with the token, or without one for what is between. Of
  // tokens that begin at one place the longest is found.
  using Take = std::function<void(std::optional<Id> token, std::string_view part)>;
  void each(std::string_view text, const Take& take) const;

 private:
  struct Node {
    std::vector<std::pair<char, std::uint32_t>> next;
    std::int32_t token = -1;
  };
  struct Match {
    std::size_t begin = 0, end = 0;
    std::int32_t token = -1;
  };
  Match find(std::string_view text, std::size_t from) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_ = {Node{}};  // a trie
  std::array<bool, 256> first_bytes_ = {};
};

}  // namespace pmaptrain::tokenizers
