// Losses of the rows of one device, and the sums for the measures of a step.
#include "core/model/loss.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <type_traits>

#include "core/equations/arithmetic.h"
#include "core/model/checks.h"
#include "core/model/model.h"

namespace pmaptrain::model {
namespace {

// What checks a loss: its targets, and the weights of the classes.
struct LossChecks {
  const Checks& checks;
  const Model& model;
  std::string name;
  const std::vector<double>& balanced;  // class weights that balance the training split

  void need_classes() const { checks.need_classes(name, model.loss_place, "mean_squared_error"); }
  void need_numbers() const { checks.need_numbers(name, model.loss_place, "softmax_cross_entropy"); }
  // Those that balance the training split are for labels: classes of which it has no example weigh 1.
  void complete(spec::ClassWeights& weights, std::int64_t classes) const {
    const auto count = static_cast<std::size_t>(classes);
    if (weights.balanced && !model.has_labels()) {
      checks.refuse(model.loss_place, "class_weights: balanced takes class labels; the targets are " + checks.targets(),
                    "list the weights of the classes");
    } else if (weights.balanced) {
      weights.each = balanced;
      weights.each.resize(count, 1.0);
    } else if (!weights.each.empty() && weights.each.size() != count) {
      checks.refuse(model.loss_place,
                    name + " has " + std::to_string(weights.each.size()) + " class_weights; the model has " +
                        std::to_string(classes) + " classes",
                    "list one weight for each class");
    }
  }
};

struct LossCall {
  Builder& b;
  Value output, targets;
  const Numbers& numbers;
};

// The struct of each loss: checks of its targets, the numbers of the config that its equations read, and the equations,
// [B].
template <class Loss>
struct LossOf {
  static_assert(sizeof(Loss) == 0, "this loss has no struct LossOf in core/model/loss.cpp");
};

// Of a loss without options.
struct NoLossNumbers {
  template <class Loss>
  static std::vector<Number> numbers(const Loss&, const Model&) {
    static_assert(std::is_empty_v<Loss>, "a loss with options says in numbers() which numbers its equations read");
    return {};
  }
};

// Each of `weights`, [features], for values [B, features].
Value of_features(Builder& b, Value like, const std::vector<double>& weights) {
  return broadcast_along(b, vector_constant(b, b.type(like).dtype, weights), b.type(like).shape, 1);
}

// Targets in the shape of the outputs, of labels 0 and 1 too.
Value targets_like(Builder& b, Value output, Value targets) {
  const Value expected = cast(b, targets, b.type(output).dtype);
  return b.type(expected).shape == b.type(output).shape ? expected
                                                        : b.emit(ops::Reshape{b.type(output).shape}, {expected});
}

struct LossOfNumbers {
  template <class Loss>
  static void check(const Loss&, const LossChecks& checks) {
    checks.need_numbers();
  }
};

template <>
struct LossOf<spec::SoftmaxCrossEntropy> {
  static constexpr const char *rest = "loss/label_smoothing/rest", *share = "loss/label_smoothing/share";

