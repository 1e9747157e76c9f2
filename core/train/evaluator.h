// Evaluation of parameters on a split, on all devices, every example counted once.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "core/data/loader.h"
#include "core/runtime/cpu/executor.h"
#include "core/train/safetensors.h"
#include "core/train/session.h"

namespace pmaptrain::train {

// Copies a loader's batch into an executor's batch inputs (those that its program has).
void feed(CpuExecutor& executor, const data::Batch& batch);

class Evaluator {
 public:
  // `program` is the evaluation program of `model`, which outlives this, for batches of `batch`.
  Evaluator(std::shared_ptr<const Program> program, std::shared_ptr<const data::Dataset> dataset,
            const data::BatchPlan& batch, const model::Model& model, std::string split, const CpuOptions& options);

  // `file` is where the parameters are from, for the error when they do not fit. None once `stop`, asked before each
  // batch, is not zero: what was measured until then is of no split.
  std::optional<Evaluation> run(const Tensors& parameters, const std::string& file,
                                const std::atomic<int>* stop = nullptr);

 private:
  std::shared_ptr<const data::Dataset> dataset_;
  data::BatchPlan batch_;
  const model::Model* model_;
  std::string split_;
  CpuExecutor executor_;
};

// An output or input's elements, of any floating or integer type.
std::vector<double> numbers(const Program& program, Value value, std::span<const std::byte> bytes);
// The only one of a scalar.
double scalar(const Program& program, Value value, std::span<const std::byte> bytes);

}  // namespace pmaptrain::train
