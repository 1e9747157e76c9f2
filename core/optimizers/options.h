// What trains the parameters: an update rule, a learning rate, clipping, groups of parameters, their average.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/declare/values.h"
#include "core/optimizers/rule.h"
#include "core/schedules/schedule.h"

namespace pmaptrain::optimizers {

struct ReduceOnPlateau {
  std::string metric = "loss";        // or the name of one of `metrics`
  std::optional<declare::Mode> mode;  // none: that of the metric
  double factor = 0.1;
  std::int64_t patience = 10, cooldown = 0;  // in evaluations
  // An improvement is larger than rtol times the best value, plus atol.
  double rtol = 1e-4, atol = 0.0;
  Place place = {};
};

struct ParameterGroup {
  std::vector<declare::Pattern> parameters;
  std::optional<double> learning_rate_scale;  // none: 1
  std::optional<double> weight_decay;         // none: the rule's
  bool freeze = false;
};

struct Options {
  Rule rule;
  schedules::LearningRate learning_rate;        // before scaling by base_batch_size
  std::optional<std::int64_t> base_batch_size;  // the learning rate is multiplied by batch_size / base_batch_size
  Place place;
  Place base_batch_size_place = {};
  std::vector<declare::Pattern> weight_decay_exclude = {};
  std::optional<ReduceOnPlateau> reduce_on_plateau = {};
  std::optional<double> clip = {}, clip_by_global_norm = {};
  std::vector<ParameterGroup> groups = {};  // the first that matches a parameter applies to it
};

// optax.ema of the parameters.
struct Ema {
  double decay = 0.999;
  bool debias = true;
};

}  // namespace pmaptrain::optimizers
