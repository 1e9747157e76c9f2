// Models against their data: shapes, parameters, the words of refusals, and the equations of layers and losses.
#include "core/model/model.h"

#include <cmath>
#include <limits>

#include "core/graph/check.h"
#include "core/layers/conv.h"
#include "core/layers/dropout.h"
#include "core/layers/pooling.h"
#include "core/layers/reshape.h"
#include "core/losses/huber.h"
#include "core/losses/mean_absolute_error.h"
#include "core/losses/mean_squared_error.h"
#include "core/losses/sigmoid_cross_entropy.h"
#include "core/metrics/errors.h"
#include "core/metrics/matthews_corrcoef.h"
#include "core/metrics/overlap.h"
#include "core/metrics/perplexity.h"
#include "core/metrics/r2.h"
#include "core/ops/list.h"
#include "tests/catch.h"
#include "tests/model/fixture.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

const Field photo{DType::u8, {28, 28, 1}};

layers::Padding same() { return {layers::PaddingKind::same, {}}; }
layers::Padding valid() { return {layers::PaddingKind::valid, {}}; }

// The losses of one device's rows, and the metrics of those that `mask` leaves.
Feed measured(const Network& net, const Field& target, const Numbers& outputs, const Numbers& targets,
              Numbers mask = {}) {
  const std::int64_t rows = static_cast<std::int64_t>(targets.size()) / numel(target.shape);
  const std::int64_t width = static_cast<std::int64_t>(outputs.size()) / rows;
  if (mask.empty()) mask.assign(static_cast<std::size_t>(rows), 1);
  Network flat = net;
  flat.layers = {layer("flatten_0", layers::Flatten{})};
  const model::Model model = model::make_model(flat, {DType::f64, {width}}, target, DType::f64);
  Program program;
  Builder b(program, all_ops());
  const Value y = b.input(Group::batch, "y", {DType::f64, {rows, width}, {}});
  Shape shape{rows};
  shape.insert(shape.end(), target.shape.begin(), target.shape.end());
  const Value t = b.input(Group::batch, "t", {target.dtype, shape, {}});
  const Value m = b.input(Group::batch, "mask", {DType::f32, {rows}, {}});
  const std::vector<equations::Number> declared = model::loss_numbers(model);
  const equations::Numbers numbers(declared, equations::declare_numbers(b, declared));
  const model::LocalSums sums = model::local_sums(b, model, y, t, m, numbers, {});
  const std::vector<metrics::MeasurePart> parts = model::measure_parts(model);
  REQUIRE(parts.size() == sums.measures.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    REQUIRE(b.type(sums.measures[i]).shape == parts[i].shape);
    b.output("part " + parts[i].name, sums.measures[i]);
  }
  b.output("count", sums.count);
  b.output("loss", model::example_losses(b, model, y, t, numbers));
  Feed feed{{"y", outputs}, {"t", targets}, {"mask", mask}};
  add_numbers(feed, declared);
  Feed found = results_of(program, feed);
  std::vector<Numbers> means;
  for (const metrics::MeasurePart& part : parts) {
    means.push_back(found.at("part " + part.name));
    for (double& sum : means.back()) sum /= found.at("count").front();
  }
  for (const auto& [name, value] : model::finish_measures(model, means)) {
    if (name != "loss") found[name] = {value};
  }
  return found;
}

}  // namespace

TEST_CASE("layers have the shapes and parameters of their config", "[model]") {
  const Network net = network({layer("conv_0", layers::Conv{32, {3, 3}, {1, 1}, same(), true}),
                               layer("max_pool_0", layers::MaxPool{{2, 2}, {2, 2}, valid()}),
                               layer("conv_1", layers::Conv{8, {5, 5}, {2, 2}, valid(), false}),
                               layer("flatten_0", layers::Flatten{}), layer("head", layers::Dense{10})});
  const model::Model model = model::make_model(net, photo, labels);
  REQUIRE(model.layers.size() == 5);
  CHECK(model.layers[0].output == Shape{28, 28, 32});
  CHECK(model.layers[1].output == Shape{14, 14, 32});
  CHECK(model.layers[2].output == Shape{5, 5, 8});
  CHECK(model.layers[3].output == Shape{200});
  std::vector<std::string> names;
  for (const model::Parameter& parameter : model.parameters) names.push_back(parameter.name);
  CHECK(names == std::vector<std::string>{"conv_0.kernel", "conv_0.bias", "conv_1.kernel", "head.kernel", "head.bias"});
  CHECK(model.parameters[2].shape == Shape{5, 5, 32, 8});
  CHECK(model.parameters[2].initializer.scale == lecun_scale(800));
  CHECK(model.parameter_count() == 320 + 6400 + 2010);
}

