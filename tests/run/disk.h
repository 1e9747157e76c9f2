// A disk that remembers which of the recorded changes are durable, and what a process that is killed, or a power loss,
// leaves of the others.
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/run/test_file_systems.h"

namespace pmaptrain::testing {

// Files, links and directories by their path below a top, as text.
struct Node {
  enum class Kind : std::uint8_t { directory, file, link };
  Kind kind = Kind::directory;
  std::string text = {};  // of a file its bytes, of a link its target
  friend auto operator<=>(const Node&, const Node&) = default;
};
using Tree = std::map<std::string, Node>;

// What there is below a directory.
Tree tree_of(const std::filesystem::path& directory);

// A directory that has a tree, and then another one: what is equal in both is not written again.
class TreeOnDisk {
 public:
  explicit TreeOnDisk(std::filesystem::path directory);
  // As long as nobody else changes the directory.
  void become(const Tree& tree);

 private:
  std::filesystem::path directory_;
  Tree now_;
};
// In a directory that is made anew.
void write_tree(const Tree& tree, const std::filesystem::path& directory);

// Appends a change as those between which a kill may come: a write may be cut short, so it is two.
void add_torn(std::vector<Change>& changes, Change change);

// fsync of a file makes its bytes durable, fsync of a directory its entries, nothing else does. Of later writes to a
// file some arrive, in any order, torn, or as zeros; of later changes to a directory some do, in any order (a rename
// does as a whole). So a renamed file may be there without its bytes.
class Disk {
 public:
  using Random = std::mt19937;
  using Entries = std::map<std::string, Number>;

  Disk() { folders_[RecordingFileSystem::top]; }
  void apply(const Change& change);

  // Where a change that was applied is, below the top: the directory's entry, or the file.
  std::string path_of(const Change& change) const;
  // What there is: a process that is killed leaves this.
  Tree tree() const;
  // What a power loss now may leave.
  Tree after_loss(Random& random) const;
  // The durable entries of a directory below the top, where its path is durable too and still leads there.
  Entries durable(const std::vector<std::string>& path) const;

 private:
  struct File {
    std::string durable = {}, now = {};
    std::vector<Change> pending = {};  // writes and truncations since the last fsync

    void apply(const Change& change);
    void flush();
    std::string after_loss(Random& random) const;
  };
  // By name, what was there before and after; 0: nothing.
  using FolderChange = std::map<std::string, std::pair<Number, Number>>;
  struct Folder {
    Entries durable = {}, now = {};
    std::vector<FolderChange> pending = {};

    void apply(FolderChange change);
    void flush();
    Entries after_loss(Random& random) const;
  };
  void change_folder(Folder& folder, const Change& change);
  std::string path_of(Number number) const;  // of a file or directory that has a name
  void add_to(Tree& tree, Number folder, const std::string& path, Random* random) const;

  std::map<Number, File> files_;
  std::map<Number, Folder> folders_;
  std::map<Number, std::string> links_;
};

}  // namespace pmaptrain::testing
