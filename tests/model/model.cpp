// Models against their data: shapes, parameters, the words of refusals, and the equations of layers and losses.
#include "core/model/model.h"

#include <cmath>

#include "core/graph/check.h"
#include "core/ops/list.h"
#include "tests/catch.h"
#include "tests/model/fixture.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

const data::Field image{DType::u8, {28, 28, 1}};

spec::Padding same() { return {spec::PaddingKind::same, {}}; }
spec::Padding valid() { return {spec::PaddingKind::valid, {}}; }

// Loss and metrics of one device's rows.
Feed measured(const spec::Spec& spec, const data::Field& target, const Numbers& outputs, const Numbers& targets) {
  const std::int64_t rows = static_cast<std::int64_t>(targets.size()) / numel(target.shape);
  const std::int64_t width = static_cast<std::int64_t>(outputs.size()) / rows;
  spec::Spec flat = spec;
  flat.model.layers = {layer("flatten_0", spec::Flatten{})};
  const model::Model model = model::make_model(flat, {DType::f64, {width}}, target, std::nullopt, DType::f64);
  Program program;
  Builder b(program, all_ops());
  const Value y = b.input(Group::batch, "y", {DType::f64, {rows, width}, {}});
  Shape shape{rows};
  shape.insert(shape.end(), target.shape.begin(), target.shape.end());
  const Value t = b.input(Group::batch, "t", {target.dtype, shape, {}});
  b.output("loss", model::example_losses(b, model, y, t));
  for (spec::Metric metric : model.metrics) {
    b.output(spec::to_string(metric), model::example_metric(b, model, metric, y, t));
  }
  return run(program, {{"y", outputs}, {"t", targets}});
}

}  // namespace

TEST_CASE("layers have the shapes and parameters of their config", "[model]") {
  const spec::Spec spec = network({layer("conv_0", spec::Conv{32, {3, 3}, {1, 1}, same(), true}),
                                   layer("max_pool_0", spec::MaxPool{{2, 2}, {2, 2}, valid()}),
                                   layer("conv_1", spec::Conv{8, {5, 5}, {2, 2}, valid(), false}),
                                   layer("flatten_0", spec::Flatten{}), layer("head", spec::Dense{10})});
  const model::Model model = model::make_model(spec, image, labels, std::pair{0, 9});
  REQUIRE(model.layers.size() == 5);
  CHECK(model.layers[0].output == Shape{28, 28, 32});
  CHECK(model.layers[1].output == Shape{14, 14, 32});
  CHECK(model.layers[2].output == Shape{5, 5, 8});
  CHECK(model.layers[3].output == Shape{200});
  std::vector<std::string> names;
  for (const model::Parameter& parameter : model.parameters) names.push_back(parameter.name);
  CHECK(names == std::vector<std::string>{"conv_0.kernel", "conv_0.bias", "conv_1.kernel", "head.kernel", "head.bias"});
  CHECK(model.parameters[2].shape == Shape{5, 5, 32, 8});
  CHECK(model.parameters[2].initializer.fan_in == 800);
  CHECK(model.parameter_count() == 320 + 6400 + 2010);
}

TEST_CASE("SAME pads for ceil(input / stride) outputs, the odd element after", "[model]") {
  const spec::Spec spec =
      network({layer("conv_0", spec::Conv{1, {3, 3}, {2, 2}, same(), false}), layer("flatten_0", spec::Flatten{})});
  const model::Model model = model::make_model(spec, {DType::f32, {5, 4, 1}}, labels);
  CHECK(model.layers[0].output == Shape{3, 2, 1});
  // A kernel of ones sums its window: rows -1..1, 1..3, 3..5 and columns 0..2, 2..4.
  Numbers pixels;
  for (int i = 0; i < 20; ++i) pixels.push_back(i);
  const Feed result = forward(model, pixels, {{"conv_0.kernel", Numbers(9, 1.0)}});
  CHECK(result.at("y") == Numbers{18, 18, 81, 63, 90, 66});
}

