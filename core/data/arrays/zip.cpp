#include "core/data/arrays/zip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "core/base/error.h"
#include "core/base/file_kind.h"
#include "core/base/text.h"
#include "core/data/arrays/array.h"

namespace pmaptrain::data {
namespace {

constexpr std::uint32_t local_signature = 0x04034b50;
constexpr std::uint32_t directory_signature = 0x02014b50;
constexpr std::uint32_t end_signature = 0x06054b50;
constexpr std::uint32_t end64_signature = 0x06064b50;
constexpr std::uint32_t locator64_signature = 0x07064b50;
constexpr std::size_t local_size = 30;
constexpr std::size_t directory_size = 46;
constexpr std::size_t end_size = 22;
constexpr std::size_t end64_size = 56;
constexpr std::size_t locator64_size = 20;
constexpr std::uint16_t stored_method = 0, deflated_method = 8;
constexpr std::uint64_t in_zip64 = 0xffffffff;  // a 32-bit field whose value is in the ZIP64 record instead

using View = std::span<const std::byte>;

std::uint64_t u16(View view, std::size_t at) { return read_little(view, at, 2); }
std::uint64_t u32(View view, std::size_t at) { return read_little(view, at, 4); }
std::uint64_t u64(View view, std::size_t at) { return read_little(view, at, 8); }

// Whether [offset, offset + count) lies within `size`, without overflow.
bool inside(std::uint64_t offset, std::uint64_t count, std::uint64_t size) {
  return offset <= size && count <= size - offset;
}

// Takes the values of saturated fields from the ZIP64 extra field, in the order that the format fixes. False when
// they are not there.
bool apply_zip64(View extra, ZipArchive::Entry& entry) {
  std::uint64_t* const fields[] = {&entry.uncompressed, &entry.compressed, &entry.local_header};
  const bool wanted = std::any_of(std::begin(fields), std::end(fields), [](auto* f) { return *f == in_zip64; });
  if (!wanted) return true;
  for (std::size_t at = 0; inside(at, 4, extra.size());) {
    const std::uint64_t id = u16(extra, at);
    const std::uint64_t size = u16(extra, at + 2);
    if (!inside(at + 4, size, extra.size())) return false;
    if (id == 1) {
      const View record = extra.subspan(at + 4, static_cast<std::size_t>(size));
      std::size_t next = 0;
      for (std::uint64_t* const field : fields) {
        if (*field != in_zip64) continue;
        if (!inside(next, 8, record.size())) return false;
        *field = u64(record, next);
        next += 8;
      }
      return true;
    }
    at += 4 + static_cast<std::size_t>(size);
  }
  return false;
}

}  // namespace

void ZipArchive::fail(const std::string& what) const {
  fail_data(fmt::format("'{}' {}", path_, what), "write it again with numpy.savez or numpy.savez_compressed");
}

std::string ZipArchive::name_of(const Entry& entry) const {
  return fmt::format("entry '{}' of '{}'", entry.name, path_);
}

ZipArchive::ZipArchive(const std::string& path) : ZipArchive(path, map_file(path)) {}

ZipArchive::ZipArchive(std::string path, Bytes file) : path_(std::move(path)), file_(std::move(file)) {
  const View view = file_.view();
  if (as_chars(view).starts_with("\x93NUMPY")) {
    fail_data(fmt::format("'{}' is one array in NPY format, expected an archive of arrays (NPZ)", path_),
              "put the arrays into one file with numpy.savez(FILE, x=inputs, y=targets)");
  }
  // The end record is last, but for a comment of up to 65535 bytes that it announces.
  std::size_t end = view.size();
  if (view.size() >= end_size) {
    const std::size_t last = view.size() - end_size;
    const std::size_t first = last - std::min<std::size_t>(last, 65535);
    for (std::size_t at = last + 1; at-- > first;) {
      if (u32(view, at) == end_signature && u16(view, at + 20) == view.size() - at - end_size) {
        end = at;
        break;
      }
    }
  }
  if (end == view.size()) {
    const bool is_zip = view.size() >= 4 && u32(view, 0) == local_signature;
    if (const std::optional<FileKind> kind = kind_of_file(view); kind && !is_zip) {
      fail_data(fmt::format("'{}' is {}, expected an archive of arrays (NPZ)", path_, kind->name),
                std::string(kind->help));
    }
    fail("is not a zip archive (NPZ), or is truncated: it has no directory at its end");
  }

  std::uint64_t count = u16(view, end + 10);
  std::uint64_t size = u32(view, end + 12);
  std::uint64_t offset = u32(view, end + 16);
  if (count == 0xffff || size == in_zip64 || offset == in_zip64) {
    const bool located = end >= locator64_size && u32(view, end - locator64_size) == locator64_signature;
    const std::uint64_t end64 = located ? u64(view, end - locator64_size + 8) : 0;
    if (!located || !inside(end64, end64_size, end) || u32(view, static_cast<std::size_t>(end64)) != end64_signature) {
      fail("is damaged: its ZIP64 directory is not at the stated offset");
    }
    count = u64(view, static_cast<std::size_t>(end64) + 32);
    size = u64(view, static_cast<std::size_t>(end64) + 40);
    offset = u64(view, static_cast<std::size_t>(end64) + 48);
  }
  if (!inside(offset, size, end) || count > size / directory_size) {
    fail("is damaged: its directory is not inside the file");
  }
  read_directory(offset, size, count);
}

void ZipArchive::read_directory(std::uint64_t offset, std::uint64_t size, std::uint64_t count) {
  const View directory = file_.view().subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
  std::unordered_set<std::string> names;
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!inside(at, directory_size, directory.size()) || u32(directory, at) != directory_signature) {
      fail(fmt::format("is damaged: entry {} of its directory cannot be read", i));
    }
    Entry entry;
    entry.flags = static_cast<std::uint16_t>(u16(directory, at + 8));
    entry.method = static_cast<std::uint16_t>(u16(directory, at + 10));
    entry.crc = static_cast<std::uint32_t>(u32(directory, at + 16));
    entry.compressed = u32(directory, at + 20);
    entry.uncompressed = u32(directory, at + 24);
    entry.local_header = u32(directory, at + 42);
    const auto name = static_cast<std::size_t>(u16(directory, at + 28));
    const auto extra = static_cast<std::size_t>(u16(directory, at + 30));
    const auto comment = static_cast<std::size_t>(u16(directory, at + 32));
    at += directory_size;
    if (!inside(at, name + extra + comment, directory.size())) {
      fail(fmt::format("is damaged: entry {} of its directory cannot be read", i));
    }
    entry.name.assign(reinterpret_cast<const char*>(directory.data()) + at, name);
    if (!apply_zip64(directory.subspan(at + name, extra), entry)) {
      fail(fmt::format("is damaged: entry '{}' lacks its ZIP64 sizes", entry.name));
    }
    if (!names.insert(entry.name).second) fail(fmt::format("has two entries named '{}'", entry.name));
    entries_.push_back(std::move(entry));
    at += name + extra + comment;
  }
}

