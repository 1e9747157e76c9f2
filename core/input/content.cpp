#include "core/input/content.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/philox.h"
#include "core/base/text.h"
#include "core/data/arrays/cifar10.h"
#include "core/data/arrays/idx_source.h"
#include "core/data/dataset.h"
#include "core/data/file.h"
#include "core/spec/compare.h"
#include "core/spec/paths.h"

namespace pmaptrain::input {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t mebibyte = std::int64_t{1} << 20, block = 4096, blocks = 4096;
constexpr std::int64_t least_sampled = 64 * mebibyte;

using IsUsed = std::function<bool(const std::string& name)>;

struct File {
  std::string name;  // below the folder; empty for a file alone
  std::string path;
  std::int64_t size = 0;
};

void add_files(const std::string& folder, const std::string& below, int depth, const IsUsed& is_used,
               std::vector<File>& found) {
  constexpr int deepest = 64;  // links may lead in circles
  std::error_code error;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string(), path = at->path().string();
    if (name.starts_with('.')) continue;
    struct stat status = {};
    if (::stat(path.c_str(), &status) != 0) continue;  // a link to nothing
    if (S_ISREG(status.st_mode) && is_used(name)) found.push_back({below + name, path, status.st_size});
    if (!S_ISDIR(status.st_mode) || depth == deepest) continue;
    std::error_code ignored;
    const bool is_written_by_us =
        fs::exists(at->path() / ".pmaptrain", ignored) || fs::exists(at->path() / ".pmaptrain-sweep", ignored);
    if (!is_written_by_us) add_files(path, below + name + "/", depth + 1, is_used, found);
  }
  if (error) data::fail_to_open(folder, error.value());
}

class Hash {
 public:
  Hash() : state_(XXH3_createState(), XXH3_freeState) {
    if (!state_) throw std::bad_alloc();
    XXH3_64bits_reset(state_.get());
  }
  void add(const void* bytes, std::size_t count) { XXH3_64bits_update(state_.get(), bytes, count); }
  std::string digits() const { return fmt::format("{:016x}", XXH3_64bits_digest(state_.get())); }

 private:
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_;
};

struct ByteRange {
  std::int64_t begin = 0, end = 0;
};

// Of the bytes of all files, one after another; sorted.
std::vector<ByteRange> sample_of(std::int64_t bytes) {
  if (bytes < least_sampled) return {{0, bytes}};
  const PhiloxKey key = stream_key(0, "content");
  const std::int64_t first = mebibyte / block, each = (bytes / block - 2 * first) / blocks;
  std::vector<ByteRange> ranges{{0, mebibyte}};
  for (std::int64_t i = 0; i < blocks; ++i) {
    const std::array<std::uint32_t, 4> bits = philox4x32(key, {static_cast<std::uint32_t>(i), 0, 0, 0});
    const std::uint64_t drawn = std::uint64_t{bits[0]} << 32 | bits[1];
    const std::int64_t begin =
        (first + i * each + static_cast<std::int64_t>(drawn % static_cast<std::uint64_t>(each))) * block;
    ranges.push_back({begin, begin + block});
  }
  ranges.push_back({bytes - mebibyte, bytes});
  return ranges;
}

void read_range(const Descriptor& file, const std::string& path, ByteRange range, std::vector<std::byte>& room,
                Hash& hash) {
  while (range.begin < range.end) {
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(range.end - range.begin, mebibyte));
    const ssize_t got = ::pread(file.get(), room.data(), count, range.begin);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_data(fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
    if (got == 0) fail_data(fmt::format("'{}' became shorter while it was read", path), "start again");
    hash.add(room.data(), static_cast<std::size_t>(got));
    range.begin += got;
  }
}

std::string hash_of(const std::vector<File>& files, const std::vector<ByteRange>& ranges) {
  Hash hash;
  for (const File& file : files) {
    if (file.name.empty()) continue;
    const std::string entry = file.name + '\0' + std::to_string(file.size) + '\n';
    hash.add(entry.data(), entry.size());
  }
  std::vector<std::byte> room(static_cast<std::size_t>(mebibyte));
  auto range = ranges.begin();
  std::int64_t begin = 0;  // of the file, among the bytes of all
  for (const File& file : files) {
    const std::int64_t end = begin + file.size;
    while (range != ranges.end() && range->end <= begin) ++range;
    if (range == ranges.end()) break;
    if (range->begin < end && file.size > 0) {
      const Descriptor opened(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
      if (!opened) data::fail_to_open(file.path, errno);
      const auto each = [&](const auto& use) {
        for (auto at = range; at != ranges.end() && at->begin < end; ++at) {
          use(ByteRange{std::max(at->begin, begin) - begin, std::min(at->end, end) - begin});
        }
      };
      // The system fetches what is not in memory all at once, which a network file system answers faster.
      if (ranges.size() > 1) {
        each([&](ByteRange part) {
          ::posix_fadvise(opened.get(), part.begin, part.end - part.begin, POSIX_FADV_WILLNEED);
        });
      }
      each([&](ByteRange part) { read_range(opened, file.path, part, room, hash); });
    }
    begin = end;
  }
  return hash.digits();
}

Content read(const std::string& path, const IsUsed& is_used, bool whole) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) data::fail_to_open(path, errno);
  Content content;
  content.path = path;
  std::vector<File> files;
  if (S_ISDIR(status.st_mode)) {
    add_files(path, "", 0, is_used, files);
    std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.name < b.name; });
    content.files = std::ssize(files);
  } else if (S_ISREG(status.st_mode)) {
    files.push_back({"", path, status.st_size});
  } else {
    fail_data(fmt::format("'{}' is not a regular file", path));
  }
  for (const File& file : files) content.bytes += file.size;
  const bool is_small = content.bytes < least_sampled;
  content.hash = hash_of(files, sample_of(content.bytes));
  if (is_small) content.whole = content.hash;
  if (whole && !is_small) content.whole = hash_of(files, {{0, content.bytes}});
  return content;
}

