#include "core/kernel/columns.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/saturate.h"

namespace pmaptrain {
namespace {

class KernelOfColumns final : public CpuKernel {
 public:
  KernelOfColumns(const CpuRequest& request, std::unique_ptr<CpuKernel> kernel)
      : kernel_(std::move(kernel)), operand_(request.columns->operand), pointers_(request.operands.size()) {
    const Type& type = request.operands[operand_];
    const std::int64_t columns = type.shape.back(), devices = request.stacked[operand_] ? request.devices : 1;
    row_ = static_cast<std::size_t>(columns) * size_of(type.dtype);
    stride_ = static_cast<std::size_t>(request.columns->of) * size_of(type.dtype);
    rows_ = columns == 0 ? 0 : static_cast<std::size_t>(numel(type) / columns * devices);
    copy_ = round_up(row_ * rows_, 64);
  }

  void run(const CpuArguments& arguments) override {
    std::copy_n(arguments.operands, pointers_.size(), pointers_.begin());
    const std::byte* from = arguments.operands[operand_];
    for (std::size_t row = 0; row < rows_; ++row, from += stride_) {
      std::memcpy(arguments.scratch + row * row_, from, row_);
    }
    pointers_[operand_] = arguments.scratch;
    kernel_->run({pointers_.data(), arguments.results, arguments.scratch + copy_});
  }

  std::size_t scratch_bytes() const override { return copy_ + kernel_->scratch_bytes(); }
  std::string implementation() const override { return kernel_->implementation(); }
  std::vector<LayoutChange> layout_changes() const override { return kernel_->layout_changes(); }
  std::int64_t library_calls() const override { return kernel_->library_calls(); }

 private:
  std::unique_ptr<CpuKernel> kernel_;
  std::size_t operand_, row_ = 0, stride_ = 0, rows_ = 0, copy_ = 0;  // in bytes, but the index and the rows
  std::vector<const std::byte*> pointers_;
};

}  // namespace

std::unique_ptr<CpuKernel> make_kernel_of_columns(
    const CpuRequest& request, const std::function<std::unique_ptr<CpuKernel>(const CpuRequest&)>& make) {
  CpuRequest whole = request;
  whole.columns = std::nullopt;
  return std::make_unique<KernelOfColumns>(request, make(whole));
}

}  // namespace pmaptrain
