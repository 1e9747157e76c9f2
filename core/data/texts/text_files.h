// The files of a text: folders, gzip, JSON lines, and the documents in them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/texts/text_source.h"
#include "core/data/texts/token_store.h"

namespace pmaptrain::data {

struct TextFile {
  std::string path;
  std::uint64_t size = 0;  // in the file system
  bool is_gzip = false;    // .gz, or by its content
  bool is_lines = false;   // .jsonl or .ndjson, perhaps with .gz; .json where it has an object a line
  bool is_json = false;    // .json
  bool is_named = true;    // in the config; else it was found in a folder

  // Whether the bytes of the file are its tokens.
  bool is_plain() const { return !is_gzip && !is_lines; }
};

// The files at `paths`, in this order. In place of a folder stand the regular files below it, in the order of their
// paths, without empty ones, links, run folders, and names that begin with a dot. Throws Error (data) for a path that
// is not there, a folder that cannot be read, and one without such files.
std::vector<TextFile> list_text_files(const TextFiles::Files& paths);

// Looks into the files. Sets what their content says of how they are read, and adds a note on JSON documents in
// folders, whose text is taken as it is. Throws Error (data) for what is no text: other formats, text in UTF-16, a JSON
// document that the config names; with 16-bit tokens, for text, for wider tokens, and for a header before them.
void look_into(std::vector<TextFile>& files, const TextFiles& text, std::vector<std::string>& notes);

// Calls `take` with each document of a file: the file, or of JSON lines the field of each line, "text" unless it is
// given. Throws Error (data) for what is no gzip or no JSON.
void each_document(const TextFile& file, const std::optional<std::string>& field,
                   const std::function<void(std::string_view document)>& take);

// Appends the documents of a file, each with the end token after it, if there is one: the file, or of JSON lines each
// line. A file of 16-bit tokens that ends with the end token already gets no other one. With `maps`, a plain file stays
// mapped. Throws Error (data) for what is no gzip or no JSON, for half a token, and for a file without text that the
// config names.
void read_text_file(const TextFile& file, const TextFiles& text, std::optional<std::int64_t> end, bool maps,
                    TokenStore& to);

// Says which of the second list's files are in both, by their path or their content; empty without any. `held_out` is
// its name, such as "validation".
std::string text_of_shared(const std::vector<TextFile>& train, const std::vector<TextFile>& others,
                           std::string_view held_out);

}  // namespace pmaptrain::data
