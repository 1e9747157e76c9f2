// The optimizer of a config: its rule, schedules of the learning rate, groups of parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/optimizers/rule.h"
#include "core/spec/durations.h"

namespace pmaptrain::spec {

struct LearningRate;

namespace schedule {

struct Linear {
  double init_value = 0.0, end_value = 0.0;
  std::optional<Duration> transition;  // here and below, none: what is left of the run
};
struct Polynomial {
  double init_value = 0.0, end_value = 0.0, power = 1.0;
  std::optional<Duration> transition;
};
struct CosineDecay {
  double init_value = 0.0;
  std::optional<Duration> decay;
  double alpha = 0.0;
};
struct ExponentialDecay {
  double init_value = 0.0;
  Duration transition;
  double decay_rate = 1.0;
  bool staircase = false;
};
struct WarmupCosineDecay {
  double init_value = 0.0, peak_value = 0.0;
  Duration warmup;
  std::optional<Duration> decay;  // counts the warm-up
  double end_value = 0.0;
};
struct Scale {
  Duration boundary;
  double scale = 1.0;
};
struct PiecewiseConstant {
  double init_value = 0.0;
  std::vector<Scale> boundaries_and_scales;  // scales multiply
};
struct CosineOnecycle {
  double peak_value = 0.0;
  std::optional<Duration> transition;
  double pct_start = 0.3;
};
struct Join {
  std::vector<LearningRate> schedules;
  std::vector<Duration> boundaries;  // one fewer
};

}  // namespace schedule

using Schedule =
    std::variant<schedule::Linear, schedule::Polynomial, schedule::CosineDecay, schedule::ExponentialDecay,
                 schedule::WarmupCosineDecay, schedule::PiecewiseConstant, schedule::CosineOnecycle, schedule::Join>;
// The key of the schedule: "cosine_decay".
std::string to_string(const Schedule& schedule);

// A number, or a schedule of the count of updates.
struct LearningRate {
  LearningRate(double constant = 0.0) : value(constant) {}
  double value;  // without a schedule
  std::optional<Schedule> schedule;
  Place place;
};

struct ReduceOnPlateau {
  std::string metric = "loss";  // or the name of one of `metrics`
  std::optional<Mode> mode;     // none: mode_of(metric)
  double factor = 0.1;
  std::int64_t patience = 10, cooldown = 0;  // in evaluations
  // An improvement is larger than rtol times the best value, plus atol.
  double rtol = 1e-4, atol = 0.0;
  Place place = {};
};

struct ParameterGroup {
  std::vector<Pattern> parameters;
  std::optional<double> learning_rate_scale;  // none: 1
  std::optional<double> weight_decay;         // none: the rule's
  bool freeze = false;
};

struct OptimizerSpec {
  optimizers::Rule rule;
  LearningRate learning_rate;                   // before scaling by base_batch_size
  std::optional<std::int64_t> base_batch_size;  // the learning rate is multiplied by batch_size / base_batch_size
  Place place;
  Place base_batch_size_place = {};
  std::vector<Pattern> weight_decay_exclude = {};
  std::optional<ReduceOnPlateau> reduce_on_plateau = {};
  std::optional<double> clip = {}, clip_by_global_norm = {};
  std::vector<ParameterGroup> groups = {};  // the first that matches a parameter applies to it
};

}  // namespace pmaptrain::spec
