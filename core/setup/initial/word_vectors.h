// Vectors of words in a text file, as word2vec, GloVe and fastText write them: a word and its numbers in each line.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/data/file.h"
#include "core/model/model.h"
#include "core/tokenizers/definition.h"

namespace pmaptrain::tokenizers {
class Tokenizer;
}  // namespace pmaptrain::tokenizers

namespace pmaptrain::setup {

struct WordVectors {
  std::string parameter;                              // the table of tokens
  std::map<tokenizers::Id, std::vector<float>> rows;  // of the tokens that the file has
};

// Whether a file is one of such vectors, by its first line.
bool has_word_vectors(const data::Bytes& file);

// The vectors of the tokens of a tokenizer, of whose table they become rows: a word is a token if it is one by itself,
// or behind a space; of several words that are one token the first counts. A first line of two whole numbers, as
// word2vec writes it, is passed over. Throws Error (data), with the line: for numbers that are none, of another width
// than the table's, and where no word is a token; without a tokenizer, or a table.
WordVectors read_word_vectors(const data::Bytes& file, const std::string& path, const tokenizers::Tokenizer* tokenizer,
                              const model::Model& model);

}  // namespace pmaptrain::setup
