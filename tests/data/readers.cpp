#include <array>
#include <cstring>

#include "core/base/machine.h"
#include "core/data/arrays/array_dataset.h"
#include "core/data/arrays/idx_source.h"
#include "core/data/arrays/npz_source.h"
#include "core/data/arrays/values.h"
#include "core/data/arrays/zip.h"
#include "core/input/open.h"
#include "tests/catch.h"
#include "tests/data/files.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

struct Example {
  std::vector<float> inputs, targets;
  std::vector<std::uint8_t> bytes;
  std::int32_t label = 0;
};
Example read(const data::Dataset& dataset, std::int64_t index) {
  std::vector<std::byte> input(dataset.input().bytes());
  std::vector<std::byte> target(dataset.target().bytes());
  dataset.read(index, input.data(), target.data());
  Example e;
  if (dataset.input().dtype == DType::u8) {
    for (const std::byte b : input) e.bytes.push_back(std::to_integer<std::uint8_t>(b));
  } else {
    e.inputs.resize(input.size() / 4);
    std::memcpy(e.inputs.data(), input.data(), input.size());
  }
  if (dataset.target().dtype == DType::i32) {
    std::memcpy(&e.label, target.data(), 4);
  } else {
    e.targets.resize(target.size() / 4);
    std::memcpy(e.targets.data(), target.data(), target.size());
  }
  return e;
}

// What NumPy's savez_compressed makes of x = arange(6.0).reshape(2, 3), y = [7, -1]: ZIP64 fields in local headers.
const std::string numpy_archive_hex =
    "504b03042d000000080000002100f0cd3b46ffffffffffffffff05001400782e6e707901001000b000000000000000570000"
    "00000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a1aea3a09e965f54529498179f5f94920a12774bcc"
    "294e058a17672416a402f91a463a0ac69a3a0ab50a64032e0614f0c11eca7080501c505a004a8b380000504b03042d000000"
    "080000002100e092cebcffffffffffffffff05001400792e6e70790100100090000000000000004a000000000000009bec17"
    "ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9369a1aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416"
    "a402f91a463a9a3a0ab50a14002e760608f80f0500504b01022d032d000000080000002100f0cd3b4657000000b000000005"
    "0000000000000000000000800100000000782e6e7079504b01022d032d000000080000002100e092cebc4a00000090000000"
    "05000000000000000000000080018e000000792e6e7079504b05060000000002000200660000000f0100000000";
std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

}  // namespace

TEST_CASE("a whole gzip file is decompressed at once only if it has that size and no damage", "[data]") {
  std::string text(5000, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * i % 251);
  const std::string whole = gzip(text);
  const auto inflates = [&](const std::string& file, std::size_t size) {
    std::string out(size, '\0');
    const bool done = data::inflate_whole(std::as_bytes(std::span(file)), std::as_writable_bytes(std::span(out)));
    if (done) CHECK(out == text);
    return done;
  };
  CHECK(inflates(whole, text.size()));
  CHECK_FALSE(inflates(whole, text.size() - 1));
  CHECK_FALSE(inflates(whole, text.size() + 1));
  CHECK_FALSE(inflates(whole + whole, text.size()));
  for (std::size_t size = 0; size < whole.size(); ++size) CHECK_FALSE(inflates(whole.substr(0, size), text.size()));
  // Of the bits behind the header, a few mean nothing, such as the codes of symbols that do not occur.
  std::size_t meaningless = 0;
  for (std::size_t bit = 8 * 10; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    if (inflates(damaged, text.size())) ++meaningless;  // which has compared the bytes
  }
  CHECK(meaningless < whole.size() / 4);
}

