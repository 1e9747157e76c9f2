// The step against finite differences, against itself on other meshes, and its guards.
#include "core/step/step_program.h"

#include <cmath>
#include <limits>

#include "core/equations/arithmetic.h"
#include "core/graph/check.h"
#include "core/graph/differentiate.h"
#include "core/graph/passes.h"
#include "core/graph/text.h"
#include "core/layers/conv.h"
#include "core/layers/dropout.h"
#include "core/layers/pooling.h"
#include "core/layers/reshape.h"
#include "core/losses/huber.h"
#include "core/losses/mean_absolute_error.h"
#include "core/losses/mean_squared_error.h"
#include "core/losses/sigmoid_cross_entropy.h"
#include "core/metrics/quotients.h"
#include "core/metrics/r2.h"
#include "core/optimizers/adam.h"
#include "core/setup/initialize.h"
#include "tests/catch.h"
#include "tests/model/finite_differences.h"
#include "tests/model/fixture.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

const Mesh six({{"replicas", 2}, {"shards", 3}});

// Twelve rows on six devices, two each; device 3 has only padding, and the others hold one or two examples. Padding
// is given large values that would be seen if they counted.
struct BatchRows {
  Numbers mask{1, 1, 1, 0, 1, 1, 0, 0, 0, 1, 1, 1};
  Numbers inputs, labels, rows;

  BatchRows() {
    for (std::size_t row = 0; row < mask.size(); ++row) {
      const double r = static_cast<double>(row);
      for (std::size_t k = 0; k < 3; ++k) {
        inputs.push_back(mask[row] > 0 ? std::sin(1.7 * r + 2.3 * static_cast<double>(k)) : 50.0);
      }
      labels.push_back(static_cast<double>(row * row % 3));
      rows.push_back(100 + r);
    }
  }
};

Feed initial_parameters() {
  Feed feed;
  const auto fill = [&](const char* name, std::size_t count, double phase) {
    for (std::size_t i = 0; i < count; ++i) feed[name].push_back(0.8 * std::cos(phase + 1.3 * static_cast<double>(i)));
  };
  fill("dense_0.kernel", 12, 0.1);
  fill("dense_0.bias", 4, 0.5);
  fill("head.kernel", 12, 0.9);
  fill("head.bias", 3, 1.4);
  return feed;
}

Feed with_batch(Feed feed, const BatchRows& rows) {
  feed["inputs"] = rows.inputs;
  feed["targets"] = rows.labels;
  feed["mask"] = rows.mask;
  feed["rows"] = rows.rows;
  feed["learning_rate"] = {1.0};
  return feed;
}

// The loss of one row, written out: no equation of ours takes part.
double row_loss(const Feed& parameters, const BatchRows& rows, std::size_t row) {
  Numbers hidden = parameters.at("dense_0.bias"), scores = parameters.at("head.bias");
  for (std::size_t j = 0; j < 4; ++j) {
    for (std::size_t k = 0; k < 3; ++k) {
      hidden[j] += rows.inputs[row * 3 + k] * parameters.at("dense_0.kernel")[k * 4 + j];
    }
    for (std::size_t c = 0; c < 3; ++c) scores[c] += std::tanh(hidden[j]) * parameters.at("head.kernel")[j * 3 + c];
  }
  double sum = 0;
  for (double score : scores) sum += std::exp(score);
  return std::log(sum) - scores[static_cast<std::size_t>(rows.labels[row])];
}

double batch_loss(const Feed& parameters, const BatchRows& rows) {
  double sum = 0, count = 0;
  for (std::size_t row = 0; row < rows.mask.size(); ++row) {
    if (rows.mask[row] > 0) sum += row_loss(parameters, rows, row);
    count += rows.mask[row];
  }
  return sum / count;
}

// The step of `net` with rows of three features.
Program step_of(const Network& net, model::BatchShape batch, DType dtype = DType::f64,
                step::Stage stage = step::Stage::final) {
  const model::Model model = model::make_model(net, {dtype, {3}}, labels, dtype);
  return step::train_program(model, net.step, optimizer_of(net, model, batch), batch, all_ops(), stage);
}

