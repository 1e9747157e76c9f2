// Random small networks of images on few rows a device: what plans and kernels make of any geometry.
#include <cstdint>
#include <string>
#include <vector>

#include "core/spec/keys.h"
#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/slice.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

std::vector<std::string> activations() {
  std::vector<std::string> names;
  for (const spec::Key* layer : spec::alternatives(*spec::find_key("model.layers"))) {
    const std::string name(layer->name());
    const bool other = name == "dense" || name == "conv" || name.ends_with("_pool") || name == "reshape" ||
                       name == "layers" || name == "residual" || name == "repeat" || name == "transpose" ||
                       name == "flatten" || name == "dropout" || name.ends_with("embedding") || name == "attention" ||
                       name == "attend" || name == "parallel" || name == "class_token" || name == "take" ||
                       name == "upsample" || name == "conv_transpose" || name == "lstm" || name == "gru";
    const std::string options = name == "group_norm" ? "{num_groups: 1}" : name == "swiglu" ? "{hidden: 2}" : "{}";
    if (!other) names.push_back(spec::children(*layer).empty() ? name : "{" + name + ": " + options + "}");
  }
  return names;
}

// Of one pooling, activation and number of rows a device; everything else is random.
class NetworkWriter {
 public:
  explicit NetworkWriter(std::uint32_t seed) : seed_(seed), state_(seed * 2654435761u + 777u) {}

  std::string write() {
    const std::vector<std::string> all = activations();
    const auto count = static_cast<std::uint32_t>(all.size());
    const std::string& activation = all[seed_ % count];
    // Rounding differs between backends. The gradient of a bias in front of a norm may be zero but for it; and a norm
    // of one or two features gives little but their order, so where they are nearly equal its gradient enlarges it.
    const bool is_norm = activation.find("norm") != std::string::npos;
    const std::uint32_t pooling = seed_ / count % 4, rows = 1 + (seed_ + seed_ / count) % 3;
    const std::uint32_t devices = 1 + (seed_ / 3 + seed_ / 9 + 1) % 4, batch = rows * devices;
    const std::string window = pair(1 + below(2), 1 + below(2)), strides = pair(1 + below(2), 1 + below(2));
    const std::string slid = "{window_shape: " + window + ", strides: " + strides + ", padding: " + padding() + "}";
    const std::string pools[] = {"flatten", "max_pool: " + slid, "avg_pool: " + slid, "global_avg_pool"};
    const std::string convolution =
        "conv: {features: " + number((is_norm ? 3 : 1) + below(5)) +
        ", kernel_size: " + pair(1 + below(3), 1 + below(3)) + ", strides: " + pair(1 + below(2), 1 + below(2)) +
        ", padding: SAME, use_bias: " + (below(2) == 0 && !is_norm ? "true" : "false") + "}";
    const std::string size =
        "height: " + number(4 + below(3)) + ", width: " + number(4 + below(3)) + ", channels: " + number(1 + below(3));
    return "mesh: {axes: {devices: " + number(devices) + "}, workers: 2}\n" + "data: {source: {synthetic_images: {" +
           size + ", classes: 3, train: " + number(2 * batch) +
           ", test: 3, noise: 0.1}}, batch_size: " + number(batch) + "}\n" + "model: {layers: [" + convolution + ", " +
           activation + ", " + pools[pooling] + ", flatten, dense: 3]}\n" +
           "precision: " + (below(3) == 0 ? "mixed_bfloat16" : "float32") + "\n" +
           "loss: softmax_cross_entropy\nmetrics: [accuracy]\noptimizer: {sgd: {}, learning_rate: 0.1}\n" +
           "train: {duration: 2 steps, log_every: 1 step, eval_every: 2 steps}\n";
  }

 private:
  std::uint32_t below(std::uint32_t n) {
    state_ = state_ * 1664525u + 1013904223u;
    return (state_ >> 16) % n;
  }
  static std::string number(std::uint32_t value) { return std::to_string(value); }
  static std::string pair(std::uint32_t a, std::uint32_t b) { return "[" + number(a) + ", " + number(b) + "]"; }
  std::string padding() { return below(2) == 0 ? "SAME" : "VALID"; }

  std::uint32_t seed_, state_;
};

}  // namespace

TEST_CASE("networks of every pooling and activation train on one to three rows a device as on the reference backend",
          "[train]") {
  // The covering set has each pooling with each activation.
  const auto pairs = static_cast<std::uint32_t>(4 * activations().size());
  for (const std::uint32_t seed : test::some_seeds(pairs, 12 * pairs, 32)) {
    const std::string config = NetworkWriter(seed).write();
    INFO("seed " << seed << "\n" << config);
    const auto trained = [&](const std::vector<std::string>& set) {
      setup::Setup setup = setup_of_text(config, set);
      setup.warnings.clear();  // that a CPU is slow in bf16
      return train_setup(setup);
    };
    const Trained found = trained({}), expected = trained({"mesh.backend=reference"});
    const bool mixed = config.find("mixed") != std::string::npos;
    // A bias is a sum of few gradients that may cancel.
    check_same_training(found, expected, mixed ? Tolerance{5e-2, 5e-2} : Tolerance{1e-5, 1e-3});
  }
}
