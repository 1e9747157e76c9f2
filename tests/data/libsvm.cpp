// LIBSVM files: sparse rows of numbers.
#include "core/data/tables/libsvm.h"

#include <string>
#include <vector>

#include "core/input/open.h"
#include "core/input/prediction_input.h"
#include "tests/catch.h"
#include "tests/data/files.h"
#include "tests/data/tables.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

struct SparseFiles {
  TemporaryFolder folder;
  spec::DataSpec data;

  explicit SparseFiles(const std::string& train, const std::string& test = "", data::Libsvm options = {}) {
    options.train = folder.write("train", train);
    if (!test.empty()) options.test = folder.write("test", test);
    data.source = options;
  }
  data::Source open(const data::Encoding* known = nullptr, std::optional<data::Split> only = std::nullopt) const {
    return input::open(data, 0, 1, only, known);
  }
  // The message and the help, without the folder of the files.
  std::string refusal() const {
    std::string text = error_of([&] { open(); });
    const std::string prefix = folder / "";
    for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix)) {
      text.erase(at, prefix.size());
    }
    return text;
  }
};

std::string refusal(const std::string& train, const std::string& test = "", data::Libsvm options = {}) {
  return SparseFiles(train, test, std::move(options)).refusal();
}

}  // namespace

TEST_CASE("rows of libsvm are dense examples, and their whole labels classes", "[data]") {
  const SparseFiles rows("+1 1:0.5 3:-2e1 # the first\r\n\n# nothing\n-1\n  1\t2:7 ", "-1 3:1\n");
  const data::Source source = rows.open();
  const data::Dataset& train = *source.train;
  REQUIRE(train.size() == 3);
  CHECK(train.input().dtype == DType::f32);
  CHECK(train.input().shape == Shape{3});
  CHECK(source.encoding.classes == std::vector<std::string>{"-1", "1"});
  CHECK(source.encoding.features == 3);
  CHECK(input_of(train, 0) == std::vector<float>{0.5F, 0, -20});
  CHECK(input_of(train, 1) == std::vector<float>{0, 0, 0});
  CHECK(input_of(train, 2) == std::vector<float>{0, 7, 0});
  CHECK(target_of<std::int32_t>(train, 0) == 1);
  CHECK(target_of<std::int32_t>(train, 1) == 0);
  CHECK(train.label_range() == std::pair<std::int64_t, std::int64_t>(0, 1));
  CHECK(train.line_of(2) == "'" + (rows.folder / "train") + "', line 5");
  CHECK(input_of(*source.test, 0) == std::vector<float>{0, 0, 1});
  CHECK(target_of<std::int32_t>(*source.test, 0) == 0);
  CHECK(source.description == "libsvm: 3 train, 1 test examples of f32[3] in 2 classes (-1, 1)");
}

TEST_CASE("a loss of numbers reads numbers from libsvm, and gzip files are the same rows", "[data]") {
  SparseFiles rows(gzip("0.5 1:1\n-2 2:3\n"));
  rows.data.numeric_targets = true;
  const data::Source source = rows.open();
  CHECK(source.encoding.classes.empty());
  CHECK(source.train->target().shape == Shape{1});
  CHECK(target_of<float>(*source.train, 0) == 0.5F);
  CHECK(target_of<float>(*source.train, 1) == -2);
  CHECK_FALSE(source.train->label_range().has_value());
  CHECK(input_of(*source.train, 1) == std::vector<float>{0, 3});
}

TEST_CASE("another split of libsvm has the features and the classes of training, without its file", "[data]") {
  const SparseFiles rows("5 1:1 4:1\n7 2:1\n", "7 1:2\n");
  const data::Encoding known = rows.open().encoding;
  const data::Source test = rows.open(&known, data::Split::test);
  CHECK(test.train == nullptr);
  CHECK(input_of(*test.test, 0) == std::vector<float>{2, 0, 0, 0});
  CHECK(target_of<std::int32_t>(*test.test, 0) == 1);
  data::Libsvm wide;
  wide.features = 6;
  CHECK(SparseFiles("5 1:1 4:1\n7 2:1\n", "7 6:2\n", wide).open().test->input().shape == Shape{6});
}

