#include "core/train/pacing.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/setup/plan.h"

namespace pmaptrain::train {

int steps_in_group(const Module& module) {
  return module.source().entries[setup::train_entry].in_groups ? module.steps_per_group(setup::train_entry) : 1;
}

int batches_in_use(const Module& module) {
  const int groups = std::clamp(module.source().entries[setup::train_entry].batches - 1, 1, module.groups_ahead());
  return groups * steps_in_group(module);
}

std::int64_t steps_until(std::int64_t step, std::int64_t last, std::initializer_list<std::int64_t> intervals) {
  std::int64_t steps = last - step;
  for (const std::int64_t every : intervals) {
    if (every > 0) steps = std::min(steps, every - step % every);
  }
  return steps;
}

bool ends_each_epoch(const step::Timetable& times) {
  return times.steps_per_epoch > 1 || times.log_every == 1 || times.spike_window > 0;
}

std::int64_t steps_to_next_event(const step::Timetable& times, std::int64_t step, std::int64_t last) {
  if (step == 0) return 1;
  return steps_until(step, last,
                     {times.log_every, ends_each_epoch(times) ? times.steps_per_epoch : 0, times.verify_every,
                      times.save_every, times.eval_every});
}

Pacing::Pacing(Module& module, input::Loader& loader, Tracer& tracer, bool draws, std::vector<std::size_t> entries)
    : module_(module),
      loader_(loader),
      tracer_(tracer),
      batch_stays_(!loader.prefetches() && !draws),
      entries_(std::move(entries)),
      newest_entry_(entries_.front()) {
  const int ahead = loader.prefetches() ? batches_in_use(module)
                    : batch_stays_      ? module.groups_ahead() * steps_in_group(module)
                                        : 1;
  tickets_.resize(static_cast<std::size_t>(ahead));
}

// The batches of a group are in successive slots. The loader's ring consists of whole groups.
std::int64_t Pacing::max_group(std::int64_t step) const {
  if (!loader_.prefetches() && !batch_stays_) return 1;
  const std::int64_t group = steps_in_group(module_);
  return std::min(batch_stays_ ? group : group - step % group, tracer_.max_group(step));
}

void Pacing::take() {
  batch_ = loader_.next();
  has_batch_ = true;
}

std::int64_t Pacing::submit(std::int64_t step, std::int64_t most, std::span<const std::int64_t> members) {
  const auto ticket_of = [&](std::size_t i) -> Ticket& { return tickets_[(count_ + i) % tickets_.size()]; };
  auto steps = static_cast<std::size_t>(std::min(most, max_group(step)));
  module_.wait(ticket_of(steps - 1));
  for (std::size_t i = 0; i < steps; ++i) {
    try {
      if (!has_batch_) {
        const auto span = tracer_.span(step + 1, "wait for the batch");
        take();
      }
    } catch (...) {
      if (i == 0) throw;
      steps = i;  // the loader throws the error again when it is asked for the next batch
      break;
    }
    has_batch_ = batch_stays_;
  }
  const int count = static_cast<int>(steps), first = batch_stays_ ? batch_.slot : batch_.slot - count + 1;
  newest_entry_ = entries_[batch_.size];
  if (count == 1) {
    last_ = tracer_.submit(step + 1, newest_entry_, first, members);
  } else if (batch_stays_) {
    last_ = module_.submit(newest_entry_, first, count, members);
  } else {
    last_ = module_.submit_each(newest_entry_, first, count, members);
  }
  for (std::size_t i = 0; i < steps; ++i) ticket_of(i) = last_;
  count_ += steps;
  return count;
}

std::size_t Pacing::repeat(std::int64_t step, std::span<const std::int64_t> members, std::int64_t newest,
                           std::int64_t last, const std::function<bool(bool own)>& any) {
  const auto run = [&](const input::Batch& batch) {
    const std::size_t entry = entries_[batch.size];
    module_.wait(module_.submit(entry, batch.slot, 1, members));
    return entry;
  };
  if (batch_stays_) return run(batch_);
  loader_.restart(step - 1, step);
  std::exception_ptr failure;
  input::Batch batch;
  try {
    batch = loader_.next();
  } catch (...) {
    failure = std::current_exception();
  }
  const bool fails = any(failure != nullptr);
  const std::size_t entry = fails ? newest_entry_ : run(batch);
  loader_.restart(newest, last);
  if (failure) std::rethrow_exception(failure);
  if (fails) fail_data("another process cannot read the batch of step " + std::to_string(step), "");
  return entry;
}

std::int64_t Pacing::wait_and_count_failed() const {
  const auto known = static_cast<std::int64_t>(std::min(count_, tickets_.size()));
  for (std::int64_t failed = 0; failed < known; ++failed) {
    try {
      module_.wait(tickets_[(count_ - 1 - static_cast<std::size_t>(failed)) % tickets_.size()]);
      return failed;
    } catch (...) {  // this error has ended the run, and was reported there
    }
  }
  return known;
}

}  // namespace pmaptrain::train
