// Text as sequences of tokens.
#pragma once

#include <memory>

#include "core/data/dataset.h"
#include "core/spec/spec.h"

namespace pmaptrain::data {

// The windows of `length` tokens in files that follow one another: input i32[length], and as target the tokens one
// later, i32[length]. Of T tokens there are (T - 1) / length windows. At an offset, the last one ends with the text at
// the latest. Several files are copied into memory, one is mapped. Throws Error (data) if there is no window, or a file
// of 16-bit tokens has an odd number of bytes. `place` is the place of the files in the config, for errors during
// reading.
std::shared_ptr<const Dataset> make_text(const spec::TextFiles::Files& files, spec::Tokens tokens, std::int64_t length,
                                         const Place& place = {});

}  // namespace pmaptrain::data
