#include "core/input/batches/loader.h"

#include <algorithm>
#include <cassert>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <span>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/signals.h"
#include "core/input/batches/padded_sizes.h"

namespace pmaptrain::input {
namespace {

bool is_resident(const Stream& stream, const BatchPlan& plan) {
  return !stream.is_random() && plan.steps_per_epoch == 1 && plan.examples_per_epoch == plan.dataset;
}

}  // namespace

int batches_in_memory(const Stream& stream, const BatchPlan& plan) { return is_resident(stream, plan) ? 1 : 3; }

// Steps [taken_, filled_) are filled; step s is in slot s modulo the size of the ring. The caller holds step taken_ -
// 1, so the thread stays less than one ring ahead of it. The thread waits when all steps up to end_ are filled.
class Loader::Ring {
 public:
  Ring(std::shared_ptr<const data::Dataset> dataset, std::vector<Stream> streams, const BatchPlan& plan,
       std::vector<BatchBuffers> slots, const LoaderOptions& options, std::vector<Shorter> shorter)
      : dataset_(std::move(dataset)),
        streams_(std::move(streams)),
        plan_(plan),
        taken_(options.first_step),
        filled_(options.first_step),
        end_(options.end_step),
        held_(options.held),
        log_(options.log),
        resident_(is_resident(streams_.front(), plan)),
        buffers_(std::move(slots)),
        shorter_(std::move(shorter)),
        sizes_(static_cast<std::size_t>(this->slots())) {
    assert(buffers_.size() % streams_.size() == 0);
    assert(shorter_.empty() || streams_.size() == 1);
    for ([[maybe_unused]] const Shorter& other : shorter_) assert(other.slots.size() == buffers_.size());
    assert(this->slots() > (resident_ ? 0 : held_));
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

  Batch next() {
    if (taken_ >= end_) throw std::out_of_range("the loader has no batch past its end step");
    if (resident_) return next_resident();
    std::unique_lock lock(mutex_);
    // Taking a step returns the slot of the previous one, or of an earlier one, to the thread.
    const std::int64_t step = taken_;
    changed_.wait(lock, [&] { return filled_ > step || error_; });
    if (filled_ <= step) std::rethrow_exception(error_);
    ++taken_;
    lock.unlock();
    changed_.notify_all();
    return label(step);
  }

 private:
  std::int64_t slots() const { return std::ssize(buffers_) / std::ssize(streams_); }
  std::int64_t slot(std::int64_t step) const { return resident_ ? 0 : step % slots(); }

  // The buffers of a step's slot, by stream.
  std::span<const BatchBuffers> buffers(std::int64_t step, std::size_t size = 0) const {
    const std::vector<BatchBuffers>& all = size == 0 ? buffers_ : shorter_[size - 1].slots;
    return std::span(all).subspan(static_cast<std::size_t>(slot(step)) * streams_.size(), streams_.size());
  }

  // The size of the batch of a step, see Batch. Every process finds the same: it looks at the rows of all.
  std::size_t size_of(std::int64_t step) const {
    if (shorter_.empty()) return 0;
    const std::int64_t longest = longest_of(*dataset_, streams_.front(), plan_, step);
    for (std::size_t i = 0; i < shorter_.size(); ++i) {
      if (longest <= shorter_[i].positions) return i + 1;
    }
    return 0;
  }

  void fill_slot(std::int64_t step) {
    const SpanLog::Scope span(log_, step + 1, "fill batch");
    const std::size_t size = size_of(step);
    const data::Dataset& dataset = size == 0 ? *dataset_ : *shorter_[size - 1].dataset;
    for (std::size_t i = 0; i < streams_.size(); ++i) fill(dataset, streams_[i], plan_, step, buffers(step, size)[i]);
    sizes_[static_cast<std::size_t>(slot(step))] = size;
  }

  Batch label(std::int64_t step) const {
    return {step, step / plan_.steps_per_epoch, plan_.examples_in(step % plan_.steps_per_epoch),
            static_cast<int>(slot(step)), sizes_[static_cast<std::size_t>(slot(step))]};
  }

  Batch next_resident() {
    if (!is_resident_filled_) {
      fill_slot(taken_);
      is_resident_filled_ = true;  // it is filled once
    } else {
      // Epochs differ only in the positions in the sample stream.
      for (const BatchBuffers& batch : buffers(taken_)) {
        if (batch.rows != nullptr) fill_rows(plan_, taken_, batch);
      }
    }
    return label(taken_++);
  }

  void run() {
    const std::int64_t ahead = slots() - held_;
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stop_ || (!error_ && filled_ < end_ && filled_ < taken_ + ahead); });
      if (stop_) return;
      const std::int64_t step = filled_;
      filling_ = true;
      lock.unlock();
      std::exception_ptr error;
      try {
        fill_slot(step);
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

  const std::shared_ptr<const data::Dataset> dataset_;
  const std::vector<Stream> streams_;
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

  const std::int64_t held_;
  SpanLog* const log_;
  const bool resident_;
  bool is_resident_filled_ = false;
  const std::vector<BatchBuffers> buffers_;  // slot by slot
  const std::vector<Shorter> shorter_;
  std::vector<std::size_t> sizes_;  // of the batches, by slot
  std::thread thread_;
};

Loader::Loader(std::shared_ptr<const data::Dataset> dataset, std::vector<Stream> streams, const BatchPlan& plan,
               std::vector<BatchBuffers> slots, const LoaderOptions& options, std::vector<Shorter> shorter)
    : ring_(std::make_unique<Ring>(std::move(dataset), std::move(streams), plan, std::move(slots), options,
                                   std::move(shorter))) {
  assert(plan.steps_per_epoch >= 1);
}

Loader::~Loader() = default;

Batch Loader::next() { return ring_->next(); }

void Loader::restart(std::int64_t first_step, std::int64_t end_step) { ring_->restart(first_step, end_step); }

bool Loader::prefetches() const { return ring_->prefetches(); }

}  // namespace pmaptrain::input
