#include "core/train/worth.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/losses/huber.h"
#include "core/losses/log_cosh.h"
#include "core/losses/mean_absolute_error.h"
#include "core/losses/mean_squared_error.h"
#include "core/losses/sigmoid_cross_entropy.h"
#include "core/losses/softmax_cross_entropy.h"
#include "core/run/records/lines.h"
#include "core/train/members.h"

namespace pmaptrain::train {
namespace {

std::optional<double> find_measure(const run::Measures& measures, const std::string& name) {
  const auto found = std::find_if(measures.begin(), measures.end(), [&](const auto& one) { return one.first == name; });
  return found != measures.end() ? std::optional(found->second) : std::nullopt;
}

std::string what_helps(const model::Model& model) {
  const bool scales = model.normalize.has_value() || model.input.dtype != DType::f32;
  return std::string(scales ? "" : "data.normalize: auto, ") +
         "another optimizer.learning_rate or a longer train.duration may help";
}

// Advice for a member. If its best evaluation was in the first half of the run, training longer made it worse.
std::string what_helps(const model::Model& model, const run::Ended& ended, const run::MemberEnded& member) {
  if (!member.best || 2 * member.best->step > ended.steps) return what_helps(model);
  return "the best checkpoint, which eval and predict take, is that of step " + with_commas(member.best->step) +
         ": a shorter train.duration, train.early_stopping or a smaller model may help";
}

// The targets of a split, example by example.
class Targets {
 public:
  explicit Targets(const data::Dataset& dataset) : dataset_(dataset), row_(dataset.target().bytes()) {}

  template <class T, class Use>
  void for_each(Use&& use) {
    for (std::int64_t i = 0; i < dataset_.size(); ++i) {
      dataset_.read(i, nullptr, row_.data());
      for (std::size_t j = 0; j * sizeof(T) < row_.size(); ++j) {
        T value;
        std::memcpy(&value, row_.data() + j * sizeof(T), sizeof(T));
        use(j, value, static_cast<double>(dataset_.weight(i)));
      }
    }
  }
  std::size_t outputs() const { return row_.size() / sizeof(float); }

