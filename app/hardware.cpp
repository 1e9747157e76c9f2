#include "app/hardware.h"

#include <hwloc.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>

#include "core/base/error.h"
#include "core/base/machine.h"

namespace pmaptrain::app {
namespace {

std::string field_of(const std::string& file, const std::string& name) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(name)) continue;
    const std::size_t colon = line.find(':');
    const std::size_t start = colon == std::string::npos ? colon : line.find_first_not_of(" \t", colon + 1);
    if (start != std::string::npos) return line.substr(start);
  }
  return "";
}

std::size_t total_memory() {
  std::istringstream words(field_of("/proc/meminfo", "MemTotal"));
  double kibibytes = 0;
  return words >> kibibytes ? static_cast<std::size_t>(kibibytes * 1024) : 0;
}

void add_cache(std::vector<CacheLevel>& caches, const hwloc_obj& cache) {
  const auto& attributes = cache.attr->cache;
  const char* const kind = attributes.type == HWLOC_OBJ_CACHE_DATA          ? "data"
                           : attributes.type == HWLOC_OBJ_CACHE_INSTRUCTION ? "instruction"
                                                                            : "unified";
  const CacheLevel level{static_cast<int>(attributes.depth), kind, static_cast<std::size_t>(attributes.size), 1};
  for (CacheLevel& known : caches) {
    if (known.level == level.level && known.kind == level.kind && known.bytes == level.bytes) {
      ++known.count;
      return;
    }
  }
  caches.push_back(level);
}

}  // namespace

Hardware find_hardware() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) fail_resource("the machine's topology cannot be read (hwloc)");
  const std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)> owner(topology, hwloc_topology_destroy);
  hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);  // the machine's, not only our share
  if (hwloc_topology_load(topology) != 0) fail_resource("the machine's topology cannot be read (hwloc)");

  const auto count = [&](hwloc_obj_type_t type) { return std::max(0, hwloc_get_nbobjs_by_type(topology, type)); };
  Hardware hardware;
  hardware.packages = count(HWLOC_OBJ_PACKAGE);
  hardware.cores = count(HWLOC_OBJ_CORE);
  hardware.threads = count(HWLOC_OBJ_PU);
  hardware.numa_nodes = count(HWLOC_OBJ_NUMANODE);
  for (const hwloc_obj_type_t type : {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L4CACHE}) {
    for (hwloc_obj_t cache = hwloc_get_next_obj_by_type(topology, type, nullptr); cache != nullptr;
         cache = hwloc_get_next_obj_by_type(topology, type, cache)) {
      add_cache(hardware.caches, *cache);
    }
  }
  if (const hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0)) {
    if (const char* const model = hwloc_obj_get_info_by_name(package, "CPUModel")) hardware.model = model;
  }
  if (hardware.model.empty()) hardware.model = field_of("/proc/cpuinfo", "model name");
  hardware.allowed_threads = affinity_cores();
  hardware.quota = cgroup_cores();
  hardware.memory = total_memory();
  hardware.available = available_memory();
  return hardware;
}

}  // namespace pmaptrain::app
