#include "core/input/batches/row_numbers.h"

#include <cassert>
#include <cstring>
#include <limits>

namespace pmaptrain::input {
namespace {

class RowNumbers final : public data::Dataset {
 public:
  explicit RowNumbers(std::shared_ptr<const data::Dataset> of) : of_(std::move(of)) {
    assert(of_->size() <= std::numeric_limits<std::int32_t>::max());
  }

  std::int64_t size() const override { return of_->size(); }
  Field input() const override { return {DType::i32, {}}; }
  Field target() const override { return data::no_target(); }
  void read(std::int64_t index, std::byte* input, std::byte*) const override {
    const auto row = static_cast<std::int32_t>(index);
    if (input != nullptr) std::memcpy(input, &row, sizeof row);
  }
  bool is_weighted() const override { return of_->is_weighted(); }
  float weight(std::int64_t index) const override { return of_->weight(index); }
  bool has_lengths() const override { return of_->has_lengths(); }
  std::int32_t length(std::int64_t index) const override { return of_->length(index); }
  std::int64_t index_in_source(std::int64_t index) const override { return of_->index_in_source(index); }
  std::string file_of(std::int64_t index) const override { return of_->file_of(index); }
  std::string line_of(std::int64_t index) const override { return of_->line_of(index); }
  void check_unchanged() const override { of_->check_unchanged(); }

 private:
  const std::shared_ptr<const data::Dataset> of_;
};

}  // namespace

std::shared_ptr<const data::Dataset> row_numbers_of(std::shared_ptr<const data::Dataset> dataset) {
  return std::make_shared<RowNumbers>(std::move(dataset));
}

}  // namespace pmaptrain::input
