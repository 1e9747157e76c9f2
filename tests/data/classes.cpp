// Shares of each class, and the weights that balance classes.
#include <map>

#include "core/data/statistics.h"
#include "tests/catch.h"
#include "tests/data/tables.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

using Counts = std::map<std::int32_t, std::int64_t>;

std::string table() {
  std::string text = "x,y\n";
  for (int i = 0; i < 55; ++i) text += std::to_string(i) + "," + (i == 7 ? "c" : i % 4 == 3 ? "b" : "a") + "\n";
  return text;
}

// 42 rows of class a, 12 of b, 1 of c.
struct Classes : Tables {
  Classes() : Tables(table()) { data.validation = spec::ValidationShare{0.1, 0, true, true}; }
};

std::vector<float> inputs_of(const data::Dataset& dataset) {
  std::vector<float> all;
  for (std::int64_t i = 0; i < dataset.size(); ++i) all.push_back(input_of(dataset, i).front());
  return all;
}

}  // namespace

TEST_CASE("a stratified share takes the share of each class, at least one example", "[data]") {
  Classes all;
  all.data.validation.reset();
  const Counts before = data::count_labels(*all.open().train);
  REQUIRE(before == Counts{{0, 42}, {1, 12}, {2, 1}});
  const data::Source source = Classes().open();
  CHECK(data::count_labels(*source.validation) == Counts{{0, 4}, {1, 1}, {2, 1}});
  CHECK(data::count_labels(*source.train) == Counts{{0, 38}, {1, 11}});
  CHECK(inputs_of(*source.validation) == inputs_of(*Classes().open().validation));
  Classes other;
  other.data.validation->seed = 1;
  CHECK_FALSE(inputs_of(*source.validation) == inputs_of(*other.open().validation));
  // The labels are those of the whole split, also where no example is left of one.
  CHECK(source.train->label_range() == std::pair<std::int64_t, std::int64_t>{0, 2});
}

TEST_CASE("a stratified share is of class labels, and leaves an example to train on", "[data]") {
  const auto refusal = [](const Tables& tables) { return error_of([&] { tables.open(); }, ExitStatus::usage); };
  Classes numbers;
  numbers.folder.write("train.csv", "x,y\n1,0.5\n2,1.5\n");
  CHECK(refusal(numbers) ==
        "stratify takes a class label for each example; the targets are f32[1] | remove it; of a table, classes: [...] "
        "makes classes of numbers");
  Classes few;
  few.folder.write("train.csv", "x,y\n1,a\n2,b\n");
  CHECK(refusal(few) ==
        "validation: a share of 0.1 is 2 of the 2 training examples, so none is left to train on | stratify takes at "
        "least "
        "one example of each class: leave it out, or add examples");
}

TEST_CASE("balanced weights are scikit-learn's, of the training examples that are left", "[data]") {
  Classes balanced;
  balanced.data.balances_classes = true;
  const data::Source source = balanced.open();
  CHECK(source.encoding.class_weights == std::vector<double>{49.0 / (2 * 38.0), 49.0 / (2 * 11.0)});
  // sklearn.utils.class_weight.compute_class_weight("balanced", classes=[0, 1, 3], y=[0] * 2 + [1] * 3 + [3])
  CHECK(data::balanced_weights({{0, 2}, {1, 3}, {3, 1}}) == std::vector<double>{1.0, 6.0 / 9.0, 1.0, 2.0});
}

TEST_CASE("classes that are listed have the order of the list, whether they are texts or numbers", "[data]") {
  const auto labels = [](const Tables& tables) {
    const data::Source source = tables.open();
    std::vector<std::int32_t> all;
    for (std::int64_t i = 0; i < source.train->size(); ++i) all.push_back(target_of<std::int32_t>(*source.train, i));
    return all;
  };
  Tables texts("x,y\n1,ok\n2,fraud\n3,ok\n");
  CHECK(labels(texts) == std::vector<std::int32_t>{1, 0, 1});
  texts.csv()->classes = {{"ok"}, {"fraud"}};
  CHECK(labels(texts) == std::vector<std::int32_t>{0, 1, 0});
  CHECK(texts.open().encoding.classes == std::vector<std::string>{"ok", "fraud"});
  // The encoding of a run keeps the order.
  texts.folder.write("test.csv", "x,y\n1,fraud\n");
  const data::Encoding known = texts.open().encoding;
  Tables test("x,y\n1,ok\n", "x,y\n1,fraud\n2,ok\n");
  const data::Source again = test.open(&known, data::Split::test);
  CHECK(target_of<std::int32_t>(*again.test, 0) == 1);
  CHECK(target_of<std::int32_t>(*again.test, 1) == 0);
  Tables signs("x,y\n1,-1\n2,1.0\n");
  signs.csv()->classes = {{"-1"}, {"1"}};
  CHECK(labels(signs) == std::vector<std::int32_t>{0, 1});
  Tables numbers("x,y\n1,0\n2,1\n");
  numbers.csv()->classes = {{"1"}, {"0"}};
  CHECK(labels(numbers) == std::vector<std::int32_t>{1, 0});
}

TEST_CASE("a class that the list does not have is refused, and one without a row is told", "[data]") {
  Tables tables("x,y\n1,ok\n2,fraud\n3,none\n");
  tables.csv()->classes = {{"ok"}, {"fraud"}};
  CHECK(tables.refusal() ==
        "'train.csv', line 4, column 'y': 'none' is a class that classes does not list | add it to classes, or remove "
        "the row");
  tables.csv()->classes = {{"ok"}, {"lost"}, {"fraud"}, {"none"}};
  CHECK(tables.open().notes ==
        std::vector<std::string>{"classes lists 'lost', which no row of the training split has"});
}

TEST_CASE("labels in the notation of lists of Python are told, because their brackets are part of the names",
          "[data]") {
  Tables tables("x,y\n1,\"['art', 'music']\"\n2,['art']\n");
  tables.csv()->label_separator = ",";
  const std::vector<std::string> notes = tables.open().notes;
  REQUIRE(notes.size() == 1);
  CHECK(notes.front() ==
        "the label ''music']' of column 'y' has brackets or quotes, which are part of its name: lists are not read in "
        "the notation of Python or JSON, but as art;music with label_separator: \";\"");
}
