// Tables of which one column has texts: their tokens are the inputs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/tables/csv.h"
#include "core/data/tables/csv_source.h"

namespace pmaptrain::data {

// The tokens of texts, each of at most a number of them.
struct TokenRows {
  std::vector<std::int32_t> tokens;              // of all texts, one after another
  std::vector<std::size_t> ends;                 // by text, where its tokens end
  std::int64_t longest = 0, cut = 0, empty = 0;  // tokens before they are cut; texts that are, or have none
};
// Without a tokenizer bytes are tokens. Throws Error (usage) if its special tokens leave no room.
TokenRows tokens_of(const std::vector<std::string>& texts, const tokenizers::Tokenizer* tokenizer, const Csv& csv);

// The rows of a table with the tokens of its texts: input i32[max_length], of which the first length() are a text's
// own.
std::shared_ptr<const Dataset> with_tokens(std::shared_ptr<const TableDataset> table, TokenRows rows, const Csv& csv,
                                           std::shared_ptr<const tokenizers::Tokenizer> tokenizer);

// Says how long the texts are, and how many lose tokens.
std::string note_on_lengths(const TokenRows& rows, const Csv& csv, std::string_view split);

}  // namespace pmaptrain::data
