// The optimizer, for the parameters of a model and the steps of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/mesh/batch_plan.h"
#include "core/model/buckets.h"
#include "core/model/model.h"
#include "core/optimizers/options.h"
#include "core/step/schedule.h"

namespace pmaptrain::step {

// The options of the optimizer for one parameter.
struct ParameterOptions {
  equations::Number learning_rate_scale = {"", 1.0};  // without a name: the rate is not scaled
  equations::Number weight_decay = {"", 0.0};         // without a name: no decay
  bool trained = true;                                // false: frozen
  std::int64_t tokens = 0;                            // as Bucket::tokens; in an ensemble, 0 if it is 0 for any member
};

struct Optimizer {
  optimizers::Options options;
  double learning_rate = 0.0;                   // after scaling by base_batch_size; with a schedule, its largest rate
  std::optional<schedules::Schedule> schedule;  // none: the rate is constant
  std::vector<ParameterOptions> parameter_options;  // in the order of Model::parameters
  bool may_overflow = true;  // see may_overflow(); in an ensemble, true if it is true for any member

  // The indices of the parameters that are not frozen.
  std::vector<std::size_t> trained() const;
};

// Converts the durations of schedules to steps and matches the patterns of groups. A schedule without a duration of its
// own lasts for `schedule_steps` steps: the whole run or, if a change of the run set the schedule after
// `schedule_began` updates, what was left of the run then. Throws Error (usage) for what make_schedule refuses; a rate
// that f32 cannot hold; a group's pattern that matches no parameter; a weight_decay_exclude in which no pattern
// matches; a group whose parameters all belong to earlier groups; and groups that freeze every parameter.
Optimizer make_optimizer(const optimizers::Options& options, const model::Model& model, const BatchPlan& batch,
                         std::int64_t schedule_steps, std::optional<std::int64_t> schedule_began = std::nullopt);

// The learning rate of update `update`, counted from 1, without the factors of reduce_on_plateau and of groups.
double learning_rate_at(const Optimizer& optimizer, std::int64_t update);

// The name in the config: "sgd", "adam", "adamw".
std::string rule_name(const optimizers::Options& optimizer);

// The numbers (scalar inputs) that the update, clipping and the schedule read: "learning_rate", "b1",
// "groups/0/weight_decay". `dtype` is the parameters' element type.
std::vector<equations::Number> optimizer_numbers(const Optimizer& optimizer, DType dtype);

// The values after an update, of parameters or of buckets of them.
struct Update {
  std::vector<Value> parameters;
  std::vector<std::vector<Value>> slots;  // by kind, then as `parameters`
};

// Appends the update of parameters, or of buckets of them. `option_indices` has an index in
// Optimizer::parameter_options for each. Gradients and slots have the parameters' types. `slots` is by kind, then by
// parameter; `step` is i64[], 1 for the first update; `learning_rate` is a scalar of the parameters' dtype.
Update optimizer_update(Builder& b, const Optimizer& optimizer, const equations::Numbers& numbers,
                        std::span<const std::size_t> option_indices, std::span<const Value> parameters,
                        std::span<const Value> gradients, const std::vector<std::vector<Value>>& slots, Value step,
                        Value learning_rate);

// The trained parameters in buckets: one for each learning rate scale and weight decay, for the axes that divide
// parameters and along which their gradients are summed, and for each group of layers if these gather their parameters.
// A bucket has its parameters in the reverse of their order in the model, which is the order in which the backward pass
// computes their gradients.
std::vector<model::Bucket> buckets_of(const model::Model& model, const Optimizer& optimizer,
                                      const model::Sharding& sharding);

// Whether a step can make a parameter or a slot infinite although its gradient is finite. If so, the update must be
// computed before the guard judges it, which costs a pass over all parameters and slots. Otherwise the guard needs to
// test slot_bound() alone. The answer follows from the rule's largest_change(); for most configs of adam it is false.
//
// Weight decay moves a parameter towards 0 if weight_decay and rate·weight_decay are at most 1. A change of at most
// 1e30 is less than half of the distance between neighbouring numbers at the end of f32's range, so no step moves a
// parameter past that end. `rate` is the largest rate of the schedule and of the groups; a plateau only lowers it.
bool may_overflow(const Optimizer& optimizer);

}  // namespace pmaptrain::step
