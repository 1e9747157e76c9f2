// Evaluation of parameters on a split, on all devices, every example counted once.
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

#include "core/data/batches/loader.h"
#include "core/data/sources/open.h"
#include "core/model/row_metrics.h"
#include "core/run/checkpoint.h"
#include "core/run/records/events.h"
#include "core/run/run_state.h"
#include "core/runtime/backend.h"
#include "core/setup/setup.h"

namespace pmaptrain::train {

struct Evaluation {
  std::string split;
  Measures measures;
  std::int64_t examples = 0;
  double seconds = 0;  // of all members
  std::int64_t member = 0;
  std::string checkpoint = {};            // evaluate_checkpoint(): whose parameters these are, "step-00000100"
  std::vector<std::string> classes = {};  // their names; empty where they are numbers
  bool together = false;                  // of the mean of what several members say
  std::optional<model::ConfusionMatrix> confusion = {};
};

// What an evaluation of one member gathers for metrics that need rows.
std::size_t gathered_bytes(const EvaluationPlan& plan, const model::Model& model);

class Evaluator {
 public:
  // The module's entry `entry` has the program of `plan`, for `model`; module and model outlive this. Starts the thread
  // that reads batches ahead. Throws Error (resource): also where what metrics gather of each example does not fit.
  Evaluator(Module& module, std::size_t entry, const EvaluationPlan& plan, const model::Model& model);

  // Of the parameters that the module has of these members, one of each. None once `stop`, asked before each batch, is
  // not zero: what was measured until then is of no split. `progress` is called before each batch.
  // `fill` is called before a batch is run, with its slot: for inputs that no dataset has.
  using Progress = std::function<void(std::int64_t batch, std::int64_t batches)>;
  using Fill = std::function<void(int slot)>;
  std::vector<Evaluation> run(std::span<const std::int64_t> members, const std::atomic<int>* stop = nullptr,
                              const Progress& progress = {}, const Fill& fill = {});

 private:
  // What is added up, and gathered, of one member.
  struct Sums {
    std::vector<std::vector<double>> parts;  // in the order of measure_parts
    double count = 0;
    std::vector<float> rows;
  };
  void add_step(Sums& sums, std::int64_t member);
  Evaluation finish(Sums sums, std::int64_t member) const;

  Module& module_;
  std::size_t entry_;
  data::BatchPlan batch_;
  const model::Model& model_;
  std::string split_;
  data::Loader loader_;
};

// The members of a run that are meant: all of them, or the one that is asked for. Throws Error (usage) for one that
// there is not.
std::vector<std::int64_t> chosen_members(const spec::Spec& spec, MemberNumber member);
// The config may have options that the run's has not. Throws Error (usage) where the checkpoint has other members.
void check_same_members(const spec::Spec& spec, const RunState& state);

// Takes the members out that have no best checkpoint, and returns them. Throws Error (usage) where none has one.
std::vector<std::int64_t> leave_out_without_best(std::vector<std::int64_t>& members, const RunState& state);

// Evaluates a run folder's checkpoint ("last", "best" or a step) on a split, by default on test where there is one,
// else on validation: every member, or `member` alone. Of "best", the members that have none are left out; where
// `member` is one of them, it is refused. `loaded` is the run's config; `weights` are those of load_weights(). Opens
// only the data that the split needs: of the run's own data, the rows and files that the run has left out are left out
// again. Throws Error.
class CheckpointEvaluation {
 public:
  CheckpointEvaluation(const spec::Loaded& loaded, const std::filesystem::path& run_dir, const std::string& checkpoint,
                       const std::optional<std::string>& split, spec::Weights weights, MemberNumber member,
                       bool is_own_data = true);

  // What is told of the data: rows that were left out, categories that training has not.
  const std::vector<std::string>& notes() const { return data_.notes; }
  // Members without a best checkpoint, where that is evaluated.
  const std::vector<std::int64_t>& left_out() const { return left_out_; }
  std::vector<Evaluation> of_members() const;
  // Of what the members say together: the mean of their probabilities, or of their outputs. Numbers of the loss that
  // members differ in are those of the first. Its checkpoint is "best" where each has its own.
  Evaluation of_average() const;

 private:
  // Made for each member: their numbers of the loss may differ.
  model::Model model_for(std::int64_t member) const;

  spec::Loaded loaded_;
  std::string checkpoint_;
  std::vector<std::int64_t> members_, left_out_;
  CheckpointWeights trained_;
  data::Split split_;
  data::Source data_;
};

// The same in one call.
std::vector<Evaluation> evaluate_checkpoint(const spec::Loaded& loaded, const std::filesystem::path& run_dir,
                                            const std::string& checkpoint,
                                            const std::optional<std::string>& split = std::nullopt,
                                            spec::Weights weights = spec::Weights::ema,
                                            MemberNumber member = std::nullopt);

}  // namespace pmaptrain::train
