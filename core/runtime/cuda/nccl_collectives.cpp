#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>

#include "core/base/error.h"
#include "core/runtime/cuda/collectives.h"
#include "core/runtime/gpu/environment.h"

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

// NCCL's description of an error, for example "unhandled cuda error: Cuda failure 2 'out of memory'". `communicator`
// may be null.
std::string reason_of(ncclResult_t status, ncclComm_t communicator) {
  const char* const more = ncclGetLastError(communicator);
  const std::string reason = ncclGetErrorString(status);
  return more == nullptr || *more == '\0' ? reason : fmt::format("{}: {}", reason, more);
}

void must(ncclResult_t status, const std::string& what) {
  if (status == ncclSuccess) return;
  fail_running(fmt::format("GPU: {}: {}", what, reason_of(status, nullptr)));
}

// One rank of a NCCL communicator whose calls block. A call may block until a missing rank makes its call too, and then
// it does not return.
class NcclCommunicator final : public Rank {
 public:
  // Waits until all ranks of this process have called it. `id` is null if there are no others.
  NcclCommunicator(std::shared_ptr<NcclGroup> group, std::vector<int> ranks, int rank, const gpu::CommunicatorId* id,
                   const Abort& abort)
      : Rank(std::move(ranks), abort), group_(std::move(group)), place_(position_of(rank, this->ranks())) {
    const std::size_t position = position_of(rank, group_->barrier.ranks());
    group_->barrier.arrive_and_wait(position, abort_, beginning(), [&] {
      if (position != 0) return;
      if (id != nullptr) {
        std::memcpy(&group_->id, id->data(), id->size());
      } else {
        must(ncclGetUniqueId(&group_->id), beginning());
      }
    });
  }
  // All ranks of this process have done their work. ncclCommDestroy would also wait for the other ranks to be
  // destroyed, which the threads of a process do one after another.
  ~NcclCommunicator() override {
    if (communicator_ != nullptr) ncclCommAbort(communicator_);
  }

  void connect() override {
    abort_.check();
    // Before the communicator is there: as soon as it is, another GPU may run an exchange that waits for this one, and
    // so would cudaMalloc.
    const std::size_t bytes = 2 * ranks().size();
    check(cudaMalloc(first_exchange_.create(), bytes), "allocating memory");
    check(cudaMemset(first_exchange_.get(), 0, bytes), beginning());
    call(beginning(), [&] {
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 1;  // NCCL runs each call of a nonblocking communicator on a separate thread
      return ncclCommInitRankConfig(&communicator_, static_cast<int>(ranks().size()), group_->id,
                                    static_cast<int>(place_), &config);
    });
    connect_for_exchanges();
  }

  void run(const RankCall& of, cudaStream_t stream) override {
    call(next(of), [&] {
      switch (of.kind) {
        case gpu::Collective::exchange: return exchange(of, stream);
        case gpu::Collective::all_gather:
          return ncclAllGather(of.from, of.to, of.bytes, ncclUint8, communicator_, stream);
        case gpu::Collective::reduce_scatter_sum:
          return ncclReduceScatter(of.from, of.to, static_cast<std::size_t>(of.elements()), nccl_type(of.dtype),
                                   ncclSum, communicator_, stream);
        case gpu::Collective::all_reduce_sum: break;
      }
      const auto elements = static_cast<std::size_t>(of.elements());
      return ncclAllReduce(of.from, of.to, elements, nccl_type(of.dtype), ncclSum, communicator_, stream);
    });
    ++sequence_;
  }

  // Throws the error of an earlier asynchronous call, if there is one.
  void check_earlier() override {
    ncclResult_t state = ncclSuccess;
    if (ncclCommGetAsyncError(communicator_, &state) != ncclSuccess) return;
    if (state == ncclSuccess || state == ncclInProgress) return;
    fail_running(fmt::format("GPU: a collective of communicator {}, {} or earlier: {}", ranks_text(ranks()),
                             sequence_ - 1, reason_of(state, communicator_)));
  }

  std::string late_call() const override {
    const std::lock_guard lock(call_mutex_);
    const bool is_late = call_begin_ && std::chrono::steady_clock::now() - *call_begin_ > gpu::gpu_timeout();
    return is_late ? late(call_) : std::string();
  }

