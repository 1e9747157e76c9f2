// Training on emulated GPUs beside training on the CPU.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/runtime/backends.h"
#include "core/runtime/gpu/division.h"
#include "core/train/start.h"
#include "tests/catch.h"
#include "tests/cuda/emulated.h"
#include "tests/session_run.h"

namespace pmaptrain::testing {
namespace {

// The backend cuda has emulated GPUs as long as this lives.
class WithGpus {
 public:
  explicit WithGpus(int count)
      : platform_(test::make_emulated({.devices = count, .seed = static_cast<unsigned>(count)})) {
    set_gpu_platform(platform_.get());
  }
  ~WithGpus() { set_gpu_platform(nullptr); }
  WithGpus(const WithGpus&) = delete;
  WithGpus& operator=(const WithGpus&) = delete;

 private:
  std::unique_ptr<gpu::Platform> platform_;
};

void check_on_gpus(train::Setup setup, const std::vector<int>& counts) {
  const TemporaryFolder root;
  const Trained expected = train_setup_in(root / "cpu", setup);
  setup.loaded.spec.mesh.backend = spec::Backend::cuda;
  for (const bool deterministic : {true, false}) {
    setup.loaded.spec.mesh.deterministic = deterministic;
    std::optional<train::Tensors> one;
    for (const int count : counts) {
      const std::vector<int> possible =
          gpu::divisors(setup.spec().mesh.mesh, count, deterministic ? gpu::Parts::whole_blocks : gpu::Parts::any);
      if (possible.back() != count) continue;
      INFO("GPUs " << count << ", deterministic " << deterministic);
      const WithGpus gpus(count);
      setup.loaded.spec.mesh.workers = count;
      const Trained found = train_setup_in(root / ("gpus" + std::to_string(count) + (deterministic ? "d" : "")), setup);
      check_same_training(found, expected);
      if (!one) one = found.parameters;
      if (!deterministic) continue;
      for (const auto& [name, tensor] : *one) {
        INFO(name);
        CHECK((found.parameters.at(name) == tensor));
      }
    }
  }
}

}  // namespace

TEST_CASE("every shipped config trains on 1, 2 and 4 GPUs as on the CPU", "[cuda]") {
  for (const std::string& config : shipped_configs()) {
    INFO(config);
    check_on_gpus(shortened(config, KernelChoice::reference), {1, 2, 4});
  }
}

TEST_CASE("masks, microbatches, dropout and ensembles train on GPUs as on the CPU", "[cuda]") {
  const std::string mlp = "model.layers=[flatten, {dense: 8}, {dropout: 0.4}, gelu, {dense: 3}]";
  const std::vector<std::vector<std::string>> variations = {
      {"data.batch_size=10", "data.remainder=mask", "data.microbatches=3"},
      {mlp, "data.microbatches=2", "optimizer.adamw={}", "train.eval_every=1 step"},
      {"mesh.axes=[{a: 2}, {b: 3}]", "data.batch_size=12", "train.verify_replicas=1 step"},
      {"optimizer.learning_rate=1.0e+38", "train.duration=9 steps", "train.on_nonfinite=skip"},
  };
  for (const std::vector<std::string>& set : variations) {
    INFO(set.front() << ' ' << set.back());
    check_on_gpus(setup_of_text(small_images, set), {1, 2});
  }
}

}  // namespace pmaptrain::testing
