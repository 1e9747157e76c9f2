// Random lists of layers whose activations are computed again: the bits of training are those of the same list that
// keeps them.
#include <cstdint>
#include <string>
#include <vector>

#include "core/setup/make_setup.h"
#include "tests/catch.h"
#include "tests/gpu/gpus.h"
#include "tests/session_run.h"
#include "tests/slice.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// Of sequences, of images, or of one dimension. Sizes are such that many steps are cut into 2 to 8 pieces of rows.
class ListWriter {
 public:
  explicit ListWriter(std::uint32_t seed) : kind_(seed % 3), state_(seed * 2654435761u + 99u) {}

  std::string write() {
    static constexpr std::uint32_t sizes[] = {4, 8, 12, 24, 48}, rows[] = {2, 3, 5, 8, 16, 32};
    features_ = sizes[below(5)];
    const std::uint32_t devices = 1 + below(4), each = rows[below(6)], batch = devices * each;
    const std::uint32_t microbatches = each % 2 == 0 && each > 4 ? 1 + below(2) : 1;
    const bool has_padding = below(2) == 0;
    const std::string examples = number(2 * batch + (has_padding ? batch / 2 : 0));
    std::string all = first() + ", " + remat();
    if (below(3) == 0) all += ", " + remat();
    const std::string images = "{synthetic_images: {" +
                               std::string(kind_ == 1 ? "height: 6, width: 6" : "height: 4, width: 4") +
                               ", channels: 3, classes: 4, train: " + examples + ", test: 4, noise: 0.1}}";
    return "mesh: {axes: {devices: " + number(devices) + "}, workers: 2}\n" + "data: {source: " +
           (kind_ == 0 ? std::string("{text: {train: [t.txt], tokens: bytes, length: 8}}") : images) +
           ", batch_size: " + number(batch) + ", microbatches: " + number(microbatches) +
           ", remainder: " + (has_padding ? "mask" : "drop") +
           (kind_ == 0 ? ", limit: {train: " + examples + " examples}" : "") + "}\nmodel: {layers: [" + all + ", " +
           last() + "]}\n" + "precision: " + (below(2) == 0 ? "mixed_bfloat16" : "float32") +
           "\nloss: softmax_cross_entropy\noptimizer: {adam: {}, learning_rate: 0.01}\n"
           "train: {duration: 3 steps, log_every: 1 step, eval_every: never}\n";
  }

 private:
  std::uint32_t below(std::uint32_t n) {
    state_ = state_ * 1664525u + 1013904223u;
    return (state_ >> 16) % n;
  }
  static std::string number(std::uint32_t value) { return std::to_string(value); }
  std::string features() const { return "{features: " + number(features_) + "}"; }

  std::string first() const {
    if (kind_ == 0) return "{embedding: {num_embeddings: 256, features: " + number(features_) + "}}";
    return kind_ == 1 ? convolution() : "flatten, {dense: " + features() + "}";
  }
  std::string last() const {
    if (kind_ == 0) return "{dense: 256}";
    return kind_ == 1 ? "global_avg_pool, {dense: 4}" : "{dense: 4}";
  }
  std::string convolution() const { return "{conv: {features: " + number(features_) + ", kernel_size: [3, 3]}}"; }

  std::string remat() {
    std::string list;
    for (std::uint32_t left = 1 + below(4); left > 0; --left) list += (list.empty() ? "" : ", ") + layer();
    return "{layers: [" + list + "], remat: true}";
  }

  std::string layer() {
    static const std::string shared[] = {"softplus",
                                         "relu",
                                         "gelu",
                                         "tanh",
                                         "silu",
                                         "{elu: {}}",
                                         "softmax",
                                         "rms_norm",
                                         "layer_norm",
                                         "{group_norm: {num_groups: 2}}",
                                         "{batch_norm: {momentum: 0.9}}",
                                         "{batch_norm: {momentum: 0.9, axes: [devices]}}",
                                         "{dropout: 0.3}"};
    constexpr auto count = static_cast<std::uint32_t>(std::size(shared));
    const std::uint32_t which = below(count + 8);
    if (which < count) return shared[which];
    if (which < count + 3) return "{dense: " + features() + "}";
    if (which == count + 3) return "{swiglu: {hidden: " + number(features_) + "}}";
    if (which == count + 4) return "{residual: {layers: [layer_norm, {dense: " + features() + "}, gelu]}}";
    const std::string width = number(features_);
    if (kind_ == 0) {
      if (which == count + 5) return "{attention: {heads: 2}}";
      return which == count + 6 ? "{lstm: " + width + "}" : "{gru: {features: " + width + ", reverse: true}}";
    }
    if (kind_ == 2) return "sigmoid";
    // Twice as large, and back.
    if (which == count + 6) return "{upsample: {scale: 2, method: bilinear}}, " + pool("avg");
    if (which == count + 7) {
      return "{conv_transpose: {features: " + width + ", kernel_size: [3, 3], strides: [2, 2]}}, " + pool("max");
    }
    return convolution();
  }
  static std::string pool(const std::string& kind) {
    return "{" + kind + "_pool: {window_shape: [2, 2], strides: [2, 2]}}";
  }

  std::uint32_t kind_, state_, features_ = 0;
};

class Lists {
 public:
  Lists() {
    std::string text;
    for (std::uint32_t i = 0, state = 1; i < 4000; ++i) {
      state = state * 1664525u + 1013904223u;
      text += static_cast<char>(' ' + (state >> 16) % 90);
    }
    test::write_text(root_ / "t.txt", text);
  }

  void check_same_bits(std::uint32_t seed, const std::vector<std::string>& set) const {
    std::string config = ListWriter(seed).write();
    INFO("seed " << seed << "\n" << config);
    const auto trained = [&] {
      spec::Overrides overrides;
      overrides.set = set;
      setup::Setup setup = setup::make_setup(spec::load_text(config, "test.yaml", root_.path().string(), overrides));
      setup.warnings.clear();
      return train_setup(setup);
    };
    const Trained again = trained();
    for (std::size_t at; (at = config.find(", remat: true")) != std::string::npos;) config.erase(at, 13);
    CHECK(trained().same_bits(again));
  }

 private:
  TemporaryFolder root_;
};

}  // namespace

TEST_CASE("lists of layers that are computed again train to the same bits as those that keep their activations",
          "[train]") {
  const Lists lists;
  for (const std::uint32_t seed : test::some_seeds(6, 480, 120)) lists.check_same_bits(seed, {});
}

DEVICE_TEST_CASE("lists of layers that are computed again train to the same bits on GPUs", "[train][one]") {
  const Lists lists;
  const test::WithGpus gpus(1);
  for (const std::uint32_t seed : test::some_seeds(1, 120, 120)) {
    lists.check_same_bits(seed, {"mesh.backend=cuda", "mesh.workers=1", "mesh.deterministic=true"});
  }
}
