// What inputs of arrays of three dimensions are: pictures, or sequences with channels.
#include <cmath>

#include "core/data/arrays/array_dataset.h"
#include "core/data/arrays/npz_source.h"
#include "core/input/open.h"
#include "tests/catch.h"
#include "tests/data/files.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using data::Channels;

namespace {

// Two examples of [2, 3]: 0 to 5 and 6 to 11.
std::string counted_array() {
  std::vector<float> values;
  for (int i = 0; i < 12; ++i) values.push_back(static_cast<float>(i));
  return npy("<f4", "(2, 2, 3)", raw(values));
}

std::shared_ptr<const data::Dataset> opened_as(const std::string& array, Channels channels, bool tokens = false) {
  const TemporaryFolder folder;
  std::vector<std::string> notes;
  return data::make_inputs(data::read_npy(folder.write("x", array)), notes, {},
                           {.tokens = tokens, .channels = channels});
}

template <class T>
std::vector<T> nth_example(const data::Dataset& dataset, std::int64_t index) {
  std::vector<T> values(dataset.input().bytes() / sizeof(T));
  dataset.read(index, reinterpret_cast<std::byte*>(values.data()), nullptr);
  return values;
}

}  // namespace

TEST_CASE("channels: none makes pictures, last sequences, and first transposes what it reads", "[data]") {
  const auto none = opened_as(counted_array(), Channels::none), last = opened_as(counted_array(), Channels::last);
  CHECK(none->input().shape == Shape{2, 3, 1});
  CHECK(last->input().shape == Shape{2, 3});
  const std::vector<float> stored = {6, 7, 8, 9, 10, 11};
  CHECK(nth_example<float>(*none, 1) == stored);
  CHECK(nth_example<float>(*last, 1) == stored);
  const auto first = opened_as(counted_array(), Channels::first);
  CHECK(first->input().shape == Shape{3, 2});
  CHECK(nth_example<float>(*first, 1) == std::vector<float>{6, 9, 7, 10, 8, 11});
  const std::string bytes = npy("|u1", "(1, 2, 2)", std::string("\1\2\3\4", 4));
  CHECK(nth_example<std::uint8_t>(*opened_as(bytes, Channels::first), 0) == std::vector<std::uint8_t>{1, 3, 2, 4});
  const std::string wide = npy("<i8", "(1, 2, 2)", raw<std::int64_t>({1, 2, 3, 4}));
  CHECK(nth_example<std::int32_t>(*opened_as(wide, Channels::first, true), 0) == std::vector<std::int32_t>{1, 3, 2, 4});
  std::vector<double> exact(4);
  opened_as(wide, Channels::first)->read_exact_input(0, exact.data());
  CHECK(exact == std::vector<double>{1, 3, 2, 4});
  CHECK(opened_as(wide, Channels::none, true)->input().shape == Shape{2, 2});  // tokens are no pixels
  const std::string images = npy("|u1", "(1, 2, 2, 1)", std::string(4, '\1'));
  CHECK(opened_as(images, Channels::last)->input().shape == Shape{2, 2, 1});
  CHECK(
      contains(error_of([&] { opened_as(images, Channels::first); }),
               "has the shape [1,2,2,1], and channels: first is for arrays of three dimensions (N, A, B) | in NumPy"));
}

TEST_CASE("channels: auto takes bytes for pictures, and numbers and tokens for sequences", "[data]") {
  using data::Element;
  CHECK(data::channels_of(Element::u8, {9, 28, 28}, false) == Channels::none);
  CHECK(data::channels_of(Element::u8, {9, 28, 28}, true) == Channels::last);
  for (const Element element : {Element::f32, Element::f64, Element::f16, Element::i64, Element::boolean}) {
    CHECK(data::channels_of(element, {9, 24, 8}, false) == Channels::last);
  }
  CHECK_FALSE(data::channels_of(Element::f32, {9, 8}, false));
  CHECK_FALSE(data::channels_of(Element::f32, {9, 24, 24, 3}, false));
}

TEST_CASE("the statistics of sequences are those of each channel", "[data]") {
  const TemporaryFolder folder;
  const std::string y = npy("|u1", "(2,)", std::string("\0\1", 2));
  data::Npz npz;
  npz.file = folder.write("a.npz", archive({{"x.npy", counted_array()}, {"y.npy", y}}));
  npz.train = {"", "x", "y"};
  spec::DataSpec data;
  data.source = npz;
  data.batch_size = std::int64_t{2};
  data.normalize.emplace().automatic = true;
  const data::Source source = input::open(data, 0, 1);
  CHECK(source.channels == Channels::last);
  CHECK(source.notes ==
        std::vector<std::string>{
            "npz: channels is last for f32[N,2,3]: examples are sequences [2,3] "
            "with 3 channels; channels: none would make them pictures [2,3,1], and first sequences [3,2] "
            "with 2 channels"});
  CHECK(source.encoding.statistics->mean == std::vector<double>{4.5, 5.5, 6.5});
}

TEST_CASE("half precision is read exactly, in both byte orders", "[data]") {
  const TemporaryFolder folder;
  const std::vector<std::uint16_t> bits = {0x3c00, 0xc000, 0x7bff, 0x0001, 0x0400, 0x83ff, 0x3555, 0x8000};
  const std::vector<float> expected = {1, -2, 65504, 0x1p-24F, 0x1p-14F, -0x1.ff8p-15F, 0x1.554p-2F, -0.0F};
  std::string big;
  for (const std::uint16_t word : bits) big += {static_cast<char>(word >> 8), static_cast<char>(word & 255)};
  for (const std::string& array : {npy("<f2", "(4, 2)", raw(bits)), npy(">f2", "(4, 2)", big)}) {
    const data::Array read = data::read_npy(folder.write("x", array));
    CHECK(read.element == data::Element::f16);
    std::vector<float> values(8);
    data::read_floats(read, 0, values);
    CHECK(values == expected);
    CHECK(std::signbit(values.back()));
  }
  std::vector<std::string> notes;
  const std::string x = folder.write("x", npy("<f2", "(2, 1)", raw<std::uint16_t>({0x3c00, 0x7c00})));
  const std::string y = folder.write("y", npy("<f2", "(2,)", raw<std::uint16_t>({0x3c00, 0xc000})));
  CHECK(contains(error_of([&] { data::make_inputs(data::read_npy(x), notes); }), "example 1 of '"));
  const auto targets = data::make_dataset(data::read_npy(y), data::read_npy(y), notes);
  CHECK(targets->target().dtype == DType::f32);
  CHECK(notes.back() == "targets are f16 and become f32");
}
