// Collectives of virtual GPUs: several devices on one GPU, whose memory all of them reach. Each rank copies from the
// others, or adds up their values, when they are ready; sums are in the order of ranks.
#pragma once

#include "core/runtime/cuda/collectives.h"
#include "core/runtime/cuda/handles.h"

namespace pmaptrain::cuda {

// What the ranks of a communicator tell one another.
struct VirtualGroup {
  explicit VirtualGroup(const std::vector<int>& ranks) : barrier(ranks), ranks_calls(ranks.size()) {}
  struct Word {
    RankCall call;
    cudaEvent_t ready = nullptr;  // what it reads is there
    cudaEvent_t read = nullptr;   // it has read what it reads of others
  };
  Barrier barrier;
  std::vector<Word> ranks_calls;
};
using VirtualGroups = SharedMap<VirtualGroup>;

std::unique_ptr<Collectives> make_virtual_collectives(int rank, int module, VirtualGroups& groups, const Abort& abort);

}  // namespace pmaptrain::cuda
