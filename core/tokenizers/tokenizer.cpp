#include "core/tokenizers/tokenizer.h"

#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "core/base/utf8.h"
#include "core/tokenizers/characters.h"

namespace pmaptrain::tokenizers {
namespace {

// What models read in place of a space, where normalizers replace it.
std::string space_of(const std::vector<Normalizer>& steps) {
  for (const Normalizer& step : steps) {
    const auto* replace = std::get_if<Replace>(&step);
    if (replace != nullptr && replace->pattern == " ") return replace->content;
  }
  return {};
}

// Of `text`, whose first `beginning` bytes are from the first character of the original, the same after a step. What
// takes the place of several characters is from the last of them; what is put before a text, from its first one.
std::size_t beginning_after(const Normalizer& step, std::string_view text, std::size_t beginning) {
  if (beginning == 0) return 0;
  if (std::holds_alternative<Lowercase>(step)) return lower_case(text.substr(0, beginning)).size();
  if (const auto* prepend = std::get_if<Prepend>(&step)) return beginning + prepend->text.size();
  const auto* replace = std::get_if<Replace>(&step);
  if (replace == nullptr) {
    const std::string composed = nfc(text);
    return composed == text ? beginning : utf8_at(composed, 0).bytes;
  }
  text = text.substr(0, beginning + replace->pattern.size() - 1);
  std::size_t at = 0, after = 0;
  for (std::size_t found = text.find(replace->pattern); found < beginning; found = text.find(replace->pattern, at)) {
    after += found - at;
    at = found + replace->pattern.size();
    if (at > beginning) return after;
    after += replace->content.size();
  }
  return after + beginning - at;
}

}  // namespace

std::string normalized(std::string_view original, const std::vector<Normalizer>& steps, std::size_t* beginning) {
  std::string text(original);
  if (beginning != nullptr && !text.empty()) *beginning = utf8_at(text, 0).bytes;
  for (const Normalizer& step : steps) {
    if (beginning != nullptr && !text.empty()) *beginning = beginning_after(step, text, *beginning);
    if (std::holds_alternative<Nfc>(step)) text = nfc(text);
    if (std::holds_alternative<Lowercase>(step)) text = lower_case(text);
    if (const auto* prepend = std::get_if<Prepend>(&step); prepend != nullptr && !text.empty()) {
      text.insert(0, prepend->text);
    }
    if (const auto* replace = std::get_if<Replace>(&step)) text = replaced(text, replace->pattern, replace->content);
  }
  return text;
}

Tokenizer::Tokenizer(Definition definition) : definition_(std::move(definition)), tokens_(definition_.model.tokens) {
  if (definition_.model.is_bpe) {
    bpe_.emplace(definition_.model, definition_.is_byte_level());
    const std::string space = space_of(definition_.normalizers);
    if (definition_.pre_tokenizers.empty() && !space.empty() && bpe_->may_be_cut_before(space)) cuts_at_ = space;
  }
  for (Id id = 0; !definition_.model.is_bpe && id < definition_.model.tokens.size(); ++id) {
    if (const std::string& word = definition_.model.tokens[id]; !word.empty()) words_.emplace(word, id);
  }
  for (const AddedToken& added : definition_.added) {
    if (added.id >= tokens_.size()) tokens_.resize(added.id + std::size_t{1});
    tokens_[added.id] = added.content;
  }
  specials_.resize(tokens_.size());
  for (Id id = 0; id < tokens_.size(); ++id) {
    if (!tokens_[id].empty()) ids_.emplace(tokens_[id], id);
  }
  if (definition_.model.unknown) unknown_ = id_of(*definition_.model.unknown);
  // Of equal contents the special token is found.
  for (const bool special : {true, false}) {
    for (const AddedToken& added : definition_.added) {
      if (added.special != special) continue;
      if (special) specials_[added.id] = true;
      if (added.normalized) {
        normalized_.add(added, normalized(added.content, definition_.normalizers));
      } else {
        raw_.add(added, added.content);
      }
    }
  }
}

std::optional<Id> Tokenizer::id_of(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

// ---- Encoder ----

Encoder::Encoder(const Tokenizer& tokenizer)
    : tokenizer_(tokenizer), splitter_(tokenizer.definition_.pre_tokenizers, tokenizer.cuts_at_) {}

void Encoder::encode(std::string_view text, const Take& take) {
  constexpr std::size_t at_once = std::size_t{1} << 14;
  const std::string_view whole = well_formed(text, well_formed_);
  ids_.clear();
  const Take take_some = [&](std::span<const Id>) {
    if (ids_.size() < at_once) return;
    take(ids_);
    ids_.clear();
  };
  tokenizer_.raw_.each(whole, [&](std::optional<Id> token, std::string_view part) {
    if (token) {
      ids_.push_back(*token);
      take_some(ids_);
    } else {
      encode_part(part, part.data() == whole.data(), take_some);
    }
  });
  if (!ids_.empty()) take(ids_);
  ids_.clear();
}

std::vector<Id> Encoder::encode(std::string_view text, bool special_tokens) {
  std::vector<Id> all;
  if (special_tokens) all = tokenizer_.definition_.before;
  encode(text, [&](std::span<const Id> ids) { all.insert(all.end(), ids.begin(), ids.end()); });
  if (special_tokens) all.insert(all.end(), tokenizer_.definition_.after.begin(), tokenizer_.definition_.after.end());
  return all;
}

void Encoder::encode_part(std::string_view text, bool is_first, const Take& take) {
  std::size_t beginning = is_first ? 1 : 0;  // how many bytes are from the first character of the whole text
  if (!tokenizer_.definition_.normalizers.empty()) {
    normalized_ = normalized(text, tokenizer_.definition_.normalizers, is_first ? &beginning : nullptr);
    text = normalized_;
  }
  const char* const begin = text.data();
  tokenizer_.normalized_.each(text, [&](std::optional<Id> token, std::string_view part) {
    if (token) {
      ids_.push_back(*token);
      take(ids_);
      return;
    }
    const auto at = static_cast<std::size_t>(part.data() - begin);
    splitter_.each(part, at < beginning, [&](std::string_view piece) {
      encode_piece(piece);
      take(ids_);
    });
  });
}

void Encoder::encode_piece(std::string_view piece) {
  if (!tokenizer_.bpe_) {
    const auto word = tokenizer_.words_.find(piece);
    const bool is_known = word != tokenizer_.words_.end();
    if (is_known || tokenizer_.unknown_) ids_.push_back(is_known ? word->second : *tokenizer_.unknown_);
    return;
  }
  if (piece.size() > Cache::longest) {
    tokenizer_.bpe_->tokenize(piece, scratch_, ids_);
    return;
  }
  const std::uint64_t hash = XXH3_64bits(piece.data(), piece.size());
  const std::span<const Id> known = cache_.find(piece, hash);
  if (!known.empty()) {
    ids_.insert(ids_.end(), known.begin(), known.end());
    return;
  }
  const std::size_t before = ids_.size();
  tokenizer_.bpe_->tokenize(piece, scratch_, ids_);
  cache_.put(piece, hash, std::span(ids_).subspan(before));
}

// ---- its cache ----

Encoder::Cache::Cache() : slots_(std::size_t{1} << 16) {}

std::span<const Id> Encoder::Cache::find(std::string_view piece, std::uint64_t hash) const {
  const Slot& slot = slots_[hash % slots_.size()];
  const bool is_there = slot.hash == hash && std::string_view(texts_).substr(slot.text, slot.bytes) == piece;
  return is_there ? std::span(ids_).subspan(slot.ids, slot.count) : std::span<const Id>();
}

void Encoder::Cache::put(std::string_view piece, std::uint64_t hash, std::span<const Id> ids) {
  constexpr std::size_t most = std::size_t{16} << 20;
  if (texts_.size() + piece.size() > most) {
    slots_.assign(slots_.size(), {});
    texts_.clear();
    ids_.clear();
  }
  slots_[hash % slots_.size()] = {hash, static_cast<std::uint32_t>(texts_.size()),
                                  static_cast<std::uint32_t>(ids_.size()), static_cast<std::uint16_t>(piece.size()),
                                  static_cast<std::uint16_t>(ids.size())};
  texts_ += piece;
  ids_.insert(ids_.end(), ids.begin(), ids.end());
}

}  // namespace pmaptrain::tokenizers
