// How the members of an ensemble are divided over processes. Of P processes, m = gcd(P, members) groups of neighbours
// divide the members: each group carries a run of neighbouring members. The P / m processes of a group divide the
// blocks of each of its members (core/mesh/share.h).
#pragma once

#include <cstdint>
#include <numeric>

#include "core/mesh/share.h"

namespace pmaptrain {

// What a process has of an ensemble.
class MemberShare {
 public:
  // Unless processes `divide` the members, all of them have all members.
  explicit MemberShare(std::int64_t members = 1, Placement placement = {}, bool divide = true)
      : placement_(placement),
        groups_(divide ? static_cast<int>(std::gcd(members, std::int64_t{placement.processes})) : 1),
        members_of_group_(members / groups_),
        processes_of_group_(placement.processes / groups_) {}

  int groups() const { return groups_; }
  // Whether every process has all members.
  bool is_whole() const { return groups_ == 1; }
  IndexRange members() const {
    return {placement_.process / processes_of_group_ * members_of_group_, members_of_group_};
  }
  bool has(std::int64_t member) const { return carries(placement_.process, member); }
  bool carries(int process, std::int64_t member) const {
    return process / processes_of_group_ == member / members_of_group_;
  }

  // The first of the processes that carry a member, and the first of those that carry the members of this process.
  int first_process(std::int64_t member) const {
    return static_cast<int>(member / members_of_group_) * processes_of_group_;
  }
  int first_process() const { return first_process(members().first); }
  // Which of the processes that carry the members of this process it is.
  Placement within_group() const { return {placement_.process % processes_of_group_, processes_of_group_}; }

 private:
  Placement placement_;
  int groups_;
  std::int64_t members_of_group_;
  int processes_of_group_;
};

}  // namespace pmaptrain
