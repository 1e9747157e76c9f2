// Warnings of splits on which a measurement means less than it seems to.
#include "core/input/held_out.h"

#include "tests/catch.h"
#include "tests/data/tables.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

std::string numbered_rows(int first, int end) {
  std::string text = "x,y\n";
  for (int i = first; i < end; ++i) text += std::to_string(i) + ".5," + (i % 2 == 0 ? "a" : "b") + "\n";
  return text;
}

std::vector<std::string> warnings_of(const Tables& tables) {
  std::vector<std::string> texts;
  for (const Diagnostic& warning : tables.open().warnings) {
    CHECK(warning.place.line > 0);
    texts.push_back(warning.message + " | " + warning.help);
  }
  return texts;
}

}  // namespace

TEST_CASE("test examples that are trained on are counted", "[data]") {
  CHECK(warnings_of(Tables(numbered_rows(0, 100), numbered_rows(100, 130))).empty());
  CHECK(warnings_of(Tables(numbered_rows(0, 100), numbered_rows(95, 130))) ==
        std::vector<std::string>{"5 of 35 test examples stand in the training split as well, with the same inputs and "
                                 "target | test metrics are better than those of new examples; take examples that are "
                                 "not trained on"});
  Tables same(numbered_rows(0, 100), numbered_rows(0, 100));
  const std::vector<std::string> expected = {
      "the test split is the training split: all of its 100 examples stand there as well | test metrics are better "
      "than "
      "those of new examples; take examples that are not trained on"};
  CHECK(warnings_of(same) == expected);
  same.data.validation = spec::ValidationShare{0.1};
  same.data.validation_place = {"a.yaml", 4, 3, 10, ""};
  CHECK(warnings_of(same) == expected);
  // Of numbers, the same inputs with another target are no copy.
  CHECK(warnings_of(Tables("x,y\n1,0.5\n2,1.5\n", "x,y\n1,1.5\n")).empty());
}

TEST_CASE("held-out examples that are trained on count whatever their class is", "[data]") {
  const std::string train = "x,y\n1,a\n2,b\n3,b\n";
  CHECK(warnings_of(Tables(train, "x,y\n1,b\n4,a\n")) ==
        std::vector<std::string>{"1 of 2 test examples stands in the training split as well, with the same inputs and "
                                 "another class | test metrics are not those of new examples; take examples that are "
                                 "not trained on"});
  CHECK(warnings_of(Tables(train, "x,y\n1,b\n2,b\n3,b\n")) ==
        std::vector<std::string>{"3 of 3 test examples stand in the training split as well, with the same inputs, 1 of "
                                 "them with another class | test metrics are better than those of new examples; take "
                                 "examples that are not trained on"});
}

TEST_CASE("training examples with equal inputs and different classes are counted, and two are named", "[data]") {
  const auto conflicts = [](const std::string& rows) {
    const Tables tables("x,y\n" + rows);
    std::vector<std::string> texts = warnings_of(tables);
    const std::string folder = tables.folder / "";
    for (std::string& text : texts) {
      for (std::size_t at = text.find(folder); at != std::string::npos; at = text.find(folder))
        text.erase(at, folder.size());
    }
    return texts;
  };
  CHECK(
      conflicts("9,c\n2,b\n1,a\n2,b\n1,b\n2,a\n3,a\n3,a\n") ==
      std::vector<std::string>{
          "5 of 8 training examples have the inputs of another one with another class; the first two are 'train.csv', "
          "line 3 and 'train.csv', line 7 | equal inputs get one prediction, so some of them stay wrong; correct their "
          "classes, or remove repeated examples"});
  CHECK(conflicts("1,a\n1,a\n2,b\n").empty());
  CHECK(conflicts("1,0.5\n1,1.5\n").empty());
}

TEST_CASE("validation examples that are repeated in training are counted", "[data]") {
  Tables tables(numbered_rows(0, 50) + numbered_rows(0, 50).substr(4));
  tables.data.validation = spec::ValidationShare{0.1, 0, false};
  tables.data.validation_place = {"a.yaml", 4, 3, 10, ""};
  CHECK(warnings_of(tables) ==
        std::vector<std::string>{"10 of 10 validation examples stand in the training split as well, with the same "
                                 "inputs and target | validation metrics are better than those of new examples; remove "
                                 "repeated rows, or keep rows of one text together with validation: {group: COLUMN}"});
}

TEST_CASE("classes that only a held-out split has are named, with what would do", "[data]") {
  std::string text = numbered_rows(0, 40) + "77.5,rare\n";
  Tables tables(text);
  tables.data.validation_place = {"a.yaml", 4, 3, 10, ""};
  const std::string what = "1 of 4 validation examples is of a class that no training example has: 'rare'";
  tables.data.validation = spec::ValidationShare{0.1, 0, false};
  CHECK(warnings_of(tables) ==
        std::vector<std::string>{what + " | a class that is not trained on is never predicted; shuffle: false takes "
                                        "the last examples, and these are sorted: shuffle: true, with stratify: true, "
                                        "takes a share of each class"});
  tables.data.validation = spec::ValidationShare{0.1, 0, true, true};
  CHECK(warnings_of(tables) ==
        std::vector<std::string>{
            "1 of 5 validation examples is of a class that no training example has: 'rare' | a class "
            "that is not trained on is never predicted; stratify takes one example of each class, also "
            "its only one; add examples, or leave these out"});
  Tables sorted("x,y\n1,0\n2,1\n", "x,y\n3,2\n4,3\n5,0\n");
  CHECK(warnings_of(sorted) ==
        std::vector<std::string>{
            "2 of 3 test examples are of 2 classes that no training example has: 2, 3 | a class that "
            "is not trained on is never predicted; add examples of it to the training split"});
}
