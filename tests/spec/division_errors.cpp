// What does not divide: batches, microbatches and durations over the mesh, with the sizes that would.
#include <string>

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
  note: the rows of each device are split into 4 microbatches
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

TEST_CASE("no batch size above the number of examples in the config is suggested", "[spec]") {
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
  const std::string mask = "remainder: mask pads the batch with rows of zero weight";
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
