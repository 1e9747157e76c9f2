#include "core/setup/initial/word_vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/tokenizers/tokenizer.h"

namespace pmaptrain::setup {
namespace {

using tokenizers::Id;

std::optional<float> number_of(std::string_view text) {
  float number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_one = error == std::errc() && end == text.data() + text.size();
  return is_one ? std::optional(number) : std::nullopt;
}

// The parts of a line between blanks.
std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t begin = line.find_first_not_of(" \t\r", at);
    if (begin == std::string_view::npos) break;
    at = std::min(line.find_first_of(" \t\r", begin), line.size());
    fields.push_back(line.substr(begin, at - begin));
  }
  return fields;
}

// "400000 300": how many words, of how many numbers.
bool is_header(const std::vector<std::string_view>& fields) {
  const auto is_whole = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  return fields.size() == 2 && is_whole(fields[0]) && is_whole(fields[1]);
}

// The table that the model reads tokens from.
const model::Parameter* table_of(const model::Model& model) {
  for (const model::Node* node : model.nodes()) {
    if (node->takes_tokens && !node->parameters.empty()) return &node->parameters.front();
  }
  return nullptr;
}

// The token that a word is; none if it is several, or unknown.
std::optional<Id> token_of(std::string_view word, tokenizers::Encoder& encoder, std::optional<Id> unknown) {
  for (const std::string& text : {std::string(word), " " + std::string(word)}) {
    const std::vector<Id> ids = encoder.encode(text, false);
    if (ids.size() == 1 && ids.front() != unknown) return ids.front();
  }
  return std::nullopt;
}

}  // namespace

bool has_word_vectors(const data::Bytes& file) {
  constexpr std::size_t looked_at = std::size_t{64} << 10;
  const std::string_view text = data::as_chars(file.view()).substr(0, looked_at);
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos || !is_utf8(text.substr(0, end))) return false;
  const std::vector<std::string_view> fields = fields_of(text.substr(0, end));
  const auto is_number = [](std::string_view field) { return number_of(field).has_value(); };
  return is_header(fields) || (fields.size() > 2 && std::all_of(fields.begin() + 1, fields.end(), is_number));
}

WordVectors read_word_vectors(const data::Bytes& file, const std::string& path, const tokenizers::Tokenizer* tokenizer,
                              const model::Model& model) {
  const model::Parameter* const table = table_of(model);
  if (tokenizer == nullptr || table == nullptr) {
    fail_data(fmt::format("'{}' has vectors of words, and {}", path,
                          table == nullptr ? "the model has no embedding layer" : "each byte is a token"),
              table == nullptr ? "begin the layers with embedding" : "data.tokenizer: words makes words the tokens");
  }
  const std::int64_t width = table->shape.back(), tokens = std::min(tokenizer->size(), table->shape.front());
  const std::string& unknown_name = tokenizer->definition().model.unknown.value_or("");
  const std::optional<Id> unknown = tokenizer->id_of(unknown_name);
  WordVectors found{table->name, {}};
  tokenizers::Encoder encoder(*tokenizer);
  const std::string_view text = data::as_chars(file.view());
  std::int64_t line_number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::vector<std::string_view> fields = fields_of(text.substr(begin, end - begin));
    begin = end + 1;
    if (++line_number == 1 && is_header(fields)) continue;
    if (fields.empty()) continue;
    const auto numbers = std::ssize(fields) - 1;
    // A few words have blanks in them, such as ". . .": the numbers are the last ones.
    if (numbers < width || (numbers > width && number_of(fields[static_cast<std::size_t>(numbers - width)]))) {
      fail_data(fmt::format("'{}', line {}: the vector of {} has {}, and the rows of '{}' have {}", path, line_number,
                            shown_name(fields.front()), counted(numbers, "number"), table->name, width),
                line_number <= 2 ? fmt::format("embedding: {{features: {}}}", numbers) : "the line is damaged");
    }
    const auto first = static_cast<std::size_t>(std::ssize(fields) - width);
    const std::string_view word(
        fields.front().data(),
        static_cast<std::size_t>(fields[first - 1].data() + fields[first - 1].size() - fields.front().data()));
    const std::optional<Id> token = token_of(word, encoder, unknown);
    if (!token || static_cast<std::int64_t>(*token) >= tokens || found.rows.contains(*token)) continue;
    std::vector<float>& row = found.rows[*token];
    for (std::size_t i = first; i < fields.size(); ++i) {
      const std::optional<float> number = number_of(fields[i]);
      if (!number || !std::isfinite(*number)) {
        fail_data(fmt::format("'{}', line {}: {} in the vector of {} is no finite number", path, line_number,
                              shown_name(fields[i]), shown_name(word)),
                  "the line is damaged");
      }
      row.push_back(*number);
    }
  }
  file.check_intact();
  if (found.rows.empty()) {
    fail_data(fmt::format("no word of '{}' is a token of data.tokenizer", path),
              "vectors of words are for data.tokenizer: words, in the language of the texts");
  }
  return found;
}

}  // namespace pmaptrain::setup
