// JSON lines, in pieces of any size.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/texts/json_lines.h"
#include "tests/fuzz/target.h"

namespace pmaptrain::fuzz {
namespace {

// The documents up to the first line with a mistake.
std::vector<std::string> read(std::span<const std::byte> input) {
  const data::Bytes bytes = copy_of(input);
  std::size_t at = 0;
  data::JsonLines lines(
      [&](std::span<std::byte> out) {
        const std::size_t count = std::min(out.size(), bytes.size() - at);
        if (count > 0) std::memcpy(out.data(), bytes.data() + at, count);
        at += count;
        return count;
      },
      "fuzz.jsonl", "text");
  std::vector<std::string> documents;
  try {
    while (std::optional<std::string> document = lines.next()) {
      require(is_utf8(*document), "a document is UTF-8");
      documents.push_back(std::move(*document));
    }
  } catch (const Error& error) {
    require(error.status() == ExitStatus::data, "what is wrong with a file is a matter of data");
  }
  return documents;
}

}  // namespace

void fuzz_one(std::span<const std::byte> input) {
  const std::vector<std::string> documents = read(input);
  plant_bug(documents.size() == 3, input);
  // A blank line in front moves the lines, but not what is read of them, across the borders of what is read at once.
  std::vector<std::byte> moved((std::size_t{64} << 10) - input.size() / 2 % (std::size_t{64} << 10), std::byte{' '});
  moved.back() = std::byte{'\n'};
  moved.insert(moved.end(), input.begin(), input.end());
  require(read(moved) == documents, "documents do not depend on where they are in the file");
}

}  // namespace pmaptrain::fuzz