TEST_CASE("SAME pads for ceil(input / stride) outputs, the odd element after", "[model]") {
  const Network net =
      network({layer("conv_0", layers::Conv{1, {3, 3}, {2, 2}, same(), false}), layer("flatten_0", layers::Flatten{})});
  const model::Model model = model::make_model(net, {DType::f32, {5, 4, 1}}, labels);
  CHECK(model.layers[0].output == Shape{3, 2, 1});
  // A kernel of ones sums its window: rows -1..1, 1..3, 3..5 and columns 0..2, 2..4.
  Numbers pixels;
  for (int i = 0; i < 20; ++i) pixels.push_back(i);
  const Feed result = forward(model, pixels, {{"conv_0.kernel", Numbers(9, 1.0)}});
  CHECK(result.at("y") == Numbers{18, 18, 81, 63, 90, 66});
}

TEST_CASE("a layer that does not fit its input is refused with the expected input and a fix", "[model]") {
  const layers::Dense head{10};
  CHECK(refusal(network({layer("dense_0", head)}), photo, labels) ==
        "softmax_cross_entropy takes one logit for each class, [C]; the output of the model is f32[28,28,10] | end the "
        "layers with flatten and dense: C");
  CHECK(refusal(network({layer("flatten_0", layers::Flatten{}),
                         layer("conv_0", layers::Conv{4, {3, 3}, {1, 1}, {}, true})}),
                photo, labels) ==
        "conv_0 takes images [height,width,channels]; its input is f32[784] | move flatten and dense layers after the "
        "convolutions, or use dense here");
  CHECK(refusal(network({layer("max_pool_0", layers::MaxPool{{30, 2}, {1, 1}, valid()})}), photo, labels) ==
        "max_pool_0 has window_shape [30,2] with padding VALID, which does not fit into its input f32[28,28,1] | use a "
        "smaller window_shape, padding: SAME, or fewer pooling layers before it");
  CHECK(refusal(network({layer("head", head), layer("head", head)}), {DType::f32, {4}}, labels) ==
        "two layers are named 'head' | give one of them another name: {name: ..., dense: ...}");
}

TEST_CASE("a loss refuses outputs and targets of the wrong type or shape", "[model]") {
  const Field features{DType::f32, {4}};
  CHECK(refusal(network({layer("conv_0", layers::Conv{4, {3, 3}, {1, 1}, {}, true})}), photo, labels) ==
        "softmax_cross_entropy takes one logit for each class, [C]; the output of the model is f32[28,28,4] | end the "
        "layers with flatten and dense: C");
  CHECK(refusal(network({layer("dense_0", layers::Dense{1})}), features, labels) ==
        "softmax_cross_entropy takes one logit for each class; the output of the model is f32[1], a single one | for "
        "labels 0 and 1 use sigmoid_cross_entropy; else end the layers with dense: C for C classes");
  CHECK(refusal(network({layer("dense_0", layers::Dense{3})}), features, {DType::f32, {4}}) ==
        "softmax_cross_entropy takes one logit for each class; the output of the model is f32[3], the targets are "
        "f32[4]: probabilities of 4 classes | end the layers with flatten and dense: 4");
  CHECK(
      refusal(network({layer("dense_0", layers::Dense{3})}, losses::MeanSquaredError{}), features, {DType::f32, {1}}) ==
      "mean_squared_error needs outputs and targets of equal shape; the output of the model is f32[3], the targets "
      "are f32[1] | end the layers with dense: 1");
  CHECK(refusal(network({layer("dense_0", layers::Dense{1})}, losses::MeanSquaredError{}), features, labels) ==
        "mean_squared_error takes numbers; the targets are class labels i32[] | softmax_cross_entropy takes labels");
  Network two = network({layer("dense_0", layers::Dense{1})}, losses::MeanSquaredError{});
  two.metrics = {metrics::Metric{metric::Accuracy{}}};
  CHECK(refusal(two, features, {DType::f32, {1}}) ==
        "accuracy takes class labels; the targets are f32[1] | mean_absolute_error takes targets like these; if they "
        "are labels, store them as integers");
}

