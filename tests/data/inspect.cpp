// What init finds in tables: the same cells as a run.
#include "core/input/inspect.h"

#include <random>
#include <set>

#include "core/data/tables/csv_source.h"
#include "core/input/open.h"
#include "tests/catch.h"
#include "tests/data/files.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

using Record = std::vector<std::string>;

std::string quoted(const std::string& cell) {
  std::string text = "\"";
  for (const char c : cell) text += c == '"' ? std::string(2, c) : std::string(1, c);
  return text + "\"";
}

// The source that init writes for a file, beside the layout that it found.
spec::DataSpec source_of(const input::TableLayout& layout, const std::string& path) {
  data::Csv csv;
  csv.train = {path};
  csv.delimiter = std::string(1, layout.delimiter);
  csv.header = layout.header;
  csv.target = {{layout.targets.front()}};
  csv.inputs.emplace();
  for (const std::string& name : layout.inputs) csv.inputs->push_back({name});
  for (const std::string& name : layout.categorical) csv.categorical.push_back({name});
  spec::DataSpec data;
  data.source = csv;
  return data;
}

// A table with a header, of numbers and of texts with everything in them that needs quotes.
struct RandomTable {
  char delimiter = ',';
  std::vector<Record> records;
  std::string text;

  explicit RandomTable(unsigned seed) {
    std::mt19937 random(seed);
    const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
    delimiter = ",;\t|"[below(4)];
    const unsigned columns = 2 + below(4);
    Record& header = records.emplace_back();
    for (unsigned c = 0; c < columns; ++c) header.push_back("c" + std::to_string(c) + text_of(below(8)));
    for (int row = 0; row < 24; ++row) {
      Record& record = records.emplace_back();
      for (unsigned c = 0; c < columns; ++c) {
        record.push_back(c + 1 < columns && c % 2 == 0 ? std::to_string(below(50)) + ".5" : text_of(below(8)));
      }
    }
    const bool all = below(2) == 0;
    const std::string end = below(2) == 0 ? "\r\n" : "\n";
    for (const Record& record : records) {
      for (std::size_t c = 0; c < record.size(); ++c) {
        const bool needs = record[c].find_first_of("\",;\t|\n") != std::string::npos;
        text += (c > 0 ? std::string(1, delimiter) : "") + (all || needs ? quoted(record[c]) : record[c]);
      }
      text += end;
    }
  }

  static std::string text_of(unsigned kind) {
    static const std::vector<std::string> texts = {"u",          ",",          ";",     "a\tb|c",
                                                   "say \"hi\"", "two\nlines", "x,y;z", "plain text"};
    return texts[kind];
  }
};

}  // namespace

TEST_CASE("tables with quoted cells are found to be what a run reads", "[data]") {
  const TemporaryFolder folder;
  for (unsigned seed = 0; seed < 150; ++seed) {
    const RandomTable table(seed);
    const std::string path = folder.write("t.csv", table.text);
    INFO("seed " << seed << "\n" << table.text);
    const input::TableLayout layout = input::find_columns(path);
    REQUIRE(layout.delimiter == table.delimiter);
    REQUIRE(layout.header);
    CHECK(layout.targets.front() == table.records.front().back());
    CHECK(layout.inputs == Record(table.records.front().begin(), table.records.front().end() - 1));
    const data::Source source = input::open(source_of(layout, path), 0, 1);
    CHECK(source.train->size() == 24);
    std::set<std::string> classes;
    for (std::size_t r = 1; r < table.records.size(); ++r) classes.insert(table.records[r].back());
    CHECK(source.encoding.classes == Record(classes.begin(), classes.end()));
  }
}

TEST_CASE("a cell may be a delimiter in quotes, and a delimiter that leaves quotes within cells is none", "[data]") {
  const TemporaryFolder folder;
  const auto delimiter_of = [&](const std::string& text) {
    return input::find_columns(folder.write("t.csv", text)).delimiter;
  };
  CHECK(delimiter_of("\",\";x;y\n1;2;3\n") == ';');
  CHECK(delimiter_of("x,\";\",y\n1,2,3\n") == ',');
  CHECK(delimiter_of("x,\"a;b;c\"\n1,\"2;3;4\"\n") == ',');
  CHECK(delimiter_of("size;name\n5\" disk;a\n3\" disk;b\n") == ';');
}

TEST_CASE("a table whose first bytes end within a quoted cell is inspected by whole records", "[data]") {
  const TemporaryFolder folder;
  const std::string lines(std::size_t{1} << 16, '\n');
  std::string text = "x,note,y\n";
  for (int row = 0; row < 80; ++row)
    text += std::to_string(row % 7) + ",\"" + lines + "\"," + (row % 2 == 0 ? "a" : "b") + "\n";
  REQUIRE(text.size() > std::size_t{4} << 20);
  CHECK(input::find_columns(folder.write("t.csv", text)).targets == std::vector<std::string>{"y"});
}
