#include "core/tokenizers/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/tokenizers/characters.h"
#include "core/tokenizers/tokenizer.h"

namespace pmaptrain::tokenizers {
namespace {

constexpr std::string_view marker = "\xe2\x96\x81";  // U+2581

// The tokenizer without a vocabulary.
Definition definition_of(Style style) {
  Definition made;
  if (style == Style::llama2) {
    made.normalizers = {Prepend{std::string(marker)}, Replace{" ", std::string(marker)}};
    made.decoders = {Replace{std::string(marker), " "}, ByteFallback(), Fuse(), Strip{" ", 1, 0}};
    made.model.unknown = "<unk>";
    made.model.fuse_unk = made.model.byte_fallback = true;
    return made;
  }
  if (style == Style::llama3) made.pre_tokenizers.emplace_back(Split{Expression::llama3});
  made.pre_tokenizers.emplace_back(ByteLevel{false, style == Style::gpt2});
  made.decoders = {ByteLevel{}};
  return made;
}

// A piece as tokens, and how often it occurs.
struct Word {
  std::vector<Id> ids;
  std::int64_t count;
};

using Pair = std::pair<Id, Id>;
struct HashOfPair {
  std::size_t operator()(const Pair& pair) const {
    return static_cast<std::size_t>((std::uint64_t{pair.first} << 32 | pair.second) * 0x9e3779b97f4a7c15ULL);
  }
};

// Merges the pairs of words, the most frequent first; of equal counts the one with the lower ids. The order is that of
// the package's trainer, whose vocabulary is thus the same for the same pieces.
class Merger {
 public:
  Merger(std::vector<Word> words, Model& model) : words_(std::move(words)), model_(model) {
    for (Id id = 0; id < model_.tokens.size(); ++id) ids_.emplace(model_.tokens[id], id);
    std::unordered_map<Pair, std::vector<std::uint32_t>, HashOfPair> where;
    for (std::uint32_t i = 0; i < words_.size(); ++i) {
      const std::vector<Id>& ids = words_[i].ids;
      for (std::size_t k = 0; k + 1 < ids.size(); ++k) {
        const Pair pair{ids[k], ids[k + 1]};
        counts_[pair] += words_[i].count;
        note(where[pair], i);
      }
    }
    offer(where);
  }

  void run(std::int64_t size, std::int64_t min_count) {
    std::unordered_map<Pair, std::size_t, HashOfPair> last;  // merge of a pair
    std::vector<Pair> merges;
    while (std::ssize(model_.tokens) < size && !queue_.empty()) {
      Candidate next = queue_.top();
      queue_.pop();
      const std::int64_t count = counts_[next.pair];
      if (next.count != count) {
        next.count = count;
        queue_.push(std::move(next));
        continue;
      }
      if (count < 1 || count < min_count) break;
      const auto [left, right] = next.pair;
      std::string token = model_.tokens[left] + model_.tokens[right];
      const auto [found, is_new] = ids_.emplace(token, static_cast<Id>(model_.tokens.size()));
      if (is_new) model_.tokens.push_back(std::move(token));
      last[next.pair] = merges.size();
      merges.push_back(next.pair);
      merge(next, found->second);
    }
    for (std::size_t i = 0; i < merges.size(); ++i) {
      if (last[merges[i]] == i) model_.merges.push_back(merges[i]);
    }
  }

 private:
  struct Candidate {
    Pair pair;
    std::int64_t count;
    std::vector<std::uint32_t> words;  // that have the pair
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };
  using Where = std::unordered_map<Pair, std::vector<std::uint32_t>, HashOfPair>;

  static void note(std::vector<std::uint32_t>& words, std::uint32_t word) {
    if (words.empty() || words.back() != word) words.push_back(word);
  }

  void offer(Where& where) {
    for (auto& [pair, words] : where) {
      const std::int64_t count = counts_[pair];
      if (count > 0) queue_.push({pair, count, std::move(words)});
    }
  }

  void merge(const Candidate& candidate, Id merged) {
    const auto [left, right] = candidate.pair;
    Where where;
    for (const std::uint32_t word : candidate.words) {
      std::vector<Id>& ids = words_[word].ids;
      const std::int64_t count = words_[word].count;
      for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
        if (ids[i] != left || ids[i + 1] != right) continue;
        ids[i] = merged;
        ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        if (i > 0) {
          counts_[{ids[i - 1], left}] -= count;
          counts_[{ids[i - 1], merged}] += count;
          note(where[{ids[i - 1], merged}], word);
        }
        if (i + 1 < ids.size()) {
          counts_[{right, ids[i + 1]}] -= count;
          counts_[{merged, ids[i + 1]}] += count;
          note(where[{merged, ids[i + 1]}], word);
        }
      }
    }
    offer(where);
  }

