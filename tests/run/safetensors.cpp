// Files of tensors: round trips, exact bytes, and damage that is refused.
#include "core/run/files/safetensors.h"

#include <cstring>
#include <span>

#include "core/base/error.h"
#include "core/data/arrays/array.h"
#include "core/run/files/npy.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/train/tensors.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::run;

namespace {

using test::contains;
using test::read_text;
using test::TemporaryFolder;

template <class T>
Tensor tensor(DType dtype, Shape shape, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {dtype, std::move(shape), {bytes.begin(), bytes.end()}};
}

Tensors sample() {
  return {{"dense_0.kernel", tensor<float>(DType::f32, {2, 3}, {1, 2, 3, 4, 5, -0.0F})},
          {"dense_0.bias", tensor<double>(DType::f64, {}, {0.1})},
          {"labels", tensor<std::uint8_t>(DType::u8, {3}, {7, 8, 9})},
          {"mask", tensor<std::uint8_t>(DType::boolean, {1, 2}, {0, 1})},
          {"ids", tensor<std::int32_t>(DType::i32, {2}, {-1, 7})},
          {"key", tensor<std::uint32_t>(DType::u32, {2}, {1, 0xffffffff})},
          {"step", tensor<std::int64_t>(DType::i64, {1}, {-5})},
          {"narrow", tensor<std::uint16_t>(DType::bf16, {3}, {0x3F80, 0x0001, 0x7FC0})},
          {"none", Tensor{DType::f32, {0, 4}, {}}}};
}

// A file with this header and so many bytes of data.
std::string with_header(const std::string& header, std::size_t data) {
  std::uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + std::string(data, 'x');
}

std::string error_for(const std::string& bytes) {
  const TemporaryFolder folder;
  const std::string file = folder.write("file", bytes);
  try {
    read_safetensors(file);
  } catch (const Error& error) {
    CHECK(error.status() == ExitStatus::data);
    return error.diagnostics().front().message;
  }
  return "no error";
}

}  // namespace

TEST_CASE("tensors come back from a safetensors file as they were", "[run]") {
  const TemporaryFolder folder;
  const std::string file = folder / "file";
  testing::write_tensors(file, sample());
  CHECK(read_safetensors(file) == sample());
  testing::write_tensors(file, {});
  CHECK(read_safetensors(file).empty());
}

TEST_CASE("a safetensors file has an aligned header and the widest elements first", "[run]") {
  const TemporaryFolder folder;
  const std::string file = folder / "file";
  testing::write_tensors(file, {{"a", tensor<std::uint8_t>(DType::u8, {1}, {65})},
                                {"b", tensor<std::int32_t>(DType::i32, {1}, {0x44434241})}});
  const std::string header =
      R"({"b":{"dtype":"I32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[1],"data_offsets":[4,5]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  CHECK(read_text(file) == with_header(padded, 0) + "ABCDA");
}

