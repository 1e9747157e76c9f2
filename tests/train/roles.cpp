// Axes of the mesh along which no batch is divided: their devices see the same rows.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/setup/setup.h"
#include "core/setup/values.h"
#include "tests/catch.h"
#include "tests/session_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

const std::string pair_of_dense =
    "model.layers=[{conv: {features: 4, kernel_size: [3, 3]}}, relu, flatten, {dense: 8}, relu, {dense: 3}]";

// Small images on a mesh with another axis, `model`, that divides the dense layers and not the convolution.
setup::Setup with_tensor_axis(const std::string& axes, std::vector<std::string> set) {
  set.insert(set.end(), {pair_of_dense, "mesh.axes=" + axes, "parallelism.tensor={axis: model}"});
  return setup_of_text(small_images, std::move(set));
}

}  // namespace

TEST_CASE("a batch divides by the axes of the data alone; along others devices see the same rows", "[train]") {
  const std::string backend = any_backend();
  for (const std::string axes : {"[{devices: 4}, {model: 2}]", "[{model: 2}, {devices: 4}]"}) {
    for (const bool is_sharded : {false, true}) {
      INFO(axes << ", sharded " << is_sharded);
      std::vector<std::string> set{backend, "optimizer={sgd: {}, learning_rate: 0.1}"};  // adam amplifies rounding
      if (is_sharded) set.push_back("parallelism.fsdp={axis: devices, stage: 3}");
      const setup::Setup setup = with_tensor_axis(axes, set);
      std::vector<std::string> with_layers = set;
      with_layers.push_back(pair_of_dense);
      CHECK(setup.batch.devices == 4);
      CHECK(setup.batch.rows_per_device == 4);
      const Trained found = train_setup(setup), expected = train_setup(setup_of_text(small_images, with_layers));
      // Sums of features have another order.
      check_same_training(found, expected);
    }
  }
}

TEST_CASE("copies along an axis that divides no batch are compared too", "[train]") {
  const setup::Setup setup = with_tensor_axis("[{devices: 4}, {model: 2}]", {});
  train::SessionOptions options;
  options.verify_replicas = true;
  options.between_steps = [](Module& module, std::int64_t step) {
    if (step != 1) return;
    const Handle bias = module.input("conv_0.bias");
    std::vector<std::byte> bytes =
        setup::bytes_of(module, bias, 1);  // at the first of the devices and the second of the models
    bytes.front() ^= std::byte{1};
    module.wait(module.write(bias, 1, bytes));
  };
  const Trained trained = train_setup(setup, options);
  CHECK(trained.ended.reason == "guard");
  CHECK(trained.of<run::Warned>().back().text.starts_with("step 1: parameter 'conv_0.bias' differs on device 1;"));
  options.between_steps = {};
  CHECK(train_setup(setup, options).ended.reason == "duration");
}
