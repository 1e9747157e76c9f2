#include "core/data/loader.h"

#include <algorithm>
#include <cassert>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/signals.h"

namespace pmaptrain::data {
namespace {

constexpr std::size_t alignment = 64;

struct AlignedDelete {
  void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{alignment}); }
};

// One batch and its memory.
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

// Steps [taken_, filled_) are filled; step s is in slot s modulo the size of the ring. The caller holds step taken_ -
// 1, so the thread stays less than one ring ahead of it. The thread waits when all steps up to end_ are filled.
class Loader::Ring {
 public:
  Ring(std::shared_ptr<const Dataset> dataset, const Sampler& sampler, const BatchPlan& plan,
       const LoaderOptions& options)
      : dataset_(std::move(dataset)),
        sampler_(sampler),
        plan_(plan),
        taken_(options.first_step),
        filled_(options.first_step),
        end_(options.end_step),
        resident_(!sampler.shuffles() && plan.steps_per_epoch == 1 && plan.examples_per_epoch == plan.dataset) {
    const std::size_t depth = resident_ ? 1 : std::max<std::size_t>(options.depth, 2);
    slots_.reserve(depth);
    for (std::size_t i = 0; i < depth; ++i) slots_.emplace_back(*dataset_, plan_);
    if (!resident_) {
      const BlockSignals blocked;
      try {
        thread_ = std::thread([this] { run(); });
      } catch (const std::system_error& error) {
        fail_resource("the prefetching thread could not be started: " + error.code().message(),
                      "raise the limit on threads (ulimit -u, the cgroup's pids.max), or end other processes");
      }
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

  void restart(std::int64_t first_step, std::int64_t end_step) {
    std::unique_lock lock(mutex_);
    end_ = taken_;  // stops after the batch that is being filled
    changed_.wait(lock, [&] { return !filling_; });
    taken_ = first_step;
    filled_ = first_step;
    end_ = end_step;
    error_ = nullptr;
    lock.unlock();
    changed_.notify_all();
  }

  const Batch& next() {
    if (taken_ >= end_) throw std::out_of_range("the loader has no batch past its end step");
    if (resident_) return next_resident();
    std::unique_lock lock(mutex_);
    // Taking a step returns the slot of the previous one to the thread.
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
    if (!is_resident_filled_) {
      fill(*dataset_, sampler_, plan_, taken_, only.buffers);
      is_resident_filled_ = true;  // it is filled once
    } else {
      fill_rows(plan_, taken_, only.buffers.rows);  // epochs differ only in the positions in the sample stream
    }
    only.label(plan_, taken_++);
    return only.batch;
  }

  void run() {
    const auto ahead = static_cast<std::int64_t>(slots_.size()) - 1;
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stop_ || (!error_ && filled_ < end_ && filled_ < taken_ + ahead); });
      if (stop_) return;
      const std::int64_t step = filled_;
      filling_ = true;
      lock.unlock();
      std::exception_ptr error;
      try {
        Slot& free = slot(step);
        fill(*dataset_, sampler_, plan_, step, free.buffers);
        free.label(plan_, step);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      filling_ = false;
      error_ = error;
      if (!error) filled_ = step + 1;
      changed_.notify_all();
    }
  }

  const std::shared_ptr<const Dataset> dataset_;
  const Sampler sampler_;
  const BatchPlan plan_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by the mutex; the caller reads taken_ and end_ without it, because only the caller writes them.
  std::int64_t taken_;   // the next step to hand out
  std::int64_t filled_;  // the next step to fill
  std::int64_t end_;     // one past the last step
  bool filling_ = false;
  bool stop_ = false;
  std::exception_ptr error_;

  const bool resident_;
  bool is_resident_filled_ = false;
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

void Loader::restart(std::int64_t first_step, std::int64_t end_step) { ring_->restart(first_step, end_step); }

bool Loader::prefetches() const { return ring_->prefetches(); }

}  // namespace pmaptrain::data
