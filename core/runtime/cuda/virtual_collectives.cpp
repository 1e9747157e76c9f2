// Virtual GPUs share the memory of one GPU. So each rank reads the values of the other ranks there when these are
// ready, and copies them or adds them up.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/runtime/cuda/collectives.h"
#include "core/runtime/cuda/kernels.h"

namespace pmaptrain::cuda {
namespace {

class VirtualCommunicator final : public Rank {
 public:
  VirtualCommunicator(std::shared_ptr<VirtualGroup> shared, std::size_t position, const Abort& abort)
      : Rank(shared->barrier.ranks(), abort), shared_(std::move(shared)), position_(position) {
    meet("the beginning of communicator " + ranks_text(ranks()), [] {});
  }

  void run(const RankCall& call, cudaStream_t stream) override {
    const std::string what = next(call);
    wait_for_others(
        what, stream, ready_,
        [&] {
          shared_->rank_entries[position_] = {call, ready_.get(), read_.get()};
        },
        &VirtualGroup::RankEntry::ready);
    compare_calls(what);
    if (call.kind == gpu::Collective::reduce_scatter_sum) {
      add_up(call, {position_ * call.bytes, call.bytes}, call.to, stream);
    } else if (call.kind != gpu::Collective::all_reduce_sum) {
      const std::size_t part = call.kind == gpu::Collective::exchange ? position_ * call.bytes : 0;
      for (std::size_t i = 0; i < ranks().size(); ++i) {
        copy(call.to + i * call.bytes, shared_->rank_entries[i].call.from + part, call.bytes, stream);
      }
    } else {
      // Each rank sums one part of the arrays. It may do so in place, because no other rank reads this part of its
      // array. Then it copies the other parts from the other ranks.
      const Part mine = part_of(call, position_);
      add_up(call, mine, call.to + mine.begin, stream);
      wait_for_others(
          what, stream, ready_, [] {}, &VirtualGroup::RankEntry::ready);
      for (std::size_t i = 0; i < ranks().size(); ++i) {
        const Part part = part_of(call, i);
        if (i != position_)
          copy(call.to + part.begin, shared_->rank_entries[i].call.to + part.begin, part.bytes, stream);
      }
    }
    // Later work on this stream may overwrite the memory of this rank when all other ranks have read it.
    wait_for_others(
        what, stream, read_, [] {}, &VirtualGroup::RankEntry::read);
    ++sequence_;
  }

 private:
  struct Part {
    std::size_t begin, bytes;
  };
  Part part_of(const RankCall& call, std::size_t position) const {
    const auto elements = static_cast<std::size_t>(call.elements()), element = size_of(call.dtype);
    const std::size_t first = elements * position / ranks().size(), end = elements * (position + 1) / ranks().size();
    return {first * element, (end - first) * element};
  }

  // Adds up a part of the arrays of all ranks: to that of this rank, one after another, those of the others. A sum of
  // bf16 is rounded after each addition.
  void add_up(const RankCall& call, Part part, std::byte* to, cudaStream_t stream) const {
    copy(to, call.from + part.begin, part.bytes, stream);
    for (std::size_t i = 0; i < ranks().size(); ++i) {
      if (i == position_) continue;
      const std::byte* const other = shared_->rank_entries[i].call.from + part.begin;
      const auto [first, second] = std::minmax({static_cast<const std::byte*>(to), other});
      const gpu::Addends both{to,
                              first,
                              static_cast<std::int64_t>(part.bytes / size_of(call.dtype)),
                              {2, 2, static_cast<std::size_t>(second - first)}};
      check(reduce(Reduction::sum, call.dtype, std::span(&both, 1), {1, {2}, {1}}, stream),
            "adding up the values of virtual GPUs");
    }
  }

  static void copy(std::byte* to, const std::byte* from, std::size_t bytes, cudaStream_t stream) {
    if (to == from) return;  // the operation is in place
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "copying between virtual GPUs");
  }

  template <class F>
  void meet(const std::string& what, F&& before_waiting) {
    shared_->barrier.arrive_and_wait(position_, abort_, what, before_waiting);
  }

  // Records the event `mine` on the stream, and makes the stream wait for the events `others` of the other ranks.
  template <class F>
  void wait_for_others(const std::string& what, cudaStream_t stream, const OwnEvent& mine, F&& before_waiting,
                       cudaEvent_t VirtualGroup::RankEntry::*others) {
    check(cudaEventRecord(mine.get(), stream), "ordering virtual GPUs");
    meet(what, before_waiting);
    for (std::size_t i = 0; i < ranks().size(); ++i) {
      if (i == position_) continue;
      check(cudaStreamWaitEvent(stream, shared_->rank_entries[i].*others, 0), "ordering virtual GPUs");
    }
    // An event may be recorded again only when the streams of all ranks wait for its last recording.
    meet(what, [] {});
  }

  void compare_calls(const std::string& what) const {
    const RankCall& mine = shared_->rank_entries[position_].call;
    for (std::size_t i = 0; i < ranks().size(); ++i) {
      const RankCall& other = shared_->rank_entries[i].call;
      if (other.kind == mine.kind && other.dtype == mine.dtype && other.bytes == mine.bytes) continue;
      fail_running(fmt::format("GPU: rank {} is at {}, and rank {} at {}", ranks()[position_], what, ranks()[i],
                               text_of(other, sequence_, ranks())));
    }
  }

  std::shared_ptr<VirtualGroup> shared_;
  std::size_t position_;
  OwnEvent ready_ = make_event(), read_ = make_event();
};

}  // namespace

std::unique_ptr<Rank> join_virtual(int rank, int module, VirtualGroups& groups, std::span<const int> ranks,
                                   const Abort& abort) {
  const std::size_t position = position_of(rank, ranks);
  auto group = groups.get(module, ranks,
                          [&] { return std::make_shared<VirtualGroup>(std::vector<int>(ranks.begin(), ranks.end())); });
  return std::make_unique<VirtualCommunicator>(std::move(group), position, abort);
}

}  // namespace pmaptrain::cuda
