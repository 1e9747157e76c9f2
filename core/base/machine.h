// What the machine lets this process have: its own limits and those of its cgroups.
#pragma once

#include <cstddef>
#include <string>
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

// ---- what the files of cgroups (version 2) say ----
// The folder of the cgroup that /proc/self/cgroup names, then those of the cgroups above it.
std::vector<std::string> cgroup_folders(const std::string& self_cgroup);

// Cores' worth of time that a cpu.max allows; 0: no limit.
double cores_of_quota(const std::string& cpu_max);

// Bytes that a cgroup's processes hold and could not give back: files that are only cached could go.
double held_memory(const std::string& memory_current, const std::string& memory_stat);

}  // namespace pmaptrain
