// What a run's model predicts on its validation split, else on test: the confusion of classes, and the examples, or the
// windows of a text, that it predicts worst.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/model/row_metrics.h"
#include "core/report/runs/run_record.h"
#include "core/report/runs/text_windows.h"

namespace pmaptrain::report {

struct WorstExample {
  std::int64_t index = 0;        // in the split
  std::string place;             // of an image its file, of a table "t.csv, line 7", of an array its row if that is not
                                 // the index; else empty
  std::string truth, predicted;  // classes; empty of regression
  std::vector<double> numbers;   // of regression: the target, and
  std::vector<double> outputs;   // what is predicted, in its units
  double probability = 0;        // of the true class
  double of_predicted = 0;       // of the predicted class
  double error = 0;              // by which examples are ordered: -log(probability), or the mean squared error
  std::vector<std::byte> inputs;  // as in the data set; empty if they are too many to be shown
  std::string text = {};          // of a text, its beginning
  // Of label maps: the classes of the pixels, and the share of those that count which are right. The error is then the
  // mean of their -log(probability).
  std::vector<std::int32_t> true_map = {}, predicted_map = {};
  double right = 0;
  // Of a window of text: what is predicted; as texts, of many tokens those with the largest losses; and the loss a
  // byte, where tokens are byte pairs. The error is then the mean loss a token.
  PredictedTokens window = {};
  std::vector<ShownToken> tokens = {};
  std::optional<double> error_by_byte = {};
};

// One output of a regression, for some examples that represent all.
struct OutputPairs {
  std::string name;  // the column of the target; else empty
  std::vector<double> truth, predicted;
};

struct SplitPredictions {
  std::string split, checkpoint;
  std::int64_t examples = 0;
  std::vector<std::string> classes;  // by name, or by number; empty for regression
  metrics::Confusion confusion;      // as the metric confusion_matrix; empty for regression
  data::Field input;
  std::vector<data::Encoding::Column> columns;  // of a table, whose cells the inputs are; else empty
  Shape map;                                    // of label maps: height and width; else empty
  std::int64_t vocabulary = 0;                  // of a language model: its tokens; else 0
  bool tokens_are_bytes = false;                // of a language model
  // Of a language model: the mean loss of the tokens that count, in nats; and that a byte, where tokens are byte pairs.
  double loss = 0;
  std::optional<double> loss_by_byte = {};
  std::vector<OutputPairs> outputs;  // of regression: the first few
  std::vector<WorstExample> worst;   // the worst first
  std::vector<std::string> notes;    // of the data, and members that are left out
};

// Predicts with the run's checkpoint ("best", "last" or a step). None if the targets are neither classes or numbers of
// one example nor classes of its pixels nor tokens of a text, such as those of other sequences, or if there is no such
// split. Opens the run's data. Throws Error.
std::optional<SplitPredictions> predict_split(const RunRecord& run, const std::string& checkpoint,
                                              std::size_t most_worst);

// Whether an example is an image that can be shown: height, width, and 1, 3 or 4 channels.
bool is_image(const data::Field& input);

}  // namespace pmaptrain::report
