// CIFAR-10's binary files. They are large, so most of what the tests write are holes.
#include "core/data/arrays/cifar10.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/catch.h"
#include "tests/data/files.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

namespace fs = std::filesystem;

constexpr std::size_t cifar_plane = 32 * 32, cifar_record = 1 + 3 * cifar_plane, cifar_bytes = 10000 * cifar_record;

// A file of zeros but for record `index`: its label, and planes of 1, 2 and 3 with a 9 at row 2, column 5 of
// green.
void write_cifar_batch(const std::string& path, std::size_t index, char label) {
  std::string bytes(1, label);
  for (const char value : {'\1', '\2', '\3'}) bytes += std::string(cifar_plane, value);
  bytes[1 + cifar_plane + 2 * 32 + 5] = 9;
  std::ofstream file(path, std::ios::binary);
  file.seekp(static_cast<std::streamoff>(index * cifar_record));
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  fs::resize_file(path, cifar_bytes);
}

data::Source open_split(const std::string& dir, data::Split split) {
  const data::Skipped none;
  return data::Cifar10{dir}.open({0, 1, {}, split, nullptr, none});
}

std::string error_at(const std::string& dir, data::Split split = data::Split::test) {
  return error_of([&] { open_split(dir, split); });
}

const std::string cifar_help =
    " | the folder is cifar-10-batches-bin of cifar-10-binary.tar.gz, the binary version; the Python and MATLAB "
    "versions "
    "have other files";

}  // namespace

TEST_CASE("CIFAR-10's planes become channels, and its five batches follow one another", "[data]") {
  const TemporaryFolder folder;
  for (int i = 1; i <= 5; ++i) {
    write_cifar_batch(folder / ("data_batch_" + std::to_string(i) + ".bin"), i == 4 ? 7U : 0U, static_cast<char>(i));
  }
  folder.write("batches.meta.txt", "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n");
  const data::Source source = open_split(folder.path().string(), data::Split::train);
  REQUIRE(source.train->size() == 50000);
  CHECK(source.train->input().shape == Shape{32, 32, 3});
  CHECK(source.train->input().dtype == DType::u8);
  CHECK(source.test == nullptr);
  CHECK(source.encoding.classes.size() == 10);
  CHECK(source.encoding.classes.back() == "truck");
  std::string image(3 * cifar_plane, '\0');
  std::int32_t label = 0;
  source.train->read(30007, reinterpret_cast<std::byte*>(image.data()), reinterpret_cast<std::byte*>(&label));
  CHECK(label == 4);
  CHECK(image.substr(0, 3) == "\1\2\3");
  CHECK(image.substr((2 * 32 + 5) * 3, 3) == "\1\x9\3");
}

TEST_CASE("files that are not CIFAR-10's binary ones are refused by name", "[data]") {
  const TemporaryFolder folder;
  const std::string dir = folder.path().string(), test = folder / "test_batch.bin";
  CHECK(error_at(dir) == "'" + dir + "' has no file 'test_batch.bin'" + cifar_help);
  CHECK(error_at(dir, data::Split::train) == "'" + dir + "' has no file 'data_batch_1.bin'" + cifar_help);
  CHECK(contains(error_at(dir + "/missing"), "cannot open '" + dir + "/missing': No such file or directory"));
  folder.write("test_batch.bin", "short");
  CHECK(error_at(dir) == "'" + test +
                             "' has 5 bytes, expected 30730000: 10000 records of 3073 bytes | copy or download it "
                             "again");
  write_cifar_batch(test, 5, 10);
  CHECK(error_at(dir) == "record 5 of '" + test + "' has the label 10, expected 0 to 9" + cifar_help);
  write_cifar_batch(test, 5, 9);
  CHECK(error_at(dir) == "accepted");
  folder.write("batches.meta.txt", "a\nb\n");
  CHECK(error_at(dir) == "'" + dir + "/batches.meta.txt' has 2 names of classes, expected 10, one a line" + cifar_help);
  fs::resize_file(test, cifar_bytes + 1);
  CHECK(error_at(dir) ==
        "'" + test + "' has 30730001 bytes, expected 30730000: 10000 records of 3073 bytes" + cifar_help);
}
