// Groups of parameters: which settings a parameter gets, and what freezing leaves out of the step.
#include <algorithm>

#include "core/setup/programs.h"
#include "core/setup/restore.h"
#include "core/setup/setup.h"
#include "core/setup/values.h"
#include "core/step/optimizer.h"
#include "tests/catch.h"
#include "tests/model/fixture.h"
#include "tests/session_run.h"
#include "tests/train/steps.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// 12 inputs, a hidden layer of 5, 3 classes, on 4 devices.
const std::string small_mlp = R"(mesh: {axes: {devices: 4}}
data: {source: {synthetic_images: {height: 2, width: 2, classes: 3, train: 64, test: 8}}, batch_size: 16}
model: {layers: [flatten, {dense: 5}, tanh, {name: head, dense: 3}]}
loss: softmax_cross_entropy
train: {duration: 2 epochs, log_every: 1 step}
)";

std::string with_optimizer(const std::string& optimizer) { return small_mlp + "optimizer: " + optimizer + "\n"; }

std::string refused(const std::string& optimizer) {
  try {
    setup_of_text(with_optimizer(optimizer));
  } catch (const Error& error) {
    CHECK(error.status() == ExitStatus::usage);
    const Diagnostic& first = error.diagnostics().front();
    return first.message + " | " + first.help;
  }
  return "accepted";
}

const step::ParameterOptions& options_of(const setup::Setup& setup, const std::string& name) {
  for (std::size_t i = 0; i < setup.model.parameters.size(); ++i) {
    if (setup.model.parameters[i].name == name) return setup.optimizer().parameter_options.at(i);
  }
  FAIL("no parameter " << name);
  return setup.optimizer().parameter_options.front();
}

int inputs_named(const Program& program, const std::string& part) {
  const std::vector<Variable> variables = variables_of(program);
  return static_cast<int>(std::count_if(variables.begin(), variables.end(), [&](const Variable& variable) {
    return variable.name.find(part) != std::string_view::npos;
  }));
}

// Equations with a result of this shape.
int results_of(const Program& program, const Shape& shape) {
  int count = 0;
  for_each_equation(program.equations, [&](const Equation& equation) {
    for (const Value result : equation.results) count += program.type(result).shape == shape ? 1 : 0;
  });
  return count;
}

const std::string frozen = "{adam: {}, learning_rate: 0.01, groups: [{parameters: \"dense_0.*\", freeze: true}]}";
const std::string trained = "{adam: {}, learning_rate: 0.01}";

}  // namespace

TEST_CASE("the first group that matches a parameter applies to it", "[train]") {
  const setup::Setup setup = setup_of_text(
      with_optimizer("{adamw: {weight_decay: 0.5}, learning_rate: 0.01, weight_decay_exclude: [\"*.bias\"], groups: ["
                     "{parameters: [\"head.*\"], learning_rate_scale: 10.0, weight_decay: 0.1}, "
                     "{parameters: [\"dense_0.kernel\", \"h*.kernel\"], freeze: false, learning_rate_scale: 3.0}]}"),
      {"optimizer.groups.1.learning_rate_scale=2.0"});
  const step::ParameterOptions& head = options_of(setup, "head.kernel");
  CHECK(head.learning_rate_scale.value == 10.0);
  CHECK(head.weight_decay.value == 0.1);
  const step::ParameterOptions& head_bias = options_of(setup, "head.bias");
  CHECK(head_bias.learning_rate_scale.value == 10.0);
  CHECK(head_bias.weight_decay.value == 0.0);  // excluded, whatever its group says
  const step::ParameterOptions& kernel = options_of(setup, "dense_0.kernel");
  CHECK(kernel.learning_rate_scale.value == 2.0);
  CHECK(kernel.weight_decay.value == 0.5);
  const step::ParameterOptions& bias = options_of(setup, "dense_0.bias");
  CHECK(bias.learning_rate_scale.value == 1.0);
  CHECK(bias.weight_decay.value == 0.0);
}

TEST_CASE("a pattern that matches nothing is refused with the nearest names", "[train]") {
  const auto with_pattern = [](const std::string& pattern) {
    return refused("{adam: {}, learning_rate: 0.01, groups: [{parameters: \"" + pattern + "\", freeze: true}]}");
  };
  CHECK(with_pattern("hed.kernel") == "no parameter of this model matches 'hed.kernel' | did you mean 'head.kernel'?");
  CHECK(with_pattern("conv_*") ==
        "no parameter of this model matches 'conv_*' | the parameters are dense_0.kernel, dense_0.bias, head.kernel, "
        "head.bias");
  CHECK(with_pattern("*") == "groups freeze every parameter of the model | leave at least one parameter to train");
  try {
    setup_of_text(with_optimizer("{adam: {}, learning_rate: 0.01, groups: [{parameters: [\"head.*\", \"x\"]}]}"));
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.diagnostics().front().place.line == 6);
    CHECK(error.diagnostics().front().place.column == 77);
  }
}

