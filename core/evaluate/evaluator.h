// Evaluates parameters on a split, on all devices. Every example counts once.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/evaluate/shared_batches.h"
#include "core/input/batches/loader.h"
#include "core/input/open.h"
#include "core/model/row_metrics.h"
#include "core/run/checkpoint.h"
#include "core/run/records/events.h"
#include "core/run/run_state.h"
#include "core/runtime/backend.h"
#include "core/setup/setup.h"

namespace pmaptrain::evaluate {

struct Evaluation {
  std::string split;
  run::Measures measures;
  std::int64_t examples = 0;
  double seconds = 0;  // of all members
  std::int64_t member = 0;
  std::string checkpoint = {};            // the checkpoint of evaluate_checkpoint(), "step-00000100"
  std::vector<std::string> classes = {};  // names of classes; empty if they have only numbers
  bool is_of_mean = false;                // whether this evaluates the mean of several members
  std::optional<metrics::Confusion> confusion = {};
};

// The bytes that an evaluation of one member gathers for metrics that need a row of numbers for each example.
std::size_t gathered_bytes(const setup::EvaluationPlan& plan, const model::Model& model);

class Evaluator {
 public:
  // `entry` is the module's entry with the program of `plan`, for `model`; module and model outlive this. Starts the
  // thread that reads batches ahead. Throws Error (resource), also if the gathered rows do not fit into memory.
  // The confusion matrix is of `threshold` where there is one (finish_rows).
  Evaluator(Module& module, std::size_t entry, const setup::EvaluationPlan& plan, const model::Model& model,
            std::optional<double> threshold = std::nullopt);

  // Evaluates the parameters that the module holds for these members, and returns one evaluation for each.
  // `is_to_stop` is asked before each batch: if it says so, returns an empty list, because the measures of a part of a
  // split are no evaluation. Of several processes, all must answer alike. `progress` is called before each batch.
  // `fill` is called with the slot of a batch before it runs, to set inputs that the dataset does not have.
  using Progress = std::function<void(std::int64_t batch, std::int64_t batches)>;
  using Fill = std::function<void(int slot)>;
  using IsToStop = std::function<bool()>;
  std::vector<Evaluation> run(std::span<const std::int64_t> members, const IsToStop& is_to_stop = {},
                              const Progress& progress = {}, const Fill& fill = {});

 private:
  // The sums and gathered rows of one member.
  struct Sums {
    std::vector<std::vector<double>> parts;  // in the order of measure_parts
    double count = 0;
    std::vector<float> rows;
  };
  // Adds those of a batch, of a member of this process.
  void add_step(Sums& sums, std::int64_t member);
  // Gives all processes the sums of all members, which may be of different processes.
  void share(std::span<const std::int64_t> members, std::vector<Sums>& sums);
  Evaluation finish(Sums sums, std::int64_t member) const;

  Module& module_;
  std::size_t entry_;
  BatchPlan batch_;
  const model::Model& model_;
  std::optional<double> threshold_;
  std::string split_;
  input::Loader loader_;
};

// The members of a run that are selected: all of them, or `member`. Throws Error (usage) if `member` does not exist.
std::vector<std::int64_t> chosen_members(const spec::Spec& spec, run::MemberNumber member);
// Throws Error (usage) if the checkpoint has other members than `spec`. Options may have changed `spec`.
void check_same_members(const spec::Spec& spec, const run::RunState& state);

// Removes and returns the members without a best checkpoint. Throws Error (usage) if no member has one.
std::vector<std::int64_t> remove_members_without_best(std::vector<std::int64_t>& members, const run::RunState& state);

// Evaluates a checkpoint of a run folder ("last", "best" or a step) on a split; by default on test if there is one,
// else on validation. Evaluates every member, or `member` alone. For "best", members without a best checkpoint are left
// out; selecting one as `member` is an error. `loaded` is the run's config, and `weights` as in load_weights(). Opens
// only the data of the split. If that is the run's own data (`is_own_data`, or the content is the same), leaves out the
// same rows and files as the run. Data that is said to be the run's own is refused where its content is another one;
// with `verify_data` all bytes are compared. Several processes evaluate together (`shared`): each makes this and calls
// the same functions, reads the rows of its devices, and gets the measures of all; only process 0 needs to see the run
// folder. Throws Error.
class CheckpointEvaluation {
 public:
  CheckpointEvaluation(const spec::Loaded& loaded, const std::filesystem::path& run_dir, const std::string& checkpoint,
                       const std::optional<std::string>& split, spec::Weights weights, run::MemberNumber member,
                       bool is_own_data = true, SharedBatches shared = {}, bool verify_data = false);

