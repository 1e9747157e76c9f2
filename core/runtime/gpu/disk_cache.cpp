#include "core/runtime/gpu/disk_cache.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <system_error>

namespace pmaptrain::gpu {
namespace {

std::filesystem::path cache_folder() {
  const auto folder_in = [](const char* variable) {
    const char* const value = std::getenv(variable);
    const std::filesystem::path path = value == nullptr ? "" : value;
    // The XDG standard says that relative paths are ignored.
    return path.is_absolute() ? path : std::filesystem::path();
  };
  if (const auto cache = folder_in("XDG_CACHE_HOME"); !cache.empty()) return cache / "pmaptrain";
  if (const auto home = folder_in("HOME"); !home.empty()) return home / ".cache" / "pmaptrain";
  return {};
}

std::string checksum(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

DiskCache::DiskCache(std::string kind) : folder_(cache_folder()), kind_(std::move(kind)) {}

std::filesystem::path DiskCache::file_of(std::string_view key) const {
  return folder_ / fmt::format("{}.{}", checksum(key), kind_);
}

std::optional<std::string> DiskCache::find(std::string_view key) const {
  if (folder_.empty()) return std::nullopt;
  std::ifstream stream(file_of(key), std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(stream), {}};
  const std::size_t head = 32;
  if (content.size() <= head || checksum(std::string_view(content).substr(head)) != content.substr(0, head)) {
    return std::nullopt;
  }
  return content.substr(head);
}

void DiskCache::store(std::string_view key, std::string_view content) const noexcept try {
  if (folder_.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(folder_, ignored);
  // Another thread or process may write the same file.
  static std::atomic<int> count = 0;
  const std::filesystem::path file = file_of(key);
  const auto temporary = folder_ / fmt::format(".{}.{}-{}", file.stem().string(), getpid(), ++count);
  std::ofstream stream(temporary, std::ios::binary);
  stream << checksum(content) << content;
  stream.close();
  if (stream) std::filesystem::rename(temporary, file, ignored);
  if (!stream || ignored) std::filesystem::remove(temporary, ignored);
} catch (const std::exception&) {
  return;  // what is missing is found out again next time
}

}  // namespace pmaptrain::gpu
