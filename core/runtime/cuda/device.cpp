#include "core/runtime/cuda/device.h"

#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/runtime/cuda/kernels.h"
#include "core/runtime/gpu/environment.h"

namespace pmaptrain::cuda {
namespace {

int compute_capability_of(int gpu) {
  int major = 0, minor = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, gpu), "asking for the compute capability");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, gpu), "asking for the compute capability");
  return major * 10 + minor;
}

// Selects the GPU for the calling thread. This must precede all other CUDA calls of the device's thread.
int select_gpu(int gpu) {
  check(cudaSetDevice(gpu), fmt::format("starting on GPU {}", gpu));
  return gpu;
}

void require_free_memory(std::size_t bytes, int number) {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for free memory");
  if (bytes <= free) return;
  fail_resource(fmt::format("GPU {}: {} of memory are needed, and {} of {} are free", number, human_bytes(bytes),
                            human_bytes(free), human_bytes(total)),
                "a smaller batch_size or more microbatches take less memory; `nvidia-smi` shows who uses the GPU");
}

bool is_nan(DType dtype, std::span<const std::byte> element) {
  const auto value = [&]<class T>(T number) {
    std::memcpy(&number, element.data(), sizeof number);
    return number;
  };
  if (dtype == DType::f64) return std::isnan(value(double{}));
  if (dtype == DType::f32) return std::isnan(value(float{}));
  return (value(std::uint16_t{}) & 0x7FFFU) > 0x7F80U;  // bf16
}

// CUDA can copy rows in one call only if they do not overlap and are less than 2 GiB apart.
bool is_plain(const gpu::PitchedRows& rows) {
  const std::size_t most = std::numeric_limits<int>::max();
  return rows.to_pitch >= rows.width && rows.from_pitch >= rows.width && rows.to_pitch <= most &&
         rows.from_pitch <= most;
}

AdditionOrder addition_order(std::span<const TreeNode> tree) {
  AdditionOrder order;
  std::int64_t leaves = 0, end = 0;
  for (const TreeNode& node : tree) leaves += node.leaves;
  for (const TreeNode& node : tree) {
    order.operands[order.nodes] = static_cast<int>(node.operands);
    order.kept[order.nodes++] = static_cast<std::int8_t>(sums_kept(end += node.leaves, leaves));
  }
  return order;
}

}  // namespace

CudaDevice::CudaDevice(int number, int module, int gpu, GenerateSource generate_source, std::shared_ptr<Shared> shared,
                       Join join, Barriers& barriers)
    : number_(number),
      module_(module),
      barriers_(barriers),
      libraries_(compute_capability_of(select_gpu(gpu)), generate_source, std::move(shared)),
      join_(std::move(join)),
      uses_graphs_(gpu::uses_graphs()) {
  check(load_reductions(), "loading kernels");
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for the priorities of streams");
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    // Collectives have few thread blocks, and other GPUs wait for them. So they start before other work.
    const int priority = static_cast<gpu::Stream>(i) == gpu::Stream::communicate ? greatest : least;
    check(cudaStreamCreateWithPriority(streams_[i].create(), cudaStreamNonBlocking, priority), "creating a stream");
    order_events_[i] = make_event();
  }
}

CudaDevice::~CudaDevice() {
  // Running kernels use memory that is freed below. None of them waits for other ranks (see Platform::give_up()).
  for (const OwnStream& each : streams_) cudaStreamSynchronize(each.get());
}

template <class F>
void CudaDevice::queue(bool on_compute, F&& call) {
  if (recorded_ != nullptr) {
    recorded_->push_back({std::forward<F>(call), on_compute});
  } else {
    call();
  }
}

std::byte* CudaDevice::allocate(std::size_t bytes) {
  require_free_memory(bytes, number_);
  DeviceMemory memory;
  check(cudaMalloc(memory.create(), std::max<std::size_t>(bytes, 1)), "allocating memory");
  memory_.push_back(std::move(memory));
  return static_cast<std::byte*>(memory_.back().get());
}