TEST_CASE("initial values need the names and shapes of parameters; all errors are reported", "[model]") {
  Network net = network({layer("dense_0", layers::Dense{1})}, losses::MeanSquaredError{});
  net.initial_values["dense_0.kernal"] = {{1, 1}, {1.0}, {}};
  net.initial_values["dense_0.bias"] = {{2}, {1.0, 2.0}, {}};
  CHECK(refusal(net, {DType::f32, {1}}, {DType::f32, {1}}) ==
        "model.init has 'dense_0.bias' with the shape [2]; the parameter is f32[1] | write nested lists of shape "
        "[1]\nmodel.init names 'dense_0.kernal', which is not a parameter of this model | did you mean "
        "'dense_0.kernel'?");
}

TEST_CASE("u8 inputs are scaled to 0..1, then each channel is normalised with its mean and deviation", "[model]") {
  Network net = network({layer("flatten_0", layers::Flatten{})});
  net.normalize = FieldStatistics{{0.5, 0.25, 0.0}, {0.5, 0.25, 2.0}};
  const model::Model model = model::make_model(net, {DType::u8, {1, 2, 3}}, labels);
  const Feed result = forward(model, {0, 0, 0, 255, 255, 255});
  CHECK(result.at("y") == Numbers{-1, -1, 0, 1, 3, 0.5});
  net.normalize = FieldStatistics{{0.5, 0.5}, {1.0}};
  CHECK(refusal(net, {DType::u8, {1, 2, 3}}, labels) ==
        "normalize.mean has 2 values, but an input is u8[1,2,3]: 3 channels | give one value for all channels, or 3 "
        "values");
}

TEST_CASE("a window that does not fit is shown with the padding that was written", "[model]") {
  const auto pool = [](layers::Padding padding) {
    return refusal(network({layer("pool", layers::MaxPool{{5, 5}, {1, 1}, std::move(padding)})}),
                   {DType::f32, {2, 3, 1}}, labels);
  };
  const auto words = [](const std::string& padding) {
    return "pool has window_shape [5,5] with padding " + padding +
           ", which does not fit into its input f32[2,3,1] | use a smaller window_shape, padding: SAME, or fewer "
           "pooling layers before it";
  };
  CHECK(pool({layers::PaddingKind::explicit_, {{1, 0}, {0, 2}}}) == words("[[1,0],[0,2]]"));
  CHECK(pool({layers::PaddingKind::valid, {}}) == words("VALID"));
}

TEST_CASE("dropout keeps or doubles in training, depends on the row only, and is the identity otherwise", "[model]") {
  const Network net = network({layer("dropout_0", layers::Dropout{0.5})});
  const model::Model model = model::make_model(net, {DType::f32, {64}}, labels);
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
  const Network net = network({layer("gelu_0", layers::Gelu{})});
  const model::Model model = model::make_model(net, {DType::f64, {3}}, labels, DType::f64);
  const Numbers y = forward(model, {0, 1, -2}).at("y");
  CHECK(y[0] == 0.0);
  CHECK(y[1] == Approx(0.8411919906082768).epsilon(1e-12));
  CHECK(y[2] == Approx(-0.04540230591222).epsilon(1e-10));
}

TEST_CASE("softmax cross-entropy smooths labels and weighs classes", "[model]") {
  Network net = network({});
  const Numbers logits = {0, 0, std::log(2.0), 1000, -1000, 0}, wanted = {2, 1};
  const Feed plain = measured(net, labels, logits, wanted);
  CHECK(plain.at("loss")[0] == Approx(std::log(2.0)));
  CHECK(plain.at("loss")[1] == Approx(2000.0));  // no overflow

  net.loss = losses::SoftmaxCrossEntropy{0.3, {}, {}};
  // Probabilities 1/4, 1/4, 1/2 against 0.1, 0.1, 0.8: 0.2 log 4 + 0.8 log 2.
  CHECK(measured(net, labels, logits, wanted).at("loss")[0] == Approx(1.2 * std::log(2.0)));
  net.loss = losses::SoftmaxCrossEntropy{0.0, {{1.0, 0.5, 3.0}}, {}};
  const Feed weighed = measured(net, labels, logits, wanted);
  CHECK(weighed.at("loss")[0] == Approx(3 * std::log(2.0)));
  CHECK(weighed.at("loss")[1] == Approx(1000.0));
}

