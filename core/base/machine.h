// The cores and the memory that this process may use: limits of the machine, of affinity and of cgroups.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pmaptrain {

// The name of this host; empty if the system gives none.
std::string host_name();

// The cores in the affinity mask, which includes cpusets: their numbers, or how many.
std::vector<int> affinity();
int affinity_cores();

// The CPU quota of the cgroups, in cores; 0: no limit.
double cgroup_cores();

// The minimum of both, at least 1. It may be fractional.
double allowed_cores();
double allowed_cores(double cores, double quota);

// Bytes of memory that this process can still allocate, within the machine and the limits of its cgroups.
std::size_t available_memory();

// Throws Error (resource) if less than `needed` bytes are available: "<what> needs 3.0 GiB of memory, and 2.0 GiB is
// available". Call it before allocating, because the system overcommits memory and may kill the process later.
void demand_memory(std::size_t needed, const std::string& what, const std::string& help = {});

// ---- files of cgroups ----
//
// Version 2 (https://docs.kernel.org/admin-guide/cgroup-v2.html) has one hierarchy. Version 1
// (https://docs.kernel.org/admin-guide/cgroup-v1/) has one for each controller. A machine may have both.

struct Cgroup {
  std::string folder;
  int version = 2;
  friend bool operator==(const Cgroup&, const Cgroup&) = default;
};

// The cgroup of a process and all its ancestors for `controller` ("memory", "cpu"), from the contents of its
// /proc/self/cgroup and /proc/self/mountinfo. A container may see only part of the hierarchy. The root in mountinfo is
// therefore removed from the paths; if a path is not below this root, the mount point is used.
std::vector<Cgroup> cgroups_of(std::string_view controller, const std::string& self_cgroup,
                               const std::string& mountinfo);

// The smallest CPU quota of these cgroups, in cores; 0: no limit.
double cgroup_cores(const std::vector<Cgroup>& cgroups);

// The free memory within the limits of all these cgroups, in bytes; infinite: no limit.
double cgroup_memory(const std::vector<Cgroup>& cgroups);

// The CPU quota in a cpu.max ("quota period"), in cores; 0: no limit.
double cores_of_quota(const std::string& cpu_max);

// Bytes of a cgroup that cannot be reclaimed, i.e. without the page cache. `current` is the content of memory.current
// or memory.usage_in_bytes. In version 1, memory.stat has separate entries for totals with descendants.
double held_memory(const std::string& current, const std::string& memory_stat, int version = 2);

}  // namespace pmaptrain
