#include "core/data/arrays/cifar10.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/arrays/array_dataset.h"
#include "core/data/file.h"
#include "core/data/opening.h"

namespace pmaptrain::data {
namespace {

// A record is a label, then the red, the green and the blue plane of an image, row by row.
constexpr std::size_t side = 32, channels = 3, image_plane = side * side, image = image_plane * channels,
                      record_bytes = 1 + image;
constexpr std::size_t records = 10000;  // of each file
constexpr unsigned classes = 10;

constexpr std::string_view files_help =
    "the folder is cifar-10-batches-bin of cifar-10-binary.tar.gz, the binary version; the Python and MATLAB versions "
    "have other files";

bool exists(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0;
}

// Reads the records of a file into pixels [records, side, side, channels] and labels.
void read_batch(const std::string& path, std::byte* pixels, std::byte* labels) {
  const Bytes file = map_file(path);
  if (file.size() != records * record_bytes) {
    fail_data(fmt::format("'{}' has {} bytes, expected {}: {} records of {} bytes", path, file.size(),
                          records * record_bytes, records, record_bytes),
              file.size() < records * record_bytes ? "copy or download it again" : std::string(files_help));
  }
  for (std::size_t i = 0; i < records; ++i) {
    const std::byte* const from = file.data() + i * record_bytes;
    if (std::to_integer<unsigned>(*from) >= classes) {
      fail_data(fmt::format("record {} of '{}' has the label {}, expected 0 to {}", i, path,
                            std::to_integer<unsigned>(*from), classes - 1),
                std::string(files_help));
    }
    labels[i] = *from;
    std::byte* const to = pixels + i * image;
    for (std::size_t c = 0; c < channels; ++c) {
      const std::byte* const source = from + 1 + c * image_plane;
      for (std::size_t p = 0; p < image_plane; ++p) to[p * channels + c] = source[p];
    }
  }
  file.check_intact();
}

std::shared_ptr<const Dataset> read_split(const std::string& dir, const std::vector<std::string>& names) {
  const std::size_t examples = names.size() * records;
  Memory pixels = allocate(examples * image, fmt::format("'{}'", dir));
  Memory labels = allocate(examples, fmt::format("'{}'", dir));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string path = dir + "/" + names[i];
    if (!exists(path)) fail_data(fmt::format("'{}' has no file '{}'", dir, names[i]), std::string(files_help));
    read_batch(path, pixels.view.data() + i * records * image, labels.view.data() + i * records);
  }
  const auto count = static_cast<std::int64_t>(examples);
  std::vector<std::string> notes;  // stays empty: bytes and labels are taken as they are
  return make_dataset(
      {fmt::format("'{}'", dir), Element::u8, false, {count, side, side, channels}, Bytes(pixels.owner, pixels.view)},
      {fmt::format("'{}'", dir), Element::u8, false, {count}, Bytes(labels.owner, labels.view)}, notes);
}

// One name a line; none if there is no such file.
std::vector<std::string> class_names(const std::string& path) {
  if (!exists(path)) return {};
  std::vector<std::string> names(1);
  for (const std::byte byte : read_file(path, 4096)) {
    const char c = static_cast<char>(byte);
    if (c == '\n') names.emplace_back();
    if (c != '\n' && c != '\r') names.back() += c;
  }
  std::erase(names, "");
  if (!std::all_of(names.begin(), names.end(), is_utf8)) fail_data(fmt::format("'{}' is not UTF-8", path));
  if (names.size() == classes) return names;
  fail_data(fmt::format("'{}' has {} names of classes, expected {}, one a line", path, names.size(), classes),
            std::string(files_help));
}

}  // namespace

Declaration<Cifar10> Cifar10::declaration() {
  return declare::kind<Cifar10>(
      {.path = "cifar10",
       .meaning = "CIFAR-10, the binary version: 50,000 training and 10,000 test images of 32x32 in 10 classes.",
       .example = "source: {cifar10: {dir: cifar-10-batches-bin}}"},
      field(&Cifar10::dir,
            {.path = "dir",
             .is_path = true,
             .need = Need::required,
             .meaning = "The folder of data_batch_1.bin to data_batch_5.bin, test_batch.bin and batches.meta.txt.",
             .example = "dir: cifar-10-batches-bin"}));
}

Source Cifar10::open(const Opening& opening) const {
  return about_file(dir, [&] {
    Source source;
    if (!exists(dir)) map_file(dir);  // throws
    if (opening.wants(Split::train)) {
      std::vector<std::string> names;
      for (int i = 1; i <= 5; ++i) names.push_back(fmt::format("data_batch_{}.bin", i));
      source.train = read_split(dir, names);
    }
    if (opening.wants(Split::test)) source.test = read_split(dir, {"test_batch.bin"});
    source.encoding.classes = class_names(dir + "/batches.meta.txt");
    return source;
  });
}

}  // namespace pmaptrain::data
