#include "tests/train/steps.h"

#include "core/train/start.h"
#include "tests/train/session_run.h"

namespace pmaptrain::testing {

void fill(CpuExecutor& executor, const train::Setup& setup) {
  train::set_initial_values(executor, setup);
  train::feed_first_batch(executor, setup);
}

train::Setup small_cnn(std::vector<std::string> set) {
  set.insert(set.begin(), {"data.batch_size=16", "data.source.synthetic_images.train=64",
                           "data.source.synthetic_images.test=32", "train.duration=4 steps"});
  return setup_of_config("cnn.yaml", std::move(set));
}

}  // namespace pmaptrain::testing
