// Text as windows of tokens, their offsets, and how a text is divided.
#include "core/data/texts/text.h"

#include <cstring>
#include <set>

#include "core/data/texts/text_source.h"
#include "core/input/open.h"
#include "tests/catch.h"
#include "tests/data/files.h"
#include "tests/data/texts.h"
#include "tests/session_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

using TokenList = std::vector<std::int32_t>;

struct TextExample {
  TokenList input, target;
};

TextExample read_window(const data::Dataset& text, std::int64_t index, std::int64_t offset = 0) {
  const auto length = static_cast<std::size_t>(text.input().shape.at(0));
  TextExample example{TokenList(length), TokenList(length)};
  text.read_at(offset, index, reinterpret_cast<std::byte*>(example.input.data()),
               reinterpret_cast<std::byte*>(example.target.data()));
  return example;
}

// The bytes 0, 1, 2, ...
std::string counting_bytes(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += static_cast<char>(i);
  return text;
}

TokenList counted_from(std::int32_t first, std::size_t length) {
  TokenList window;
  for (std::size_t i = 0; i < length; ++i) window.push_back(first + static_cast<std::int32_t>(i));
  return window;
}

spec::DataSpec text_spec(const data::TextFiles& files) {
  spec::DataSpec spec;
  spec.source = files;
  spec.batch_size = std::int64_t{1};
  return spec;
}

}  // namespace

TEST_CASE("example i of a text is window i, and its targets are the tokens one later", "[data]") {
  const TemporaryFolder folder;
  const auto text = text_of({folder.write("a", counting_bytes(14))}, data::Tokens::bytes, 4);
  REQUIRE(text->size() == 3);  // 13 is the last token that is followed by none
  CHECK(text->input().dtype == DType::i32);
  CHECK(text->input().shape == Shape{4});
  CHECK(text->target().shape == Shape{4});
  CHECK(text->label_range() == std::pair<std::int64_t, std::int64_t>{0, 13});
  for (std::int64_t i = 0; i < 3; ++i) {
    const TextExample example = read_window(*text, i);
    CHECK(example.input == counted_from(static_cast<std::int32_t>(4 * i), 4));
    CHECK(example.target == counted_from(static_cast<std::int32_t>(4 * i + 1), 4));
  }
  CHECK(text_of({folder / "a"}, data::Tokens::bytes, 13)->size() == 1);
}

TEST_CASE("at an offset all windows begin later, and the last one ends with the text at the latest", "[data]") {
  const TemporaryFolder folder;
  const auto text = text_of({folder.write("a", counting_bytes(14))}, data::Tokens::bytes, 4);
  CHECK(text->offsets() == 4);
  for (std::int32_t offset = 0; offset < 4; ++offset) {
    CHECK(read_window(*text, 0, offset).input == counted_from(offset, 4));
    CHECK(read_window(*text, 1, offset).target == counted_from(4 + offset + 1, 4));
    CHECK(read_window(*text, 2, offset).input == counted_from(std::min(8 + offset, 9), 4));
  }
}

TEST_CASE("several files follow one another, and 16-bit tokens are little-endian", "[data]") {
  const TemporaryFolder folder;
  const auto two = text_of({folder.write("a", "abc"), folder.write("b", "de")}, data::Tokens::bytes, 4);
  CHECK(read_window(*two, 0).target == TokenList{'b', 'c', 'd', 'e'});
  const auto wide = text_of({folder.write("c", std::string("\1\0\2\1\xff\xff", 6))}, data::Tokens::uint16, 2);
  CHECK(read_window(*wide, 0).input == TokenList{1, 258});
  CHECK(read_window(*wide, 0).target == TokenList{258, 65535});
}

