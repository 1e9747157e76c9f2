// Prediction: what a run's model says about inputs whose targets are not known.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/sources/prediction_input.h"
#include "core/evaluate/evaluator.h"
#include "core/evaluate/member_outputs.h"
#include "core/model/prediction.h"

namespace pmaptrain::train {

struct PredictionRequest {
  data::PredictionFile input;
  std::optional<model::PredictionKind> kind;  // none: classes where the loss is one of classes, else values
  std::string checkpoint = "last";            // or "best", or a step
  spec::Weights weights = spec::Weights::ema;
  MemberNumber member = std::nullopt;  // of an ensemble; none: what all members say together
};

// "classes", as --as takes it.
std::string_view name_of(model::PredictionKind kind);
inline constexpr model::PredictionKind all_prediction_kinds[] = {
    model::PredictionKind::classes, model::PredictionKind::probabilities, model::PredictionKind::logits,
    model::PredictionKind::values};

// What predictions are.
struct Predictions {
  model::PredictionKind kind = model::PredictionKind::values;
  DType dtype = DType::f32;                     // i32 for classes
  Shape shape;                                  // of one example
  std::vector<std::string> classes;             // the names of the classes; empty where they are numbers
  bool by_class = false;                        // each example is of one class, as opposed to several at once
  std::shared_ptr<const data::Dataset> inputs;  // size() and file_of()
  std::vector<data::TextColumn> ids;            // columns of the inputs that are passed through
  bool has_deviations = false;                  // each example's values are followed by their standard deviations
  bool tells_errors = false;                    // of rows and files that cannot be read
  std::vector<data::SkippedRow> skipped;        // those, which `inputs` does not have
  std::string checkpoint;                       // "step-00000100"; of several members "best", or one that is all's
  std::vector<std::int64_t> left_out;           // members without a best checkpoint

  std::size_t row_bytes() const {
    return size_of(dtype) * static_cast<std::size_t>(numel(shape)) * (has_deviations ? 2 : 1);
  }
};

class Predictor {
 public:
  // Opens the run's checkpoint and the inputs, and nothing of the run's data. `loaded` is the run's config. Members of
  // an ensemble predict together: the mean of their probabilities, or of their values with the standard deviation. Of
  // "best" each has its own best parameters, and those that have none are left out. Throws Error.
  Predictor(const spec::Loaded& loaded, const std::filesystem::path& run_dir, const PredictionRequest& request);

  const Predictions& predictions() const { return predictions_; }
  const std::vector<std::string>& notes() const { return notes_; }

  // Calls `take` with the predictions of some examples after another, in the order of the inputs: whole rows. Batches
  // are as large as those of training, so what is held does not grow with the inputs. Stops once `stop`, asked before
  // each batch, is not zero. Throws Error, and what `take` throws.
  using Take = std::function<void(std::int64_t first, std::span<const std::byte> rows)>;
  void run(const Take& take, const std::atomic<int>* stop = nullptr);

 private:
  std::span<const std::byte> combined();

  Predictions predictions_;
  std::vector<std::string> notes_;
  std::int64_t batch_size_ = 0, outputs_per_example_ = 0, classes_ = 0;
  model::OutputKind output_kind_ = model::OutputKind::itself;
  bool is_together_ = false;  // of several members, or of all that an ensemble has
  std::unique_ptr<MemberOutputs> outputs_;
  std::vector<std::byte> combined_;  // rows of predictions of several members
};

}  // namespace pmaptrain::train