const ZipArchive::Entry* ZipArchive::find(const std::string& name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name; });
  return found == entries_.end() ? nullptr : &*found;
}

// The stored bytes of an entry, compressed or not, after checks against the directory.
Bytes ZipArchive::stored(const Entry& entry) const {
  const View view = file_.view();
  if ((entry.flags & 1U) != 0) fail_data(name_of(entry) + " is encrypted, which is not supported");
  if (!inside(entry.local_header, local_size, view.size()) ||
      u32(view, static_cast<std::size_t>(entry.local_header)) != local_signature) {
    fail(fmt::format("is damaged: entry '{}' is not at the offset in the directory", entry.name));
  }
  const auto local = static_cast<std::size_t>(entry.local_header);
  const std::uint64_t start = local + local_size + u16(view, local + 26) + u16(view, local + 28);
  if (!inside(start, entry.compressed, view.size())) {
    fail(fmt::format("is truncated: entry '{}' needs {} bytes from byte {} on, the file has {}", entry.name,
                     entry.compressed, start, view.size()));
  }
  if (entry.method != stored_method && entry.method != deflated_method) {
    fail(
        fmt::format("has entry '{}' compressed with method {}, expected stored or deflated", entry.name, entry.method));
  }
  if (entry.method == deflated_method && entry.uncompressed > Inflater::limit(entry.compressed)) {
    fail(fmt::format("is damaged: {} compressed bytes of entry '{}' cannot hold {}", entry.compressed, entry.name,
                     entry.uncompressed));
  }
  if (entry.method == stored_method && entry.compressed != entry.uncompressed) {
    fail(fmt::format("is damaged: stored entry '{}' has two sizes", entry.name));
  }
  return file_.slice(static_cast<std::size_t>(start), static_cast<std::size_t>(entry.compressed));
}

