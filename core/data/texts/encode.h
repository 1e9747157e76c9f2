// The tokens of texts: encoded, and kept for the next time.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/data/file.h"
#include "core/data/texts/text_files.h"
#include "core/data/texts/token_store.h"
#include "core/data/tokenizer.h"
#include "core/tokenizers/definition.h"

namespace pmaptrain::data {

// Keeps tokens that were encoded, by what they were made from.
class TokenCache {
 public:
  virtual ~TokenCache() = default;
  using Append = std::function<void(std::span<const std::byte> bytes)>;
  // The bytes that were kept under a name; none if there are none.
  virtual std::optional<Bytes> find(const std::string& name) = 0;
  // Keeps the bytes that `write` appends, and returns them; none if that is not possible. Of several processes that do
  // so at once, one writes, and all return its bytes.
  virtual std::optional<Bytes> keep(const std::string& name,
                                    const std::function<void(const Append& append)>& write) = 0;
};

// What files have, by which things that are made of them are kept. Files that are asked for again are not read again.
class TextHashes {
 public:
  const std::string& of(const std::vector<TextFile>& files);

 private:
  std::map<std::vector<std::string>, std::string> known_;  // by their paths
};

// How tokens of a vocabulary of so many are stored.
Tokens tokens_for(std::int64_t vocabulary);

// The tokenizer of a kind for these training files. One that is learned from them is learned once, with a cache.
std::shared_ptr<const Tokenizer> tokenizer_for(const TokenizerRules& kind, const std::vector<TextFile>& train,
                                               const std::optional<std::string>& field, TokenCache* cache,
                                               TextHashes& hashes);

// Appends the ids of the documents of files, each with the end token after it. With a cache they are encoded once, and
// are read from the disk. Memory holds a document as its file has it, and twice more where the tokenizer normalises it.
// Returns the number of bytes of the texts. Throws Error (data) as each_document() does.
std::uint64_t encode_files(const std::vector<TextFile>& files, const std::optional<std::string>& field,
                           const Tokenizer& tokenizer, std::optional<tokenizers::Id> end, TokenCache* cache,
                           TextHashes& hashes, TokenStore& to);

}  // namespace pmaptrain::data
