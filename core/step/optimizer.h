// The optimizer of a config, for the parameters of a model and the steps of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/data/batches/batch.h"
#include "core/model/model.h"
#include "core/step/rules.h"
#include "core/step/schedule.h"

namespace pmaptrain::train {

// What applies to one parameter.
struct Tuning {
  model::Number learning_rate_scale = {"", 1.0};  // without a name: not scaled
  model::Number weight_decay = {"", 0.0};         // without a name: none
  bool trained = true;                            // false: frozen
};

struct Optimizer {
  spec::OptimizerSpec spec;
  double learning_rate = 0.0;        // scaled by base_batch_size; with a schedule, its largest
  std::optional<Schedule> schedule;  // none: a constant rate
  std::vector<Tuning> tuning;        // in the order of Model::parameters
  bool overflows = true;             // may_overflow(); in an ensemble of any member, since they share a program

  // The indices of the parameters that are not frozen.
  std::vector<std::size_t> trained() const;
};

// Converts the durations of schedules to steps and matches the patterns of groups. A schedule without a duration of its
// own ends `schedule_steps` after it began: with the run, or where a change of the run did (Schedule::began). Throws
// Error (usage) for what make_schedule refuses, a rate that f32 cannot hold, a pattern of a group, or a whole
// weight_decay_exclude, that matches no parameter, a group that applies to none since those before it do, and groups
// that freeze every parameter.
Optimizer make_optimizer(const spec::OptimizerSpec& spec, const model::Model& model, const data::BatchPlan& batch,
                         std::int64_t schedule_steps, std::optional<std::int64_t> schedule_began = std::nullopt);

// The learning rate that update `update` uses, counted from 1. Without reduce_on_plateau, and of parameters whose group
// does not scale it.
double learning_rate_at(const Optimizer& optimizer, std::int64_t update);

// "sgd", "adam", "adamw"
std::string rule_name(const spec::OptimizerSpec& optimizer);

// What the update reads, and clipping and the schedule before it: "learning_rate", "b1", "groups/0/weight_decay".
// `dtype` is that of the parameters.
std::vector<model::Number> optimizer_numbers(const Optimizer& optimizer, DType dtype);

struct Update {
  std::vector<Value> parameters;
  std::vector<std::vector<Value>> slots;  // by kind, then by parameter
};

// Appends the update of every trained parameter. Parameters, gradients and slots are of those only and have the
// parameters' types; `slots` is by kind, then by parameter; `step` is i64[], 1 for the first update; `learning_rate` is
// a scalar of the parameters' dtype.
Update optimizer_update(Builder& b, const Optimizer& optimizer, const model::Numbers& numbers,
                        std::span<const Value> parameters, std::span<const Value> gradients,
                        const std::vector<std::vector<Value>>& slots, Value step, Value learning_rate);

// Whether a step could make a parameter or a slot infinite though its gradient is finite. Then the update has to be
// computed before it is judged, which costs a pass over all parameters and slots. Of most configs of adam it can be
// said that it cannot, where squares_bound() is finite:
//
//   sgd      |w' - w| ≤ rate·|g|, with any |g| that f32 holds unless the gradient is clipped;
//            a trace of a gradient that is not clipped may overflow
//   adam     |w' - w| ≤ rate/√((1-b2)·(1-b1²/b2)), by Cauchy and Schwarz on the sums that m' and v' are, for b1² < b2,
//            where eps is not so small that squares which vanish matter
//   rmsprop  |w' - w| ≤ rate/√(1-decay)/(1-momentum)
//   lion     |w' - w| ≤ rate
//
// and weight decay takes a parameter towards 0 where weight_decay and rate·weight_decay are at most 1. Where that is
// 1e30 at most, it is less than half of the distance between neighbouring numbers at the end of f32's range, so no such
// step takes a parameter across it. `rate` is the largest of the schedule and of the groups; a plateau only lowers it.
bool may_overflow(const Optimizer& optimizer);

}  // namespace pmaptrain::train
