// The probability above which a label counts as predicted, chosen on a split and stored in the run folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/evaluate/evaluator.h"

namespace pmaptrain::evaluate {

// Which parameters have computed probabilities.
struct ParametersUsed {
  std::string checkpoint;                // "step-00000100"; "best" of several members that have each their own
  std::optional<spec::Weights> weights;  // none: the run averages none
  run::MemberNumber member = std::nullopt;
};

// Which of both weights these are; none where the run averages none.
inline std::optional<spec::Weights> averaged(const spec::Spec& spec, spec::Weights weights) {
  return spec.train.ema ? std::optional(weights) : std::nullopt;
}

struct TunedThreshold {
  double threshold = 0.5;
  double f1 = 0;         // with that threshold
  std::string of_class;  // the name or number of class 1, whose f1 it is; empty for several labels
  // The class or label with the fewest examples in the split, and their number.
  std::string rarest;
  std::int64_t examples_of_rarest = 0;
};

// Throws Error (usage), for the option `option`, unless a threshold chooses what the model predicts: one of two
// classes, or labels that each have a sigmoid.
void check_takes_threshold(const model::Model& model, const std::string& option);

// The threshold, of 0.01, 0.02, ... 0.99, with the highest f1 on the split of `evaluation`: of two classes that of
// class 1, of several labels the mean over these; of equal ones that nearest to 0.5. Throws Error (usage) for a model
// without such labels.
TunedThreshold tune_threshold(const CheckpointEvaluation& evaluation);

struct StoredThreshold {
  double threshold = 0.5;
  ParametersUsed of;
};

// Writes and reads threshold.json of a run folder. store_threshold() returns the one that it replaces, if that can be
// read. Throws Error: failed; usage if there is none to read, or one of an older version; data for a damaged one.
std::optional<StoredThreshold> store_threshold(const std::filesystem::path& run, const TunedThreshold& tuned,
                                               const std::string& split, const ParametersUsed& of);
StoredThreshold stored_threshold(const std::filesystem::path& run);

// The options that choose these parameters: "--checkpoint 100 --weights raw".
std::string options_of(const ParametersUsed& used);

// Throws Error (usage) unless the threshold was chosen with the parameters that predict: probabilities of others are
// distributed otherwise.
void check_threshold_fits(const StoredThreshold& stored, const ParametersUsed& now, const std::filesystem::path& run);

}  // namespace pmaptrain::evaluate
