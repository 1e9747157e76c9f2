// The outputs of several members of a run for the same inputs, batch by batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/evaluate/shared_batches.h"
#include "core/input/batches/loader.h"
#include "core/model/prediction.h"
#include "core/run/checkpoint.h"
#include "core/runtime/backend.h"

namespace pmaptrain::evaluate {

class MemberOutputs {
 public:
  // Loads the outputs of kind `kind` of the checkpoint's `members` for `inputs`, in batches of `batch`. `spec` and
  // `model` may be those of any of these members. Of several processes, each reads and computes the rows of its
  // devices, and gets the outputs of all. Throws Error.
  MemberOutputs(const spec::Spec& spec, const model::Model& model, model::PredictionKind kind,
                std::shared_ptr<const data::Dataset> inputs, const BatchPlan& batch,
                std::span<const std::int64_t> members, const run::CheckpointWeights& trained, SharedBatches shared = {},
                std::optional<std::int64_t> choices = std::nullopt);
  // Loads the outputs of another program, such as model::features_program.
  MemberOutputs(const spec::Spec& spec, const model::Model& model, Program program,
                std::shared_ptr<const data::Dataset> inputs, const BatchPlan& batch,
                std::span<const std::int64_t> members, const run::CheckpointWeights& trained, SharedBatches shared);

  std::int64_t batches() const { return batch_.steps_per_epoch; }
  std::int64_t members() const { return members_; }
  // Starts again with the first batch.
  void restart();
  // Waits for the outputs of the next batch. Returns the number of its rows that are examples; these come first. Every
  // process calls it.
  std::int64_t next();
  // All rows of a member in the batch of the last next(). `member` is an index among the selected members.
  std::span<const std::byte> rows(std::int64_t member) const { return rows_[static_cast<std::size_t>(member)]; }
  // Their numbers, f32 or f64 (model::in_units_of_targets): how many, and one of them.
  std::size_t numbers() const { return rows_.front().size() / size_of(dtype_); }
  double number(std::int64_t member, std::size_t index) const;

 private:
  std::shared_ptr<const data::Dataset> inputs_;
  BatchPlan batch_;
  std::int64_t members_ = 1;
  DType dtype_ = DType::f32;
  SharedBatches shared_;
  std::int64_t batch_number_ = 0;  // of the next batch
  std::unique_ptr<Module> module_;
  std::vector<std::byte> targets_;            // where the loader writes targets that the program does not read
  std::vector<std::vector<std::byte>> rows_;  // by member
  std::optional<input::Loader> loader_;       // declared last, because its thread uses the other members
};

// The mean of the members' outputs in the last batch, computed in f64 in the order of the members.
std::vector<double> mean_over_members(const MemberOutputs& outputs);
// The standard deviation of the members' outputs around that mean: the root of the mean square.
std::vector<double> deviation_over_members(const MemberOutputs& outputs);

// The mean of several members in the last batch. For logits, `probabilities` has the mean of the members'
// probabilities, and `outputs` has logits that give these probabilities, from which a loss and a class are computed; of
// one member they are its own. If `kind` is identity, both are the mean of the members' outputs. A softmax runs over
// `classes` numbers. Computed in f64 from logarithms, which tells probabilities apart that are too near to 0 or 1 for
// f32.
struct EnsembleMean {
  std::vector<float> outputs, probabilities;
};
EnsembleMean ensemble_mean(const MemberOutputs& outputs, model::OutputKind kind, std::int64_t classes);

}  // namespace pmaptrain::evaluate
