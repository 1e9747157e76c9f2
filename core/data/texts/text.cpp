#include "core/data/texts/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/machine.h"
#include "core/base/text.h"
#include "core/data/file.h"
#include "core/data/texts/encode.h"
#include "core/data/texts/text_files.h"
#include "core/data/texts/token_store.h"
#include "core/tokenizers/tokenizer.h"

namespace pmaptrain::data {
namespace {

// A sequence of tokens, and where it is from.
struct Sequence {
  TokenStore tokens;
  std::string origin;  // for messages
  std::pair<std::int64_t, std::int64_t> range;
  Place place;
  std::int64_t kinds = 0;  // of tokens; 0 if that is unknown
};

class TextDataset : public Dataset {
 public:
  // Windows `first_window` to first_window + windows - 1, in the tokens up to `end`.
  TextDataset(std::shared_ptr<const Sequence> sequence, std::int64_t length, std::int64_t first_window,
              std::int64_t windows, std::int64_t end)
      : sequence_(std::move(sequence)), length_(length), first_window_(first_window), windows_(windows), end_(end) {
    assert(windows_ >= 1 && (first_window_ + windows_) * length_ < end_ && end_ <= sequence_->tokens.size());
  }

  std::int64_t size() const override { return windows_; }
  Field input() const override { return {DType::i32, {length_}, sequence_->origin, {}, sequence_->kinds}; }
  Field target() const override { return input(); }
  void read(std::int64_t index, std::byte* input, std::byte* target) const override {
    read_at(0, index, input, target);
  }

  std::int64_t offsets() const override { return length_; }
  void read_at(std::int64_t offset, std::int64_t index, std::byte* input, std::byte* target) const override {
    const std::int64_t first = std::min((first_window_ + index) * length_ + offset, end_ - 1 - length_);
    if (input != nullptr) sequence_->tokens.read(first, length_, input);
    sequence_->tokens.read(first + 1, length_, target);
  }

  // The windows of a part that is not the last have no token of the windows after it but one, their last target.
  std::shared_ptr<const Dataset> part(std::int64_t first, std::int64_t count) const override {
    const bool last = first + count == windows_;
    const std::int64_t begin = first_window_ + first, end = last ? end_ : (begin + count) * length_ + 1;
    return std::make_shared<TextDataset>(sequence_, length_, begin, count, end);
  }

  std::int64_t index_in_source(std::int64_t index) const override { return first_window_ + index; }
  std::optional<std::pair<std::int64_t, std::int64_t>> label_range() const override { return sequence_->range; }

  void check_intact() const override {
    at_place(sequence_->place, [&] { sequence_->tokens.check_intact(); });
  }
  void check_unchanged() const override {
    at_place(sequence_->place, [&] { sequence_->tokens.check_unchanged(); });
  }

