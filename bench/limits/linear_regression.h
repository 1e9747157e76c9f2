// One step of linear regression as fast as it can be written by hand: what the driver's own overhead is held against.
#pragma once

#include "bench/limits/team.h"

namespace pmaptrain::limits {

enum class Layout {
  rows,     // inputs [examples, features], as a loader delivers them
  columns,  // inputs [features, examples], transposed once beforehand
};

struct LinearRegression {
  int devices = 8;  // logical; even
  int examples = 100;
  int workers = 2;  // 1 or 2
  Layout layout = Layout::columns;
};

constexpr int linear_features = 5;

// Seconds for one step of gradient descent on y = x w + b in f32: forward, mean squared error, gradient, the sum over
// two blocks of devices in a fixed order, update; with more than one worker a barrier before the sum and one after the
// update. Measured in groups of steps for about `seconds`. Throws Error when it does not learn the true weights, or
// not the same on one worker as on two.
Seconds measure(const LinearRegression& work, double seconds);

}  // namespace pmaptrain::limits
