// What the machine lets this process have: its own limits and those of its cgroups.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pmaptrain {

// Cores that affinity and cpusets leave to this process.
int affinity_cores();

// Cores' worth of time that cgroups allow; 0: no limit.
double cgroup_cores();

// The lesser of both, at least 1; a share of a core counts as such.
double allowed_cores();
double allowed_cores(double cores, double quota);

// Bytes that this process could still have: the machine's memory and its cgroups' limits.
std::size_t available_memory();

// Throws Error (resource) when that is less than `needed` bytes: "<what> needs 3.0 GiB of memory, and 2.0 GiB is
// available". Asked before memory is taken, since the system may promise more than it has and then end the process.
void demand_memory(std::size_t needed, const std::string& what, const std::string& help = {});

// ---- what the files of cgroups say ----
//
// Of version 2 (https://docs.kernel.org/admin-guide/cgroup-v2.html) and of version 1
// (https://docs.kernel.org/admin-guide/cgroup-v1/), whose controllers have a tree of folders each. A machine may have
// both.

struct Cgroup {
  std::string folder;
  int version = 2;
  friend bool operator==(const Cgroup&, const Cgroup&) = default;
};

// The cgroups that hold a process of this /proc/self/cgroup as regards `controller` ("memory", "cpu"): its own and all
// above it, as far as this /proc/self/mountinfo shows them. A container may see a part of the tree alone: the root that
// mountinfo names is taken off the paths, and where a path is not below it, the mount itself stands for the process's.
std::vector<Cgroup> cgroups_of(std::string_view controller, const std::string& self_cgroup,
                               const std::string& mountinfo);

// Cores' worth of time that all of them allow; 0: no limit.
double cgroup_cores(const std::vector<Cgroup>& cgroups);

// Bytes that all of them leave; infinite: no limit.
double cgroup_memory(const std::vector<Cgroup>& cgroups);

// Cores' worth of time that a cpu.max allows, "quota period"; 0: no limit.
double cores_of_quota(const std::string& cpu_max);

// Bytes that a cgroup's processes hold and could not give back: files that are only cached could go. `current` is what
// memory.current or memory.usage_in_bytes says. Of version 1, memory.stat has the groups below under names of their
// own.
double held_memory(const std::string& current, const std::string& memory_stat, int version = 2);

}  // namespace pmaptrain
