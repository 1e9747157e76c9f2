#include "core/train/pacing.h"

#include <algorithm>

#include "core/train/start.h"

namespace pmaptrain::train {

int batches_held(const Module& module) {
  return std::clamp(module.source().entries[train_entry].batches - 1, 1, module.steps_ahead());
}

Pacing::Pacing(Module& module, bool prefetches, bool draws) : module_(module), batch_stays_(!prefetches && !draws) {
  const int ahead = prefetches ? batches_held(module) : batch_stays_ ? module.steps_ahead() : 1;
  tickets_.resize(static_cast<std::size_t>(ahead));
}

void Pacing::submitted(Ticket ticket) {
  oldest() = last_ = ticket;
  ++count_;
}

}  // namespace pmaptrain::train