TEST_CASE("a layer that does not fit its input says what it takes and what would fix it", "[model]") {
  const spec::Dense head{10};
  CHECK(refusal(network({layer("dense_0", head)}), image, labels) ==
        "dense_0 takes features [N]; its input is f32[28,28,1] | put flatten before it: its input becomes [784]");
  CHECK(
      refusal(network({layer("flatten_0", spec::Flatten{}), layer("conv_0", spec::Conv{4, {3, 3}, {1, 1}, {}, true})}),
              image, labels) ==
      "conv_0 takes images [height,width,channels]; its input is f32[784] | put flatten and dense layers after the "
      "convolutions, or use dense here");
  CHECK(refusal(network({layer("max_pool_0", spec::MaxPool{{30, 2}, {1, 1}, valid()})}), image, labels) ==
        "max_pool_0 has window_shape [30,2] with padding VALID, which does not fit into its input f32[28,28,1] | a "
        "smaller window_shape, padding: SAME, or fewer pooling layers before it");
  CHECK(refusal(network({layer("head", head), layer("head", head)}), {DType::f32, {4}}, labels) ==
        "two layers are named 'head' | give one of them another name: {name: ..., dense: ...}");
}

TEST_CASE("a loss refuses targets and outputs that it cannot compare", "[model]") {
  const data::Field features{DType::f32, {4}};
  CHECK(refusal(network({layer("conv_0", spec::Conv{4, {3, 3}, {1, 1}, {}, true})}), image, labels) ==
        "softmax_cross_entropy takes one score for each class [C]; the model gives f32[28,28,4] | end the layers with "
        "flatten and dense: C");
  CHECK(refusal(network({layer("dense_0", spec::Dense{3})}), features, {DType::f32, {3}}) ==
        "softmax_cross_entropy takes class labels; the targets are f32[3] | mean_squared_error takes targets like "
        "these");
  CHECK(refusal(network({layer("dense_0", spec::Dense{3})}, spec::Loss::mean_squared_error), features,
                {DType::f32, {1}}) ==
        "mean_squared_error compares values of one shape; the model gives f32[3], the targets are f32[1] | end the "
        "layers with dense: 1");
  CHECK(refusal(network({layer("dense_0", spec::Dense{1})}, spec::Loss::mean_squared_error), features, labels) ==
        "mean_squared_error takes numbers to compare with; the targets are class labels i32[] | "
        "softmax_cross_entropy takes labels");
  spec::Spec two = network({layer("dense_0", spec::Dense{1})}, spec::Loss::mean_squared_error);
  two.metrics = {spec::Metric::accuracy};
  CHECK(refusal(two, features, {DType::f32, {1}}) ==
        "accuracy takes class labels; the targets are f32[1] | mean_absolute_error takes targets like these");
}

TEST_CASE("labels beyond the model's classes are the data's fault", "[model]") {
  try {
    model::make_model(network({layer("dense_0", spec::Dense{5})}), {DType::f32, {4}}, labels, std::pair{0, 9});
    FAIL("ten classes in five outputs");
  } catch (const Error& error) {
    CHECK(error.status() == ExitStatus::data);
    CHECK(error.diagnostics().front().message == "labels are 0 to 9, but the model has 5 outputs: classes 0 to 4");
    CHECK(error.diagnostics().front().help == "end the layers with dense: 10");
    CHECK(error.diagnostics().front().place.line == 9);
  }
}

TEST_CASE("initial values name parameters of the model, in their shapes; all mistakes are told", "[model]") {
  spec::Spec spec = network({layer("dense_0", spec::Dense{1})}, spec::Loss::mean_squared_error);
  spec.model.initial_values["dense_0.kernal"] = {{1, 1}, {1.0}, {}};
  spec.model.initial_values["dense_0.bias"] = {{2}, {1.0, 2.0}, {}};
  CHECK(refusal(spec, {DType::f32, {1}}, {DType::f32, {1}}) ==
        "model.init gives 'dense_0.bias' as [2]; the parameter is f32[1] | nested lists of shape [1]\n"
        "model.init names 'dense_0.kernal', which is no parameter of this model | did you mean 'dense_0.kernel'?");
}