  static void check(spec::SoftmaxCrossEntropy& loss, const LossChecks& checks) {
    checks.need_classes();
    if (!checks.model.output.empty()) checks.complete(loss.class_weights, checks.model.output.back());
    if (!loss.ignore_label || !checks.model.has_distributions()) return;
    checks.checks.refuse(checks.model.loss_place,
                         "ignore_label takes class labels; the targets are " + checks.checks.targets(),
                         "remove it, or store one label for each example in place of class probabilities");
  }
  static std::vector<Number> numbers(const spec::SoftmaxCrossEntropy& loss, const Model& model) {
    if (!(loss.label_smoothing > 0.0)) return {};
    const double of_each = loss.label_smoothing / static_cast<double>(model.output.back());
    return {{rest, 1.0 - loss.label_smoothing, model.dtype}, {share, of_each, model.dtype}};
  }
  static Value losses(const spec::SoftmaxCrossEntropy& loss, const LossCall& call) {
    const auto& [b, output, targets, numbers] = call;
    std::optional<Smoothing> smoothing;
    if (loss.label_smoothing > 0.0) smoothing = {numbers[rest], numbers[share]};
    const Value entropy = softmax_cross_entropy(b, output, targets, smoothing);
    if (loss.class_weights.each.empty()) return position_mean(b, entropy, loss.ignore_label);
    const Value weights = vector_constant(b, b.type(output).dtype, loss.class_weights.each);
    if (!is_floating(b.type(targets).dtype)) {
      const Value weighed = mul(b, entropy, b.emit(ops::Gather{}, {weights, targets}));
      return position_mean(b, weighed, loss.ignore_label);
    }
    const Value probabilities = cast(b, targets, b.type(output).dtype);
    const Value each = broadcast_along(b, weights, b.type(probabilities).shape, 1);
    return mul(b, entropy, sum_from(b, mul(b, probabilities, each), 1));
  }
};

// What losses with a sigmoid for each output have in common.
struct LossOfSigmoids {
  static void check_outputs(const LossChecks& given) {
    const auto& [checks, model, name, balanced] = given;
    if (model.has_labels() && model.target.shape.size() == 1) {
      if (model.output == model.target.shape) return;
      const std::string labels = std::to_string(model.target.shape.front());
      checks.refuse(model.loss_place,
                    name + " takes one output for each of " + labels + " labels; the output of the model is " +
                        checks.output() + ", the targets are " + checks.targets(),
                    "end the layers with dense: " + labels);
    } else if (!model.is_binary()) {
      given.need_numbers();
    } else if (model.output != Shape{1}) {
      checks.refuse(
          model.loss_place,
          name + " takes one output for labels 0 and 1; the output of the model is " + checks.output(),
          "end the layers with flatten and dense: 1, or use softmax_cross_entropy with one logit for each class");
    }
  }
};

template <>
struct LossOf<spec::SigmoidCrossEntropy> : LossOfSigmoids {
  static void check(spec::SigmoidCrossEntropy& loss, const LossChecks& given) {
    const auto& [checks, model, name, balanced] = given;
    const auto is_set = [](const spec::ClassWeights& weights) { return weights.balanced || !weights.each.empty(); };
    if (!model.is_binary() && is_set(loss.class_weights)) {
      checks.refuse(model.loss_place,
                    name + " takes class_weights with labels 0 and 1 alone; the targets are " + checks.targets(),
                    "remove them, or use softmax_cross_entropy; for several labels there are positive_weights");
    } else if (is_set(loss.class_weights) && is_set(loss.positive_weights)) {
      checks.refuse(model.loss_place, name + " takes class_weights or positive_weights, not both",
                    "remove one of them");
    }
    check_outputs(given);
    if (model.is_binary()) given.complete(loss.class_weights, 2);
    const std::size_t outputs = model.output.empty() ? 0 : static_cast<std::size_t>(numel(model.output));
    if (loss.positive_weights.balanced) {
      loss.positive_weights.each = balanced;
      loss.positive_weights.each.resize(outputs, 1.0);
    } else if (!loss.positive_weights.each.empty() && loss.positive_weights.each.size() != outputs) {
      checks.refuse(model.loss_place,
                    name + " has " + std::to_string(loss.positive_weights.each.size()) +
                        " positive_weights; the model has " + std::to_string(outputs) + " outputs",
                    "list one weight for each output");
    }
    if (!loss.positive_weights.each.empty() && model.output.size() != 1) {
      checks.refuse(model.loss_place,
                    name + " takes positive_weights of labels, [L]; the output of the model is " + checks.output(),
                    "remove them");
      loss.positive_weights.each.clear();
    }
  }
  static std::vector<Number> numbers(const spec::SigmoidCrossEntropy&, const Model&) { return {}; }
  // softplus(x) - x t, which is -t log sigmoid(x) - (1 - t) log(1 - sigmoid(x)). With a weight w of positives the first
  // term is w t softplus(-x), and softplus(-x) = softplus(x) - x.
  static Value losses(const spec::SigmoidCrossEntropy& loss, const LossCall& call) {
    const auto& [b, output, targets, numbers] = call;
    const Value expected = targets_like(b, output, targets);
    const Value all = softplus(b, output);
    Value each = sub(b, all, mul(b, output, expected));
    if (!loss.positive_weights.each.empty()) {
      std::vector<double> more = loss.positive_weights.each;
      for (double& weight : more) weight -= 1;
      const Value positive = mul(b, expected, sub(b, all, output));
      each = add(b, each, mul(b, of_features(b, output, more), positive));
    }
    const Value entropy = feature_mean(b, each);
    if (loss.class_weights.each.empty()) return entropy;
    const Value weights = vector_constant(b, b.type(output).dtype, loss.class_weights.each);
    return mul(b, entropy, b.emit(ops::Gather{}, {weights, targets}));
  }
};

template <>
struct LossOf<spec::Focal> : LossOfSigmoids {
  static constexpr const char* gamma = "loss/gamma";