  std::vector<Word> words_;
  Model& model_;
  std::unordered_map<std::string, Id> ids_;
  std::unordered_map<Pair, std::int64_t, HashOfPair> counts_;
  std::priority_queue<Candidate> queue_;
};

// The characters that make up 99.95 % of the texts, but at most so many, in the order of their codes. Others are left
// to bytes.
std::vector<std::string> frequent_characters(const std::unordered_map<std::string, std::uint64_t>& pieces,
                                             std::int64_t most) {
  std::map<std::string, std::uint64_t> counts;
  std::uint64_t all = 0;
  for (const auto& [piece, count] : pieces) {
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t bytes = utf8_at(piece, at).bytes;
      counts[piece.substr(at, bytes)] += count;
      all += count;
      at += bytes;
    }
  }
  std::vector<std::pair<std::string, std::uint64_t>> by_count(counts.begin(), counts.end());
  std::stable_sort(by_count.begin(), by_count.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> kept;
  std::uint64_t taken = 0;
  for (const auto& [character, count] : by_count) {
    if (taken >= all - all / 2000 || std::ssize(kept) == most) break;
    kept.push_back(character);
    taken += count;
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

// The tokens that a piece begins as. Where it has a character without one, it ends, and another one begins.
std::vector<Word> words_of(const std::string& piece, std::int64_t count, bool is_bytes,
                           const std::unordered_map<std::string, Id>& ids) {
  std::vector<Word> words(1, Word{{}, count});
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t bytes = is_bytes ? 1 : utf8_at(piece, at).bytes;
    const std::string symbol = piece.substr(at, bytes);
    const auto found = ids.find(is_bytes ? byte_level_text(symbol) : symbol);
    if (found != ids.end()) {
      words.back().ids.push_back(found->second);
    } else if (!words.back().ids.empty()) {
      words.push_back({{}, count});
    }
    at += bytes;
  }
  return words;
}

}  // namespace

PieceCounts::PieceCounts(Definition definition)
    : definition_(std::move(definition)),
      splitter_(definition_.pre_tokenizers, definition_.pre_tokenizers.empty() ? std::string(marker) : std::string()) {}

void PieceCounts::add(std::string_view document) {
  std::string_view text = well_formed(document, well_formed_);
  if (!definition_.normalizers.empty()) {
    normalized_ = normalized(text, definition_.normalizers);
    text = normalized_;
  }
  const auto take = [&](std::string_view piece) {
    key_ = piece;
    ++counts_[key_];
    ++pieces_;
  };
  if (!definition_.pre_tokenizers.empty()) {
    splitter_.each(text, true, take);
    return;
  }
  // Of llama2 no token has a line end.
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    splitter_.each(text.substr(0, end), true, take);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

BpeTrainer::BpeTrainer(Training training) : training_(std::move(training)), counts_(definition_of(training_.style)) {}

Definition BpeTrainer::finish() const {
  Definition made = definition_of(training_.style);
  const bool is_bytes = made.is_byte_level();
  std::vector<std::string>& tokens = made.model.tokens;
  if (!is_bytes) tokens = {"<unk>", "<s>", "</s>"};
  for (const std::string& token : training_.special_tokens) {
    if (std::find(tokens.begin(), tokens.end(), token) == tokens.end()) tokens.push_back(token);
  }
  for (Id id = 0; id < tokens.size(); ++id) made.added.push_back({.id = id, .content = tokens[id], .special = true});
  if (!is_bytes) made.before = {1};
  std::vector<std::string> alphabet;
  if (is_bytes) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      alphabet.push_back(byte_level_text(std::string(1, static_cast<char>(byte))));
    }
    std::sort(alphabet.begin(), alphabet.end());  // UTF-8 has the order of the codes
  } else {
    for (unsigned byte = 0; byte < 256; ++byte) tokens.push_back(fmt::format("<0x{:02X}>", byte));
    alphabet = frequent_characters(counts_.counts(), training_.size / 2);
  }
  const std::size_t beside = tokens.size();
  std::unordered_map<std::string, Id> ids;
  for (const std::string& symbol : alphabet) {
    // A special token may be a character.
    const auto end = tokens.begin() + static_cast<std::ptrdiff_t>(beside),
               same = std::find(tokens.begin(), end, symbol);
    const bool is_there = same != end;
    ids.emplace(symbol, static_cast<Id>(is_there ? same - tokens.begin() : std::ssize(tokens)));
    if (!is_there) tokens.push_back(symbol);
  }
  if (counts_.pieces() == 0) fail_data("the texts are empty", "a tokenizer is trained on text");
  if (std::ssize(tokens) > training_.size) {
    // More characters are taken into a larger vocabulary, at most half of it.
    const std::size_t characters =
        is_bytes ? alphabet.size()
                 : frequent_characters(counts_.counts(), std::numeric_limits<std::int64_t>::max()).size();
    fail_usage(fmt::format("a vocabulary of {} has no room for the {} special tokens, bytes and characters",
                           training_.size, tokens.size()),
               fmt::format("size {} or more; 8192 is usual for a small model",
                           beside + std::min(characters, is_bytes ? characters : beside) + 1));
  }
  std::vector<Word> words;
  for (const auto& [piece, count] : counts_.counts()) {
    for (Word& word : words_of(piece, static_cast<std::int64_t>(count), is_bytes, ids)) {
      if (word.ids.size() > 1) words.push_back(std::move(word));
    }
  }
  Merger(std::move(words), made.model).run(training_.size, training_.min_count);
  return made;
}

// ---- words ----

namespace {

Definition words_definition(bool lowercase) {
  Definition made;
  if (lowercase) made.normalizers.emplace_back(Lowercase());
  made.pre_tokenizers.emplace_back(Split{Expression::words});
  made.model.is_bpe = false;
  made.model.tokens = {"<pad>", "<unk>"};
  made.model.unknown = "<unk>";
  made.added = {{.id = 0, .content = "<pad>", .special = true}, {.id = 1, .content = "<unk>"}};  // <unk> is shown
  return made;
}

}  // namespace

WordTrainer::WordTrainer(bool lowercase) : definition_(words_definition(lowercase)), counts_(definition_) {}

Definition WordTrainer::finish(std::int64_t size, std::int64_t min_count) const {
  std::vector<std::pair<std::string, std::uint64_t>> words;
  for (const auto& [word, count] : counts_.counts()) {
    if (count >= static_cast<std::uint64_t>(min_count)) words.emplace_back(word, count);
  }
  std::sort(words.begin(), words.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  Definition made = definition_;
  for (const auto& [word, count] : words) {
    if (std::ssize(made.model.tokens) == size) break;
    made.model.tokens.push_back(word);
  }
  return made;
}

}  // namespace pmaptrain::tokenizers
