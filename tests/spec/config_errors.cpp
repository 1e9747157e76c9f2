// What a config may not say: the words of every error, as golden text.
#include <string>

#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/spec/errors_of.h"

using namespace pmaptrain;

TEST_CASE("a batch that does not divide is refused with the nearest sizes", "[spec]") {
  CHECK(errors_of(R"(mesh: {axes: {devices: 8}}
data:
  source: fashion_mnist
  batch_size: 100
model: {layers: [flatten, {dense: 10}]}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:4:15: error: batch_size 100 does not divide over axis 'devices' (8 devices): 100 = 8 × 12 + 4
    4 |   batch_size: 100
      |               ^~~
  help: 96 or 104 would divide
)");
}

TEST_CASE("the note names --devices when it set the size", "[spec]") {
  CHECK(errors_of(R"(mesh: {axes: {devices: 8}}
data:
  source: fashion_mnist
  batch_size: 100
model: {layers: [flatten, {dense: 10}]}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)",
                  {}, 7) ==
        R"(c.yaml:4:15: error: batch_size 100 does not divide over axis 'devices' (7 devices): 100 = 7 × 14 + 2
    4 |   batch_size: 100
      |               ^~~
  help: 98 or 105 would divide
  note: 'devices' is 7 because of --devices 7
)");
}