 private:
  const data::Dataset& dataset_;
  std::vector<std::byte> row_;
};

// The share of each class in the examples.
std::vector<double> shares_of_classes(const data::Dataset& dataset, const model::Model& model) {
  const std::int64_t classes = model.classes();
  std::vector<double> shares(static_cast<std::size_t>(classes));
  Targets(dataset).for_each<std::int32_t>([&](std::size_t, std::int32_t label, double weight) {
    if (label == model.ignored_label()) return;
    if (label >= 0 && label < classes) shares[static_cast<std::size_t>(label)] += weight;
  });
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= all;
  return shares;
}

const std::vector<double>& weights_of_classes(const model::Model& model) {
  static const std::vector<double> none;
  const declare::ClassWeights* const weights = model.loss->class_weights();
  return weights != nullptr ? weights->each : none;
}

// The loss of the best constant probabilities: the shares of the classes, by their weights and with label smoothing.
std::optional<double> loss_of_shares(const model::Model& model, std::vector<double> shares) {
  double smoothing = 0;
  if (const auto* const softmax = model.loss.as<losses::SoftmaxCrossEntropy>()) {
    smoothing = softmax->label_smoothing;
  } else if (model.loss.as<losses::SigmoidCrossEntropy>() == nullptr) {
    return std::nullopt;
  }
  const std::vector<double>& weights = weights_of_classes(model);
  for (std::size_t c = 0; c < weights.size(); ++c) shares[c] *= weights[c];
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  double loss = 0;
  for (double& share : shares) {
    share = (1 - smoothing) * share + smoothing * all / static_cast<double>(shares.size());
    if (share > 0) loss -= share * std::log(share / all);
  }
  return loss;
}

// The divisor of distances for each number of a target: the standard deviation that normalises targets if the measure
// is the loss, else 1.
using Units = std::vector<double>;

// The mean squared error of predicting the mean of each number of a target, averaged over these numbers.
double square_of_mean(const data::Dataset& dataset, const Units& units) {
  Targets targets(dataset);
  std::vector<double> means(targets.outputs()), losses(targets.outputs());
  double weights = 0;
  targets.for_each<float>([&](std::size_t j, float value, double weight) {
    means[j] += weight * static_cast<double>(value);
    if (j == 0) weights += weight;
  });
  for (double& mean : means) mean /= weights;
  targets.for_each<float>([&](std::size_t j, float value, double weight) {
    const double distance = (static_cast<double>(value) - means[j]) / units[j];
    losses[j] += weight * distance * distance;
  });
  return std::accumulate(losses.begin(), losses.end(), 0.0) / (weights * static_cast<double>(losses.size()));
}

// The mean absolute error of predicting the median of each number of a target, averaged over these numbers; none for
// weighted examples.
std::optional<double> deviation_of(const data::Dataset& dataset, const Units& units) {
  if (dataset.is_weighted()) return std::nullopt;
  Targets targets(dataset);
  std::vector<std::vector<float>> values(targets.outputs());
  targets.for_each<float>([&](std::size_t j, float value, double) { values[j].push_back(value); });
  double sum = 0;
  for (std::size_t j = 0; j < values.size(); ++j) {
    std::vector<float>& of_output = values[j];
    const auto middle = of_output.begin() + std::ssize(of_output) / 2;
    std::nth_element(of_output.begin(), middle, of_output.end());
    const auto median = static_cast<double>(*middle);
    double distances = 0;
    for (const float value : of_output) distances += std::abs(static_cast<double>(value) - median);
    sum += distances / (units[j] * static_cast<double>(of_output.size()));
  }
  return sum / static_cast<double>(values.size());
}

// A convex loss of the distance of an output from its target, and its derivative.
struct LossOfDistance {
  std::function<double(double)> loss, slope;
};

std::optional<LossOfDistance> loss_of_distance(const losses::Loss& loss) {
  if (const auto* const huber = loss.as<losses::Huber>()) {
    const double delta = huber->delta;
    return LossOfDistance{[delta](double distance) {
                            const double size = std::abs(distance);
                            return size <= delta ? size * size / 2 : delta * (size - delta / 2);
                          },
                          [delta](double distance) { return std::clamp(distance, -delta, delta); }};
  }
  if (loss.as<losses::LogCosh>() != nullptr) {
    return LossOfDistance{[](double distance) {
                            const double size = std::abs(distance);
                            return size + std::log1p(std::expm1(-2 * size) / 2);
                          },
                          [](double distance) { return std::tanh(distance); }};
  }
  return std::nullopt;
}

// The loss of predicting the best constant for each number of a target, averaged over these numbers. Bisection finds
// the constant, since the derivative never decreases.
double loss_of_best(const data::Dataset& dataset, const Units& units, const LossOfDistance& of) {
  struct Weighted {
    double value = 0, weight = 0;
  };
  Targets targets(dataset);
  std::vector<std::vector<Weighted>> all(targets.outputs());
  targets.for_each<float>([&](std::size_t j, float value, double weight) {
    all[j].push_back({static_cast<double>(value) / units[j], weight});
  });
  double losses = 0;
  for (const std::vector<Weighted>& of_output : all) {
    const auto by_value = [](const Weighted& a, const Weighted& b) { return a.value < b.value; };
    const auto [least, most] = std::minmax_element(of_output.begin(), of_output.end(), by_value);
    double low = least->value, high = most->value;
    constexpr int halvings = 60;
    for (int i = 0; i < halvings; ++i) {
      const double constant = low + (high - low) / 2;
      double slope = 0;
      for (const auto& [value, weight] : of_output) slope += weight * of.slope(constant - value);
      (slope > 0 ? high : low) = constant;
    }
    double loss = 0, weights = 0;
    for (const auto& [value, weight] : of_output) {
      loss += weight * of.loss(low - value);
      weights += weight;
    }
    losses += loss / weights;
  }
  return losses / static_cast<double>(all.size());
}

// A text that compares a measure with that of one constant prediction.
std::string compared(const std::string& name, const std::string& split, double found, const std::string& constant,
                     double of_constant, bool one) {
  return name + " on " + split + (one ? ", " + run::compact(found) + "," : "") +
         " is no better than that of predicting " + constant + " for every example, " + run::compact(of_constant);
}

// The class that was predicted for all examples; none if there are several. Rows of the matrix are true classes.
std::optional<std::size_t> only_predicted(const std::vector<std::vector<double>>& confusion) {
  std::optional<std::size_t> only;
  for (const std::vector<double>& row : confusion) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (!(row[c] > 0)) continue;
      if (only && *only != c) return std::nullopt;
      only = c;
    }
  }
  return only;
}

// The measures of a member on a split of the data.
struct Measured {
  const data::Dataset& dataset;
  const std::string& split;
  const run::Measures& measures;
  bool one;  // whether the run has one member
};

// A measure, and its value for a constant prediction.
struct Compared {
  std::string name;
  double found = 0, of_constant = 0;
  std::string constant = "their mean";
  bool larger_is_better = false;

