#include "core/data/texts/text_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/file.h"
#include "core/data/texts/json_lines.h"

namespace pmaptrain::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view default_field = "text";

// The name in lower case, and without .gz.
struct FileName {
  std::string name;
  bool is_gzip = false;

  explicit FileName(const std::string& path) : name(fs::path(path).filename().string()) {
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    is_gzip = name.ends_with(".gz");
    if (is_gzip) name.resize(name.size() - 3);
  }
};

TextFile file_at(std::string path, std::uint64_t size, bool is_named) {
  const FileName name(path);
  const bool is_lines = name.name.ends_with(".jsonl") || name.name.ends_with(".ndjson");
  return {std::move(path), size, name.is_gzip, is_lines, name.name.ends_with(".json"), is_named};
}

// What a run writes is no text to train on, though its folder may lie beside the text.
bool is_run_folder(const std::string& folder) {
  std::error_code error;
  return fs::exists(fs::path(folder) / ".pmaptrain", error);
}

void add_files_below(const std::string& folder, std::vector<TextFile>& found) {
  std::error_code error;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    if (at->path().filename().string().starts_with('.')) continue;
    std::string path = at->path().string();
    struct stat status = {};
    if (::lstat(path.c_str(), &status) != 0) fail_to_open(path, errno);
    if (S_ISDIR(status.st_mode) && !is_run_folder(path)) add_files_below(path, found);
    if (S_ISREG(status.st_mode) && status.st_size > 0) {
      found.push_back(file_at(std::move(path), static_cast<std::uint64_t>(status.st_size), false));
    }
  }
  if (error) fail_to_open(folder, error.value());
}

// The bytes of a file. Of small files there may be many, so they are not mapped.
Bytes bytes_of_file(const TextFile& file) {
  constexpr std::uint64_t small = std::uint64_t{1} << 20;
  if (file.size > small) return map_file(file.path);
  auto bytes = std::make_shared<const std::vector<std::byte>>(read_file(file.path));
  const std::span<const std::byte> view(*bytes);
  return {std::move(bytes), view};
}

// The bytes of a file one after another, decompressed.
class TextStream {
 public:
  explicit TextStream(const TextFile& file) : file_(bytes_of_file(file)) {
    if (!file.is_gzip) return;
    if (!is_gzip(file_.view())) {
      fail_data(fmt::format("'{}' is no gzip file, as its name says", file.path),
                "rename it without .gz to read it as it is");
    }
    inflater_.emplace(file_.view(), Compression::gzip, fmt::format("'{}'", file.path));
  }

  // Fills `out`, or less at the end.
  std::size_t read(std::span<std::byte> out) {
    if (inflater_) return inflater_->read(out);
    const std::size_t count = std::min(out.size(), file_.size() - at_);
    if (count > 0) std::memcpy(out.data(), file_.data() + at_, count);
    at_ += count;
    return count;
  }

  void check_intact() const { file_.check_intact(); }

 private:
  Bytes file_;
  std::optional<Inflater> inflater_;
  std::size_t at_ = 0;
};

void check_whole_tokens(const TextFile& file, std::uint64_t bytes, std::size_t width) {
  if (bytes % width == 0) return;
  fail_data(fmt::format("'{}' has {} bytes, which are not whole tokens of {} bytes", file.path, bytes, width),
            fmt::format("tokens: uint{} takes a flat array of {}-bit integers; tokens: bytes takes any file", 8 * width,
                        8 * width));
}

void end_document(const TextFiles& text, std::optional<std::int64_t> end, TokenStore& to) {
  if (!end) return;
  std::int32_t last = -1;
  const bool may_have_it = text.tokens != Tokens::bytes && to.size() > 0;
  if (may_have_it) to.read(to.size() - 1, 1, reinterpret_cast<std::byte*>(&last));
  if (last != *end) to.append_token(*end);
}

void check_is_text(const TextFile& file, Tokens tokens) {
  if (!file.is_lines || tokens == Tokens::bytes) return;
  fail_data(fmt::format("'{}' has texts, by its name, and tokens: {} takes files of tokens", file.path,
                        declare::word_of(tokens)),
            "tokens: bytes trains on the bytes of the texts; or write their tokens to files");
}

}  // namespace

std::vector<TextFile> list_text_files(const TextFiles::Files& paths) {
  std::vector<TextFile> found;
  for (const std::string& path : paths) {
    struct stat status = {};
    if (::stat(path.c_str(), &status) != 0) fail_to_open(path, errno);
    if (!S_ISDIR(status.st_mode)) {
      found.push_back(file_at(path, static_cast<std::uint64_t>(status.st_size), true));
      continue;
    }
    const auto before = std::ssize(found);
    add_files_below(path, found);
    if (std::ssize(found) == before) {
      about_file(path, [&] {
        fail_data(fmt::format("the folder '{}' has no files with text", path),
                  "empty files, links, run folders, and names that begin with a dot are left out");
      });
    }
    std::sort(found.begin() + before, found.end(),
              [](const TextFile& a, const TextFile& b) { return a.path < b.path; });
  }
  return found;
}

