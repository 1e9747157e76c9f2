// Groups of rows that stay together, columns that are left out, and texts that mean a missing number.
#include <algorithm>
#include <map>
#include <set>

#include "core/data/subset.h"
#include "tests/catch.h"
#include "tests/data/tables.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// Rows of patients, of which patient p has 1 + p % 5. The input is the number of the patient.
std::string patients(int count) {
  std::string text = "patient,x,y\n";
  for (int row = 0; row < 5; ++row) {
    for (int p = 0; p < count; ++p) {
      if (row <= p % 5)
        text += "p" + std::to_string(p) + "," + std::to_string(p) + "," + std::to_string(row % 2) + "\n";
    }
  }
  return text;
}

std::multiset<float> sorted_inputs(const data::Dataset& dataset) {
  std::multiset<float> inputs;
  for (std::int64_t i = 0; i < dataset.size(); ++i) inputs.insert(input_of(dataset, i).front());
  return inputs;
}

struct Grouped : Tables {
  explicit Grouped(const std::string& text, double share = 0.2, std::uint64_t seed = 0) : Tables(text) {
    data.validation = spec::ValidationShare{share, seed};
    data.validation->group = {"patient"};
    data.validation_place = {"a.yaml", 4, 3, 10, ""};
  }
};

}  // namespace

TEST_CASE("no group is in both splits, and the column of groups is no input by itself", "[data]") {
  std::set<std::multiset<float>> splits;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Grouped tables(patients(40), 0.2, seed);
    const data::Source source = tables.open();
    CHECK(source.train->input().shape == Shape{1});
    const std::multiset<float> train = sorted_inputs(*source.train), validation = sorted_inputs(*source.validation);
    CHECK(std::none_of(validation.begin(), validation.end(), [&](float patient) { return train.contains(patient); }));
    CHECK(source.train->size() + source.validation->size() == 120);
    // Whole groups, the largest of 5 rows, in a share of 24.
    CHECK(source.validation->size() <= 24);
    CHECK(source.validation->size() > 24 - 5);
    CHECK(sorted_inputs(*tables.open().validation) == validation);
    const std::set<float> groups(validation.begin(), validation.end());
    CHECK(source.notes ==
          std::vector<std::string>{"validation: " + std::to_string(groups.size()) +
                                   " of 40 groups of column 'patient' are kept aside, " +
                                   std::to_string(validation.size()) + " of 120 examples; no group is in both splits"});
    splits.insert(validation);
    const data::Source again = tables.open(&source.encoding, data::Split::validation);
    CHECK(sorted_inputs(*again.validation) == validation);
  }
  CHECK(splits.size() > 4);
}

TEST_CASE("the groups that are taken do not depend on the order of rows", "[data]") {
  std::string reversed = "patient,x,y\n", text = patients(20);
  std::vector<std::string> rows;
  for (std::size_t at = text.find('\n') + 1; at < text.size(); at = text.find('\n', at) + 1) {
    rows.push_back(text.substr(at, text.find('\n', at) + 1 - at));
  }
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) reversed += *row;
  CHECK(sorted_inputs(*Grouped(text).open().validation) == sorted_inputs(*Grouped(reversed).open().validation));
}

TEST_CASE("a group of which no row can be read is none, so eval and a resumed run divide as the run did", "[data]") {
  const std::string text = patients(40);
  Grouped broken(text + "p0a,bad,1\n");
  broken.csv()->on_error = data::OnError::skip;
  const data::Source source = broken.open();
  CHECK(source.encoding.skipped.size() == 1);
  CHECK(sorted_inputs(*source.validation) == sorted_inputs(*Grouped(text).open().validation));
}

TEST_CASE("groups are taken in the order of a permutation, as long as they fit", "[data]") {
  const std::vector<std::uint32_t> groups = {0, 0, 0, 1, 2, 2};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<bool> three = data::choose_groups(groups, 3, seed);
    CHECK((three == std::vector<bool>{true, false, false} || three == std::vector<bool>{false, true, true}));
    CHECK(data::choose_groups({0, 0, 0, 1, 1}, 1, seed) == std::vector<bool>{false, true});
  }
}

TEST_CASE("a group that is an input as well is read as both, and what cannot be divided by groups is refused",
          "[data]") {
  Grouped tables(patients(40));
  tables.csv()->inputs = {{{"patient"}, {"x"}}};
  tables.csv()->categorical = {{"patient"}};
  CHECK(tables.open().train->input().shape == Shape{41});
  const std::vector<Diagnostic> one = diagnostics_of([] { Grouped("patient,x,y\na,1,0\na,2,1\n").open(); });
  REQUIRE(one.size() == 1);
  CHECK(one[0].place.line == 4);
  CHECK(one[0].message ==
        "validation: all 2 training examples are of one group, by column 'patient', so none is left to train on");
  CHECK(one[0].help == "name another column, or remove group");
  CHECK(Grouped("patient,x,y\na,1,0\n,2,1\n").refusal() ==
        "'train.csv', line 3, column 'patient': the cell is empty, expected the group of the row | write one; or "
        "remove the row");
  CHECK(Grouped("person,x,y\na,1,0\nb,2,1\n").refusal() ==
        "'train.csv' has no column 'patient' | its columns are "
        "'person', 'x', 'y'");
}

TEST_CASE("columns that are excluded are no inputs, whatever they hold", "[data]") {
  Tables tables("id,x,y\na7,1,0\nb9,2,1\n", "x,y\n3,0\n");
  tables.csv()->exclude = {{"id"}};
  const data::Source source = tables.open();
  CHECK(source.encoding.columns.size() == 1);
  CHECK(input_of(*source.train, 1) == std::vector<float>{2});
  CHECK(source.test->size() == 1);
  tables.csv()->exclude = {{"idd"}};
  CHECK(tables.refusal() == "'train.csv' has no column 'idd' | did you mean 'id'?");
}

TEST_CASE("texts that mean a missing number are read so in columns of numbers alone", "[data]") {
  Tables tables("x,c,y\n1,?,0\n?,a,1\n -,a,1\n4,?,0\n");
  tables.csv()->categorical = {{"c"}};
  tables.csv()->missing_values = {{"?"}, {"-"}};
  CHECK(tables.refusal() ==
        "'train.csv', line 3, column 'x': '?' says that a number is missing | missing: mean takes "
        "the mean of the column; or remove the row");
  tables.csv()->missing = {data::Missing::mean, data::Missing::category, {}};
  const data::Source source = tables.open();
  CHECK(input_of(*source.train, 1).front() == 2.5F);
  CHECK(input_of(*source.train, 2).front() == 2.5F);
  CHECK(source.encoding.columns[1].categories == std::vector<std::string>{"?", "a"});
}
