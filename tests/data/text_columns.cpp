// Tables of which a column has texts, in CSV and JSON lines.
#include <memory>
#include <string>
#include <vector>

#include "core/data/tables/csv_source.h"
#include "core/data/tables/text_rows.h"
#include "core/data/tokenizer.h"
#include "core/tokenizers/file.h"
#include "core/tokenizers/tokenizer.h"
#include "tests/catch.h"
#include "tests/data/files.h"
#include "tests/tokenizers/fixtures.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

using Row = std::vector<std::int32_t>;

data::Csv reviews(const std::string& train, std::int64_t max_length = 8) {
  data::Csv csv;
  csv.train = {train};
  csv.target = {{"label"}};
  csv.text = data::ColumnName{"review"};
  csv.max_length = max_length;
  return csv;
}

data::Source opened(const data::Csv& csv, const data::TokenizerKind* tokenizer = nullptr) {
  static const data::Skipped none;
  data::Opening opening{0, 1, {}, {}, nullptr, none};
  if (tokenizer != nullptr) opening.tokenizer = tokenizer->operator->();
  return csv.open(opening);
}

// The tokens of a row without padding, which is zeros.
Row tokens_in(const data::Dataset& rows, std::int64_t index) {
  Row input(static_cast<std::size_t>(rows.input().shape.front()), -1);
  rows.read(index, reinterpret_cast<std::byte*>(input.data()), nullptr);
  for (std::size_t i = static_cast<std::size_t>(rows.length(index)); i < input.size(); ++i) CHECK(input[i] == 0);
  input.resize(static_cast<std::size_t>(rows.length(index)));
  return input;
}

std::int32_t label_in(const data::Dataset& rows, std::int64_t index) {
  std::int32_t label = -1;
  rows.read(index, nullptr, reinterpret_cast<std::byte*>(&label));
  return label;
}

Row bytes_in(const std::string& text) {
  return {reinterpret_cast<const unsigned char*>(text.data()),
          reinterpret_cast<const unsigned char*>(text.data()) + text.size()};
}

}  // namespace

TEST_CASE("the tokens of a column of texts are the inputs, cut at max_length", "[data]") {
  const TemporaryFolder folder;
  folder.write("r.csv", "id,review,label\n1,\"good, very\",yes\n2,bad,no\n3,,no\n");
  data::Csv csv = reviews(folder / "r.csv");
  const data::Source source = opened(csv);
  const data::Dataset& rows = *source.train;
  CHECK(rows.size() == 3);
  CHECK((rows.input().dtype == DType::i32 && rows.input().shape == Shape{8} && rows.input().tokens == 256));
  CHECK(rows.has_lengths());
  CHECK(tokens_in(rows, 0) == bytes_in("good, ve"));
  CHECK(tokens_in(rows, 1) == bytes_in("bad"));
  CHECK(tokens_in(rows, 2).empty());
  CHECK((label_in(rows, 0) == 1 && label_in(rows, 1) == 0));
  CHECK(source.encoding.classes == std::vector<std::string>{"no", "yes"});
  REQUIRE_FALSE(source.notes.empty());
  CHECK(source.notes.back() ==
        "train: the longest of 3 texts has 10 tokens; 1 is empty; 1 is longer than max_length and loses its end");
  csv.truncate = data::Truncate::left;
  CHECK(tokens_in(*opened(csv).train, 0) == bytes_in("od, very"));
}

TEST_CASE("the special tokens of a tokenizer stay where a text is cut", "[data]") {
  const TemporaryFolder folder;
  folder.write("r.csv", "review,label\nthe cat sat on the mat and the hat,0\n");
  folder.write("t.json", tests::tokenizer_text("roberta_like"));
  const data::TokenizerKind file = data::TokenizerFile{folder / "t.json"};
  const tokenizers::Tokenizer tokenizer(tests::tokenizer_named("roberta_like"));
  const auto ids = tokenizers::Encoder(tokenizer).encode("the cat sat on the mat and the hat", false);
  const Row all(ids.begin(), ids.end());
  data::Csv csv = reviews(folder / "r.csv", 5);
  CHECK(tokens_in(*opened(csv, &file).train, 0) == Row{0, all[0], all[1], all[2], 1});
  csv.truncate = data::Truncate::left;
  CHECK(tokens_in(*opened(csv, &file).train, 0) == Row{0, all[all.size() - 3], all[all.size() - 2], all.back(), 1});
  csv.special_tokens = false;
  CHECK(tokens_in(*opened(csv, &file).train, 0) == Row(all.end() - 5, all.end()));
  csv = reviews(folder / "r.csv", 2);
  CHECK(error_of([&] { opened(csv, &file); }, ExitStatus::usage) ==
        "max_length 2 leaves no room beside 2 special tokens of data.tokenizer | a larger max_length, or "
        "special_tokens: false");
}

