#include "tests/train/steps.h"

#include "tests/session_run.h"

namespace pmaptrain::testing {

std::unique_ptr<Module> load_step(const train::Setup& setup, const CpuBackendOptions& options) {
  std::unique_ptr<Module> module = CpuBackend(options).load(train::step_source(setup));
  train::set_initial_values(*module, setup);
  train::fill_first_batch(*module, setup);
  return module;
}

void run(Module& module, std::int64_t steps) { module.wait(module.submit(train::train_entry, 0, steps)); }

train::Setup small_cnn(std::vector<std::string> set) {
  set.insert(set.begin(), {"data.batch_size=16", "data.source.synthetic_images.train=64",
                           "data.source.synthetic_images.test=32", "train.duration=4 steps"});
  return setup_of_config("cnn.yaml", std::move(set));
}

}  // namespace pmaptrain::testing
