// Collectives of GPUs of one machine, by NCCL.
#pragma once

#include <nccl.h>

#include "core/runtime/cuda/collectives.h"

namespace pmaptrain::cuda {

// What the devices of a platform share: the identity of each communicator.
struct NcclMeeting {
  explicit NcclMeeting(std::vector<int> ranks) : meeting(std::move(ranks)) {}
  Meeting meeting;
  ncclUniqueId id{};
};
using NcclMeetings = Shared<NcclMeeting>;

// Of the current device. `captured`: collectives may be part of CUDA graphs.
std::unique_ptr<Collectives> make_nccl_collectives(int rank, NcclMeetings& meetings, const Abort& abort, bool captured);

}  // namespace pmaptrain::cuda
