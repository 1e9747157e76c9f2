// One emulated device: its streams, its captured graphs, and the calls that it carries out at once.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "core/runtime/gpu/device.h"
#include "tests/emulated_gpu/happens_before.h"
#include "tests/emulated_gpu/kernel.h"
#include "tests/emulated_gpu/machine.h"

namespace pmaptrain::emulation {

using gpu::Stream;

class EmulatedDevice final : public gpu::Device {
 public:
  EmulatedDevice(std::shared_ptr<Machine> machine, Opened opened);
  ~EmulatedDevice() override;

  std::byte* allocate(std::size_t bytes) override;
  std::byte* pinned(std::size_t bytes) override;
  gpu::PreparedKernel prepare(const Op& op, const GpuRequest& request, const GpuKernel& kernel) override;
  void launch(Stream stream, gpu::PreparedKernel kernel, const gpu::LaunchArguments& arguments,
              const Accesses& accesses) override;
  void copy(Stream stream, std::byte* to, const std::byte* from, const gpu::PitchedRows& rows) override;
  void reduce(Stream stream, Reduction reduce, DType dtype, std::span<const gpu::Addends> all,
              std::span<const TreeNode> tree) override;
  void collective(Stream stream, gpu::Communicator communicator, gpu::Collective kind, DType dtype, std::byte* to,
                  const std::byte* from, std::size_t bytes) override;
  void order(Stream before, Stream after) override;
  void stamp(Stream stream, int number) override;
  double seconds_between(int from, int to) override;
  void begin_range(const std::string& name) override;
  void end_range() override;
  gpu::Graph capture(const std::function<void()>& record) override;
  void replay_calls(gpu::Graph graph, int first, int count) override;
  gpu::Event record_event(Stream stream) override;
  bool poll(gpu::Event event) override;
  void wait_event(gpu::Event event, Stream stream) override;
  gpu::Communicator create_communicator(std::span<const int> ranks, const gpu::CommunicatorId* id) override;
  void barrier(int devices) override;
  void abort(const std::string& reason) noexcept override;
  std::string late_call() const override { return calls_.late_rank == number_ ? "planted: a call is late" : ""; }

 private:
  static std::size_t lane_of(Stream stream, bool in_graph);

  struct Work {
    Stream stream;
    std::shared_ptr<const std::string> what;
    Accesses accesses;
    std::function<void(const Call&, Clock&)> run;  // the clock is that of its lane
  };
  struct Order {
    Stream before, after;
  };
  using Recorded = std::vector<std::variant<Work, Order>>;
  // A graph while it is captured. Its streams are the lanes of `seen`.
  struct Capture {
    Capture() : forked{true} {}
    Recorded calls;
    std::array<bool, gpu::stream_count> forked;
    std::array<Clock, gpu::stream_count> seen;
  };

  void enter() const;                                  // each call begins with it
  void enter_outside_capture(const char* call) const;  // those that a capture cannot have
  void enter_alone(const char* call);                  // so, too; those that may wait for other devices
  bool is_forgotten(const std::string& call);          // of those that are told; see DeviceCalls
  std::shared_ptr<const std::string> describe(const std::string& call, Stream stream) const;
  void issue(Work work, bool pinned_allowed = false);
  void carry_out(const Work& work, std::size_t lane);
  void fork_or_join(Order order);
  void check_known(gpu::Event event) const;
  void host_knows(gpu::Event event);

  const std::shared_ptr<Machine> machine_;
  const Opened opened_;
  const int number_;
  OfModule& module_;
  const std::thread::id thread_;
  std::mt19937 random_;
  test::DeviceCalls& calls_;  // of the machine
  std::array<Clock, lanes> clocks_;
  Clock host_;  // what this device's thread has waited for
  std::vector<std::unique_ptr<EmulatedKernel>> kernels_;
  // A communicator, and where its ranks meet: `between` if they are in several processes, else null, for the module's.
  struct Joined {
    std::shared_ptr<Rendezvous> between;
    std::shared_ptr<Group> group;
  };
  std::vector<Joined> communicators_;
  std::mutex between_mutex_;
  std::vector<std::shared_ptr<Rendezvous>> between_;  // those of all communicators, also before they are joined
  int collectives_ = 0;
  std::vector<Recorded> graphs_;
  std::optional<Capture> capture_;
  struct Recording {
    Clock clock;
    int calls = 0;  // of graphs, which are done with it
  };
  std::map<std::int64_t, Recording> events_;  // those that the host has not waited for
  std::int64_t next_event_ = 0;
  int calls_made_ = 0, calls_done_ = 0;  // of graphs; those that the host has waited for
  bool next_barrier_is_before_ = false;  // what is recorded
  std::map<int, std::chrono::steady_clock::time_point> stamps_;
  int ranges_ = 0;  // that have not ended
};

}  // namespace pmaptrain::emulation
