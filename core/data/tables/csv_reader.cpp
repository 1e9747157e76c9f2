#include "core/data/tables/csv_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "core/base/file_kind.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/data/text_encoding.h"

namespace pmaptrain::data {
namespace {

// The first bytes of a file, which decide whether it is text. Of other files, no more is read.
constexpr std::size_t first_block = std::size_t{1} << 16;

// Decompresses the whole gzip file. Its last four bytes state the size modulo 2^32, but may be wrong.
Bytes inflate(const Bytes& file, const std::string& path) {
  const std::string name = fmt::format("'{}'", path);
  const std::uint64_t stated = file.size() >= 4 ? read_little(file.view(), file.size() - 4, 4) : 0;
  if (stated > 0 && stated <= Inflater::limit(file.size())) {
    Memory memory = allocate(stated, name);
    if (inflate_whole(file.view(), memory.view)) return {std::move(memory.owner), memory.view};
  }
  Inflater inflater(file.view(), Compression::gzip, name);
  Memory memory = allocate(first_block, name);
  std::size_t held = inflater.read(memory.view);
  while (held == memory.view.size()) {
    Memory larger = allocate(2 * held, name);
    std::memcpy(larger.view.data(), memory.view.data(), held);
    memory = std::move(larger);
    held += inflater.read(memory.view.subspan(held));
  }
  return {std::move(memory.owner), memory.view.first(held)};
}

// `text` is the beginning of a file, or all of it, in the encoding of the file.
void check_text(std::span<const std::byte> text, const std::string& path, TextEncoding encoding) {
  if (text.empty()) fail_data(fmt::format("'{}' is empty", path));
  if (const std::optional<FileKind> kind = kind_of_file(text)) {
    fail_data(fmt::format("'{}' is {}, expected text", path, kind->name),
              kind->help.empty() ? "a table is read from CSV" : std::string(kind->help));
  }
  if (encoding == TextEncoding::utf16) return;
  if (utf16_of(text)) {
    fail_data(fmt::format("'{}' is text in UTF-16, and encoding is another one", path),
              "save it as UTF-8, or for CSV set encoding: utf-16");
  }
  const std::string_view chars = as_chars(text).substr(0, first_block);
  if (chars.starts_with("<!DOCTYPE") || chars.starts_with("<!doctype") || chars.starts_with("<html")) {
    fail_data(fmt::format("'{}' is a web page, expected a table", path),
              "download the file itself, and not the page that shows it");
  }
  if (const std::size_t zero = chars.find('\0'); zero != std::string_view::npos) {
    fail_data(fmt::format("'{}' has a zero byte at offset {}, expected text", path, zero), "save it as text in UTF-8");
  }
}

// The first bytes that the gzip file holds.
std::vector<std::byte> beginning_of(const Bytes& file, const std::string& path) {
  std::vector<std::byte> begin(first_block);
  Inflater inflater(file.view(), Compression::gzip, fmt::format("'{}'", path));
  begin.resize(inflater.read(begin));
  return begin;
}

}  // namespace

Bytes read_text(const std::string& path, TextEncoding encoding) { return text_of(map_file(path), path, encoding); }

Bytes text_of(const Bytes& file, const std::string& path, TextEncoding encoding) {
  const bool is_compressed = is_gzip(file.view());
  if (is_compressed) check_text(beginning_of(file, path), path, encoding);
  const Bytes bytes = is_compressed ? inflate(file, path) : file;
  check_text(bytes.view(), path, encoding);
  const Bytes text = to_utf8(bytes, encoding, path);
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  const std::size_t skipped = as_text(text).starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
  return text.slice(skipped, text.size() - skipped);
}

CsvReader::CsvReader(std::string_view text, char delimiter, const std::string& path,
                     std::span<const std::int64_t> lines)
    : at_(text.data()), end_(text.data() + text.size()), delimiter_(delimiter), path_(path), lines_(lines) {}

void CsvReader::fail(const std::string& what, std::string help) const {
  failed_ = true;
  fail_data(fmt::format("'{}', line {}: {}", path_, line_, what), std::move(help));
}

bool CsvReader::next_record() {
  while (in_record_) next_cell();
  while (at_ < end_) {
    line_ = next_line_;
    if (*at_ == '\r' && at_ + 1 < end_ && at_[1] == '\n') ++at_;
    if (*at_ != '\n') {
      record_ = at_;
      in_record_ = true;
      failed_ = false;
      if (record_number_ < lines_.size()) line_ = lines_[record_number_];
      ++record_number_;
      return true;
    }
    ++at_;
    ++next_line_;
  }
  return false;
}

std::optional<std::string_view> CsvReader::next_cell() {
  if (!in_record_) return std::nullopt;
  const char* first = at_;
  while (first < end_ && is_blank(*first)) ++first;
  is_quoted_ = first < end_ && *first == '"';
  if (is_quoted_) return quoted_cell(first + 1);
  const char *const begin = at_, *at = first;
  while (true) {
    const char* const window = at + std::min<std::ptrdiff_t>(end_ - at, long_cell);
    while (at < window && *at != delimiter_ && *at != '\n' && *at != '\r') ++at;
    if (at < window || at == end_) break;
    fail_on_zeros(at - long_cell, at);
  }
  end_cell(at);
  return std::string_view(begin, static_cast<std::size_t>(at - begin));
}

// A sparse file reads as zeros up to its stated size.
void CsvReader::fail_on_zeros(const char* begin, const char* end) const {
  const char* const zero = std::find(begin, end, '\0');
  if (zero != end) fail("a zero byte, expected text", "the file was not written to its end, or is no text");
}

void CsvReader::leave_record() {
  if (!failed_) {
    try {
      while (in_record_) next_cell();
      return;
    } catch (const Error&) {  // its cells cannot be read
    }
  }
  at_ = std::find(record_, end_, '\n');
  if (at_ < end_) ++at_;
  next_line_ = line_ + 1;
  in_record_ = false;
}

// `first` is behind the opening quote.
std::string_view CsvReader::quoted_cell(const char* first) {
  const char* at = first;
  bool has_doubled = false;
  std::int64_t lines = 0;
  while (true) {
    const auto* const quote = static_cast<const char*>(std::memchr(at, '"', static_cast<std::size_t>(end_ - at)));
    if (quote == nullptr) fail("a double quote is not closed", "close it; inside of quotes write a quote twice: \"\"");
    lines += std::count(at, quote, '\n');
    at = quote + 1;
    if (at == end_ || *at != '"') break;
    has_doubled = true;
    ++at;
  }
  std::string_view text(first, static_cast<std::size_t>(at - 1 - first));
  while (at < end_ && is_blank(*at)) ++at;
  if (at < end_ && *at != delimiter_ && *at != '\n' && *at != '\r') {
    fail(fmt::format("after the quoted {} comes other text", shown_cell(text)),
         "inside of quotes write a quote twice: \"\"");
  }
  next_line_ += lines;
  end_cell(at);
  if (!has_doubled) return text;
  unescaped_.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    unescaped_ += text[i];
    if (text[i] == '"') ++i;
  }
  return unescaped_;
}

