// What a config may not say of its keys, choices, mesh and data: the words of every error, as golden text.
#include <string>

#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/spec/errors_of.h"

using namespace pmaptrain;

TEST_CASE("a misspelt key is refused with the nearest spelling", "[spec]") {
  CHECK(errors_of(R"(sede: 3
)" + std::string(base)) ==
        R"(c.yaml:1:1: error: unknown key 'sede'
    1 | sede: 3
      | ^~~~
  help: did you mean 'seed'?
)");
}

TEST_CASE("a key of a later version is refused as unknown", "[spec]") {
  CHECK(errors_of(R"(ensemble: {axis: devices}
)" + std::string(base)) ==
        R"(c.yaml:1:1: error: unknown key 'ensemble'
    1 | ensemble: {axis: devices}
      | ^~~~~~~~
  help: the keys here are name, seed, precision, mesh, data, model, loss, metrics, optimizer, train
)");
}

TEST_CASE("a key in the wrong map is refused with its right place", "[spec]") {
  CHECK(errors_of(R"(optimizer: {adam: {learning_rate: 0.1}, learning_rate: 0.1}
data: {source: fashion_mnist, batch_size: 128}
model: {layers: [flatten, {dense: 10}]}
loss: softmax_cross_entropy
train: {duration: 1 step}
)") ==
        R"(c.yaml:1:20: error: unknown key 'learning_rate' in adam
    1 | optimizer: {adam: {learning_rate: 0.1}, learning_rate: 0.1}
      |                    ^~~~~~~~~~~~~
  help: did you mean 'optimizer.learning_rate'?
)");
}

TEST_CASE("an option beside its choice is refused with its right place", "[spec]") {
  CHECK(errors_of(R"(optimizer: {adam: {}, b1: 0.5, learning_rate: 0.1}
data: {source: fashion_mnist, batch_size: 128}
model: {layers: [flatten, {dense: 10}]}
loss: softmax_cross_entropy
train: {duration: 1 step}
)") ==
        R"(c.yaml:1:23: error: unknown key 'b1' in optimizer
    1 | optimizer: {adam: {}, b1: 0.5, learning_rate: 0.1}
      |                       ^~
  help: it belongs inside: adam: {b1: ...}
)");
}

TEST_CASE("a backend that is not built is refused", "[spec]") {
  CHECK(errors_of(R"(mesh: {backend: cuda}
)" + std::string(base)) ==
        R"(c.yaml:1:17: error: backend cuda is not in this build
    1 | mesh: {backend: cuda}
      |                 ^~~~
  help: it has one of cpu, auto
)");
}

TEST_CASE("a precision that is not built is refused", "[spec]") {
  CHECK(errors_of(R"(precision: mixed_bfloat16
)" + std::string(base)) ==
        R"(c.yaml:1:12: error: precision mixed_bfloat16 is not in this build
    1 | precision: mixed_bfloat16
      |            ^~~~~~~~~~~~~~
  help: it has float32
)");
}

TEST_CASE("missing keys are reported in the map that lacks them", "[spec]") {
  CHECK(errors_of(R"(name: a
data:
  shuffle: true
optimizer:
  sgd: {}
)") ==
        R"(c.yaml: error: model is missing
  help: add it, for example:
        model:
          layers:
            - flatten
            - dense: 10
c.yaml: error: loss is missing
  help: add it, for example:
        loss: softmax_cross_entropy
c.yaml: error: train is missing
  help: add it, for example:
        train:
          duration: 10 epochs
c.yaml:2:1: error: source is missing in data
    2 | data:
      | ^~~~
  help: add it, for example:
        source: fashion_mnist
c.yaml:2:1: error: batch_size is missing in data
    2 | data:
      | ^~~~
  help: add it, for example:
        batch_size: 128
c.yaml:4:1: error: learning_rate is missing in optimizer
    4 | optimizer:
      | ^~~~~~~~~
  help: add it, for example:
        learning_rate: 0.001
)");
}

