// The files of a text: folders, gzip, JSON lines, and the documents in them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/sources/token_store.h"
#include "core/spec/spec.h"

namespace pmaptrain::data {

struct TextFile {
  std::string path;
  std::uint64_t size = 0;  // in the file system
  bool is_gzip = false;    // .gz
  bool is_lines = false;   // .jsonl or .ndjson, perhaps with .gz
  bool is_named = true;    // in the config; else it was found in a folder

  // Whether the bytes of the file are its tokens.
  bool is_plain() const { return !is_gzip && !is_lines; }
};

// The files at `paths`, in this order. In place of a folder stand the regular files below it, in the order of their
// paths, without empty ones, links, run folders, and names that begin with a dot. Throws Error (data) for a path that
// is not there, a folder that cannot be read, and one without such files.
std::vector<TextFile> list_text_files(const spec::TextFiles::Files& paths);

// Appends the documents of a file, each with the end token after it: the file, or of JSON lines each line. A file of
// 16-bit tokens that ends with the end token already gets no other one. With `maps`, a plain file stays mapped. Throws
// Error (data) for what is no gzip or no JSON, for half a token, and for a file without text that the config names.
void read_text_file(const TextFile& file, const spec::TextFiles& text, bool maps, TokenStore& to);

// A note on files that are archives, or compressed otherwise than by gzip; empty without any. Their bytes are taken as
// they are.
std::string note_of_archives(const std::vector<TextFile>& files);

// A note on files that are in both lists, by whatever path; empty without any. What is measured on them is measured on
// text that was trained on. `held_out` is the second list's name, such as "validation".
std::string note_of_shared(const std::vector<TextFile>& train, const std::vector<TextFile>& others,
                           std::string_view held_out);

}  // namespace pmaptrain::data
