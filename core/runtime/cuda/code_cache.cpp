#include "core/runtime/cuda/code_cache.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace pmaptrain::cuda {
namespace {

std::string hex(XXH128_hash_t hash) { return fmt::format("{:016x}{:016x}", hash.high64, hash.low64); }

std::string checksum(std::string_view code) { return hex(XXH3_128bits(code.data(), code.size())); }

}  // namespace

CodeCache CodeCache::of_user() {
  const auto folder_in = [](const char* variable) {
    const char* const value = std::getenv(variable);
    const std::filesystem::path path = value == nullptr ? "" : value;
    // The XDG standard says that relative paths are ignored.
    return path.is_absolute() ? path : std::filesystem::path();
  };
  if (const auto cache = folder_in("XDG_CACHE_HOME"); !cache.empty()) return CodeCache(cache / "pmaptrain");
  if (const auto home = folder_in("HOME"); !home.empty()) return CodeCache(home / ".cache" / "pmaptrain");
  return CodeCache({});
}

std::optional<std::string> CodeCache::find(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  std::ifstream stream(path_of(key), std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(stream), {}};
  const std::size_t head = 32;
  if (content.size() <= head || checksum(std::string_view(content).substr(head)) != content.substr(0, head)) {
    return std::nullopt;
  }
  return content.substr(head);
}

void CodeCache::store(const std::string& key, std::string_view code) const noexcept try {
  if (folder_.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(folder_, ignored);
  // Another thread or process may write the same file.
  static std::atomic<int> count = 0;
  const auto temporary = folder_ / fmt::format(".{}.{}-{}", key, getpid(), ++count);
  std::ofstream stream(temporary, std::ios::binary);
  stream << checksum(code) << code;
  stream.close();
  if (stream) {
    std::filesystem::rename(temporary, path_of(key), ignored);
  }
  if (!stream || ignored) std::filesystem::remove(temporary, ignored);
} catch (const std::exception&) {
  return;  // a missing entry is compiled again next time
}

std::string CodeCache::key(std::initializer_list<std::string_view> parts) {
  std::string all;
  for (const std::string_view part : parts) all += fmt::format("{}:{}", part.size(), part);
  return checksum(all);
}

}  // namespace pmaptrain::cuda