  // Notes about the data: rows that were left out, categories that the training split does not have.
  const std::vector<std::string>& notes() const { return data_.notes; }
  // Members without a best checkpoint, if "best" is evaluated.
  const std::vector<std::int64_t>& left_out() const { return left_out_; }
  std::string split() const { return std::string(data::name_of(split_)); }
  const data::Dataset& dataset() const { return *data_.of(split_); }
  // Of texts; null where bytes are tokens.
  const tokenizers::Tokenizer* tokenizer() const { return data_.tokenizer.get(); }
  // The model of the first member.
  model::Model model() const { return model_for(members_.front()); }
  // The names of classes; empty if they have only numbers.
  const std::vector<std::string>& classes() const { return trained_.state.encoding.classes; }
  // How the run reads its data.
  const data::Encoding& encoding() const { return trained_.state.encoding; }
  // The name of the checkpoint; "best" if several members have each their own.
  std::string checkpoint_name_of_all() const;
  // Metrics then count a label, or class 1 of two, as predicted above this probability. Throws Error (usage) for a
  // model, or metrics, without such a threshold.
  void set_threshold(double probability);
  std::vector<Evaluation> evaluate_members() const;
  // Evaluates the mean of the members' probabilities, or of their outputs. If members have different hyperparameters of
  // the loss, those of the first member are used. Evaluation::checkpoint is "best" if members have each their own.
  Evaluation evaluate_average() const;

  // What the mean of the members predicts for successive examples: `outputs`, the outputs of the last layer in the
  // units of the targets, and `probabilities`, which the loss makes of them. Both are [examples, output...].
  struct Predicted {
    std::int64_t first = 0, examples = 0;  // in the split
    std::span<const float> outputs, probabilities;
  };
  // Calls `take` batch by batch, in the order of the split. Of several processes, all get all.
  void predict(const std::function<void(const Predicted&)>& take) const;

  // Of a model whose targets are one class for each position of a sequence: for successive examples the cross-entropy
  // of each position by the mean of the members' probabilities, in nats, and the class with the largest probability (-1
  // of several members). Both are [examples, positions]. Positions whose label is ignored have any loss.
  struct PositionLosses {
    std::int64_t first = 0, examples = 0;  // in the split
    std::span<const double> losses;
    std::span<const std::int32_t> likeliest;
  };
  void position_losses(const std::function<void(const PositionLosses&)>& take) const;

 private:
  BatchPlan batch_plan_of(const data::Dataset& dataset, const spec::Spec& spec) const;
  // Made for each member, because members may have different numbers in the loss.
  model::Model model_for(std::int64_t member) const;
  // Reads the contents of the split's files. Returns whether they are the run's own. Throws Error (data) where they are
  // not, and `is_own_data` says that they are.
  bool compare_contents(bool is_own_data, bool verify_data);
  // Throws Error (usage) unless the other processes evaluate the same.
  void check_processes() const;
  std::vector<Evaluation> run(Evaluator& evaluator, std::span<const std::int64_t> members,
                              const Evaluator::Fill& fill = {}) const;

  spec::Loaded loaded_;
  std::string checkpoint_;
  std::vector<std::int64_t> members_, left_out_;
  run::CheckpointWeights trained_;
  std::optional<double> threshold_;
  data::Split split_;
  data::Source data_;
  input::Contents contents_;  // of the files of the split, where they are compared
  SharedBatches shared_;
};

// Makes a CheckpointEvaluation and returns its evaluations.
std::vector<Evaluation> evaluate_checkpoint(const spec::Loaded& loaded, const std::filesystem::path& run_dir,
                                            const std::string& checkpoint,
                                            const std::optional<std::string>& split = std::nullopt,
                                            spec::Weights weights = spec::Weights::ema,
                                            run::MemberNumber member = std::nullopt);

}  // namespace pmaptrain::evaluate