  static void check(const spec::Focal& loss, const LossChecks& given) {
    const auto& [checks, model, name, balanced] = given;
    if (model.outputs() == spec::Outputs::sigmoid_logits) return check_outputs(given);
    given.need_classes();
    if (model.has_distributions()) {
      checks.refuse(model.loss_place, name + " takes class labels; the targets are " + checks.targets(),
                    "store one label for each example in place of class probabilities");
    }
    if (!loss.alpha) return;
    checks.refuse(model.loss_place,
                  name + " takes alpha with labels 0 and 1 and with several labels; the model has " +
                      std::to_string(model.output.empty() ? 0 : model.output.back()) + " classes",
                  "remove alpha, or use softmax_cross_entropy with class_weights");
  }
  static std::vector<Number> numbers(const spec::Focal& loss, const Model& model) {
    return {{gamma, loss.gamma, model.dtype}};
  }
  // (1 - p)^gamma · -log p, as exp(gamma · log(1 - p)), where p is the probability of the target.
  static Value weighed(Builder& b, Value entropy, Value log_rest, Value gamma_value) {
    return mul(b, entropy, b.emit(ops::Exp{}, {mul(b, log_rest, gamma_value)}));
  }
  static Value losses(const spec::Focal& loss, const LossCall& call) {
    const auto& [b, output, targets, numbers] = call;
    const bool sigmoids = b.type(output).shape == b.type(targets).shape || b.type(output).shape.back() == 1;
    if (!sigmoids) {
      const Value entropy = softmax_cross_entropy(b, output, targets);
      // log(1 - p), with 1 - p = -expm1(-entropy), which is at least the smallest normal number.
      const Value rest = b.emit(ops::Neg{}, {b.emit(ops::Expm1{}, {b.emit(ops::Neg{}, {entropy})})});
      const Value bounded = b.emit(ops::Max{}, {rest, scalar_like(b, rest, 1e-30)});
      return position_mean(b, weighed(b, entropy, b.emit(ops::Log{}, {bounded}), numbers[gamma]), std::nullopt);
    }
    // With z = x for targets of 1 and -x for those of 0: entropy softplus(-z), log(1 - p) = -softplus(z). Of targets
    // between both, 1 - p = s (1 - t) + (1 - s) t, as torchvision has it.
    const Value expected = targets_like(b, output, targets);
    const Value all = softplus(b, output);
    const Value entropy = sub(b, all, mul(b, output, expected));
    const Value chance = sigmoid(b, output);
    const Value other = sub(b, scalar_like(b, expected, 1.0), expected);
    const Value of_negative = mul(b, chance, other);
    const Value of_positive = mul(b, sub(b, scalar_like(b, chance, 1.0), chance), expected);
    const Value rest = add(b, of_negative, of_positive);
    const Value bounded = b.emit(ops::Max{}, {rest, scalar_like(b, rest, 1e-30)});
    Value each = weighed(b, entropy, b.emit(ops::Log{}, {bounded}), numbers[gamma]);
    if (loss.alpha) {
      const Value of_positives = mul(b, expected, *loss.alpha);
      each = mul(b, each, add(b, of_positives, mul(b, other, 1 - *loss.alpha)));
    }
    return feature_mean(b, each);
  }
};

template <>
struct LossOf<spec::MeanSquaredError> : LossOfNumbers, NoLossNumbers {
  static Value losses(const spec::MeanSquaredError&, const LossCall& call) {
    const Value error = difference(call.b, call.output, call.targets);
    return feature_mean(call.b, mul(call.b, error, error));
  }
};

template <>
struct LossOf<spec::MeanAbsoluteError> : LossOfNumbers, NoLossNumbers {
  static Value losses(const spec::MeanAbsoluteError&, const LossCall& call) {
    return feature_mean(call.b, call.b.emit(ops::Abs{}, {difference(call.b, call.output, call.targets)}));
  }
};

template <>
struct LossOf<spec::Huber> : LossOfNumbers {
  static constexpr const char* delta = "loss/delta";