std::byte* CudaDevice::pinned(std::size_t bytes) {
  PinnedMemory memory;
  check(cudaHostAlloc(memory.create(), std::max<std::size_t>(bytes, 1), cudaHostAllocDefault),
        "allocating pinned memory of the host");
  pinned_.push_back(std::move(memory));
  return static_cast<std::byte*>(pinned_.back().get());
}

gpu::PreparedKernel CudaDevice::prepare(const Op& op, const GpuRequest& request, const GpuKernel& kernel) {
  Kernel& made = kernels_.emplace_back(std::vector<std::unique_ptr<PreparedCommand>>());
  for (const Relu relu : relu_variants) {
    made = libraries_.prepare(op, request, kernel, relu);
    if (warm_up(made, request, kernel) || !made.has_library_relu()) break;
  }
  return {static_cast<int>(kernels_.size()) - 1, made.workspace(), made.is_own()};
}

bool CudaDevice::warm_up(const Kernel& kernel, const GpuRequest& request, const GpuKernel& description) {
  if (!description.is_by_library()) return true;
  WorkspaceLayout parts;
  const auto devices = static_cast<std::size_t>(request.devices);
  std::vector<std::size_t> operand_places, result_places;
  for (std::size_t i = 0; i < request.operands.size(); ++i) {
    operand_places.push_back(parts.add(bytes(request.operands[i]) * (request.stacked[i] ? devices : 1)));
  }
  for (const Type& type : request.results) result_places.push_back(parts.add(bytes(type) * devices));
  const std::size_t scratch = parts.add(description.scratch_bytes), workspace = parts.add(kernel.workspace());
  DeviceMemory memory;
  require_free_memory(parts.size(), number_);
  check(cudaMalloc(memory.create(), parts.size()), "allocating memory to try a kernel");
  auto* const begin = static_cast<std::byte*>(memory.get());
  std::vector<const std::byte*> operands;
  std::vector<std::byte*> results;
  operands.reserve(operand_places.size());
  results.reserve(result_places.size());
  for (const std::size_t place : operand_places) operands.push_back(begin + place);
  for (const std::size_t place : result_places) results.push_back(begin + place);
  const cudaStream_t in = stream(gpu::Stream::compute);
  // Elements whose bits are all 1 are NaN in every floating-point type.
  check(cudaMemsetAsync(begin, 0xFF, parts.size(), in), "trying a kernel");
  for (std::size_t i = 0; i < results.size(); ++i) {
    check(cudaMemsetAsync(results[i], 0, bytes(request.results[i]) * devices, in), "trying a kernel");
  }
  kernel.run(in, {operands, results, begin + scratch, begin + workspace});
  const Type& type = request.results.front();
  std::vector<std::byte> middle(size_of(type.dtype));
  if (numel(type) > 0) {
    const std::size_t offset = static_cast<std::size_t>(numel(type) / 2) * middle.size();
    check(cudaMemcpyAsync(middle.data(), results.front() + offset, middle.size(), cudaMemcpyDefault, in),
          "trying a kernel");
  }
  check(cudaStreamSynchronize(in), "trying a kernel");
  return numel(type) == 0 || is_nan(type.dtype, middle);
}

void CudaDevice::launch(gpu::Stream on, gpu::PreparedKernel kernel, const gpu::LaunchArguments& arguments,
                        const gpu::Accesses&) {
  queue(on == gpu::Stream::compute, [this, on, number = static_cast<std::size_t>(kernel.number),
                                     operands = std::vector(arguments.operands.begin(), arguments.operands.end()),
                                     results = std::vector(arguments.results.begin(), arguments.results.end()),
                                     scratch = arguments.scratch, workspace = arguments.workspace] {
    kernels_[number].run(stream(on), {operands, results, scratch, workspace});
  });
}