  bool is_worse() const { return larger_is_better ? found <= of_constant : of_constant > 0 && found >= of_constant; }
};

// The measure that judges a classifier: the one that selects checkpoints where its value for a constant prediction is
// known, else the area under the ROC curve, which depends on no threshold, else the accuracy.
std::optional<Compared> classes_of(const model::Model& model, const run::Measures& measures,
                                   const std::vector<double>& shares, const std::string& selects,
                                   const std::string& majority) {
  const double most = *std::max_element(shares.begin(), shares.end());
  for (const std::string& name : {selects, std::string("roc_auc"), std::string("accuracy")}) {
    const std::optional<double> found = find_measure(measures, name);
    if (!found) continue;
    if (name == "roc_auc") return Compared{name, *found, 0.5, majority, true};
    if (name == "matthews_corrcoef") return Compared{name, *found, 0, majority, true};
    if (name == "loss") {
      const std::optional<double> of_constant = loss_of_shares(model, shares);
      if (of_constant) return Compared{name, *found, *of_constant, "the shares of the classes"};
    }
    // Class weights make the model miss examples of frequent classes on purpose.
    constexpr double rounding = 1e-6;
    if (name == "accuracy" && weights_of_classes(model).empty()) {
      return Compared{name, *found - rounding, most, majority, true};
    }
    if (name == selects) return std::nullopt;  // a constant prediction is not known to be as good
  }
  return std::nullopt;
}

// `names` has the names of classes, if there are any.
std::string class_text(const model::Model& model, const std::vector<std::string>& names, const Measured& measured,
                       const std::vector<std::vector<double>>* confusion, const std::string& selects) {
  if (!model.has_labels() || model.has_sequences() || model.classes() == 0) return "";
  const std::vector<double> shares = shares_of_classes(measured.dataset, model);
  const auto most = std::max_element(shares.begin(), shares.end());
  if (!(*most < 1)) return "";
  const auto name_of = [&](std::size_t label) {
    return label < names.size() ? "'" + shown_name(names[label]) + "'" : "class " + std::to_string(label);
  };
  const std::optional<std::size_t> constant = confusion != nullptr ? only_predicted(*confusion) : std::nullopt;
  const auto found =
      classes_of(model, measured.measures, shares, selects, name_of(static_cast<std::size_t>(most - shares.begin())));
  std::string text;
  if (constant && (!found || found->name == "accuracy" || found->is_worse())) {
    text = name_of(*constant) + " is predicted for every example of " + measured.split;
  } else if (found && found->is_worse()) {
    text = compared(found->name, measured.split, *find_measure(measured.measures, found->name), found->constant,
                    found->of_constant, measured.one);
  }
  // Of the shares that classes would have alike, a rare one has less than half.
  double least = 1;
  for (const double share : shares) least = share > 0 ? std::min(least, share) : least;
  const bool is_rare = 2 * least * static_cast<double>(shares.size()) < 1;
  if (text.empty() || !is_rare || !weights_of_classes(model).empty()) return text;
  return text + "; classes are rare: loss." + model.loss->name() + ".class_weights: balanced weighs them";
}

// The measure for regression: the one that selects checkpoints, if it is known of a constant, else r2 or another metric
// if there is one, else the loss.
std::optional<Compared> numbers_of(const model::Model& model, const data::Dataset& dataset,
                                   const run::Measures& measures, const std::string& selects) {
  const std::size_t outputs = static_cast<std::size_t>(numel(model.target.shape));
  const Units ones(outputs, 1.0);
  const auto& statistics = model.target_statistics;
  const Units units = statistics ? statistics->std : ones;
  const auto distances_from_median = [&](std::string name, double found, const Units& in) {
    return Compared{std::move(name), found, deviation_of(dataset, in).value_or(0), "their median"};
  };
  std::vector<std::string> order{"r2", "mean_squared_error", "mean_absolute_error", "loss"};
  const auto selecting = std::find(order.begin(), order.end(), selects);
  if (selecting != order.end()) std::rotate(order.begin(), selecting, selecting + 1);
  const auto first =
      std::find_if(order.begin(), order.end(), [&](const std::string& one) { return find_measure(measures, one); });
  if (*first == "r2") {
    // Predicting the mean has an r2 of 0, unless all targets are equal.
    if (!(square_of_mean(dataset, ones) > 0)) return std::nullopt;
    return Compared{"r2", *find_measure(measures, "r2"), 0, "their mean", true};
  }
  if (*first == "mean_squared_error") {
    return Compared{*first, *find_measure(measures, *first), square_of_mean(dataset, ones)};
  }
  if (*first == "mean_absolute_error") return distances_from_median(*first, *find_measure(measures, *first), ones);
  if (!model.log_targets.empty()) return std::nullopt;  // the loss is one of logarithms
  const std::string name = model.loss->name();
  const double loss = measures.front().second;
  if (model.loss.as<losses::MeanSquaredError>() != nullptr) {
    return Compared{name, loss, square_of_mean(dataset, units)};
  }
  if (model.loss.as<losses::MeanAbsoluteError>() != nullptr) {
    return distances_from_median(name, loss, units);
  }
  const std::optional<LossOfDistance> of = loss_of_distance(model.loss);
  if (!of) return std::nullopt;
  return Compared{name, loss, loss_of_best(dataset, units, *of), "their best constant"};
}

