#include "core/losses/focal.h"
#include "core/losses/huber.h"
#include "core/losses/log_cosh.h"
#include "core/losses/mean_absolute_error.h"
#include "core/losses/mean_squared_error.h"
#include "core/losses/poisson.h"
#include "core/losses/quantile.h"
#include "core/losses/sigmoid_cross_entropy.h"
#include "core/losses/softmax_cross_entropy.h"

namespace pmaptrain::losses {

// In the order of help.
const std::vector<declare::AnyKind>& family(declare::Tag<Loss>) {
  static const auto all = declare::kinds_of<Loss, SoftmaxCrossEntropy, SigmoidCrossEntropy, Focal, MeanSquaredError,
                                            MeanAbsoluteError, Huber, LogCosh, Quantile, Poisson>();
  return all;
}

}  // namespace pmaptrain::losses