TEST_CASE("an IDX file is read the same plain and compressed, in one gzip member or two", "[data]") {
  const TemporaryFolder folder;
  const std::string images = idx(8, {3, 2, 2}, "abcdefghijkl");
  const std::string labels = idx(8, {3}, std::string("\x00\x02\x01", 3));
  const std::string two = gzip(images.substr(0, 9)) + gzip(images.substr(9));
  const std::string targets = folder.write("y", labels);
  for (const std::string& bytes : {images, gzip(images), two, gzip(images) + std::string(5, '\0')}) {
    std::vector<std::string> notes;
    const auto dataset = data::make_dataset(data::read_idx(folder.write("x", bytes)), data::read_idx(targets), notes);
    CHECK(dataset->size() == 3);
    CHECK(dataset->input().dtype == DType::u8);
    CHECK(dataset->input().shape == Shape{2, 2, 1});
    CHECK(dataset->target().shape.empty());
    CHECK(read(*dataset, 1).bytes == std::vector<std::uint8_t>{'e', 'f', 'g', 'h'});
    CHECK(read(*dataset, 1).label == 2);
    CHECK(dataset->label_range() == std::pair<std::int64_t, std::int64_t>{0, 2});
    CHECK(notes.empty());
  }
}

TEST_CASE("IDX files of wider types are big-endian", "[data]") {
  const TemporaryFolder folder;
  const data::Array shorts = data::read_idx(folder.write("a", idx(0x0b, {2}, std::string("\x01\x02\xff\xfe", 4))));
  CHECK(data::read_integer(shorts, 0) == 258);
  CHECK(data::read_integer(shorts, 1) == -2);
  const auto as_float = [&](int code, const std::string& bytes) {
    std::array<float, 1> value = {};
    data::read_floats(data::read_idx(folder.write("b", idx(code, {1}, bytes))), 0, value);
    return value[0];
  };
  CHECK(as_float(0x09, "\xfe") == -2.0F);
  CHECK(as_float(0x0c, big(70000, 4)) == 70000.0F);
  CHECK(as_float(0x0d, big(0x3fc00000, 4)) == 1.5F);
  CHECK(as_float(0x0e, big(0x3ff8000000000000, 8)) == 1.5F);
}

TEST_CASE("NumPy's integers of every width are read as numbers and as labels", "[data]") {
  const TemporaryFolder folder;
  const std::tuple<const char*, const char*, int> types[] = {{"|i1", "i8", 1},  {"|u1", "u8", 1},  {"<i2", "i16", 2},
                                                             {"<u2", "u16", 2}, {"<i4", "i32", 4}, {"<u4", "u32", 4},
                                                             {"<i8", "i64", 8}, {"<u8", "u64", 8}};
  for (const auto& [descr, name, size] : types) {
    const data::Array array =
        data::read_npy(folder.write("a", npy(descr, "(2,)", little(100, size) + little(7, size))));
    CHECK(data::name_of(array.element) == name);
    std::array<float, 2> values = {};
    data::read_floats(array, 0, values);
    CHECK(values == std::array{100.0F, 7.0F});
    CHECK(data::read_integer(array, 1) == 7);
  }
}

TEST_CASE("every invalid IDX file is refused with the reason", "[data]") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& bytes) {
    return error_of([&] { data::read_idx(folder.write("f", bytes)); });
  };
  const std::string good = idx(8, {3, 2, 2}, "abcdefghijkl");
  CHECK(contains(refusal(""), "is empty"));
  CHECK(contains(refusal("PK\3\4"),
                 "is not an IDX file: it begins with 50 4b 03 04 | it seems to be NumPy's: the "
                 "source npz reads archives that numpy.savez writes"));
  CHECK(contains(refusal(std::string("\0\0", 2)), "is truncated: it has 2 bytes, its header needs 4"));
  CHECK(contains(refusal(good.substr(0, 10)), "is truncated: it has 10 bytes, its header needs 16"));
  CHECK(contains(refusal(good.substr(0, 20)),
                 "is truncated: u8[3,2,2] after a header of 16 bytes needs 28 bytes, it has 20"));
  CHECK(contains(refusal(good + "z"), "is longer than its header says"));
  CHECK(contains(refusal(idx(8, {0xffffffff, 0xffffffff, 0xffffffff}, "")), "which is too large"));
  CHECK(contains(refusal(std::string("\0\0\x08\x63", 4)), "has 99 dimensions, at most 8 are supported"));
  // The same behind gzip; a claim that the compressed bytes cannot hold is refused before memory is taken.
  CHECK(contains(refusal(gzip("")), "is truncated: it holds 0 bytes, its header needs 4"));
  CHECK(contains(refusal(gzip(good.substr(0, 20))), "needs 28 bytes, it holds 20"));
  CHECK(contains(refusal(gzip(good + "z")), "is longer than its header says"));
  CHECK(contains(refusal(gzip(idx(8, {0x7fffffff, 0x7fffffff}, "a"))), "compressed bytes cannot hold more than"));
  const std::string whole = gzip(good);
  for (std::size_t size = 2; size < whole.size(); ++size) {
    CHECK(contains(refusal(whole.substr(0, size)), "is truncated"));
  }
  std::string flipped = whole;
  flipped[flipped.size() - 6] = static_cast<char>(flipped[flipped.size() - 6] ^ 1);
  CHECK(contains(refusal(flipped), "is damaged: its compressed data cannot be read (incorrect data check)"));
  CHECK(contains(refusal(whole + "garbage"), "has 7 bytes after its compressed data"));
}