TEST_CASE("a group that applies to no parameter, since those before it do, is refused at its place", "[train]") {
  const std::string message =
      "this group applies to no parameter: groups before it match all that its patterns match | the first group that "
      "matches a parameter applies to it: move this group up, or remove it";
  CHECK(refused("{adam: {}, learning_rate: 0.01, groups: [{parameters: \"*\", learning_rate_scale: 2.0}, "
                "{parameters: \"head.*\", learning_rate_scale: 3.0}]}") == message);
  CHECK(refused("{adam: {}, learning_rate: 0.01, groups: [{parameters: \"*.kernel\", freeze: true}, "
                "{parameters: [\"head.kernel\", \"dense_0.k*\"], learning_rate_scale: 3.0}]}") == message);
  CHECK(refused("{adam: {}, learning_rate: 0.01, groups: [{parameters: \"head.*\", learning_rate_scale: 3.0}, "
                "{parameters: \"*\", learning_rate_scale: 2.0}]}") == "accepted");
  try {
    setup_of_text(
        with_optimizer("{adam: {}, learning_rate: 0.01, groups: [{parameters: \"*\"}, {parameters: \"x*\"}, "
                       "{parameters: \"head.*\"}]}"));
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.diagnostics().front().message == "no parameter of this model matches 'x*'");
    CHECK(error.diagnostics().front().place.column == 85);
  }
}

TEST_CASE("weight_decay_exclude is refused where none of its patterns matches", "[train]") {
  const auto with_exclude = [](const std::string& patterns) {
    return refused("{adamw: {}, learning_rate: 0.01, weight_decay_exclude: " + patterns + "}");
  };
  CHECK(with_exclude("[\"*.scale\", \"*.biass\"]") ==
        "no parameter of this model matches weight_decay_exclude | the parameters are dense_0.kernel, dense_0.bias, "
        "head.kernel, head.bias");
  CHECK(with_exclude("hed.bias") ==
        "no parameter of this model matches weight_decay_exclude | did you mean 'head.bias'?");
  CHECK(with_exclude("[\"*.scale\", \"*.bias\"]") == "accepted");
  CHECK(with_exclude("[]") == "accepted");
}

TEST_CASE("frozen parameters have no slots, and nothing replaces them", "[train]") {
  const setup::Setup with = setup_of_text(with_optimizer(frozen)), without = setup_of_text(with_optimizer(trained));
  CHECK(inputs_named(*without.training, "adam.mu/dense_0") == 2);
  CHECK(inputs_named(*with.training, "adam.mu/dense_0") == 0);
  CHECK(inputs_named(*with.training, "adam.nu/dense_0") == 0);
  CHECK(inputs_named(*with.training, "adam.mu/head") == 2);
  for (std::size_t i = 0; i < with.model.parameters.size(); ++i) {
    const bool is_frozen = with.model.parameters[i].name.starts_with("dense_0");
    const std::size_t input = variables_of(*with.training).at(with.roles.parameters[i]).input;
    CHECK(with.training->inputs.at(input).next.has_value() == !is_frozen);
  }
}

TEST_CASE("the moving average of a frozen parameter is the parameter itself", "[train]") {
  const setup::Setup setup = setup_of_text(with_optimizer(frozen), {"train.ema.decay=0.5"});
  CHECK(inputs_named(*setup.training, "ema/dense_0") == 0);
  CHECK(inputs_named(*setup.training, "ema/head") == 2);
  for (std::size_t i = 0; i < setup.model.parameters.size(); ++i) {
    const bool is_frozen = setup.model.parameters[i].name.starts_with("dense_0");
    CHECK((setup.roles.ema.at(i) == setup.roles.parameters[i]) == is_frozen);
  }
  const TemporaryFolder root;
  train_setup_in(root / "run", setup, until(2));
  const std::string checkpoint = root / "run/checkpoints/last/";
  const run::Tensors parameters = run::read_safetensors(checkpoint + "params.safetensors");
  const run::Tensors averages = run::read_safetensors(checkpoint + "ema.safetensors");
  REQUIRE(averages.size() == parameters.size());
  for (const auto& [name, average] : averages) {
    CHECK((average == parameters.at(name)) == name.starts_with("dense_0"));
  }
}

TEST_CASE("averages of frozen parameters in a checkpoint of an older version are ignored", "[train]") {
  const setup::Setup setup = setup_of_text(with_optimizer(frozen), {"train.ema.decay=0.5"});
  const std::unique_ptr<Module> module = load_step(setup);
  run::Tensors kept;
  for (const Variable& variable : module->variables(0)) {
    if (variable.group != Group::state) continue;
    kept[std::string(variable.name)] = {variable.type.dtype, variable.type.shape,
                                        setup::bytes_of(*module, module->input(variable.name))};
  }
  const auto restore = [&](const std::string& also) {
    std::vector<run::TensorView> tensors;
    for (const auto& [name, tensor] : kept) tensors.push_back({name, tensor.dtype, tensor.shape, tensor.bytes});
    const std::vector<std::byte> bias(5 * sizeof(float));
    tensors.push_back({also, DType::f32, {5}, bias});
    setup::write_group(*module, 0, 0, Group::state, tensors, "optimizer.safetensors");
  };
  CHECK_NOTHROW(restore("ema/dense_0.bias"));
  CHECK_THROWS_AS(restore("ema/dense_1.bias"), Error);
  CHECK_THROWS_AS(restore("adam.mu/dense_0.bias"), Error);
}

