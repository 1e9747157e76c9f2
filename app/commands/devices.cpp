// devices: the hardware there is.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/commands/commands.h"
#include "app/display/terminal.h"
#include "app/hardware.h"
#include "app/options/arguments.h"
#include "core/base/machine.h"
#include "core/base/text.h"
#include "core/base/version.h"
#include "core/base/wrap.h"
#include "core/report/json.h"
#include "core/runtime/backends.h"

namespace pmaptrain::app {
namespace {

// "9.0" of 90, and of CUDA's versions "13.0" of 13000.
std::string capability_text(int compute_capability) {
  return fmt::format("{}.{}", compute_capability / 10, compute_capability % 10);
}
std::string driver_text(int driver) { return fmt::format("{}.{}", driver / 1000, driver % 1000 / 10); }

// One row for each GPU, or one that says why there are none.
void add_gpus(std::vector<Definition>& rows, const Gpus& gpus) {
  if (gpus.all.empty()) {
    rows.push_back({"GPUs", "none that can be used: " + gpus.none_because});
    return;
  }
  for (std::size_t i = 0; i < gpus.all.size(); ++i) {
    const gpu::Properties& gpu = gpus.all[i];
    std::string what =
        fmt::format("{}, {}, compute capability {}, driver for CUDA {}", gpu.name, human_bytes(gpu.memory),
                    capability_text(gpu.compute_capability), driver_text(gpu.driver));
    if (!gpu.peers.empty()) what += fmt::format(", reaches the memory of {}", fmt::join(gpu.peers, ", "));
    rows.push_back({fmt::format("GPU {}", i), std::move(what)});
  }
}

report::Json json_of(const Gpus& gpus) {
  report::Json json = report::Json::array();
  for (std::size_t i = 0; i < gpus.all.size(); ++i) {
    const gpu::Properties& gpu = gpus.all[i];
    json.push_back({{"index", i},
                    {"name", gpu.name},
                    {"memory_bytes", gpu.memory},
                    {"compute_capability", capability_text(gpu.compute_capability)},
                    {"driver_cuda_version", driver_text(gpu.driver)},
                    {"peers", gpu.peers}});
  }
  return json;
}

// What a process of a launcher may use: "node7, 4 hardware threads, 2 GPUs".
std::string own_share(const Hardware& hardware, const Gpus& gpus) {
  const std::string threads = fmt::format("{}, {} hardware threads", host_name(), hardware.allowed_threads);
  return gpus.all.empty() ? threads : threads + ", " + counted(std::ssize(gpus.all), "GPU");
}

// One row for each process of a launcher.
void add_processes(std::vector<Definition>& rows, const std::vector<std::string>& processes) {
  if (processes.size() < 2) {
    rows.push_back({"processes", "1: no launcher has started others"});
    return;
  }
  for (std::size_t p = 0; p < processes.size(); ++p) rows.push_back({fmt::format("process {}", p), processes[p]});
}

std::string text(const Hardware& hardware, const Gpus& gpus, const std::vector<std::string>& processes, int columns) {
  std::string allowed = fmt::format("{} hardware threads", hardware.allowed_threads);
  if (hardware.quota > 0) allowed += fmt::format(", {:.3g} cores of CPU quota (cgroup)", hardware.quota);
  std::vector<Definition> rows{{"processor", hardware.model.empty() ? "unknown" : hardware.model},
                               {"cores", fmt::format("{} in {} package(s), {} hardware threads", hardware.cores,
                                                     hardware.packages, hardware.threads)},
                               {"this process may use", allowed},
                               {"memory", fmt::format("{}, of which {} is available", human_bytes(hardware.memory),
                                                      human_bytes(hardware.available))},
                               {"NUMA nodes", std::to_string(hardware.numa_nodes)}};
  for (const CacheLevel& cache : hardware.caches) {
    rows.push_back(
        {fmt::format("L{} cache", cache.level), fmt::format("{} x {}{}", cache.count, human_bytes(cache.bytes),
                                                            cache.kind == "unified" ? "" : " (" + cache.kind + ")")});
  }
  add_processes(rows, processes);
  add_gpus(rows, gpus);
  for (const BackendKind kind : backend_kinds) {
    const std::string_view what = kind == BackendKind::cpu ? kernel_library
                                  : kind == BackendKind::cuda
                                      ? (gpus.all.empty() ? "GPUs: none can be used here" : "GPUs, by CUDA")
                                      : "the interpreter: slow, for checking results";
    rows.push_back({kind == backend_kinds[0] ? "backends" : "", fmt::format("{} ({})", to_string(kind), what)});
  }
  return "hardware:\n" + definitions(rows, columns) +
         "\n--devices sets the number of logical devices of the mesh; one core can run many of them.\n--workers sets "
         "the number of threads, or of GPUs, that run them; auto uses all that this process may use.\nThe batch is "
         "split over "
         "the devices of the mesh of the config, not over this list.\nmpirun or srun starts several processes, each of "
         "which carries whole blocks of the mesh (mesh.blocks);\npmaptrain validate CONFIG shows how many would divide "
         "them alike.\n";
}

std::string json_text(const Hardware& hardware, const Gpus& gpus, const std::vector<std::string>& processes) {
  report::Json json;
  json["processor"] = {{"model", hardware.model},
                       {"packages", hardware.packages},
                       {"cores", hardware.cores},
                       {"hardware_threads", hardware.threads},
                       {"allowed_threads", hardware.allowed_threads},
                       {"cgroup_cores", hardware.quota > 0 ? report::Json(hardware.quota) : report::Json(nullptr)}};
  json["memory_bytes"] = {{"total", hardware.memory}, {"available", hardware.available}};
  json["numa_nodes"] = hardware.numa_nodes;
  json["caches"] = report::Json::array();
  for (const CacheLevel& cache : hardware.caches) {
    json["caches"].push_back(
        {{"level", cache.level}, {"kind", cache.kind}, {"bytes", cache.bytes}, {"count", cache.count}});
  }
  json["processes"] = processes;
  json["gpus"] = json_of(gpus);
  json["gpus_missing_because"] = gpus.all.empty() ? report::Json(gpus.none_because) : report::Json(nullptr);
  json["backends"] = report::Json::array();
  for (const BackendKind kind : backend_kinds) {
    const bool is_usable = kind != BackendKind::cuda || !gpus.all.empty();
    if (is_usable) json["backends"].push_back(to_string(kind));
  }
  json["kernel_library"] = kernel_library;
  return report::to_text(json);
}

}  // namespace

int command_devices(CommandArguments arguments, const Streams& streams) {
  bool json = false;
  Arguments a("devices", "Lists the hardware, and the part of it that this process may use.");
  a.flag("--json", json, "print it as a JSON document");
  if (!a.parse(arguments, streams)) return 0;
  const Hardware hardware = find_hardware();
  const Gpus gpus = find_gpus();
  if (streams.job != nullptr) streams.job->agree({});  // a process that has failed says so
  const std::vector<std::string> processes =
      texts_of_all(streams.job != nullptr ? streams.job->processes() : Processes(), own_share(hardware, gpus));
  streams.out << (json ? json_text(hardware, gpus, processes)
                       : for_reader(text(hardware, gpus, processes, display::text_columns(streams.out_fd)), streams));
  return 0;
}

}  // namespace pmaptrain::app