int count_of(const std::string& text, const std::string& word) {
  int count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

constexpr double nan_loss = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("a model and its step are made of values in C++, without a config", "[step]") {
  model::Options options;
  options.layers = {{"head", layers::Dense{2}, {}}};
  options.loss = losses::MeanSquaredError{};
  const model::Model model = model::make_model(options, {DType::f64, {1}}, {DType::f64, {2}}, DType::f64);
  const step::Optimizer sgd = step::make_optimizer({optimizers::Sgd{}, 0.5, {}, {}}, model, {}, 1);
  const step::StepProgram step = step::step_program(model, {}, sgd, {1, 1}, all_ops());
  Feed feed{{"inputs", {3}}, {"targets", {1, -1}}, {"mask", {1}}};
  add_numbers(feed, step::step_numbers(model, {}, sgd));
  const Feed result = results_of(step.program, feed);  // all weights are 0, so the errors are -1 and 1
  CHECK(result.at("loss") == Numbers{1});
  CHECK(result.at("head.bias") == Numbers{0.5, -0.5});
  CHECK(result.at("head.kernel") == Numbers{1.5, -1.5});
}

TEST_CASE("an unevenly masked step on a 2x3 mesh with 2 microbatches matches finite differences", "[step]") {
  const BatchRows rows;
  const Feed parameters = initial_parameters();
  const Program program = step_of(classifier(six), {2, 2});
  const Feed result = results_of(program, with_batch(parameters, rows));
  CHECK(result.at("count").front() == 8.0);
  CHECK(result.at("loss").front() == Approx(batch_loss(parameters, rows)).epsilon(1e-12));

  double squares = 0;
  for (const auto& [name, values] : parameters) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double step = 1e-5;
      Feed above = parameters, below = parameters;
      above[name][i] += step;
      below[name][i] -= step;
      const double expected = (batch_loss(above, rows) - batch_loss(below, rows)) / (2 * step);
      const double gradient = values[i] - result.at(name)[i];  // plain sgd at rate 1
      INFO(name << "[" << i << "]");
      CHECK(gradient == Approx(expected).epsilon(1e-7).margin(1e-9));
      squares += gradient * gradient;
    }
  }
  CHECK(result.at("grad_norm").front() == Approx(std::sqrt(squares)).epsilon(1e-12));
}

TEST_CASE("the gradients of a convolutional step match finite differences of its loss", "[step]") {
  Network net = classifier(Mesh({{"devices", 2}}));
  const layers::Padding same{layers::PaddingKind::same, {}}, valid{layers::PaddingKind::valid, {}};
  net.layers = {layer("conv_0", layers::Conv{2, {3, 2}, {1, 1}, same, true}),
                layer("gelu_0", layers::Gelu{}),
                layer("max_pool_0", layers::MaxPool{{2, 2}, {2, 1}, valid}),
                layer("flatten_0", layers::Flatten{}),
                layer("dropout_0", layers::Dropout{0.25}),
                layer("head", layers::Dense{3})};
  net.normalize = FieldStatistics{{0.1}, {0.7}};
  const model::Model model = model::make_model(net, {DType::f64, {4, 4, 1}}, labels, DType::f64);
  const Program program = step::train_program(model, net.step, optimizer_of(net, model, {2, 2}), {2, 2}, all_ops());
  Feed feed{{"targets", {0, 2, 1, 1}}, {"mask", {1, 1, 1, 0}}, {"rows", {4, 5, 6, 7}}};
  add_numbers(feed, step::step_numbers(model, net.step, optimizer_of(net, model)));
  feed["dropout/dropout_0"] = {11, 12};
  for (int i = 0; i < 64; ++i) feed["inputs"].push_back(std::sin(1.0 + 3.1 * i));
  for (const model::Parameter& parameter : model.parameters) {
    feed[parameter.name] = to_numbers(setup::draw(parameter, 5, DType::f64), DType::f64);
  }
  const Feed result = results_of(program, feed);
  check_gradients(program, model, feed, result);
}