// Moves past the delimiter or line end after a cell.
void CsvReader::end_cell(const char* at) {
  if (at < end_ && *at == delimiter_) {
    at_ = at + 1;
    return;
  }
  if (at < end_ && *at == '\r') {
    ++at;
    if (at == end_ || *at != '\n') fail("a line ends in CR alone", "save the file with LF or CRLF at line ends");
  }
  in_record_ = false;
  if (at < end_) ++next_line_;
  at_ = at < end_ ? at + 1 : end_;
}

std::string_view without_blanks(std::string_view cell) {
  constexpr std::string_view blanks = " \t";
  const std::size_t first = std::min(cell.find_first_not_of(blanks), cell.size());
  return cell.substr(first, cell.find_last_not_of(blanks) + 1 - first);
}

Grid grid_of(std::string_view text, char delimiter, int records) {
  const std::string unnamed;
  CsvReader reader(text, delimiter, unnamed);
  Grid grid;
  try {
    for (int record = 0; record < records && reader.next_record(); ++record) {
      std::size_t cells = 0;
      for (; const auto cell = reader.next_cell(); ++cells) {
        const bool has_quote = !reader.is_quoted() && cell->find('"') != std::string_view::npos;
        grid.has_quotes = grid.has_quotes || has_quote;
      }
      if (record > 0 && cells != grid.columns) return {};
      grid.columns = cells;
    }
  } catch (const Error&) {
    return {};
  }
  return grid;
}

