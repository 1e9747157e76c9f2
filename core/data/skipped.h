// Rows and files that cannot be read, which `on_error: skip` leaves out.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/dataset.h"
#include "core/declare/kind.h"

namespace pmaptrain::data {

// What becomes of rows and files that cannot be read.
enum class OnError { error, skip };
constexpr std::array<declare::Word<OnError>, 2> words_of(declare::Tag<OnError>) {
  return {{{"error", OnError::error}, {"skip", OnError::skip}}};
}

// The key of a source of rows.
inline declare::Key rows_on_error_key() {
  return {.path = "on_error",
          .meaning =
              "Rows that cannot be read. error: refuse them; skip: leave them out, before validation takes "
              "its share, as long as they are no more than 1 % of a split, or one row.",
          .example = "on_error: skip"};
}

struct SkippedRow {
  std::int64_t row = 0;  // among all rows, or files
  std::string reason;
  std::string file = {};      // of an image
  bool was_left_out = false;  // by the run that is continued, whether or not it can be read by now
};

// How many of `count` rows or files may be left out: a hundredth, and at least one.
std::int64_t most_skipped(std::int64_t count);

// The skipped rows of one split.
std::vector<SkippedRow> of_split(const Skipped& skipped, Split split);

// Notes what was left out of the `count` rows or files of a split, and adds it to the encoding. Throws Error (data) for
// more than may be. `what` is "rows" or "files".
void take_skipped(const std::vector<SkippedRow>& skipped, std::int64_t count, std::string_view what, Split split,
                  Encoding& encoding, std::vector<std::string>& notes);

}  // namespace pmaptrain::data