TEST_CASE("damaged safetensors files are refused with what is wrong", "[run]") {
  const auto entry = [](const std::string& shape, const std::string& offsets) {
    return R"({"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
  };
  CHECK(contains(error_for("abc"), "it has 3 bytes, a header's length alone takes 8"));
  CHECK(contains(error_for(with_header("{}", 0).substr(0, 9)), "its header would have 2 bytes, only 1 follow"));
  CHECK(contains(error_for(std::string(8, '\x7F')), "at most 100000000 are read"));
  CHECK(contains(error_for(with_header("{\"a\":", 0)), "its header is not JSON"));
  CHECK(contains(error_for(with_header("[]", 0)), "does not begin with '{'"));
  CHECK(contains(error_for(with_header("{}", 4)), "4 bytes at its end belong to no tensor"));
  CHECK(contains(error_for(with_header("{\"a\":" + entry("[1]", "[0,4]") + "}", 2)),
                 "it is truncated: tensor 'a' ends at byte 4 of the data, it has 2"));
  CHECK(contains(error_for(with_header("{\"a\":" + entry("[1]", "[0,8]") + "}", 8)),
                 "tensor 'a' of f32[1] needs 4 bytes, its 'data_offsets' are [0, 8]"));
  CHECK(contains(error_for(with_header("{\"a\":" + entry("[1]", "[0,4]") + ",\"b\":" + entry("[1]", "[2,6]") + "}", 6)),
                 "tensor 'b' overlaps the one before it"));
  CHECK(
      contains(error_for(with_header("{\"a\":" + entry("[1]", "[0,4]") + ",\"b\":" + entry("[1]", "[6,10]") + "}", 10)),
               "2 bytes before tensor 'b' belong to none"));
  CHECK(contains(error_for(with_header("{\"a\":" + entry("[4611686018427387904,4]", "[0,0]") + "}", 0)),
                 "is larger than can be addressed"));
  CHECK(contains(error_for(with_header("{\"a\":" + entry("[-1]", "[0,4]") + "}", 4)), "not a list of sizes"));
  CHECK(contains(error_for(with_header("{\"a\":" + entry("[1]", "[4,0]") + "}", 4)), "needs 4 bytes"));
  CHECK(contains(error_for(with_header("{\"a\":" + entry("[1]", "[0,4]") + ",\"a\":" + entry("[1]", "[0,4]") + "}", 4)),
                 "its header has 'a' twice"));
  CHECK(contains(error_for(with_header("{\"a\":" + std::string(1000, '[') + std::string(1000, ']') + "}", 0)),
                 "nests too deep"));
  CHECK(contains(error_for(with_header(R"({"a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}})", 2)),
                 "has element type 'F16', which is not read"));
  CHECK(contains(error_for(with_header("{\"a\":5}", 0)), "lacks 'dtype', 'shape' or 'data_offsets'"));
  for (const char* offsets : {"[0,18446744073709551616]", "[0,4,8]", "[0]", "[0,4.0]", "[\"0\",4]", "[-4,0]", "{}"}) {
    INFO(offsets);
    CHECK(contains(error_for(with_header("{\"a\":" + entry("[1]", offsets) + "}", 4)),
                   "has 'data_offsets' that are not two numbers"));
  }
  CHECK(
      contains(error_for(with_header("{\"a\":" + entry("[1]", "[18446744073709551608,18446744073709551612]") + "}", 4)),
               "bytes before tensor 'a' belong to none"));
  CHECK(contains(error_for(with_header("{\"a\":" + entry("[18446744073709551615]", "[0,4]") + "}", 4)),
                 "is larger than can be addressed"));
  CHECK(contains(error_for(with_header(R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", 4)),
                 "has element type '', which is not read"));
  CHECK(contains(error_for(with_header("{\"\xFF\":" + entry("[1]", "[0,4]") + "}", 4)), "its header is not JSON"));
  CHECK(contains(error_for(with_header("", 0)), "its header does not begin with '{'"));
  CHECK(contains(error_for(with_header("{}", 0).substr(0, 8)), "its header would have 2 bytes, only 0 follow"));
  CHECK(contains(error_for(""), "is empty"));
  CHECK(error_for(with_header("{\"__metadata__\":{\"by\":\"x\"},\"a\":" + entry("[1]", "[0,4]") + "}", 4)) ==
        "no error");
  for (const char* metadata : {"5", "[\"x\"]", "{\"by\":1}", "null"}) {
    INFO(metadata);
    CHECK(contains(error_for(with_header("{\"__metadata__\":" + std::string(metadata) + "}", 0)),
                   "its '__metadata__' is not a map of strings to strings"));
  }
  CHECK_THROWS_AS(read_safetensors("/nonexistent"), Error);
}

TEST_CASE("arrays come back from NPY and NPZ files as they were", "[run]") {
  const TemporaryFolder folder;
  const std::string file = folder / "file";
  const auto check = [](const data::Array& array, const Tensor& expected) {
    CHECK(std::string(data::name_of(array.element)) == std::string(to_string(expected.dtype)));
    CHECK(array.shape == expected.shape);
    CHECK(
        std::equal(array.bytes.view().begin(), array.bytes.view().end(), expected.bytes.begin(), expected.bytes.end()));
  };
  for (const std::uint64_t zip64_from : {0xFFFF'FFFFU, 250U, 1U}) {
    write_npz(file, sample(), zip64_from);
    for (const auto& [name, expected] : sample()) check(data::read_npz(file, name), expected);
  }
  for (const auto& [name, expected] : sample()) {
    write_npy(file, expected);
    const std::string bytes = read_text(file);
    CHECK((bytes.size() - expected.bytes.size()) % 64 == 0);
    check(data::read_npy(file), expected);
  }
}