TEST_CASE("a text that is too short or has half a token is refused", "[data]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("a", "abcde");
  CHECK(error_of([&] { text_of({path}, data::Tokens::bytes, 5); }) ==
        "'" + path +
            "' has 5 tokens, but an example of length 5 takes 6: its own and the one that follows | use a "
            "smaller length, or more text");
  CHECK(error_of([&] { text_of({path}, data::Tokens::uint16, 1); }) ==
        "'" + path +
            "' has 5 bytes, which are not whole tokens of 2 bytes | tokens: uint16 takes a flat array of 16-bit "
            "integers; tokens: bytes takes any file");
  CHECK(error_of([&] { text_of({folder.write("empty", "")}, data::Tokens::bytes, 1); }) ==
        "'" + (folder / "empty") + "' is empty | ");
}

TEST_CASE("data.validation takes the end of a text, and no window of training reaches into it", "[data]") {
  const TemporaryFolder folder;
  spec::DataSpec spec = text_spec({{folder.write("a", counting_bytes(43))}, {}, {}, data::Tokens::bytes, 4, {}, {}});
  spec.validation = spec::ValidationShare{0.3};
  const data::Source source = input::open(spec, 0, 1);
  REQUIRE(source.train->size() == 7);
  REQUIRE(source.validation->size() == 3);
  CHECK(read_window(*source.validation, 0).input == counted_from(28, 4));
  CHECK(source.validation->index_in_source(0) == 7);
  for (std::int64_t offset = 0; offset < 4; ++offset) {
    for (std::int64_t i = 0; i < 7; ++i) {
      const TextExample example = read_window(*source.train, i, offset);
      CHECK(example.input.back() < 28);
      CHECK(example.target.back() <= 28);
    }
  }
  spec.limit.train = spec::Amount{2};
  CHECK(read_window(*input::open(spec, 0, 1).train, 1, 3).input == counted_from(4, 4));  // a shorter text
}

TEST_CASE("an epoch of training has one offset, which depends on the seed and the epoch", "[data]") {
  const TemporaryFolder folder;
  spec::DataSpec spec = text_spec({{folder.write("a", counting_bytes(100))}, {}, {}, data::Tokens::bytes, 8, {}, {}});
  const auto text = input::open(spec, 0, 1).train;
  const input::Stream stream = input::training_stream(spec, 5, *text, 1),
                      other = input::training_stream(spec, 6, *text, 1);
  std::set<std::int64_t> offsets;
  int differ = 0;
  for (std::int64_t epoch = 0; epoch < 100; ++epoch) {
    const std::int64_t offset = stream.offset(epoch);
    offsets.insert(offset);
    differ += offset != other.offset(epoch) ? 1 : 0;
    const std::int64_t index = stream.order().index(epoch, 0);
    TextExample example{TokenList(8), TokenList(8)};
    stream.read(*text, epoch, 0, reinterpret_cast<std::byte*>(example.input.data()),
                reinterpret_cast<std::byte*>(example.target.data()));
    CHECK(example.input == read_window(*text, index, offset).input);
    CHECK(example.target == read_window(*text, index, offset).target);
  }
  CHECK(offsets == std::set<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(differ > 70);
  spec.shuffle = false;
  CHECK_FALSE(input::training_stream(spec, 5, *text, 1).is_random());
}

TEST_CASE("a model learns which letter follows", "[data]") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 400; ++i) text += "abcdef"[i % 6];
  const std::string config = R"(
