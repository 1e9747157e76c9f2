// The targets of tables: several columns, and what is no target.
#include <cstring>

#include "core/data/tables/csv_reader.h"
#include "core/input/inspect.h"
#include "tests/catch.h"
#include "tests/data/tables.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

std::vector<float> targets_of(const data::Dataset& dataset, std::int64_t index) {
  std::vector<float> values(static_cast<std::size_t>(numel(dataset.target().shape)));
  dataset.read(index, nullptr, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

}  // namespace

TEST_CASE("several columns are the numbers of one target, in the order of the config", "[data]") {
  Tables tables("b,x,a\n1,10,2\n3,20,4.5\n", "a,b,x\n7,8,9\n");
  tables.csv()->target = {{"a"}, {"b"}};
  const data::Source source = tables.open();
  CHECK(source.train->input().shape == Shape{1});
  CHECK(source.train->target().dtype == DType::f32);
  CHECK(source.train->target().shape == Shape{2});
  CHECK(source.train->target().origin == "columns 'a', 'b' of '" + tables.folder / "train.csv" + "'");
  CHECK(targets_of(*source.train, 0) == std::vector<float>{2, 1});
  CHECK(targets_of(*source.train, 1) == std::vector<float>{4.5F, 3});
  CHECK(targets_of(*source.test, 0) == std::vector<float>{7, 8});
  CHECK_FALSE(source.train->label_range());
  tables.folder.write("test.csv", "a,b,x\n7,8,9\n1,one,2\n");
  CHECK(tables.refusal() ==
        "'test.csv', line 3, column 'b': 'one' is no label | a label is 0 or 1, no or yes, or False or True");
  tables.data.numeric_targets = true;
  CHECK(tables.refusal() ==
        "'test.csv', line 3, column 'b': 'one' is no number, and the loss takes numbers | several labels take "
        "sigmoid_cross_entropy");
  tables.data.numeric_targets = false;
  tables.csv()->target = {{"a"}, {"c"}};
  CHECK(tables.refusal() == "'train.csv' has no column 'c' | its columns are 'b', 'x', 'a'");
}

TEST_CASE("several integer columns are numbers too", "[data]") {
  Tables tables("x,a,b\n1,2,3\n");
  tables.csv()->target = {{"a"}, {"b"}};
  CHECK(targets_of(*tables.open().train, 0) == std::vector<float>{2, 3});
}

TEST_CASE("numbers with signs of currencies, percent and thousands are refused with the number that is meant",
          "[data]") {
  const auto refusal = [](const std::string& text) { return Tables(text).refusal(); };
  const std::string so = ", and the other numbers of the column so: digits and a decimal point alone";
  CHECK(refusal("x,y\n1,\"$1,234\"\n2,$900\n") ==
        "'train.csv', line 2, column 'y': '$1,234' is a number with signs that are no part of it | write 1234" + so);
  CHECK(refusal("x,y\n1,5\n2,12 %\n") ==
        "'train.csv', line 3, column 'y': '12 %' is a number with signs that are no part of it | write 12" + so);
  CHECK(refusal("x,y\n\"-€1,234,567.5\",1\n") ==
        "'train.csv', line 2, column 'x': '-€1,234,567.5' is a number with signs that are no part of it | write "
        "-1234567.5" +
            so);
  CHECK(data::plain_number("1,234,567") == "1234567");
  CHECK(data::plain_number("5 £") == "5");
  for (const char* text : {"12", "-1.5", "", "NA", "1,23", ",123", "1234,567", "$", "%5", "12 kg", "$a", "1,234,56"}) {
    INFO(text);
    CHECK_FALSE(data::plain_number(text));
  }
  // A category may be written in any way.
  Tables categories("c,y\n5%,0\n10%,1\n");
  categories.csv()->categorical = {{"c"}};
  CHECK(categories.open().train->input().shape == Shape{2});
}

TEST_CASE("texts among which some are numbers with signs are classes, in any order of the rows", "[data]") {
  for (const std::string rows : {"1,10%\n2,much\n3,5%\n", "2,much\n1,10%\n3,5%\n"}) {
    CHECK(Tables("x,y\n" + rows).open().encoding.classes == std::vector<std::string>{"10%", "5%", "much"});
  }
}

TEST_CASE("init reads all rows, and leaves out a column of numbers with texts in more rows than may be", "[data]") {
  const TemporaryFolder folder;
  const auto layout_of = [&](int strays) {
    std::string text = "x,z,y\n";
    for (int i = 0; i < 500; ++i) {
      const bool is_stray = i >= 400 && i < 400 + strays;
      text += std::to_string(i) + ".5," + (is_stray ? "oops" : std::to_string(i % 97)) + "," +
              (i % 2 == 0 ? "a" : "b") + "\n";
    }
    return input::find_columns(folder.write("t.csv", text));
  };
  const input::TableLayout few = layout_of(5);
  CHECK(few.inputs == std::vector<std::string>{"x", "z"});
  CHECK(few.categorical.empty());
  CHECK(few.has_stray_texts);
  const input::TableLayout many = layout_of(6);
  CHECK(many.inputs == std::vector<std::string>{"x"});
  CHECK_FALSE(many.has_stray_texts);
  REQUIRE(many.ignored.size() == 1);
  CHECK(many.ignored[0].why ==
        "it has numbers but in 6 rows, such as 'oops' in line 402: mend these, or name the column in inputs and set "
        "on_error: skip");
}

TEST_CASE("init refuses a column of numbers with signs, and names it once", "[data]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("t.csv", "x,price\n1,$5\n2,\"$1,234\"\n3,7\n");
  CHECK(error_of([&] { input::find_columns(path); }) ==
        "column 'price' of '" + path +
            "' has numbers with signs that are no part of them, such as '$1,234' | write 1234, "
            "and the others so: digits and a decimal point alone");
  // What may also be decimals is more likely thousands, unless a number begins with 0.
  const std::string both = folder.write("b.csv", "x,price\n1,\"324,442\"\n2,\"204,608\"\n");
  CHECK(error_of([&] { input::find_columns(both); }) ==
        "column 'price' of '" + both +
            "' has numbers with signs that are no part of them, such as '204,608' | write 204608, and the others so: "
            "digits and a decimal point alone; if the comma is a decimal one, write a point for it");
  const std::string decimals = folder.write("d.csv", "x,price\n1,\"0,442\"\n2,\"1,608\"\n");
  CHECK(error_of([&] {
          input::find_columns(decimals);
        }).starts_with("column 'price' of '" + decimals + "' has numbers with a decimal comma, such as "));
}

TEST_CASE("several columns of labels may have words for 0 and 1", "[data]") {
  Tables tables("x,a,b\n1,False,yes\n2,TRUE,no\n3,1,0\n");
  tables.csv()->target = {{"a"}, {"b"}};
  const data::Source source = tables.open();
  CHECK(targets_of(*source.train, 0) == std::vector<float>{0, 1});
  CHECK(targets_of(*source.train, 1) == std::vector<float>{1, 0});
  CHECK(targets_of(*source.train, 2) == std::vector<float>{1, 0});
  // Among numbers they are none.
  tables.data.numeric_targets = true;
  CHECK(tables.refusal() ==
        "'train.csv', line 2, column 'a': 'False' is no number, and the loss takes numbers | write 0 and 1; several "
        "labels take sigmoid_cross_entropy");
}