TEST_CASE("sigmoid cross-entropy takes numbers for each output, or labels for one", "[model]") {
  const Network net = network({}, losses::SigmoidCrossEntropy{});
  const double zero = std::log(2.0), one = std::log1p(std::exp(-1.0));
  const Feed numbers = measured(net, {DType::f64, {2}}, {0, 1, -1000, 1000}, {0.25, 1, 1, 0});
  CHECK(numbers.at("loss")[0] == Approx((zero + one) / 2));
  CHECK(numbers.at("loss")[1] == Approx(1000.0));

  Network binary = net;
  binary.metrics = {metrics::Metric{metric::Accuracy{}}, metrics::Metric{metric::Recall{each}}};
  const Feed found = measured(binary, labels, {1, -1, 2, -3}, {1, 1, 0, 0});
  CHECK(found.at("loss")[0] == Approx(one));
  CHECK(found.at("loss")[1] == Approx(1 + one));
  CHECK(found.at("accuracy") == Numbers{0.5});
  CHECK(found.at("recall_0") == Numbers{0.5});
  CHECK(found.at("recall_1") == Numbers{0.5});

  // Precision, recall and F1 of two classes are those of class 1, which is said once, rightly, and right three times.
  binary.metrics = {metrics::Metric{metric::Precision{}}, metrics::Metric{metric::Recall{}},
                    metrics::Metric{metric::F1{}}};
  const Feed positive = measured(binary, labels, {1, -1, -2, -3}, {1, 1, 1, 0});
  CHECK(positive.at("precision").front() == Approx(1.0));
  CHECK(positive.at("recall").front() == Approx(1.0 / 3));
  CHECK(positive.at("f1").front() == Approx(0.5));
}

TEST_CASE("the macro average excludes classes without labels and predictions", "[model]") {
  Network net = network({});
  net.metrics = {metrics::Metric{metric::Precision{}}, metrics::Metric{metric::Recall{}},
                 metrics::Metric{metric::F1{}},        metrics::Metric{metric::F1{each}},
                 metrics::Metric{metric::MeanIou{}},   metrics::Metric{metric::MeanIou{each}},
                 metrics::Metric{metric::Dice{}}};
  // Of four classes, 0 and 1 occur, 2 is said wrongly, and 3 is only padding's.
  const Feed found =
      measured(net, labels, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}, {0, 1, 1, 3}, {1, 1, 1, 0});
  CHECK(found.at("precision").front() == Approx((1.0 + 1.0 + 0.0) / 3));
  CHECK(found.at("recall").front() == Approx((1.0 + 0.5 + 0.0) / 3));
  CHECK(found.at("f1").front() == Approx((1.0 + 2.0 / 3 + 0.0) / 3));
  CHECK(found.at("f1_3") == Numbers{0});
  CHECK(found.at("mean_iou").front() == Approx((1.0 + 0.5 + 0.0) / 3));
  CHECK(found.at("iou_1").front() == Approx(0.5));
  CHECK(found.at("dice") == found.at("f1"));
  const Feed perfect = measured(net, labels, {1, 0, 0, 0, 0, 1, 0, 0}, {0, 1});
  for (const char* name : {"precision", "recall", "f1", "mean_iou", "dice"}) CHECK(perfect.at(name) == Numbers{1});
}