std::string number_text(const model::Model& model, const Measured& measured, const std::string& selects) {
  if (model.target.dtype != DType::f32 || model.classes() > 0 || model.has_distributions() ||
      model.has_padded_numbers()) {
    return "";
  }
  const std::optional<Compared> found = numbers_of(model, measured.dataset, measured.measures, selects);
  if (!found || !found->is_worse()) return "";
  return compared(found->name, measured.split, found->found, found->constant, found->of_constant, measured.one);
}

// `one`: whether the run has one member.
std::string stuck_text(const LossCourse& course, bool one) {
  return "the loss never fell" + (one ? ": its mean was " + run::compact(course.first) + " over the first epoch and " +
                                            run::compact(course.last) + " over the last"
                                      : "");
}

// What a member is judged by: its last split under the checkpoint that commands use by default, or where that was not
// evaluated, under the last one.
struct Judged {
  std::string split;
  const run::Measures& measures;
  const std::vector<std::vector<double>>* confusion;  // null if there is none
};
std::optional<Judged> judged(const run::MemberEnded& member) {
  const bool has_selected = member.selected && !member.selected->measures.empty();
  const run::SplitMeasures& all = has_selected ? member.selected->measures : member.final_measures;
  if (all.empty()) return std::nullopt;
  const auto& [split, measures] = all.back();
  const run::Confusions& confusions = has_selected ? member.selected->confusions : member.confusions;
  const auto found = confusions.find(split);
  return Judged{split, measures, found != confusions.end() ? &found->second : nullptr};
}

// A text about a member whose measures are no better than those of one constant prediction; empty if they are better.
std::string constant_text(const model::Model& model, const data::Source& source, const Judged& by, bool one,
                          const std::string& selects) {
  const Measured measured{*source.of(data::split_named(by.split).value()), by.split, by.measures, one};
  const std::string text = class_text(model, source.encoding.classes, measured, by.confusion, selects);
  return text.empty() ? number_text(model, measured, selects) : text;
}

}  // namespace

std::vector<run::Warned> useless_result_warnings(const model::Model& model, const data::Source& source,
                                                 std::int64_t steps_per_epoch, const run::Ended& ended,
                                                 const StuckLoss& stuck, const spec::TrainSpec& train) {
  constexpr std::int64_t few_steps = 20;
  if (ended.status != "done" || ended.steps < few_steps) return {};
  const bool one = ended.members.size() == 1;
  // Measures of training are means over an epoch, during which the parameters change. They tell about the last
  // parameters only if the run ends with a whole epoch that is not the first.
  const bool ends_epoch = ended.epochs >= 2 && ended.steps % steps_per_epoch == 0;
  const std::string selects = train.checkpoint.best  ? train.checkpoint.best->metric
                              : train.early_stopping ? train.early_stopping->metric
                                                     : "";
  MemberTexts texts;
  try {
    for (std::size_t m = 0; m < ended.members.size(); ++m) {
      const run::MemberEnded& member = ended.members[m];
      if (!member.reason.empty() && member.reason != early_stopping) continue;  // stopped by a guard
      const auto number = static_cast<std::int64_t>(m);
      if (const std::optional<LossCourse> course = stuck(number)) {
        texts.add(number, stuck_text(*course, one) + "; " + what_helps(model), false);
        continue;
      }
      const std::optional<Judged> by = judged(member);
      if (!by || (by->split == "train" && !ends_epoch)) continue;
      const std::string text = constant_text(model, source, *by, one, selects);
      if (!text.empty()) texts.add(number, text + "; " + what_helps(model, ended, member), false);
    }
  } catch (const Error&) {
    return {};  // the data was read before; whoever needs it again reports the error
  }
  return texts.take(ended.is_ensemble);
}

}  // namespace pmaptrain::train