 private:
  std::shared_ptr<const Sequence> sequence_;
  std::int64_t length_, first_window_, windows_;
  std::int64_t end_;  // of the tokens that this part may read
};

// Appends the files' documents. One plain file is mapped, and of several those that are large, as far as the number of
// open files permits; the others are copied into memory.
void read_all(const std::vector<TextFile>& files, const TextFiles& text, std::optional<std::int64_t> end,
              const std::string& origin, TokenStore& to) {
  constexpr std::uint64_t large = std::uint64_t{64} << 20;
  constexpr std::size_t most_mapped = 64;
  std::vector<bool> maps;
  std::size_t mapped = 0, copied = 0;
  for (const TextFile& file : files) {
    maps.push_back(file.is_plain() && (files.size() == 1 || (file.size >= large && mapped < most_mapped)));
    if (maps.back()) {
      ++mapped;
    } else {
      copied += file.size;
    }
  }
  demand_memory(copied, origin);
  for (std::size_t i = 0; i < files.size(); ++i)
    about_file(files[i].path, [&] { read_text_file(files[i], text, end, maps[i], to); });
}

void check_field(const std::vector<TextFile>& files, const TextFiles& text, const std::string& origin) {
  const bool has_lines = std::any_of(files.begin(), files.end(), [](const TextFile& file) { return file.is_lines; });
  if (!text.field || has_lines) return;
  fail_data(fmt::format("field is '{}', and {} {} no file of JSON lines", *text.field, origin,
                        files.size() == 1 ? "is" : "has"),
            "their names end in .jsonl or .ndjson, or in one of these and .gz: rename the file, or remove field");
}

std::pair<std::int64_t, std::int64_t> range_of(const TokenStore& tokens) {
  constexpr std::int64_t chunk = 4096;
  std::vector<std::int32_t> values(chunk);
  std::pair<std::int32_t, std::int32_t> range{std::numeric_limits<std::int32_t>::max(), 0};
  for (std::int64_t first = 0; first < tokens.size(); first += chunk) {
    const std::int64_t count = std::min(chunk, tokens.size() - first);
    tokens.read(first, count, reinterpret_cast<std::byte*>(values.data()));
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int32_t value = values[static_cast<std::size_t>(i)];
      range = {std::min(range.first, value), std::max(range.second, value)};
    }
  }
  return range;
}

// Tokens that a file has, and that a tokenizer is to decode.
void check_range(std::pair<std::int64_t, std::int64_t> range, const tokenizers::Tokenizer& tokenizer,
                 const std::string& origin) {
  if (range.first >= 0 && range.second < tokenizer.size()) return;
  fail_data(fmt::format("{} has the token {}, and data.tokenizer has tokens from 0 to {}", origin,
                        range.first < 0 ? static_cast<std::uint32_t>(range.first) : range.second, tokenizer.size() - 1),
            "the files were made by another tokenizer, or have tokens of another width (data.source.text.tokens)");
}

}  // namespace

std::shared_ptr<const Dataset> make_text(const TextFiles& text, const TextFiles::Files& paths,
                                         std::vector<std::string>& notes, const Place& place,
                                         const tokenizers::Tokenizer* tokenizer, TokenCache* cache,
                                         TextHashes* hashes) {
  const std::int64_t length = text.length;
  std::string origin = fmt::format("'{}'", paths.front());
  if (paths.size() > 1) origin += fmt::format(" and {} more", paths.size() - 1);
  std::vector<TextFile> files = list_text_files(paths);
  look_into(files, text, notes);
  check_field(files, text, origin);
  const bool encodes = tokenizer != nullptr && text.tokens == Tokens::bytes;
  const Tokens stored = encodes ? tokens_for(tokenizer->size()) : text.tokens;
  auto sequence = std::make_shared<Sequence>(Sequence{TokenStore(stored, origin), origin, {}, place});
  if (tokenizer != nullptr) {
    sequence->kinds = tokenizer->size();
  } else if (text.tokens == Tokens::bytes) {
    sequence->kinds = 256;
  }
  const std::optional<std::int64_t> end = text.end_id(tokenizer);
  if (encodes) {
    TextHashes own;
    const std::uint64_t bytes = encode_files(files, text.field, *tokenizer,
                                             end ? std::optional(static_cast<tokenizers::Id>(*end)) : std::nullopt,
                                             cache, hashes != nullptr ? *hashes : own, sequence->tokens);
    const std::int64_t count = std::max<std::int64_t>(sequence->tokens.size(), 1);
    notes.push_back(fmt::format("{} has {} of {}: {:.3g} bytes a token", origin, counted(count, "token"),
                                human_bytes(bytes), static_cast<double>(bytes) / static_cast<double>(count)));
  } else {
    read_all(files, text, end, origin, sequence->tokens);
  }
  const std::int64_t tokens = sequence->tokens.size(), windows = (tokens - 1) / length;
  if (windows < 1) {
    fail_data(fmt::format("{} has {} {}, but an example of length {} takes {}: its own and the one that follows",
                          origin, tokens, tokens == 1 ? "token" : "tokens", length, length + 1),
              "use a smaller length, or more text");
  }
  sequence->range = range_of(sequence->tokens);
  if (tokenizer != nullptr) check_range(sequence->range, *tokenizer, origin);
  sequence->tokens.check_intact();
  return std::make_shared<TextDataset>(std::move(sequence), length, 0, windows, tokens);
}

}  // namespace pmaptrain::data