TEST_CASE("the Matthews coefficient is 1 for right predictions, -1 for two classes swapped, and 0 for one class alone",
          "[model]") {
  const metrics::Metric correlation{metric::MatthewsCorrcoef{}};
  Network net = network({});
  net.metrics = {correlation};
  const auto found = [&](const Numbers& scores, const Numbers& classes, const Numbers& mask) {
    return measured(net, labels, scores, classes, mask).at("matthews_corrcoef").front();
  };
  // The last example is padding.
  CHECK(found({1, 0, 0, 1, 1, 0}, {0, 1, 1}, {1, 1, 0}) == 1);
  CHECK(found({1, 0, 0, 1, 1, 0}, {1, 0, 0}, {1, 1, 0}) == -1);
  CHECK(found({1, 0, 1, 0, 1, 0}, {0, 1, 1}, {1, 1, 1}) == 0);
  CHECK(found({1, 0, 0, 1, 1, 0}, {1, 1, 1}, {0.3, 0.2, 0.1}) == 0);
  CHECK(found({1, 0, 0, 1, 1, 0}, {1, 1, 1}, {0, 0, 0}) == 0);
  // Two of three are right: (hits * all - by chance) / sqrt((all^2 - predicted^2) (all^2 - actual^2)).
  CHECK(found({1, 0, 0, 0, 1, 0, 0, 0, 1}, {0, 2, 2}, {1, 1, 1}) == Approx((2 * 3 - 3) / std::sqrt(6.0 * 4.0)));
  // Of 100,000 examples one is of the rare class: it is found, or taken for another one.
  const auto of_rare = [&](double hits) {
    const model::Model model = model::make_model(net, {DType::f64, {2}}, labels, DType::f64);
    const std::vector<std::vector<double>> sums{{99998 + hits, hits}, {99999, 1}, {99999, 1}};
    return model.metrics.front().finish(sums).front();
  };
  CHECK(of_rare(1) == Approx(1));
  CHECK(of_rare(0) == Approx(-1e-5).epsilon(1e-3));

  Network several = network({layer("dense_0", layers::Dense{3})}, losses::SigmoidCrossEntropy{});
  several.metrics = {correlation};
  CHECK(refusal(several, {DType::f32, {4}}, {DType::f32, {3}}) ==
        "matthews_corrcoef takes one class for each example; the targets are several labels, f32[3] | f1, roc_auc and "
        "average_precision take several labels");
}

TEST_CASE("one-hot labels give the loss of labels, and class probabilities the weighted mean over the classes",
          "[model]") {
  const Numbers scores = {2, 1, 0, 0, 2, 1, 1, 0, 2};
  const Field probabilities{DType::f64, {3}};
  for (const losses::SoftmaxCrossEntropy& loss :
       {losses::SoftmaxCrossEntropy{}, losses::SoftmaxCrossEntropy{0.2, {}, {}},
        losses::SoftmaxCrossEntropy{0.2, {{1, 3, 0.5}}, {}}}) {
    Network net = network({}, loss);
    net.metrics = {metrics::Metric{metric::Accuracy{}}, metrics::Metric{metric::TopKAccuracy{2}},
                   metrics::Metric{metric::F1{}}, metrics::Metric{metric::Perplexity{}}};
    CHECK(measured(net, probabilities, scores, {1, 0, 0, 0, 1, 0, 0, 1, 0}, {1, 1, 1}) ==
          measured(net, labels, scores, {0, 1, 1}, {1, 1, 1}));
  }
  Network net = network({});
  net.metrics = {metrics::Metric{metric::Accuracy{}}};
  const Feed soft = measured(net, probabilities, {2, 1, 0}, {0.25, 0.75, 0});
  CHECK(soft.at("loss").front() == Approx(std::log(std::exp(2.0) + std::exp(1.0) + 1) - 0.25 * 2 - 0.75 * 1));
  CHECK(soft.at("accuracy") == Numbers{0});
}

TEST_CASE("losses of numbers are means over an example's outputs", "[model]") {
  const Field two{DType::f64, {2}};
  const Numbers y = {1, 2, 3, 4}, t = {0, 5, 3, 4};
  CHECK(measured(network({}, losses::MeanSquaredError{}), two, y, t).at("loss") == Numbers{5, 0});
  CHECK(measured(network({}, losses::MeanAbsoluteError{}), two, y, t).at("loss") == Numbers{2, 0});
  CHECK(measured(network({}, losses::Huber{}), two, y, t).at("loss") == Numbers{(0.5 + 2.5) / 2, 0});
  CHECK(measured(network({}, losses::Huber{2.0}), two, y, t).at("loss") == Numbers{(0.5 + 4) / 2, 0});
}