TEST_CASE("bytes become 0 to 1, then each channel is normalised by its own mean and deviation", "[model]") {
  spec::Spec spec = network({layer("flatten_0", spec::Flatten{})});
  spec.data.normalize = spec::Normalize{{0.5, 0.25, 0.0}, {0.5, 0.25, 2.0}};
  const model::Model model = model::make_model(spec, {DType::u8, {1, 2, 3}}, labels);
  const Feed result = forward(model, {0, 0, 0, 255, 255, 255});
  CHECK(result.at("y") == Numbers{-1, -1, 0, 1, 3, 0.5});
  spec.data.normalize = spec::Normalize{{0.5, 0.5}, {1.0}};
  CHECK(refusal(spec, {DType::u8, {1, 2, 3}}, labels) ==
        "normalize.mean has 2 values, but an input is u8[1,2,3]: 3 channels | one value for all channels, or 3");
}

TEST_CASE("dropout keeps or doubles in training, depends on the row only, and is the identity otherwise", "[model]") {
  const spec::Spec spec = network({layer("dropout_0", spec::Dropout{0.5})});
  const model::Model model = model::make_model(spec, {DType::f32, {64}}, labels);
  const Feed keys{{"dropout_0", {1, 2}}, {"row", {7, 8, 7}}};
  const Numbers y = forward(model, Numbers(192, 1.0), keys, true).at("y");
  double kept = 0;
  for (double value : y) {
    CHECK((value == 0.0 || value == 2.0));
    kept += value / 2;
  }
  CHECK(kept > 60);
  CHECK(kept < 132);
  CHECK(Numbers(y.begin(), y.begin() + 64) == Numbers(y.begin() + 128, y.end()));
  CHECK(Numbers(y.begin(), y.begin() + 64) != Numbers(y.begin() + 64, y.begin() + 128));
  CHECK(forward(model, Numbers(192, 1.0), keys, false).at("y") == Numbers(192, 1.0));
}

TEST_CASE("gelu is the tanh form", "[model]") {
  const spec::Spec spec = network({layer("gelu_0", spec::Gelu{})});
  const model::Model model = model::make_model(spec, {DType::f64, {3}}, labels, std::nullopt, DType::f64);
  const Numbers y = forward(model, {0, 1, -2}).at("y");
  CHECK(y[0] == 0.0);
  CHECK(y[1] == Approx(0.8411919906082768).epsilon(1e-12));
  CHECK(y[2] == Approx(-0.04540230591222).epsilon(1e-10));
}

TEST_CASE("losses and metrics are per example", "[model]") {
  spec::Spec classes = network({});
  classes.metrics = {spec::Metric::accuracy};
  const Feed a = measured(classes, labels, {0, 0, std::log(2.0), 1000, -1000, 0}, {2, 1});
  CHECK(a.at("loss")[0] == Approx(std::log(2.0)));
  CHECK(a.at("loss")[1] == Approx(2000.0));  // no overflow
  CHECK(a.at("accuracy") == Numbers{1, 0});

  spec::Spec numbers = network({}, spec::Loss::mean_squared_error);
  numbers.metrics = {spec::Metric::mean_absolute_error};
  const Feed b = measured(numbers, {DType::f64, {2}}, {1, 2, 3, 4}, {0, 4, 3, 4});
  CHECK(b.at("loss") == Numbers{2.5, 0});
  CHECK(b.at("mean_absolute_error") == Numbers{1.5, 0});
}

TEST_CASE("evaluation sums over all devices in one reduction and leaves padding out", "[model]") {
  const Mesh mesh({{"devices", 2}});
  spec::Spec spec = network({layer("dense_0", spec::Dense{2})});
  spec.metrics = {spec::Metric::accuracy};
  const model::Model model = model::make_model(spec, {DType::f32, {2}}, labels);
  const Program program = model::evaluation_program(model, mesh, mesh.all(), 2, all_ops());
  int reductions = 0;
  for (const Equation& equation : program.equations) reductions += equation.op.as<ops::Psum>() != nullptr ? 1 : 0;
  CHECK(reductions == 1);
  const Feed sums = run(program, {{"dense_0.kernel", {1, 0, 0, 1}},
                                  {"inputs", {1, 0, 0, 1, 1, 0, 9, 9}},
                                  {"targets", {0, 0, 0, 1}},
                                  {"mask", {1, 1, 1, 0}}});
  CHECK(sums.at("count").front() == 3);
  CHECK(sums.at("accuracy").front() == 2);
  const double right = std::log(1 + std::exp(-1.0)), wrong = std::log(1 + std::exp(1.0));
  CHECK(sums.at("loss").front() == Approx(2 * right + wrong).epsilon(1e-6));
}
