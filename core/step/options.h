// What a step is built for, beside its model, its optimizer and the size of its batches.
#pragma once

#include <optional>

#include "core/mesh/mesh.h"
#include "core/model/buckets.h"
#include "core/optimizers/options.h"

namespace pmaptrain::step {

struct StepOptions {
  Mesh mesh;
  AxisSet data_axes;  // that divide the batch
  model::Sharding sharding;
  std::optional<optimizers::Ema> ema;
  bool halts = true;         // at the first step that the guard refuses; else such steps are skipped
  Place microbatches_place;  // of the loop over them
};

}  // namespace pmaptrain::step