TEST_CASE("metrics of classes follow their formulas and exclude padding", "[model]") {
  Network net = network({});
  net.metrics = {metrics::Metric{metric::Accuracy{}},  metrics::Metric{metric::TopKAccuracy{2}},
                 metrics::Metric{metric::Precision{}}, metrics::Metric{metric::Precision{each}},
                 metrics::Metric{metric::Recall{}},    metrics::Metric{metric::Recall{each}},
                 metrics::Metric{metric::F1{}},        metrics::Metric{metric::F1{each}},
                 metrics::Metric{metric::Perplexity{}}};
  // Said: 0, 0, 1, 1, and 2 of padding. Right: 0, 1, 1, 2, 2. Class 2 is never said.
  const Feed found =
      measured(net, labels, {2, 1, 0, 2, 1, 0, 0, 2, 1, 0, 2, 1, 0, 0, 9}, {0, 1, 1, 2, 2}, {1, 1, 1, 1, 0});
  CHECK(found.at("accuracy") == Numbers{0.5});
  CHECK(found.at("top_2_accuracy") == Numbers{1.0});
  CHECK(found.at("precision_0").front() == Approx(1.0 / 2));
  CHECK(found.at("precision_1").front() == Approx(1.0 / 2));
  CHECK(found.at("precision_2").front() == 0.0);
  CHECK(found.at("precision").front() == Approx(1.0 / 3));
  CHECK(found.at("recall_0").front() == Approx(1.0));
  CHECK(found.at("recall_1").front() == Approx(0.5));
  CHECK(found.at("recall_2").front() == 0.0);
  CHECK(found.at("recall").front() == Approx(0.5));
  CHECK(found.at("f1_0").front() == Approx(2.0 / 3));
  CHECK(found.at("f1_1").front() == Approx(0.5));
  CHECK(found.at("f1_2").front() == 0.0);
  CHECK(found.at("f1").front() == Approx((2.0 / 3 + 0.5) / 3));
  const double partition = std::log(std::exp(2.0) + std::exp(1.0) + 1);
  CHECK(found.at("perplexity").front() == Approx(std::exp(partition - (2 + 1 + 2 + 1) / 4.0)));
}

TEST_CASE("metrics of numbers are means, and R² of each output", "[model]") {
  Network net = network({}, losses::Huber{});
  net.metrics = {metrics::Metric{metric::MeanAbsoluteError{}}, metrics::Metric{metric::MeanSquaredError{}},
                 metrics::Metric{metric::RootMeanSquaredError{}}, metrics::Metric{metric::R2{}}};
  const Field two{DType::f64, {2}};
  // Targets 1, 3, 5 and 0, 0, 6; squared errors 0 + 1 + 4 of 8 and 1 + 0 + 0 of 24.
  const Feed found = measured(net, two, {1, 1, 4, 0, 3, 6, 70, 7}, {1, 0, 3, 0, 5, 6, 9, 9}, {1, 1, 1, 0});
  CHECK(found.at("mean_absolute_error").front() == Approx((1 + 1 + 2) / 6.0));
  CHECK(found.at("mean_squared_error").front() == Approx((1 + 1 + 4) / 6.0));
  CHECK(found.at("root_mean_squared_error").front() == Approx((std::sqrt(5.0 / 3) + std::sqrt(1.0 / 3)) / 2));
  CHECK(found.at("r2").front() == Approx(((1 - 5.0 / 8) + (1 - 1.0 / 24)) / 2));
  const Field one{DType::f64, {1}};
  CHECK(measured(net, one, {2, 2}, {2, 2}).at("r2") == Numbers{1});
  CHECK(measured(net, one, {2, 3}, {2, 2}).at("r2") == Numbers{0});
}