void each_document(const TextFile& file, const std::optional<std::string>& field,
                   const std::function<void(std::string_view document)>& take) {
  if (file.is_plain()) {
    const Bytes bytes = bytes_of_file(file);
    take(as_chars(bytes.view()));
    bytes.check_intact();
    return;
  }
  TextStream stream(file);
  if (file.is_lines) {
    JsonLines lines([&](std::span<std::byte> out) { return stream.read(out); }, file.path,
                    field.value_or(std::string(default_field)));
    while (const std::optional<std::string> document = lines.next()) take(*document);
  } else {
    constexpr std::size_t at_once = std::size_t{1} << 20;
    std::string whole;
    for (std::size_t size = 0, count = at_once; count == at_once; size += count) {
      whole.resize(size + at_once);
      count = stream.read(std::as_writable_bytes(std::span(whole)).subspan(size));
      whole.resize(size + count);
    }
    take(whole);
  }
  stream.check_intact();
}

void read_text_file(const TextFile& file, const TextFiles& text, std::optional<std::int64_t> end, bool maps,
                    TokenStore& to) {
  const std::size_t before = to.bytes(), width = bytes_of(text.tokens);
  check_is_text(file, text.tokens);
  if (file.is_lines) {
    each_document(file, text.field, [&](std::string_view document) {
      to.append(std::as_bytes(std::span(document)));
      end_document(text, end, to);
    });
  } else if (file.is_plain()) {
    Bytes bytes = maps ? map_file(file.path) : bytes_of_file(file);
    check_whole_tokens(file, bytes.size(), width);
    if (maps) {
      to.map(std::move(bytes));
    } else {
      to.append(bytes.view());
      bytes.check_intact();
    }
    end_document(text, end, to);
  } else {
    TextStream stream(file);
    for (bool has_ended = false; !has_ended;) {
      const std::span<std::byte> room = to.room();
      const std::size_t count = stream.read(room);
      to.take(count);
      has_ended = count < room.size();
    }
    stream.check_intact();
    check_whole_tokens(file, to.bytes() - before, width);
    if (to.bytes() > before) end_document(text, end, to);
  }
  if (to.bytes() == before && file.is_named) fail_data(fmt::format("'{}' has no text in it", file.path));
}

namespace {

// A hash of some KiB at the beginning, in the middle and at the end, by which files of one size, such as the shards of
// a text, are told apart without comparing each with each.
std::size_t hash_of_sample(const TextFile& file) {
  constexpr std::size_t most = std::size_t{4} << 10;
  const Bytes bytes = map_file(file.path);
  const std::size_t count = std::min(bytes.size(), most);
  std::string sample;
  for (const std::size_t at : {std::size_t{0}, (bytes.size() - count) / 2, bytes.size() - count})
    sample += as_chars(bytes.view().subspan(at, count));
  bytes.check_intact();
  return std::hash<std::string>()(sample);
}

// Whether two files of one size have the same content. Of large ones, the beginning and the end are compared.
bool have_one_content(const TextFile& a, const TextFile& b) {
  constexpr std::size_t most = std::size_t{32} << 20;
  const Bytes first = map_file(a.path), second = map_file(b.path);
  if (first.size() != second.size()) return false;
  const std::size_t count = std::min(first.size(), most), rest = first.size() - count;
  const bool equal = std::memcmp(first.data(), second.data(), count) == 0 &&
                     std::memcmp(first.data() + rest, second.data() + rest, count) == 0;
  first.check_intact();
  second.check_intact();
  return equal;
}

}  // namespace

std::string text_of_shared(const std::vector<TextFile>& train, const std::vector<TextFile>& others,
                           std::string_view held_out) {
  const auto sizes_of = [](const std::vector<TextFile>& files) {
    std::set<std::uint64_t> sizes;
    for (const TextFile& file : files) {
      if (file.size > 0) sizes.insert(file.size);
    }
    return sizes;
  };
  const std::set<std::uint64_t> sizes = sizes_of(others), sizes_of_train = sizes_of(train);
  std::multimap<std::pair<std::uint64_t, std::size_t>, const TextFile*> trained;  // by size and sample
  for (const TextFile& file : train) {
    if (sizes.contains(file.size)) trained.emplace(std::pair(file.size, hash_of_sample(file)), &file);
  }
  std::vector<std::string> shared;
  for (const TextFile& file : others) {
    if (!sizes_of_train.contains(file.size)) continue;
    const auto [first, last] = trained.equal_range(std::pair(file.size, hash_of_sample(file)));
    const bool is_shared =
        std::any_of(first, last, [&](const auto& entry) { return have_one_content(file, *entry.second); });
    if (is_shared) shared.push_back(file.path);
  }
  if (shared.empty()) return "";
  return fmt::format("{} of {} of {} {} in train as well, by path or by content: '{}'{}", shared.size(),
                     counted(std::ssize(others), "file"), held_out, shared.size() == 1 ? "is" : "are", shared.front(),
                     shared.size() == 1 ? "" : fmt::format(" and {} more", shared.size() - 1));
}

}  // namespace pmaptrain::data
