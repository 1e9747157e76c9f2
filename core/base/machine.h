// What the machine lets this process have: its own limits and those of its cgroups.
#pragma once

#include <cstddef>
#include <string>

namespace pmaptrain {

// Cores that affinity and cpusets leave to this process.
int affinity_cores();

// Cores' worth of time that cgroups allow; 0: no limit.
double cgroup_cores();

// The lesser of both, at least 1; a share of a core counts as such.
double allowed_cores();

// Bytes that this process could still have: the machine's memory and its cgroups' limits.
std::size_t available_memory();

// Throws Error (resource) when that is less than `needed` bytes: "<what> needs 3.0 GiB of memory, and 2.0 GiB is
// available". Asked before memory is taken, since the system may promise more than it has and then end the process.
void demand_memory(std::size_t needed, const std::string& what, const std::string& help = {});

}  // namespace pmaptrain
