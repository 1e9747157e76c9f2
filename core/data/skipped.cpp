#include "core/data/skipped.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"

namespace pmaptrain::data {

std::int64_t most_skipped(std::int64_t count) { return std::max<std::int64_t>(1, count / 100); }

std::vector<SkippedRow> of_split(const Skipped& skipped, Split split) {
  std::vector<SkippedRow> rows;
  for (const Encoding::Skipped& one : skipped) {
    if (one.split == name_of(split)) rows.push_back({one.row, one.reason, one.file, true});
  }
  return rows;
}

void take_skipped(const std::vector<SkippedRow>& skipped, std::int64_t count, std::string_view what, Split split,
                  Encoding& encoding, std::vector<std::string>& notes) {
  if (skipped.empty()) return;
  const std::int64_t found = std::ssize(skipped), most = most_skipped(count);
  const std::string& first = skipped.front().reason;
  const auto was_left_out = [](const SkippedRow& row) { return row.was_left_out; };
  const bool all_were = std::all_of(skipped.begin(), skipped.end(), was_left_out);
  if (found > most && !all_were) {
    fail_data(
        fmt::format("{} of the {} {} of the {} split cannot be read, and on_error: skip leaves out at most {}; the "
                    "first: {}",
                    with_commas(found), with_commas(count), what, name_of(split), with_commas(most), first),
        "repair them; on_error: error says more about the first");
  }
  if (all_were) {
    notes.push_back(
        fmt::format("{}: {} of {} {} {} left out again, as by the run before; the first, because it was: {}",
                    name_of(split), with_commas(found), with_commas(count), what, found == 1 ? "is" : "are", first));
  } else {
    notes.push_back(fmt::format("{}: {} of {} {} cannot be read and {} left out; the first: {}", name_of(split),
                                with_commas(found), with_commas(count), what, found == 1 ? "is" : "are", first));
  }
  for (const SkippedRow& row : skipped) {
    encoding.skipped.push_back({std::string(name_of(split)), row.row, row.reason, row.file});
  }
}

}  // namespace pmaptrain::data
