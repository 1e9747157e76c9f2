#include "core/ops/scatter_add/rows_of_sum.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/ops/support/arithmetic.h"

namespace pmaptrain::ops {
namespace {

// Sorts the updates of the part by their rows. So what it takes beside zeros depends on the updates alone, and each row
// is summed as the accumulators of all addends would be: those without updates to the row would add 0 to it.
class RowsOfSum final : public CpuKernel {
 public:
  RowsOfSum(const ScatterAdd& op, const Type& indices, const Type& result, std::int64_t first,
            std::span<const std::int64_t> addends)
      : index_type_(indices.dtype),
        dtype_(result.dtype),
        first_(first),
        end_(std::min(op.rows, first + result.shape.front())),
        elements_(numel(result)),
        width_(elements_ / std::max<std::int64_t>(1, result.shape.front())),
        updates_(numel(indices)) {
    const std::int64_t each = updates_ / std::max<std::int64_t>(1, indices.shape.front());
    std::int64_t end = 0;
    for (const std::int64_t addend : addends) ends_.push_back(end += addend * each);
  }

  void run(const CpuArguments& arguments) override {
    const auto of_indices = [&](const auto* indices) {
      auto* const begin = reinterpret_cast<Update*>(arguments.scratch);
      Update* end = begin;
      for (std::int64_t i = 0; i < updates_; ++i) {
        const auto row = static_cast<std::int64_t>(indices[i]);
        if (row >= first_ && row < end_) *end++ = {row, i};
      }
      std::sort(begin, end,
                [](const Update& a, const Update& b) { return a.row != b.row ? a.row < b.row : a.number < b.number; });
      dispatch_arithmetic(dtype_, [&]<class T>() {
        add<T>(begin, end, reinterpret_cast<const T*>(arguments.operands[1]),
               reinterpret_cast<T*>(arguments.results[0]));
      });
    };
    if (index_type_ == DType::i32) {
      of_indices(reinterpret_cast<const std::int32_t*>(arguments.operands[0]));
    } else {
      of_indices(reinterpret_cast<const std::int64_t*>(arguments.operands[0]));
    }
  }

  std::size_t scratch_bytes() const override { return sizeof(Update) * static_cast<std::size_t>(updates_); }
  std::string implementation() const override { return "rows in order"; }

 private:
  struct Update {
    std::int64_t row, number;
  };

  template <class T>
  void add(const Update* update, const Update* end, const T* updates, T* out) const {
    std::fill_n(out, elements_, T{});
    while (update != end) {
      const Update* const next = std::find_if(update, end, [&](const Update& u) { return u.row != update->row; });
      add_row(update, next, updates, out + (update->row - first_) * width_);
      update = next;
    }
  }

  // A few columns at a time, whose sums stay in registers.
  template <class T>
  void add_row(const Update* begin, const Update* end, const T* updates, T* row) const {
    constexpr std::int64_t columns = 16;
    for (std::int64_t first = 0; first < width_; first += columns) {
      const std::int64_t count = std::min(columns, width_ - first);
      std::size_t addend = 0;
      T sum[columns] = {};
      const auto finish = [&] {
        for (std::int64_t j = 0; j < count; ++j)
          row[first + j] = wrapping_add(row[first + j], std::exchange(sum[j], T{}));
      };
      for (const Update* update = begin; update != end; ++update) {
        if (update->number >= ends_[addend]) {
          finish();
          while (update->number >= ends_[addend]) ++addend;
        }
        const T* const from = updates + update->number * width_ + first;
        for (std::int64_t j = 0; j < count; ++j) sum[j] = wrapping_add(sum[j], from[j]);
      }
      finish();
    }
  }

  DType index_type_, dtype_;
  std::int64_t first_, end_, elements_, width_, updates_;
  std::vector<std::int64_t> ends_;  // of each addend: the number of its last update, plus 1
};

}  // namespace

std::unique_ptr<CpuKernel> make_rows_of_sum(const ScatterAdd& op, const Type& indices, const Type& result,
                                            std::int64_t first, std::span<const std::int64_t> addends) {
  return std::make_unique<RowsOfSum>(op, indices, result, first, addends);
}

}  // namespace pmaptrain::ops
