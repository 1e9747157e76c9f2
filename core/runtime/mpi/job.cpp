#include "core/runtime/mpi/job.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>

#include "core/base/error.h"
#include "core/runtime/mpi/module_table.h"

namespace pmaptrain {
namespace {

namespace fs = std::filesystem;

constexpr const char* module_name = "libpmaptrain_mpi.so";
constexpr const char* how_to_build = "scripts/bootstrap --mpi && scripts/build builds it beside the program";

int number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::atoi(text) : 0;
}

fs::path find_module() {
  if (const char* const named = std::getenv("PMAPTRAIN_MPI_MODULE"); named != nullptr && *named != '\0') return named;
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& place : {folder / module_name, folder.parent_path() / module_name,
                                folder.parent_path() / "lib" / "pmaptrain" / module_name}) {
    std::error_code ignored;
    if (fs::exists(place, ignored)) return place;
  }
  fail_resource(fmt::format("this is one of {} processes of a launcher, and {} was not found in {}",
                            launched_processes(), module_name, folder.string()),
                how_to_build);
}

const mpi::ModuleTable& open_module() {
  const fs::path path = find_module();
  // Open MPI opens further libraries, which need the symbols of its own.
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (module == nullptr) fail_resource(fmt::format("the module for MPI does not load: {}", dlerror()), how_to_build);
  const auto function = reinterpret_cast<mpi::ModuleFunction>(dlsym(module, mpi::module_function));
  if (function == nullptr) fail_resource(fmt::format("{} is no module of pmaptrain", path.string()));
  const mpi::ModuleTable& table = *function();
  if (table.abi != mpi::module_abi) {
    fail_resource(fmt::format("{} belongs to another version of pmaptrain: it has interface {}, the program {}",
                              path.string(), table.abi, mpi::module_abi),
                  "build both together");
  }
  return table;
}

}  // namespace

// Open MPI's mpirun sets the first variable. srun sets the other two, where it offers PMIx.
int launched_processes() {
  if (const int processes = number_in("OMPI_COMM_WORLD_SIZE"); processes > 0) return processes;
  if (std::getenv("PMIX_RANK") == nullptr) return 1;
  const int tasks = number_in("SLURM_STEP_NUM_TASKS");
  return tasks > 0 ? tasks : 1;
}

bool is_launched() {
  const auto is_set = [](const char* variable) { return std::getenv(variable) != nullptr; };
  return is_set("OMPI_COMM_WORLD_SIZE") || is_set("PMIX_RANK") || number_in("SLURM_STEP_NUM_TASKS") > 0;
}

int launched_process() {
  const char* const variable = std::getenv("OMPI_COMM_WORLD_RANK") != nullptr ? "OMPI_COMM_WORLD_RANK" : "PMIX_RANK";
  return number_in(variable);
}

int tasks_without_pmix() {
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMIX_RANK") != nullptr) return 1;
  return std::max(1, number_in("SLURM_STEP_NUM_TASKS"));
}

bool tells_of_job(std::string_view variable) {
  constexpr std::string_view beginnings[] = {"OMPI_", "PMIX_", "PMI_", "PRTE_", "ORTE_"};
  return variable == "SLURM_STEP_NUM_TASKS" ||
         std::any_of(std::begin(beginnings), std::end(beginnings),
                     [&](std::string_view beginning) { return variable.starts_with(beginning); });
}

Job::Job() {
  if (launched_processes() == 1) return;
  const mpi::ModuleTable& module = open_module();
  const char* why = nullptr;
  processes_.transport = module.join(processes_.placement, host_place_, why);
  if (processes_.transport == nullptr) fail_resource(fmt::format("the processes cannot join: {}", why));
  leave_ = module.leave;
}

Job::~Job() {
  if (leave_ != nullptr) leave_();
}

}  // namespace pmaptrain
