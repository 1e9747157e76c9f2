#include "core/base/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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

std::vector<Cgroup> own_cgroups(std::string_view controller) {
  return cgroups_of(controller, text_of("/proc/self/cgroup"), text_of("/proc/self/mountinfo"));
}

bool has_word(const std::string& list, std::string_view word) {
  std::istringstream words(list);
  for (std::string part; std::getline(words, part, ',');) {
    if (part == word) return true;
  }
  return false;
}

// mountinfo writes a space in a path as \040.
std::string unescaped(const std::string& path) {
  std::string out;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const auto digit = [&](std::size_t k) { return i + k < path.size() && path[i + k] >= '0' && path[i + k] <= '7'; };
    if (path[i] == '\\' && digit(1) && digit(2) && digit(3)) {
      out += static_cast<char>((path[i + 1] - '0') * 64 + (path[i + 2] - '0') * 8 + (path[i + 3] - '0'));
      i += 3;
    } else {
      out += path[i];
    }
  }
  return out;
}

struct CgroupMount {
  std::string root;   // what of the tree is mounted
  std::string point;  // where
};

// https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html: "36 35 98:0 ROOT POINT OPTIONS [FIELD...] - TYPE
// SOURCE OPTIONS", where the last options of a cgroup of version 1 name its controllers.
std::vector<CgroupMount> cgroup_mounts(const std::string& mountinfo, std::string_view controller, int version) {
  std::vector<CgroupMount> mounts;
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string skipped, root, point, type, options;
    words >> skipped >> skipped >> skipped >> root >> point;
    while (words >> skipped && skipped != "-") {
    }
    words >> type >> skipped >> options;
    if (version == 2 ? type == "cgroup2" : type == "cgroup" && has_word(options, controller)) {
      mounts.push_back({unescaped(root), unescaped(point)});
    }
  }
  return mounts;
}

bool is_below(const std::string& path, const std::string& root) {
  if (path.find("/..") != std::string::npos) return false;  // outside the cgroup namespace
  return root == "/" || path == root || (path.starts_with(root) && path[root.size()] == '/');
}

// Adds the folder of `path` and its parents, up to the mount's root.
void add_folders(const std::vector<CgroupMount>& mounts, const std::string& path, int version,
                 std::vector<Cgroup>& cgroups) {
  if (mounts.empty()) return;
  const auto shown =
      std::find_if(mounts.begin(), mounts.end(), [&](const CgroupMount& mount) { return is_below(path, mount.root); });
  const CgroupMount& mount = shown != mounts.end() ? *shown : mounts.front();
  std::string rest = shown != mounts.end() && mount.root != "/" ? path.substr(mount.root.size())
                     : shown != mounts.end()                    ? path
                                                                : std::string();
  for (; rest.size() > 1; rest.resize(rest.rfind('/'))) cgroups.push_back({mount.point + rest, version});
  cgroups.push_back({mount.point, version});
}

double read_number(const std::string& path, double otherwise) {
  std::ifstream file(path);
  double value = 0;
  return file >> value ? value : otherwise;
}

constexpr double no_limit = std::numeric_limits<double>::infinity();

}  // namespace

std::vector<Cgroup> cgroups_of(std::string_view controller, const std::string& self_cgroup,
                               const std::string& mountinfo) {
  std::vector<Cgroup> cgroups;
  std::istringstream lines(self_cgroup);
  for (std::string line; std::getline(lines, line);) {  // "4:memory:/path", of version 2 "0::/path"
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos || line.compare(second + 1, 1, "/") != 0) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const int version = controllers.empty() ? 2 : 1;
    if (version == 1 && !has_word(controllers, controller)) continue;
    add_folders(cgroup_mounts(mountinfo, controller, version), line.substr(second + 1), version, cgroups);
  }
  return cgroups;
}

double cgroup_cores(const std::vector<Cgroup>& cgroups) {
  double cores = 0;
  for (const auto& [folder, version] : cgroups) {
    const double quota = cores_of_quota(version == 2 ? text_of(folder + "/cpu.max")
                                                     : text_of(folder + "/cpu.cfs_quota_us") + " " +
                                                           text_of(folder + "/cpu.cfs_period_us"));
    if (quota > 0) cores = cores > 0 ? std::min(cores, quota) : quota;
  }
  return cores;
}

double cgroup_memory(const std::vector<Cgroup>& cgroups) {
  double left = no_limit;
  for (const auto& [folder, version] : cgroups) {
    const double limit = read_number(folder + (version == 2 ? "/memory.max" : "/memory.limit_in_bytes"), no_limit);
    if (limit == no_limit) continue;  // "max" is no number
    const std::string current = text_of(folder + (version == 2 ? "/memory.current" : "/memory.usage_in_bytes"));
    left = std::min(left, limit - held_memory(current, text_of(folder + "/memory.stat"), version));
  }
  return std::max(0.0, left);
}

double cores_of_quota(const std::string& cpu_max) {
  std::istringstream words(cpu_max);
  double quota = 0, period = 0;
  // No limit is "max", which reads as no number, or -1 of version 1.
  return words >> quota >> period && quota > 0 && period > 0 ? quota / period : 0;
}

double held_memory(const std::string& current, const std::string& memory_stat, int version) {
  std::istringstream all(current), details(memory_stat);
  double held = 0;
  if (!(all >> held)) return 0;
  std::string key;
  const std::string prefix = version == 2 ? "" : "total_";
  for (double value = 0; details >> key >> value;) {
    if (key == prefix + "inactive_file" || key == prefix + "active_file") held -= value;
  }
  return std::max(0.0, held);
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::vector<int> affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const bool holds_all = sched_getaffinity(0, sizeof set, &set) == 0;
  const std::size_t most = holds_all ? CPU_SETSIZE : std::thread::hardware_concurrency();
  std::vector<int> cores;
  for (std::size_t core = 0; core < most; ++core) {
    if (!holds_all || CPU_ISSET(core, &set)) cores.push_back(static_cast<int>(core));
  }
  return cores;
}

int affinity_cores() { return static_cast<int>(affinity().size()); }

double cgroup_cores() { return cgroup_cores(own_cgroups("cpu")); }

double allowed_cores(double cores, double quota) { return std::max(1.0, quota > 0 ? std::min(cores, quota) : cores); }

double allowed_cores() { return allowed_cores(affinity_cores(), cgroup_cores()); }

std::size_t available_memory() {
  double available = no_limit;
  std::ifstream file("/proc/meminfo");
  std::string key;
  double kibibytes = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    if (words >> key >> kibibytes && key == "MemAvailable:") available = kibibytes * 1024;
  }
  available = std::min(available, cgroup_memory(own_cgroups("memory")));
  return static_cast<std::size_t>(std::max(0.0, std::min(available, 1e18)));
}

void demand_memory(std::size_t needed, const std::string& what, const std::string& help) {
  const std::size_t available = available_memory();
  if (needed <= available) return;
  fail_resource(what + " needs " + human_bytes(needed) + " of memory, and " + human_bytes(available) + " is available",
                help);
}

}  // namespace pmaptrain
