// Compiled kernels on disk, so that each is compiled once on a machine: $XDG_CACHE_HOME/pmaptrain, by default
// ~/.cache/pmaptrain. A file is written whole and then renamed, and has a checksum: what is damaged is not found.
// Nothing here throws: without a cache kernels are compiled each time.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace pmaptrain::cuda {

class CodeCache {
 public:
  // An empty folder: nothing is found or kept.
  explicit CodeCache(std::filesystem::path folder) : folder_(std::move(folder)) {}
  static CodeCache of_user();

  std::optional<std::string> find(const std::string& key) const;
  void keep(const std::string& key, std::string_view code) const noexcept;

  // A file name for what all of `parts` together determine.
  static std::string key(std::initializer_list<std::string_view> parts);

 private:
  std::filesystem::path file(const std::string& key) const { return folder_ / (key + ".kernel"); }

  std::filesystem::path folder_;
};

}  // namespace pmaptrain::cuda
