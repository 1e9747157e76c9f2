// Files of JSON lines: a document in each, as a field of an object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pmaptrain::data {

class JsonLines {
 public:
  // Fills `out` with the next bytes of the file and returns their number, which is less at its end.
  using Pull = std::function<std::size_t(std::span<std::byte> out)>;
  static constexpr std::size_t longest_line = std::size_t{256} << 20;

  // `path` is for messages. No more than a line is held, of at most so many bytes.
  JsonLines(Pull pull, std::string path, std::string field, std::size_t longest = longest_line)
      : pull_(std::move(pull)), path_(std::move(path)), field_(std::move(field)), longest_(longest) {}

  // The field of the next line's object, in UTF-8; none at the end of the file. Blank lines are passed over. Throws
  // Error (data), which names the line, for a line that is no JSON object, or has no such field of type string.
  std::optional<std::string> next();

 private:
  std::optional<std::string_view> next_line();
  std::string document_of(std::string_view line) const;
  [[noreturn]] void fail(const std::string& what, std::string help) const;

  Pull pull_;
  std::string path_, field_;
  std::size_t longest_;
  std::string buffer_;                    // the next line, perhaps in part, and what follows it
  std::size_t begin_ = 0, searched_ = 0;  // where that line begins; up to where it is known to have no end
  bool has_ended_ = false;                // all of the file is in the buffer
  std::int64_t line_ = 0;                 // the number of the last line, from 1
};

}  // namespace pmaptrain::data
