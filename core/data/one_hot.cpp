#include "core/data/one_hot.h"

#include <algorithm>
#include <utility>

namespace pmaptrain::data {
namespace {

class OneHot final : public Dataset {
 public:
  OneHot(std::shared_ptr<const Dataset> labelled, std::int64_t classes)
      : labelled_(std::move(labelled)), classes_(classes) {}

  std::int64_t size() const override { return labelled_->size(); }
  Field input() const override { return labelled_->input(); }
  Field target() const override { return {DType::f32, {classes_}, labelled_->target().origin}; }
  void read(std::int64_t index, std::byte* input, std::byte* target) const override {
    std::int32_t label = 0;
    labelled_->read(index, input, reinterpret_cast<std::byte*>(&label));
    auto* const probabilities = reinterpret_cast<float*>(target);
    std::fill_n(probabilities, classes_, 0.0F);
    if (label >= 0 && label < classes_) probabilities[label] = 1;
  }
  bool is_costly() const override { return labelled_->is_costly(); }
  bool is_weighted() const override { return labelled_->is_weighted(); }
  float weight(std::int64_t index) const override { return labelled_->weight(index); }
  bool has_lengths() const override { return labelled_->has_lengths(); }
  std::int32_t length(std::int64_t index) const override { return labelled_->length(index); }
  std::int64_t index_in_source(std::int64_t index) const override { return labelled_->index_in_source(index); }
  std::string file_of(std::int64_t index) const override { return labelled_->file_of(index); }
  std::string line_of(std::int64_t index) const override { return labelled_->line_of(index); }
  std::string text_of(std::int64_t index) const override { return labelled_->text_of(index); }
  void check_intact() const override { labelled_->check_intact(); }
  void check_unchanged() const override { labelled_->check_unchanged(); }

 private:
  std::shared_ptr<const Dataset> labelled_;
  std::int64_t classes_;
};

}  // namespace

std::shared_ptr<const Dataset> one_hot_labels(std::shared_ptr<const Dataset> labelled, std::int64_t classes) {
  return std::make_shared<OneHot>(std::move(labelled), classes);
}

}  // namespace pmaptrain::data
