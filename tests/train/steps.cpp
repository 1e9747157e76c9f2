#include "tests/train/steps.h"

#include "core/setup/start.h"
#include "tests/session_run.h"

namespace pmaptrain::testing {

std::unique_ptr<Module> load_step(const setup::Setup& setup, const CpuBackendOptions& options) {
  std::unique_ptr<Module> module = CpuBackend(options).load(setup::step_source(setup));
  setup::set_initial_values(*module, setup);
  setup::fill_first_batch(*module, setup);
  return module;
}

void take_steps(Module& module, std::int64_t steps) { module.wait(module.submit(setup::train_entry, 0, steps)); }

setup::Setup small_cnn(std::vector<std::string> set) {
  set.insert(set.begin(), {"data.batch_size=16", "data.source.synthetic_images.train=64",
                           "data.source.synthetic_images.test=32", "train.duration=4 steps"});
  return setup_of_config("cnn.yaml", std::move(set));
}

}  // namespace pmaptrain::testing
