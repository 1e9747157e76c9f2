#include "core/train/pacing.h"

#include <algorithm>

#include "core/train/start.h"

namespace pmaptrain::train {
namespace {

constexpr double short_seconds = 0.01;  // of what is submitted at once

}  // namespace

int batches_held(const Module& module) {
  return std::clamp(module.source().entries[train_entry].batches - 1, 1, module.pace().ahead);
}

Pacing::Pacing(Module& module, const Timetable& timetable, bool prefetches, bool draws)
    : module_(module), timetable_(timetable), batch_stays_(!prefetches && !draws) {
  const Pace pace = module.pace();
  const int ahead = prefetches ? batches_held(module) : batch_stays_ ? pace.ahead : 1;
  tickets_.resize(static_cast<std::size_t>(ahead));
  if (batch_stays_) most_at_once_ = pace.at_once;
}

std::int64_t Pacing::steps_after(std::int64_t step, std::int64_t end) {
  if (most_at_once_ == 1 || step == 0) return 1;
  const Clock::time_point now = Clock::now();
  at_once_ = seconds_between(submitted_at_, now) < short_seconds ? std::min(most_at_once_, 2 * at_once_) : 1;
  submitted_at_ = now;
  std::int64_t count = std::min(at_once_, end - step);
  for (const std::int64_t every : {timetable_.log_every, timetable_.steps_per_epoch, timetable_.eval_every,
                                   timetable_.verify_every, timetable_.save_every}) {
    if (every > 0) count = std::min(count, every - step % every);
  }
  return count;
}

void Pacing::submitted(Ticket ticket) {
  oldest() = last_ = ticket;
  ++count_;
}

}  // namespace pmaptrain::train
