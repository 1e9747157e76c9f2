// The transport of processes that a launcher of MPI has started. The program opens this library only then, so it starts
// where there is no MPI.
#include <mpi.h>

#include <algorithm>
#include <vector>

#include "core/runtime/mpi/module_table.h"

namespace pmaptrain::mpi {
namespace {

constexpr int tag = 1;
// MPI 3 counts elements by int, so larger messages are sent in parts.
constexpr std::size_t most_bytes = std::size_t{1} << 30;

class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(MPI_Comm all) : all_(all) {}

  void exchange(std::span<const Outgoing> sends, std::span<const Incoming> receives) override {
    requests_.clear();
    for (const Incoming& message : receives) {
      for_each_part(message.bytes, [&](std::size_t begin, int bytes) {
        MPI_Irecv(message.memory + begin, bytes, MPI_BYTE, message.from, tag, all_, &requests_.emplace_back());
      });
    }
    for (const Outgoing& message : sends) {
      for_each_part(message.bytes, [&](std::size_t begin, int bytes) {
        MPI_Isend(message.memory + begin, bytes, MPI_BYTE, message.to, tag, all_, &requests_.emplace_back());
      });
    }
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  }

  void largest(std::span<std::int64_t> values) override {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_INT64_T, MPI_MAX, all_);
  }

  void broadcast(std::span<std::byte> bytes) override {
    for_each_part(bytes.size(),
                  [&](std::size_t begin, int part) { MPI_Bcast(bytes.data() + begin, part, MPI_BYTE, 0, all_); });
  }

 private:
  template <class F>
  static void for_each_part(std::size_t bytes, F&& f) {
    for (std::size_t begin = 0; begin < bytes; begin += most_bytes) {
      f(begin, static_cast<int>(std::min(most_bytes, bytes - begin)));
    }
  }

  const MPI_Comm all_;
  std::vector<MPI_Request> requests_;
};

Transport* transport = nullptr;

Transport* join(Placement& placement, const char*& why) {
  int level = MPI_THREAD_SINGLE;
  // One thread at a time communicates, but not always the same.
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS) {
    why = "MPI_Init_thread failed";
    return nullptr;
  }
  if (level < MPI_THREAD_SERIALIZED) {
    why = "this MPI does not let several threads communicate (MPI_THREAD_SERIALIZED)";
    return nullptr;
  }
  MPI_Comm all = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  MPI_Comm_rank(all, &placement.process);
  MPI_Comm_size(all, &placement.processes);
  transport = new MpiTransport(all);
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
