// Files that tests write and read.
#pragma once

#include <filesystem>
#include <string>

namespace pmaptrain::test {

// A folder of its own, removed at the end. It is in memory where there is /dev/shm: a run flushes its checkpoints to
// the disk, and waiting for that would take most of the tests' time.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  // Writes a file of the folder; its path.
  std::string write(const std::string& name, const std::string& bytes) const;

 private:
  std::filesystem::path path_;
};

void write_text(const std::filesystem::path& path, const std::string& bytes);
std::string read_text(const std::filesystem::path& path);
// Every entry below a folder, sorted, one a line: its path there and, of a file, its bytes; of a link, its target.
std::string listing(const std::filesystem::path& folder);
// A library that is built into the folder of the test program: its path.
std::string beside_the_tests(const std::string& library);

}  // namespace pmaptrain::test
