// gpu::Device on CUDA: a GPU, or one of several virtual devices on a GPU.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <variant>
#include <vector>

#include "core/runtime/cuda/collectives.h"
#include "core/runtime/cuda/libraries.h"

namespace pmaptrain::cuda {

// Joins a device to a communicator; see gpu::Device::create_communicator(). `abort` is the device's.
using Join =
    std::function<std::unique_ptr<Rank>(std::span<const int> ranks, const gpu::CommunicatorId* id, const Abort& abort)>;
using Barriers = SharedMap<Barrier>;

class CudaDevice final : public gpu::Device {
 public:
  // `number` and `module` are the arguments of Platform::open(); `gpu` is the number of the GPU in CUDA. It differs
  // from `number` for virtual devices, and if processes divide the GPUs of a machine.
  CudaDevice(int number, int module, int gpu, GenerateSource generate_source, std::shared_ptr<Shared> shared, Join join,
             Barriers& barriers);
  ~CudaDevice() override;

  std::byte* allocate(std::size_t bytes) override;
  std::byte* pinned(std::size_t bytes) override;
  void begin_preparing(const Op& op, const GpuRequest& request, const GpuKernel& kernel) override {
    libraries_.begin_preparing(op, request, kernel);
  }
  gpu::PreparedKernel prepare(const Op& op, const GpuRequest& request, const GpuKernel& kernel) override;
  void launch(gpu::Stream stream, gpu::PreparedKernel kernel, const gpu::LaunchArguments& arguments,
              const gpu::Accesses& accesses) override;
  void copy(gpu::Stream stream, std::byte* to, const std::byte* from, const gpu::PitchedRows& rows) override;
  void reduce(gpu::Stream stream, Reduction kind, DType dtype, std::span<const gpu::Addends> all,
              std::span<const TreeNode> tree) override;
  void collective(gpu::Stream stream, gpu::Communicator communicator, gpu::Collective kind, DType dtype, std::byte* to,
                  const std::byte* from, std::size_t bytes) override;
  void order(gpu::Stream before, gpu::Stream after) override;
  void stamp(gpu::Stream stream, int number) override;
  double seconds_between(int from, int to) override;
  void begin_range(const std::string& name) override;
  void end_range() override;
  gpu::Graph capture(const std::function<void()>& record) override;
  void replay_calls(gpu::Graph graph, int first, int count) override;
  gpu::Event record_event(gpu::Stream stream) override;
  bool poll(gpu::Event event) override;
  void wait_event(gpu::Event event, gpu::Stream stream) override;
  gpu::Communicator create_communicator(std::span<const int> ranks, const gpu::CommunicatorId* id) override;
  void barrier(int devices) override;
  void abort(const std::string& reason) noexcept override { abort_.set(reason); }
  std::string late_call() const override;

 private:
  // A call that capture() has recorded.
  struct Call {
    std::function<void()> run;
    bool on_compute = false;  // whether it uses only the stream `compute`
  };
  // A graph of gpu::Device: CUDA graphs, and between them calls that are not part of a CUDA graph.
  using CapturedGraph = std::vector<std::variant<OwnGraphExec, std::function<void()>>>;

  cudaStream_t stream(gpu::Stream stream) const { return streams_[static_cast<std::size_t>(stream)].get(); }
  // Makes the call now, or records it if capture() is running.
  template <class F>
  void queue(bool on_compute, F&& call);
  OwnGraphExec make_graph(std::span<const Call> calls);
  // Runs a library's kernel once, because libraries load code on the first call, which is forbidden during a capture.
  // All operands are NaN; returns whether the result is NaN.
  bool warm_up(const Kernel& kernel, const GpuRequest& request, const GpuKernel& description);
  void check_progress();  // throws if the device has been aborted, or a collective has failed or takes too long

  int number_, module_;
  Abort abort_;
  Barriers& barriers_;
  std::array<OwnStream, gpu::stream_count> streams_;
  std::array<OwnEvent, gpu::stream_count> order_events_;  // for order(), by its argument `before`
  std::vector<OwnEvent> stamp_events_;                    // for stamp(), by number
  std::vector<DeviceMemory> memory_;
  std::vector<PinnedMemory> pinned_;
  Libraries libraries_;
  std::vector<Kernel> kernels_;
  const Join join_;
  mutable std::mutex communicators_mutex_;  // protects changes of `communicators_`, which late_call() reads
  std::vector<std::unique_ptr<Rank>> communicators_;
  CollectiveWatchdog watchdog_;
  std::map<std::int64_t, OwnEvent> events_;  // by Event::number; events that are known to be done are removed
  std::int64_t last_event_ = 0;
  std::vector<CapturedGraph> graphs_;

  const bool uses_graphs_;
  std::vector<Call>* recorded_ = nullptr;  // set while capture() runs
  std::string range_name_;                 // the last name that begin_range() was given
  bool capturing_ = false;                 // whether calls are being captured into a CUDA graph
};

}  // namespace pmaptrain::cuda
