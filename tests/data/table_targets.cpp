// The targets of tables: several columns, and what is no target.
#include <cstring>

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
  tables.csv().target = {{"a"}, {"b"}};
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
        "'test.csv', line 3, column 'b': 'one' is no number, and the loss takes numbers | for classes use "
        "softmax_cross_entropy");
  tables.csv().target = {{"a"}, {"c"}};
  CHECK(tables.refusal() == "'train.csv' has no column 'c' | its columns are 'b', 'x', 'a'");
}

TEST_CASE("several integer columns are numbers too", "[data]") {
  Tables tables("x,a,b\n1,2,3\n");
  tables.csv().target = {{"a"}, {"b"}};
  CHECK(targets_of(*tables.open().train, 0) == std::vector<float>{2, 3});
}
