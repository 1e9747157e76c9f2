#include "core/data/loader.h"

#include <algorithm>
#include <cassert>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/signals.h"

namespace pmaptrain::data {
namespace {

constexpr std::size_t alignment = 64;

struct AlignedDelete {
  void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{alignment}); }
};

// One batch and the memory that it lies in.
struct Slot {
  std::unique_ptr<std::byte[], AlignedDelete> memory;
  BatchBuffers buffers;
  Batch batch;

  Slot(const Dataset& dataset, const BatchPlan& plan) {
    const auto rows = static_cast<std::size_t>(plan.rows());
    const std::size_t input = dataset.input().bytes(), target = dataset.target().bytes();
    const std::size_t inputs = rows * input, targets = rows * target;
    const auto aligned = [](std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; };
    const std::size_t targets_at = aligned(inputs);
    const std::size_t mask_at = targets_at + aligned(targets);
    const std::size_t rows_at = mask_at + aligned(rows * sizeof(float));
    const std::size_t total = rows_at + rows * sizeof(std::int64_t);
    memory.reset(static_cast<std::byte*>(::operator new[](total, std::align_val_t{alignment})));
    std::byte* const start = memory.get();
    buffers = {start,
               start + targets_at,
               reinterpret_cast<float*>(start + mask_at),
               reinterpret_cast<std::int64_t*>(start + rows_at),
               input,
               target};
    batch.inputs = {buffers.inputs, inputs};
    batch.targets = {buffers.targets, targets};
    batch.mask = {buffers.mask, rows};
    batch.rows = {buffers.rows, rows};
  }

  void label(const BatchPlan& plan, std::int64_t step) {
    batch.step = step;
    batch.epoch = step / plan.steps_per_epoch;
    batch.examples = plan.examples_in(step % plan.steps_per_epoch);
  }
};

}  // namespace

// Steps [taken_, filled_) lie filled in the ring, step s in slot s modulo the ring's size. The caller holds step
// taken_ - 1, so the thread stays less than one ring ahead of that.
class Loader::Ring {
 public:
  Ring(std::shared_ptr<const Dataset> dataset, const Sampler& sampler, const BatchPlan& plan,
       const LoaderOptions& options)
      : dataset_(std::move(dataset)),
        sampler_(sampler),
        plan_(plan),
        end_(options.end_step),
        taken_(options.first_step),
        filled_(options.first_step),
        resident_(!sampler.shuffles() && plan.steps_per_epoch == 1 && plan.examples_per_epoch == plan.dataset) {
    const std::size_t depth = resident_ ? 1 : std::max<std::size_t>(options.depth, 2);
    slots_.reserve(depth);
    for (std::size_t i = 0; i < depth; ++i) slots_.emplace_back(*dataset_, plan_);
    if (!resident_) {
      const BlockSignals blocked;
      thread_ = std::thread([this] { run(); });
    }
  }

  ~Ring() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  bool prefetches() const { return !resident_; }

  const Batch& next() {
    if (taken_ >= end_) throw std::out_of_range("the loader has no batch past its end step");
    if (resident_) return next_resident();
    std::unique_lock lock(mutex_);
    // Taking a step gives the one before back to the thread.
    const std::int64_t step = taken_;
    changed_.wait(lock, [&] { return filled_ > step || error_; });
    if (filled_ <= step) std::rethrow_exception(error_);
    ++taken_;
    lock.unlock();
    changed_.notify_all();
    return slot(step).batch;
  }

 private:
  Slot& slot(std::int64_t step) { return slots_[static_cast<std::size_t>(step) % slots_.size()]; }

  const Batch& next_resident() {
    Slot& only = slots_[0];
    if (filled_ == taken_) {
      fill(*dataset_, sampler_, plan_, taken_, only.buffers);
      filled_ = end_;  // once is enough
    } else {
      fill_rows(plan_, taken_, only.buffers.rows);  // epochs differ in the stream's positions alone
    }
    only.label(plan_, taken_++);
    return only.batch;
  }

  void run() {
    const auto ahead = static_cast<std::int64_t>(slots_.size()) - 1;
    try {
      for (std::int64_t step = taken_at_start_; step < end_; ++step) {
        {
          std::unique_lock lock(mutex_);
          changed_.wait(lock, [&] { return stop_ || step < taken_ + ahead; });
          if (stop_) return;
        }
        Slot& free = slot(step);
        fill(*dataset_, sampler_, plan_, step, free.buffers);
        free.label(plan_, step);
        {
          const std::lock_guard lock(mutex_);
          filled_ = step + 1;
        }
        changed_.notify_all();
      }
    } catch (...) {
      {
        const std::lock_guard lock(mutex_);
        error_ = std::current_exception();
      }
      changed_.notify_all();
    }
  }

  const std::shared_ptr<const Dataset> dataset_;
  const Sampler sampler_;
  const BatchPlan plan_;
  const std::int64_t end_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t taken_;   // the next step to hand out; written by the caller, under the mutex
  std::int64_t filled_;  // the next step to fill; written by the thread, under the mutex
  const std::int64_t taken_at_start_ = taken_;
  bool stop_ = false;
  std::exception_ptr error_;

  const bool resident_;
  std::vector<Slot> slots_;
  std::thread thread_;
};

Loader::Loader(std::shared_ptr<const Dataset> dataset, const Sampler& sampler, const BatchPlan& plan,
               const LoaderOptions& options)
    : ring_(std::make_unique<Ring>(std::move(dataset), sampler, plan, options)) {
  assert(plan.steps_per_epoch >= 1);
}

Loader::~Loader() = default;

const Batch& Loader::next() { return ring_->next(); }

bool Loader::prefetches() const { return ring_->prefetches(); }

}  // namespace pmaptrain::data
