#include "core/data/tokenizer.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <utility>

#include "core/data/file.h"
#include "core/tokenizers/file.h"
#include "core/tokenizers/tokenizer.h"
#include "core/tokenizers/train.h"

namespace pmaptrain::data {

using declare::Declaration;

const std::vector<declare::AnyKind>& family(declare::Tag<TokenizerKind>) {
  static const auto all = declare::kinds_of<TokenizerKind, ByteTokens, WordTokens, BytePairs, TokenizerFile>();
  return all;
}

Declaration<ByteTokens> ByteTokens::declaration() {
  return declare::kind<ByteTokens>({.path = "bytes", .meaning = "Each byte is a token, 0 to 255.", .example = "bytes"});
}

Declaration<WordTokens> WordTokens::declaration() {
  return declare::kind<WordTokens>(
      {.path = "words",
       .meaning =
           "Each word is a token: letters, digits and '_' side by side, or other characters side by side but for "
           "white space. The words are those of the train files, before data.validation takes its share; 0 is "
           "padding, 1 a word that is none of them.",
       .example = "tokenizer: {words: {size: 20000, min_count: 2, lowercase: true}}"},
      declare::field(&WordTokens::size, {.path = "size",
                                         .low = 3,
                                         .high = 1e6,
                                         .meaning = "The number of tokens at most: the most frequent words.",
                                         .example = "size: 20000"}),
      declare::field(
          &WordTokens::min_count,
          {.path = "min_count", .low = 1, .meaning = "How often a word occurs at least.", .example = "min_count: 2"}),
      declare::field(&WordTokens::lowercase, {.path = "lowercase",
                                              .meaning = "Whether capital letters are read as small ones.",
                                              .example = "lowercase: false"}));
}

Declaration<BytePairs> BytePairs::declaration() {
  return declare::kind<BytePairs>(
      {.path = "bpe",
       .meaning =
           "Byte pairs: of the tokens of the train files, at first single bytes, the most frequent pair becomes a "
           "token, again and again, before data.validation takes its share. As `pmaptrain tokenize train`.",
       .example = "tokenizer: {bpe: {size: 1024}}"},
      declare::field(&BytePairs::size, {.path = "size",
                                        .low = 257,
                                        .high = 1e6,
                                        .meaning = "The number of tokens; fewer where no pair is frequent enough.",
                                        .example = "size: 8192"}),
      declare::field(
          &BytePairs::min_count,
          {.path = "min_count", .low = 1, .meaning = "How often a pair occurs at least.", .example = "min_count: 2"}),
      declare::field(&BytePairs::style,
                     {.path = "style",
                      .meaning = "Whose way of dividing texts it has. llama3, gpt2: their regular expressions, and "
                                 "bytes; their token 0 is <|endoftext|>. llama2: characters, and bytes for rare ones.",
                      .example = "style: gpt2"}));
}

Declaration<TokenizerFile> TokenizerFile::declaration() {
  return declare::kind_of_value<TokenizerFile>(declare::field(
      &TokenizerFile::path,
      {.path = "file",
       .is_path = true,
       .meaning = "A file tokenizer.json of byte pairs: `pmaptrain tokenize train` writes one, and the package "
                  "tokenizers. The run keeps a copy.",
       .example = "tokenizer: {file: tokenizer.json}"}));
}

std::shared_ptr<const Tokenizer> WordTokens::open(const Documents& training) const {
  tokenizers::WordTrainer trainer(lowercase);
  training([&](std::string_view document) { trainer.add(document); });
  return std::make_shared<const Tokenizer>(trainer.finish(size, min_count));
}

std::shared_ptr<const Tokenizer> BytePairs::open(const Documents& training) const {
  tokenizers::BpeTrainer trainer({style, size, tokenizers::default_special_tokens(style), min_count});
  training([&](std::string_view document) { trainer.add(document); });
  return std::make_shared<const Tokenizer>(trainer.finish());
}

std::string WordTokens::learned_as() const { return fmt::format("words {} {} {}", size, min_count, lowercase); }

std::string BytePairs::learned_as() const {
  return fmt::format("bpe {} {} {}", size, min_count, declare::word_of(style));
}

std::shared_ptr<const Tokenizer> TokenizerFile::open(const Documents&) const { return open_tokenizer(path); }

std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& path) {
  return about_file(path, [&] {
    const Bytes bytes = map_file(path);
    tokenizers::Definition definition = tokenizers::read_definition(as_chars(bytes.view()), path);
    bytes.check_intact();
    return std::make_shared<const Tokenizer>(std::move(definition));
  });
}

std::optional<std::string> text_of(const Tokenizer* tokenizer) {
  if (tokenizer == nullptr) return std::nullopt;
  return tokenizers::definition_text(tokenizer->definition());
}

std::string hash_of(const Tokenizer& tokenizer) {
  const std::string text = tokenizers::definition_text(tokenizer.definition());
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

}  // namespace pmaptrain::data
