#include "core/runtime/gpu/load_platform.h"

#include <string>

#include "core/base/error.h"
#include "core/runtime/backends.h"
#include "tests/catch.h"
#include "tests/cuda/module.h"
#include "tests/files.h"
#include "tests/words.h"

namespace pmaptrain::test {
namespace {

// The error of opening this module, which is always a missing resource.
Diagnostic refusal_of(const std::string& module) {
  const Variable named("PMAPTRAIN_CUDA_MODULE", module);
  try {
    gpu::load_platform();
  } catch (const Error& error) {
    CHECK(error.status() == ExitStatus::resource);
    return error.diagnostics().front();
  }
  return {};
}

}  // namespace

TEST_CASE("without a module the places where it was looked for are named, and how to build it", "[gpu][module]") {
  const Diagnostic why = refusal_of("/nowhere/libpmaptrain_cuda.so");
  CHECK(why.message == "libpmaptrain_cuda.so was not found in /nowhere");
  CHECK(contains(why.help, "scripts/bootstrap --cuda && scripts/build cuda"));
}

TEST_CASE("the module is looked for beside the program, above it and where packages install it", "[gpu][module]") {
  const Variable unnamed("PMAPTRAIN_CUDA_MODULE", "");
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::vector<std::filesystem::path> expected = {folder / "libpmaptrain_cuda.so",
                                                       folder.parent_path() / "libpmaptrain_cuda.so",
                                                       folder.parent_path() / "lib/pmaptrain/libpmaptrain_cuda.so"};
  CHECK(gpu::module_search_paths() == expected);
}

TEST_CASE("a module of another version is refused before anything of it is used", "[gpu][module]") {
  const Diagnostic why = refusal_of(beside_the_tests("libother_version.so"));
  CHECK(contains(why.message, "belongs to another version of pmaptrain: it has interface " +
                                  std::to_string(gpu::module_abi + 1) + ", the program " +
                                  std::to_string(gpu::module_abi)));
  CHECK(contains(why.help, "build both together"));
}

TEST_CASE("a module that lacks a library says which, and what fetches it", "[gpu][module]") {
  const std::string module = beside_the_tests("liblacks_library.so");
  const Diagnostic why = refusal_of(module);
  CHECK(why.message == "liblibrary_that_is_gone.so was not found, which " + module + " needs");
  CHECK(contains(why.help, "scripts/bootstrap --cuda"));
}

TEST_CASE("a file that is no module is refused", "[gpu][module]") {
  const TemporaryFolder folder;
  CHECK(contains(refusal_of(folder.write("text.so", "no library")).message, "the module for GPUs does not load: "));
  CHECK(contains(refusal_of(beside_the_tests("libwrong_clock.so")).message, "is no module of pmaptrain"));
}

TEST_CASE("the module lists the GPUs, or says why there are none", "[gpu][module]") {
  const std::string module = cuda_module();
  if (module.empty()) return;
  const Variable named("PMAPTRAIN_CUDA_MODULE", module);
  const Gpus gpus = find_gpus();
  CHECK(gpus.all.empty() != gpus.none_because.empty());
  for (const gpu::Properties& gpu : gpus.all) CHECK((!gpu.name.empty() && gpu.memory > 0));
  if (!std::filesystem::exists("/dev/nvidiactl")) {
    CHECK(gpus.none_because == "there is no NVIDIA driver");
    CHECK(contains(gpus.help, "install the driver"));
  }
}

}  // namespace pmaptrain::test
