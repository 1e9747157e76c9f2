#include "core/optimizers/adadelta.h"
#include "core/optimizers/adagrad.h"
#include "core/optimizers/adam.h"
#include "core/optimizers/adamw.h"
#include "core/optimizers/lion.h"
#include "core/optimizers/nadam.h"
#include "core/optimizers/rmsprop.h"
#include "core/optimizers/rule.h"
#include "core/optimizers/sgd.h"

namespace pmaptrain::optimizers {

// In the order of help.
const std::vector<declare::AnyKind>& family(declare::Tag<Rule>) {
  static const auto all = declare::kinds_of<Rule, Sgd, Adam, AdamW, RmsProp, AdaGrad, NAdam, Lion, AdaDelta>();
  return all;
}

}  // namespace pmaptrain::optimizers
