// Cells of tables that say nothing: empty ones, and categories that the training split does not have.
#include "core/data/tables/csv.h"
#include "core/data/tables/csv_source.h"
#include "tests/catch.h"
#include "tests/data/tables.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

using Names = std::vector<std::string>;

data::MissingCells fill() { return {data::Missing::mean, data::Missing::category, {}}; }

}  // namespace

TEST_CASE("missing: fill takes the mean of numbers, and of categories a category of its own", "[data]") {
  Tables tables("x,c,y\n1,red,0\n,,1\n3,NA,0\n", "x,c,y\nNA,,0\n");
  tables.csv()->categorical = {{"c"}};
  tables.csv()->missing = fill();
  const data::Source source = tables.open();
  // In texts only empty cells are missing.
  CHECK(source.encoding.columns[1].categories == Names{"", "NA", "red"});
  CHECK(input_of(*source.train, 0) == std::vector<float>{1, 0, 0, 1});
  CHECK(input_of(*source.train, 1) == std::vector<float>{2, 1, 0, 0});
  CHECK(input_of(*source.train, 2) == std::vector<float>{3, 0, 1, 0});
  CHECK(input_of(*source.test, 0) == std::vector<float>{2, 1, 0, 0});
  tables.csv()->missing = {data::Missing::mean, data::Missing::error, {}};
  CHECK(tables.refusal() ==
        "'train.csv', line 3, column 'c': the cell is empty, expected a category | missing: fill makes a category of "
        "empty cells; or write one, such as unknown");
}

TEST_CASE("missing cells are treated by column where columns are named, the others are refused", "[data]") {
  Tables tables("x,z,c,y\n1,5,red,0\n,7,,1\n");
  tables.csv()->categorical = {{"c"}};
  tables.csv()->missing.columns = {{{"x"}, data::Missing::mean}, {{"c"}, data::Missing::category}};
  CHECK(input_of(*tables.open().train, 1) == std::vector<float>{1, 7, 1, 0});
  tables.folder.write("train.csv", "x,z,c,y\n1,,red,0\n2,7,,1\n");
  CHECK(tables.refusal() ==
        "'train.csv', line 2, column 'z': the cell is empty, expected a number | missing: mean takes the mean of the "
        "column; or remove the row");
  // Only the columns whose mean is asked for need one.
  tables.csv()->missing.columns = {{{"z"}, data::Missing::mean}, {{"c"}, data::Missing::category}};
  CHECK(input_of(*tables.open().train, 0) == std::vector<float>{1, 7, 0, 1});
  tables.csv()->missing.columns.push_back({{"zz", {"a.yaml", 9, 3, 2, ""}}, data::Missing::mean});
  CHECK(tables.refusal() == "'train.csv' has no column 'zz' | did you mean 'z'?");
}

TEST_CASE("a mean that the run did not take is not made up for other data", "[data]") {
  Tables tables("x,y\n1,0\n3,1\n", "x,y\n,0\n");
  const data::Encoding known = [&] {
    spec::DataSpec train = tables.data;
    data::Csv alone = *train.source.as<data::Csv>();
    alone.test.reset();
    train.source = alone;
    return input::open(train, 0, 1).encoding;
  }();
  CHECK_FALSE(known.columns[0].missing);
  tables.csv()->missing.numbers = data::Missing::mean;
  CHECK(tables.refusal(&known) ==
        "missing asks for the mean of column 'x', which the checkpoint does not have: the run was trained without "
        "missing "
        "numbers in it | fill the cells, or train a run with missing: fill");
}

