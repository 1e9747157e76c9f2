#include "core/data/texts/encode.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>

#include "core/base/error.h"
#include "core/tokenizers/tokenizer.h"

namespace pmaptrain::data {
namespace {

// Ids as they are stored, little-endian.
void store(std::span<const tokenizers::Id> ids, Tokens tokens, std::vector<std::byte>& bytes) {
  const std::size_t width = bytes_of(tokens);
  bytes.resize(ids.size() * width);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    for (std::size_t k = 0; k < width; ++k) bytes[i * width + k] = static_cast<std::byte>(ids[i] >> (8 * k) & 255U);
  }
}

std::uint64_t encode_all(const std::vector<TextFile>& files, const std::optional<std::string>& field,
                         const Tokenizer& tokenizer, std::optional<tokenizers::Id> end, Tokens tokens,
                         const TokenCache::Append& append) {
  tokenizers::Encoder encoder(tokenizer);
  std::vector<std::byte> bytes;
  std::uint64_t size = 0;
  const auto take = [&](std::span<const tokenizers::Id> ids) {
    store(ids, tokens, bytes);
    append(bytes);
  };
  for (const TextFile& file : files) {
    if (file.size == 0) continue;
    about_file(file.path, [&] {
      each_document(file, field, [&](std::string_view document) {
        size += document.size();
        encoder.encode(document, take);
        if (end) take(std::span(&*end, 1));
      });
    });
  }
  return size;
}

// What the tokens of files depend on: their bytes, how they are read, and the tokenizer.
std::string name_of(const std::vector<TextFile>& files, const std::optional<std::string>& field,
                    const Tokenizer& tokenizer, std::optional<tokenizers::Id> end) {
  XXH3_state_t* const state = XXH3_createState();
  const std::shared_ptr<void> freed(state, [](void* p) { XXH3_freeState(static_cast<XXH3_state_t*>(p)); });
  XXH3_128bits_reset(state);
  const auto add = [&](std::string_view text) { XXH3_128bits_update(state, text.data(), text.size()); };
  add(fmt::format("1 {} {} {}", hash_of(tokenizer), end ? std::to_string(*end) : "none", field.value_or("text")));
  for (const TextFile& file : files) {
    if (file.size == 0) continue;
    about_file(file.path, [&] {
      const Bytes bytes = map_file(file.path);
      add(fmt::format(" {} {} {} ", bytes.size(), file.is_gzip, file.is_lines));
      add(as_chars(bytes.view()));
      bytes.check_intact();
    });
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

// Kept tokens end with the size of their text.
constexpr std::size_t trailer = sizeof(std::uint64_t);

std::uint64_t text_size_of(const Bytes& kept) { return read_little(kept.view(), kept.size() - trailer, trailer); }

}  // namespace

Tokens tokens_for(std::int64_t vocabulary) { return vocabulary <= 65536 ? Tokens::uint16 : Tokens::uint32; }

std::uint64_t encode_files(const std::vector<TextFile>& files, const std::optional<std::string>& field,
                           const Tokenizer& tokenizer, std::optional<tokenizers::Id> end, TokenCache* cache,
                           TokenStore& to) {
  if (cache == nullptr) {
    return encode_all(files, field, tokenizer, end, to.tokens(),
                      [&](std::span<const std::byte> bytes) { to.append(bytes); });
  }
  const std::string name = name_of(files, field, tokenizer, end);
  std::optional<Bytes> kept = cache->find(name);
  const bool is_whole = kept && kept->size() >= trailer && (kept->size() - trailer) % bytes_of(to.tokens()) == 0;
  if (!is_whole) {
    kept = cache->keep(name, [&](const TokenCache::Append& append) {
      const std::uint64_t size = encode_all(files, field, tokenizer, end, to.tokens(), append);
      std::array<std::byte, trailer> bytes = {};
      for (std::size_t k = 0; k < trailer; ++k) bytes[k] = static_cast<std::byte>(size >> (8 * k) & 255U);
      append(bytes);
    });
  }
  if (kept->size() > trailer) to.map(kept->slice(0, kept->size() - trailer));
  return text_size_of(*kept);
}

}  // namespace pmaptrain::data