std::int64_t count_lines(std::string_view text) { return std::count(text.begin(), text.end(), '\n') + 1; }

std::string shown_cell(std::string_view cell) {
  constexpr int longest = 60;
  return is_utf8(cell) ? fmt::format("'{}'", shown_name(cell, longest)) : "text that is not UTF-8";
}

namespace {

// Whether a decimal number other than 0 is between -1 and 1.
bool is_below_one(std::string_view number) {
  const std::size_t exponent_at = std::min(number.find_first_of("eE"), number.size());
  const std::size_t point = std::min(number.find('.'), exponent_at);
  const std::size_t first = std::min(number.find_first_of("123456789"), exponent_at);
  // The first nonzero digit is the digit of 10^power.
  const auto at = static_cast<std::int64_t>(first), dot = static_cast<std::int64_t>(point);
  const std::int64_t power = at < dot ? dot - at - 1 : dot - at;
  std::string_view exponent = number.substr(std::min(exponent_at + 1, number.size()));
  const bool negative = exponent.starts_with('-');
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(exponent.data(), exponent.data() + exponent.size(), value);
  return error == std::errc::result_out_of_range ? negative : value < -power;
}

}  // namespace

CellNumber to_number(std::string_view cell) {
  using Kind = CellNumber::Kind;
  cell = without_blanks(cell);
  if (cell.empty()) return {Kind::missing, 0, false};
  const bool plus = cell.size() > 1 && cell[0] == '+' && cell[1] != '-' && cell[1] != '+';
  const char* const first = cell.data() + (plus ? 1 : 0);
  const char* const last = cell.data() + cell.size();
  double value = 0;
  const auto [end, error] = std::from_chars(first, last, value);
  if (error != std::errc::invalid_argument && end == last) {
    if (error == std::errc::result_out_of_range) {
      return {is_below_one({first, last}) ? Kind::number : Kind::beyond_float, 0, false};
    }
    if (std::isnan(value)) return {Kind::missing, 0, false};
    if (std::isinf(value)) return {Kind::infinite, value, false};
    if (std::isinf(static_cast<float>(value))) return {Kind::beyond_float, value, false};
    return {Kind::number, value, cell.find_first_of(".eE") == std::string_view::npos};
  }
  for (const std::string_view word : {"NA", "N/A", "n/a", "#N/A", "<NA>", "NULL", "null", "None"}) {
    if (cell == word) return {Kind::missing, 0, false};
  }
  return {};
}

std::optional<bool> truth_of(std::string_view cell) {
  std::string word(without_blanks(cell));
  for (char& c : word) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (word == "true" || word == "yes" || word == "1") return true;
  if (word == "false" || word == "no" || word == "0") return false;
  return std::nullopt;
}

namespace {

// Without the commas between groups of three digits; empty where commas are anything else.
std::string without_thousands(std::string_view number) {
  const std::size_t end = std::min(number.find('.'), number.size());
  std::string digits;
  std::size_t group = 0;  // digits since the last comma
  bool has_commas = false;
  for (const char c : number.substr(0, end)) {
    if (c != ',') {
      digits += c;
      group += c >= '0' && c <= '9' ? 1 : 0;
      continue;
    }
    if (group == 0 || group > 3 || (has_commas && group != 3)) return "";
    has_commas = true;
    group = 0;
  }
  if (has_commas && group != 3) return "";
  return digits + std::string(number.substr(end));
}

}  // namespace

std::optional<std::string> plain_number(std::string_view cell) {
  const std::string_view whole = without_blanks(cell);
  std::string_view number = whole;
  const bool negative = number.starts_with('-');
  if (negative) number.remove_prefix(1);
  for (const std::string_view sign : {"$", "€", "£", "¥", "%"}) {
    if (number.starts_with(sign) && sign != "%") number = without_blanks(number.substr(sign.size()));
    if (number.ends_with(sign)) number = without_blanks(number.substr(0, number.size() - sign.size()));
  }
  std::string plain = (negative ? "-" : "") + without_thousands(number);
  if (plain == whole || to_number(plain).kind != CellNumber::Kind::number) return std::nullopt;
  return plain;
}

}  // namespace pmaptrain::data
