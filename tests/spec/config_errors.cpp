// What a config may not say of its keys, choices and mesh: the words of every error, as golden text.
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
  CHECK(errors_of(R"(replicates: {seed: [1]}
)" + std::string(base)) ==
        R"(c.yaml:1:1: error: unknown key 'replicates'
    1 | replicates: {seed: [1]}
      | ^~~~~~~~~~
  help: valid keys: name, seed, precision, mesh, data, model, loss, metrics, optimizer, train, ensemble
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
        R"(c.yaml:1:24: error: duplicate axis 'a'
    1 | mesh: {axes: [{a: 2}, {a: 0}, {b c: 2}]}
      |                        ^
  help: give each axis a different name
c.yaml:1:27: error: a takes an integer from 1 to 65,536, not '0'
    1 | mesh: {axes: [{a: 2}, {a: 0}, {b c: 2}]}
      |                           ^
c.yaml:1:32: error: 'b c' is not a valid axis name
    1 | mesh: {axes: [{a: 2}, {a: 0}, {b c: 2}]}
      |                                ^~~
  help: use letters, digits and '_', no digit first, such as data_shards
)");
}

TEST_CASE("several axes in one map are refused, since their order matters", "[spec]") {
  CHECK(errors_of(R"(mesh: {axes: {a: 2, b: 4}}
)" + std::string(base)) ==
        R"(c.yaml:1:14: error: several axes must be a list, because their order matters; this is a map
    1 | mesh: {axes: {a: 2, b: 4}}
      |              ^~~~~~~~~~~~
  help: write [{a: 2}, {b: 4}], outermost first
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
  help: 'never' disables it
)");
}

TEST_CASE("a config that is no map is refused with its kind", "[spec]") {
  CHECK(errors_of(R"(- a
- b
)") ==
        R"(c.yaml:1:1: error: the config is a map of keys, not a list
    1 | - a
      | ^
  help: write 'key: value' lines; pmaptrain init writes an example config
)");
  CHECK(errors_of(R"(hello
)") ==
        R"(c.yaml:1:1: error: the config is a map of keys, not 'hello'
    1 | hello
      | ^~~~~
  help: write 'key: value' lines; pmaptrain init writes an example config
)");
  CHECK(errors_of(R"(~
)") ==
        R"(c.yaml: error: the config is empty
  help: pmaptrain init writes an example config
)");
}

TEST_CASE("a choice that is a list, or that names none of its alternatives, is refused", "[spec]") {
  CHECK(errors_of(base_with("optimizer: [adam]")) ==
        R"(c.yaml:1:12: error: optimizer takes one of sgd, adam, adamw, rmsprop, adagrad, nadam, lion, not a list
    1 | optimizer: [adam]
      |            ^~~~~~
  help: for example:
        optimizer:
          adam: {}
          learning_rate: 0.001
)");
  CHECK(errors_of(base_with("optimizer: {learning_rate: 0.1}")) ==
        R"(c.yaml:1:1: error: optimizer has no kind
    1 | optimizer: {learning_rate: 0.1}
      | ^~~~~~~~~
  help: add one of sgd, adam, adamw, rmsprop, adagrad, nadam, lion
)");
  CHECK(errors_of(base_with("optimizer: {}")) ==
        R"(c.yaml:1:1: error: learning_rate is missing in optimizer
    1 | optimizer: {}
      | ^~~~~~~~~
  help: add it, for example:
        learning_rate: 0.001
c.yaml:1:12: error: optimizer has no kind
    1 | optimizer: {}
      |            ^~
  help: add one of sgd, adam, adamw, rmsprop, adagrad, nadam, lion
)");
  CHECK(
      errors_of(base_with("loss: [huber]")) ==
      R"(c.yaml:1:7: error: loss takes one of softmax_cross_entropy, sigmoid_cross_entropy, mean_squared_error, mean_absolute_error, huber, not a list
    1 | loss: [huber]
      |       ^~~~~~~
  help: for example:
        loss: softmax_cross_entropy
)");
}

TEST_CASE("null for a key that is required leaves it missing", "[spec]") {
  CHECK(errors_of(base_with("loss: ~")) ==
        R"(c.yaml:1:1: error: loss is missing
    1 | loss: ~
      | ^~~~
  help: add it, for example:
        loss: softmax_cross_entropy
)");
}

TEST_CASE("nesterov needs a momentum", "[spec]") {
  CHECK(errors_of(base_with("optimizer: {sgd: {nesterov: true}, learning_rate: 0.1}")) ==
        R"(c.yaml:1:29: error: nesterov needs a momentum greater than 0
    1 | optimizer: {sgd: {nesterov: true}, learning_rate: 0.1}
      |                             ^~~~
  help: add momentum: 0.9, or remove nesterov
)");
}

