// What files and folders hold, as a hash: data is identified by it, wherever it lies and whenever it was written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/spec/load.h"

namespace pmaptrain::input {

struct Content {
  std::string key, path;              // of the config; neither is part of the identity
  std::int64_t bytes = 0;             // of a folder, those of all files
  std::optional<std::int64_t> files;  // of a folder
  // XXH3 of the bytes below 64 MiB, as 16 hexadecimal digits. Of more than that, of a sample: the first and the last
  // MiB, and 4,096 blocks of 4 KiB between them, which a fixed seed draws, one from each of as many equal parts. The
  // bytes of a folder are those of its files in the order of their names; these and their sizes are hashed too. So a
  // change of few bytes of a large file may be missed; `whole` misses none.
  std::string hash;
  std::string whole;  // of all bytes; empty where neither asked for nor the same
};
using Contents = std::vector<Content>;

// Reads a file, or all files below a folder but for those in run folders and names that begin with a dot. Throws Error
// (data). `whole`: all bytes are read.
Content content_of(const std::string& path, bool whole = false);

// Whether two contents are equal, as far as both are known.
bool is_same(const Content& a, const Content& b);

// What differs, in words, between the contents with which a run began and those of the same keys now; empty if nothing
// does: "'/data/x.npz' (data.source.npz.train) has 1,234 bytes with hash 0123456789abcdef; the run began with 1,230
// bytes with hash ...".
std::string difference(const Contents& run, const Contents& now);
// Whether all keys of `now` are in `run`.
bool has_all(const Contents& run, const Contents& now);
// Whether a config names files or folders at the keys that `run` has at or below `key`, and at no others there; false
// if there are none.
bool has_same_keys(const Contents& run, const spec::Loaded& loaded, std::string_view key);

// The files and folders that a config names below data.source, in the order of its keys. The folder of a source that
// says which files it has there (cifar10, fashion_mnist) stands for these alone. Throws Error (data), at the key.
Contents contents_of(const spec::Loaded& loaded, bool whole = false);
// Those of them that hold the split, or that it is taken from.
Contents contents_of(const spec::Loaded& loaded, const std::string& split, bool whole);

}  // namespace pmaptrain::input