TEST_CASE("an archive or compressed file that would not fit into memory is refused before any is taken", "[data]") {
  const TemporaryFolder folder;
  // Of 1 MiB each; twice what there is, since other processes may give some back.
  const std::uint64_t rows = (available_memory() >> 19) + 64;
  // Zeros behind compressed data are padding, and a file of them takes no room on the disk.
  const std::string path = folder.write("x.gz", gzip(idx(8, {rows, 1U << 20}, "")));
  std::filesystem::resize_file(path, (rows << 20) / 1032 + 1024);
  const std::string error = error_of([&] { data::read_idx(path); }, ExitStatus::resource);
  CHECK(contains(error, "'" + path + "' needs "));
  CHECK(contains(error, " of memory, and "));
}

TEST_CASE("a decompression bomb is stopped at its stated size", "[data]") {
  const TemporaryFolder folder;
  const std::string zeros(std::size_t{1} << 24, '\0');
  CHECK(contains(error_of([&] { data::read_idx(folder.write("x", gzip(idx(8, {4}, zeros)))); }),
                 "is longer than its header says: u8[4] after a header of 8 bytes needs 12 bytes, it holds more"));
  Zip zip;
  zip.content = zeros;
  zip.deflate = true;
  zip.size_change = 0 - (zeros.size() - 100);  // the directory says 100 bytes
  CHECK(contains(error_of([&] { data::read_npz(folder.write("x", zip.build()), "x"); }),
                 "is damaged: entry 'x.npy' does not have the 100 bytes stated in the directory"));
  zip.size_change = 0xf0000000;
  CHECK(contains(error_of([&] { data::read_npz(folder.write("x", zip.build()), "x"); }), "cannot hold "));
  // What it says and holds is then too much for the array's own header.
  zip.size_change = 0;
  zip.content = npy("<f4", "(2,)", zeros);
  CHECK(contains(error_of([&] { data::read_npz(folder.write("x", zip.build()), "x"); }),
                 "is longer than its header says: f32[2] needs 8 bytes"));
}

TEST_CASE("an unreadable file is named", "[data]") {
  const TemporaryFolder folder;
  CHECK(contains(error_of([&] { data::read_idx(folder / "none"); }), "none': No such file or directory"));
  CHECK(contains(error_of([&] { data::read_idx(folder.path().string()); }), "is a directory, expected a file"));
  CHECK(contains(error_of([&] { data::read_idx("/dev/null"); }), "is not a regular file"));
}

TEST_CASE("counts that differ, empty arrays and labels beyond 32 bits are refused", "[data]") {
  const TemporaryFolder folder;
  std::vector<std::string> notes;
  const auto make = [&](const std::string& x, const std::string& y) {
    return error_of(
        [&] { data::make_dataset(data::read_npy(folder.write("x", x)), data::read_npy(folder.write("y", y)), notes); });
  };
  const std::string two = npy("<f4", "(2, 1)", raw<float>({1, 2}));
  CHECK(contains(make(two, npy("|u1", "(3,)", "abc")), "holds 2 examples, but "));
  CHECK(contains(make(two, npy("|u1", "(3,)", "abc")), "holds 3 targets"));
  CHECK(contains(make(npy("<f4", "(0, 1)", ""), npy("|u1", "(0,)", "")), "has no examples: its shape is [0,1]"));
  CHECK(contains(make(npy("<f4", "(2, 0)", ""), npy("|u1", "(2,)", "ab")), "a dimension of its shape [2,0] is 0"));
  CHECK(contains(make(npy("<f4", "()", raw<float>({1})), npy("|u1", "(1,)", "a")), "is a single number"));
  CHECK(contains(make(two, npy("<i8", "(2,)", raw<std::int64_t>({0, 1LL << 31}))), "the label of example 1 in "));
  CHECK(contains(make(two, npy("<u8", "(2,)", raw<std::uint64_t>({~0ULL, 0}))), "is 2^63 or more"));
}