TEST_CASE("numbers that are too large are refused with the largest one", "[spec]") {
  CHECK(errors_of(base_with("optimizer: {adam: {}, learning_rate: 1e999}")) ==
        R"(c.yaml:1:38: error: learning_rate 1e999 is too large
    1 | optimizer: {adam: {}, learning_rate: 1e999}
      |                                      ^~~~~
  help: the largest float32 is about 3.4e38
)");
  CHECK(errors_of(base_with("data: {source: fashion_mnist, batch_size: 99999999999999999999}")) ==
        R"(c.yaml:1:43: error: batch_size 99999999999999999999 is too large
    1 | data: {source: fashion_mnist, batch_size: 99999999999999999999}
      |                                           ^~~~~~~~~~~~~~~~~~~~
  help: the largest is 1,000,000,000,000
)");
  CHECK(errors_of(base_with("data: {source: fashion_mnist, batch_size: 2000000000000}")) ==
        R"(c.yaml:1:43: error: batch_size 2000000000000 is too large
    1 | data: {source: fashion_mnist, batch_size: 2000000000000}
      |                                           ^~~~~~~~~~~~~
  help: the largest is 1,000,000,000,000
)");
  CHECK(errors_of(base_with("data: {source: fashion_mnist, batch_size: -99999999999999999999}")) ==
        R"(c.yaml:1:43: error: batch_size takes an integer of at least 1 or 'all', not '-99999999999999999999'
    1 | data: {source: fashion_mnist, batch_size: -99999999999999999999}
      |                                           ^~~~~~~~~~~~~~~~~~~~~
  help: for example batch_size: 128
)");
}

TEST_CASE("a run's name can name a folder", "[spec]") {
  CHECK(errors_of(R"(name: a/b
)" + base) ==
        R"(c.yaml:1:7: error: name 'a/b' is not a valid run name
    1 | name: a/b
      |       ^~~
  help: a name contains no '/', does not begin with '-' and has at most 200 bytes; --run-dir sets the path of the run folder
)");
  CHECK(errors_of(R"(name: ""
)" + base) ==
        R"(c.yaml:1:7: error: name '' is not a valid run name
    1 | name: ""
      |       ^~
  help: a name contains no '/', does not begin with '-' and has at most 200 bytes; --run-dir sets the path of the run folder
)");
}

TEST_CASE("axes are maps of one name, and there are not too many", "[spec]") {
  CHECK(errors_of(R"(mesh: {axes: [a, {b: 2, c: 3}, !x {d: 2}]}
)" + base) ==
        R"(c.yaml:1:15: error: an axis is a map of one name to its size, not 'a'
    1 | mesh: {axes: [a, {b: 2, c: 3}, !x {d: 2}]}
      |               ^
  help: for example [{model_replicas: 2}, {data_shards: 4}]
c.yaml:1:18: error: an axis is a map of one name to its size, not a map with 2 keys
    1 | mesh: {axes: [a, {b: 2, c: 3}, !x {d: 2}]}
      |                  ^~~~~~~~~~~~
  help: for example [{model_replicas: 2}, {data_shards: 4}]
c.yaml:1:32: error: YAML tags are not supported
    1 | mesh: {axes: [a, {b: 2, c: 3}, !x {d: 2}]}
      |                                ^~
  help: remove the tag; the key determines the type
)");
  CHECK(errors_of(R"(mesh: {axes: []}
)" + base) ==
        R"(c.yaml:1:14: error: axes is empty
    1 | mesh: {axes: []}
      |              ^~
  help: for example axes: {devices: 8}
)");
  CHECK(errors_of(R"(mesh: {axes: {}}
)" + base) ==
        R"(c.yaml:1:14: error: axes is empty
    1 | mesh: {axes: {}}
      |              ^~
  help: for example axes: {devices: 8}
)");
  CHECK(errors_of(R"(mesh: {axes: 8}
)" + base) ==
        R"(c.yaml:1:14: error: axes takes a map of one axis to its size, or a list of such maps, not '8'
    1 | mesh: {axes: 8}
      |              ^
  help: for example axes: {devices: 8}
)");
  CHECK(errors_of(R"(mesh: {axes: {devices: }}
)" + base) ==
        R"(c.yaml:1:15: error: 'devices' has no value
    1 | mesh: {axes: {devices: }}
      |               ^~~~~~~
  help: write its size, such as 8
)");
  CHECK(errors_of(R"(mesh: {axes: [{a: 1000}, {b: 1000}]}
)" + base) ==
        R"(c.yaml:1:14: error: the mesh has more than 65,536 logical devices
    1 | mesh: {axes: [{a: 1000}, {b: 1000}]}
      |              ^~~~~~~~~~~~~~~~~~~~~~
  help: reduce the axis sizes
)");
}