// Decompresses the first `count` bytes of an entry, count <= its size; if they are all, the data must end there.
Bytes ZipArchive::inflated(const Entry& entry, std::uint64_t count) const {
  const Bytes compressed = stored(entry);
  Memory memory = allocate(count, name_of(entry));
  Inflater inflater(compressed.view(), Compression::raw_deflate, name_of(entry));
  std::byte extra;
  if (inflater.read(memory.view) != memory.view.size() ||
      (count == entry.uncompressed && inflater.read({&extra, 1}) != 0)) {
    fail(fmt::format("is damaged: entry '{}' does not have the {} bytes stated in the directory", entry.name,
                     entry.uncompressed));
  }
  return Bytes(std::move(memory.owner), memory.view);
}

Bytes ZipArchive::head(const Entry& entry, std::uint64_t count) const {
  count = std::min(count, entry.uncompressed);
  return entry.method == deflated_method ? inflated(entry, count)
                                         : stored(entry).slice(0, static_cast<std::size_t>(count));
}

Bytes ZipArchive::read(const Entry& entry) const {
  Bytes content = entry.method == deflated_method ? inflated(entry, entry.uncompressed) : stored(entry);
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size());
  if (crc != entry.crc) {
    fail_data(fmt::format("'{}' is damaged: the checksum of entry '{}' does not match", path_, entry.name),
              "copy or download it again");
  }
  return content;
}

namespace {

// An array of the archive, with its name for messages, and its header.
struct NpzArray {
  const ZipArchive::Entry* entry;
  std::string name;
  NpyHead head;
};

NpzArray find_array(const ZipArchive& archive, const std::string& key) {
  const std::string& path = archive.path();
  const ZipArchive::Entry* entry = archive.find(key + ".npy");
  if (entry == nullptr) {
    std::vector<std::string> names;
    for (const ZipArchive::Entry& e : archive.entries()) {
      if (e.name.ends_with(".npy")) names.push_back(e.name.substr(0, e.name.size() - 4));
    }
    const std::string near = nearest(key, names);
    fail_data(fmt::format("'{}' has no array '{}'; it has {}", path, key, names.empty() ? "none" : join(names, ", ")),
              near.empty() ? "" : fmt::format("did you mean '{}'?", near));
  }
  std::string name = fmt::format("array '{}' of '{}'", key, path);
  // A small array in an entry of gigabytes (a zip bomb) is refused before the entry is decompressed.
  NpyHead head = check_npy_head(archive.head(*entry, npy_head_bytes).view(), entry->uncompressed, name);
  return {entry, std::move(name), std::move(head)};
}

}  // namespace

NpyHead read_npz_head(const std::string& path, const std::string& key) {
  return find_array(ZipArchive(path), key).head;
}

Array read_npz(const std::string& path, const std::string& key) {
  const ZipArchive archive(path);
  NpzArray found = find_array(archive, key);
  return parse_npy(archive.read(*found.entry), std::move(found.name));
}

}  // namespace pmaptrain::data
