// Files of every format, right and wrong, byte by byte.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/words.h"

namespace pmaptrain::testing {

using test::contains;
using test::TemporaryFolder;

// The error that `f` throws, as its message and help on one line; "accepted" when it throws none.
template <class F>
std::string error_of(F&& f, ExitStatus status = ExitStatus::data) {
  return test::refusal(f, status);
}

// What `f` throws, in all its parts; none where it throws nothing.
template <class F>
std::vector<Diagnostic> diagnostics_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.diagnostics();
  }
  return {};
}

inline std::string little(std::uint64_t value, int size) {
  std::string text;
  for (int i = 0; i < size; ++i) text += i < 8 ? static_cast<char>(value >> (8 * i) & 255) : '\0';
  return text;
}
inline std::string big(std::uint64_t value, int size) {
  const std::string text = little(value, size);
  return {text.rbegin(), text.rend()};
}
template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

inline std::string idx(int code, const std::vector<std::uint64_t>& sizes, const std::string& data) {
  std::string text = std::string(2, '\0') + static_cast<char>(code) + static_cast<char>(sizes.size());
  for (const std::uint64_t size : sizes) text += big(size, 4);
  return text + data;
}

inline std::string deflated(const std::string& data, int window) {
  z_stream stream = {};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string input = data;
  std::string out(data.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}
inline std::string gzip(const std::string& data) { return deflated(data, 15 + 16); }

inline std::string npy_with(const std::string& header, const std::string& data, int version = 1) {
  return "\x93NUMPY" + std::string(1, static_cast<char>(version)) + std::string(1, '\0') +
         little(header.size(), version == 1 ? 2 : 4) + header + data;
}
inline std::string npy(const std::string& descr, const std::string& shape, const std::string& data, int version = 1,
                       const std::string& fortran = "False") {
  return npy_with("{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }   \n", data,
                  version);
}

// An archive of one entry, whose fields can be set wrong.
struct Zip {
  std::string name = "x.npy", content;
  bool deflate = false;
  unsigned flags = 0, method = 0;
  std::uint64_t crc_change = 0, size_change = 0, offset_change = 0, count = 1;
  std::string extra;  // of the directory, which then leaves the sizes to it

  std::string build() const {
    const std::string data = deflate ? deflated(content, -15) : content;
    const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size()) ^ crc_change;
    const unsigned how = deflate ? 8 : method;
    const auto shared = [&](std::uint64_t compressed, std::uint64_t uncompressed, std::size_t extra_size) {
      return little(flags, 2) + little(how, 2) + little(0, 4) + little(crc, 4) + little(compressed, 4) +
             little(uncompressed, 4) + little(name.size(), 2) + little(extra_size, 2);
    };
    const std::uint64_t compressed = data.size() + (deflate ? 0 : size_change);
    const std::uint64_t uncompressed = content.size() + size_change;
    constexpr std::uint64_t elsewhere = 0xffffffff;
    const std::string local = "PK\3\4" + little(20, 2) + shared(compressed, uncompressed, 0) + name + data;
    const std::string entry =
        "PK\1\2" + little(20, 2) + little(20, 2) +
        (extra.empty() ? shared(compressed, uncompressed, 0) : shared(elsewhere, elsewhere, extra.size())) +
        little(0, 10) + little(offset_change, 4) + name + extra;
    return local + entry + "PK\5\6" + little(0, 4) + little(count, 2) + little(count, 2) + little(entry.size(), 4) +
           little(local.size(), 4) + little(0, 2);
  }
};

// An archive of stored entries, each a name and its content.
inline std::string archive(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string files, directory;
  for (const auto& [name, content] : entries) {
    const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size());
    const std::string shared = little(0, 8) + little(crc, 4) + little(content.size(), 4) + little(content.size(), 4) +
                               little(name.size(), 2) + little(0, 2);
    directory += "PK\1\2" + little(20, 2) + little(20, 2) + shared + little(0, 10) + little(files.size(), 4) + name;
    files += "PK\3\4" + little(20, 2) + shared + name + content;
  }
  return files + directory + "PK\5\6" + little(0, 4) + little(entries.size(), 2) + little(entries.size(), 2) +
         little(directory.size(), 4) + little(files.size(), 4) + little(0, 2);
}

}  // namespace pmaptrain::testing