TEST_CASE("unknown: ignore takes a category that the training split does not have as none, and counts it", "[data]") {
  Tables tables("c,x,y\nred,1,0\nblue,2,1\n", "c,x,y\nred,1,0\ngreen,2,1\n,3,1\n");
  tables.csv()->categorical = {{"c"}};
  tables.csv()->missing = fill();
  CHECK(
      tables.refusal() ==
      "'test.csv', line 3, column 'c': 'green' is a category that the training split does not have | it has blue, red; "
      "unknown: ignore takes it as none of them");
  tables.csv()->unknown = data::Unknown::ignore;
  const data::Source source = tables.open();
  CHECK(input_of(*source.test, 0) == std::vector<float>{0, 1, 1});
  CHECK(input_of(*source.test, 1) == std::vector<float>{0, 0, 2});
  // Training has no empty cells, so there is no category of them.
  CHECK(input_of(*source.test, 2) == std::vector<float>{0, 0, 3});
  CHECK(source.notes ==
        Names{"test: 2 cells of column 'c' have categories that the training split does not have, and count as none of "
              "them: 'green' (1), empty cells (1)"});
  const auto inputs = data::open_inputs(*tables.data.source.as<data::Csv>(),
                                        tables.folder.write("new.csv", "x,c\n5,pink\n"), source.encoding);
  CHECK(input_of(*inputs.dataset, 0) == std::vector<float>{0, 0, 5});
  CHECK(
      inputs.notes ==
      Names{"inputs: 1 cell of column 'c' has a category that the training split does not have, and counts as none of "
            "them: 'pink'"});
  tables.csv()->unknown = data::Unknown::error;
  tables.folder.write("test.csv", "c,x,y\n,1,0\n");
  CHECK(tables.refusal() ==
        "'test.csv', line 2, column 'c': an empty cell is a category that the training split does not have | it has "
        "blue, red; unknown: ignore takes it as none of them");
  // A class must be known.
  tables.csv()->unknown = data::Unknown::ignore;
  tables.folder.write("train.csv", "c,x,y\nred,1,a\nblue,2,b\n");
  tables.folder.write("test.csv", "c,x,y\nred,1,d\n");
  CHECK(tables.refusal() ==
        "'test.csv', line 2, column 'y': 'd' is a class that the training split does not have | it has a, b");
}

TEST_CASE("for table_embedding a column of categories is the number of one, from 1, and 0 for one that is unknown",
          "[data]") {
  Tables tables("x,c,y\n1,red,0\n,blue,1\n3,,1\n", "x,c,y\n1,blue,0\n2,green,1\n5,red,1\n");
  tables.csv()->categorical = {{"c"}};
  tables.csv()->missing = fill();
  tables.csv()->unknown = data::Unknown::ignore;
  tables.data.numbers_categories = true;
  tables.data.normalize = spec::Normalize{{}, {}, true};
  const data::Source source = tables.open();
  REQUIRE(source.encoding.columns.size() == 2);
  CHECK_FALSE(source.encoding.columns[0].numbered);
  CHECK(source.encoding.columns[1].numbered);
  CHECK(source.encoding.columns[1].categories == Names{"", "blue", "red"});
  CHECK(source.train->input().shape == Shape{2});
  CHECK(input_of(*source.train, 0) == std::vector<float>{1, 3});
  CHECK(input_of(*source.train, 1) == std::vector<float>{2, 2});
  CHECK(input_of(*source.train, 2) == std::vector<float>{3, 1});
  CHECK(input_of(*source.test, 1) == std::vector<float>{2, 0});
  // These numbers are no quantities.
  CHECK(source.encoding.statistics->mean == std::vector<double>{2, 0});
  CHECK(source.encoding.statistics->std[1] == 1);
  const auto inputs = data::open_inputs(*tables.data.source.as<data::Csv>(),
                                        tables.folder.write("new.csv", "c,x\nred,5\npink,\n"), source.encoding);
  CHECK(input_of(*inputs.dataset, 0) == std::vector<float>{5, 3});
  CHECK(input_of(*inputs.dataset, 1) == std::vector<float>{2, 0});
}

TEST_CASE("missing_categories are texts that mean an empty cell in columns of categories", "[data]") {
  Tables tables("c,x,y\nred,1,0\n?,2,1\n,3,1\nNA,4,1\n");
  tables.csv()->categorical = {{"c"}};
  tables.csv()->missing = fill();
  CHECK(tables.open().encoding.columns.front().categories == Names{"", "?", "NA", "red"});
  tables.csv()->missing_categories = {{"?"}, {"NA"}};
  const data::Source source = tables.open();
  CHECK(source.encoding.columns.front().categories == Names{"", "red"});
  for (const std::int64_t row : {1, 2, 3}) CHECK(input_of(*source.train, row)[0] == 1);
  tables.csv()->missing = {};
  CHECK(tables.refusal() ==
        "'train.csv', line 3, column 'c': '?' means an empty cell, by missing_categories | missing: fill makes a "
        "category of empty cells; or write one, such as unknown");
}

TEST_CASE("a date in an input is told as such, because categories do not help there", "[data]") {
  CHECK(Tables("d,y\n2015-11-08,1\n").refusal() ==
        "'train.csv', line 2, column 'd': '2015-11-08' is a date, expected a number | write a number in the program "
        "that makes the table, such as the days since a fixed day, or the year; or leave the column out of inputs");
}
