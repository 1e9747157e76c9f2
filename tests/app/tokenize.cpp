// tokenize, and runs whose texts a tokenizer reads.
#include <filesystem>
#include <string>
#include <vector>

#include "tests/app/call.h"
#include "tests/app/predicting.h"
#include "tests/catch.h"
#include "tests/tokenizers/fixtures.h"

using namespace pmaptrain;

using test::TemporaryFolder;
using tests::call;
using tests::contains;
using tests::Finished;
using tests::TrainedRun;

namespace {

std::string corpus_text() {
  std::string text;
  for (const std::string& document : tests::fixture_corpus()) text += document;
  return text;
}

}  // namespace

TEST_CASE("tokenize train, encode, decode and show", "[app]") {
  const TemporaryFolder folder;
  folder.write("corpus.txt", corpus_text());
  const std::string tokenizer = folder / "t.json", ids = folder / "ids.bin";
  const Finished trained = call({"tokenize", "train", folder / "corpus.txt", "--size", "400", "--output", tokenizer});
  INFO(trained.err);
  REQUIRE(trained.status == 0);
  CHECK(contains(trained.out, "t.json: 400 tokens from "));

  const Finished encoded = call({"tokenize", "encode", folder / "corpus.txt", "--tokenizer", tokenizer});
  REQUIRE(encoded.status == 0);
  folder.write("ids.txt", encoded.out);
  CHECK(call({"tokenize", "decode", folder / "ids.txt", "--tokenizer", tokenizer}).out == corpus_text());

  const Finished written =
      call({"tokenize", "encode", folder / "corpus.txt", "--tokenizer", tokenizer, "--output", ids});
  CHECK(contains(written.out, "ids as uint16"));
  CHECK(call({"tokenize", "decode", ids, "--tokenizer", tokenizer, "--tokens", "uint16"}).out == corpus_text());

  CHECK(contains(call({"tokenize", "show", "--tokenizer", tokenizer}).out, "0 <|endoftext|>"));
  CHECK(contains(call({"tokenize", "show", "the", "--tokenizer", tokenizer}).out, " \"the\"\n"));
  folder.write("lines.jsonl", "{\"body\": \"the cat\"}\n{\"body\": \"sat\"}\n");
  const std::string lines =
      call({"tokenize", "encode", folder / "lines.jsonl", "--field", "body", "--tokenizer", tokenizer}).out;
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 2);
}

TEST_CASE("what tokenize is given wrong is said", "[app]") {
  const TemporaryFolder folder;
  folder.write("a.txt", "the cat sat on the mat");
  folder.write("t.json", tests::tokenizer_text("gpt2"));
  folder.write("big.txt", "0 1 999");
  const auto said = [](std::vector<std::string> arguments, int status) {
    arguments.insert(arguments.begin(), "tokenize");
    const Finished done = call(arguments);
    CHECK(done.status == status);
    return done.err;
  };
  CHECK(contains(said({"trian"}, 2), "pmaptrain tokenize has no 'trian'\n  help: did you mean 'train'?"));
  CHECK(contains(said({"train", folder / "a.txt"}, 2), "tokenize train needs --output FILE"));
  CHECK(contains(said({"train", folder / "a.txt", "--size", "100", "--output", folder / "o.json"}, 2),
                 "a vocabulary of 100 has no room for the 257 special tokens"));
  CHECK_FALSE(std::filesystem::exists(folder / "o.json"));
  CHECK(contains(said({"train", folder / "a.txt", "--output", folder / "t.json"}, 2), "--overwrite"));
  CHECK(contains(said({"train", folder / "none.txt", "--output", folder / "o.json"}, 3), "none.txt"));
  CHECK(contains(said({"train", "none.txt", "--output", folder / "o.json"}, 3),
                 "there is no 'none.txt'\n  help: FILE is relative to the current directory\n"));
  CHECK(contains(said({"decode", "none.txt", "--tokenizer", folder / "t.json"}, 3),
                 "there is no 'none.txt'\n  help: FILE is relative to the current directory\n"));
  CHECK(said({"encode", folder / "a.txt", "--tokenizer", "none.json"}, 3) ==
        "--tokenizer:1:13: error: cannot open 'none.json': No such file or directory\n"
        "    1 | --tokenizer none.json\n"
        "      |             ^~~~~~~~~\n"
        "  help: a relative path in an option is relative to the current directory\n");
  CHECK(contains(said({"encode", folder / "a.txt"}, 2), "tokenize encode needs --tokenizer FILE"));
  CHECK(contains(said({"encode", folder / "a.txt", "--tokenizer", folder / "a.txt"}, 3), "a.txt' is no JSON"));
  CHECK(
      contains(said({"decode", folder / "a.txt", "--tokenizer", folder / "t.json"}, 3), "a.txt' has no id at byte 0"));
  CHECK(contains(said({"decode", folder / "big.txt", "--tokenizer", folder / "t.json"}, 3),
                 "id 2 of '" + folder / "big.txt" + "' is 999, and the tokenizer has ids from 0 to 329"));
  CHECK(contains(said({"decode", folder / "big.txt", "--tokenizer", folder / "t.json", "--tokens", "uint16"}, 3),
                 "has 7 bytes, which are not whole ids of 2 bytes"));
}

