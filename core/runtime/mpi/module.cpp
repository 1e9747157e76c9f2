// The transport of processes that a launcher of MPI has started. The program opens this library only then, so it starts
// where there is no MPI.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "core/runtime/mpi/heartbeats.h"
#include "core/runtime/mpi/module_table.h"

namespace pmaptrain::mpi {
namespace {

constexpr int message_tag = 1;
// MPI 3 counts elements by int, so larger messages are sent in parts.
constexpr std::size_t most_bytes = std::size_t{1} << 30;

class MpiTransport final : public Transport {
 public:
  MpiTransport(MPI_Comm all, MPI_Comm of_heartbeats, const Placement& placement)
      : all_(all), heartbeats_(of_heartbeats, placement) {}

  void exchange(std::span<const Outgoing> sends, std::span<const Incoming> receives) override {
    requests_.clear();
    for (const Incoming& message : receives) {
      for_each_part(message.bytes, [&](std::size_t begin, int bytes) {
        MPI_Irecv(message.memory + begin, bytes, MPI_BYTE, message.from, message_tag, all_, &requests_.emplace_back());
      });
    }
    for (const Outgoing& message : sends) {
      for_each_part(message.bytes, [&](std::size_t begin, int bytes) {
        MPI_Isend(message.memory + begin, bytes, MPI_BYTE, message.to, message_tag, all_, &requests_.emplace_back());
      });
    }
    wait(requests_);
  }

  void largest(std::span<std::int64_t> values) override {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_INT64_T, MPI_MAX, all_, &request);
    wait({&request, 1});
  }

  void broadcast(std::span<std::byte> bytes) override {
    for_each_part(bytes.size(), [&](std::size_t begin, int part) {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Ibcast(bytes.data() + begin, part, MPI_BYTE, 0, all_, &request);
      wait({&request, 1});
    });
  }

  void watch(Wait wait) override {
    switch (wait) {
      case Wait::begins: return heartbeats_.begin_watching();
      case Wait::goes_on: return heartbeats_.check();
      case Wait::ends: return heartbeats_.end_watching();
    }
  }

  void tell(Phase phase, std::int64_t step) override { heartbeats_.tell(phase, step); }
  void set_timeout(double seconds) override { heartbeats_.set_timeout(seconds); }

 private:
  template <class F>
  static void for_each_part(std::size_t bytes, F&& f) {
    for (std::size_t begin = 0; begin < bytes; begin += most_bytes) {
      f(begin, static_cast<int>(std::min(most_bytes, bytes - begin)));
    }
  }

  // Waits for messages, and meanwhile looks whether the other processes are there.
  void wait(std::span<MPI_Request> requests) {
    heartbeats_.begin_waiting();
    const int tests_between_checks = heartbeats_.is_serving() ? 1 : 1000;
    for (int tests = 1;; ++tests) {
      int done = 0;
      MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
      if (done != 0) break;
      if (tests % tests_between_checks != 0) continue;
      heartbeats_.check();
      if (heartbeats_.is_serving()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      } else {
        std::this_thread::yield();  // another process may need this core to answer
      }
    }
    heartbeats_.end_waiting();
  }

  const MPI_Comm all_;
  Heartbeats heartbeats_;
  std::vector<MPI_Request> requests_;
};

Transport* transport = nullptr;

// The processes of a host that have the same CUDA_VISIBLE_DEVICES, and which of them this is.
HostPlace find_host_place() {
  MPI_Comm host = MPI_COMM_NULL, alike = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string own = visible != nullptr ? visible : "";
  // The colour of a process is the first one that has the same text.
  int rank = 0, size = 1, colour = -1;
  MPI_Comm_rank(host, &rank);
  MPI_Comm_size(host, &size);
  for (int process = 0; process < size; ++process) {
    std::string other = own;
    int length = static_cast<int>(other.size());
    MPI_Bcast(&length, 1, MPI_INT, process, host);
    other.resize(static_cast<std::size_t>(length));
    MPI_Bcast(other.data(), length, MPI_CHAR, process, host);
    if (colour < 0 && other == own) colour = process;
  }
  MPI_Comm_split(host, colour, rank, &alike);
  HostPlace place;
  MPI_Comm_rank(alike, &place.process);
  MPI_Comm_size(alike, &place.processes);
  MPI_Comm_free(&alike);
  MPI_Comm_free(&host);
  return place;
}

Transport* join(Placement& placement, HostPlace& place, const char*& why) {
  int level = MPI_THREAD_SINGLE;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level) != MPI_SUCCESS) {
    why = "MPI_Init_thread failed";
    return nullptr;
  }
  if (level < MPI_THREAD_MULTIPLE) {
    why = "this MPI does not let several threads communicate (MPI_THREAD_MULTIPLE)";
    return nullptr;
  }
  MPI_Comm all = MPI_COMM_NULL, of_heartbeats = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  MPI_Comm_dup(MPI_COMM_WORLD, &of_heartbeats);
  MPI_Comm_rank(all, &placement.process);
  MPI_Comm_size(all, &placement.processes);
  place = find_host_place();
  transport = new MpiTransport(all, of_heartbeats, placement);
  return transport;
}

void leave() {
  delete transport;
  transport = nullptr;
  MPI_Finalize();
}

constexpr ModuleTable table{module_abi, &join, &leave};

}  // namespace
}  // namespace pmaptrain::mpi

extern "C" __attribute__((visibility("default"))) const pmaptrain::mpi::ModuleTable* pmaptrain_mpi() {
  return &pmaptrain::mpi::table;
}
