#include "core/base/machine.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"

namespace pmaptrain {
namespace {

// The folder of this process's own cgroup (version 2), and of those above it.
std::vector<std::string> cgroups() {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with("0::")) continue;
    std::vector<std::string> paths;
    for (std::string path = line.substr(3); !path.empty() && path != "/"; path = path.substr(0, path.rfind('/'))) {
      paths.push_back("/sys/fs/cgroup" + path);
    }
    paths.emplace_back("/sys/fs/cgroup");
    return paths;
  }
  return {};
}

// What a cgroup's processes hold and could not give back: files that are only cached could go.
double held_memory(const std::string& group) {
  std::ifstream current(group + "/memory.current"), details(group + "/memory.stat");
  double held = 0;
  if (!(current >> held)) return 0;
  std::string key;
  for (double value = 0; details >> key >> value;) {
    if (key == "inactive_file" || key == "active_file") held -= value;
  }
  return std::max(0.0, held);
}

double read_number(const std::string& path, double otherwise) {
  std::ifstream file(path);
  double value = 0;
  return file >> value ? value : otherwise;
}

}  // namespace

int affinity_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());  // there are more cores than the set can hold
}

double cgroup_cores() {
  double cores = 0;
  for (const std::string& group : cgroups()) {
    std::ifstream file(group + "/cpu.max");
    double quota = 0, period = 0;
    if (!(file >> quota >> period) || period <= 0) continue;  // "max" reads as no number
    cores = cores > 0 ? std::min(cores, quota / period) : quota / period;
  }
  return cores;
}

double allowed_cores() {
  const double cores = affinity_cores(), quota = cgroup_cores();
  return std::max(1.0, quota > 0 ? std::min(cores, quota) : cores);
}

std::size_t available_memory() {
  double available = std::numeric_limits<double>::infinity();
  std::ifstream file("/proc/meminfo");
  std::string key;
  double kibibytes = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    if (words >> key >> kibibytes && key == "MemAvailable:") available = kibibytes * 1024;
  }
  for (const std::string& group : cgroups()) {
    const double limit = read_number(group + "/memory.max", std::numeric_limits<double>::infinity());
    available = std::min(available, limit - held_memory(group));
  }
  return static_cast<std::size_t>(std::max(0.0, std::min(available, 1e18)));
}

void demand_memory(std::size_t needed, const std::string& what, const std::string& help) {
  const std::size_t available = available_memory();
  if (needed <= available) return;
  fail_resource(what + " needs " + human_bytes(static_cast<double>(needed)) + " of memory, and " +
                    human_bytes(static_cast<double>(available)) + " is available",
                help);
}

}  // namespace pmaptrain
