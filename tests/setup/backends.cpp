// What trains on one backend trains on the others. The reference backend carries out everything as late as a module
// may, so it also shows that training reads nothing too early and keeps what it has given away.
#include <filesystem>

#include "core/setup/start.h"
#include "core/setup/values.h"
#include "core/spec/run_format.h"
#include "tests/catch.h"
#include "tests/session_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// Trains on both, and compares what they told and what they left.
void check_same_training(setup::Setup setup) {
  const TemporaryFolder root;
  setup.loaded.spec.mesh.workers = 2;
  const Trained expected = train_setup_in(root / "cpu", setup);
  setup.loaded.spec.mesh.backend = spec::Backend::reference;
  const Trained found = train_setup_in(root / "reference", setup);
  check_same_training(found, expected);
  const auto evaluated = expected.of<run::Evaluated>();
  if (evaluated.empty()) return;
  // A checkpoint that one backend wrote is read by the other, with the tokenizer that its run keeps.
  const std::filesystem::path tokenizer = root.path() / "cpu" / spec::kept_tokenizer;
  if (std::filesystem::exists(tokenizer)) setup.loaded.spec.data.kept_tokenizer = tokenizer.string();
  const evaluate::Evaluation again =
      evaluate::evaluate_checkpoint(setup.loaded, root / "cpu", "last", evaluated.back().split).front();
  CHECK(again.examples == evaluated.back().examples);
  check_near(again.measures, evaluated.back().measures);
}

}  // namespace

TEST_CASE("every shipped config trains on the reference backend as on the CPU", "[setup]") {
  for (const std::string& config : shipped_configs()) {
    INFO(config);
    check_same_training(shortened(config, KernelChoice::reference));
  }
}

TEST_CASE("masks, microbatches, dropout, optimizers and meshes train on the reference backend as on the CPU",
          "[setup]") {
  const std::string mlp = "model.layers=[flatten, {dense: 8}, {dropout: 0.4}, gelu, {dense: 3}]";
  const std::vector<std::vector<std::string>> variations = {
      {"data.microbatches=2"},
      {"data.batch_size=10", "data.remainder=mask", "data.microbatches=3"},
      {mlp, "data.microbatches=2"},
      {mlp, "data.batch_size=all"},                        // one batch, filled once
      {mlp, "data.batch_size=all", "data.shuffle=false"},  // of which only the numbers of rows change
      {"data.batch_size=all", "data.shuffle=false", "optimizer.sgd={momentum: 0.9}"},
      {"optimizer.adamw={}", "train.eval_every=1 step", "train.log_every=never"},
      {"mesh.axes=[{a: 2}, {b: 3}]", "data.batch_size=12", "train.verify_replicas=1 step"},
      {"mesh.axes={a: 13}", "data.remainder=mask"},
      {"optimizer.rmsprop={centered: true, momentum: 0.5}", "optimizer.clip=0.01"},
      {"optimizer.adagrad={}", "optimizer.clip_by_global_norm=0.1", "data.microbatches=2"},
      {"optimizer.lion={}", "optimizer.weight_decay_exclude=[\"*.bias\"]", "optimizer.learning_rate=1.0e-3",
       "optimizer.groups=[{parameters: conv_0.*, freeze: true}, {parameters: \"*.kernel\", weight_decay: 0.1}]"},
      {"optimizer.nadam={}", "train.ema={decay: 0.9}", "train.eval_every=2 steps",
       "optimizer.learning_rate={warmup_cosine_decay: {peak_value: 0.01, warmup: 2, decay: 6}}"},
      {"optimizer.learning_rate=1.0e+38", "train.duration=9 steps"},  // halts
      {"optimizer.learning_rate=1.0e+38", "train.duration=9 steps", "train.on_nonfinite=skip"},
  };
  for (const std::vector<std::string>& set : variations) {
    INFO(set.front() << ' ' << set.back());
    check_same_training(setup_of_text(small_images, set));
  }
}

TEST_CASE("what every backend needs is what it allocates, on every shipped config", "[setup]") {
  for (const std::string& config : shipped_configs()) {
    const setup::Setup setup = shortened(config, KernelChoice::reference);
    for (const BackendKind kind : host_backends) {
      INFO(config << " on " << to_string(kind));
      const std::unique_ptr<Backend> backend = make_backend(kind, {.workers = 2});
      const Source source = setup::run_source(setup);
      const std::unique_ptr<Planned> plan = backend->plan(source);
      const MemoryNeeds needs = plan->needs();
      const std::unique_ptr<Module> module = std::move(*plan).load();
      setup::set_initial_values(*module, setup);
      for (std::size_t entry = 0; entry < source.entries.size(); ++entry) module->wait(module->submit(entry, 0));
      const auto planned = static_cast<double>(needs.total() - needs.programs);
      CHECK(static_cast<double>(module->allocated()) == Approx(planned).epsilon(0.02));
    }
  }
}
