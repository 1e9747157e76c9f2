// Text as sequences of tokens.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/texts/encode.h"
#include "core/data/texts/text_files.h"

namespace pmaptrain::data {

// The windows of `text.length` tokens in the files at `paths`, which follow one another (text_files.h says which files
// and how they are read): input i32[length], and as target the tokens one later, i32[length]. The tokens are those that
// the tokenizer makes of the texts; bytes without one; or those of the files, where text.tokens says so. Of T tokens
// there are (T - 1) / length windows. At an offset, the last one ends with the text at the latest. Appends to `notes`
// what looks wrong. Throws Error (data) if there is no window, or a file that cannot be read. `place` is the place of
// the files in the config, for errors during reading. `hashes`: those of files that are known; null: of none.
std::shared_ptr<const Dataset> make_text(const TextFiles& text, const TextFiles::Files& paths,
                                         std::vector<std::string>& notes, const Place& place = {},
                                         const tokenizers::Tokenizer* tokenizer = nullptr, TokenCache* cache = nullptr,
                                         TextHashes* hashes = nullptr);

}  // namespace pmaptrain::data