TEST_CASE("padding of any value changes no loss and no metric", "[model]") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
  const auto compare = [](const Network& net, const Field& target, Numbers outputs, Numbers targets,
                          const Numbers& padding, const Numbers& padding_targets) {
    const auto examples = outputs.size() / padding.size();
    Feed without = measured(net, target, outputs, targets, Numbers(examples, 1.0));
    outputs.insert(outputs.end(), padding.begin(), padding.end());
    targets.insert(targets.end(), padding_targets.begin(), padding_targets.end());
    Numbers mask(examples, 1.0);
    mask.push_back(0.0);
    Feed with = measured(net, target, outputs, targets, mask);
    with.erase("loss"), without.erase("loss");  // of each row; their sum is a part
    CHECK(with == without);
    for (const auto& [name, values] : without) {
      INFO(name);
      for (double value : values) CHECK(std::isfinite(value));
    }
  };
  const std::vector<Numbers> bad = {{infinity, 0, 1}, {-infinity, 2, 0}, {not_a_number, 0, 0}, {1e308, -1e308, 0}};
  for (const Numbers& padding : bad) {
    INFO(padding[0]);
    for (const losses::SoftmaxCrossEntropy& loss :
         {losses::SoftmaxCrossEntropy{}, losses::SoftmaxCrossEntropy{0.2, {{1, 3, 0.5}}, {}}}) {
      Network classes = network({}, loss);
      classes.metrics = {metrics::Metric{metric::Accuracy{}},  metrics::Metric{metric::TopKAccuracy{2}},
                         metrics::Metric{metric::Precision{}}, metrics::Metric{metric::Recall{}},
                         metrics::Metric{metric::F1{}},        metrics::Metric{metric::F1{each}},
                         metrics::Metric{metric::Perplexity{}}};
      compare(classes, labels, {2, 1, 0, 0, 2, 1}, {0, 2}, padding, {1});
    }
    for (const losses::Loss& loss :
         {losses::Loss{losses::MeanSquaredError{}}, losses::Loss{losses::MeanAbsoluteError{}},
          losses::Loss{losses::Huber{}}, losses::Loss{losses::SigmoidCrossEntropy{}}}) {
      Network numbers = network({}, loss);
      numbers.metrics = {metrics::Metric{metric::MeanAbsoluteError{}}, metrics::Metric{metric::MeanSquaredError{}},
                         metrics::Metric{metric::R2{}}};
      compare(numbers, {DType::f64, {3}}, {1, 2, 0, 0, 1, 1}, {1, 1, 0, 0, 0.5, 1}, padding, padding);
    }
    Network binary = network({}, losses::SigmoidCrossEntropy{});
    binary.metrics = {metrics::Metric{metric::Accuracy{}}, metrics::Metric{metric::F1{}}};
    compare(binary, labels, {2, -1}, {1, 1}, {padding[0]}, {0});
  }
}

TEST_CASE("losses and metrics refuse targets of the wrong type or shape", "[model]") {
  const Field features{DType::f32, {4}}, numbers{DType::f32, {2}};
  const auto refused = [&](losses::Loss loss, std::int64_t outputs, const Field& target,
                           std::vector<metrics::Metric> metrics = {}) {
    Network net = network({layer("dense_0", layers::Dense{outputs})}, std::move(loss));
    net.metrics = std::move(metrics);
    return refusal(net, features, target);
  };
  CHECK(refused(losses::SoftmaxCrossEntropy{0, {{1, 2}}, {}}, 10, labels) ==
        "softmax_cross_entropy has 2 class_weights; the model has 10 classes | list one weight for each class");
  CHECK(refused(losses::SigmoidCrossEntropy{}, 3, labels) ==
        "sigmoid_cross_entropy takes one output for labels 0 and 1; the output of the model is f32[3] | end the layers "
        "with flatten and dense: 1, or use softmax_cross_entropy with one logit for each class");
  CHECK(refused(losses::SigmoidCrossEntropy{}, 3, numbers) ==
        "sigmoid_cross_entropy needs outputs and targets of equal shape; the output of the model is f32[3], the "
        "targets are f32[2] | end the layers with dense: 2");
  CHECK(refused(losses::Huber{}, 2, labels) ==
        "huber takes numbers; the targets are class labels i32[] | softmax_cross_entropy takes labels");
  CHECK(refused(losses::SoftmaxCrossEntropy{}, 10, labels, {metrics::Metric{metric::TopKAccuracy{11}}}) ==
        "top_11_accuracy needs the 11 largest outputs, but the model has 10 | set k to at most 10");
  CHECK(refused(losses::SoftmaxCrossEntropy{}, 10, labels, {metrics::Metric{metric::R2{}}}) ==
        "r2 takes numbers; the targets are class labels i32[] | accuracy takes labels");
  CHECK(refused(losses::Huber{}, 2, numbers, {metrics::Metric{metric::F1{}}, metrics::Metric{metric::Perplexity{}}}) ==
        "f1 takes class labels; the targets are f32[2] | mean_absolute_error takes targets like these\n"
        "perplexity takes class labels; the targets are f32[2] | mean_absolute_error takes targets like these");
}

