// The cells of a table in a text file: CSV as RFC 4180 describes it, with any one character between cells.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/data/file.h"
#include "core/data/text_encoding.h"

namespace pmaptrain::data {

// The text of a file in UTF-8, without a byte order mark; a gzip file is decompressed into memory. Throws Error (data)
// for another format, and for what is no text of this encoding. Whether a text in UTF-8 is well-formed is left to its
// readers.
Bytes read_text(const std::string& path, TextEncoding encoding = TextEncoding::utf8);
// The same for bytes in memory. `path` names them in messages.
Bytes text_of(const Bytes& file, const std::string& path, TextEncoding encoding = TextEncoding::utf8);

inline std::string_view as_text(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Reads records one after another, and the cells of each record. Lines end in LF or CRLF; blank lines are skipped. A
// quoted cell may contain delimiters, line ends and doubled quotes. Blanks around the quotes are ignored; blanks in an
// unquoted cell are part of it.
class CsvReader {
 public:
  // `text` must outlive it; `path` is for messages, and so are `lines`: where records are in the file, if that is not
  // where they are in the text.
  CsvReader(std::string_view text, char delimiter, const std::string& path, std::span<const std::int64_t> lines = {});

  // Moves to the next record and skips the rest of the previous one. Returns false at the end of the text.
  bool next_record();
  // The next cell of the record, valid until the next call; none after the last. Throws Error (data) for a quote that
  // is not closed, text after a closing quote, and a line end of CR alone.
  std::optional<std::string_view> next_cell();
  // Gives the record up, at its end; where its cells cannot be read, the next one begins with the line after that in
  // which this one does, whatever its quotes hold.
  void leave_record();
  // The line in which the record begins, from 1.
  std::int64_t line() const { return line_; }
  // Whether the last cell was in quotes.
  bool is_quoted() const { return is_quoted_; }

 private:
  bool is_blank(char c) const { return (c == ' ' || c == '\t') && c != delimiter_; }
  // Longer cells are searched for zeros as they are read.
  static constexpr std::ptrdiff_t long_cell = std::ptrdiff_t{1} << 16;
  void fail_on_zeros(const char* begin, const char* end) const;
  std::string_view quoted_cell(const char* first);
  void end_cell(const char* at);
  [[noreturn]] void fail(const std::string& what, std::string help) const;

  const char *at_, *end_, *record_ = nullptr;
  char delimiter_;
  const std::string& path_;
  bool in_record_ = false;       // a cell follows
  mutable bool failed_ = false;  // a cell of the record cannot be read
  bool is_quoted_ = false;
  std::int64_t line_ = 0, next_line_ = 1;
  std::span<const std::int64_t> lines_;
  std::size_t record_number_ = 0;
  std::string unescaped_;
};

// A cell without the blanks around it, as names of columns and numbers are read.
std::string_view without_blanks(std::string_view cell);

// The cells of the first records of a text, by some delimiter.
struct Grid {
  std::size_t columns = 0;  // 0: records differ in how many cells they have, or cannot be read
  bool has_quotes = false;  // within cells that are not quoted, which RFC 4180 does not allow
};
Grid grid_of(std::string_view text, char delimiter, int records);

// How often a line can end in the text at most: an upper bound of its records.
std::int64_t count_lines(std::string_view text);

// A cell as messages show it: in quotes, short, without control characters.
std::string shown_cell(std::string_view cell);

// A cell read as a number; blanks around it are ignored. Numbers are decimal with a point, whatever the locale. NA,
// NaN, null and the like mean a missing value, as in pandas.
struct CellNumber {
  enum class Kind { number, missing, infinite, beyond_float, text };
  Kind kind = Kind::text;
  double value = 0;
  bool integer = false;  // written without a point or an exponent
};
CellNumber to_number(std::string_view cell);

// What a cell says of a label: 0 and 1, no and yes, false and true, in any case. Empty for any other text.
std::optional<bool> truth_of(std::string_view cell);

// The number in a cell with a currency or percent sign, or thousands separators: "1234" for "$1,234". Empty if the cell
// is a plain number or contains anything else.
std::optional<std::string> plain_number(std::string_view cell);

}  // namespace pmaptrain::data
