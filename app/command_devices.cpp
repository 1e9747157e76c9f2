// devices: the hardware there is.
#include <fmt/format.h>

#include "app/arguments.h"
#include "app/commands.h"
#include "app/hardware.h"
#include "app/json.h"
#include "app/validate_report.h"
#include "core/base/text.h"
#include "core/base/version.h"
#include "core/runtime/backends.h"

namespace pmaptrain::app {
namespace {

std::string bytes(std::size_t count) { return human_bytes(static_cast<double>(count)); }

std::string text(const Hardware& hardware) {
  std::string allowed = fmt::format("{} hardware threads", hardware.allowed_threads);
  if (hardware.quota > 0) allowed += fmt::format(", {:.3g} cores of CPU quota (cgroup)", hardware.quota);
  std::vector<std::vector<std::string>> rows{
      {"processor", hardware.model.empty() ? "unknown" : hardware.model},
      {"cores",
       fmt::format("{} in {} package(s), {} hardware threads", hardware.cores, hardware.packages, hardware.threads)},
      {"this process may use", allowed},
      {"memory", fmt::format("{}, of which {} is available", bytes(hardware.memory), bytes(hardware.available))},
      {"NUMA nodes", std::to_string(hardware.numa_nodes)}};
  for (const CacheLevel& cache : hardware.caches) {
    rows.push_back(
        {fmt::format("L{} cache", cache.level), fmt::format("{} x {}{}", cache.count, bytes(cache.bytes),
                                                            cache.kind == "unified" ? "" : " (" + cache.kind + ")")});
  }
  for (const BackendKind kind : backend_kinds) {
    const std::string_view what =
        kind == BackendKind::cpu ? kernel_library : "the interpreter: slow, for checking results";
    rows.push_back({kind == backend_kinds[0] ? "backends" : "", fmt::format("{} ({})", to_string(kind), what)});
  }
  return "hardware:\n" + columns(rows, {}) +
         "\n--devices sets the number of logical devices of the mesh; one core can run many of them.\n--workers sets "
         "the number of threads that run them; auto uses all cores that this process may use.\nThe batch is split over "
         "the devices of the mesh of the config, not over this list.\n";
}

std::string json_text(const Hardware& hardware) {
  Json json;
  json["processor"] = {{"model", hardware.model},
                       {"packages", hardware.packages},
                       {"cores", hardware.cores},
                       {"hardware_threads", hardware.threads},
                       {"allowed_threads", hardware.allowed_threads},
                       {"cgroup_cores", hardware.quota > 0 ? Json(hardware.quota) : Json(nullptr)}};
  json["memory_bytes"] = {{"total", hardware.memory}, {"available", hardware.available}};
  json["numa_nodes"] = hardware.numa_nodes;
  json["caches"] = Json::array();
  for (const CacheLevel& cache : hardware.caches) {
    json["caches"].push_back(
        {{"level", cache.level}, {"kind", cache.kind}, {"bytes", cache.bytes}, {"count", cache.count}});
  }
  json["backends"] = Json::array();
  for (const BackendKind kind : backend_kinds) json["backends"].push_back(to_string(kind));
  json["kernel_library"] = kernel_library;
  return to_text(json);
}

}  // namespace

int command_devices(CommandArguments arguments, const Streams& streams) {
  bool json = false;
  Arguments a("devices", "Lists the hardware, and the part of it that this process may use.");
  a.flag("--json", json, "print it as a JSON document");
  if (!a.parse(arguments, streams.out)) return 0;
  const Hardware hardware = find_hardware();
  streams.out << (json ? json_text(hardware) : text(hardware));
  return 0;
}

}  // namespace pmaptrain::app