void CudaDevice::copy(gpu::Stream on, std::byte* to, const std::byte* from, const gpu::PitchedRows& rows) {
  queue(on == gpu::Stream::compute, [this, on, to, from, rows] {
    if (rows.height > 1 && is_plain(rows)) {
      return check(cudaMemcpy2DAsync(to, rows.to_pitch, from, rows.from_pitch, rows.width, rows.height,
                                     cudaMemcpyDefault, stream(on)),
                   "copying");
    }
    for (std::size_t row = 0; row < rows.height; ++row) {
      check(cudaMemcpyAsync(to + row * rows.to_pitch, from + row * rows.from_pitch, rows.width, cudaMemcpyDefault,
                            stream(on)),
            "copying");
    }
  });
}

void CudaDevice::reduce(gpu::Stream on, Reduction kind, DType dtype, std::span<const gpu::Addends> all,
                        std::span<const TreeNode> tree) {
  if (tree.size() > most_nodes) {
    fail_running(fmt::format("GPU {}: a reduction of {} blocks; the most are {}", number_, tree.size(), most_nodes));
  }
  if (all.size() > most_reduced) {
    fail_running(fmt::format("GPU {}: {} reductions at once; the most are {}", number_, all.size(), most_reduced));
  }
  queue(on == gpu::Stream::compute,
        [=, this, groups = std::vector(all.begin(), all.end()), order = addition_order(tree)] {
          check(cuda::reduce(kind, dtype, groups, order, stream(on)), "a reduction");
        });
}

void CudaDevice::collective(gpu::Stream on, gpu::Communicator communicator, gpu::Collective kind, DType dtype,
                            std::byte* to, const std::byte* from, std::size_t bytes) {
  queue(false, [this, on, communicator, call = RankCall{kind, dtype, to, from, bytes, range_name_}] {
    Rank& rank = *communicators_[static_cast<std::size_t>(communicator.number)];
    std::string what = rank.next(call);
    rank.run(call, stream(on));
    watchdog_.track(std::move(what), stream(on));
  });
}

void CudaDevice::order(gpu::Stream before, gpu::Stream after) {
  queue(false, [this, before, after] {
    const cudaEvent_t event = order_events_[static_cast<std::size_t>(before)].get();
    check(cudaEventRecord(event, stream(before)), "ordering streams");
    check(cudaStreamWaitEvent(stream(after), event, 0), "ordering streams");
  });
}

void CudaDevice::stamp(gpu::Stream on, int number) {
  while (stamp_events_.size() <= static_cast<std::size_t>(number)) {
    check(cudaEventCreate(stamp_events_.emplace_back().create()), "creating an event");
  }
  queue(on == gpu::Stream::compute, [this, on, event = stamp_events_[static_cast<std::size_t>(number)].get()] {
    // With the external flag, the graph records the event in each replay; otherwise, it would be a dependency in the
    // capture.
    check(cudaEventRecordWithFlags(event, stream(on), capturing_ ? cudaEventRecordExternal : cudaEventRecordDefault),
          "keeping a time");
  });
}

double CudaDevice::seconds_between(int from, int to) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, stamp_events_.at(static_cast<std::size_t>(from)).get(),
                             stamp_events_.at(static_cast<std::size_t>(to)).get()),
        "reading a time");
  return static_cast<double>(milliseconds) / 1000;
}

// When a graph is replayed, its ranges are not open, so calls in graphs get no ranges.
void CudaDevice::begin_range(const std::string& name) {
  range_name_ = name;
  if (recorded_ == nullptr || !uses_graphs_) queue(false, [name] { nvtxRangePushA(name.c_str()); });
}

void CudaDevice::end_range() {
  if (recorded_ == nullptr || !uses_graphs_) queue(false, [] { nvtxRangePop(); });
}

