#include "core/schedules/cosine_decay.h"
#include "core/schedules/cosine_onecycle.h"
#include "core/schedules/exponential_decay.h"
#include "core/schedules/join.h"
#include "core/schedules/linear.h"
#include "core/schedules/piecewise_constant.h"
#include "core/schedules/polynomial.h"
#include "core/schedules/trapezoid.h"
#include "core/schedules/warmup_cosine_decay.h"

namespace pmaptrain::schedules {

// In the order of help.
const std::vector<declare::AnyKind>& family(declare::Tag<ScheduleKind>) {
  static const auto all = declare::kinds_of<ScheduleKind, Linear, Polynomial, CosineDecay, ExponentialDecay,
                                            WarmupCosineDecay, PiecewiseConstant, CosineOnecycle, Trapezoid, Join>();
  return all;
}

}  // namespace pmaptrain::schedules
