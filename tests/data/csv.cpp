// Tables of text: their cells, columns and encoding, and what is said about those that are wrong.
#include "core/data/tables/csv.h"

#include "core/data/tables/csv_reader.h"
#include "core/data/tables/csv_source.h"
#include "core/input/open.h"
#include "tests/catch.h"
#include "tests/data/files.h"
#include "tests/data/tables.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(const std::string& text, char delimiter = ',') {
  const std::string path = "f";
  data::CsvReader reader(text, delimiter, path);
  Rows rows;
  while (reader.next_record()) {
    auto& row = rows.emplace_back();
    while (const auto cell = reader.next_cell()) row.emplace_back(*cell);
  }
  return rows;
}

}  // namespace

TEST_CASE("the cells of a CSV file are those that RFC 4180 says, with the blanks around them", "[data]") {
  CHECK(rows_of("a,b\n1,2\n") == Rows{{"a", "b"}, {"1", "2"}});
  CHECK(rows_of("a,b\r\n1,2\r\n") == Rows{{"a", "b"}, {"1", "2"}});
  CHECK(rows_of("a,b\n1,2") == Rows{{"a", "b"}, {"1", "2"}});
  CHECK(rows_of("a,\n,\n") == Rows{{"a", ""}, {"", ""}});
  CHECK(rows_of(",") == Rows{{"", ""}});
  CHECK(rows_of("a\n\n\r\nb\n\n") == Rows{{"a"}, {"b"}});
  CHECK(rows_of(" a , b c\t\n") == Rows{{" a ", " b c\t"}});
  CHECK(rows_of(" , \n") == Rows{{" ", " "}});
  CHECK(rows_of(R"("a,b","say ""hi""","")") == Rows{{"a,b", "say \"hi\"", ""}});
  CHECK(rows_of("\" a \", \"b\nc\" ,d\n") == Rows{{" a ", "b\nc", "d"}});
  CHECK(rows_of(R"(5" disk,a"b)") == Rows{{"5\" disk", "a\"b"}});
  CHECK(rows_of("a\t b \t\"c\td\"\n\t\t\n", '\t') == Rows{{"a", " b ", "c\td"}, {"", "", ""}});
  CHECK(rows_of("a;b,c", ';') == Rows{{"a", "b,c"}});
  CHECK(rows_of("") == Rows{});
}

TEST_CASE("a record knows its line, also behind line ends in quotes", "[data]") {
  const std::string path = "f";
  const std::string text = "a,b\n\n\"1\n2\",\"\n\"\nx,y\n";
  data::CsvReader reader(text, ',', path);
  std::vector<std::int64_t> lines;
  while (reader.next_record()) lines.push_back(reader.line());
  CHECK(lines == std::vector<std::int64_t>{1, 3, 6});
}

TEST_CASE("cells that RFC 4180 does not allow are refused with their line", "[data]") {
  const auto refusal = [](const std::string& text) { return error_of([&] { rows_of(text); }); };
  CHECK(refusal("a\n\"b\nc\n") ==
        "'f', line 2: a double quote is not closed | close it; inside of quotes write a quote twice: \"\"");
  CHECK(refusal("a\n\"b\"c\n") ==
        "'f', line 2: after the quoted 'b' comes other text | inside of quotes write a quote twice: \"\"");
  CHECK(refusal("a\rb\r") == "'f', line 1: a line ends in CR alone | save the file with LF or CRLF at line ends");
  CHECK(refusal("\"a\"\r\"b\"") == "'f', line 1: a line ends in CR alone | save the file with LF or CRLF at line ends");
}

TEST_CASE("a cell is a number in every spelling of one, and in no other", "[data]") {
  using Kind = data::CellNumber::Kind;
  const std::pair<const char*, double> numbers[] = {
      {"0", 0},      {"-1.5", -1.5}, {"+2", 2},  {".5", 0.5},   {" 4", 4},   {"4\t ", 4},       {"5.", 5},
      {"1e3", 1000}, {"1E-2", 0.01}, {"007", 7}, {"1e-400", 0}, {"-0.0", 0}, {"3.4e38", 3.4e38}};
  for (const auto& [text, value] : numbers) {
    INFO(text);
    const data::CellNumber found = data::to_number(text);
    CHECK(found.kind == Kind::number);
    CHECK(found.value == value);
  }
  CHECK(data::to_number("-12").integer);
  CHECK_FALSE(data::to_number("12.0").integer);
  CHECK_FALSE(data::to_number("1e3").integer);
  for (const char* text : {"", "NA", "NaN", "nan", "null", "NULL", "None", "N/A"}) {
    INFO(text);
    CHECK(data::to_number(text).kind == Kind::missing);
  }
  for (const char* text : {"inf", "-Infinity"}) CHECK(data::to_number(text).kind == Kind::infinite);
  for (const char* text : {"1e39", "-4e38", "1e999", "01e400", "-0.5e999", "1e99999999999999999999"}) {
    INFO(text);
    CHECK(data::to_number(text).kind == Kind::beyond_float);
  }
  const std::string zeros(400, '0');
  CHECK(data::to_number("1" + zeros).kind == Kind::beyond_float);
  CHECK(data::to_number("0" + zeros + "1" + zeros).kind == Kind::beyond_float);
  for (const std::string& text :
       {"0." + zeros + "1", "-." + zeros + "1e+9", std::string("12e-999"), std::string("1e-99999999999999999999")}) {
    INFO(text);
    CHECK(data::to_number(text).kind == Kind::number);
    CHECK(data::to_number(text).value == 0);
  }
  for (const char* text : {"x", "1x", "1,5", "0x10", "1 2", "-", "+", "+-1", "--1", "true", "."}) {
    INFO(text);
    CHECK(data::to_number(text).kind == Kind::text);
  }
}

TEST_CASE("blanks are kept in categories and classes, and not in numbers and names of columns", "[data]") {
  Tables tables(" c , x,\ty\na , 1 ,no\na, 2.5, no\n");
  tables.csv()->categorical = {{"c"}};
  const data::Source source = tables.open();
  CHECK(source.encoding.columns[0].name == "c");
  CHECK(source.encoding.columns[0].categories == std::vector<std::string>{"a", "a "});
  CHECK(source.encoding.classes == std::vector<std::string>{" no", "no"});
  CHECK(input_of(*source.train, 0) == std::vector<float>{0, 1, 1});
  CHECK(input_of(*source.train, 1) == std::vector<float>{1, 0, 2.5F});
}

TEST_CASE("columns are found by name, texts become classes and categories in sorted order", "[data]") {
  Tables tables("a,city,y,b\n1,Rome,no,2\n3,Oslo,yes,4\n5,Rome,maybe,6\n", "b,y,a,city\n8,yes,7,Oslo\n");
  tables.csv()->categorical = {{"city"}};
  const data::Source source = tables.open();
  CHECK(source.description == "csv: 3 train, 1 test examples of f32[4] in 3 classes (maybe, no, yes)");
  CHECK(source.encoding.classes == std::vector<std::string>{"maybe", "no", "yes"});
  REQUIRE(source.encoding.columns.size() == 3);
  CHECK(source.encoding.columns[1].categories == std::vector<std::string>{"Oslo", "Rome"});
  CHECK(source.train->target().dtype == DType::i32);
  CHECK(source.train->label_range() == std::pair<std::int64_t, std::int64_t>{0, 2});
  CHECK(input_of(*source.train, 0) == std::vector<float>{1, 0, 1, 2});
  CHECK(input_of(*source.train, 1) == std::vector<float>{3, 1, 0, 4});
  CHECK(target_of<std::int32_t>(*source.train, 0) == 1);
  CHECK(target_of<std::int32_t>(*source.train, 2) == 0);
  // Its columns are in another order.
  CHECK(input_of(*source.test, 0) == std::vector<float>{7, 1, 0, 8});
  CHECK(target_of<std::int32_t>(*source.test, 0) == 2);

  tables.csv()->inputs = {{{"b"}, {"a"}}};
  tables.csv()->categorical = {};
  CHECK(input_of(*tables.open().train, 1) == std::vector<float>{4, 3});
}

TEST_CASE("integer targets are labels, or numbers for a loss of numbers, and floats are numbers", "[data]") {
  Tables tables("x,y\n1,0\n2,2\n");
  CHECK(tables.open().train->target().dtype == DType::i32);
  CHECK(target_of<std::int32_t>(*tables.open().train, 1) == 2);
  CHECK(tables.open().encoding.classes.empty());
  tables.data.numeric_targets = true;
  const data::Source numeric = tables.open();
  CHECK(numeric.train->target().dtype == DType::f32);
  CHECK(numeric.train->target().shape == Shape{1});
  CHECK(target_of<float>(*numeric.train, 1) == 2.0F);
  const data::Source floats = Tables("x,y\n1,0\n2,2.5\n").open();
  CHECK(target_of<float>(*floats.train, 1) == 2.5F);
  // Not the labels of anything.
  CHECK(Tables("x,y\n1,3000000000\n").open().train->target().dtype == DType::f32);
}

TEST_CASE("several files of a split follow one another, and their columns go by name", "[data]") {
  Tables tables("x,y\n1,0\n2,1\n");
  tables.csv()->train.push_back(tables.folder.write("more.csv", "y,x\r\n1,3\r\n"));
  tables.csv()->train.push_back(tables.folder.write("zipped.csv.gz", gzip("\xef\xbb\xbfx,y\n4,0\n")));
  const data::Source source = tables.open();
  REQUIRE(source.train->size() == 4);
  for (std::int64_t i = 0; i < 4; ++i) CHECK(input_of(*source.train, i) == std::vector{static_cast<float>(i + 1)});
  CHECK(target_of<std::int32_t>(*source.train, 2) == 1);
  tables.folder.write("more.csv", "x,y,z\n1,2,3\n");
  CHECK(tables.refusal() ==
        "'more.csv' has a column 'z', which the first training file does not have | inputs: [...] names the columns to "
        "use");
  tables.csv()->inputs = {{{"x"}}};
  CHECK(tables.refusal() == "accepted");
  tables.folder.write("more.csv", "z,y\n1,2\n");
  CHECK(tables.refusal() == "'more.csv' has no column 'x' | its columns are 'z', 'y'");
}

TEST_CASE("a table without a header names its columns by number", "[data]") {
  Tables tables("5,1,a\n6,2,b\n");
  tables.csv()->header = false;
  tables.csv()->target = {{"2"}};
  const data::Source source = tables.open();
  CHECK(source.train->size() == 2);
  CHECK(input_of(*source.train, 0) == std::vector<float>{5, 1});
  tables.csv()->target = {{"y"}};
  CHECK(tables.refusal() ==
        "'train.csv' has no column 'y' | with header: false columns are named by their number: 0 to 2");
  tables.folder.write("train.csv", "u,v,y\n5,1,2\n");
  tables.csv()->target = {{"2"}};
  CHECK(tables.refusal() ==
        "'train.csv', line 1, column '0': 'u' is no number | if the first line has the names of the "
        "columns, set header: true");
}

TEST_CASE("missing numbers are refused, or become the mean of the training examples", "[data]") {
  Tables tables("x,z,y\n1,5,0\n,5,1\n3,NA,0\n100,5,1\n", "x,z,y\nnan,7,0\n");
  CHECK(tables.refusal() ==
        "'train.csv', line 3, column 'x': the cell is empty, expected a number | missing: mean takes the mean of the "
        "column; or remove the row");
  tables.csv()->missing.numbers = data::Missing::mean;
  // The last example is kept aside, so it has no share in the means.
  tables.data.validation = spec::ValidationShare{0.25, 0, false};
  tables.data.normalize = spec::Normalize{{}, {}, true};
  const data::Source source = tables.open();
  CHECK(source.encoding.columns[0].missing == 2);
  CHECK(input_of(*source.train, 1) == std::vector<float>{2, 5});
  CHECK(input_of(*source.train, 2) == std::vector<float>{3, 5});
  CHECK(input_of(*source.test, 0) == std::vector<float>{2, 7});
  REQUIRE(source.encoding.statistics);
  CHECK(source.encoding.statistics->mean == std::vector<double>{2, 5});
  CHECK(source.encoding.statistics->std[1] == 1.0);
  // From a checkpoint, without the training file.
  std::filesystem::remove(tables.folder / "train.csv");
  const data::Source known = tables.open(&source.encoding, data::Split::test);
  CHECK(input_of(*known.test, 0) == std::vector<float>{2, 7});
  CHECK(known.encoding == source.encoding);
  CHECK(known.train == nullptr);
  CHECK(Tables("x,z,y\n1,,0\n2,,1\n").refusal().find("the cell is empty") != std::string::npos);
  tables.folder.write("train.csv", "x,z,y\n1,,0\n2,,1\n3,,1\n5,2,1\n");
  CHECK(tables.refusal() ==
        "column 'z' of the training split has no value, so it has no mean | leave it out: inputs: [...] names the "
        "columns to use");
}

TEST_CASE("a category or a class that the training split does not have is refused with its row", "[data]") {
  Tables tables("c,y\nred,a\nblue,b\n", "c,y\nred,a\n\ngreen,b\n");
  tables.csv()->categorical = {{"c"}};
  const std::string unseen =
      "'test.csv', line 4, column 'c': 'green' is a category that the training split does not have | it has blue, red; "
      "unknown: "
      "ignore takes it as none of them";
  CHECK(tables.refusal() == unseen);
  const data::Encoding known = [&] {
    spec::DataSpec train = tables.data;
    data::Csv alone = *train.source.as<data::Csv>();
    alone.test.reset();
    train.source = alone;
    return input::open(train, 0, 1).encoding;
  }();
  CHECK(tables.refusal(&known) == unseen);
  tables.folder.write("test.csv", "c,y\nred,a\nred,d\n");
  CHECK(tables.refusal() ==
        "'test.csv', line 3, column 'y': 'd' is a class that the training split does not have | it has a, b");
  tables.folder.write("test.csv", "c,y\nred,\n");
  CHECK(
      tables.refusal() ==
      "'test.csv', line 2, column 'y': the cell is empty, expected a target | remove the row; where cells are lists of "
      "labels, label_separator takes an empty one as one without a label");
  tables.folder.write("test.csv", "c,y\n,a\n");
  CHECK(tables.refusal() ==
        "'test.csv', line 2, column 'c': the cell is empty, expected a category | missing: fill makes a category "
        "of empty cells; or write one, such as unknown");
}

TEST_CASE("the inputs of another file are read by the encoding of a checkpoint, in its order and without a target",
          "[data]") {
  Tables tables("a,c,y\n1,red,no\n,blue,yes\n3,red,yes\n");
  tables.csv()->categorical = {{"c"}};
  tables.csv()->missing.numbers = data::Missing::mean;
  const data::Source source = tables.open();
  const auto inputs = [&](const std::string& text) {
    return data::open_inputs(*tables.data.source.as<data::Csv>(), tables.folder.write("new.csv", text), source.encoding)
        .dataset;
  };
  const auto read = [](const data::Dataset& dataset, std::int64_t index) {
    std::vector<float> values(3);
    dataset.read(index, reinterpret_cast<std::byte*>(values.data()), nullptr);
    return values;
  };
  const auto rows = inputs("id,c,a\n7,blue,5\n8,red,\n");
  REQUIRE(rows->size() == 2);
  CHECK(read(*rows, 0) == std::vector<float>{5, 1, 0});
  CHECK(read(*rows, 1) == std::vector<float>{2, 0, 1});
  CHECK(test::contains(error_of([&] { inputs("c,a\ngreen,1\n"); }),
                       "line 2, column 'c': 'green' is a category that the training split does not have"));
  CHECK(test::contains(error_of([&] { inputs("c,b\nred,1\n"); }), "new.csv' has no column 'a'"));
}

TEST_CASE("classes that look like numbers in one split are classes where the training split says so", "[data]") {
  Tables tables("x,y\n1,1\n2,2\n3,other\n", "x,y\n1,2\n");
  CHECK(target_of<std::int32_t>(*tables.open().test, 0) == 1);
  const data::Encoding known = tables.open().encoding;
  CHECK(target_of<std::int32_t>(*tables.open(&known, data::Split::test).test, 0) == 1);
  tables.folder.write("train.csv", "x,y\n1,1\n2,2\n");
  tables.folder.write("test.csv", "x,y\n1,1\n1,two\n");
  CHECK(tables.refusal() ==
        "'test.csv', line 3, column 'y': 'two' is a class, but the targets of the training split are numbers | the "
        "targets of all splits must be of one kind");
  tables.folder.write("train.csv", "x,y\n1,1\n2,NA\n3,0\n");
  CHECK(tables.refusal() == "'train.csv', line 3, column 'y': 'NA' says that the target is missing | remove the row");
  tables.data.numeric_targets = true;
  CHECK(tables.refusal() ==
        "'train.csv', line 3, column 'y': 'NA' is no number, and the loss takes numbers | remove the row");
}

TEST_CASE("every mistake in a table says what it is and what to change", "[data]") {
  const auto refusal = [](const std::string& train) { return Tables(train).refusal(); };
  CHECK(refusal("x,y\n1,0\nParis,1\n") ==
        "'train.csv', line 3, column 'x': 'Paris' is no number | if 'x' has categories, list it: categorical: ['x']; "
        "inputs: [...] leaves columns out; on_error: skip leaves out a few rows that cannot be read; if it says that "
        "the number is missing: missing_values: [\"Paris\"], and missing: mean");
  CHECK(refusal("x,y\n\"1,5\",0\n") ==
        "'train.csv', line 2, column 'x': '1,5' is no number | numbers have a decimal point: write them so, without "
        "separators of thousands");
  CHECK(refusal("x,y\n1e39,0\n") ==
        "'train.csv', line 2, column 'x': '1e39' overflows float32 | the largest float32 is about 3.4e38; "
        "on_error: skip leaves out a few rows that cannot be read");
  CHECK(refusal("x,y\ninf,0\n").starts_with("'train.csv', line 2, column 'x': 'inf' is infinite | "));
  CHECK(refusal("x,y\n1,0\n1,2,3\n") ==
        "'train.csv', line 3 has 3 cells, but the header has 2 | a cell that holds the delimiter must be in double "
        "quotes");
  CHECK(refusal("x,y\n1,0\n1\n") ==
        "'train.csv', line 3 has 1 cell, but the header has 2 | a row has a cell for each column, an empty one where "
        "there is nothing");
  CHECK(refusal("x;y\n1;0\n") ==
        "'train.csv' has one column, 'x;y': cells seem to be separated by ';', not ',' | set delimiter: \";\"");
  CHECK(refusal("x\ty\n1\t0\n") ==
        "'train.csv' has one column, 'x\\ty': cells seem to be separated by '\\t', not ',' | set delimiter: \"\\t\"");
  CHECK(refusal("5.1,3.5,0\n4.9,3.0,1\n") ==
        "'train.csv' has no column 'y' | its columns are '5.1', '3.5', '0'; if the first line has data, header: false "
        "names the columns by their number, from 0");
  CHECK(refusal("x,Y\n1,0\n") == "'train.csv' has no column 'y' | did you mean 'Y'?");
  CHECK(refusal("x,x,y\n1,2,0\n") ==
        "'train.csv' has two columns 'x': columns 1 and 2 | give each column a name of its own");
  CHECK(refusal("1,1,0\n1,2,0\n")
            .ends_with("if the first line has data, header: false names the columns by their "
                       "number, from 0"));
  CHECK(refusal(",x,y\n0,1,0\n") ==
        "column 1 of 'train.csv' has no name | pandas writes the numbers of rows so: save without them (index=False), "
        "or name the columns to use, inputs: [...]");
  CHECK(refusal("y\n1\n") == "'train.csv' has no column beside 'y' | a model needs an input");
  CHECK(refusal("x,y\n") == "'train.csv' has no rows but its header | ");
  CHECK(refusal("\n\n") == "'train.csv' has blank lines alone | ");
  CHECK(refusal("x,y\n1,caf\xe9\n") ==
        "'train.csv', line 2, column 'y': it is not UTF-8 | set encoding: latin-1 or windows-1252, or save the file as "
        "UTF-8");
  CHECK(refusal("x,caf\xe9\n1,2\n") ==
        "'train.csv', line 1: column 2 is not UTF-8 | set encoding: latin-1 or windows-1252, or save the file as "
        "UTF-8");
  CHECK(
      refusal(std::string("\xff\xfex\0,\0y\0", 8)) ==
      "'train.csv' is text in UTF-16, and encoding is another one | save it as UTF-8, or for CSV set encoding: utf-16");
  CHECK(refusal("PK\3\4...") ==
        "'train.csv' is a ZIP archive, as .xlsx, .docx, .npz and .pt files are, expected text | unpack it first");
  CHECK(refusal("PAR1\x15...") ==
        "'train.csv' is a Parquet file, expected text | in Python, "
        "`pandas.read_parquet('FILE').to_csv('FILE.csv', index=False)` writes it as CSV");
  CHECK(refusal("<!DOCTYPE html>\n<html>") ==
        "'train.csv' is a web page, expected a table | download the file itself, and not the page that shows it");
  CHECK(refusal("\x93NUMPY").starts_with("'train.csv' is an array in NPY format, expected text"));
  Tables named("x,z,y\n1,2,0\n");
  named.csv()->categorical = {{"zz", {"a.yaml", 9, 3, 2, ""}}};
  const std::vector<Diagnostic> errors = diagnostics_of([&] { named.open(); });
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].place == named.csv()->categorical[0].place);
  CHECK(contains(errors[0].message, "has no column 'zz'"));
}

TEST_CASE("texts that cannot be names are refused before they fill a checkpoint", "[data]") {
  Tables tables("c,y\n" + std::string(2000, 'a') + ",0\n");
  tables.csv()->categorical = {{"c"}};
  CHECK(contains(tables.refusal(), "line 2, column 'c': a text of 2000 bytes, 'aaaa"));
  std::string many = "c,y\n";
  for (int i = 0; i <= 65536; ++i) many += "id" + std::to_string(i) + ",0\n";
  tables.folder.write("train.csv", many);
  CHECK(tables.refusal() ==
        "'train.csv', line 65538, column 'c': there are more than 65,536 categories | a column with a text of its own "
        "in each row cannot be learned from: leave it out with inputs: [...]");
  many = "c,y\n";
  for (int i = 0; i < 16500; ++i) many += std::to_string(i) + std::string(1018, 'a') + ",0\n";
  tables.folder.write("train.csv", many);
  CHECK(contains(tables.refusal(), "columns, categories and classes have 16,501 names of 16,868,391 bytes"));
  CHECK(contains(tables.refusal(), " bytes; a checkpoint holds at most 2,097,152 of 16,777,216 bytes | inputs: [...]"));
}

TEST_CASE("each split has an example that counts, also after limit and validation", "[data]") {
  Tables tables("x,y,w\n1,0,0\n2,1,0\n3,1,1\n", "x,y,w\n1,0,0\n");
  tables.csv()->weight = {{"w"}};
  CHECK(tables.refusal() == "all weights of the test split are 0 | an example of weight 0 does not count");
  tables.csv()->test = {};
  CHECK(tables.refusal() == "accepted");
  tables.data.limit.train = spec::Amount{2};
  CHECK(tables.refusal() == "all weights of the train split are 0 | an example of weight 0 does not count");
}

TEST_CASE("a gzip file of a table is inflated to what it holds, whatever its last bytes say", "[data]") {
  std::string text = "x,y\n";
  for (int i = 0; i < 40000; ++i) text += std::to_string(i) + ",0\n";
  const std::string zipped = gzip(text);
  Tables tables(zipped);
  CHECK(tables.open().train->size() == 40000);
  tables.folder.write("train.csv", gzip(text.substr(0, 1000)) + gzip(text.substr(1000)));
  CHECK(tables.open().train->size() == 40000);
  for (std::size_t size = zipped.size() - 1; size > zipped.size() - 12; --size) {
    tables.folder.write("train.csv", zipped.substr(0, size));
    CHECK(contains(tables.refusal(), "is truncated: its compressed data is incomplete"));
  }
  std::string wrong = zipped;
  wrong[wrong.size() / 2] = static_cast<char>(wrong[wrong.size() / 2] ^ 0x55);
  tables.folder.write("train.csv", wrong);
  CHECK(tables.refusal() != "accepted");
}

TEST_CASE("a table cut anywhere is refused, or has the rows before the cut", "[data]") {
  const std::string text = "a,\"b \"\"c\",y\r\n1,2,yes\r\n\"3\",+4e1,\"no\"\r\n5,.6,yes\r\n";
  Tables tables(text);
  const auto whole = tables.open();
  REQUIRE(whole.train->size() == 3);
  for (std::size_t size = 1; size < text.size(); ++size) {
    tables.folder.write("train.csv", text.substr(0, size));
    const std::string refusal = tables.refusal();
    if (refusal != "accepted") {
      CHECK(contains(refusal, " | "));
      continue;
    }
    const data::Source part = tables.open();
    CHECK(part.train->size() <= 3);
    CHECK(input_of(*part.train, 0) == input_of(*whole.train, 0));
  }
}

TEST_CASE("a table whose file is truncated while it is read is said to be", "[data]") {
  const TemporaryFolder folder;
  data::Csv csv;
  csv.target = {{"y"}};
  std::string text = "x,y\n";
  while (text.size() < 3 * 4096) text += "1,0\n";
  const data::TableText file = data::open_table({}, folder.write("t.csv", text));
  const data::TableColumns columns = data::columns_of(csv, data::header_of(csv, file), file.path);
  CHECK(data::read_table(csv, {file}, columns, data::TargetKind::either).rows > 3000);
  std::filesystem::resize_file(file.path, 4096);
  const std::string refusal = error_of([&] { data::read_table(csv, {file}, columns, data::TargetKind::either); });
  CHECK(contains(refusal, "was truncated during use: it had 12288 bytes and has 4096"));
}

TEST_CASE("tables that would need more memory than their bytes are refused for what they are", "[data]") {
  Tables tables("x,y\n" + std::string(100'000, '\n'));
  CHECK(contains(tables.refusal(), "has no rows but its header"));
  tables.folder.write("train.csv", std::string(std::size_t{1} << 20, ',') + "\n");
  CHECK(tables.refusal() == "'train.csv' has more than 1,048,576 columns | ");
  // Many columns in one file, many rows in the other: their product is never allocated.
  std::string wide = "y";
  for (int i = 0; i < 20'000; ++i) wide += ",c" + std::to_string(i);
  std::string row = "0";
  for (int i = 0; i < 20'000; ++i) row += ",1";
  tables.folder.write("train.csv", wide + "\n" + row + "\n");
  CHECK(input_of(*tables.open().train, 0).size() == 20'000);
  std::string tall = "y\n";
  for (int i = 0; i < 500'000; ++i) tall += "1\n";
  tables.csv()->train.push_back(tables.folder.write("tall.csv", tall));
  CHECK(contains(tables.refusal(), "'tall.csv' has no column 'c0'"));
  // A file of quotes alone.
  tables.csv()->train.pop_back();
  tables.folder.write("train.csv", "x,y\n" + std::string(100'001, '"'));
  CHECK(contains(tables.refusal(), "a double quote is not closed"));
}
