// Files of other formats, by their first bytes.
#include "core/base/file_kind.h"

#include <span>
#include <string>

#include "tests/catch.h"

using namespace pmaptrain;
using std::string_literals::operator""s;

TEST_CASE("a ZIP archive of PyTorch or NumPy is named by its first file", "[base]") {
  const auto name = [](const std::string& bytes) {
    const std::optional<FileKind> kind = kind_of_file(std::as_bytes(std::span(bytes)));
    return kind ? std::string(kind->name) : "";
  };
  // The first file of an archive: its name at byte 30, and the length of that at byte 26.
  const auto zip = [](const std::string& file) {
    return "PK\x03\x04"s + std::string(22, '\0') + static_cast<char>(file.size()) + std::string(3, '\0') + file;
  };
  CHECK(name(zip("archive/data.pkl")) == "a PyTorch file");
  CHECK(name(zip("model/version")) == "a PyTorch file");
  CHECK(name(zip("x.npy")) == "an NPZ file of NumPy");
  CHECK(name(zip("notes.txt")).starts_with("a ZIP archive"));
  CHECK(name("PK\x03\x04"s).starts_with("a ZIP archive"));
  CHECK(name("GGUF\x03\0\0\0"s) == "a GGUF file, which holds a model");
  CHECK(name("version https://git-lfs.github.com/spec/v1\noid sha256:0\n").starts_with("a Git LFS pointer"));
  CHECK(name("a text of no format").empty());
}
