// Optimizers as equations, with the semantics of Optax.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/graph/builder.h"
#include "core/spec/spec.h"

namespace pmaptrain::train {

// "sgd", "adam", "adamw"
std::string rule_name(const spec::OptimizerSpec& optimizer);

// The kinds of state that the rule keeps, each of which has one slot of a parameter's type for every parameter:
// {"adam.mu", "adam.nu"}; none for plain sgd. A slot's full name is "adam.mu/conv_0.kernel". Slots begin as zeros.
std::vector<std::string> slot_kinds(const spec::OptimizerSpec& optimizer);

struct Update {
  std::vector<Value> parameters;
  std::vector<std::vector<Value>> slots;  // by kind, then by parameter
};

// Appends the update of every parameter. Gradients and slots have the parameters' types; `slots` is by kind, then by
// parameter; `step` is i64[], 1 for the first update; `learning_rate` is a scalar of the parameters' dtype.
//
//   sgd     t' = g + momentum·t          w' = w - rate·t', with nesterov w - rate·(g + momentum·t')
//   adam    m' = b1·m + (1-b1)·g,  v' = b2·v + (1-b2)·g²
//           u = (m'/(1-b1^step)) / (√(v'/(1-b2^step)) + eps)          w' = w - rate·u
//   adamw   w' = w - rate·(u + weight_decay·w)
Update optimizer_update(Builder& b, const spec::OptimizerSpec& optimizer, std::span<const Value> parameters,
                        std::span<const Value> gradients, const std::vector<std::vector<Value>>& slots, Value step,
                        Value learning_rate);

// What the hyper input learning_rate is given: the config's rate, multiplied by global_batch / base_batch_size where
// the config has a base.
double scaled_learning_rate(const spec::OptimizerSpec& optimizer, std::int64_t global_batch);

// Whether a step could make a parameter or a slot infinite though its gradient is finite. Then the update has to be
// computed before it is judged, which costs a pass over all parameters and slots. Of most configs of adam it can be
// said that it cannot, where squares_bound() is finite:
//
//   sgd     |w' - w| ≤ rate·|g|, with any |g| that f32 holds; with momentum the trace itself may overflow
//   adam    |w' - w| ≤ rate/√((1-b2)·(1-b1²/b2)), by Cauchy and Schwarz on the sums that m' and v' are, for b1² < b2
//   adamw   and rate·weight_decay·|w| more, which takes a parameter towards 0 where rate·weight_decay ≤ 1
//
// Where that is 1e30 at most, it is less than half of the distance between neighbouring numbers at the end of f32's
// range, so no such step takes a parameter across it.
bool may_overflow(const spec::OptimizerSpec& optimizer, std::int64_t global_batch);

// Where may_overflow() is false: a scalar that is finite exactly where every slot stays so, from the largest magnitude
// among the gradient's elements. Of adam it is that one's square: the mean of squares is at most as large. (It could be
// larger by rounding only, after thousands of steps with squares within a thousandth of the end of f32's range.)
Value squares_bound(Builder& b, const spec::OptimizerSpec& optimizer, Value largest_gradient);

}  // namespace pmaptrain::train
