// Predicts with the model of a run, for inputs without targets.
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

#include "core/evaluate/evaluator.h"
#include "core/evaluate/member_outputs.h"
#include "core/input/prediction_input.h"
#include "core/model/prediction.h"

namespace pmaptrain::evaluate {

struct PredictionRequest {
  input::PredictionFile input;
  std::optional<model::PredictionKind> kind;  // none: classes if the loss is one of classes, else values
  std::string checkpoint = "last";            // or "best", or a step
  spec::Weights weights = spec::Weights::ema;
  run::MemberNumber member = std::nullopt;  // of an ensemble; none: the mean of all members
  std::string features = {};  // the path of a layer, whose outputs are asked for in place of predictions; empty: none
  // The probability above which a label is predicted; called once the model is known to take one.
  std::function<double()> threshold = {};
};

// The name of a kind as in the option --as: "classes".
std::string_view name_of(model::PredictionKind kind);
inline constexpr model::PredictionKind all_prediction_kinds[] = {
    model::PredictionKind::classes, model::PredictionKind::probabilities, model::PredictionKind::logits,
    model::PredictionKind::values};

// The content of a file of predictions.
struct Predictions {
  model::PredictionKind kind = model::PredictionKind::values;
  std::string features = {};                    // the layer whose outputs they are; empty: predictions
  DType dtype = DType::f32;                     // i32 for classes; f64 for values that need it
  Shape shape;                                  // of one example
  std::vector<std::string> classes;             // the names of the classes; empty if they have only numbers
  bool by_class = false;                        // whether each example has one class, not several at once
  bool by_label = false;                        // whether each has several labels, with these names
  std::vector<double> quantiles;                // of each number of a target, where values are these; else empty
  std::string label_separator;                  // between the names of labels in one cell; empty: a column for each
  std::shared_ptr<const data::Dataset> inputs;  // used for size() and file_of()
  std::vector<data::TextColumn> ids;            // columns of the inputs that are passed through
  bool has_deviations = false;                  // whether standard deviations follow the values of each example
  bool lists_unreadable_rows = false;           // whether the output lists rows and files that cannot be read
  std::vector<data::SkippedRow> skipped;        // rows and files that cannot be read; `inputs` does not have them
  std::string checkpoint;                       // "step-00000100"; for several members "best", or a common step
  std::vector<std::int64_t> left_out;           // members without a best checkpoint

  std::size_t row_bytes() const {
    return size_of(dtype) * static_cast<std::size_t>(numel(shape)) * (has_deviations ? 2 : 1);
  }
};

class Predictor {
 public:
  // Opens the checkpoint and the inputs, but not the run's data. `loaded` is the run's config. The prediction of an
  // ensemble is the mean of its members' probabilities, or the mean of their values with the standard deviation. For
  // "best", each member has its own best parameters, and members without best parameters are left out. Several
  // processes predict together (`shared`): each computes the rows of its devices, and only process 0 needs to see the
  // run folder. Throws Error.
  Predictor(const spec::Loaded& loaded, const std::filesystem::path& run_dir, const PredictionRequest& request,
            SharedBatches shared = {});

  const Predictions& predictions() const { return predictions_; }
  const std::vector<std::string>& notes() const { return notes_; }

  // Calls `take` with the predictions of successive examples, as whole rows, in the order of the inputs. Batches are as
  // large as in training, so memory does not grow with the inputs. Stops if `stop`, which is read before each batch, is
  // not zero in any process, and returns that signal; else 0. Every process calls it, and each that gives a `take` gets
  // all predictions. Throws Error, and what `take` throws.
  using Take = std::function<void(std::int64_t first, std::span<const std::byte> rows)>;
  int run(const Take& take, const std::atomic<int>* stop = nullptr);

 private:
  std::span<const std::byte> combined();
  void show_features(const model::Node& node);

  Predictions predictions_;
  SharedBatches shared_;
  std::vector<std::string> notes_;
  std::int64_t batch_size_ = 0, outputs_per_example_ = 0, classes_ = 0;
  model::OutputKind output_kind_ = model::OutputKind::identity;
  std::int64_t choices_ = 0;  // the first outputs, among which a class is chosen: those of the classes of training
  // Whether predictions are made of the members' outputs here: of their mean, by a threshold, or from some of them.
  bool combines_ = false;
  float threshold_ = 0;                   // of an output
  std::optional<double> of_second_ = {};  // of two classes with an output each: the probability of class 1
  std::unique_ptr<MemberOutputs> outputs_;
  std::vector<std::byte> combined_;  // the rows of the mean
};

}  // namespace pmaptrain::evaluate