TEST_CASE("the gradient of every loss matches finite differences, and every metric is the same in microbatches",
          "[step]") {
  const std::vector<metrics::Metric> of_classes = {metrics::Metric{metric::F1{}},
                                                   metrics::Metric{metric::Precision{each}}};
  const std::vector<metrics::Metric> of_numbers = {metrics::Metric{metric::R2{}}};
  for (const losses::Loss& loss :
       std::vector<losses::Loss>{losses::SoftmaxCrossEntropy{0.2, {{1, 2, 0.5}}, {}}, losses::SigmoidCrossEntropy{},
                                 losses::MeanSquaredError{}, losses::MeanAbsoluteError{}, losses::Huber{0.4}}) {
    Network net = classifier(Mesh({{"devices", 2}}));
    net.loss = loss;
    const bool classes = loss.as<losses::SoftmaxCrossEntropy>() != nullptr;
    net.metrics = classes ? of_classes : of_numbers;
    const Field target = classes ? labels : Field{DType::f64, {3}};
    const model::Model model = model::make_model(net, {DType::f64, {3}}, target, DType::f64);
    const Program program = step::train_program(model, net.step, optimizer_of(net, model, {4, 2}), {4, 2}, all_ops());
    Feed feed = initial_parameters();
    feed["mask"] = {1, 1, 1, 1, 1, 0, 0, 0};
    add_numbers(feed, step::step_numbers(model, net.step, optimizer_of(net, model)));
    for (int i = 0; i < 24; ++i) {
      feed["inputs"].push_back(std::sin(1.0 + 3.1 * i));
      if (classes && i % 3 != 0) continue;
      feed["targets"].push_back(classes ? i % 5 % 3 : 0.5 + 0.5 * std::sin(0.3 * i));
    }
    const Feed result = results_of(program, feed);
    for (const model::Parameter& parameter : model.parameters) {
      for (std::size_t i = 0; i < feed[parameter.name].size(); ++i) {
        const double step = 1e-5;
        Feed above = feed, below = feed;
        above[parameter.name][i] += step;
        below[parameter.name][i] -= step;
        const double up = results_of(program, above)["loss"].front(), down = results_of(program, below)["loss"].front();
        INFO(loss->name() << ", " << parameter.name << "[" << i << "]");
        CHECK(feed[parameter.name][i] - result.at(parameter.name)[i] ==
              Approx((up - down) / (2 * step)).epsilon(1e-6).margin(1e-8));
      }
    }
    const Feed whole =
        results_of(step::train_program(model, net.step, optimizer_of(net, model, {4, 1}), {4, 1}, all_ops()), feed);
    for (const metrics::MeasurePart& part : model::measure_parts(model)) {
      INFO(part.name);
      const Numbers &found = result.at(part.name), &expected = whole.at(part.name);
      REQUIRE(found.size() == static_cast<std::size_t>(numel(part.shape)));
      for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).margin(1e-12));
      CHECK(result.at("epoch/" + part.name).size() == found.size());
    }
  }
}

TEST_CASE("simplifying a step removes equations and changes no bit of what it gives", "[step]") {
  const Program program = step_of(classifier(six), {2, 2}, DType::f32);
  const Program simple = simplify(program);
  const auto equations = [](const Program& of) {
    int count = 0;
    for_each_equation(of.equations, [&](const Equation&) { ++count; });
    return count;
  };
  CHECK(equations(simple) < equations(program));
  CHECK(count_of(to_text(simple), "psum[") == 1);
  const Feed feed = with_batch(initial_parameters(), BatchRows());
  CHECK(results_of(simple, feed) == results_of(program, feed));
}

TEST_CASE("a step reduces once, whatever the number of microbatches, and not inside their loop", "[step]") {
  for (std::int64_t microbatches : {1, 2, 4}) {
    const Program program = step_of(classifier(six), {4, microbatches});
    const std::string text = to_text(program);
    INFO(text);
    CHECK(count_of(text, "psum[") == 1);
    CHECK(count_of(text, "loop[") == (microbatches == 1 ? 0 : 1));
    int at_top = 0;
    for (const Equation& equation : program.equations) at_top += equation.op.as<ops::Psum>() != nullptr ? 1 : 0;
    CHECK(at_top == 1);
  }
}

