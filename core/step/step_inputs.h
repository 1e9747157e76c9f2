// The inputs of a training step, and their roles.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/equations/numbers.h"
#include "core/model/batch.h"
#include "core/model/buckets.h"
#include "core/step/optimizer.h"
#include "core/step/step_program.h"

namespace pmaptrain::step {

// The inputs of the finished step, for the equations that read them. StepRoles has them as indices.
struct StepInputs {
  model::ParameterInputs parameters;
  std::vector<std::vector<Value>> slots;  // by kind, then by bucket
  std::vector<Value> ema;                 // with train.ema: the averages, by bucket
  Value step;                             // the number of updates
  std::optional<Value> finite, skipped;   // the state of the guard
  std::vector<Value> epoch;               // the sums in the order of measure_parts, then the number of examples
  model::BatchInputs batch;
  std::vector<Value> numbers;  // in the order of step_numbers
  std::optional<Value> learning_rate_scale;
  std::vector<Value> dropout_keys;                // in the order of Model::drawing_layers
  std::vector<std::pair<Value, double>> initial;  // state inputs whose elements are not 0 at the start
};

// Declares the inputs of the finished step (see train_program). `rows` is the number of rows of a device.
StepInputs declare_step(Builder& b, const model::Model& model, const StepOptions& options, const Optimizer& optimizer,
                        std::span<const model::Bucket> buckets, std::int64_t rows);

// u32[2] for each layer that draws random numbers.
std::vector<Value> declare_dropout_keys(Builder& b, const model::Model& model);

// The roles of the inputs. The roles of outputs are left at their defaults.
StepRoles input_roles(const Program& program, const StepInputs& inputs, const StepOptions& options,
                      std::span<const model::Bucket> buckets);

}  // namespace pmaptrain::step
