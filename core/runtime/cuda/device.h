// gpu::Device on CUDA: one GPU, or one of several virtual ones on it.
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

// Of a stream, between the least and the greatest that CUDA has.
int priority_of(gpu::Stream stream, int least, int greatest);

class CudaDevice final : public gpu::Device {
 public:
  // `number` is the rank in the module, `gpu` the GPU as CUDA counts.
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
  gpu::Mark mark(gpu::Stream stream) override;
  bool poll(gpu::Mark mark) override;
  void wait(gpu::Mark mark) override;
  void follow(gpu::Mark mark, gpu::Stream stream) override;
  gpu::Communicator join(int key, std::span<const int> ranks) override;
  void barrier(int devices) override;
  void abort(const std::string& reason) noexcept override;

 private:
  // A call that was recorded, and whether it is one on the stream compute alone.
  struct Call {
    std::function<void()> make;
    bool on_compute = false;
  };
  // What a replay calls: launches of graphs, and what is between them.
  struct Captured {
    std::vector<std::variant<OwnGraphExec, std::function<void()>>> parts;
    std::vector<std::string> collectives;  // in the graphs
  };

  cudaStream_t stream(gpu::Stream stream) const { return streams_[static_cast<std::size_t>(stream)].get(); }
  // Carries the call out, or keeps it while calls are recorded.
  template <class F>
  void queue(bool on_compute, F&& call);
  void refuse_while_recording(const char* what) const;
  OwnGraphExec make_graph(std::span<const Call> calls);
  // Runs a kernel of a library once: libraries load code in their first call, which a capture forbids. Returns whether
  // NaN operands give a NaN.
  bool warm_up(const Kernel& kernel, const GpuRequest& request, const GpuKernel& description);
  void check_progress();

  int number_, module_;
  std::thread::id thread_ = std::this_thread::get_id();
  Abort abort_;
  Barriers& barriers_;
  std::array<OwnStream, gpu::streams> streams_;
  std::array<OwnEvent, gpu::streams> orders_;  // by the stream before
  std::vector<OwnEvent> stamps_;               // with times
  std::vector<DeviceMemory> memory_;
  std::vector<PinnedMemory> pinned_;
  Libraries libraries_;
  std::vector<Kernel> kernels_;
  std::unique_ptr<Collectives> collectives_;
  Watch watch_;
  std::map<std::int64_t, OwnEvent> marks_;  // that have not been seen to be done
  std::int64_t last_mark_ = 0;
  std::vector<Captured> graphs_;  // after collectives_: graphs end before communicators

  const bool makes_graphs_;
  std::vector<Call>* recorded_ = nullptr;  // while capture() runs
  std::string place_;                      // in the program, of what is called
  bool records_collectives_ = false;       // in them
  bool capturing_ = false;                 // the calls are carried out into a graph
  std::vector<std::string> captured_collectives_;
};

}  // namespace pmaptrain::cuda
