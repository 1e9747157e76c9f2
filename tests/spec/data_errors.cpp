// What a config may not say of its data: the words of every error, as golden text.
#include <string>

#include "tests/catch.h"
#include "tests/spec/errors_of.h"
#include "tests/words.h"

using namespace pmaptrain;

TEST_CASE("data.axes names axes of the mesh", "[spec]") {
  CHECK(errors_of(R"(mesh: {axes: [{replicas: 2}, {shards: 4}]}
data: {source: fashion_mnist, batch_size: 128, axes: [shrads]}
model: {layers: [flatten, {dense: 10}]}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:2:55: error: the mesh has no axis 'shrads'
    2 | data: {source: fashion_mnist, batch_size: 128, axes: [shrads]}
      |                                                       ^~~~~~
  help: did you mean 'shards'?
)");
}

TEST_CASE("a mesh axis that data.axes leaves out is refused", "[spec]") {
  CHECK(errors_of(R"(mesh: {axes: [{replicas: 2}, {shards: 4}]}
data: {source: fashion_mnist, batch_size: 128, axes: [shards]}
model: {layers: [flatten, {dense: 10}]}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:2:54: error: the mesh axis 'replicas' is not used: data.axes does not list it
    2 | data: {source: fashion_mnist, batch_size: 128, axes: [shards]}
      |                                                      ^~~~~~~~
  help: add it to data.axes, make it the axis of an ensemble, or remove it from mesh.axes
)");
}

TEST_CASE("both batch sizes at once are refused", "[spec]") {
  CHECK(errors_of(R"(data: {source: fashion_mnist, batch_size: 128, batch_size_per_device: 16}
model: {layers: [flatten, {dense: 10}]}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:1:71: error: data has both batch_size and batch_size_per_device; it takes exactly one
    1 | data: {source: fashion_mnist, batch_size: 128, batch_size_per_device: 16}
      |                                                                       ^~
  help: remove one of them
)");
}

TEST_CASE("values need a target for each input and rows of one length", "[spec]") {
  CHECK(errors_of(R"(data: {source: {values: {inputs: [[1, 2], [3]], targets: [1]}}, batch_size: all}
model: {layers: [flatten, {dense: 10}]}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:1:43: error: inputs: this example has 1 numbers, the first has 2
    1 | data: {source: {values: {inputs: [[1, 2], [3]], targets: [1]}}, batch_size: all}
      |                                           ^~~
  help: all examples need the same number of values
)");
}

TEST_CASE("an npz archive needs the names of its arrays", "[spec]") {
  CHECK(errors_of(R"(data: {source: {npz: {train: a.npz}}, batch_size: all}
model: {layers: [flatten, {dense: 10}]}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:1:17: error: inputs is missing in npz
    1 | data: {source: {npz: {train: a.npz}}, batch_size: all}
      |                 ^~~
  help: name the arrays: npz: {train: train.npz, inputs: x, targets: y}
c.yaml:1:17: error: targets is missing in npz
    1 | data: {source: {npz: {train: a.npz}}, batch_size: all}
      |                 ^~~
  help: name the arrays: npz: {train: train.npz, inputs: x, targets: y}
)");
}

TEST_CASE("an axis is named once in data.axes", "[spec]") {
  CHECK(errors_of(base_with("data: {source: fashion_mnist, batch_size: 128, axes: [devices, devices]}")) ==
        R"(c.yaml:1:64: error: axes has 'devices' twice
    1 | data: {source: fashion_mnist, batch_size: 128, axes: [devices, devices]}
      |                                                                ^~~~~~~
  help: keep one of them
)");
}

TEST_CASE("normalize has as many means as deviations, all above 0", "[spec]") {
  CHECK(errors_of(base_with(
            "data: {source: fashion_mnist, batch_size: 128, normalize: {mean: [0.5, 0.5], std: [1, 2, 3]}}")) ==
        R"(c.yaml:1:83: error: normalize has 2 means but 3 standard deviations
    1 | data: {source: fashion_mnist, batch_size: 128, normalize: {mean: [0.5, 0.5], std: [1, 2, 3]}}
      |                                                                                   ^~~~~~~~~
  help: give one for each channel, or one for all
)");
  CHECK(errors_of(base_with("data: {source: fashion_mnist, batch_size: 128, normalize: {mean: [], std: 0}}")) ==
        R"(c.yaml:1:66: error: mean is empty
    1 | data: {source: fashion_mnist, batch_size: 128, normalize: {mean: [], std: 0}}
      |                                                                  ^~
  help: for example mean: [0.5]
c.yaml:1:75: error: std takes a list of numbers greater than 0, not '0'
    1 | data: {source: fashion_mnist, batch_size: 128, normalize: {mean: [], std: 0}}
      |                                                                           ^
  help: for example std: [0.5]
)");
}

TEST_CASE("normalize_targets is for losses of numbers and for data without true parameters", "[spec]") {
  CHECK(
      errors_of(R"(data: {source: fashion_mnist, batch_size: 128, normalize_targets: auto}
model: {layers: [flatten, {dense: 10}]}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
      R"(c.yaml:1:67: error: normalize_targets is for targets that are numbers; the loss, softmax_cross_entropy, is one of classes
    1 | data: {source: fashion_mnist, batch_size: 128, normalize_targets: auto}
      |                                                                   ^~~~
  help: remove it, or use a loss of numbers, such as mean_squared_error
)");
  CHECK(
      errors_of(R"(data: {source: synthetic_linear, batch_size: 128, normalize_targets: auto}
model: {layers: [{dense: 1}]}
loss: mean_squared_error
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
      R"(c.yaml:1:70: error: normalize_targets does not go with synthetic_linear, whose true parameters are those of its targets as they are
    1 | data: {source: synthetic_linear, batch_size: 128, normalize_targets: auto}
      |                                                                      ^~~~
  help: remove it
)");
}

TEST_CASE("values are lists of examples, as many inputs as targets", "[spec]") {
  CHECK(errors_of(base_with("data: {source: {values: {inputs: [1, 2], targets: [1, 2, 3]}}, batch_size: all}")) ==
        R"(c.yaml:1:51: error: there are 2 inputs but 3 targets
    1 | data: {source: {values: {inputs: [1, 2], targets: [1, 2, 3]}}, batch_size: all}
      |                                                   ^~~~~~~~~
  help: list one entry of inputs and one entry of targets for each example
)");
  CHECK(errors_of(base_with("data: {source: {values: {inputs: [], targets: {a: 1}}}, batch_size: all}")) ==
        R"(c.yaml:1:34: error: inputs is empty
    1 | data: {source: {values: {inputs: [], targets: {a: 1}}}, batch_size: all}
      |                                  ^~
  help: for example inputs: [[0.0], [1.0]]
c.yaml:1:47: error: targets takes a list of lists of numbers, not a map
    1 | data: {source: {values: {inputs: [], targets: {a: 1}}}, batch_size: all}
      |                                               ^~~~~~
  help: for example targets: [[0.5], [2.5]]
)");
}

TEST_CASE("a split of an npz archive is named in one of two forms", "[spec]") {
  CHECK(errors_of(base_with("data: {source: {npz: {file: a.npz, train: b.npz, inputs: x}}, batch_size: all}")) ==
        R"(c.yaml:1:43: error: with file, a split is a list of two array names, not a path
    1 | data: {source: {npz: {file: a.npz, train: b.npz, inputs: x}}, batch_size: all}
      |                                           ^~~~~
  help: for example train: [x_train, y_train]
c.yaml:1:58: error: inputs cannot be combined with file, where each split names its arrays
    1 | data: {source: {npz: {file: a.npz, train: b.npz, inputs: x}}, batch_size: all}
      |                                                          ^
  help: remove inputs, or file
)");
  CHECK(errors_of(base_with("data: {source: {npz: {train: [x, y], inputs: x, targets: y}}, batch_size: all}")) ==
        R"(c.yaml:1:30: error: without file, a split is the path of an archive, not two names
    1 | data: {source: {npz: {train: [x, y], inputs: x, targets: y}}, batch_size: all}
      |                              ^~~~~~
  help: add file: archive.npz, or write train: train.npz, inputs: x, targets: y
)");
  CHECK(errors_of(base_with("data: {source: {npz: {file: [a], train: [x, y]}}, batch_size: all}")) ==
        R"(c.yaml:1:29: error: file takes a path, not a list
    1 | data: {source: {npz: {file: [a], train: [x, y]}}, batch_size: all}
      |                             ^~~
  help: for example file: digits.npz
)");
  CHECK(errors_of(base_with("data: {source: {npz: {file: a.npz, train: [x, y, z]}}, batch_size: all}")) ==
        R"(c.yaml:1:43: error: train takes a path, or a list of two names, not a list of 3
    1 | data: {source: {npz: {file: a.npz, train: [x, y, z]}}, batch_size: all}
      |                                           ^~~~~~~~~
  help: for example train: [x_train, y_train]
)");
}

TEST_CASE("a validation share is a share, and a limit a count of batches or examples", "[spec]") {
  CHECK(errors_of(
            base_with("data: {source: fashion_mnist, batch_size: 128, validation: 1.5, limit: {train: 1 epoch}}")) ==
        R"(c.yaml:1:60: error: share takes a number greater than 0 and less than 1, not '1.5'
    1 | data: {source: fashion_mnist, batch_size: 128, validation: 1.5, limit: {train: 1 epoch}}
      |                                                            ^~~
  help: for example share: 0.1
c.yaml:1:80: error: train takes a count such as '1 batch' or '1000 examples', not '1 epoch'
    1 | data: {source: fashion_mnist, batch_size: 128, validation: 1.5, limit: {train: 1 epoch}}
      |                                                                                ^~~~~~~
  help: for example train: 1 batch
)");
  CHECK(errors_of(base_with("data: {source: fashion_mnist, batch_size: 128, limit: {train: 1 bach}}")) ==
        R"(c.yaml:1:63: error: train takes a count such as '1 batch' or '1000 examples', not '1 bach'
    1 | data: {source: fashion_mnist, batch_size: 128, limit: {train: 1 bach}}
      |                                                               ^~~~~~
  help: did you mean '1 batch'?
)");
}

TEST_CASE("a validation share beside a validation split of the source is refused", "[spec]") {
  CHECK(errors_of(base_with("data: {source: {idx: {train: [a, b], validation: [c, d]}}, validation: 0.1, batch_size: "
                            "128}")) ==
        R"(c.yaml:1:60: error: the source has a validation split of its own: data.source.idx.validation
    1 | data: {source: {idx: {train: [a, b], validation: [c, d]}}, validation: 0.1, batch_size: 128}
      |                                                            ^~~~~~~~~~
  help: remove this key, or that one
)");
}

TEST_CASE("a limit of a split that the data does not have is refused", "[spec]") {
  CHECK(errors_of(
            base_with("data: {source: {idx: {train: [a, b]}}, batch_size: 128, limit: {validation: 7, test: 5}}")) ==
        R"(c.yaml:1:77: error: the data has no validation split to limit
    1 | data: {source: {idx: {train: [a, b]}}, batch_size: 128, limit: {validation: 7, test: 5}}
      |                                                                             ^
  help: data.validation: 0.1 would keep a tenth of the training examples aside
c.yaml:1:86: error: the data has no test split to limit
    1 | data: {source: {idx: {train: [a, b]}}, batch_size: 128, limit: {validation: 7, test: 5}}
      |                                                                                      ^
  help: remove the limit
)");
  CHECK(errors_of(base_with("data: {source: fashion_mnist, batch_size: 128, limit: {validation: 7, test: 5}, "
                            "validation: 0.1}"))
            .empty());
}

TEST_CASE("validation shares and limits are bound, and written out in the resolved config", "[spec]") {
  spec::Overrides overrides;
  overrides.set = {"data.validation=0.25", "data.validation.seed=3", "data.limit.train=1 batches",
                   "data.limit.test=1e3"};
  const spec::Loaded loaded = spec::load_text(base, "c.yaml", "/base", overrides);
  REQUIRE(loaded.spec.data.validation);
  CHECK(loaded.spec.data.validation->share == 0.25);
  CHECK(loaded.spec.data.validation->seed == 3);
  CHECK(loaded.spec.data.validation->shuffle);
  REQUIRE(loaded.spec.data.limit.train);
  CHECK(loaded.spec.data.limit.train->batches);
  CHECK(loaded.spec.data.limit.train->count == 1);
  REQUIRE(loaded.spec.data.limit.test);
  CHECK_FALSE(loaded.spec.data.limit.test->batches);
  CHECK(loaded.spec.data.limit.test->count == 1000);
  CHECK_FALSE(loaded.spec.data.limit.validation);
  CHECK(loaded.resolved.find(
            "validation: {share: 0.25, seed: 3, shuffle: true, stratify: false}\n  limit: {train: 1 batch, test: 1000 "
            "examples}\n") != std::string::npos);
  CHECK(spec::load_text(loaded.resolved, "c.yaml", "/base", {}).resolved == loaded.resolved);
}

TEST_CASE("the columns of a table have one part each, and a delimiter is one character", "[spec]") {
  CHECK(errors_of(R"(data:
  source:
    csv:
      train: a.csv
      inputs: [x, z, x]
      target: z
      weight: w
      delimiter: '\t'
      categorical: [w, u, x, x]
  batch_size: 8
  normalize: standard
model: {layers: [{dense: 10}]}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:5:19: error: the column 'z' is already the target
    5 |       inputs: [x, z, x]
      |                   ^
  help: remove it here, or there
c.yaml:5:22: error: the column 'x' is already an input
    5 |       inputs: [x, z, x]
      |                      ^
  help: remove it here, or there
c.yaml:8:18: error: delimiter takes one character, not '\t'
    8 |       delimiter: '\t'
      |                  ^~~~
  help: in double quotes \t is a tab: delimiter: "\t"
c.yaml:9:21: error: the column 'w' is the weight; categorical lists inputs
    9 |       categorical: [w, u, x, x]
      |                     ^
  help: remove it
c.yaml:9:24: error: the column 'u' is categorical, but no input
    9 |       categorical: [w, u, x, x]
      |                        ^
  help: add it to inputs, or remove it here
c.yaml:9:30: error: categorical has 'x' twice
    9 |       categorical: [w, u, x, x]
      |                              ^
  help: keep one of them
c.yaml:11:14: error: normalize takes auto or a map of options, not 'standard'
   11 |   normalize: standard
      |              ^~~~~~~~
  help: for example:
        normalize: auto
        normalize: {mean: [0.5], std: [0.5]}
)");
}

TEST_CASE("missing names inputs, and treats each as what it holds", "[spec]") {
  CHECK(errors_of(R"(data:
  source:
    csv:
      train: a.csv
      inputs: [x, z, c]
      target: y
      categorical: [c]
      missing: {y: mean, u: mean, c: mean, x: category, z: fill}
  batch_size: 8
model: {layers: [{dense: 10}]}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:8:60: error: missing takes one of error, mean, category, not 'fill'
    8 |       missing: {y: mean, u: mean, c: mean, x: category, z: fill}
      |                                                            ^~~~
  help: for example missing: fill
)");
  CHECK(errors_of(R"(data:
  source:
    csv:
      train: a.csv
      inputs: [x, z, c]
      target: y
      categorical: [c]
      missing: {y: mean, u: mean, c: mean, x: category}
  batch_size: 8
model: {layers: [{dense: 10}]}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:8:17: error: the column 'y' is the target; missing is for inputs
    8 |       missing: {y: mean, u: mean, c: mean, x: category}
      |                 ^
  help: remove it
c.yaml:8:26: error: the column 'u' is no input; missing is for inputs
    8 |       missing: {y: mean, u: mean, c: mean, x: category}
      |                          ^
  help: remove it
c.yaml:8:38: error: the column 'c' is categorical, and categories have no mean
    8 |       missing: {y: mean, u: mean, c: mean, x: category}
      |                                      ^~~~
  help: write category: empty cells are then a category of their own
c.yaml:8:47: error: the column 'x' has numbers, and no categories
    8 |       missing: {y: mean, u: mean, c: mean, x: category}
      |                                               ^~~~~~~~
  help: write mean; or list the column in categorical
)");
}

TEST_CASE("several targets are for a loss of numbers, and each is named once", "[spec]") {
  const auto errors = [](const std::string& targets, const std::string& loss) {
    return errors_of("data: {source: {csv: {train: a.csv, target: " + targets + R"(}}, batch_size: 8}
model: {layers: [{dense: 2}]}
loss: )" + loss + R"(
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)");
  };
  CHECK(errors("[a, b]", "mean_squared_error").empty());
  CHECK(errors("[a, b]", "softmax_cross_entropy") ==
        R"(c.yaml:1:45: error: several targets are numbers; the loss, softmax_cross_entropy, is one of classes
    1 | data: {source: {csv: {train: a.csv, target: [a, b]}}, batch_size: 8}
      |                                             ^~~~~~
  help: name one column, or use a loss of numbers, such as mean_squared_error
)");
  CHECK(errors("[a, a]", "mean_squared_error") ==
        R"(c.yaml:1:49: error: the column 'a' is already a target
    1 | data: {source: {csv: {train: a.csv, target: [a, a]}}, batch_size: 8}
      |                                                 ^
  help: remove it here, or there
)");
  CHECK(errors("[]", "mean_squared_error") ==
        R"(c.yaml:1:45: error: target is empty
    1 | data: {source: {csv: {train: a.csv, target: []}}, batch_size: 8}
      |                                             ^~
  help: for example target: label
)");
}

TEST_CASE("stratify is for classes that are chosen at random", "[spec]") {
  const auto errors = [](const std::string& validation, const std::string& loss) {
    return errors_of("data: {source: {csv: {train: a.csv, target: y}}, batch_size: 8, validation: " + validation + R"(}
model: {layers: [{dense: 2}]}
loss: )" + loss + R"(
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)");
  };
  CHECK(errors("{share: 0.1, stratify: true}", "softmax_cross_entropy").empty());
  CHECK(test::contains(errors("{share: 0.1, stratify: true}", "huber"),
                       ": error: stratify is for classes; the loss, huber, takes numbers\n"));
  CHECK(test::contains(errors("{share: 0.1, stratify: true, shuffle: false}", "softmax_cross_entropy"),
                       ": error: stratify chooses examples of each class, but shuffle: false takes the last ones\n"));
  CHECK(errors("{share: 0.1, stratify: false, shuffle: false}", "huber").empty());
}
