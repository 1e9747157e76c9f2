#include "core/base/file_kind.h"

#include <algorithm>

namespace pmaptrain {
namespace {

using namespace std::string_view_literals;

struct Magic {
  std::size_t at;
  std::string_view bytes;
  FileKind kind;
};

constexpr std::string_view convert = "convert it with the program that wrote it";
constexpr std::string_view unpack = "unpack it first";

constexpr Magic magics[] = {
    {0, "\x1f\x8b\x08"sv, {"compressed by gzip", "gzip -d unpacks it"}},
    {0, "\x28\xb5\x2f\xfd"sv, {"compressed by Zstandard", "zstd -d unpacks it"}},
    {0, "\xfd\x37zXZ\0"sv, {"compressed by xz", "xz -d unpacks it"}},
    {4, "1AY&SY"sv, {"compressed by bzip2", "bzip2 -d unpacks it"}},
    {0, "\x04\x22\x4d\x18"sv, {"compressed by LZ4", "lz4 -d unpacks it"}},
    {0, "\x1f\x9d\x90"sv, {"compressed by compress (.Z)", "uncompress unpacks it"}},
    {0, "LZIP\1"sv, {"compressed by lzip", "lzip -d unpacks it"}},
    {0, "\xff\6\0\0sNaPpY"sv, {"compressed by Snappy", unpack}},
    {0, "PK\3\4"sv, {"a ZIP archive, as .xlsx, .docx, .npz and .pt files are", unpack}},
    {0, "PK\5\6"sv, {"an empty ZIP archive", ""}},
    {0, "7z\xbc\xaf\x27\x1c"sv, {"a 7-Zip archive", unpack}},
    {0, "Rar!\x1a\7"sv, {"a RAR archive", unpack}},
    {257, "ustar"sv, {"a tar archive", "tar -xf unpacks it"}},
    {0,
     "PAR1\x15"sv,
     {"a Parquet file", "in Python, `pandas.read_parquet('FILE').to_csv('FILE.csv', index=False)` writes it as CSV"}},
    {0,
     "ARROW1"sv,
     {"an Arrow or Feather file",
      "in Python, `pandas.read_feather('FILE').to_csv('FILE.csv', index=False)` writes it as CSV"}},
    {0,
     "FEA1\0"sv,
     {"a Feather file", "in Python, `pandas.read_feather('FILE').to_csv('FILE.csv', index=False)` writes it as CSV"}},
    {0, "Obj\1"sv, {"an Avro file", convert}},
    {0, "\x93NUMPY"sv, {"an array in NPY format", "numpy.load reads it"}},
    {0, "\x89HDF\r\n\x1a\n"sv, {"an HDF5 file", "h5py reads it"}},
    {0, "SQLite format 3\0"sv, {"an SQLite database", "sqlite3 -csv FILE 'SELECT ...' writes CSV"}},
    {0, "GGUF\3"sv, {"a GGUF file, which holds a model", ""}},
    {0, "GGUF\2"sv, {"a GGUF file, which holds a model", ""}},
    {0, "GGUF\1"sv, {"a GGUF file, which holds a model", ""}},
    {0, "GGUF\0"sv, {"a GGUF file, which holds a model", ""}},
    {0, "MATLAB 5.0 MAT-file"sv, {"a MATLAB file", "scipy.io.loadmat reads it"}},
    {0, "MMIDIDX\0\0"sv, {"an index of tokens as Megatron writes it", "the tokens are in the file .bin beside it"}},
    {0, "%PDF-"sv, {"a PDF document", "pdftotext writes its text"}},
    {0, "{\\rtf"sv, {"a document in Rich Text Format", "save it as plain text"}},
    {0, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"sv, {"a document of older Microsoft Office, as .xls and .doc are", convert}},
    {0, "\x89PNG\r\n\x1a\n"sv, {"a PNG image", ""}},
    {0, "\xff\xd8\xff"sv, {"a JPEG image", ""}},
    {0, "GIF87a"sv, {"a GIF image", ""}},
    {0, "GIF89a"sv, {"a GIF image", ""}},
    {0,
     "\x7f"
     "ELF"sv,
     {"a program for Linux", ""}},
    {0, "\x80\2\x8a\nl\xfc\x9c"sv, {"a PyTorch file", "torch.load reads it"}},
    {0, "\x80\2}"sv, {"a pickle of Python", "Python's pickle module reads it"}},
    {0, "\x80\2]"sv, {"a pickle of Python", "Python's pickle module reads it"}},
    {0, "\x80\2c"sv, {"a pickle of Python", "Python's pickle module reads it"}},
    {0, "\x80\3}"sv, {"a pickle of Python", "Python's pickle module reads it"}},
    {0, "\x80\3]"sv, {"a pickle of Python", "Python's pickle module reads it"}},
    {0, "\x80\3c"sv, {"a pickle of Python", "Python's pickle module reads it"}},
    {0, "\x80\4\x95"sv, {"a pickle of Python", "Python's pickle module reads it"}},
    {0, "\x80\5\x95"sv, {"a pickle of Python", "Python's pickle module reads it"}},
};

constexpr Magic pointers[] = {
    {0,
     "version https://git-lfs.github.com/spec/"sv,
     {"a Git LFS pointer, which stands for the file itself", "git lfs pull fetches the file"}},
    {0,
     "/annex/objects/"sv,
     {"a pointer of git-annex, which stands for the file itself", "git annex get fetches the file"}},
};

std::optional<FileKind> found_in(std::span<const Magic> known, std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto found = std::find_if(known.begin(), known.end(), [&](const Magic& magic) {
    return text.size() >= magic.at && text.substr(magic.at).starts_with(magic.bytes);
  });
  return found == known.end() ? std::nullopt : std::optional(found->kind);
}

// The name of the first file in a ZIP archive tells what wrote it.
std::optional<FileKind> kind_of_zip(std::span<const std::byte> bytes) {
  constexpr std::size_t length_at = 26, name_at = 30;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with("PK\3\4") || text.size() < name_at) return std::nullopt;
  const std::size_t length = std::to_integer<std::size_t>(bytes[length_at]) +
                             std::size_t{256} * std::to_integer<std::size_t>(bytes[length_at + 1]);
  const std::string_view name = text.substr(name_at, length);
  if (name.ends_with(".npy")) return FileKind{"an NPZ file of NumPy", "numpy.load reads it"};
  const bool is_torch =
      name.ends_with("/data.pkl") || name == "data.pkl" || name.ends_with("/version") || name.ends_with("/byteorder");
  return is_torch ? std::optional(FileKind{"a PyTorch file", "torch.load reads it"}) : std::nullopt;
}

}  // namespace

std::optional<FileKind> kind_of_file(std::span<const std::byte> beginning) {
  const std::optional<FileKind> pointer = pointer_kind(beginning);
  if (pointer) return pointer;
  const std::optional<FileKind> zip = kind_of_zip(beginning);
  return zip ? zip : found_in(magics, beginning);
}

std::optional<FileKind> pointer_kind(std::span<const std::byte> beginning) { return found_in(pointers, beginning); }

}  // namespace pmaptrain
