// Collectives of GPUs of one machine, by NCCL.
#pragma once

#include <nccl.h>

#include "core/runtime/cuda/collectives.h"
#include "core/runtime/gpu/ending.h"
#include "core/runtime/gpu/lookout.h"

namespace pmaptrain::cuda {

// What the ranks of a communicator share: its identity, and how it ends.
struct NcclMeeting {
  explicit NcclMeeting(const std::vector<int>& ranks) : meeting(ranks) {}
  Meeting meeting;
  // Of the communicator that is begun now: the platform may have had one of these ranks before.
  ncclUniqueId id{};
  std::shared_ptr<gpu::Ending> ending;
};

// What the devices of a platform share.
struct NcclMeetings {
  Shared<NcclMeeting> of;
  gpu::Lookout lookout;  // for calls that do not return
};

// Of the current device. `captured`: collectives may be part of CUDA graphs.
std::unique_ptr<Collectives> make_nccl_collectives(int rank, NcclMeetings& meetings, const Abort& abort, bool captured);

}  // namespace pmaptrain::cuda