 private:
  // Names the creation of the communicator in messages.
  std::string beginning() const { return "the beginning of communicator " + ranks_text(ranks()); }

  template <class F>
  void call(const std::string& what, F&& make) {
    const auto keep = [&](std::optional<std::chrono::steady_clock::time_point> begin) {
      const std::lock_guard lock(call_mutex_);
      call_ = what;
      call_begin_ = begin;
    };
    abort_.check();  // another rank may never come
    keep(std::chrono::steady_clock::now());
    const ncclResult_t status = make();
    keep({});
    abort_.check();
    must(status, what);
  }

  static std::string late(const std::string& call) {
    return fmt::format("GPU: {} has not returned within {} s", call, gpu::gpu_timeout().count());
  }

  // NCCL connects ranks for ncclSend and ncclRecv at the first such call, which may wait for other GPUs as a call of
  // CUDA does. So one is made here, before the first step.
  void connect_for_exchanges() {
    const std::size_t bytes = ranks().size();
    auto* const from = static_cast<std::byte*>(first_exchange_.get());
    call(beginning(), [&] {
      return exchange({gpu::Collective::exchange, DType::u8, from + bytes, from, 1}, cudaStreamLegacy);
    });
    wait_for_first_exchange();
  }

  // Looks instead of calling cudaStreamSynchronize, which does not return if a rank never comes.
  void wait_for_first_exchange() {
    const OwnEvent end = make_event();
    check(cudaEventRecord(end.get(), cudaStreamLegacy), beginning());
    const auto last = std::chrono::steady_clock::now() + gpu::gpu_timeout();
    while (!is_done(end, beginning())) {
      abort_.check();
      check_earlier();
      if (std::chrono::steady_clock::now() > last) fail_running(late(beginning()));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  // The calls between ncclGroupStart() and ncclGroupEnd() run at the same time. After an error, the group is ended too,
  // because otherwise all later calls of this thread would belong to it.
  ncclResult_t exchange(const RankCall& of, cudaStream_t stream) {
    ncclResult_t status = ncclGroupStart();
    if (status != ncclSuccess) return status;
    for (std::size_t i = 0; i < ranks().size() && status == ncclSuccess; ++i) {
      const int other = static_cast<int>(i);
      status = ncclSend(of.from + i * of.bytes, of.bytes, ncclUint8, other, communicator_, stream);
      if (status == ncclSuccess)
        status = ncclRecv(of.to + i * of.bytes, of.bytes, ncclUint8, other, communicator_, stream);
    }
    const ncclResult_t ended = ncclGroupEnd();
    return status == ncclSuccess ? ended : status;
  }

  std::shared_ptr<NcclGroup> group_;
  std::size_t place_;  // among ranks(), which are also those of other processes
  ncclComm_t communicator_ = nullptr;
  DeviceMemory first_exchange_;    // stays until the end, because cudaFree may wait for other GPUs too
  mutable std::mutex call_mutex_;  // protects what late_call() reads
  std::string call_;
  std::optional<std::chrono::steady_clock::time_point> call_begin_;  // set during a call of NCCL
};

}  // namespace

std::unique_ptr<Rank> join_nccl(int rank, const gpu::GpuRange& here, int module, NcclGroups& groups,
                                std::span<const int> ranks, const gpu::CommunicatorId* id, const Abort& abort) {
  std::vector<int> ranks_here;
  std::copy_if(ranks.begin(), ranks.end(), std::back_inserter(ranks_here),
               [&](int each) { return here.first <= each && each < here.first + here.count; });
  if (id == nullptr && ranks_here.size() < ranks.size()) {
    fail_running(fmt::format("GPU: communicator {} of several processes has no identity", ranks_text(ranks)));
  }
  auto group = groups.get(module, ranks, [&] { return std::make_shared<NcclGroup>(ranks_here); });
  return std::make_unique<NcclCommunicator>(std::move(group), std::vector<int>(ranks.begin(), ranks.end()), rank, id,
                                            abort);
}

gpu::CommunicatorId new_nccl_id() {
  ncclUniqueId made{};
  must(ncclGetUniqueId(&made), "the identity of a communicator");
  gpu::CommunicatorId id{};
  static_assert(sizeof made == sizeof id);
  std::memcpy(id.data(), &made, sizeof made);
  return id;
}

}  // namespace pmaptrain::cuda