TEST_CASE("metrics that masks do not have say how masks have some", "[model]") {
  Network net = network({layer("conv_0", layers::Conv{1, {3, 3}, {1, 1}, {}, true})}, losses::SigmoidCrossEntropy{});
  net.metrics = {metrics::Metric{metric::F1{}}, metrics::Metric{metric::SubsetAccuracy{}}};
  const Field mask{DType::f32, {28, 28, 1}};
  const std::string help =
      " | metrics of masks take integer labels (N, H, W), with softmax_cross_entropy and outputs [H, W, C], for masks "
      "of 0 and 1 of 2 classes; metrics: [] leaves the loss";
  CHECK(refusal(net, photo, mask) ==
        "f1 takes one class label an example, or integer labels of its positions; the targets are f32[28,28,1]" + help +
            "\nsubset_accuracy takes several labels, [L] of 0 and 1, with sigmoid_cross_entropy; the targets are "
            "f32[28,28,1]" +
            help);
  // What the help names is taken.
  Network pixels = network({layer("conv_0", layers::Conv{2, {3, 3}, {1, 1}, {}, true})});
  pixels.metrics = {metrics::Metric{metric::F1{}}, metrics::Metric{metric::MeanIou{}}};
  CHECK(model::make_model(pixels, photo, {DType::i32, {28, 28}}).has_sequences());
  // Labels of other sizes, and one-hot masks.
  CHECK(refusal(pixels, photo, {DType::i32, {14, 14}})
            .starts_with("softmax_cross_entropy takes one logit for each class at each position, [14, 14, C]; the "
                         "output of the model is "
                         "f32[28,28,2] | end the layers with conv: {features: C, kernel_size: [1, 1]}, at the size of "
                         "the labels"));
  CHECK(refusal(pixels, photo, {DType::i32, {28, 28, 2}})
            .starts_with("softmax_cross_entropy takes one logit for each class at each position, [28, 28, 2, C]; the "
                         "output of the model "
                         "is f32[28,28,2] | one-hot masks are saved as labels: in NumPy, y.argmax(-1)"));
  metric::MeanIou samples;
  samples.average = metric::Average::samples;
  pixels.metrics = {metrics::Metric{samples}};
  CHECK(refusal(pixels, photo, {DType::i32, {28, 28}}) ==
        "iou_samples takes no average: samples, which is of several labels | use macro, micro or weighted");
  // Numbers of that shape have metrics of numbers.
  net.loss = losses::MeanSquaredError{};
  net.metrics = {metrics::Metric{metric::F1{}}};
  CHECK(refusal(net, photo, mask).ends_with(" | mean_absolute_error takes targets like these"));
  CHECK(refusal(network({layer("conv_0", layers::Conv{1, {3, 3}, {1, 1}, {}, true})}, losses::MeanSquaredError{}),
                photo, {DType::f32, {28, 28}})
            .ends_with("the targets are f32[28,28] | end the layers with reshape: [28, 28]"));
  CHECK(refusal(network({layer("conv_0", layers::Conv{1, {3, 3}, {1, 1}, {}, true})}, losses::MeanSquaredError{}),
                photo, {DType::f32, {784}})
            .ends_with("the targets are f32[784] | end the layers with flatten"));
}

TEST_CASE("evaluation sums over all devices in one reduction and leaves padding out", "[model]") {
  const Mesh mesh({{"devices", 2}});
  Network net = network({layer("dense_0", layers::Dense{2})});
  net.metrics = {metrics::Metric{metric::Accuracy{}}};
  const model::Model model = model::make_model(net, {DType::f32, {2}}, labels);
  const Program program = model::evaluation_program(model, mesh, mesh.all(), 2, all_ops());
  int reductions = 0;
  for (const Equation& equation : program.equations) reductions += equation.op.as<ops::Psum>() != nullptr ? 1 : 0;
  CHECK(reductions == 1);
  const Feed sums = results_of(program, {{"dense_0.kernel", {1, 0, 0, 1}},
                                         {"inputs", {1, 0, 0, 1, 1, 0, 9, 9}},
                                         {"targets", {0, 0, 0, 1}},
                                         {"mask", {1, 1, 1, 0}}});
  CHECK(sums.at("count").front() == 3);
  CHECK(sums.at("accuracy").front() == 2);
  const double right = std::log(1 + std::exp(-1.0)), wrong = std::log(1 + std::exp(1.0));
  CHECK(sums.at("loss").front() == Approx(2 * right + wrong).epsilon(1e-6));
}