TEST_CASE("a masked, microbatched step with dropout equals the unsplit one to rounding", "[step]") {
  Network split = classifier(six);
  split.layers.insert(split.layers.begin() + 2, layer("dropout_0", layers::Dropout{0.4}));
  split.optimizer.rule = optimizers::Adam{};
  Network whole = split;
  whole.place(Mesh(), {});

  const BatchRows padded;
  BatchRows dense = padded;
  dense.inputs.clear(), dense.labels.clear(), dense.mask.clear(), dense.rows.clear();
  for (std::size_t row = 0; row < padded.mask.size(); ++row) {
    if (padded.mask[row] == 0) continue;
    dense.inputs.insert(dense.inputs.end(), &padded.inputs[row * 3], &padded.inputs[row * 3] + 3);
    dense.labels.push_back(padded.labels[row]);
    dense.rows.push_back(padded.rows[row]);
    dense.mask.push_back(1);
  }
  Feed parameters = initial_parameters();
  parameters["dropout/dropout_0"] = {123456, 7890};
  for (DType dtype : {DType::f32, DType::f64}) {
    const model::Model model = model::make_model(split, {dtype, {3}}, labels, dtype);
    add_numbers(parameters, step::step_numbers(model, split.step, optimizer_of(split, model)));
    const Feed a = results_of(step_of(split, {2, 2}, dtype), with_batch(parameters, padded));
    const Feed b = results_of(step_of(whole, {8, 1}, dtype), with_batch(parameters, dense));
    const double rounding = dtype == DType::f32 ? 2e-6 : 1e-14;
    REQUIRE(a.size() == b.size());
    for (const auto& [name, values] : a) {
      // Adam's first update is the sign of the gradient, which magnifies rounding where the gradient is near zero.
      const double magnified = name.find('.') != std::string::npos && name.find('/') == std::string::npos ? 1e3 : 1;
      for (std::size_t i = 0; i < values.size(); ++i) {
        INFO(name << "[" << i << "]");
        CHECK(values[i] == Approx(b.at(name)[i]).epsilon(rounding * magnified).margin(rounding * magnified));
      }
    }
  }
}

TEST_CASE("the mean over examples is not the mean of the devices' means", "[step]") {
  const BatchRows rows;
  const Feed parameters = initial_parameters();
  const Feed result = results_of(step_of(classifier(six), {2, 1}), with_batch(parameters, rows));
  // The naive formula: every device with an example divides by its own count, then the mean over those devices.
  double means = 0, devices = 0;
  for (std::size_t device = 0; device < 6; ++device) {
    double sum = 0, count = 0;
    for (std::size_t row = 2 * device; row < 2 * device + 2; ++row) {
      if (rows.mask[row] > 0) sum += row_loss(parameters, rows, row);
      count += rows.mask[row];
    }
    if (count > 0) means += sum / count, devices += 1;
  }
  const double exact = batch_loss(parameters, rows);
  CHECK(result.at("loss").front() == Approx(exact).epsilon(1e-12));
  CHECK(std::abs(means / devices - exact) > 1e-3);
}

TEST_CASE("leaving the synchronisation out is refused with parameter and axis", "[step]") {
  Program program;
  program.mesh = six;
  Builder b(program, all_ops());
  const Value w = b.input(Group::params, "head.kernel", {DType::f32, {3, 2}, {}});
  const Value x = b.input(Group::batch, "inputs", {DType::f32, {4, 3}, AxisSet::of(1)});
  const Value varying = b.vary(w, AxisSet::of(1));
  const Value loss = equations::sum_from(b, b.emit(ops::Matmul{}, {x, varying}), 0);
  const Value seed = b.vary(b.constant(DType::f32, 1.0), AxisSet::of(1));
  const Value gradient = differentiate(b, loss, seed, std::vector{varying}).front();
  program.inputs.front().next = equations::sub(b, w, gradient);
  try {
    check(program);
    FAIL("a parameter that differs between devices was accepted");
  } catch (const Error& error) {
    const Diagnostic& diagnostic = error.diagnostics().front();
    CHECK(diagnostic.message.find("parameter 'head.kernel'") != std::string::npos);
    CHECK(diagnostic.message.find("{shards}") != std::string::npos);
    CHECK(diagnostic.help.find("psum") != std::string::npos);
  }
}