TEST_CASE("two choices at once are refused", "[spec]") {
  CHECK(errors_of(R"(optimizer: {adam: {}, sgd: {}, learning_rate: 0.1}
data: {source: fashion_mnist, batch_size: 128}
model: {layers: [flatten, {dense: 10}]}
loss: softmax_cross_entropy
train: {duration: 1 step}
)") ==
        R"(c.yaml:1:23: error: optimizer has both adam and sgd; it takes exactly one
    1 | optimizer: {adam: {}, sgd: {}, learning_rate: 0.1}
      |                       ^~~
  help: keep one of them
)");
}

TEST_CASE("axes have names and sizes of their own", "[spec]") {
  CHECK(errors_of(R"(mesh: {axes: [{a: 2}, {a: 0}, {b c: 2}]}
)" + std::string(base)) ==
        R"(c.yaml:1:24: error: the axis 'a' stands here a second time
    1 | mesh: {axes: [{a: 2}, {a: 0}, {b c: 2}]}
      |                        ^
  help: give each axis a name of its own
c.yaml:1:27: error: a takes a whole number from 1 to 65,536, not '0'
    1 | mesh: {axes: [{a: 2}, {a: 0}, {b c: 2}]}
      |                           ^
c.yaml:1:32: error: 'b c' cannot name an axis
    1 | mesh: {axes: [{a: 2}, {a: 0}, {b c: 2}]}
      |                                ^~~
  help: use letters, digits and '_', such as data_shards
)");
}

TEST_CASE("several axes in one map are refused, since their order matters", "[spec]") {
  CHECK(errors_of(R"(mesh: {axes: {a: 2, b: 4}}
)" + std::string(base)) ==
        R"(c.yaml:1:14: error: several axes are a list, because their order matters; this is a map
    1 | mesh: {axes: {a: 2, b: 4}}
      |              ^~~~~~~~~~~~
  help: write [{a: 2}, {b: 4}], the outermost first
)");
}

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
        R"(c.yaml:2:54: error: nothing uses the mesh axis 'replicas': data.axes leaves it out
    2 | data: {source: fashion_mnist, batch_size: 128, axes: [shards]}
      |                                                      ^~~~~~~~
  help: add it to data.axes, or remove it from mesh.axes
)");
}

TEST_CASE("durations say which units there are", "[spec]") {
  CHECK(
      errors_of(R"(train: {duration: 10 epcohs, log_every: 0.5 epochs, eval_every: nevr, verify_replicas: 0}
data: {source: fashion_mnist, batch_size: 128}
model: {layers: [flatten, {dense: 10}]}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
)") ==
      R"(c.yaml:1:19: error: duration takes a duration such as '100 steps', '2 epochs' or '50000 examples', not '10 epcohs'
    1 | train: {duration: 10 epcohs, log_every: 0.5 epochs, eval_every: nevr, verify_replicas: 0}
      |                   ^~~~~~~~~
  help: did you mean '10 epochs'?
c.yaml:1:41: error: log_every '0.5 epochs' is not a whole number of epochs
    1 | train: {duration: 10 epcohs, log_every: 0.5 epochs, eval_every: nevr, verify_replicas: 0}
      |                                         ^~~~~~~~~~
  help: count steps or examples instead
c.yaml:1:65: error: eval_every takes an interval such as '100 steps' or '1 epoch', or 'never', not 'nevr'
    1 | train: {duration: 10 epcohs, log_every: 0.5 epochs, eval_every: nevr, verify_replicas: 0}
      |                                                                 ^~~~
  help: did you mean 'never'?
c.yaml:1:88: error: verify_replicas '0' must be at least 1 and at most 1,000,000,000,000
    1 | train: {duration: 10 epcohs, log_every: 0.5 epochs, eval_every: nevr, verify_replicas: 0}
      |                                                                                        ^
  help: 'never' turns it off
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
  help: give every example the same number
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
