// Where the threads of emulated devices meet: to join a communicator, and in each of its collectives.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/runtime/gpu/barrier.h"

namespace pmaptrain::emulation {

// The ranks of one communicator, which are devices. They meet in rounds.
struct Group {
  explicit Group(std::vector<int> members) : ranks(std::move(members)), arrivals(ranks.size()) {}

  struct Arrival {
    void* part = nullptr;  // what the rank brings; null before it has come
    std::string call;      // "all_gather of 64 bytes of f32"
  };
  std::size_t place_of(int device) const;  // among the ranks; ranks.size() where it is none of them
  std::string name() const { return "communicator " + gpu::ranks_text(ranks); }

  const std::vector<int> ranks;
  std::vector<Arrival> arrivals;
  std::int64_t round = 0;
  std::string failure;  // what ended the communicator
};

class Rendezvous {
 public:
  Rendezvous(int devices, std::chrono::milliseconds patience)
      : patience_(patience), aborts_(static_cast<std::size_t>(devices)), waits_in_(static_cast<std::size_t>(devices)) {}

  // All throw Error (failed).

  // A new communicator, when all its ranks have called this.
  std::shared_ptr<Group> join(int device, std::span<const int> ranks);

  // Waits until all ranks have come with the same `call`, whose kind is its first word. The last one calls `complete`
  // with the parts of all, by rank, while the others wait.
  using Parts = std::span<void* const>;
  void meet(Group& group, int device, const std::string& call, void* part, const std::function<void(Parts)>& complete);

  // `devices` devices from `first` on, for barriers on the host.
  Group& neighbours(int first, int devices);

  // A rank that is lost: waits for abort(), and not much longer than the others wait for it.
  [[noreturn]] void hang(int device);

  void abort(int device, const std::string& reason);
  const gpu::Abort& abort_of(int device) const { return aborts_[static_cast<std::size_t>(device)]; }

 private:
  using Lock = std::unique_lock<std::mutex>;
  Group& place_of(const std::vector<int>& ranks);
  std::string missing(const Group& group, const std::string& call) const;
  [[noreturn]] void end(Group& group, const std::string& failure);

  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<gpu::Abort> aborts_;            // by device
  std::vector<std::string> waits_in_;         // by device: "all_gather 7 of communicator {0, 1}"
  std::map<std::vector<int>, Group> places_;  // where ranks join a communicator, and where they meet on the host
};

}  // namespace pmaptrain::emulation
