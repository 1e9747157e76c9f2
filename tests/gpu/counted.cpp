#include "tests/gpu/counted.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "core/base/error.h"
#include "tests/gpu/programs.h"

namespace pmaptrain::test {
namespace {

std::string name_of(gpu::Stream stream) {
  constexpr const char* names[] = {"compute", "communicate", "copy"};
  return names[static_cast<std::size_t>(stream)];
}

class CountedDevice final : public gpu::Device {
 public:
  CountedDevice(std::unique_ptr<gpu::Device> device, int number, CallCounts& counts)
      : device_(std::move(device)), number_(number), counts_(counts) {}
  ~CountedDevice() override {
    device_.reset();
    counts_.closed.add(number_);
  }

  std::byte* allocate(std::size_t bytes) override {
    ++counts_.memory;
    return device_->allocate(bytes);
  }
  std::byte* pinned(std::size_t bytes) override {
    ++counts_.memory;
    counts_.pinned += bytes;
    return device_->pinned(bytes);
  }
  void begin_preparing(const Op& op, const GpuRequest& request, const GpuKernel& kernel) override {
    device_->begin_preparing(op, request, kernel);
  }
  gpu::PreparedKernel prepare(const Op& op, const GpuRequest& request, const GpuKernel& kernel) override {
    ++counts_.kernels;
    if (counts_.kernels_that_work-- == 0) fail_running("planted: a kernel cannot be prepared");
    if (request.tf32) ++counts_.tf32;
    return device_->prepare(op, request, kernel);
  }
  void launch(gpu::Stream stream, gpu::PreparedKernel kernel, const gpu::LaunchArguments& arguments,
              const gpu::Accesses& accesses) override {
    device_->launch(stream, kernel, arguments, accesses);
  }
  void copy(gpu::Stream stream, std::byte* to, const std::byte* from, const gpu::PitchedRows& rows) override {
    counts_.queued.add("copy on " + name_of(stream));
    device_->copy(stream, to, from, rows);
  }
  void reduce(gpu::Stream stream, Reduction reduce, DType dtype, std::byte* to, const std::byte* from,
              std::int64_t elements, const gpu::SpacedArrays& arrays, std::span<const TreeNode> tree) override {
    device_->reduce(stream, reduce, dtype, to, from, elements, arrays, tree);
  }
  void collective(gpu::Stream stream, gpu::Communicator communicator, gpu::Collective kind, DType dtype, std::byte* to,
                  const std::byte* from, std::size_t bytes) override {
    device_->collective(stream, communicator, kind, dtype, to, from, bytes);
  }
  void order(gpu::Stream before, gpu::Stream after) override {
    const std::string call = "order " + name_of(before) + " before " + name_of(after);
    counts_.queued.add(call);
    if (call != counts_.forgotten) device_->order(before, after);
  }
  void stamp(gpu::Stream stream, int number) override { device_->stamp(stream, number); }
  double seconds_between(int from, int to) override { return device_->seconds_between(from, to); }
  void begin_range(const std::string& name) override {
    counts_.ranges.add(name);
    ++counts_.open_ranges;
    device_->begin_range(name);
  }
  void end_range() override {
    --counts_.open_ranges;
    device_->end_range();
  }
  gpu::Graph capture(const std::function<void()>& record) override {
    ++counts_.graphs;
    if (counts_.graphs_that_work-- == 0) fail_running("planted: a graph cannot be made");
    return device_->capture(record);
  }
  void replay_calls(gpu::Graph graph, int first, int count) override {
    if (first == 0) {
      counts_.queued.add("replay");
      if (counts_.before_replay) counts_.before_replay(number_);
    }
    calls_ += count;
    int most = counts_.most_in_flight;
    while (calls_ - done_ > most && !counts_.most_in_flight.compare_exchange_weak(most, calls_ - done_)) continue;
    device_->replay_calls(graph, first, count);
  }
  gpu::Event record_event(gpu::Stream stream) override {
    const gpu::Event event = device_->record_event(stream);
    if (stream == gpu::Stream::compute) calls_at_[event.number] = calls_;
    return event;
  }
  bool poll(gpu::Event event) override {
    const bool is_done = device_->poll(event);
    if (is_done) know_done(event);
    return is_done;
  }
  void wait_event(gpu::Event event, gpu::Stream stream) override {
    const std::string call = "follow on " + name_of(stream);
    counts_.queued.add(call);
    if (call != counts_.forgotten) device_->wait_event(event, stream);
  }
  gpu::Communicator create_communicator(int key, std::span<const int> ranks, const gpu::CommunicatorId* id) override {
    ++counts_.communicators;
    if (counts_.before_communicator) counts_.before_communicator(number_);
    return device_->create_communicator(key, ranks, id);
  }
  void barrier(int devices) override {
    ++counts_.barriers;
    // That at the end of a load comes after what is recorded; later ones come in pairs.
    const std::string call = std::exchange(next_is_before_, !next_is_before_) ? "before" : "after";
    if ("meet " + call + " recording" != counts_.forgotten) device_->barrier(devices);
  }
  void abort(const std::string& reason) noexcept override { device_->abort(reason); }
  std::string late_call() const override { return device_->late_call(); }

 private:
  void know_done(gpu::Event event) {
    const auto found = calls_at_.find(event.number);
    if (found == calls_at_.end()) return;
    done_ = std::max(done_, found->second);
    calls_at_.erase(calls_at_.begin(), std::next(found));
  }

  std::unique_ptr<gpu::Device> device_;
  const int number_;
  CallCounts& counts_;
  bool next_is_before_ = false;
  int calls_ = 0, done_ = 0;              // of graphs
  std::map<std::int64_t, int> calls_at_;  // by event
};

class CountedPlatform final : public gpu::Platform {
 public:
  CountedPlatform(std::unique_ptr<gpu::Platform> platform, CallCounts& counts)
      : platform_(std::move(platform)), counts_(counts) {}

  int devices() const override { return platform_->devices(); }
  gpu::Properties properties(int device) const override { return platform_->properties(device); }
  std::unique_ptr<gpu::Device> open(int device, int module, const gpu::RanksHere& ranks) override {
    return std::make_unique<CountedDevice>(platform_->open(device, module, ranks), device, counts_);
  }
  gpu::CommunicatorId new_communicator_id() override { return platform_->new_communicator_id(); }

 private:
  const std::unique_ptr<gpu::Platform> platform_;
  CallCounts& counts_;
};

}  // namespace

std::unique_ptr<gpu::Platform> make_counted(std::unique_ptr<gpu::Platform> platform, CallCounts& counts) {
  return std::make_unique<CountedPlatform>(std::move(platform), counts);
}

std::unique_ptr<Module> CountedGpus::load(const Source& source) const {
  return load_on(*platform, platform->devices(), source);
}

std::unique_ptr<Module> CountedGpus::load(std::shared_ptr<const Program> program, int batches) const {
  return load({{{"test", std::move(program), batches}}});
}

}  // namespace pmaptrain::test