  static std::vector<Number> numbers(const spec::Huber& loss, const Model& model) {
    return {{delta, loss.delta, model.dtype}};
  }
  // With q = min(|e|, delta): q²/2 + delta · (|e| - q).
  static Value losses(const spec::Huber&, const LossCall& call) {
    const auto& [b, output, targets, numbers] = call;
    const Value distance = b.emit(ops::Abs{}, {difference(b, output, targets)});
    const Value near = b.emit(ops::Min{}, {distance, numbers[delta]});
    const Value square = mul(b, mul(b, near, near), 0.5);
    const Value far = mul(b, sub(b, distance, near), numbers[delta]);
    return feature_mean(b, add(b, square, far));
  }
};

template <>
struct LossOf<spec::Quantile> : LossOfNumbers {
  static void check(const spec::Quantile& loss, const LossChecks& checks) {
    checks.need_numbers();
    if (std::adjacent_find(loss.q.begin(), loss.q.end(), std::greater_equal<>()) == loss.q.end()) return;
    checks.checks.refuse(checks.model.loss_place, "the quantiles q do not ascend", "list each once, the least first");
  }
  static std::vector<Number> numbers(const spec::Quantile&, const Model&) { return {}; }
  // With e = t - y: max(q e, (q - 1) e) = max(e, 0) - (1 - q) e.
  static Value losses(const spec::Quantile& loss, const LossCall& call) {
    const auto& [b, output, targets, numbers] = call;
    const Shape shape = b.type(output).shape;
    const auto count = std::ssize(loss.q);
    const Shape each{shape.front(), shape.back() / count, count};
    const Value flat = b.emit(ops::Reshape{{each[0], each[1]}}, {cast(b, targets, b.type(output).dtype)});
    const Value repeated = b.emit(ops::Broadcast{each, {0, 1}}, {flat});
    const Value error = sub(b, repeated, b.emit(ops::Reshape{each}, {output}));
    std::vector<double> rest;
    for (const double q : loss.q) rest.push_back(1 - q);
    const Value above = broadcast_along(b, vector_constant(b, b.type(output).dtype, rest), each, 2);
    const Value positive = b.emit(ops::Max{}, {error, scalar_like(b, error, 0.0)});
    return feature_mean(b, sub(b, positive, mul(b, above, error)));
  }
};

template <>
struct LossOf<spec::Poisson> : LossOfNumbers, NoLossNumbers {
  static Value losses(const spec::Poisson&, const LossCall& call) {
    const auto& [b, output, targets, numbers] = call;
    const Value expected = mul(b, output, cast(b, targets, b.type(output).dtype));
    return feature_mean(b, sub(b, b.emit(ops::Exp{}, {output}), expected));
  }
};

}  // namespace

// log Σ exp(logits) - Σ t · logits, with the largest logit subtracted so that exp never overflows. The shift cancels
// in the value, so it needs no gradient.
Value softmax_cross_entropy(Builder& b, Value logits, Value labels, std::optional<Smoothing> smoothing) {
  const Shape shape = b.type(logits).shape;
  const std::size_t classes = shape.size() - 1;  // the last dimension
  std::vector<std::int64_t> others(classes);
  std::iota(others.begin(), others.end(), 0);
  const Value largest = b.emit(ops::StopGradient{}, {b.emit(ops::ReduceMax{{std::ssize(others)}}, {logits})});
  const Value shifted = sub(b, logits, b.emit(ops::Broadcast{shape, others}, {largest}));
  const Value normaliser = b.emit(ops::Log{}, {sum_from(b, b.emit(ops::Exp{}, {shifted}), classes)});
  const bool one_label = b.type(labels).shape.size() == classes;
  Value distribution = one_label ? b.emit(ops::OneHot{shape[classes], b.type(logits).dtype}, {labels})
                                 : cast(b, labels, b.type(logits).dtype);
  if (smoothing) distribution = add(b, mul(b, distribution, smoothing->rest), smoothing->share);
  return sub(b, normaliser, sum_from(b, mul(b, shifted, distribution), classes));
}

Value feature_mean(Builder& b, Value values) {
  const Shape shape = b.type(values).shape;
  const Value sum = sum_from(b, values, 1);
  const std::int64_t features = numel(Shape(shape.begin() + 1, shape.end()));
  return features == 1 ? sum : div(b, sum, static_cast<double>(features));
}

Value position_mean(Builder& b, Value values, std::optional<std::int64_t> ignored_label) {
  return ignored_label ? values : feature_mean(b, values);
}

Value counting_weights(Builder& b, Value weights, Value labels, std::int64_t ignored_label) {
  const Shape shape = b.type(labels).shape;
  if (shape.size() > 1) {
    const Value share = div(b, weights, static_cast<double>(numel(Shape(shape.begin() + 1, shape.end()))));
    weights = broadcast_along(b, share, shape, 0);
  }
  const Value ignored = b.emit(ops::Eq{}, {labels, scalar_like(b, labels, static_cast<double>(ignored_label))});
  return select(b, ignored, scalar_like(b, weights, 0.0), weights);
}

std::int64_t quantiles_of(const spec::Loss& loss) {
  const auto* const quantile = std::get_if<spec::Quantile>(&loss);
  return quantile != nullptr ? std::ssize(quantile->q) : 1;
}

Value point_outputs(Builder& b, const Model& model, Value output) {
  if (std::holds_alternative<spec::Poisson>(model.loss)) return b.emit(ops::Exp{}, {output});
  const auto* const quantile = std::get_if<spec::Quantile>(&model.loss);
  if (quantile == nullptr) return output;
  const auto distance = [](double q) { return std::abs(q - 0.5); };
  const auto nearest = std::min_element(quantile->q.begin(), quantile->q.end(),
                                        [&](double a, double c) { return distance(a) < distance(c); });
  const std::int64_t at = nearest - quantile->q.begin(), count = std::ssize(quantile->q);
  const Shape shape = b.type(output).shape;
  const Value each = b.emit(ops::Reshape{{shape.front(), shape.back() / count, count}}, {output});
  Shape target{shape.front()};
  target.insert(target.end(), model.target.shape.begin(), model.target.shape.end());
  return b.emit(ops::Reshape{std::move(target)},
                {b.emit(ops::Slice{{0, 0, at}, {shape.front(), shape.back() / count, at + 1}}, {each})});
}

Value difference(Builder& b, Value output, Value targets) {
  return sub(b, output, cast(b, targets, b.type(output).dtype));
}

void check_loss(Model& model, const std::vector<double>& class_weights, const Checks& checks) {
  const LossChecks of_loss{checks, model, spec::to_string(model.loss), class_weights};
  std::visit([&]<class Loss>(Loss& loss) { LossOf<Loss>::check(loss, of_loss); }, model.loss);
}

std::vector<Number> loss_numbers(const Model& model) {
  return std::visit([&]<class Loss>(const Loss& loss) { return LossOf<Loss>::numbers(loss, model); }, model.loss);
}

Value example_losses(Builder& b, const Model& model, Value output, Value targets, const Numbers& numbers) {
  const LossCall call{b, output, targets, numbers};
  return std::visit([&]<class Loss>(const Loss& loss) { return LossOf<Loss>::losses(loss, call); }, model.loss);
}

Value masked(Builder& b, const ExampleMask& rows, Value values) {
  const Shape shape = b.type(values).shape;
  const auto of_values = [&](Value row) {
    return b.type(row).shape.size() == shape.size() ? row : broadcast_along(b, row, shape, 0);
  };
  if (rows.weighted) {
    const Value weights = cast(b, rows.weights, b.type(values).dtype);
    values = mul(b, values, of_values(weights));
  }
  const Value count = of_values(rows.count);
  return select(b, count, values, scalar_like(b, values, 0.0));
}

std::vector<MeasurePart> measure_parts(const Model& model) {
  std::vector<MeasurePart> parts{{"loss", {}}};
  for (const PlannedMetric& metric : model.metrics) {
    parts.insert(parts.end(), metric.parts.begin(), metric.parts.end());
  }
  if (model.weighted) parts.push_back({"weight", {}});
  return parts;
}

std::vector<std::pair<std::string, double>> finish_measures(const Model& model,
                                                            std::span<const std::vector<double>> means) {
  std::vector<std::vector<double>> weighted;
  if (model.weighted) {
    // Means over examples become weighted means.
    const double weight = means.back().front();
    weighted.assign(means.begin(), means.end());
    for (std::vector<double>& part : weighted) {
      for (double& mean : part) mean /= weight;
    }
    means = weighted;
  }
  std::vector<std::pair<std::string, double>> measures{{"loss", means.front().front()}};
  std::size_t at = 1;
  for (const PlannedMetric& metric : model.metrics) {
    const std::vector<double> values = metric.finish(means.subspan(at, metric.parts.size()));
    for (std::size_t i = 0; i < values.size(); ++i) measures.emplace_back(metric.names[i], values[i]);
    at += metric.parts.size();
  }
  return measures;
}

LocalSums local_sums(Builder& b, const Model& model, Value output, Value targets, Value mask, const Numbers& numbers) {
  LocalSums sums;
  ExampleMask rows;
  {
    const Builder::Scope scope(b, {"loss", model.loss_place});
    rows.weights = cast(b, mask, model.dtype);
    rows.weighted = model.weighted;
    const Value is_example = b.emit(ops::Gt{}, {mask, scalar_like(b, mask, 0.0)});
    // Statistics of layers are of all examples, also of those without a label that counts.
    const Value examples = model.weighted ? cast(b, is_example, model.dtype) : rows.weights;
    if (const std::optional<std::int64_t> ignored = model.ignored_label()) {
      rows.weights = counting_weights(b, rows.weights, targets, *ignored);
      rows.count = b.emit(ops::Gt{}, {rows.weights, scalar_like(b, rows.weights, 0.0)});
      // A label that does not count need not be a class, as whose number losses and metrics use it.
      targets = select(b, rows.count, targets, scalar_like(b, targets, 0.0));
    } else {
      rows.count = is_example;
    }
    const Value normalised = normalised_targets(b, model, targets);
    const Value losses = example_losses(b, model, output, normalised, numbers);
    // Metrics take both in units of the targets' standard deviation, which they scale back; logarithms have none.
    if (model.log_targets.empty()) {
      targets = normalised;
    } else {
      output = cast(b, in_units_of_targets(b, model, output), model.dtype);
      targets = cast(b, targets, model.dtype);
    }
    sums.measures.push_back(sum_from(b, masked(b, rows, losses), 0));
    sums.count = sum_from(b, examples, 0);
  }
  const Builder::Scope scope(b, {"metrics", model.metrics_place});
  const Value points = model.metrics.empty() ? output : point_outputs(b, model, output);
  for (const PlannedMetric& metric : model.metrics) {
    for (Value sum : metric.sums(b, points, targets, rows)) sums.measures.push_back(sum);
  }
  if (model.weighted) sums.measures.push_back(sum_from(b, rows.weights, 0));
  return sums;
}

}  // namespace pmaptrain::model
