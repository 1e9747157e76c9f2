// Copies that must be the same: damage to one is found, and said where.
#include "core/train/replicas.h"

#include <algorithm>
#include <cstring>

#include "core/base/philox.h"
#include "core/setup/start.h"
#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/slice.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// Flips the lowest bit of one byte of an input's copy on one device.
void flip(Module& module, const std::string& input, std::int64_t device, std::size_t at, int bit = 0) {
  const Handle value = module.input(input);
  std::vector<std::byte> damaged = setup::bytes_of(module, value, device);
  damaged[at] ^= std::byte{1} << bit;
  module.wait(module.write(value, device, damaged));
}

// The training step with private copies.
std::unique_ptr<Module> load_copies(const setup::Setup& setup) {
  Source source = setup::step_source(setup);
  source.private_copies = true;
  return make_backend(BackendKind::cpu)->load(std::move(source));
}

train::SessionOptions damaging(const std::string& input, std::int64_t device, std::int64_t at_step) {
  train::SessionOptions options;
  options.verify_replicas = true;
  options.between_steps = [=](Module& module, std::int64_t step) {
    if (step == at_step) flip(module, input, device, 2);
  };
  return options;
}

std::string last_warning(const Trained& trained) { return trained.of<run::Warned>().back().text; }

}  // namespace

TEST_CASE("a flipped bit in one private copy is reported by parameter and device", "[train]") {
  const setup::Setup setup =
      setup_of_text(small_images, {any_backend(), "mesh.axes=[{a: 2}, {b: 3}]", "data.batch_size=12"});
  const Trained trained = train_setup(setup, damaging("dense_0.kernel", 4, 2));
  CHECK(trained.ended.status == "stopped");
  CHECK(trained.ended.reason == "guard");
  CHECK(trained.ended.exit_status == 5);
  CHECK(trained.ended.steps == 2);
  CHECK(last_warning(trained) ==
        "step 2: parameter 'dense_0.kernel' differs on device 4; the checkpoint holds what device 0 has, which may be "
        "damaged too");
  CHECK(trained.of<run::Evaluated>().empty());
}

TEST_CASE("damage to the optimizer's state and to the first device is told from the others'", "[train]") {
  const setup::Setup setup = setup_of_text(small_images);
  const Trained state = train_setup(setup, damaging("adam.nu/conv_0.kernel", 3, 1));
  CHECK(last_warning(state).starts_with("step 1: state 'adam.nu/conv_0.kernel' differs on device 3;"));
  const Trained first = train_setup(setup, damaging("conv_0.bias", 0, 1));
  CHECK(last_warning(first).starts_with("step 1: parameter 'conv_0.bias' differs on device 0;"));
}

TEST_CASE("damage between two comparisons is found at the next, which is logged", "[train]") {
  const setup::Setup setup =
      setup_of_text(small_images, {"train.verify_replicas=3 steps", "train.log_every=never", "train.duration=5 steps"});
  const Trained trained = train_setup(setup, damaging("conv_0.kernel", 2, 1));
  CHECK(trained.ended.exit_status == 5);
  CHECK(trained.ended.steps == 3);
  CHECK(trained.of<run::Logged>().back().step == 3);
  bool found = false;
  for (const run::Warned& warned : trained.of<run::Warned>()) {
    found = found || warned.text.find("parameter 'conv_0.kernel' differs on device 2") != std::string::npos;
  }
  CHECK(found);
}

TEST_CASE("damage after the last comparison of an interval is found at the end of the run", "[train]") {
  const setup::Setup setup = setup_of_text(small_images, {"train.log_every=never", "train.duration=2 steps"});
  const Trained trained = train_setup(setup, damaging("conv_0.kernel", 1, 2));
  CHECK(trained.ended.reason == "guard");
  CHECK(last_warning(trained).starts_with("step 2: parameter 'conv_0.kernel' differs on device 1;"));
}

TEST_CASE("copies without damage pass, and do not change the run", "[train]") {
  const setup::Setup setup = setup_of_text(small_images);
  train::SessionOptions options;
  options.verify_replicas = true;
  const Trained trained = train_setup(setup, options);
  CHECK(trained.ended.reason == "duration");
  CHECK(trained.ended.exit_status == 0);
  CHECK(trained.same_bits(train_setup(setup)));
}

TEST_CASE("several devices that differ are all named, in order", "[train]") {
  const setup::Setup setup = setup_of_text(small_images, {"mesh.axes={a: 5}", "data.remainder=mask"});
  const std::unique_ptr<Module> module = load_copies(setup);
  setup::SlicedReader reader(*module);
  CHECK_FALSE(train::find_divergence(reader));
  flip(*module, "dense_0.bias", 4, 0);
  flip(*module, "dense_0.bias", 1, 1);
  const auto divergence = train::find_divergence(reader);
  REQUIRE(divergence);
  CHECK(divergence->devices == std::vector<std::int64_t>{1, 4});
  CHECK(train::describe(*divergence, *setup.training) == "parameter 'dense_0.bias' differs on devices 1, 4");
}

namespace {

// A model of a few parameters on five devices, with two moments for each.
const std::string tiny = R"(
mesh: {axes: {d: 5}}
data: {source: {synthetic_linear: {features: 3, examples_per_device: 2, noise: 0.1}}, batch_size: all}
model: {layers: [{dense: 2}, tanh, {dense: 1}]}
loss: mean_squared_error
optimizer: {adam: {}, learning_rate: 0.01}
train: {duration: 20 steps}
)";

