// Outputs of several members of a run for the same inputs, batch by batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/data/batches/loader.h"
#include "core/model/prediction.h"
#include "core/run/checkpoint.h"
#include "core/runtime/backend.h"

namespace pmaptrain::train {

class MemberOutputs {
 public:
  // `kind` is what each of the `members` of a checkpoint gives for `inputs`, in batches of `batch`. `spec` and `model`
  // are those of any of them. Throws Error.
  MemberOutputs(const spec::Spec& spec, const model::Model& model, model::PredictionKind kind,
                std::shared_ptr<const data::Dataset> inputs, const data::BatchPlan& batch,
                std::span<const std::int64_t> members, const CheckpointFile& parameters);

  std::int64_t batches() const { return batch_.steps_per_epoch; }
  std::int64_t members() const { return members_; }
  // Begins anew with the first batch.
  void restart();
  // Waits for the outputs of the next batch, and returns how many of its rows are examples: the first ones.
  std::int64_t next();
  // Of a member, counted among those that were chosen, in the batch of the last next(): all its rows.
  std::span<const std::byte> rows(std::int64_t member) const { return rows_[static_cast<std::size_t>(member)]; }

 private:
  std::shared_ptr<const data::Dataset> inputs_;
  data::BatchPlan batch_;
  std::int64_t members_ = 1;
  std::unique_ptr<Module> module_;
  std::vector<std::byte> targets_;            // where the loader puts those of every batch, which nothing reads
  std::vector<std::vector<std::byte>> rows_;  // by member
  std::optional<data::Loader> loader_;        // whose thread ends before what it fills
};

// The mean of the members' f32 outputs in the last batch, computed in f64 in the order of the members.
std::vector<float> mean_over_members(const MemberOutputs& outputs);
// The standard deviation of what the members say, around that mean: the root of the mean square.
std::vector<float> deviation_over_members(const MemberOutputs& outputs);

// What classifiers, or other models, say together, from the outputs of their last layers in the last batch: the mean of
// their probabilities, or of their outputs where `kind` is itself; and outputs of the same kind as theirs, from which a
// loss and a class are computed. Softmax is along `classes` numbers. Computed in f64, also where a probability is so
// near to 0 or 1 that f32 does not tell it from that.
struct Together {
  std::vector<float> outputs, probabilities;
};
Together together(const MemberOutputs& outputs, model::OutputKind kind, std::int64_t classes);

}  // namespace pmaptrain::train
