#include "core/data/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#ifdef PMAPTRAIN_LIBDEFLATE
#include <libdeflate.h>
#endif

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/file_kind.h"
#include "core/base/machine.h"
#include "core/base/text.h"

namespace pmaptrain::data {
namespace {

constexpr std::string_view debian_licences = "/usr/share/common-licenses/";
constexpr std::string_view relative_to_config = "a relative path in a config is relative to the folder of the config";
constexpr std::string_view relative_to_current = "a relative path in an option is relative to the current directory";

// A pointer has the name, the size and the hash of the file that it stands for.
constexpr off_t longest_pointer = 1024;

void refuse_pointer(const Descriptor& file, const std::string& path) {
  std::array<std::byte, longest_pointer> bytes;
  const ssize_t count = ::pread(file.get(), bytes.data(), bytes.size(), 0);
  if (count <= 0) return;  // whoever reads it will tell
  if (const auto kind = pointer_kind(std::span(bytes).first(static_cast<std::size_t>(count)))) {
    fail_data(fmt::format("'{}' is {}", path, kind->name), std::string(kind->help));
  }
}

// Opens a regular, non-empty file.
Descriptor open_file(const std::string& path, struct stat& status) {
  // Without O_NONBLOCK, opening a named pipe would wait for its writer.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail_to_open(path, errno);
  if (::fstat(file.get(), &status) != 0) fail_to_open(path, errno);
  if (S_ISDIR(status.st_mode)) fail_data(fmt::format("'{}' is a directory, expected a file", path));
  if (!S_ISREG(status.st_mode)) fail_data(fmt::format("'{}' is not a regular file", path));
  if (status.st_size == 0) fail_data(fmt::format("'{}' is empty", path));
  if (status.st_size <= longest_pointer) refuse_pointer(file, path);
  return file;
}

}  // namespace

void fail_to_open(const std::string& path, int error) {
  if (error == EMFILE || error == ENFILE) {
    fail_resource(fmt::format("cannot open '{}': {}", path, std::strerror(error)),
                  "raise the limit on open files (ulimit -n), or end other processes");
  }
  std::string help;
  if (error == ENOENT) {
    help = path.starts_with(debian_licences) ? "it is of Debian's package base-files" : std::string(relative_to_config);
  }
  throw Error(
      ExitStatus::data,
      Diagnostic{
          "data", {}, fmt::format("cannot open '{}': {}", path, std::strerror(error)), std::move(help), {}, path});
}

void give_place(std::vector<Diagnostic>& diagnostics, const Place& place) {
  for (Diagnostic& diagnostic : diagnostics) {
    if (!diagnostic.place.known()) diagnostic.place = place;
    if (diagnostic.place.file.starts_with("--") && diagnostic.help == relative_to_config) {
      diagnostic.help = relative_to_current;
    }
  }
}

void throw_about(const std::string& path, const Error& error) {
  std::vector<Diagnostic> diagnostics = error.diagnostics();
  for (Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.file.empty()) diagnostic.file = path;
  }
  throw Error(error.status(), std::move(diagnostics));
}

void throw_at(const Place& place, const Error& error) {
  std::vector<Diagnostic> diagnostics = error.diagnostics();
  give_place(diagnostics, place);
  throw Error(error.status(), std::move(diagnostics));
}

Bytes map_file(const std::string& path) {
  struct stat status = {};
  Descriptor file = about_file(path, [&] { return open_file(path, status); });
  try {
    return Bytes(std::make_shared<const Mapping>(file.release(), static_cast<std::size_t>(status.st_size),
                                                 status.st_mtim, path));
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::not_enough_memory) fail_to_open(path, error.code().value());
    fail_resource(fmt::format("'{}' cannot be mapped: its {} do not fit in the address space of the process", path,
                              human_bytes(status.st_size)),
                  "check the limits on address space (ulimit -v) and on mappings (vm.max_map_count)");
  }
}