// One bit of one copy, and when it flips: the same for a number whatever the machine.
struct Flip {
  std::int64_t device = 1, step = 1, interval = 1;
  std::string input;
  std::size_t byte = 0;
  int bit = 0;

  Flip(const Program& program, std::uint32_t number) {
    const PhiloxKey key = stream_key(3, "flips");
    const auto words = philox4x32(key, {number, 0, 0, 0}), more = philox4x32(key, {number, 1, 0, 0});
    std::vector<Variable> kept;
    for (const Variable& candidate : variables_of(program)) {
      if (candidate.group == Group::params || candidate.group == Group::state) kept.push_back(candidate);
    }
    const Variable& damaged = kept[words[0] % kept.size()];
    input = damaged.name;
    byte = words[1] % bytes(damaged.type);
    bit = static_cast<int>(words[2] % 8);
    device = 1 + words[3] % (program.mesh.devices() - 1);
    step = 1 + more[0] % 6;
    interval = 1 + more[1] % 4;
  }

  void damage(Module& module) const { flip(module, input, device, byte, bit); }
};

// The inputs of which some device holds other bytes than the first.
std::vector<std::string> differing(Module& module) {
  const Program& program = module.program(0);
  std::vector<std::string> found;
  for (const Variable& variable : module.variables(0)) {
    if (variable.group != Group::params && variable.group != Group::state) continue;
    const Handle value = module.input(variable.name);
    const std::vector<std::byte> first = setup::bytes_of(module, value, 0);
    bool same = true;
    for (std::int64_t d = 1; d < program.mesh.devices(); ++d) {
      same = same && setup::bytes_of(module, value, d) == first;
    }
    if (!same) found.emplace_back(variable.name);
  }
  return found;
}

}  // namespace

TEST_CASE("each of 200 flipped bits ends its run at once, named by parameter and device, at every interval",
          "[train]") {
  const setup::Setup plain = setup_of_text(tiny);
  const auto covering = static_cast<std::uint32_t>(60 / test::slices_with_sanitizer(6));
  for (const std::uint32_t number : test::some_seeds(covering, 200, 7 * test::slices_with_sanitizer(3))) {
    const Flip flip(*plain.training, number);
    // Half of them by the option, which compares at the log interval.
    const bool by_option = number % 2 == 0;
    const std::string key = by_option ? "train.log_every" : "train.verify_replicas";
    const setup::Setup setup = setup_of_text(tiny, {key + "=" + std::to_string(flip.interval) + " steps"});
    const std::int64_t at = (flip.step + flip.interval - 1) / flip.interval * flip.interval;  // where it compares
    train::SessionOptions options;
    options.verify_replicas = by_option;
    options.between_steps = [&](Module& module, std::int64_t step) {
      if (step == at) flip.damage(module);
    };
    const Trained trained = train_setup(setup, options);
    INFO("flip " << number << ": bit " << flip.bit << " of byte " << flip.byte << " of " << flip.input << " on device "
                 << flip.device << " at step " << at << ", compared every " << flip.interval);
    REQUIRE(trained.ended.exit_status == 5);
    CHECK(trained.ended.steps == at);
    const std::string words = "'" + flip.input + "' differs on device " + std::to_string(flip.device) + ";";
    const std::vector<run::Warned> warned = trained.of<run::Warned>();
    CHECK(std::any_of(warned.begin(), warned.end(),
                      [&](const run::Warned& w) { return w.stops && w.text.find(words) != std::string::npos; }));
  }
}

TEST_CASE("a flipped bit is found at the next comparison unless the steps between make all copies the same again",
          "[train]") {
  const setup::Setup setup = setup_of_text(tiny);
  const Program& program = *setup.training;
  const std::unique_ptr<Module> module = load_copies(setup);
  setup::SlicedReader reader(*module);
  setup::fill_first_batch(*module, setup);
  int healed = 0;
  for (std::uint32_t number = 0; number < 200; ++number) {
    const Flip flip(program, number);
    INFO("flip " << number << ": bit " << flip.bit << " of byte " << flip.byte << " of " << flip.input << " on device "
                 << flip.device << " after step " << flip.step << ", compared every " << flip.interval);
    setup::set_initial_values(*module, setup);
    bool damaged = false;
    for (std::int64_t step = 1; true; ++step) {
      module->submit(setup::train_entry, 0);
      if (step == flip.step) {
        flip.damage(*module);
        damaged = true;
      }
      if (step % flip.interval != 0) continue;
      const auto found = train::find_divergence(reader);
      if (!damaged) {
        REQUIRE_FALSE(found);
        continue;
      }
      // Steps after the damage may round it away again: then all copies are the same to the last bit, and so is what
      // follows. Before such a step, it is always there.
      const std::vector<std::string> differ = differing(*module);
      REQUIRE(found.has_value() == !differ.empty());
      if (step == flip.step) CHECK(differ == std::vector{flip.input});
      if (found) {
        CHECK(found->name == differ.front());
        CHECK(found->devices == std::vector{flip.device});
        CHECK(train::describe(*found, program) ==
              std::string(found->name.find('/') == std::string::npos && found->name.find('.') != std::string::npos
                              ? "parameter"
                              : "state") +
                  " '" + found->name + "' differs on device " + std::to_string(flip.device));
      } else {
        ++healed;
      }
      break;
    }
  }
  CHECK(healed <= 20);
}