// Collectives are not captured: CUDA graphs of several GPUs could block each other, and the threads of virtual GPUs
// wait for each other. Each replay calls them, and the calls on the stream `compute` between them become CUDA graphs.
gpu::Graph CudaDevice::capture(const std::function<void()>& record) {
  std::vector<Call> calls;
  recorded_ = &calls;
  try {
    record();
  } catch (...) {
    recorded_ = nullptr;
    throw;
  }
  recorded_ = nullptr;
  const auto is_captured = [&](const Call& call) { return uses_graphs_ && call.on_compute; };
  CapturedGraph captured;
  for (auto call = calls.begin(); call != calls.end();) {
    const auto end = std::find_if_not(call, calls.end(), is_captured);
    if (end != call) {
      captured.emplace_back(make_graph({call, end}));
      call = end;
    } else {
      captured.emplace_back(std::move(call->run));
      ++call;
    }
  }
  const int count = static_cast<int>(captured.size());
  graphs_.push_back(std::move(captured));
  return {static_cast<int>(graphs_.size()) - 1, count};
}

OwnGraphExec CudaDevice::make_graph(std::span<const Call> calls) {
  const cudaStream_t begin = stream(gpu::Stream::compute);
  capturing_ = true;
  const std::shared_ptr<void> at_the_end(nullptr, [this](void*) { capturing_ = false; });
  OwnGraphExec ready = captured(begin, [&] {
    for (const Call& call : calls) call.run();
  });
  check(cudaGraphUpload(ready.get(), begin), "making a graph");
  return ready;
}

void CudaDevice::replay_calls(gpu::Graph graph, int first, int count) {
  const CapturedGraph& captured = graphs_[static_cast<std::size_t>(graph.number)];
  const cudaStream_t in = stream(gpu::Stream::compute);
  for (const auto& part :
       std::span(captured).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count))) {
    if (const auto* const ready = std::get_if<OwnGraphExec>(&part)) {
      check(cudaGraphLaunch(ready->get(), in), "replaying a graph");
    } else {
      std::get<std::function<void()>>(part)();
    }
  }
}

gpu::Event CudaDevice::record_event(gpu::Stream on) {
  // Delete events that are done but were never waited for.
  if (events_.size() > 64) {
    std::erase_if(events_, [](const auto& each) { return cudaEventQuery(each.second.get()) == cudaSuccess; });
    cudaGetLastError();  // clears cudaErrorNotReady, which the next call would report
  }
  OwnEvent event = make_event();
  check(cudaEventRecord(event.get(), stream(on)), "recording an event");
  events_.emplace(++last_event_, std::move(event));
  return {last_event_};
}

void CudaDevice::check_progress() {
  abort_.check();
  for (const auto& each : communicators_) each->check_earlier();
  watchdog_.check(number_);
}

bool CudaDevice::poll(gpu::Event event) {
  check_progress();
  const auto found = events_.find(event.number);
  if (found == events_.end()) return true;
  if (!is_done(found->second, fmt::format("on GPU {}", number_))) return false;
  events_.erase(found);
  return true;
}

void CudaDevice::wait_event(gpu::Event event, gpu::Stream on) {
  const auto found = events_.find(event.number);
  if (found != events_.end()) check(cudaStreamWaitEvent(stream(on), found->second.get(), 0), "ordering streams");
}

gpu::Communicator CudaDevice::create_communicator(std::span<const int> ranks, const gpu::CommunicatorId* id) {
  std::unique_ptr<Rank> joined = join_(ranks, id, abort_);
  Rank& added = *joined;
  {
    const std::lock_guard lock(communicators_mutex_);
    communicators_.push_back(std::move(joined));
  }
  added.connect();
  return {static_cast<int>(communicators_.size()) - 1};
}

std::string CudaDevice::late_call() const {
  const std::lock_guard lock(communicators_mutex_);
  for (const auto& each : communicators_) {
    if (std::string call = each->late_call(); !call.empty()) return call;
  }
  return {};
}

void CudaDevice::barrier(int devices) {
  std::vector<int> ranks(static_cast<std::size_t>(devices));
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto barrier = barriers_.get(module_, ranks, [&] { return std::make_shared<Barrier>(ranks); });
  barrier->arrive_and_wait(static_cast<std::size_t>(number_), abort_, "the barrier of GPUs " + ranks_text(ranks),
                           [] {});
}

}  // namespace pmaptrain::cuda