std::vector<std::byte> read_file(const std::string& path, std::size_t most) {
  struct stat status = {};
  const Descriptor file = about_file(path, [&] { return open_file(path, status); });
  const std::size_t size = std::min(static_cast<std::size_t>(status.st_size), most);
  constexpr std::size_t much = std::size_t{32} << 20;  // most files are small
  if (size > much) demand_memory(size, fmt::format("'{}'", path));
  std::vector<std::byte> bytes(size);
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t got = ::read(file.get(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_data(fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
    if (got == 0) fail_data(fmt::format("'{}' became shorter while it was read", path), "start again");
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

struct Inflater::State {
  std::string name;
  std::span<const std::byte> rest;  // not yet handed to zlib
  z_stream stream = {};
  bool gzip = false;
  bool ended = false;
};

Inflater::Inflater(std::span<const std::byte> compressed, Compression compression, std::string name)
    : state_(std::make_unique<State>()) {
  state_->name = std::move(name);
  state_->rest = compressed;
  state_->gzip = compression == Compression::gzip;
  const int window = state_->gzip ? 15 + 16 : -15;  // zlib's codes for a gzip wrapper and for none
  if (inflateInit2(&state_->stream, window) != Z_OK) fail_resource("zlib could not be initialised");
}

Inflater::~Inflater() { inflateEnd(&state_->stream); }

std::uint64_t Inflater::limit(std::uint64_t compressed) { return compressed * 1032 + 1024; }

// Called after a gzip member. Starts the next one, if there is one. Zero bytes at the end are padding, as in gzip
// itself.
bool Inflater::next_member() {
  State& s = *state_;
  const std::span<const std::byte> left{s.rest.data() - s.stream.avail_in, s.rest.size() + s.stream.avail_in};
  if (!s.gzip || std::all_of(left.begin(), left.end(), [](std::byte b) { return b == std::byte{0}; })) return false;
  if (!is_gzip(left)) fail_data(fmt::format("{} has {} bytes after its compressed data", s.name, left.size()));
  inflateReset(&s.stream);
  return true;
}

std::size_t Inflater::read(std::span<std::byte> out) {
  State& s = *state_;
  constexpr std::size_t chunk = std::size_t{1} << 30;  // zlib counts in unsigned int
  std::size_t done = 0;
  while (done < out.size() && !s.ended) {
    if (s.stream.avail_in == 0 && !s.rest.empty()) {
      const std::size_t count = std::min(s.rest.size(), chunk);
      // zlib never writes through next_in; its type says otherwise only without ZLIB_CONST.
      s.stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(s.rest.data()));
      s.stream.avail_in = static_cast<uInt>(count);
      s.rest = s.rest.subspan(count);
    }
    const std::size_t wanted = std::min(out.size() - done, chunk);
    s.stream.next_out = reinterpret_cast<Bytef*>(out.data() + done);
    s.stream.avail_out = static_cast<uInt>(wanted);
    const int result = inflate(&s.stream, Z_NO_FLUSH);
    done += wanted - s.stream.avail_out;
    if (result == Z_STREAM_END) {
      s.ended = !next_member();
    } else if (result == Z_BUF_ERROR ||
               (result == Z_OK && s.stream.avail_in == 0 && s.rest.empty() && s.stream.avail_out != 0)) {
      fail_data(fmt::format("{} is truncated: its compressed data is incomplete", s.name), "copy or download it again");
    } else if (result != Z_OK) {
      const char* const why = s.stream.msg != nullptr ? s.stream.msg : "unknown error";
      fail_data(fmt::format("{} is damaged: its compressed data cannot be read ({})", s.name, why),
                "copy or download it again");
    }
  }
  return done;
}

bool inflate_whole(std::span<const std::byte> gzip, std::span<std::byte> out) {
#ifdef PMAPTRAIN_LIBDEFLATE
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> decompressor(
      libdeflate_alloc_decompressor(), &libdeflate_free_decompressor);
  if (!decompressor) return false;
  std::size_t consumed = 0;
  // Without a place for the size that it finds, it demands the size of `out`.
  const libdeflate_result result = libdeflate_gzip_decompress_ex(decompressor.get(), gzip.data(), gzip.size(),
                                                                 out.data(), out.size(), &consumed, nullptr);
  return result == LIBDEFLATE_SUCCESS && consumed == gzip.size();
#else
  try {
    Inflater inflater(gzip, Compression::gzip, "");
    std::byte extra;
    return inflater.read(out) == out.size() && inflater.read({&extra, 1}) == 0;
  } catch (const Error& error) {
    if (error.status() != ExitStatus::data) throw;
    return false;
  }
#endif
}

bool is_gzip(std::span<const std::byte> bytes) {
  constexpr std::byte deflate{8};  // the only method there is
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b} &&
         (bytes.size() == 2 || bytes[2] == deflate);
}

std::uint64_t read_little(std::span<const std::byte> bytes, std::size_t offset, std::size_t size) {
  assert(size <= 8 && offset + size <= bytes.size());
  std::uint64_t value = 0;
  for (std::size_t i = size; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes[offset + i]);
  return value;
}

std::uint64_t read_big(std::span<const std::byte> bytes, std::size_t offset, std::size_t size) {
  assert(size <= 8 && offset + size <= bytes.size());
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value = value << 8 | std::to_integer<std::uint64_t>(bytes[offset + i]);
  return value;
}

}  // namespace pmaptrain::data