TEST_CASE("NPY arrays of every type and both byte orders become f32 inputs and i32 labels", "[data]") {
  const TemporaryFolder folder;
  const auto load = [&](const std::string& x, const std::string& y, std::vector<std::string>& notes) {
    return data::make_dataset(data::read_npy(folder.write("x", x)), data::read_npy(folder.write("y", y)), notes);
  };
  const std::string doubles = npy("<f8", "(2, 2)", raw<double>({1, 2, 3, 4.5}), 2);
  std::vector<std::string> notes;
  const auto dataset = load(doubles, npy("<i8", "(2, 1)", raw<std::int64_t>({5, -3}), 3), notes);
  CHECK(notes == std::vector<std::string>{"inputs are f64 and become f32"});
  CHECK(dataset->input().shape == Shape{2});
  CHECK(read(*dataset, 1).inputs == std::vector<float>{3, 4.5F});
  CHECK(read(*dataset, 1).label == -3);
  CHECK(dataset->label_range() == std::pair<std::int64_t, std::int64_t>{-3, 5});

  notes.clear();
  const auto regression =
      load(npy(">i2", "(2L,)", std::string("\x01\x00\xff\xff", 4)), npy("<f4", "(2,)", raw<float>({0.5, 2.5})), notes);
  CHECK(regression->input().shape == Shape{1});
  CHECK(regression->target().dtype == DType::f32);
  CHECK(regression->target().shape == Shape{1});
  CHECK(read(*regression, 0).inputs == std::vector<float>{256});
  CHECK(read(*regression, 1).inputs == std::vector<float>{-1});
  CHECK(read(*regression, 1).targets == std::vector<float>{2.5});
  CHECK_FALSE(regression->label_range());

  const auto one_hot = load(npy("|b1", "(2, 1, 2)", std::string("\1\0\0\1", 4)),
                            npy("|u1", "(2, 3)", std::string("\0\1\0\1\0\0", 6)), notes);
  CHECK(one_hot->input().shape == Shape{1, 2, 1});
  CHECK(read(*one_hot, 0).inputs == std::vector<float>{1, 0});
  CHECK(read(*one_hot, 0).targets == std::vector<float>{0, 1, 0});
}

