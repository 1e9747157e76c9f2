#include "core/data/texts/encode.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <memory>
#include <string_view>

#include "core/base/error.h"
#include "core/tokenizers/file.h"
#include "core/tokenizers/tokenizer.h"

namespace pmaptrain::data {
namespace {

std::uint64_t encode_all(const std::vector<TextFile>& files, const std::optional<std::string>& field,
                         const Tokenizer& tokenizer, std::optional<tokenizers::Id> end, Tokens tokens,
                         const TokenCache::Append& append) {
  tokenizers::Encoder encoder(tokenizer);
  std::uint64_t size = 0;
  const auto take = [&](std::span<const tokenizers::Id> ids) { append(encode_tokens(ids, tokens)); };
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

// A hash of texts.
class Hash {
 public:
  Hash() { XXH3_128bits_reset(state_.get()); }
  void add(std::string_view text) { XXH3_128bits_update(state_.get(), text.data(), text.size()); }
  std::string digits() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
  }

 private:
  std::shared_ptr<XXH3_state_t> state_{XXH3_createState(), [](XXH3_state_t* p) { XXH3_freeState(p); }};
};

// What is made of files depends on what they have, how they are read, and what makes it.
std::string name_of(const std::vector<TextFile>& files, const std::optional<std::string>& field,
                    const std::string& maker, TextHashes& hashes) {
  Hash hash;
  hash.add(
      fmt::format("3 {} {} {} {}", tokenizers::unicode_versions(), maker, field.value_or("text"), hashes.of(files)));
  return hash.digits();
}

// What stands behind kept tokens: what they are, how many bytes they have, the bytes of their texts, and a hash.
constexpr std::string_view magic = "pmaptok2";
constexpr std::size_t trailer = magic.size() + 3 * sizeof(std::uint64_t);

class Trailer {
 public:
  void take(std::span<const std::byte> bytes) {
    size_ += bytes.size();
    XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
  }
  std::vector<std::byte> finish(std::uint64_t text_size) const {
    std::vector<std::byte> bytes;
    for (const char c : magic) bytes.push_back(static_cast<std::byte>(c));
    for (const std::uint64_t number : {size_, text_size, XXH3_64bits_digest(state_.get())}) {
      for (std::size_t k = 0; k < sizeof(number); ++k)
        bytes.push_back(static_cast<std::byte>(number >> (8 * k) & 255U));
    }
    return bytes;
  }

 private:
  static std::shared_ptr<XXH3_state_t> make() {
    std::shared_ptr<XXH3_state_t> state(XXH3_createState(), [](XXH3_state_t* p) { XXH3_freeState(p); });
    XXH3_64bits_reset(state.get());
    return state;
  }
  std::shared_ptr<XXH3_state_t> state_ = make();
  std::uint64_t size_ = 0;
};

// The bytes of the texts of kept tokens; none for what is damaged.
std::optional<std::uint64_t> text_size_of(const Bytes& kept, Tokens tokens) {
  if (kept.size() < trailer) return std::nullopt;
  const std::size_t size = kept.size() - trailer;
  const std::span<const std::byte> end = kept.view().subspan(size);
  const auto number = [&](std::size_t i) { return read_little(end, magic.size() + 8 * i, 8); };
  const bool is_one = as_chars(end).starts_with(magic) && number(0) == size && size % bytes_of(tokens) == 0 &&
                      number(2) == XXH3_64bits(kept.data(), size);
  return is_one ? std::optional(number(1)) : std::nullopt;
}

}  // namespace

const std::string& TextHashes::of(const std::vector<TextFile>& files) {
  std::vector<std::string> paths;
  paths.reserve(files.size());
  for (const TextFile& file : files) paths.push_back(file.path);
  std::string& known = known_[paths];
  if (!known.empty()) return known;
  Hash hash;
  for (const TextFile& file : files) {
    if (file.size == 0) continue;
    about_file(file.path, [&] {
      const Bytes bytes = map_file(file.path);
      hash.add(fmt::format(" {} {} {} ", bytes.size(), file.is_gzip, file.is_lines));
      hash.add(as_chars(bytes.view()));
      bytes.check_intact();
    });
  }
  return known = hash.digits();
}

Tokens tokens_for(std::int64_t vocabulary) { return vocabulary <= 65536 ? Tokens::uint16 : Tokens::uint32; }

std::shared_ptr<const Tokenizer> tokenizer_for(const TokenizerRules& kind, const std::vector<TextFile>& train,
                                               const std::optional<std::string>& field, TokenCache* cache,
                                               TextHashes& hashes) {
  std::shared_ptr<const Tokenizer> made;
  const auto make = [&] {
    made = kind.open([&](const auto& take) {
      for (const TextFile& file : train) {
        if (file.size > 0) about_file(file.path, [&] { each_document(file, field, take); });
      }
    });
  };
  const auto read = [](const std::optional<Bytes>& kept) -> std::shared_ptr<const Tokenizer> {
    if (!kept) return nullptr;
    try {
      return std::make_shared<const Tokenizer>(
          tokenizers::read_definition(as_chars(kept->view()), "the kept tokenizer"));
    } catch (const Error&) {
      return nullptr;  // it is damaged, and made again
    }
  };
  const std::string options = kind.learned_as();
  if (cache != nullptr && !options.empty()) {
    const std::string name = name_of(train, field, options, hashes);
    if (std::shared_ptr<const Tokenizer> kept = read(cache->find(name))) return kept;
    const std::optional<Bytes> kept = cache->keep(name, [&](const TokenCache::Append& append) {
      make();
      const std::string text = text_of(made.get()).value_or("");
      append(std::as_bytes(std::span(text)));
    });
    if (made == nullptr) made = read(kept);  // of another process
  }
  if (made == nullptr) make();
  return made;
}

std::uint64_t encode_files(const std::vector<TextFile>& files, const std::optional<std::string>& field,
                           const Tokenizer& tokenizer, std::optional<tokenizers::Id> end, TokenCache* cache,
                           TextHashes& hashes, TokenStore& to) {
  const auto in_memory = [&] {
    return encode_all(files, field, tokenizer, end, to.tokens(),
                      [&](std::span<const std::byte> bytes) { to.append(bytes); });
  };
  if (cache == nullptr) return in_memory();
  const std::string name = name_of(
      files, field, fmt::format("tokens {} {}", hash_of(tokenizer), end ? std::to_string(*end) : "none"), hashes);
  std::optional<Bytes> kept = cache->find(name);
  std::optional<std::uint64_t> size = kept ? text_size_of(*kept, to.tokens()) : std::nullopt;
  if (!size) {
    kept = cache->keep(name, [&](const TokenCache::Append& append) {
      Trailer end_of_file;
      const auto take = [&](std::span<const std::byte> bytes) {
        end_of_file.take(bytes);
        append(bytes);
      };
      append(end_of_file.finish(encode_all(files, field, tokenizer, end, to.tokens(), take)));
    });
    size = kept ? text_size_of(*kept, to.tokens()) : std::nullopt;
  }
  if (!size) return in_memory();
  if (kept->size() > trailer) to.map(kept->slice(0, kept->size() - trailer));
  return *size;
}

}  // namespace pmaptrain::data
