#include "tests/emulated_gpu/rendezvous.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"

namespace pmaptrain::emulation {
namespace {

std::string first_word(const std::string& call) { return call.substr(0, call.find(' ')); }

// "all_gather 7 of communicator {0, 1}"
std::string numbered(const Group& group, const std::string& call) {
  return first_word(call) + " " + std::to_string(group.round + 1) + " of " + group.name();
}

}  // namespace

std::size_t Group::place_of(int device) const {
  return static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), device) - ranks.begin());
}

std::shared_ptr<Group> Rendezvous::join(int device, std::span<const int> ranks) {
  const Group asked({ranks.begin(), ranks.end()});
  const auto refuse = [&](const std::string& why) {
    fail_running("device " + std::to_string(device) + " cannot join " + asked.name() + ": " + why);
  };
  for (const int rank : ranks) {
    if (rank < 0 || rank >= std::ssize(aborts_)) refuse("there is no device " + std::to_string(rank));
    if (std::count(ranks.begin(), ranks.end(), rank) > 1) refuse("rank " + std::to_string(rank) + " is in it twice");
  }
  if (asked.place_of(device) == ranks.size()) refuse("it is not one of the ranks");
  std::shared_ptr<Group> joined;
  meet(place_of(asked.ranks), device, "join", &joined, [&](Parts parts) {
    const auto group = std::make_shared<Group>(asked.ranks);
    for (void* const part : parts) *static_cast<std::shared_ptr<Group>*>(part) = group;
  });
  return joined;
}

Group& Rendezvous::neighbours(int first, int devices) {
  std::vector<int> numbers(static_cast<std::size_t>(devices));
  std::iota(numbers.begin(), numbers.end(), first);
  return place_of(numbers);
}

Group& Rendezvous::place_of(const std::vector<int>& ranks) {
  const Lock lock(mutex_);
  return places_.try_emplace(ranks, ranks).first->second;
}

void Rendezvous::meet(Group& group, int device, const std::string& call, void* part,
                      const std::function<void(Parts)>& complete) {
  Lock lock(mutex_);
  abort_of(device).check();
  if (!group.failure.empty()) fail_running(group.failure);
  for (std::size_t i = 0; i < group.ranks.size(); ++i) {
    if (group.arrivals[i].part == nullptr || group.arrivals[i].call == call) continue;
    end(group, "the ranks of " + group.name() + " make different calls, as number " + std::to_string(group.round + 1) +
                   ": rank " + std::to_string(group.ranks[i]) + " " + group.arrivals[i].call + ", rank " +
                   std::to_string(device) + " " + call);
  }
  Group::Arrival& mine = group.arrivals[group.place_of(device)];
  mine = {part, call};
  std::vector<void*> parts;
  for (const Group::Arrival& arrival : group.arrivals) {
    if (arrival.part != nullptr) parts.push_back(arrival.part);
  }
  if (parts.size() == group.ranks.size()) {
    try {
      complete(parts);
    } catch (const Error& error) {
      end(group, error.diagnostics().front().message);
    }
    for (Group::Arrival& arrival : group.arrivals) arrival = {};
    ++group.round;
    changed_.notify_all();
    return;
  }
  std::string& place = waits_in_[static_cast<std::size_t>(device)];
  place = numbered(group, call);
  const std::int64_t round = group.round;
  const auto decided = [&] { return group.round != round || !group.failure.empty() || abort_of(device).is_set(); };
  const bool in_time = changed_.wait_for(lock, patience_, decided);
  if (group.round != round) {
    place.clear();
    return;
  }
  // Before it leaves: another rank may be missed by those who still wait for it.
  if (!in_time) group.failure = missing(group, call);
  place.clear();
  mine = {};
  abort_of(device).check();
  end(group, group.failure);
}

std::string Rendezvous::missing(const Group& group, const std::string& call) const {
  std::vector<std::string> ranks;
  std::string elsewhere;
  for (std::size_t i = 0; i < group.ranks.size(); ++i) {
    if (group.arrivals[i].part != nullptr) continue;
    ranks.push_back(std::to_string(group.ranks[i]));
    const std::string& place = waits_in_[static_cast<std::size_t>(group.ranks[i])];
    if (!place.empty()) elsewhere += "; rank " + ranks.back() + " waits in " + place;
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + pmaptrain::join(ranks, ", ") + " did not come to " +
         numbered(group, call) + elsewhere;
}

void Rendezvous::end(Group& group, const std::string& failure) {
  group.failure = failure;
  changed_.notify_all();
  fail_running(failure);
}

void Rendezvous::hang(int device) {
  Lock lock(mutex_);
  waits_in_[static_cast<std::size_t>(device)].clear();
  changed_.wait_for(lock, 4 * patience_, [&] { return abort_of(device).is_set(); });
  abort_of(device).check();
  fail_running("device " + std::to_string(device) + " is lost, and nothing has aborted it");
}

void Rendezvous::abort(int device, const std::string& reason) {
  aborts_[static_cast<std::size_t>(device)].set(reason.empty() ? "aborted" : reason);
  const Lock lock(mutex_);
  changed_.notify_all();
}

}  // namespace pmaptrain::emulation