TEST_CASE("what is wrong with a row of libsvm is told with its line", "[data]") {
  CHECK(refusal("1 1:1\nx 2:1\n") == "'train', line 2: 'x' is no label | a line is: label index:value index:value ...");
  CHECK(refusal("1,2 1:1\n") ==
        "'train', line 1: '1,2' is no label | an example has one label, and decimals have a point");
  CHECK(refusal("inf 1:1\n") == "'train', line 1: the label 'inf' is no finite number | numbers are of float32");
  CHECK(refusal("1 1:1\n0.5 2:1\n") ==
        "'train', line 2: the label 0.5 is no whole number | whole numbers are classes; for a loss of numbers, such as "
        "mean_squared_error, labels are numbers");
  CHECK(refusal("1 1:1 2\n") ==
        "'train', line 1: '2' is no index:value | a line is: label index:value index:value ...");
  CHECK(refusal("1 a:1\n") ==
        "'train', line 1: 'a:1' is no index:value | a line is: label index:value index:value ...");
  CHECK(refusal("1 qid:3 1:1\n") ==
        "'train', line 1: 'qid:3' is no index:value | rankings are not supported; remove qid");
  CHECK(refusal("1 0:1\n") ==
        "'train', line 1: the index is 0, and indices are from 1 | add 1 to all of them; "
        "sklearn.datasets.dump_svmlight_file takes zero_based=False");
  CHECK(refusal("1 -99999999999999999999:1\n") ==
        "'train', line 1: the index is -99999999999999999999, and indices are from 1 | add 1 to all of them; "
        "sklearn.datasets.dump_svmlight_file takes zero_based=False");
  CHECK(refusal("1 2:1 2:3\n") == "'train', line 1: the index 2 follows 2 | the indices of a row ascend");
  CHECK(refusal("1 3:nan\n") ==
        "'train', line 1: 'nan' is no finite number | numbers are decimal with a point, and of float32");
  CHECK(refusal("1 3:1e40\n") ==
        "'train', line 1: '1e40' is no finite number | numbers are decimal with a point, and of float32");
  CHECK(refusal("1 99999999:1\n") ==
        "'train', line 1: the index 99999999 is more than 16777216 | an example with its zeros would be too "
        "large");
  CHECK(refusal("1 2:1\n", "1 3:1\n") ==
        "'test', line 1: the index 3 is more than the largest of the training split, 2 | set features to the largest "
        "index of all splits");
  data::Libsvm narrow;
  narrow.features = 2;
  CHECK(refusal("1 3:1\n", "", narrow) ==
        "'train', line 1: the index 3 is more than features, which is 2 | set features to the largest index of all "
        "splits");
  CHECK(refusal("1 2:1\n0 1:1\n", "2 1:1\n") ==
        "'test', line 1: the label 2 is not in the training split | its classes are 0, 1");
  CHECK(refusal("# nothing\n") == "'train' has no rows | a line is: label index:value index:value ...");
}

TEST_CASE("on_error: skip leaves a wrong row of libsvm out, and again when the run goes on", "[data]") {
  data::Libsvm options;
  options.on_error = data::OnError::skip;
  const SparseFiles rows("1 1:1 2:2\n0 1:1 9:9 2:8\n0 2:3\n", "", options);
  const data::Source source = rows.open();
  REQUIRE(source.train->size() == 2);
  CHECK(input_of(*source.train, 1) == std::vector<float>{0, 3});
  CHECK(source.train->line_of(1).ends_with("line 3"));
  REQUIRE(source.encoding.skipped.size() == 1);
  CHECK(source.encoding.skipped[0].row == 1);
  data::Encoding continued;
  continued.skipped = {{"train", 0, "it was broken"}};
  const data::Source again =
      input::open(SparseFiles("1 1:1\n0 1:1\n1 2:3\n", "", options).data, 0, 1, std::nullopt, nullptr, &continued);
  CHECK(again.train->size() == 2);
  CHECK(again.train->line_of(0).ends_with("line 2"));
}

TEST_CASE("predictions read libsvm with the features of the training split, whatever the labels", "[data]") {
  const SparseFiles files("1 1:1 3:2\n0 2:1\n");
  const data::Source source = files.open();
  const auto open = [&](const std::string& text, std::vector<std::string> ids = {}) {
    input::PredictionFile file;
    file.path = files.folder.write("new", text);
    file.ids = std::move(ids);
    return input::open_prediction_input(file, files.data, source.train->input(), source.encoding).dataset;
  };
  const auto dataset = open("7 3:5\n-0.5 1:2\n");
  REQUIRE(dataset->size() == 2);
  CHECK(dataset->target().bytes() == 0);
  std::vector<float> row(3);
  dataset->read(0, reinterpret_cast<std::byte*>(row.data()), nullptr);
  CHECK(row == std::vector<float>{0, 0, 5});
  dataset->read(1, reinterpret_cast<std::byte*>(row.data()), nullptr);
  CHECK(row == std::vector<float>{2, 0, 0});
  const std::string prefix = files.folder / "";
  CHECK(error_of([&] { open("1 4:1\n"); }) ==
        "'" + prefix +
            "new', line 1: the index 4 is more than the largest of the training split, 3 | set features to "
            "the largest index of all splits");
  CHECK(error_of([&] { open("1 1:1\n", {"name"}); }) ==
        "'" + prefix + "new' has rows without names, so it has no column 'name' | leave --id out");
}
