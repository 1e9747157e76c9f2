// Checks of losses and metrics against the targets of the data and the outputs of the model.
#pragma once

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/model/model.h"

namespace pmaptrain::model {

// "f32[10]"
std::string shown(DType dtype, const Shape& shape);

// What those with a label for each of many numbers can do.
inline constexpr const char* labels_of_pixels_help =
    "softmax labels of pixels are not supported yet; what is: masks of 0 and 1, one for each of C classes "
    "(np.eye(C)[y]), with sigmoid_cross_entropy and outputs of their shape; numbers, with mean_squared_error; and, "
    "for tokens, integers [L] into an embedding with labels [L] and outputs [L, C]";
// The same for metrics of labels.
inline constexpr const char* metrics_of_masks_help =
    "metrics of masks are not supported yet, metrics: [] leaves the loss; masks of 0 and 1 that are saved as rows, "
    "y.reshape(len(y), -1), with flatten as the last layer and sigmoid_cross_entropy, have accuracy and f1: {average: "
    "micro} of all pixels";

// Appends to `errors` what does not fit. `name` and `place` are those of the loss or metric in the config; `instead`
// names another one, which errors suggest.
class Checks {
 public:
  Checks(const spec::Spec& spec, const Model& model, std::vector<Diagnostic>& errors)
      : spec_(spec), model_(model), errors_(errors) {}

  // Requires that outputs are logits, and targets labels or class probabilities.
  void need_classes(const std::string& name, const Place& place, const std::string& instead) const;
  // Requires one label for each example, not a sequence of labels.
  void need_one_label(const std::string& name, const Place& place) const;
  // Requires that targets are numbers, in the shape of the outputs. Shapes are never broadcast: (N) against (N,1) would
  // give (N,N).
  void need_numbers(const std::string& name, const Place& place, const std::string& instead) const;

  void refuse(const Place& place, std::string message, std::string help) const;
  std::string targets() const;
  std::string output() const;

 private:
  void need_logits_of_positions(const std::string& name, const Place& place) const;
  void refuse_targets(const Place& place, const std::string& name, const std::string& takes, const std::string& what,
                      const std::string& help) const;
  std::string if_labels() const;

  const spec::Spec& spec_;
  const Model& model_;
  std::vector<Diagnostic>& errors_;
};

// Checks the loss of `model`. If the config asks for balanced class weights, gives the loss `class_weights`, which
// balance the classes of the training split.
void check_loss(Model& model, const std::vector<double>& class_weights, const Checks& checks);
void check_metric(const spec::Metric& metric, const Model& model, const Checks& checks);

}  // namespace pmaptrain::model
