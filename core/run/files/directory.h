// A directory that is held open. Operations in it reach the same directory after it was moved, and never another one
// that takes its path.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/descriptor.h"
#include "core/run/files/file_writer.h"

namespace pmaptrain::run {

// What Directory::link() has written: the target of a link, or the name in a small file; empty for anything else.
// `directory` is an open directory, or AT_FDCWD.
std::string link_target(int directory, const std::string& path);

class Directory {
 public:
  Directory() = default;
  Directory(Descriptor fd, std::filesystem::path shown) : fd_(std::move(fd)), path_(std::move(shown)) {}

  // Opens a subdirectory. With `make`, creates it first if it does not exist. Throws Error (failed).
  Directory open_subdirectory(const std::string& name, bool make) const;
  // Creates a subdirectory that gets another name once it is complete. Until then its name need not be on the disk, so
  // this does not wait for it. Throws Error (failed).
  Directory make_unfinished(const std::string& name) const;

  int fd() const { return fd_.get(); }
  // The path with which it was opened.
  const std::filesystem::path& path() const { return path_; }
  FilePlace place(const std::string& name) const { return {fd_.get(), name, path_ / name}; }

  // Whether there is an entry of this name. A link counts even if its target does not exist.
  bool has(const std::string& name) const;
  // The names of all entries, sorted. Throws Error (failed).
  std::vector<std::string> names() const;
  // Renames in one step, and replaces what is at `to`. Throws Error (failed).
  void rename(const std::string& from, const std::string& to) const;
  // Exchanges two entries in one step, so that a crash leaves both or neither exchanged; false if the file system
  // cannot.
  bool exchange(const std::string& a, const std::string& b) const;
  // Makes `name` a link to the entry `target`, in one step; where the file system has no symbolic links, a small file
  // with that name in it. Throws Error (failed).
  void link(const std::string& target, const std::string& name) const;
  // The target of the link `name`; empty if there is no such link.
  std::string target(const std::string& name) const { return link_target(fd_.get(), name); }
  // Removes an entry and everything in it, without following links. Does nothing if there is no such entry. Throws
  // Error (failed); the quiet version returns whether everything was removed.
  void remove(const std::string& name) const;
  bool remove_quietly(const std::string& name) const;
  // Flushes the directory's entries to the disk, but not the contents of its files. Throws Error (failed).
  void flush() const { flush_to_disk(fd_.get(), path_); }

  // Whether the directory's path still leads to it. If not: whether it was removed, and where it is now, if known.
  struct Whereabouts {
    bool in_place = true, removed = false;
    std::filesystem::path now;
  };
  Whereabouts whereabouts() const;

 private:
  Descriptor fd_;
  std::filesystem::path path_;
};

}  // namespace pmaptrain::run
