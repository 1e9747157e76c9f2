#include "core/spec/yaml/readable.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/base/text.h"
#include "core/spec/yaml/parse.h"

namespace pmaptrain::spec {
namespace {

[[noreturn]] void refuse_text(const std::shared_ptr<const Text>& source, int line, int column, int offset,
                              std::string message, std::string help) {
  Node at;
  at.source = source;
  at.line = line;
  at.column = column + (line == 1 ? offset : 0);
  throw Error(ExitStatus::usage, Diagnostic{kind_of(at), place_of(at), std::move(message), std::move(help), {}});
}

// Files of other kinds, by how they begin.
void check_kind(const std::string& text, const std::shared_ptr<const Text>& source) {
  constexpr std::pair<std::string_view, std::string_view> kinds[] = {{"PK\3\4", "a ZIP archive, as NPZ files are"},
                                                                     {"\x93NUMPY", "a NumPy array"},
                                                                     {"\x89PNG", "a PNG image"},
                                                                     {"\xff\xd8\xff", "a JPEG image"},
                                                                     {"\x1f\x8b", "a gzip file"}};
  for (const auto& [magic, kind] : kinds) {
    if (!text.starts_with(magic)) continue;
    Node at;
    at.source = source;
    const std::string what = "this is " + std::string(kind) + ", not a config";
    throw Error(
        ExitStatus::usage,
        Diagnostic{kind_of(at), place_of(at), what, "`pmaptrain init npz|csv|images PATH` writes a config", {}});
  }
}

// Reports characters that yaml-cpp would silently replace, drop or stop at.
void check_characters(const std::string& text, const std::shared_ptr<const Text>& source, int offset) {
  int number = 0;
  std::size_t start = 0;
  while (start <= text.size()) {
    ++number;
    const std::size_t end = std::min(text.find('\n', start), text.size());
    std::string_view line(text.data() + start, end - start);
    if (!is_utf8(line)) {
      int column = 1;
      std::size_t good = line.size();
      while (good > 0 && !is_utf8(line.substr(0, good))) --good;
      column += count_characters(line.substr(0, good));
      refuse_text(source, number, column, offset, "this byte is not valid UTF-8", "save the file as UTF-8");
    }
    for (std::size_t i = 0; i < line.size(); ++i) {
      const auto c = static_cast<unsigned char>(line[i]);
      const bool line_end = c == '\r' && i + 1 == line.size();
      if ((c >= 0x20 && c != 0x7f) || c == '\t' || line_end) continue;
      refuse_text(source, number, count_characters(line.substr(0, i)) + 1, offset,
                  "control character " + std::to_string(c), "remove it");
    }
    start = end + 1;
  }
}

}  // namespace

void check_readable(const std::string& text, const std::shared_ptr<const Text>& source, int offset) {
  if (text.size() > max_text_bytes) {
    refuse_text(source, 0, 0, 0, "the config is larger than 4 MiB",
                "store data in separate files and name them in data.source");
  }
  check_kind(text, source);
  check_characters(text, source, offset);
}

}  // namespace pmaptrain::spec
