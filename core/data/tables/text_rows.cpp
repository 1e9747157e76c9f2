#include "core/data/tables/text_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/tokenizers/characters.h"
#include "core/tokenizers/tokenizer.h"

namespace pmaptrain::data {
namespace {

class TextRows final : public Dataset {
 public:
  TextRows(std::shared_ptr<const TableDataset> table, TokenRows rows, const Csv& csv,
           std::shared_ptr<const tokenizers::Tokenizer> tokenizer, std::int64_t kinds)
      : table_(std::move(table)),
        rows_(std::move(rows)),
        tokenizer_(std::move(tokenizer)),
        input_{DType::i32, {csv.most_tokens()}, fmt::format("column '{}'", csv.text->text), {}, kinds} {}

  std::int64_t size() const override { return table_->size(); }
  Field input() const override { return input_; }
  Field target() const override { return table_->target(); }
  void read(std::int64_t index, std::byte* input, std::byte* target) const override {
    if (target != nullptr) table_->read(index, nullptr, target);
    if (input == nullptr) return;
    const std::size_t bytes = static_cast<std::size_t>(length(index)) * sizeof(std::int32_t);
    const std::size_t all = static_cast<std::size_t>(input_.shape.front()) * sizeof(std::int32_t);
    if (bytes > 0) std::memcpy(input, rows_.tokens.data() + begin(index), bytes);
    std::memset(input + bytes, 0, all - bytes);
  }
  bool rounds_targets() const override { return table_->rounds_targets(); }
  void read_exact_target(std::int64_t index, double* target) const override {
    table_->read_exact_target(index, target);
  }
  bool is_weighted() const override { return table_->is_weighted(); }
  float weight(std::int64_t index) const override { return table_->weight(index); }
  bool has_lengths() const override { return true; }
  std::int32_t length(std::int64_t index) const override {
    return static_cast<std::int32_t>(rows_.ends[static_cast<std::size_t>(index)] - begin(index));
  }
  std::string line_of(std::int64_t index) const override { return table_->line_of(index); }
  std::string text_of(std::int64_t index) const override {
    const std::span<const std::int32_t> own =
        std::span(rows_.tokens).subspan(begin(index), static_cast<std::size_t>(length(index)));
    if (tokenizer_ != nullptr) return tokenizer_->decode(std::vector<tokenizers::Id>(own.begin(), own.end()));
    std::string text, storage;
    for (const std::int32_t byte : own) text += static_cast<char>(byte);
    return std::string(tokenizers::well_formed(text, storage));
  }
  std::optional<std::pair<std::int64_t, std::int64_t>> label_range() const override { return table_->label_range(); }

 private:
  std::size_t begin(std::int64_t index) const {
    return index == 0 ? 0 : rows_.ends[static_cast<std::size_t>(index) - 1];
  }

  std::shared_ptr<const TableDataset> table_;
  TokenRows rows_;
  std::shared_ptr<const tokenizers::Tokenizer> tokenizer_;  // null: bytes
  Field input_;
};

}  // namespace

TokenRows tokens_of(const std::vector<std::string>& texts, const tokenizers::Tokenizer* tokenizer, const Csv& csv) {
  TokenRows rows;
  rows.ends.reserve(texts.size());
  std::optional<tokenizers::Encoder> encoder;
  std::vector<tokenizers::Id> before, after, ids;
  if (tokenizer != nullptr) {
    encoder.emplace(*tokenizer);
    if (csv.has_special_tokens()) before = tokenizer->definition().before;
    if (csv.has_special_tokens()) after = tokenizer->definition().after;
  }
  const auto room = csv.most_tokens() - std::ssize(before) - std::ssize(after);
  if (room < 1) {
    throw Error(ExitStatus::usage,
                Diagnostic{"config", csv.text->place,
                           fmt::format("max_length {} leaves no room beside {} of data.tokenizer", csv.most_tokens(),
                                       counted(std::ssize(before) + std::ssize(after), "special token")),
                           "a larger max_length, or special_tokens: false"});
  }
  for (const std::string& text : texts) {
    if (encoder) {
      ids = encoder->encode(text, false);
    } else {
      ids.assign(text.size(), 0);
      std::transform(text.begin(), text.end(), ids.begin(), [](char c) { return static_cast<unsigned char>(c); });
    }
    const std::ptrdiff_t size = std::ssize(ids), taken = std::min<std::ptrdiff_t>(size, room);
    rows.longest = std::max<std::int64_t>(rows.longest, size + std::ssize(before) + std::ssize(after));
    if (taken < size) ++rows.cut;
    if (size == 0) ++rows.empty;
    const auto first = ids.begin() + (csv.keeps_end() ? size - taken : 0);
    rows.tokens.insert(rows.tokens.end(), before.begin(), before.end());
    rows.tokens.insert(rows.tokens.end(), first, first + taken);
    rows.tokens.insert(rows.tokens.end(), after.begin(), after.end());
    rows.ends.push_back(rows.tokens.size());
  }
  return rows;
}

std::shared_ptr<const Dataset> with_tokens(std::shared_ptr<const TableDataset> table, TokenRows rows, const Csv& csv,
                                           std::shared_ptr<const tokenizers::Tokenizer> tokenizer) {
  const std::int64_t kinds = tokenizer != nullptr ? tokenizer->size() : 256;
  return std::make_shared<TextRows>(std::move(table), std::move(rows), csv, std::move(tokenizer), kinds);
}

std::string note_on_lengths(const TokenRows& rows, const Csv& csv, std::string_view split) {
  const auto texts = std::ssize(rows.ends);
  std::string note =
      fmt::format("{}: the longest of {} has {}", split, counted(texts, "text"), counted(rows.longest, "token"));
  if (rows.empty > 0) note += fmt::format("; {} {} empty", with_commas(rows.empty), rows.empty == 1 ? "is" : "are");
  if (rows.cut == 0) return note;
  return note + fmt::format("; {} {} max_length and {} {}", with_commas(rows.cut),
                            rows.cut == 1 ? "is longer than" : "are longer than",
                            rows.cut == 1 ? "loses its" : "lose their", csv.keeps_end() ? "beginning" : "end");
}

}  // namespace pmaptrain::data