TEST_CASE("a run keeps its tokenizer, speaks text with it, and is not continued with another one", "[app]") {
  TrainedRun run;
  std::string text;
  for (int i = 0; i < 60; ++i) text += "the cat sat on the mat. ";
  run.folder.write("t.txt", text);
  run.folder.write("tok.json", tests::tokenizer_text("gpt2"));
  run.train("  source: {text: {train: t.txt, length: 8, end_token: <|endoftext|>}}\n  tokenizer: {file: tok.json}\n",
            "{name: tokens, embedding: {num_embeddings: 330, features: 16}}, {attention: {heads: 1, causal: true}}, "
            "{attend: {embedding: tokens}}");
  CHECK(std::filesystem::exists(run.folder / "run/tokenizer.json"));
  CHECK_FALSE(std::filesystem::is_empty(run.folder / ".tokens"));
  std::filesystem::remove(run.folder / "tok.json");
  const Finished said = call({"predict", run.dir, "--prompt", "the cat", "--tokens", "5"});
  INFO(said.err << said.out);
  CHECK(said.status == 0);
  CHECK(said.out.starts_with("the cat sat"));
  const Finished evaluated = call({"eval", run.dir, "--split", "train"});
  INFO(evaluated.err);
  CHECK(evaluated.status == 0);
  CHECK(call({"run", run.dir, "--resume", "--set", "train.duration=11 epochs", "-q", "--progress", "none"}).status ==
        0);
  // Another tokenizer makes other ids.
  run.folder.write("tok.json", tests::tokenizer_text("llama3"));
  const Finished other = call({"run", run.folder / "c.yaml", "--run-dir", run.dir, "--resume", "--set",
                               "train.duration=12 epochs", "-q", "--progress", "none"});
  CHECK(other.status != 0);
  CHECK(contains(other.err, "data.tokenizer is another one"));
  run.folder.write("run/tokenizer.json", tests::tokenizer_text("llama3"));
  CHECK(contains(call({"predict", run.dir, "--prompt", "the cat"}).err,
                 "data.tokenizer is not the one that the run was trained with"));
}

TEST_CASE("a tokenizer that is gone is an error at data.tokenizer, whatever needs it", "[app]") {
  std::string text, table = "review,label\n";
  for (int i = 0; i < 60; ++i) text += "the cat sat on the mat. ";
  for (int i = 0; i < 24; ++i) table += i % 2 == 0 ? "the cat,yes\n" : "on a mat,no\n";
  const auto train = [&](TrainedRun& run, const std::string& source, const std::string& layers) {
    run.folder.write("t.txt", text);
    run.folder.write("r.csv", table);
    run.folder.write("tok.json", tests::tokenizer_text("gpt2"));
    run.train("  source: " + source + "\n  tokenizer: {file: tok.json}\n", layers);
    std::filesystem::remove(run.folder / "tok.json");
    std::filesystem::remove(run.folder / "run/tokenizer.json");
  };
  const auto check = [&](const TrainedRun& run, const std::vector<std::string>& arguments) {
    const Finished done = call(arguments);
    CHECK(done.status == 3);
    INFO(done.err);
    CHECK(contains(done.err,
                   "error: the run folder has no tokenizer.json, and there is no '" + run.folder / "tok.json" + "'\n"));
    CHECK(contains(done.err, " |   tokenizer: {file: "));
    CHECK(contains(done.err, "\n  help: copy it from where the run was trained\n"));
  };
  TrainedRun run;
  train(run, "{text: {train: t.txt, length: 8}}",
        "{name: tokens, embedding: {num_embeddings: 330, features: 16}}, {attention: {heads: 1, causal: true}}, "
        "{attend: {embedding: tokens}}");
  check(run, {"predict", run.dir, "--prompt", "the cat"});
  check(run, {"eval", run.dir, "--split", "train"});
  check(run, {"run", run.dir, "--resume", "--set", "train.duration=12 epochs", "-q", "--progress", "none"});
  TrainedRun of_table;
  train(of_table, "{csv: {train: r.csv, target: label, text: review, max_length: 10}}",
        "{embedding: {num_embeddings: 330, features: 8}}, global_avg_pool, {dense: 2}");
  check(of_table,
        {"predict", of_table.dir, "--input", of_table.folder / "r.csv", "--output", of_table.folder / "o.csv"});
}

