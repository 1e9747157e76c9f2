// A cache on disk for what a GPU's platform finds out once: compiled code, and which of several kernels is the fastest.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace pmaptrain::gpu {

// Keeps a file for each key in $XDG_CACHE_HOME/pmaptrain, by default ~/.cache/pmaptrain. Files are replaced atomically
// and have checksums; a damaged file counts as missing. If the folder cannot be read or written, nothing is kept. All
// functions are thread-safe.
class DiskCache {
 public:
  // `kind` ends the names of the files, for example "kernel". The folder is that of the environment.
  explicit DiskCache(std::string kind);

  std::optional<std::string> find(std::string_view key) const;
  void store(std::string_view key, std::string_view content) const noexcept;

 private:
  std::filesystem::path file_of(std::string_view key) const;

  std::filesystem::path folder_;  // empty if nothing is kept
  std::string kind_;
};

// A key of several texts. Different texts have different keys.
template <class... Texts>
std::string key_of_texts(const Texts&... texts) {
  std::string key;
  for (const std::string_view text : {std::string_view(texts)...}) {
    key += std::to_string(text.size()) + ':';
    key += text;
  }
  return key;
}

}  // namespace pmaptrain::gpu
