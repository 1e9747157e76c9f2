// What a run takes of memory, as the system counts it, beside what is planned for it.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/data/arrays/idx_source.h"
#include "core/spec/spec.h"
#include "tests/app/call.h"
#include "tests/app/process.h"
#include "tests/catch.h"
#include "tests/slice.h"

using namespace pmaptrain;
using nlohmann::json;
using pmaptrain::tests::call;
using pmaptrain::tests::run_shell;
using pmaptrain::tests::TemporaryFolder;

namespace {

// Through a process of its own: the system counts to a child's peak what its parent held when it was made.
constexpr const char* peak_of = R"(
import os, sys
child = os.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(child, 0)
print(usage.ru_maxrss * 1024 if status == 0 else 'failed')
)";

struct MemoryOfRun {
  double planned = 0, peak = 0;
};

MemoryOfRun memory_of(std::vector<std::string> arguments) {
  const TemporaryFolder folder;
  arguments.insert(arguments.end(), {"--set", "train.checkpoint.every=1 step"});  // with a snapshot
  std::vector<std::string> validate{"validate", "--json"};
  validate.insert(validate.end(), arguments.begin(), arguments.end());
  const json plan = json::parse(call(validate).out);
  std::string command = "exec /usr/bin/python3 -c \"" + std::string(peak_of) +
                        "\" \"$PROGRAM\" run --max-steps 2 -q --progress none --json";
  for (const std::string& argument : arguments) command += " '" + argument + "'";
  const std::string out = run_shell(command + " --run-dir " + (folder / "run")).out;
  const std::size_t last = out.find_last_of('\n', out.size() - 2);
  INFO(out);
  return {plan["memory_bytes"]["total_per_process"].get<double>(), std::stod(out.substr(last + 1))};
}

}  // namespace

TEST_CASE("the peak of a very deep model is what is planned for it and a base, on any workers", "[app][process]") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  WARN("a sanitizer's own memory hides the run's");
  return;
#endif
  const pmaptrain::test::TemporaryFolder folder;
  const auto deep = [&](int layers, const char* workers) {
    std::string list;
    for (int i = 0; i < layers; ++i) list += "    - dense: 8\n    - relu\n";
    return memory_of({folder.write("deep.yaml", R"(mesh: {axes: {devices: 4}}
data: {source: {synthetic_linear: {features: 8, examples_per_device: 16}}, batch_size: 32}
model:
  layers:
)" + list + R"(    - dense: 1
loss: mean_squared_error
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 2 steps}
)"),
                      "--workers", workers});
  };
  const MemoryOfRun base = deep(1, "1");
  pmaptrain::test::Slice slice(4);
  for (const int layers : {300, 3000}) {
    for (const char* const workers : {"1", "4"}) {
      if (!slice.takes()) continue;
      const MemoryOfRun found = deep(layers, workers);
      INFO(layers << " layers, " << workers << " workers: planned " << found.planned << ", base "
                  << base.peak - base.planned);
      CHECK(found.peak == Approx(base.peak - base.planned + found.planned).epsilon(0.15));
    }
  }
}

TEST_CASE("a run's peak is what is planned for it and a base, within a tenth, on every shipped config",
          "[app][process]") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  WARN("a sanitizer's own memory hides the run's");
  return;
#endif
  const MemoryOfRun dense = memory_of({"configs/gradient_averaging.yaml"});
  const MemoryOfRun conv =
      memory_of({"configs/cnn.yaml", "--set", "data.batch_size=8", "--set",
                 "data.source.synthetic_images={height: 8, width: 8, channels: 3, classes: 10, train: "
                 "16, test: 8}"});
  pmaptrain::test::Slice slice(2);
  const auto check = [&](const MemoryOfRun& base, std::vector<std::string> arguments, double data = 0) {
    if (!slice.takes()) return;
    const MemoryOfRun found = memory_of(arguments);
    const double expected = base.peak - base.planned + found.planned + data;
    INFO(arguments.front() << ' ' << arguments.back() << ": planned " << found.planned << ", base "
                           << base.peak - base.planned);
    CHECK(found.peak == Approx(expected).epsilon(0.1));
  };
  check(dense, {"configs/linear_regression.yaml"});
  check(dense, {"configs/linear_regression.yaml", "--set", "model.layers=[{dense: 2000}, {dense: 2000}, {dense: 1}]"});
  check(conv, {"configs/cnn.yaml"});
  check(conv, {"configs/cnn.yaml", "--workers", "8"});
  check(conv, {"configs/cnn.yaml", "--set", "data.batch_size=512"});
  check(conv, {"configs/resnet18.yaml", "--set", "data.batch_size=32", "--set",
               "data.source.synthetic_images={height: 16, width: 16, channels: 3, classes: 10, train: 256, test: 32}"});
  if (std::filesystem::exists(data::FashionMnist{}.dir)) {
    check(conv, {"configs/fashion_mnist.yaml"}, 70'000.0 * (28 * 28 + 1));  // its files, inflated
  } else {
    WARN("dataset-fashion-mnist is not installed: configs/fashion_mnist.yaml is left out");
  }
}