TEST_CASE("the gradient of a frozen parameter is not in the program and is not sent", "[train]") {
  for (const char* microbatches : {"1", "2"}) {
    const std::vector<std::string> set{std::string("data.microbatches=") + microbatches};
    const setup::Setup with = setup_of_text(with_optimizer(frozen), set);
    const setup::Setup without = setup_of_text(with_optimizer(trained), set);
    const Shape kernel{12, 5};
    // The kernel itself, as each device's own.
    CHECK(results_of(setup::program_at(with, step::Stage::grad), kernel) == 1);
    CHECK(results_of(setup::program_at(without, step::Stage::grad), kernel) > 1);
    CHECK(results_of(*with.training, kernel) <= 1);
    const double frozen_bytes = 4.0 * (64 + 64);  // 12 * 5 and 5 elements, each from a multiple of 64 on
    const double sent = setup::cost_of(*with.training).wire_bytes.front().second;
    const double sent_by_all = setup::cost_of(*without.training).wire_bytes.front().second;
    CHECK(sent_by_all - sent == frozen_bytes);
  }
}

TEST_CASE("frozen parameters keep their bits and have no share of grad_norm, on every backend", "[train]") {
  const std::string backend = any_backend();
  const setup::Setup setup = setup_of_text(with_optimizer(frozen), {backend});
  const Trained run = train_setup(setup);
  const Trained whole = train_setup(setup_of_text(with_optimizer(trained), {backend}));
  CHECK(run.ended.exit_status == 0);
  const Trained start = train_setup(setup_of_text(with_optimizer("{sgd: {}, learning_rate: 0.0}"), {backend}));
  CHECK(run.parameters.at("dense_0.kernel") == start.parameters.at("dense_0.kernel"));
  CHECK(run.parameters.at("dense_0.bias") == start.parameters.at("dense_0.bias"));
  CHECK_FALSE(run.parameters.at("head.kernel") == start.parameters.at("head.kernel"));
  // The first step has the same gradient, of which the head is a part.
  const double of_head = run.of<run::Logged>().front().grad_norm;
  const double of_all = whole.of<run::Logged>().front().grad_norm;
  CHECK(of_head > 0.0);
  CHECK(of_head < of_all);
  const setup::Setup other = setup_of_text(
      with_optimizer("{adam: {}, learning_rate: 0.01, groups: [{parameters: \"head.*\", freeze: true}]}"), {backend});
  const double of_others = train_setup(other).of<run::Logged>().front().grad_norm;
  CHECK(of_head * of_head + of_others * of_others == Approx(of_all * of_all).epsilon(1e-5));
}

TEST_CASE("a step multiplies its rate by what reduce_on_plateau has left of it", "[train]") {
  const std::string schedule = "{linear: {init_value: 0.1, end_value: 0.0, transition: 10 steps}}";
  for (const std::string& rate : {std::string("0.1"), schedule}) {
    const setup::Setup setup =
        setup_of_text(with_optimizer("{sgd: {}, learning_rate: " + rate + ", reduce_on_plateau: {}}"));
    const std::unique_ptr<Module> module = load_step(setup);
    const Handle used = module->output(setup::train_entry, setup.roles.used_learning_rate);
    take_steps(*module);
    CHECK(setup::to_doubles(*module, used).front() == Approx(0.1));
    const std::vector<std::byte> quarter = to_bytes({0.25}, DType::f32);
    module->wait(module->write(module->input(setup::train_entry, setup.roles.learning_rate_scale.value()), every_device,
                               quarter));
    take_steps(*module);
    CHECK(setup::to_doubles(*module, used).front() == Approx(rate == schedule ? 0.0225 : 0.025));
  }
}

TEST_CASE("a model without parameters has a step, clipped or not", "[train]") {
  const std::string text =
      "data: {source: {synthetic_images: {height: 1, width: 3, channels: 1, classes: 3, train: 8, test: 0}}, "
      "batch_size: 4}\nmodel: {layers: [flatten]}\nloss: softmax_cross_entropy\ntrain: {duration: 2 steps}\n"
      "optimizer: {adam: {}, learning_rate: 0.1, clip: 1.0, clip_by_global_norm: 1.0}\n";
  const Trained run = train_setup(setup_of_text(text));
  CHECK(run.ended.exit_status == 0);
  CHECK(run.of<run::Logged>().front().grad_norm == 0.0);
}
