#include "core/tokenizers/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <queue>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/tokenizers/characters.h"

namespace pmaptrain::tokenizers {
namespace {

constexpr Id no_id = 0xffffffff;
constexpr std::uint64_t no_pair = 0xffffffffffffffff;

std::uint64_t pair_of(Id left, Id right) { return std::uint64_t{left} << 32 | right; }

std::string fallback_name(unsigned byte) { return fmt::format("<0x{:02X}>", byte); }

// Merges within `ids`, each time by looking for the lowest rank among all: for short pieces.
void merge_by_scans(const MergeTable& merges, std::vector<Id>& ids, std::vector<std::uint32_t>& ranks) {
  const auto rank_at = [&](std::size_t i) {
    return i + 1 < ids.size() ? merges.find(ids[i], ids[i + 1]).rank : MergeTable::none;
  };
  if (ids.size() < 2) return;
  ranks.resize(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) ranks[i] = rank_at(i);
  while (true) {
    const auto lowest = std::min_element(ranks.begin(), ranks.end());
    if (*lowest == MergeTable::none) return;
    const std::ptrdiff_t at = lowest - ranks.begin();
    const auto i = static_cast<std::size_t>(at);
    ids[i] = merges.find(ids[i], ids[i + 1]).to;
    ids.erase(ids.begin() + at + 1);
    ranks.erase(ranks.begin() + at + 1);
    ranks[i] = rank_at(i);
    if (i > 0) ranks[i - 1] = rank_at(i - 1);
  }
}

// The same with a queue of the merges that are possible: n log n for n symbols.
void merge_by_queue(const MergeTable& merges, std::vector<Bpe::Scratch::Symbol>& symbols) {
  using Symbol = Bpe::Scratch::Symbol;
  constexpr std::uint32_t end = 0xffffffff;
  struct Candidate {
    std::uint32_t rank, at;
    Id left, right;
    bool operator>(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
  };
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto offer = [&](std::uint32_t at) {
    const Symbol& left = symbols[at];
    if (left.after == end) return;
    const Id right = symbols[left.after].id;
    const std::uint32_t rank = merges.find(left.id, right).rank;
    if (rank != MergeTable::none) queue.push({rank, at, left.id, right});
  };
  const auto count = static_cast<std::uint32_t>(symbols.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    symbols[i].before = i == 0 ? end : i - 1;
    symbols[i].after = i + 1 == count ? end : i + 1;
  }
  for (std::uint32_t i = 0; i < count; ++i) offer(i);
  while (!queue.empty()) {
    const Candidate next = queue.top();
    queue.pop();
    Symbol& left = symbols[next.at];
    if (left.id != next.left || left.after == end || symbols[left.after].id != next.right) continue;
    Symbol& right = symbols[left.after];
    left.id = merges.find(left.id, right.id).to;
    right.id = no_id;
    left.after = right.after;
    if (left.after != end) symbols[left.after].before = next.at;
    offer(next.at);
    if (left.before != end) offer(left.before);
  }
}

}  // namespace

MergeTable::MergeTable(std::size_t merges)
    : slots_(std::bit_ceil(std::max<std::size_t>(2 * merges, 2)), {no_pair, {}}) {}

std::size_t MergeTable::slot_of(std::uint64_t pair) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = static_cast<std::size_t>((pair * 0x9e3779b97f4a7c15ULL) >> 20) & mask;
  while (slots_[at].pair != pair && slots_[at].pair != no_pair) at = (at + 1) & mask;
  return at;
}

void MergeTable::add(Id left, Id right, Merge merge) {
  const std::uint64_t pair = pair_of(left, right);
  slots_[slot_of(pair)] = {pair, merge};
}

MergeTable::Merge MergeTable::find(Id left, Id right) const {
  if (slots_.empty()) return {};
  const Slot& slot = slots_[slot_of(pair_of(left, right))];
  return slot.pair == no_pair ? Merge{} : slot.merge;
}

Bpe::Bpe(const Model& model, bool byte_level)
    : byte_level_(byte_level),
      fuse_unk_(model.fuse_unk),
      byte_fallback_(model.byte_fallback),
      ignore_merges_(model.ignore_merges),
      texts_(model.tokens),
      merges_(model.merges.size()) {
  if (model.unknown) {
    const auto found = std::find(texts_.begin(), texts_.end(), *model.unknown);
    if (found != texts_.end()) unknown_ = static_cast<Id>(found - texts_.begin());
  }
  for (unsigned byte = 0; byte_fallback_ && byte < 256; ++byte) {
    const auto found = std::find(texts_.begin(), texts_.end(), fallback_name(byte));
    if (found != texts_.end()) fallbacks_[byte] = static_cast<Id>(found - texts_.begin());
  }
  for (std::string& text : texts_) {
    // No piece has a token that is not bytes.
    if (byte_level_ && !text.empty()) text = bytes_of(text).value_or("");
  }
  ids_.reserve(texts_.size());
  for (Id id = 0; id < texts_.size(); ++id) {
    const std::string& text = texts_[id];
    if (text.empty()) continue;
    ids_.emplace(text, id);
    if (byte_level_) {
      if (text.size() == 1) bytes_[static_cast<unsigned char>(text[0])] = id;
      continue;
    }
    const Utf8Character first = utf8_at(text, 0);
    if (first.bytes != text.size()) continue;
    if (first.code >= characters_.size()) characters_.resize(first.code + 1, no_id);
    characters_[first.code] = id;
  }
  std::uint32_t rank = 0;
  std::unordered_map<std::string_view, Id> names;  // of the tokens as the file has them
  if (byte_level_) {
    names.reserve(model.tokens.size());
    for (Id id = 0; id < model.tokens.size(); ++id) names.emplace(model.tokens[id], id);
  }
  for (const auto& [left, right] : model.merges) {
    const std::string merged = model.tokens[left] + model.tokens[right];
    const auto& table = byte_level_ ? names : ids_;
    const auto found = table.find(merged);
    assert(found != table.end());  // the reader of the file checks it
    merges_.add(left, right, {rank++, found->second});
  }
}

std::optional<Id> Bpe::find(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Id> Bpe::id_of_character(char32_t code) const {
  if (code >= characters_.size() || characters_[code] == no_id) return std::nullopt;
  return characters_[code];
}

bool Bpe::take_fallback(std::string_view symbol, std::vector<Id>& to) const {
  if (!byte_fallback_) return false;
  const auto known = [&](char c) { return fallbacks_[static_cast<unsigned char>(c)].has_value(); };
  if (!std::all_of(symbol.begin(), symbol.end(), known)) return false;
  for (const char c : symbol) to.push_back(*fallbacks_[static_cast<unsigned char>(c)]);
  return true;
}

void Bpe::take_symbols(std::string_view piece, std::vector<Id>& to) const {
  bool is_unknown = false;  // whether an unknown token waits, which those that follow may join
  const auto end_unknown = [&] {
    if (is_unknown) to.push_back(*unknown_);
    is_unknown = false;
  };
  for (std::size_t at = 0; at < piece.size();) {
    std::optional<Id> id;
    std::size_t bytes = 1;
    if (byte_level_) {
      id = bytes_[static_cast<unsigned char>(piece[at])];
    } else {
      const Utf8Character character = utf8_at(piece, at);
      bytes = character.bytes;
      id = id_of_character(character.code);
    }
    const std::string_view symbol = piece.substr(at, bytes);
    at += bytes;
    if (id) {
      end_unknown();
      to.push_back(*id);
    } else if (!take_fallback(byte_level_ ? byte_level_text(symbol) : std::string(symbol), to) && unknown_) {
      if (!fuse_unk_) end_unknown();
      is_unknown = true;
    }
  }
  end_unknown();
}

void Bpe::tokenize(std::string_view piece, Scratch& scratch, std::vector<Id>& to) const {
  constexpr std::size_t longest_for_scans = 48;
  if (ignore_merges_) {
    if (const std::optional<Id> whole = find(piece)) {
      to.push_back(*whole);
      return;
    }
  }
  std::vector<Id>& ids = scratch.ids;
  ids.clear();
  take_symbols(piece, ids);
  if (ids.size() >= 0xffffffff) {
    fail_data("a text has 4,294,967,295 characters or more that nothing divides",
              "a tokenizer that divides the text before it merges, as GPT-2's does, takes texts of any size");
  }
  if (ids.size() <= longest_for_scans) {
    merge_by_scans(merges_, ids, scratch.ranks);
    to.insert(to.end(), ids.begin(), ids.end());
    return;
  }
  scratch.symbols.resize(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) scratch.symbols[i].id = ids[i];
  merge_by_queue(merges_, scratch.symbols);
  for (const Scratch::Symbol& symbol : scratch.symbols) {
    if (symbol.id != no_id) to.push_back(symbol.id);
  }
}

bool Bpe::may_be_cut_before(std::string_view marker) const {
  if (byte_level_ || ignore_merges_ || !find(marker)) return false;
  return std::none_of(texts_.begin(), texts_.end(), [&](const std::string& text) {
    std::size_t run = 0;  // where a run of markers would go on
    for (std::size_t at = text.find(marker); at != std::string::npos; at = text.find(marker, run)) {
      if (at != run) return true;
      run = at + marker.size();
    }
    return false;
  });
}

}  // namespace pmaptrain::tokenizers
