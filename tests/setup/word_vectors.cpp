// Tables of tokens that begin with vectors of words.
#include "core/setup/initial/word_vectors.h"

#include <cstring>
#include <string>
#include <vector>

#include "core/setup/initialize.h"
#include "core/setup/make_setup.h"
#include "core/tokenizers/tokenizer.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/words.h"

using namespace pmaptrain;
using test::contains;
using test::TemporaryFolder;

namespace {

std::string texts_config(const std::string& vectors, const std::string& tokenizer = "words: {min_count: 1}") {
  return "data: {source: {csv: {train: r.csv, target: label, text: review, max_length: 8}}, batch_size: 2, "
         "tokenizer: {" +
         tokenizer +
         "}}\n"
         "model: {layers: [{embedding: {num_embeddings: 300, features: 3}}, global_avg_pool, {dense: 2}], init: "
         "{from: " +
         vectors +
         "}}\nloss: softmax_cross_entropy\noptimizer: {sgd: {}, learning_rate: 0.1}\ntrain: {duration: 1 step}\n";
}

struct Texts {
  TemporaryFolder folder;
  Texts() { folder.write("r.csv", "review,label\nA good film,1\na bad film,0\ngood,1\nbad,0\n"); }
  setup::Setup setup(const std::string& config) const {
    return setup::make_setup(spec::load_text(config, "c.yaml", folder.path().string(), {}));
  }
  std::string said(const std::string& vectors, const std::string& from = "v.txt",
                   const std::string& tokenizer = "words: {min_count: 1}") const {
    folder.write("v.txt", vectors);
    try {
      setup(texts_config(from, tokenizer));
    } catch (const Error& error) {
      return error.diagnostics().front().message + " | " + error.diagnostics().front().help;
    }
    return "accepted";
  }
};

std::vector<float> row_of(const setup::Setup& setup, std::int64_t token) {
  const setup::InitialValues values(setup.model, setup.spec().model, setup.spec().seed, {}, setup.initial_file.get());
  const std::vector<std::byte> table = values.of(setup.model.parameters.front());
  std::vector<float> row(3);
  std::memcpy(row.data(), table.data() + static_cast<std::size_t>(token) * 12, 12);
  return row;
}

}  // namespace

TEST_CASE("rows of a table of tokens begin as the vectors of their words, and others are drawn", "[setup]") {
  const Texts texts;
  texts.folder.write("v.txt", "4 3\nfilm 1 2 -3.5\nGood 0.25 0 1e-3\ngood 9 9 9\nnowhere 7 7 7\nof course 5 5 5\n");
  const setup::Setup setup = texts.setup(texts_config("v.txt"));
  const tokenizers::Tokenizer& words = *setup.source.tokenizer;
  CHECK(row_of(setup, *words.id_of("film")) == std::vector<float>{1, 2, -3.5F});
  CHECK(row_of(setup, *words.id_of("good")) == std::vector<float>{0.25F, 0, 1e-3F});  // the first of equal words
  const setup::Setup drawn = texts.setup(
      "data: {source: {csv: {train: r.csv, target: label, text: review, max_length: 8}}, batch_size: 2, "
      "tokenizer: {words: {min_count: 1}}}\n"
      "model: {layers: [{embedding: {num_embeddings: 300, features: 3}}, global_avg_pool, {dense: 2}]}\n"
      "loss: softmax_cross_entropy\noptimizer: {sgd: {}, learning_rate: 0.1}\ntrain: {duration: 1 step}\n");
  CHECK(row_of(setup, *words.id_of("bad")) == row_of(drawn, *words.id_of("bad")));
  bool is_told = false;
  for (const std::string& note : setup.source.notes) {
    is_told = is_told || contains(note, "model.init.from took 2 of the 300 rows of 'embedding_0.embedding' from ");
  }
  CHECK(is_told);
}

TEST_CASE("vectors of words that do not fit are refused with the line", "[setup]") {
  const Texts texts;
  CHECK(contains(texts.said("film 1 2\ngood 1 2\n"),
                 "v.txt', line 1: the vector of film has 2 numbers, and the rows of "
                 "'embedding_0.embedding' have 3 | embedding: {features: 2}"));
  CHECK(contains(texts.said("film 1 2 3\ngood 1 2 3\nbad 1 2\n"), "v.txt', line 3: the vector of bad has 2 numbers"));
  CHECK(
      contains(texts.said("film 1 2 3\ngood 1 x 3\n"), "v.txt', line 2: x in the vector of good is no finite number"));
  CHECK(contains(texts.said("film 1 2 3\ngood 1 nan 3\n"), "line 2: nan in the vector of good is no finite number"));
  CHECK(contains(texts.said("kino 1 2 3\n"), "no word of '"));
  CHECK(contains(texts.said("film 1 2 3\n", "v.txt", "bytes: {}"),
                 "has vectors of words, and each byte is a token | data.tokenizer: words makes words the tokens"));
  CHECK(contains(texts.said("film 1 2 3\n", "{path: v.txt, include: [\"embedding*\"]}"),
                 "has vectors of words, which become rows of one table"));
}
