// What does not divide: batches, microbatches and durations over the mesh, with the sizes that would.
#include <string>

#include "tests/catch.h"
#include "tests/spec/errors_of.h"

using namespace pmaptrain;

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
