// What the files of a text are, by their content.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/file_kind.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/data/file.h"
#include "core/data/text_encoding.h"
#include "core/data/texts/text_files.h"

namespace pmaptrain::data {
namespace {

using Beginning = std::span<const std::byte>;

constexpr std::size_t looked_at = std::size_t{16} << 10;

// The first bytes, decompressed. Sets is_gzip for a file that is one without its name.
std::vector<std::byte> beginning_of(TextFile& file) {
  std::vector<std::byte> bytes = read_file(file.path, looked_at);
  if (!is_gzip(bytes)) return bytes;  // as one whose name says otherwise, which its reader refuses
  file.is_gzip = true;
  const Bytes whole = map_file(file.path);
  Inflater inflater(whole.view(), Compression::gzip, fmt::format("'{}'", file.path));
  bytes.resize(looked_at);
  bytes.resize(inflater.read(bytes));
  whole.check_intact();
  return bytes;
}

[[noreturn]] void fail(const TextFile& file, std::string_view what, std::string help) {
  fail_data(fmt::format("'{}' is {}", file.path, what), std::move(help));
}

// ---- texts ----

void check_encoding(const TextFile& file, Beginning bytes) {
  using namespace std::string_view_literals;
  const bool is_utf32 = as_chars(bytes).starts_with("\xff\xfe\0\0"sv) || as_chars(bytes).starts_with("\0\0\xfe\xff"sv);
  if (!is_utf32 && !utf16_of(bytes)) return;
  const char* const name = is_utf32 ? "UTF-32" : "UTF-16";
  fail(file, fmt::format("text in {}, expected UTF-8", name),
       fmt::format("iconv -f {} -t UTF-8 OLD > NEW converts it", name));
}

// A .json file is one document, or has an object a line, as .jsonl files have.
void check_json(TextFile& file, Beginning bytes, std::vector<const TextFile*>& documents) {
  if (!file.is_json) return;
  std::string_view text = as_chars(bytes);
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n\xef\xbb\xbf"), text.size()));
  std::string_view line = text.substr(0, text.find('\n'));
  line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
  const bool is_cut = line.size() == text.size() && bytes.size() == looked_at;
  if (!file.is_named) {
    documents.push_back(&file);
  } else if (line.starts_with('{') && (line.ends_with('}') || is_cut)) {
    file.is_lines = true;
  } else {
    fail(file, "a JSON document, whose syntax would be learned as text",
         "write JSON lines, one object with the field text in each line: jq -c '.[]' OLD.json > NEW.jsonl; a file of "
         "another name is read as it is");
  }
}

// ---- tokens ----

std::string name_of(Tokens tokens) { return fmt::format("{}-bit tokens", 8 * bytes_of(tokens)); }

// llm.c writes 256 integers of 32 bits before the tokens, of which the first says so.
void check_header(const TextFile& file, Beginning bytes, Tokens tokens) {
  constexpr std::uint64_t of_16_bits = 20240520, of_32_bits = 20240801;
  if (bytes.size() < 1024) return;
  const std::uint64_t magic = read_little(bytes, 0, 4);
  if (magic != of_16_bits && magic != of_32_bits) return;
  const Tokens has = magic == of_16_bits ? Tokens::uint16 : Tokens::uint32;
  fail(file, fmt::format("a file of llm.c, which has a header of 1,024 bytes before its {}", name_of(has)),
       fmt::format("tail -c +1025 OLD > NEW writes the tokens alone{}",
                   has == tokens ? "" : fmt::format(", for tokens: {}", declare::word_of(has))));
}

// Read as 16-bit tokens, every second one, or three of four, are the upper halves of wider ones: 0, or nearly so.
void check_width(const TextFile& file, Beginning bytes) {
  constexpr std::uint64_t most_upper = 15;
  const std::size_t tokens = bytes.size() / 2 / 4 * 4;
  if (tokens < 32) return;
  std::uint64_t lower = 0, middle = 0, upper = 0;  // the largest of them
  for (std::size_t i = 0; i < tokens; i += 2) {
    lower = std::max(lower, read_little(bytes, 2 * i, 2));
    (i % 4 == 0 ? middle : upper) = std::max(i % 4 == 0 ? middle : upper, read_little(bytes, 2 * i + 2, 2));
  }
  // Of wide ones, small tokens alone have upper halves of 0 alone.
  const std::uint64_t second = std::max(middle, upper);
  if (lower == 0 || second > (lower > 255 ? most_upper : 0)) return;
  bool is_64 = true;
  for (std::size_t i = 0; i < tokens; i += 4) is_64 = is_64 && read_little(bytes, 2 * i + 4, 2) == 0;
  const int width = is_64 ? 64 : 32;
  fail(file,
       fmt::format("a file of {}-bit tokens, it seems, of which tokens: uint16 would read {} as 0", width,
                   is_64 ? "three of four" : "every second one"),
       width == 32
           ? std::string("tokens: uint32")
           : std::string("in NumPy: np.fromfile(OLD, \"<u8\").astype(\"<u4\").tofile(NEW), for tokens: uint32"));
}

// Whether the text is UTF-8 without control characters. Its last character may be cut.
bool is_readable(std::string_view text) {
  constexpr std::size_t longest = 4;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character character = utf8_at(text, at);
    if (!character.well_formed) return text.size() - at < longest;
    const char32_t code = character.code;
    const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    if (is_control && code != '\n' && code != '\r' && code != '\t' && code != '\f') return false;
    at += character.bytes;
  }
  return true;
}

void check_tokens(const TextFile& file, Beginning bytes, Tokens tokens) {
  if (as_chars(bytes).starts_with("\x93NUMPY")) {
    fail(file, fmt::format("an array in NPY format, expected {} alone", name_of(tokens)),
         fmt::format("in NumPy: tokens.astype(\"<u{}\").tofile(path)", bytes_of(tokens)));
  }
  check_header(file, bytes, tokens);
  if (tokens == Tokens::uint16) check_width(file, bytes);
  constexpr std::size_t least = 64;
  if (bytes.size() >= least && is_readable(as_chars(bytes))) {
    fail(file, fmt::format("text, it seems, expected {}", name_of(tokens)), "tokens: bytes reads text");
  }
}

}  // namespace

void look_into(std::vector<TextFile>& files, const TextFiles& text, std::vector<std::string>& notes) {
  std::vector<const TextFile*> documents;
  const bool are_tokens = text.tokens != Tokens::bytes;
  for (TextFile& file : files) {
    if (file.size == 0) continue;
    const std::vector<std::byte> bytes = beginning_of(file);
    if (are_tokens && !file.is_lines) check_tokens(file, bytes, text.tokens);
    if (const std::optional<FileKind> kind = kind_of_file(bytes)) {
      fail(file, fmt::format("{}, expected {}", kind->name, are_tokens ? name_of(text.tokens) : "text"),
           kind->help.empty() ? "leave it out" : std::string(kind->help));
    }
    if (are_tokens) continue;
    check_encoding(file, bytes);
    check_json(file, bytes, documents);
  }
  if (documents.empty()) return;
  notes.push_back(fmt::format("{} in folders {} JSON, '{}'{}, and {} taken as text with {} syntax",
                              counted(std::ssize(documents), "file"), documents.size() == 1 ? "is" : "are",
                              documents.front()->path, documents.size() == 1 ? "" : " first",
                              documents.size() == 1 ? "is" : "are", documents.size() == 1 ? "its" : "their"));
}

}  // namespace pmaptrain::data
