#include "tests/files.h"

#include <stdlib.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <stdexcept>
#include <vector>

namespace pmaptrain::test {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() {
  for (const fs::path& base : {fs::path("/dev/shm"), fs::temp_directory_path()}) {
    std::string name = (base / "pmaptrain-test-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) {
      path_ = name;
      return;
    }
  }
  throw std::runtime_error("no temporary folder can be made");
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& bytes) const {
  write_text(path_ / name, bytes);
  return *this / name;
}

void write_text(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::array<char, 1 << 14> part;
  while (file.read(part.data(), part.size()), file.gcount() > 0) {
    text.append(part.data(), static_cast<std::size_t>(file.gcount()));
  }
  return text;
}

std::string listing(const fs::path& folder) {
  std::vector<std::string> entries;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    std::string text = entry.path().lexically_relative(folder).string();
    if (entry.is_symlink()) {
      text += " -> " + fs::read_symlink(entry.path()).string();
    } else if (entry.is_regular_file()) {
      text += ": " + read_text(entry.path());
    }
    entries.push_back(std::move(text));
  }
  std::sort(entries.begin(), entries.end());
  std::string all;
  for (const std::string& entry : entries) all += entry + "\n";
  return all;
}

std::string beside_the_tests(const std::string& library) {
  return (fs::read_symlink("/proc/self/exe").parent_path() / library).string();
}

}  // namespace pmaptrain::test
