#include "core/base/machine.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <thread>

#include "core/base/error.h"
#include "core/base/text.h"

namespace pmaptrain {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> cgroups() { return cgroup_folders(text_of("/proc/self/cgroup")); }

double read_number(const std::string& path, double otherwise) {
  std::ifstream file(path);
  double value = 0;
  return file >> value ? value : otherwise;
}

}  // namespace

std::vector<std::string> cgroup_folders(const std::string& self_cgroup) {
  std::istringstream lines(self_cgroup);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("0::/")) continue;
    std::vector<std::string> folders;
    for (std::string path = line.substr(3); path.size() > 1; path = path.substr(0, path.rfind('/'))) {
      folders.push_back("/sys/fs/cgroup" + path);
    }
    folders.emplace_back("/sys/fs/cgroup");
    return folders;
  }
  return {};
}

double cores_of_quota(const std::string& cpu_max) {
  std::istringstream words(cpu_max);
  double quota = 0, period = 0;
  return words >> quota >> period && period > 0 ? quota / period : 0;  // "max" reads as no number
}

double held_memory(const std::string& memory_current, const std::string& memory_stat) {
  std::istringstream current(memory_current), details(memory_stat);
  double held = 0;
  if (!(current >> held)) return 0;
  std::string key;
  for (double value = 0; details >> key >> value;) {
    if (key == "inactive_file" || key == "active_file") held -= value;
  }
  return std::max(0.0, held);
}

int affinity_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());  // there are more cores than the set can hold
}

double cgroup_cores() {
  double cores = 0;
  for (const std::string& group : cgroups()) {
    const double quota = cores_of_quota(text_of(group + "/cpu.max"));
    if (quota > 0) cores = cores > 0 ? std::min(cores, quota) : quota;
  }
  return cores;
}

double allowed_cores(double cores, double quota) { return std::max(1.0, quota > 0 ? std::min(cores, quota) : cores); }

double allowed_cores() { return allowed_cores(affinity_cores(), cgroup_cores()); }

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
    available =
        std::min(available, limit - held_memory(text_of(group + "/memory.current"), text_of(group + "/memory.stat")));
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
