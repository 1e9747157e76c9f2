// A directory that is held open: what is done in it reaches it wherever it is moved, and never another one that takes
// its path.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/descriptor.h"
#include "core/run/files/file_writer.h"

namespace pmaptrain::train {

class Directory {
 public:
  Directory() = default;
  Directory(Descriptor fd, std::filesystem::path shown) : fd_(std::move(fd)), path_(std::move(shown)) {}

  // Opens one of this directory's, made first where `make` says so and there is none. Throws Error (failed).
  Directory enter(const std::string& name, bool make) const;

  int fd() const { return fd_.get(); }
  // As it was named when it was opened.
  const std::filesystem::path& path() const { return path_; }
  FilePlace place(const std::string& name) const { return {fd_.get(), name, path_ / name}; }

  // Whether there is an entry of this name, also a link that leads nowhere.
  bool has(const std::string& name) const;
  // The names of all entries, sorted. Throws Error (failed).
  std::vector<std::string> names() const;
  // Renames in one step; what is at `to` is replaced. Throws Error (failed).
  void rename(const std::string& from, const std::string& to) const;
  // Exchanges two entries in one step, so that a crash leaves one or the other; false where a file system cannot.
  bool exchange(const std::string& a, const std::string& b) const;
  // Makes `name` a link to `target`, in one step. Throws Error (failed).
  void link(const std::string& target, const std::string& name) const;
  // What the link `name` leads to; empty where there is no link.
  std::string target(const std::string& name) const;
  // Removes an entry with all that is in it, but not what a link leads to; nothing where there is none. Throws Error
  // (failed); the quiet one says whether all of it is gone.
  void remove(const std::string& name) const;
  bool remove_quietly(const std::string& name) const;
  // Flushes the entries, not what is in them, to the disk. Throws Error (failed).
  void flush() const { flush_to_disk(fd_.get(), path_); }

  // Whether its path leads to it. Where it does not: whether it was removed, and where it is else, as far as that can
  // be known.
  struct Whereabouts {
    bool in_place = true, removed = false;
    std::filesystem::path now;
  };
  Whereabouts whereabouts() const;

 private:
  Descriptor fd_;
  std::filesystem::path path_;
};

}  // namespace pmaptrain::train
