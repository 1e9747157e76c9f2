// gpu::Device on CUDA: a GPU, or one of several virtual devices on a GPU.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <thread>
#include <variant>
#include <vector>

#include "core/runtime/cuda/collectives.h"
#include "core/runtime/cuda/handles.h"
#include "core/runtime/cuda/libraries.h"
#include "core/runtime/cuda/watch.h"
#include "core/runtime/gpu/device.h"

namespace pmaptrain::cuda {

using MakeCollectives = std::function<std::unique_ptr<Collectives>(const Abort& abort)>;
using Barriers = SharedMap<Barrier>;

// The priority of a stream, between the lowest and the highest priority of CUDA.
int priority_of(gpu::Stream stream, int least, int greatest);

class CudaDevice final : public gpu::Device {
 public:
  // `number` is the rank in the module, `gpu` the number of the GPU in CUDA.
  CudaDevice(int number, int module, int gpu, Generate generate, std::shared_ptr<Compiler> compiler,
             const MakeCollectives& make_collectives, Barriers& barriers);
  ~CudaDevice() override;

  std::byte* allocate(std::size_t bytes) override;
  std::byte* pinned(std::size_t bytes) override;
  void begin_preparing(const Op& op, const GpuRequest& request, const GpuKernel& kernel) override {
    libraries_.begin(op, request, kernel);
  }
  gpu::Prepared prepare(const Op& op, const GpuRequest& request, const GpuKernel& kernel) override;
  void launch(gpu::Stream stream, gpu::Prepared kernel, const gpu::Arguments& arguments,
              const gpu::Accesses& accesses) override;
  void copy(gpu::Stream stream, std::byte* to, const std::byte* from, const gpu::PitchedRows& rows) override;
  void reduce(gpu::Stream stream, Reduction kind, DType dtype, std::byte* to, const std::byte* from,
              std::int64_t elements, const gpu::Arrays& arrays) override;
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
  void wait(gpu::Event event) override;
  void wait_event(gpu::Event event, gpu::Stream stream) override;
  gpu::Communicator create_communicator(int key, std::span<const int> ranks) override;
  void barrier(int devices) override;
  void abort(const std::string& reason) noexcept override;

 private:
  // A recorded call, and whether it uses only the stream `compute`.
  struct Call {
    std::function<void()> make;
    bool on_compute = false;
  };
  // A captured graph: CUDA graphs, and the calls between them that cannot be part of a graph.
  struct Captured {
    std::vector<std::variant<OwnGraphExec, std::function<void()>>> parts;
    std::vector<std::string> collectives;  // descriptions of the collectives in CUDA graphs
  };

  cudaStream_t stream(gpu::Stream stream) const { return streams_[static_cast<std::size_t>(stream)].get(); }
  // Makes the call, or stores it while calls are recorded.
  template <class F>
  void queue(bool on_compute, F&& call);
  void refuse_while_recording(const char* what) const;
  OwnGraphExec make_graph(std::span<const Call> calls);
  // Runs a library kernel once, because libraries load code on the first call and this is forbidden during a capture.
  // Returns whether NaN operands result in a NaN.
  bool warm_up(const Kernel& kernel, const GpuRequest& request, const GpuKernel& description);
  void check_progress();

  int number_, module_;
  std::thread::id thread_ = std::this_thread::get_id();
  Abort abort_;
  Barriers& barriers_;
  std::array<OwnStream, gpu::streams> streams_;
  std::array<OwnEvent, gpu::streams> orders_;  // events for order(), by the stream `before`
  std::vector<OwnEvent> stamps_;               // events with times
  std::vector<DeviceMemory> memory_;
  std::vector<PinnedMemory> pinned_;
  Libraries libraries_;
  std::vector<Kernel> kernels_;
  std::unique_ptr<Collectives> collectives_;
  Watch watch_;
  std::map<std::int64_t, OwnEvent> events_;  // events that are not known to be done
  std::int64_t last_event_ = 0;
  std::vector<Captured> graphs_;  // declared after collectives_, so graphs are destroyed before communicators

  const bool makes_graphs_;
  std::vector<Call>* recorded_ = nullptr;  // set while capture() runs
  std::string place_;                      // the range that begin_range() began last
  bool records_collectives_ = false;       // whether the recorded calls contain collectives
  bool capturing_ = false;                 // whether calls are being captured into a CUDA graph
  std::vector<std::string> captured_collectives_;
};

}  // namespace pmaptrain::cuda