TEST_CASE("halt keeps everything as it was before the first step that is not finite, and stays halted", "[step]") {
  const Program program = step_of(classifier(six), {2, 2});
  const BatchRows rows;
  BatchRows broken = rows;
  broken.inputs[0] = nan_loss;
  const Feed before = initial_parameters();
  const Feed bad = results_of(program, with_batch(before, broken));
  CHECK(std::isnan(bad.at("loss").front()));
  CHECK(bad.at("finite").front() == 0.0);
  CHECK(bad.at("step").front() == 0.0);
  CHECK(bad.at("epoch/examples").front() == 0.0);
  for (const auto& [name, values] : before) CHECK(bad.at(name) == values);

  Feed later = with_batch(before, rows);
  later["finite"] = {0};
  const Feed still = results_of(program, later);
  CHECK(still.at("finite").front() == 0.0);
  for (const auto& [name, values] : before) CHECK(still.at(name) == values);
}

TEST_CASE("skip leaves out the step that is not finite, counts it and goes on", "[step]") {
  Network net = classifier(six);
  net.step.halts = false;
  const Program program = step_of(net, {2, 1});
  const BatchRows rows;
  BatchRows broken = rows;
  broken.inputs[0] = nan_loss;
  const Feed before = initial_parameters();
  const Feed bad = results_of(program, with_batch(before, broken));
  CHECK(bad.at("skipped").front() == 1.0);
  for (const auto& [name, values] : before) CHECK(bad.at(name) == values);

  Feed next = with_batch(before, rows);
  next["skipped"] = bad.at("skipped");
  const Feed good = results_of(program, next);
  CHECK(good.at("skipped").front() == 1.0);
  CHECK(good.at("step").front() == 1.0);
  CHECK(good.at("head.bias") != before.at("head.bias"));
}

TEST_CASE("a batch without an example changes nothing and says so in its count", "[step]") {
  BatchRows empty;
  empty.mask.assign(12, 0);
  const Feed before = initial_parameters();
  const Feed result = results_of(step_of(classifier(six), {2, 1}), with_batch(before, empty));
  CHECK(result.at("count").front() == 0.0);
  CHECK(result.at("finite").front() == 0.0);
  for (const auto& [name, values] : before) CHECK(result.at(name) == values);
}

TEST_CASE("epoch sums add up over steps in double", "[step]") {
  const Program program = step_of(classifier(six), {2, 1}, DType::f32);
  Feed feed = with_batch(initial_parameters(), BatchRows());
  feed["learning_rate"] = {0.0};
  const Feed first = results_of(program, feed);
  for (const char* name : {"epoch/loss", "epoch/accuracy", "epoch/examples"}) feed[name] = first.at(name);
  const Feed second = results_of(program, feed);
  CHECK(second.at("epoch/examples").front() == 16.0);
  CHECK(second.at("epoch/loss").front() == Approx(16 * first.at("loss").front()).epsilon(1e-6));
  CHECK(second.at("epoch/accuracy").front() == Approx(16 * first.at("accuracy").front()).epsilon(1e-6));
}

TEST_CASE("the stages show the forward pass, then this device's gradients, then the whole step", "[step]") {
  const Program forward = step_of(classifier(six), {4, 2}, DType::f32, step::Stage::model);
  CHECK(forward.type(forward.find_input("inputs")->value).shape == Shape{2, 3});  // one microbatch
  CHECK(to_string(forward.type(forward.find_output("loss")->value), six) == "f32[]{replicas, shards}");
  CHECK(count_of(to_text(forward), "psum[") == 0);

  const Program grad = step_of(classifier(six), {4, 2}, DType::f32, step::Stage::grad);
  CHECK(to_string(grad.type(grad.find_output("grad.head.kernel")->value), six) == "f32[4,3]{replicas, shards}");
  CHECK(count_of(to_text(grad), "psum[") == 0);

  const Program step = step_of(classifier(six), {4, 2}, DType::f32);
  for (const Output& output : step.outputs) CHECK(step.type(output.value).varying.empty());
}