bool every_file(const std::string& /*name*/) { return true; }

// The splits of a source that has its files in one folder, each with the files that it reads there.
std::vector<std::pair<std::string, IsUsed>> splits_in_folder(const data::SourceKind& source) {
  std::string_view ending, of_test;
  if (source.as<data::Cifar10>() != nullptr) {
    ending = ".bin", of_test = "test_";
  } else if (source.as<data::FashionMnist>() != nullptr) {
    ending = "-ubyte.gz", of_test = "t10k-";
  } else {
    return {};
  }
  const auto of = [ending, of_test](bool test) {
    return [=](const std::string& name) { return name.ends_with(ending) && name.starts_with(of_test) == test; };
  };
  return {{"train", of(false)}, {"test", of(true)}};
}

std::optional<std::string> split_in_key(std::string_view key) {
  for (std::size_t dot = 0; dot != std::string_view::npos;) {
    const std::size_t next = key.find('.', dot + 1);
    const std::string_view name = key.substr(dot == 0 ? 0 : dot + 1, next - (dot == 0 ? 0 : dot + 1));
    if (data::split_named(name)) return std::string(name);
    dot = next;
  }
  return std::nullopt;
}

// The paths that are read: those of the config, and the default folder of fashion_mnist, which no config writes.
std::vector<spec::PathAt> paths_of(const spec::Loaded& loaded) {
  std::vector<spec::PathAt> paths = spec::paths_below(loaded, "data.source");
  const auto* fashion = loaded.spec.data.source.as<data::FashionMnist>();
  if (paths.empty() && fashion != nullptr) {
    paths.push_back({"data.source.fashion_mnist.dir", fashion->dir, loaded.spec.data.source_place});
  }
  return paths;
}

// Visits what a config names: its key, its path, and which of the files of a folder are read.
template <class Visit>
void each_content(const spec::Loaded& loaded, const Visit& visit) {
  const auto splits = splits_in_folder(loaded.spec.data.source);
  for (const spec::PathAt& at : paths_of(loaded)) {
    if (splits.empty()) visit(at.key, at, every_file);
    for (const auto& [split, is_used] : splits) visit(at.key + "." + split, at, is_used);
  }
}

Contents contents_where(const spec::Loaded& loaded, bool whole, const std::function<bool(std::string_view)>& is_meant) {
  Contents contents;
  each_content(loaded, [&](const std::string& key, const spec::PathAt& at, const IsUsed& is_used) {
    if (!is_meant(key)) return;
    contents.push_back(data::at_place(at.place, [&] { return read(at.path, is_used, whole); }));
    contents.back().key = key;
  });
  return contents;
}

}  // namespace

Content content_of(const std::string& path, bool whole) { return read(path, every_file, whole); }

bool is_same(const Content& a, const Content& b) {
  if (a.bytes != b.bytes || a.files != b.files || a.hash != b.hash) return false;
  return a.whole.empty() || b.whole.empty() || a.whole == b.whole;
}

std::string difference(const Contents& run, const Contents& now) {
  std::string first;
  std::int64_t more = 0;
  for (const Content& content : now) {
    const auto before =
        std::find_if(run.begin(), run.end(), [&](const Content& one) { return one.key == content.key; });
    if (before == run.end() || is_same(*before, content)) continue;
    if (!first.empty()) {
      ++more;
      continue;
    }
    const bool shows_whole = before->hash == content.hash;  // then the sample has missed what differs
    const auto text = [&](const Content& one) {
      return (one.files ? counted(*one.files, "file") + " of " : "") + counted(one.bytes, "byte") + " with hash " +
             (shows_whole ? one.whole : one.hash);
    };
    first =
        fmt::format("'{}' ({}) has {}; the run began with {}", content.path, content.key, text(content), text(*before));
    if (before->path != content.path) first += fmt::format(" in '{}'", before->path);
  }
  return more == 0 ? first : fmt::format("{}; {} differ too", first, counted(more, "other path"));
}

bool has_all(const Contents& run, const Contents& now) {
  return std::all_of(now.begin(), now.end(), [&](const Content& content) {
    return std::any_of(run.begin(), run.end(), [&](const Content& one) { return one.key == content.key; });
  });
}

bool has_same_keys(const Contents& run, const spec::Loaded& loaded, std::string_view key) {
  std::vector<std::string> known, now;
  for (const Content& content : run) {
    if (spec::is_at_or_below(content.key, key)) known.push_back(content.key);
  }
  each_content(loaded, [&](const std::string& at, const spec::PathAt&, const IsUsed&) {
    if (spec::is_at_or_below(at, key)) now.push_back(at);
  });
  return !known.empty() && known == now;
}

Contents contents_of(const spec::Loaded& loaded, bool whole) {
  return contents_where(loaded, whole, [](std::string_view) { return true; });
}

Contents contents_of(const spec::Loaded& loaded, const std::string& split, bool whole) {
  const bool is_divided = split == "validation" && loaded.spec.data.validation.has_value();
  return contents_where(loaded, whole, [&](std::string_view key) {
    const std::optional<std::string> of = split_in_key(key);
    return !of || *of == (is_divided ? "train" : split);
  });
}

}  // namespace pmaptrain::input
