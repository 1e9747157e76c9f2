#include "core/runtime/gpu/load_platform.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/ops/fused/gpu_source.h"

namespace pmaptrain::gpu {
namespace {

constexpr const char* module_name = "libpmaptrain_cuda.so";
constexpr std::string_view no_such_file = ": cannot open shared object file: No such file or directory";

std::filesystem::path find_module() {
  std::vector<std::string> folders;
  for (const std::filesystem::path& place : module_search_paths()) {
    std::error_code ignored;
    if (std::filesystem::exists(place, ignored)) return place;
    folders.push_back(place.parent_path().string());
  }
  fail_resource(
      fmt::format("{} was not found in {}", module_search_paths().front().filename().string(), join(folders, ", ")),
      "scripts/bootstrap --cuda && scripts/build cuda builds it and build/cuda/pmaptrain, which finds it; it needs an "
      "NVIDIA GPU and a driver for CUDA 13");
}

// An error such as "libcudnn.so.9: cannot open shared object file: No such file or directory" names the missing
// library.
[[noreturn]] void fail_to_open(const std::filesystem::path& module, const std::string& reason) {
  if (const std::size_t end = reason.find(no_such_file); end != std::string::npos) {
    fail_resource(fmt::format("{} was not found, which {} needs", reason.substr(0, end), module.string()),
                  "scripts/bootstrap --cuda fetches NVIDIA's libraries; where they are installed, name their folder in "
                  "LD_LIBRARY_PATH");
  }
  fail_resource(fmt::format("the module for GPUs does not load: {}", reason), "build it anew: scripts/build cuda");
}

// The module is never closed, because devices and errors refer to its code.
const ModuleTable& open_module(const std::filesystem::path& path) {
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) fail_to_open(path, dlerror());
  const auto function = reinterpret_cast<ModuleFunction>(dlsym(module, module_function));
  if (function == nullptr) fail_resource(fmt::format("{} is no module of pmaptrain", path.string()));
  const ModuleTable& table = *function();
  if (table.abi != module_abi) {
    fail_resource(fmt::format("{} belongs to another version of pmaptrain: it has interface {}, the program {}",
                              path.string(), table.abi, module_abi),
                  "build both together: scripts/build cuda");
  }
  return table;
}

}  // namespace

std::vector<std::filesystem::path> module_search_paths() {
  if (const char* const named = std::getenv("PMAPTRAIN_CUDA_MODULE"); named != nullptr && *named != '\0') {
    return {named};
  }
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return {folder / module_name, folder.parent_path() / module_name,
          folder.parent_path() / "lib" / "pmaptrain" / module_name};
}

std::unique_ptr<Platform> load_platform(const ModuleOptions& options) {
  return open_module(find_module()).open(options);
}

DescribedGpu describe_gpu(const std::string& description, decltype(ModuleOptions::generate_source) generate_source) {
  return open_module(find_module()).describe(description, generate_source);
}

GeneratedSource generate_source(const Op& op, const GpuRequest& request) {
  ops::GpuSource source = ops::gpu_source(op, request, "generated");
  return {std::string(ops::gpu_prelude()) + source.text, std::move(source.launches)};
}

}  // namespace pmaptrain::gpu
