// Tokens of arrays: integers of any type, which are indices into the table of an embedding layer.
#include "core/data/arrays/array.h"
#include "core/data/arrays/array_dataset.h"
#include "core/layers/dense.h"
#include "core/layers/embedding.h"
#include "core/layers/reshape.h"
#include "core/losses/softmax_cross_entropy.h"
#include "core/setup/data_checks.h"
#include "tests/data/files.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

TEST_CASE("integers of every type are tokens where the model begins with embedding, with labels of their positions",
          "[data]") {
  const TemporaryFolder folder;
  const std::string wide = folder.write("y", npy("<i8", "(2, 2)", raw<std::int64_t>({1, -100, 70'000, 2})));
  const auto tokens_of = [&](const std::string& type, const std::string& bytes) {
    std::vector<std::string> notes;
    const std::string x = folder.write("x", npy(type, "(2, 2)", bytes));
    const auto dataset = data::make_dataset(data::read_npy(x), data::read_npy(wide), notes, {}, {.tokens = true});
    CHECK(notes.empty());
    CHECK(dataset->input().shape == Shape{2});
    CHECK(dataset->input().dtype == (type == "|u1" ? DType::u8 : DType::i32));
    CHECK(dataset->target().dtype == DType::i32);
    CHECK(dataset->target().shape == Shape{2});
    CHECK(dataset->label_range() == std::pair<std::int64_t, std::int64_t>{-100, 70'000});
    std::vector<std::int32_t> tokens(2), labels(2);
    std::vector<std::uint8_t> small(2);
    const bool bytes_only = type == "|u1";
    dataset->read(1,
                  bytes_only ? reinterpret_cast<std::byte*>(small.data()) : reinterpret_cast<std::byte*>(tokens.data()),
                  reinterpret_cast<std::byte*>(labels.data()));
    CHECK(labels == std::vector<std::int32_t>{70'000, 2});
    return bytes_only ? std::vector<std::int32_t>(small.begin(), small.end()) : tokens;
  };
  const std::vector<std::int32_t> expected{3, 4};
  CHECK(tokens_of("|u1", raw<std::uint8_t>({1, 2, 3, 4})) == expected);
  CHECK(tokens_of("|i1", raw<std::int8_t>({1, 2, 3, 4})) == expected);
  CHECK(tokens_of("<u2", raw<std::uint16_t>({1, 2, 3, 4})) == expected);
  CHECK(tokens_of(">i2", std::string("\0\1\0\2\0\3\0\4", 8)) == expected);
  CHECK(tokens_of("<u4", raw<std::uint32_t>({1, 2, 3, 4})) == expected);
  CHECK(tokens_of("<i4", raw<std::int32_t>({1, 2, 3, 4})) == expected);
  CHECK(tokens_of("<u8", raw<std::uint64_t>({1, 2, 3, 4})) == expected);
  CHECK(tokens_of("<i8", raw<std::int64_t>({1, 2, 3, 4})) == expected);
  std::vector<std::string> notes;
  const std::string beyond = folder.write("x", npy("<i8", "(1, 2)", raw<std::int64_t>({1, 1LL << 31})));
  CHECK(contains(error_of([&] { data::make_inputs(data::read_npy(beyond), notes, {}, {.tokens = true}); }),
                 "is 2147483648 at [0,1], which does not fit 32 bits"));
  // Labels of other shapes are one-hot rows, and without the embedding tokens are numbers.
  const std::string three = folder.write("three", npy("<i8", "(1, 3)", raw<std::int64_t>({0, 1, 0})));
  const auto one_hot = [&](bool tokens) {
    return data::make_dataset(data::read_npy(folder.write("x", npy("<i8", "(1, 2)", raw<std::int64_t>({1, 2})))),
                              data::read_npy(three), notes, {}, {.tokens = tokens});
  };
  CHECK(one_hot(true)->target().dtype == DType::f32);
  CHECK(one_hot(false)->input().dtype == DType::f32);
}

TEST_CASE("a token outside of the table is an error of the data, with file, array and place", "[data]") {
  const TemporaryFolder folder;
  Zip archive;
  const auto refused = [&](const std::vector<std::int16_t>& tokens) {
    archive.content = npy("<i2", "(2, 3)", raw(tokens));
    std::vector<std::string> notes;
    const auto dataset =
        data::make_inputs(data::read_npz(folder.write("a.npz", archive.build()), "x"), notes, {}, {.tokens = true});
    model::Options options;
    options.layers = {{"tokens", layers::Embedding{300, 2}, {}},
                      {"flatten_0", layers::Flatten{}, {}},
                      {"dense_0", layers::Dense{4}, {}}};
    options.loss = losses::SoftmaxCrossEntropy{};
    const model::Model model = model::make_model(options, dataset->input(), {DType::i32, {}});
    return error_of([&] { setup::check_tokens(model, *dataset, {}); });
  };
  const std::string file = " of '" + (folder / "a.npz") + "'";
  CHECK(refused({0, 1, 2, 3, 4, 299}) == "accepted");
  CHECK(refused({0, 1, 2, 3, 300, 5}) ==
        "position 1 of example 1 in array 'x'" + file +
            " has the token 300, but 'tokens' has num_embeddings 300: tokens 0 to 299 | "
            "write num_embeddings: 301");
  CHECK(refused({0, -1, 2, 3, 300, 5}) ==
        "position 1 of example 0 in array 'x'" + file +
            " has the token -1, but 'tokens' has num_embeddings 300: tokens 0 to 299 | "
            "tokens start at 0");
}