TEST_CASE("a run of words keeps the words, without the texts that they are from", "[app]") {
  TrainedRun run;
  std::string text;
  for (int i = 0; i < 60; ++i) text += "The cat sat on the mat. ";
  run.folder.write("t.txt", text);
  run.train("  source: {text: {train: t.txt, length: 8}}\n  tokenizer: {words: {size: 50}}\n",
            "{name: tokens, embedding: {num_embeddings: 50, features: 16}}, {attention: {heads: 1, causal: true}}, "
            "{attend: {embedding: tokens}}");
  std::filesystem::remove(run.folder / "t.txt");
  const Finished said = call({"predict", run.dir, "--prompt", "the cat", "--tokens", "5"});
  INFO(said.err);
  CHECK(said.status == 0);
  CHECK(said.out == "the cat sat on the mat .\n");
  std::filesystem::remove(run.folder / "run/tokenizer.json");
  CHECK(contains(call({"predict", run.dir, "--prompt", "the cat"}).err,
                 "the run folder has no tokenizer.json, which has the words of its tokenizer"));
}

TEST_CASE("a model of a column of texts is trained, evaluated, exported and predicts", "[app]") {
  TrainedRun run;
  std::string table = "review,label\n", lines;
  for (int i = 0; i < 48; ++i) {
    const bool good = i % 3 == 0;
    const std::string review = std::string(good ? "a good film" : "what a bad film, really") + (i % 2 == 0 ? "!" : "");
    table += "\"" + review + "\"," + (good ? "yes" : "no") + "\n";
  }
  run.folder.write("r.csv", table);
  run.folder.write("new.jsonl", "{\"review\": \"good\", \"n\": 1}\n{\"review\": \"a bad bad film\", \"n\": 2}\n");
  run.train(
      "  source: {csv: {train: r.csv, target: label, text: review, max_length: 10}}\n"
      "  tokenizer: {words: {min_count: 1}}\n  bucket_by_length: 3\n",
      "{embedding: {num_embeddings: 30, features: 8}}, global_avg_pool, {dense: 2}");
  std::filesystem::remove(run.folder / "r.csv");
  CHECK(run.csv("new.jsonl") == "prediction\nyes\nno\n");
  CHECK(contains(run.csv("new.jsonl", {"--id", "n"}), "1,yes\n2,no\n"));
  const Finished exported = call({"export", run.dir, "--output", run.folder / "m.onnx"});
  INFO(exported.err);
  CHECK(exported.status == 0);
}

TEST_CASE(
    "a run on files of tokens speaks text by a tokenizer that decodes them, and is not continued with another one",
    "[app]") {
  TrainedRun run;
  run.folder.write("tok.json", tests::tokenizer_text("gpt2"));
  std::string text;
  for (int i = 0; i < 60; ++i) text += "the cat sat on the mat. ";
  run.folder.write("t.txt", text);
  REQUIRE(call({"tokenize", "encode", run.folder / "t.txt", "--tokenizer", run.folder / "tok.json", "--output",
                run.folder / "t.bin"})
              .status == 0);
  run.train(
      "  source: {text: {train: t.bin, length: 8, tokens: uint16, end_token: <|endoftext|>}}\n"
      "  tokenizer: {file: tok.json}\n",
      "{name: tokens, embedding: {num_embeddings: 330, features: 16}}, {attention: {heads: 1, causal: true}}, "
      "{attend: {embedding: tokens}}");
  CHECK(call({"predict", run.dir, "--prompt", "the cat", "--tokens", "5"}).out.starts_with("the cat"));
  run.folder.write("run/tokenizer.json", tests::tokenizer_text("roberta_like"));
  for (const Finished& other :
       {call({"predict", run.dir, "--prompt", "the cat"}),
        call({"run", run.dir, "--resume", "--set", "train.duration=12 epochs", "-q", "--progress", "none"})}) {
    CHECK(other.status != 0);
    CHECK(contains(other.err, "tokenizer"));
  }
}

TEST_CASE("a tokenizer that cannot be read is an error at its key", "[app]") {
  TrainedRun run;
  run.folder.write("t.txt", "the cat sat on the mat and the dog");
  run.folder.write("bad.json", "{\"model\": {\"type\": \"WordPiece\"}}");
  for (const std::string file : {"none.json", "bad.json"}) {
    run.folder.write("c.yaml",
                     "mesh: {axes: {devices: 1}}\ndata:\n  batch_size: 1\n  source: {text: {train: t.txt, length: 4}}\n"
                     "  tokenizer: {file: " +
                         file +
                         "}\nmodel: {layers: [{embedding: {num_embeddings: 9, features: 2}}, "
                         "{dense: 9}]}\nloss: softmax_cross_entropy\noptimizer: {adam: {}, learning_rate: 0.1}\n"
                         "train: {duration: 1 step}\n");
    const Finished said = call({"validate", run.folder / "c.yaml"});
    CHECK(said.status == 3);
    CHECK(contains(said.err, "c.yaml:5:21: error: "));
  }
}
