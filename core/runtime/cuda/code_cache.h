// A cache of compiled kernels on disk, in $XDG_CACHE_HOME/pmaptrain, by default ~/.cache/pmaptrain. Files are replaced
// atomically and have checksums; find() ignores damaged files. No function throws: if the cache cannot be read or
// written, kernels are compiled again.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace pmaptrain::cuda {

class CodeCache {
 public:
  // If `folder` is empty, nothing is stored or found.
  explicit CodeCache(std::filesystem::path folder) : folder_(std::move(folder)) {}
  static CodeCache of_user();  // in the folder that the comment above names

  std::optional<std::string> find(const std::string& key) const;
  void store(const std::string& key, std::string_view code) const noexcept;

  // A hash of `parts`: the name of the cached code that they determine.
  static std::string key(std::initializer_list<std::string_view> parts);

 private:
  std::filesystem::path path_of(const std::string& key) const { return folder_ / (key + ".kernel"); }

  std::filesystem::path folder_;
};

}  // namespace pmaptrain::cuda
