// init csv: tables with columns of texts, and JSON lines.
#include <string>

#include "tests/app/init.h"
#include "tests/catch.h"
#include "tests/words.h"

using namespace pmaptrain;
using test::contains;
using test::TemporaryFolder;
using tests::call;
using tests::rows_of;
using tests::written;

namespace {

// A review that says what it thinks of a film of this number.
std::string review(int i) {
  return std::string(i % 3 == 0 ? "a good film" : "a bad film, really") + " with the number " + std::to_string(i);
}

}  // namespace

TEST_CASE("init csv trains on the words of a column of texts where nothing else is an input", "[app]") {
  const TemporaryFolder folder;
  folder.write("t.csv", "id,review,liked\n" + rows_of(120, [](int i) {
                          return std::to_string(i) + ",\"" + review(i) + "\"," + (i % 3 == 0 ? "yes" : "no");
                        }));
  const std::string config = written(folder, "csv", folder / "t.csv");
  CHECK(contains(config, "      text: review "));
  CHECK(contains(config, "  tokenizer: {words: {size: 20000}}"));
  CHECK(contains(config, "    - embedding: {num_embeddings: 1"));
  CHECK(contains(config, "    - global_avg_pool"));
  CHECK_FALSE(contains(config, "normalize"));
  CHECK(contains(config, "id (it numbers the rows)"));
  const tests::Finished run = call({"run", folder / "own.yaml", "--run-dir", folder / "run", "--set",
                                    "train.duration=15 epochs", "-q", "--progress", "none", "--json"});
  INFO(run.err);
  REQUIRE(run.status == 0);
  CHECK(contains(run.out, "\"accuracy\": 1.0"));
}

TEST_CASE("init csv says of a column of texts beside numbers how to train on it instead", "[app]") {
  const TemporaryFolder folder;
  folder.write("t.csv", "review,stars,liked\n" + rows_of(120, [](int i) {
                          return "\"" + review(i) + "\"," + std::to_string(i % 5) + (i % 3 == 0 ? ",yes" : ",no");
                        }));
  const std::string config = written(folder, "csv", folder / "t.csv");
  CHECK(contains(config, "inputs: [stars]"));
  CHECK(contains(config, "Column 'review' has texts: `text: review` in place of inputs"));
}

TEST_CASE("init csv reads JSON lines", "[app]") {
  const TemporaryFolder folder;
  folder.write("t.jsonl", rows_of(120, [](int i) {
                 return "{\"text\": \"" + review(i) + "\", \"label\": \"" + (i % 3 == 0 ? "yes" : "no") + "\"}";
               }));
  CHECK(contains(written(folder, "csv", folder / "t.jsonl"), "      text: text "));
  folder.write("n.jsonl", rows_of(60, [](int i) {
                 return "{\"a\": " + std::to_string(i % 7) + ", \"b\": " + std::to_string(0.5 * i) +
                        ", \"y\": " + std::to_string(i % 2) + "}";
               }));
  CHECK(contains(written(folder, "csv", folder / "n.jsonl"), "target: \"y\""));
}
