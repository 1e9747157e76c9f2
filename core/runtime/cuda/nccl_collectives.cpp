#include "core/runtime/cuda/nccl_collectives.h"

#include <fmt/format.h>

#include <thread>

#include "core/base/error.h"
#include "core/runtime/cuda/check.h"

namespace pmaptrain::cuda {
namespace {

ncclDataType_t nccl_type(DType dtype) {
  switch (dtype) {
    case DType::bf16: return ncclBfloat16;
    case DType::f32: return ncclFloat32;
    case DType::f64: return ncclFloat64;
    case DType::i32: return ncclInt32;
    case DType::i64: return ncclInt64;
    case DType::u32: return ncclUint32;
    case DType::u8:
    case DType::boolean: break;
  }
  return ncclUint8;
}

// A communicator that does not block: a rank that is missing cannot hold this thread for ever. One whose calls are
// captured blocks, because else the library makes them on a thread of its own. Guarded by a mutex, because abort() is
// called on another thread.
class NcclCommunicator {
 public:
  NcclCommunicator(std::shared_ptr<NcclMeeting> meeting, std::size_t position, const Abort& abort, bool captured)
      : meeting_(std::move(meeting)), abort_(abort) {
    const std::string what = "the beginning of communicator " + ranks_text(ranks());
    meeting_->meeting.come(position, abort_, what, [&] {
      if (position == 0) must(ncclGetUniqueId(&meeting_->id), what);
    });
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = captured ? 1 : 0;
    const ncclResult_t status = ncclCommInitRankConfig(&communicator_, static_cast<int>(ranks().size()), meeting_->id,
                                                       static_cast<int>(position), &config);
    try {
      if (status != ncclInProgress) must(status, what);
      settle(what);
    } catch (...) {
      abort_now();
      throw;
    }
  }
  // By abort, because the other ranks may end later, or on this thread: the library's other way waits for them. What
  // was queued is done by now.
  ~NcclCommunicator() { abort_now(); }
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  const std::vector<int>& ranks() const { return meeting_->meeting.ranks(); }
  std::string next(const RankCall& call) const { return text_of(call, sequence_, ranks()); }

  void run(const RankCall& call, cudaStream_t stream) {
    ncclResult_t status = ncclInvalidUsage;
    {
      const std::lock_guard lock(mutex_);
      if (communicator_ != nullptr) {
        const auto elements = static_cast<std::size_t>(call.elements());
        status =
            call.kind == gpu::Collective::all_gather
                ? ncclAllGather(call.from, call.to, call.bytes, ncclUint8, communicator_, stream)
                : ncclAllReduce(call.from, call.to, elements, nccl_type(call.dtype), ncclSum, communicator_, stream);
      }
    }
    abort_.check();
    if (status == ncclInProgress) {
      settle(next(call));
    } else {
      must(status, next(call));
    }
    ++sequence_;
  }

  // Throws what has failed since it was queued.
  void check() {
    ncclResult_t state = ncclSuccess;
    std::string reason;
    {
      const std::lock_guard lock(mutex_);
      if (communicator_ == nullptr || ncclCommGetAsyncError(communicator_, &state) != ncclSuccess) return;
      if (state == ncclSuccess || state == ncclInProgress) return;
      reason = reason_of(state, communicator_);
    }
    fail_running(fmt::format("GPU: a collective of communicator {}, {} or earlier: {}", ranks_text(ranks()),
                             sequence_ - 1, reason));
  }

  void abort_now() noexcept {
    const std::lock_guard lock(mutex_);
    if (communicator_ != nullptr) ncclCommAbort(std::exchange(communicator_, nullptr));
  }

 private:
  void must(ncclResult_t status, const std::string& what) const {
    if (status == ncclSuccess) return;
    fail_running(fmt::format("GPU: {}: {}", what, reason_of(status, nullptr)));
  }

  // Until the library has taken what was asked of it.
  void settle(const std::string& what) {
    const auto end = std::chrono::steady_clock::now() + patience();
    for (;;) {
      ncclResult_t state = ncclInProgress;
      {
        const std::lock_guard lock(mutex_);
        if (communicator_ != nullptr) ncclCommGetAsyncError(communicator_, &state);
      }
      abort_.check();
      if (state != ncclInProgress) return must(state, what);
      if (std::chrono::steady_clock::now() > end) {
        fail_running(fmt::format("GPU: {} has not begun within {} s; a rank did not come", what, patience().count()));
      }
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

  std::shared_ptr<NcclMeeting> meeting_;
  const Abort& abort_;
  std::mutex mutex_;
  ncclComm_t communicator_ = nullptr;  // null when aborted
  std::int64_t sequence_ = 0;
};

class NcclCollectives final : public Collectives {
 public:
  NcclCollectives(int rank, NcclMeetings& meetings, const Abort& abort, bool captured)
      : rank_(rank), captured_(captured), meetings_(meetings), abort_(abort) {}

  int join(int key, std::span<const int> ranks) override {
    const std::size_t position = position_of(rank_, ranks);
    auto meeting = meetings_.get(
        key, ranks, [&] { return std::make_shared<NcclMeeting>(std::vector<int>(ranks.begin(), ranks.end())); });
    auto communicator = std::make_unique<NcclCommunicator>(std::move(meeting), position, abort_, captured_);
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(communicator));
    return static_cast<int>(all_.size()) - 1;
  }
  void run(int communicator, const RankCall& call, cudaStream_t stream) override { at(communicator).run(call, stream); }
  bool can_be_captured() const override { return captured_; }
  std::string next(int communicator, const RankCall& call) const override { return at(communicator).next(call); }
  void check() override {
    for (const auto& each : all_) each->check();
  }
  void abort() noexcept override {
    const std::lock_guard lock(mutex_);
    for (const auto& each : all_) each->abort_now();
  }

 private:
  NcclCommunicator& at(int communicator) const { return *all_[static_cast<std::size_t>(communicator)]; }

  int rank_;
  bool captured_;
  NcclMeetings& meetings_;
  const Abort& abort_;
  std::mutex mutex_;  // of changes to `all_`, which abort() reads on another thread
  std::vector<std::unique_ptr<NcclCommunicator>> all_;
};

}  // namespace

std::unique_ptr<Collectives> make_nccl_collectives(int rank, NcclMeetings& meetings, const Abort& abort,
                                                   bool captured) {
  return std::make_unique<NcclCollectives>(rank, meetings, abort, captured);
}

}  // namespace pmaptrain::cuda