TEST_CASE("JSON lines are a table with a column for each key", "[data]") {
  const TemporaryFolder folder;
  folder.write("r.jsonl",
               "{\"review\": \"one\\ntwo \\\"x\\\", y\", \"label\": \"yes\", \"stars\": 4}\n\n"
               "{\"label\": \"no\", \"review\": null, \"tags\": [1, 2]}\n");
  const data::Source source = opened(reviews(folder / "r.jsonl", 30));
  CHECK(source.train->size() == 2);
  CHECK(tokens_in(*source.train, 0) == bytes_in("one\ntwo \"x\", y"));
  CHECK(source.train->length(1) == 0);
  CHECK(label_in(*source.train, 0) == 1);
  CHECK(contains(source.train->line_of(1), "r.jsonl', line 3"));

  // Numbers of such a table are inputs as those of any other.
  folder.write("n.jsonl", "{\"a\": 1.5, \"b\": true, \"label\": 0}\n{\"a\": -2, \"b\": false, \"label\": 1}\n");
  data::Csv numbers;
  numbers.train = {folder / "n.jsonl"};
  numbers.target = {{"label"}};
  numbers.categorical = {{"b"}};
  const data::Source table = opened(numbers);
  float input[3] = {};
  std::int32_t label = -1;
  table.train->read(0, reinterpret_cast<std::byte*>(input), reinterpret_cast<std::byte*>(&label));
  CHECK((input[0] == 1.5F && input[1] == 0 && input[2] == 1 && label == 0));

  const auto said = [&](const std::string& text) {
    folder.write("bad.jsonl", text);
    return error_of([&] { opened(reviews(folder / "bad.jsonl")); });
  };
  CHECK(contains(said("{\"review\": \"a\", \"label\": 0}\n[1]\n"), "bad.jsonl', line 2: it is no object of JSON"));
  CHECK(contains(said("{\"review\": NaN}\n"), "bad.jsonl', line 1: it is not JSON; the mistake is at byte"));
  CHECK(contains(said("{\"review\": " + std::string(100000, '[')), "line 1: lists and objects are nested too deeply"));
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "{\"k" + std::to_string(i) + "\": 1}\n";
  CHECK(contains(said(many), "line 4097: the objects have more than 4,096 keys by now"));
  CHECK(contains(said("{\"text\": \"a\", \"label\": 0}\n"), "has no column 'review'"));
  CHECK(contains(said("{\"review\": [\"a\"], \"label\": 0}\n"),
                 "bad.jsonl', line 1: 'review' is a list, expected a text | join its parts to one text"));
  CHECK(contains(said("{\"review\": \"a\", \"label\": 0}\n\n{\"review\": \"b\"}\n"),
                 "bad.jsonl', line 3, column 'label': the cell is empty"));
}

TEST_CASE("JSON lines that cannot be read are left out with on_error: skip", "[data]") {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 198; ++i) {
    if (i == 50) lines += "{\"review\": \"half\n";
    if (i == 100) lines += "\n{\"review\": [\"a\"], \"label\": \"maybe\", \"more\": 1}\n";
    lines += "{\"review\": \"r" + std::to_string(i) + "\", \"label\": \"" + (i % 2 == 0 ? "no" : "yes") + "\"}\n";
  }
  folder.write("r.jsonl", lines);
  data::Csv csv = reviews(folder / "r.jsonl", 30);
  CHECK(contains(error_of([&] { opened(csv); }), "r.jsonl', line 51: it is not JSON; the mistake is at byte"));
  csv.on_error = data::OnError::skip;
  const data::Source source = opened(csv);
  CHECK(source.train->size() == 198);
  CHECK(tokens_in(*source.train, 50) == bytes_in("r50"));
  CHECK(tokens_in(*source.train, 100) == bytes_in("r100"));
  CHECK(contains(source.train->line_of(100), "r.jsonl', line 104"));
  CHECK(source.encoding.classes == std::vector<std::string>{"no", "yes"});
  const data::Skipped& skipped = source.encoding.skipped;
  REQUIRE(skipped.size() == 2);
  CHECK(skipped[0].row == 50);
  CHECK(contains(skipped[0].reason, "r.jsonl', line 51: it is not JSON; the mistake is at byte"));
  CHECK(skipped[1].row == 101);
  CHECK(contains(skipped[1].reason, "r.jsonl', line 103: 'review' is a list, expected a text"));
  // More than a hundredth; and lines of which none is an object.
  folder.write("r.jsonl", lines + "[]\n");
  CHECK(contains(error_of([&] { opened(csv); }),
                 "3 of the 201 rows of the train split cannot be read, and on_error: skip leaves out at most 2"));
  folder.write("r.jsonl", "[]\n[]\n");
  CHECK(contains(error_of([&] { opened(csv); }), "r.jsonl', line 1: it is no object of JSON"));
}

TEST_CASE("words of a column of texts are those of the rows that are trained on", "[data]") {
  const TemporaryFolder folder;
  folder.write("r.csv", "review,label\ngood film,1\nbad film,0\n");
  folder.write("t.csv", "review,label\nGood plot,1\n");
  data::Csv csv = reviews(folder / "r.csv");
  csv.test = std::vector<std::string>{folder / "t.csv"};
  const data::TokenizerKind words = data::WordTokens{20, 1, true};
  const data::Source source = opened(csv, &words);
  CHECK(source.tokenizer->size() == 5);  // <pad>, <unk>, film, bad, good
  CHECK(tokens_in(*source.train, 0) == Row{4, 2});
  CHECK(tokens_in(*source.test, 0) == Row{4, 1});
}

TEST_CASE("rows that are left out take their texts with them, whatever line ends these have", "[data]") {
  const TemporaryFolder folder;
  std::string table = "review,label\n";
  for (int i = 0; i < 100; ++i)
    table += "\"line one\nline two of " + std::to_string(i) + "\"," + std::to_string(i % 2) + "\n";
  table += "\"wrong\nfake,1\nrest\",\n";  // without a label
  table += "last,1\n";
  folder.write("r.csv", table);
  data::Csv csv = reviews(folder / "r.csv", 30);
  csv.on_error = data::OnError::skip;
  const data::Source source = opened(csv);
  REQUIRE(source.train->size() == 101);
  CHECK(tokens_in(*source.train, 100) == bytes_in("last"));
  CHECK(tokens_in(*source.train, 99) == bytes_in("line one\nline two of 99"));
  CHECK(label_in(*source.train, 100) == 1);
  CHECK(contains(source.train->line_of(100), "line 205"));
  REQUIRE(source.encoding.skipped.size() == 1);
  CHECK(source.encoding.skipped.front().row == 100);
}