mesh: {axes: {devices: 2}}
data:
  source: {text: {train: )" + folder.write("a", text) +
                             R"(, length: 2}}
  batch_size: 10
  validation: 0.1
  normalize: {mean: [100], std: [2]}
model: {layers: [{dense: 32}, relu, {dense: 256}, {reshape: [2, 128]}]}
loss: softmax_cross_entropy
metrics: [accuracy, perplexity]
optimizer: {adam: {}, learning_rate: 0.03}
train: {duration: 10 epochs}
)";
  const Trained trained = train_setup(setup_of_text(config));
  const run::Evaluated last = trained.of<run::Evaluated>().back();
  CHECK(last.split == "validation");
  CHECK(last.measures[1].second > 0.9);
  CHECK(last.measures[2].second < 2.0);
  CHECK(trained.same_bits(train_setup(setup_of_text(config, {"mesh.workers=1"}))));
  const auto refusal = [&](const std::string& set) {
    return test::refusal([&] { setup_of_text(config, {set}); }, ExitStatus::usage);
  };
  CHECK(refusal("model.layers=[dense: 8]") ==
        "softmax_cross_entropy takes one logit for each class at each position, [2, C]; the output of the model is "
        "f32[8] | end the layers with reshape: [2, C]");
  CHECK(refusal("metrics=[f1]") == "accepted");
  CHECK(refusal("data.validation={share: 0.1, shuffle: true}") ==
        "shuffle has no effect: the validation share of a text is its end | remove it");
  CHECK(refusal("data.validation={share: 0.1, seed: 4}") ==
        "seed has no effect: the validation share of a text is its end | remove it");
}

const std::string small_gpt = R"(
mesh: {axes: {devices: 2}}
data:
  source: {text: {train: TEXT, length: 6}}
  batch_size: 8
  validation: 0.1
model:
  layers:
    - {name: tokens, embedding: {num_embeddings: 128, features: 16}}
    - position_embedding: {length: 6}
    - repeat:
        times: 2
        layers:
          - residual: {layers: [layer_norm, {attention: {heads: 2, causal: true, dropout: 0.1}}]}
          - residual: {layers: [layer_norm, {swiglu: 32}]}
    - layer_norm
    - attend: {embedding: tokens}
loss: softmax_cross_entropy
metrics: [accuracy, perplexity]
optimizer: {adam: {}, learning_rate: 0.01}
train: {duration: 12 epochs}
)";

std::string small_gpt_of(const std::string& file) {
  std::string config = small_gpt;
  return config.replace(config.find("TEXT"), 4, file);
}

TEST_CASE("a small GPT learns a text whose next letter depends on two letters, with the same bits on any workers",
          "[data]") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 700; ++i) text += "abacabad"[i % 8];
  const std::string config = small_gpt_of(folder.write("a", text));
  const Trained trained = train_setup(setup_of_text(config));
  const run::Evaluated last = trained.of<run::Evaluated>().back();
  CHECK(last.measures[0].second < 0.7);
  CHECK(last.measures[1].second > 0.75);  // what follows the first a of a window is not known
  CHECK(trained.same_bits(train_setup(setup_of_text(config, {"mesh.workers=1"}))));
  const Trained mixed = train_setup(setup_of_text(config, {"precision=mixed_bfloat16"}));
  CHECK(mixed.of<run::Evaluated>().back().measures[1].second > 0.75);
}

TEST_CASE("a token that the table of embedding does not have is an error of the data", "[data]") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& file, const std::string& set) {
    return test::refusal([&] { setup_of_text(small_gpt_of(file), {set}); }, ExitStatus::data);
  };
  const std::string bytes = folder.write("a", "abcdefgh\xf1" + std::string(80, 'a'));
  CHECK(refused(bytes, "name=x") == "position 2 of example 1 in '" + bytes +
                                        "' has the token 241, but 'tokens' has num_embeddings 128: tokens 0 to 127 | "
                                        "write num_embeddings: 256, one row for each byte");
  const std::string late = folder.write("b", std::string(89, 'a') + "\xf1");
  CHECK(refused(late, "name=x") == "the tokens in '" + late +
                                       "' go up to 241, but 'tokens' has num_embeddings 128: tokens 0 to 127 | write "
                                       "num_embeddings: 256, one row for each byte");
  const std::string wide = folder.write("c", std::string("\1\0\2\1", 4) + std::string(200, '\0'));
  CHECK(refused(wide, "data.source.text.tokens=uint16") ==
        "position 1 of example 0 in '" + wide +
            "' has the token 258, but 'tokens' has num_embeddings 128: tokens 0 to 127 | write num_embeddings: 259");
}