TEST_CASE("several axes are all named when the batch does not divide", "[spec]") {
  CHECK(
      errors_of(R"(mesh: {axes: [{model_replicas: 2}, {data_shards: 4}]}
data:
  source: fashion_mnist
  batch_size: 100
model: {layers: [flatten, {dense: 10}]}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
      R"(c.yaml:4:15: error: batch_size 100 does not divide over axes 'model_replicas' and 'data_shards' (2 × 4 = 8 devices): 100 = 8 × 12 + 4
    4 |   batch_size: 100
      |               ^~~
  help: 96 or 104 would divide
)");
}

TEST_CASE("suggested sizes are multiples of devices times microbatches", "[spec]") {
  CHECK(errors_of(R"(mesh: {axes: {devices: 8}}
data:
  source: fashion_mnist
  batch_size: 100
  microbatches: 4
model: {layers: [flatten, {dense: 10}]}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:4:15: error: batch_size 100 does not divide over axis 'devices' (8 devices): 100 = 8 × 12 + 4
    4 |   batch_size: 100
      |               ^~~
  help: 96 or 128 would divide
  note: each device's share is cut into 4 microbatches
)");
}

TEST_CASE("microbatches that do not divide are refused", "[spec]") {
  CHECK(errors_of(R"(mesh: {axes: {devices: 8}}
data: {source: fashion_mnist, batch_size: 128, microbatches: 3}
model: {layers: [flatten, {dense: 10}]}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:2:62: error: microbatches 3 does not divide the 16 examples of each device: 16 = 3 × 5 + 1
    2 | data: {source: fashion_mnist, batch_size: 128, microbatches: 3}
      |                                                              ^
  help: batch_size 120 or 144 would divide
)");
}

TEST_CASE("remainder mask takes any batch with any microbatches", "[spec]") {
  for (const char* size : {"batch_size: 100", "batch_size: 3", "batch_size_per_device: 5"}) {
    INFO(size);
    CHECK(errors_of("mesh: {axes: {devices: 8}}\n"
                    "data: {source: fashion_mnist, " +
                    std::string(size) +
                    ", microbatches: 4, remainder: mask}\n"
                    "model: {layers: [flatten, {dense: 10}]}\n"
                    "loss: softmax_cross_entropy\n"
                    "optimizer: {adam: {}, learning_rate: 0.001}\n"
                    "train: {duration: 1 step}\n") == "");
  }
}

TEST_CASE("a batch smaller than the mesh is refused with the smallest size", "[spec]") {
  CHECK(errors_of(R"(mesh: {axes: {devices: 8}}
data: {source: fashion_mnist, batch_size: 3}
model: {layers: [flatten, {dense: 10}]}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:2:43: error: batch_size 3 does not divide over axis 'devices' (8 devices): 3 = 8 × 0 + 3
    2 | data: {source: fashion_mnist, batch_size: 3}
      |                                           ^
  help: 8 would divide
)");
}

TEST_CASE("no batch size above the number of examples is suggested, where the config holds them", "[spec]") {
  const auto help = [](const char* data) {
    const std::string text = errors_of(
        "mesh: {axes: [{a: 2}, {b: 3}]}\n"
        "data: {source: {values: {inputs: [[1], [2], [3], [4], [5], [6], [7]],\n"
        "  targets: [[1], [2], [3], [4], [5], [6], [7]]}}, " +
        std::string(data) +
        "}\n"
        "model: {layers: [{dense: 1}]}\n"
        "loss: mean_squared_error\n"
        "optimizer: {sgd: {}, learning_rate: 0.1}\n"
        "train: {duration: 1 step}\n");
    const std::size_t at = text.find("help: ");
    return at == std::string::npos ? text : text.substr(at, text.find('\n', at) - at);
  };
  const std::string mask = "remainder: mask pads the rows that are left and masks them";
  CHECK(help("batch_size: 7, microbatches: 2") == "help: " + mask);
  CHECK(help("batch_size: 7") == "help: 6 would divide; " + mask);
  CHECK(help("batch_size: 6, microbatches: 2") == "help: " + mask);
  CHECK(help("batch_size: 5") == "help: 6 would divide");
}

TEST_CASE("examples must be whole batches", "[spec]") {
  CHECK(errors_of(R"(train: {duration: 1000 examples, log_every: 12 examples, eval_every: 256 examples}
data: {source: fashion_mnist, batch_size: 128}
model: {layers: [flatten, {dense: 10}]}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
)") ==
        R"(c.yaml:1:19: error: duration '1000 examples' is not a whole number of batches: 1000 = 128 × 7 + 104
    1 | train: {duration: 1000 examples, log_every: 12 examples, eval_every: 256 examples}
      |                   ^~~~~~~~~~~~~
  help: 896 or 1024 would divide, or count steps or epochs
c.yaml:1:45: error: log_every '12 examples' is not a whole number of batches: 12 = 128 × 0 + 12
    1 | train: {duration: 1000 examples, log_every: 12 examples, eval_every: 256 examples}
      |                                             ^~~~~~~~~~~
  help: 128 would divide, or count steps or epochs
)");
}

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

TEST_CASE("an unknown layer is refused with the nearest spelling", "[spec]") {
  CHECK(errors_of(R"(model:
  layers:
    - cnv: {features: 3}
    - relo
data: {source: fashion_mnist, batch_size: 128}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:3:7: error: unknown layer 'cnv'
    3 |     - cnv: {features: 3}
      |       ^~~
  help: did you mean 'conv'?
c.yaml:4:7: error: unknown layer 'relo'
    4 |     - relo
      |       ^~~~
  help: did you mean 'relu'?
)");
}

TEST_CASE("what is wrong in a list within a list stands where it was written", "[spec]") {
  CHECK(errors_of(R"(model:
  layers:
    - layers: [rellu, {name: a.b, flatten: {}}]
    - {name: empty, layers: []}
    - layers: {dense: 10}
    - layers
    - layers: [{name: x, relu: {}}, {name: x, tanh: {}}]
    - {reshape: [-2, 0.5]}
data: {source: fashion_mnist, batch_size: 128}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:3:16: error: unknown layer 'rellu'
    3 |     - layers: [rellu, {name: a.b, flatten: {}}]
      |                ^~~~~
  help: did you mean 'relu'?
c.yaml:3:30: error: a layer's name has no dots, unlike 'a.b'
    3 |     - layers: [rellu, {name: a.b, flatten: {}}]
      |                              ^~~
  help: dots separate the parts of a parameter's name, such as head.kernel
c.yaml:4:21: error: layers is empty; a model has at least one layer
    4 |     - {name: empty, layers: []}
      |                     ^~~~~~
  help: for example:
        - name: block
          layers:
            - conv: {features: 32, kernel_size: [3, 3]}
            - relu
c.yaml:5:15: error: layers takes a list of layers, not a map
    5 |     - layers: {dense: 10}
      |               ^~~~~~~~~~~
  help: for example:
        - name: block
          layers:
            - conv: {features: 32, kernel_size: [3, 3]}
            - relu
c.yaml:6:7: error: 'layers' has no value
    6 |     - layers
      |       ^~~~~~
  help: write one (a list of layers, as model.layers), or remove the key
c.yaml:7:44: error: two layers are called 'x'
    7 |     - layers: [{name: x, relu: {}}, {name: x, tanh: {}}]
      |                                            ^
  help: a layer without a name is its kind and its index; give one of them another name
c.yaml:8:18: error: shape takes a list of whole numbers of at least -1, not '-2'
    8 |     - {reshape: [-2, 0.5]}
      |                  ^~
  help: for example shape: [7, 7, -1]
c.yaml:8:22: error: shape takes a list of whole numbers of at least -1, not '0.5'
    8 |     - {reshape: [-2, 0.5]}
      |                      ^~~
  help: for example shape: [7, 7, -1]
)");
}

TEST_CASE("losses and metrics say what they take", "[spec]") {
  CHECK(errors_of(R"(model: {layers: [flatten, {dense: 10}]}
data: {source: fashion_mnist, batch_size: 128}
loss: {softmax_cross_entropy: {label_smoothing: 1, class_weights: [-1]}}
metrics: [acuracy, {top_k_accuracy: 0}, {f1: {average: mean}}, recall, recall, {huber: 1}, 7]
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:3:49: error: label_smoothing takes a number of at least 0 and less than 1, not '1'
    3 | loss: {softmax_cross_entropy: {label_smoothing: 1, class_weights: [-1]}}
      |                                                 ^
  help: for example label_smoothing: 0.1
c.yaml:3:68: error: class_weights takes a list of numbers of at least 0, not '-1'
    3 | loss: {softmax_cross_entropy: {label_smoothing: 1, class_weights: [-1]}}
      |                                                                    ^~
  help: for example class_weights: [1.0, 5.0]
c.yaml:4:11: error: unknown metric 'acuracy'
    4 | metrics: [acuracy, {top_k_accuracy: 0}, {f1: {average: mean}}, recall, recall, {huber: 1}, 7]
      |           ^~~~~~~
  help: did you mean 'accuracy'?
c.yaml:4:37: error: k takes a whole number of at least 1, not '0'
    4 | metrics: [acuracy, {top_k_accuracy: 0}, {f1: {average: mean}}, recall, recall, {huber: 1}, 7]
      |                                     ^
  help: for example k: 3
c.yaml:4:56: error: average takes one of macro, none, not 'mean'
    4 | metrics: [acuracy, {top_k_accuracy: 0}, {f1: {average: mean}}, recall, recall, {huber: 1}, 7]
      |                                                        ^~~~
  help: for example average: none
c.yaml:4:72: error: metrics has recall twice
    4 | metrics: [acuracy, {top_k_accuracy: 0}, {f1: {average: mean}}, recall, recall, {huber: 1}, 7]
      |                                                                        ^~~~~~
  help: keep one of them
c.yaml:4:81: error: unknown metric 'huber'
    4 | metrics: [acuracy, {top_k_accuracy: 0}, {f1: {average: mean}}, recall, recall, {huber: 1}, 7]
      |                                                                                 ^~~~~
  help: the choices here are accuracy, top_k_accuracy, precision, recall, f1, perplexity, mean_absolute_error, mean_squared_error, r2
c.yaml:4:92: error: unknown metric '7'
    4 | metrics: [acuracy, {top_k_accuracy: 0}, {f1: {average: mean}}, recall, recall, {huber: 1}, 7]
      |                                                                                            ^
  help: the choices here are accuracy, top_k_accuracy, precision, recall, f1, perplexity, mean_absolute_error, mean_squared_error, r2
)");
  CHECK(errors_of(R"(model: {layers: [flatten, {dense: 10}]}
data: {source: fashion_mnist, batch_size: 128}
loss: {huber: 0}
metrics: accuracy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:3:15: error: delta takes a number greater than 0, not '0'
    3 | loss: {huber: 0}
      |               ^
  help: for example delta: 1.0
c.yaml:4:10: error: metrics takes a list of metrics, not 'accuracy'
    4 | metrics: accuracy
      |          ^~~~~~~~
  help: for example:
        metrics: [accuracy, top_k_accuracy: 5]
)");
}

TEST_CASE("layers say what they take", "[spec]") {
  CHECK(errors_of(R"(model:
  layers:
    - conv: {features: 0, kernel_size: [3]}
    - conv: {features: 8, kernel_size: [3, 0], padding: same}
    - max_pool: {window_shape: [2, 2]}
    - dropout: 1.0
    - relu: {slope: 2}
data: {source: fashion_mnist, batch_size: 128}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:3:24: error: features takes a whole number of at least 1, not '0'
    3 |     - conv: {features: 0, kernel_size: [3]}
      |                        ^
  help: for example features: 32
c.yaml:3:40: error: kernel_size takes a list of 2 whole numbers from 1 to 65,536, not a list of 1
    3 |     - conv: {features: 0, kernel_size: [3]}
      |                                        ^~~
  help: for example kernel_size: [3, 3]
c.yaml:4:44: error: kernel_size takes a list of 2 whole numbers from 1 to 65,536, not '0'
    4 |     - conv: {features: 8, kernel_size: [3, 0], padding: same}
      |                                            ^
  help: for example kernel_size: [3, 3]
c.yaml:4:57: error: padding takes SAME, VALID or a list of two pairs of whole numbers from 0 to 65,536, not 'same'
    4 |     - conv: {features: 8, kernel_size: [3, 0], padding: same}
      |                                                         ^~~~
  help: did you mean 'SAME'?
c.yaml:5:7: error: strides is missing in max_pool
    5 |     - max_pool: {window_shape: [2, 2]}
      |       ^~~~~~~~
  help: add it, for example:
        strides: [2, 2]
c.yaml:6:16: error: rate takes a number of at least 0 and less than 1, not '1.0'
    6 |     - dropout: 1.0
      |                ^~~
  help: for example rate: 0.5
c.yaml:7:14: error: unknown key 'slope' in relu
    7 |     - relu: {slope: 2}
      |              ^~~~~
  help: relu takes no options
)");
}

TEST_CASE("names of layers have no dots and are unique", "[spec]") {
  CHECK(errors_of(R"(model:
  layers:
    - {name: a.b, dense: 3}
    - {name: relu_0, dense: 3}
    - relu
data: {source: fashion_mnist, batch_size: 128}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:3:14: error: a layer's name has no dots, unlike 'a.b'
    3 |     - {name: a.b, dense: 3}
      |              ^~~
  help: dots separate the parts of a parameter's name, such as head.kernel
c.yaml:5:7: error: two layers are called 'relu_0'
    5 |     - relu
      |       ^~~~
  help: a layer without a name is its kind and its index; give one of them another name
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

TEST_CASE("initial values are rectangular", "[spec]") {
  CHECK(errors_of(R"(model:
  layers: [{dense: 2}]
  init: {values: {dense_0: {kernel: [[1, 2], [3]]}}}
data: {source: fashion_mnist, batch_size: 128}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:3:46: error: this row has another shape than the first one beside it
    3 |   init: {values: {dense_0: {kernel: [[1, 2], [3]]}}}
      |                                              ^~~
  help: a tensor is rectangular: every list of one level has the same length
)");
}