TEST_CASE("integer targets are labels, or numbers where the loss takes numbers", "[data]") {
  const TemporaryFolder folder;
  const std::string x = folder.write("x", npy("<f4", "(3, 1)", raw<float>({1, 2, 3})));
  const std::string y = folder.write("y", npy("<i8", "(3,)", raw<std::int64_t>({-7, 300, 5'000'000'000})));
  std::vector<std::string> notes;
  const auto numbers = data::make_dataset(data::read_npy(x), data::read_npy(y), notes, {}, {.numeric_targets = true});
  CHECK(numbers->target().dtype == DType::f32);
  CHECK(numbers->target().shape == Shape{1});
  CHECK_FALSE(numbers->label_range());
  CHECK(read(*numbers, 0).targets == std::vector{-7.0F});
  CHECK(read(*numbers, 2).targets == std::vector{5e9F});
  CHECK(notes == std::vector<std::string>{"targets are i64 and become f32"});
  CHECK(contains(error_of([&] { data::make_dataset(data::read_npy(x), data::read_npy(y), notes); }),
                 "the label of example 2"));
}

TEST_CASE("an array in Fortran order is read as the same array", "[data]") {
  const TemporaryFolder folder;
  // More than a tile in some dimensions; of each size of elements.
  for (const Shape& shape : {Shape{2, 3}, Shape{70, 130}, Shape{5, 3, 66}, Shape{67, 2, 3, 2}, Shape{3, 1, 4},
                             Shape{1, 9}, Shape{4, 0, 2}}) {
    const auto count = static_cast<std::size_t>(numel(shape));
    std::string text = "(";
    for (const std::int64_t size : shape) text += std::to_string(size) + ",";
    std::vector<std::size_t> strides(shape.size(), 1);
    for (std::size_t d = 1; d < shape.size(); ++d) strides[d] = strides[d - 1] * static_cast<std::size_t>(shape[d - 1]);
    const auto check = [&]<class T>(const char* descr, T) {
      std::vector<T> values(count);
      for (std::size_t i = 0; i < count; ++i) {
        const Shape index = data::index_of(static_cast<std::int64_t>(i), shape);
        std::size_t place = 0;
        for (std::size_t d = 0; d < shape.size(); ++d) place += strides[d] * static_cast<std::size_t>(index[d]);
        values[place] = static_cast<T>(i % 251);
      }
      const data::Array array = data::read_npy(folder.write("f", npy(descr, text + ")", raw(values), 1, "True")));
      CHECK(array.shape == shape);
      std::vector<float> read(count);
      data::read_floats(array, 0, read);
      bool equal = true;
      for (std::size_t i = 0; i < count; ++i) equal = equal && read[i] == static_cast<float>(i % 251);
      CHECK(equal);
    };
    check("|u1", std::uint8_t{});
    check("<i2", std::int16_t{});
    check("<f4", float{});
    check("<f8", double{});
  }
  Zip zip;
  zip.content = npy("<f4", "(2, 2)", raw<float>({1, 2, 3, 4}), 1, "True");
  zip.deflate = true;
  std::vector<float> read(4);
  data::read_floats(data::read_npz(folder.write("z", zip.build()), "x"), 0, read);
  CHECK(read == std::vector<float>{1, 3, 2, 4});
}

TEST_CASE("every invalid NPY file is refused with the reason", "[data]") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& bytes) {
    return error_of([&] { data::read_npy(folder.write("f", bytes)); });
  };
  const std::string good = npy("<f4", "(2, 2)", raw<float>({1, 2, 3, 4}));
  CHECK(refusal(good) == "accepted");
  for (std::size_t size = 1; size < good.size(); ++size) {
    CHECK(contains(refusal(good.substr(0, size)), size < 6 ? "is not in NPY format" : "is truncated"));
  }
  CHECK(contains(refusal(good + "z"), "is longer than its header says: f32[2,2] needs 16 bytes after its header"));
  CHECK(contains(refusal("PK\3\4" + std::string(30, 'z')),
                 "is an archive of arrays (NPZ), expected one array in NPY format | load it with numpy.load"));
  const data::Array narrow = data::read_npy(folder.write("f", npy("<V2", "(2,)", std::string("\x80\x3F\x01\x00", 4))));
  std::vector<float> values(2);
  data::read_floats(narrow, 0, values);
  CHECK(values == std::vector<float>{1, 0x1p-133F});
  CHECK(contains(refusal(npy("|O", "(1,)", "ab")), "Python objects are not supported"));
  CHECK(contains(refusal(npy("<c8", "(1,)", "ab")), "has dtype '<c8', which is not supported"));
  for (const char* const text : {"<U1", "|S4"}) {
    CHECK(contains(refusal(npy(text, "(1,)", "abcd")),
                   "| texts are not supported: names, labels = np.unique(labels, return_inverse=True) numbers them"));
  }
  CHECK(contains(refusal(npy_with("{'descr': [('a', '<f4')], ", "")), "has a structured dtype"));
  CHECK(contains(refusal(npy("<f4", "(4611686018427387904, 4)", "")), "is too large"));
  CHECK(contains(refusal(npy("<f4", "(99999999999999999999,)", "")), "a size in 'shape' is too large"));
  CHECK(contains(refusal(npy("<f4", "(-1,)", "")), "'shape' is not a tuple of sizes"));
  CHECK(contains(refusal(npy("<f4", "(1 2)", "")), "'shape' is not a tuple of sizes"));
  CHECK(contains(refusal(npy("<f4", "(1,", "")), "cannot be read"));
  CHECK(contains(refusal(npy_with("{'descr': '<f4', 'shape': (1,)}", "abcd")), "lacks"));
  CHECK(contains(refusal(npy_with("{'descr': '<f4", "")), "a quote is not closed"));
  CHECK(contains(refusal(npy_with("{'descr': '<f4', 'descr': '<f4'}", "")), "unknown or duplicate key"));
  CHECK(contains(refusal(npy_with("", "")), "expected '{'"));
  CHECK(contains(refusal("\x93NUMPY\x02" + std::string(1, '\0') + little(0xfffffff0, 4)),
                 "has a header of 4294967280 bytes, more than 65536"));
  CHECK(contains(refusal("\x93NUMPY\x09" + std::string(4, '\0')), "format version 9, expected 1, 2 or 3"));
}

TEST_CASE("an NPZ archive as NumPy writes it is read through open", "[data]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("a.npz", from_hex(numpy_archive_hex));
  spec::DataSpec spec;
  spec.source = data::Npz{file, {"", "x", "y"}, {}, data::Npz::Split{"", "x", "y"}, {}, {}};
  const data::Source source = input::open(spec, 0, 1);
  CHECK(source.description == "npz: 2 train, 2 test examples of f32[3]");
  CHECK(source.notes == std::vector<std::string>{"inputs are f64 and become f32"});
  CHECK(read(*source.train, 1).inputs == std::vector<float>{3, 4, 5});
  CHECK(read(*source.test, 0).label == 7);
  CHECK(contains(error_of([&] { data::read_npz(file, "xx"); }), "has no array 'xx'; it has x, y"));
}

TEST_CASE("sizes of an entry may stand behind other fields of a ZIP64 archive", "[data]") {
  const TemporaryFolder folder;
  Zip zip;
  zip.content = npy("<f4", "(1,)", raw<float>({1.5F}));
  const auto refusal = [&](const std::string& extra) {
    zip.extra = extra;
    return error_of([&] { data::read_npz(folder.write("f", zip.build()), "x"); });
  };
  const std::string sizes = little(zip.content.size(), 8) + little(zip.content.size(), 8);
  const std::string time = "UT" + little(5, 2) + little(1, 5), zip64 = little(1, 2) + little(16, 2) + sizes;
  CHECK(refusal(zip64) == "accepted");
  CHECK(refusal(time + zip64) == "accepted");
  CHECK(contains(refusal(time), "lacks its ZIP64 sizes"));
  CHECK(contains(refusal(time + zip64.substr(0, 12)), "lacks its ZIP64 sizes"));
}

TEST_CASE("stored and deflated archives agree, and damaged ones are refused", "[data]") {
  const TemporaryFolder folder;
  const std::string content = npy("<f4", "(100,)", std::string(400, 'a'));
  const auto refusal = [&](const std::string& bytes) {
    return error_of([&] { data::read_npz(folder.write("f", bytes), "x"); });
  };
  for (const bool deflate : {false, true}) {
    Zip zip;
    zip.content = content;
    zip.deflate = deflate;
    const std::string good = zip.build();
    CHECK(refusal(good) == "accepted");
    CHECK(contains(refusal(good.substr(0, good.size() - 1)), "it has no directory at its end"));
    CHECK(contains(refusal(good.substr(10)), "is damaged"));
    CHECK(contains(refusal("PAR1\x15\4" + std::string(60, 'x')),
                   "is a Parquet file, expected an archive of arrays (NPZ) | in Python, `pandas.read_parquet("));
    Zip wrong = zip;
    wrong.crc_change = 1;
    CHECK(contains(refusal(wrong.build()), "the checksum of entry 'x.npy' does not match"));
    wrong = zip;
    wrong.size_change = 1;
    CHECK(refusal(wrong.build()) != "accepted");
    wrong.size_change = 0xf0000000;
    CHECK(refusal(wrong.build()) != "accepted");
    wrong = zip;
    wrong.offset_change = 0xfffffff0;
    CHECK(contains(refusal(wrong.build()), "is not at the offset in the directory"));
    wrong.offset_change = 0xffffffff;
    CHECK(contains(refusal(wrong.build()), "lacks its ZIP64 sizes"));
    wrong = zip;
    wrong.flags = 1;
    CHECK(contains(refusal(wrong.build()), "is encrypted"));
    wrong = zip;
    wrong.count = 2;
    CHECK(contains(refusal(wrong.build()), "its directory is not inside the file"));
    wrong.count = 0xffff;
    CHECK(contains(refusal(wrong.build()), "ZIP64 directory is not at the stated offset"));
    // No single changed byte may crash the reader; what it then says is its own affair.
    for (std::size_t i = 0; i < good.size(); ++i) {
      std::string bytes = good;
      bytes[i] = static_cast<char>(~bytes[i]);
      refusal(bytes);
    }
  }
  Zip method;
  method.content = content;
  method.method = 14;
  CHECK(contains(refusal(method.build()), "compressed with method 14, expected stored or deflated"));
}

TEST_CASE("values are rows of f32, and ragged ones are refused at their place", "[data]") {
  spec::DataSpec spec;
  spec.source = data::Values{{{0.0}, {1.0}}, {{0.5}, {2.5}}};
  const data::Source source = input::open(spec, 0, 1);
  CHECK(source.train->size() == 2);
  CHECK(source.test == nullptr);
  CHECK(read(*source.train, 1).inputs == std::vector<float>{1});
  CHECK(read(*source.train, 1).targets == std::vector<float>{2.5});

  spec.source_place = {"a.yaml", 3, 5, 1, ""};
  spec.source = data::Values{{{0.0}, {1.0, 2.0}}, {{0.5}, {2.5}}};
  CHECK(contains(error_of([&] { input::open(spec, 0, 1); }),
                 "row 1 of values.inputs has length 2, but row 0 has length 1"));
  try {
    input::open(spec, 0, 1);
  } catch (const Error& error) {
    CHECK(error.diagnostics()[0].place == spec.source_place);
  }
  spec.source = data::Values{{{0.0}}, {{0.5}, {2.5}}};
  CHECK(contains(error_of([&] { input::open(spec, 0, 1); }), "values.inputs holds 1 examples, but values.targets"));
  spec.source = data::Values{{}, {}};
  CHECK(contains(error_of([&] { input::open(spec, 0, 1); }), "values.inputs has no rows"));
}

TEST_CASE("splits that do not fit each other are refused", "[data]") {
  const TemporaryFolder folder;
  const std::string y = folder.write("y", idx(8, {1}, "a"));
  spec::DataSpec spec;
  spec.source = data::Idx{{folder.write("x", idx(8, {1, 2, 2}, "abcd")), y},
                          {},
                          declare::FilePair{folder.write("t", idx(8, {1, 1, 4}, "abcd")), y}};
  CHECK(contains(error_of([&] { input::open(spec, 0, 1); }),
                 "the train split's inputs are u8[2,2,1], but the test split's are u8[1,4,1]"));
}

TEST_CASE("fashion_mnist in a folder of one's own does not name Debian's package when its files are missing",
          "[data]") {
  spec::DataSpec spec;
  spec.source = data::FashionMnist{"/nowhere"};
  const std::string error = error_of([&] { input::open(spec, 0, 1); });
  CHECK(contains(error, "cannot open '/nowhere/train-images-idx3-ubyte.gz': No such file"));
  CHECK(contains(error, "a relative path in a config is relative to the folder of the config"));
  CHECK_FALSE(contains(error, "apt-get"));
}

TEST_CASE("Debian's fashion-mnist has 60000 and 10000 images of 10 classes", "[data]") {
  spec::DataSpec spec;
  spec.source = data::FashionMnist{};
  if (!std::filesystem::exists(data::FashionMnist{}.dir)) {
    WARN("dataset-fashion-mnist is not installed");
    CHECK(contains(error_of([&] { input::open(spec, 0, 1); }), "apt-get install dataset-fashion-mnist"));
    return;
  }
  const data::Source source = input::open(spec, 0, 1);
  CHECK(source.description == "fashion_mnist: 60000 train, 10000 test examples of u8[28,28,1]");
  CHECK(source.train->label_range() == std::pair<std::int64_t, std::int64_t>{0, 9});
  CHECK(read(*source.train, 0).label == 9);
}
