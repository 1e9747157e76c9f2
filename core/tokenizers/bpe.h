// Byte pair encoding: a piece of text as characters, or bytes, whose neighbours are merged in the order of the merges.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/tokenizers/definition.h"

namespace pmaptrain::tokenizers {

// What a pair of tokens is merged to. Of all pairs of a piece the one with the lowest rank is merged first.
class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank = none;
    Id to = 0;
  };
  static constexpr std::uint32_t none = 0xffffffff;

  MergeTable() = default;
  explicit MergeTable(std::size_t merges);
  void add(Id left, Id right, Merge merge);
  Merge find(Id left, Id right) const;  // rank == none: they are not merged

 private:
  struct Slot {
    std::uint64_t pair = 0;
    Merge merge;
  };
  std::size_t slot_of(std::uint64_t pair) const;
  std::vector<Slot> slots_;  // a power of two, at most half of them used
};

class Bpe {
 public:
  // `byte_level`: pieces are bytes, and tokens are stored as byte_level_text().
  Bpe(const Model& model, bool byte_level);

  // Memory of one thread.
  struct Scratch {
    struct Symbol {
      Id id;
      std::uint32_t before, after;
    };
    std::vector<Id> ids;
    std::vector<std::uint32_t> ranks;
    std::vector<Symbol> symbols;
  };
  // Appends the tokens of a piece. Throws Error (data) for a piece of 2^32 characters or more.
  void tokenize(std::string_view piece, Scratch& scratch, std::vector<Id>& to) const;

  // Whether no token has `marker` after another character, and `marker` is a token: then pieces that are cut before
  // each of its runs have the tokens of the whole.
  bool may_be_cut_before(std::string_view marker) const;

 private:
  std::optional<Id> find(std::string_view token) const;
  void take_symbols(std::string_view piece, std::vector<Id>& to) const;
  bool take_fallback(std::string_view symbol, std::vector<Id>& to) const;
  std::optional<Id> id_of_character(char32_t code) const;

  bool byte_level_, fuse_unk_, byte_fallback_, ignore_merges_;
  std::optional<Id> unknown_;
  std::vector<std::string> texts_;                     // of the tokens: bytes where byte_level
  std::unordered_map<std::string_view, Id> ids_;       // of texts_
  std::array<std::optional<Id>, 256> bytes_ = {};      // of each byte, where byte_level
  std::array<std::optional<Id>, 256> fallbacks_ = {};  // <0x00> to <0xFF>
  std::vector<Id> characters_;                         // by code; `no_id` for none
  MergeTable merges_;
};

}  // namespace pmaptrain::tokenizers
