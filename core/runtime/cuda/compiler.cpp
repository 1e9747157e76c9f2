#include "core/runtime/cuda/compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/runtime/cuda/handles.h"

namespace pmaptrain::cuda {
namespace {

// NVRTC's options besides the architecture. nvcc compiles the kernels of core/ops with equivalent ones.
constexpr const char* fixed_options[] = {"--std=c++20", "-fmad=false", "--device-as-default-execution-space"};

struct Target {
  std::string option;
  bool machine_code = true;
};

Target target_for(int compute_capability) {
  int count = 0;
  check(nvrtcGetNumSupportedArchs(&count), "asking NVRTC for its architectures");
  std::vector<int> known(static_cast<std::size_t>(count));
  check(nvrtcGetSupportedArchs(known.data()), "asking NVRTC for its architectures");
  int newest = 0;
  for (const int each : known) {
    if (each <= compute_capability) newest = std::max(newest, each);
  }
  if (newest == compute_capability) return {fmt::format("--gpu-architecture=sm_{}", newest)};
  if (newest != 0) return {fmt::format("--gpu-architecture=compute_{}", newest), false};
  fail_resource(fmt::format("GPU: NVRTC compiles for compute capability {}.{} and later, this GPU has {}.{}",
                            known.front() / 10, known.front() % 10, compute_capability / 10, compute_capability % 10),
                "use a newer GPU, or mesh.backend: cpu");
}

std::string version_text() {
  int major = 0, minor = 0;
  check(nvrtcVersion(&major, &minor), "asking NVRTC for its version");
  return fmt::format("NVRTC {}.{}", major, minor);
}

nvrtcResult destroy(nvrtcProgram program) { return nvrtcDestroyProgram(&program); }
using Program = Handle<nvrtcProgram, destroy>;

template <class Size, class Content>
std::string read(const Program& program, Size size_of_it, Content content_of_it) {
  std::size_t bytes = 0;
  check(size_of_it(program.get(), &bytes), "reading what NVRTC made");
  std::string content(bytes, '\0');
  check(content_of_it(program.get(), content.data()), "reading what NVRTC made");
  return content;
}

std::string compile_now(const std::string& text, const std::vector<std::string>& options, bool machine_code) {
  std::vector<const char*> arguments;
  arguments.reserve(options.size());
  for (const std::string& option : options) arguments.push_back(option.c_str());
  Program program;
  check(nvrtcCreateProgram(program.create(), text.c_str(), "generated.cu", 0, nullptr, nullptr), "starting NVRTC");
  const nvrtcResult status = nvrtcCompileProgram(program.get(), static_cast<int>(arguments.size()), arguments.data());
  if (status == NVRTC_ERROR_COMPILATION) {
    fail_running("GPU: a generated kernel does not compile; this is a mistake of pmaptrain:\n" +
                 read(program, nvrtcGetProgramLogSize, nvrtcGetProgramLog));
  }
  check(status, "compiling a generated kernel");
  return machine_code ? read(program, nvrtcGetCUBINSize, nvrtcGetCUBIN) : read(program, nvrtcGetPTXSize, nvrtcGetPTX);
}

}  // namespace

Compiler::Compiler() : free_slots_(std::max(1U, std::thread::hardware_concurrency())) {}

std::shared_future<std::string> Compiler::code_of(const std::string& text, int compute_capability) {
  const std::lock_guard lock(mutex_);
  std::shared_future<std::string>& code = known_[{compute_capability, text}];
  // If no thread can be started, the first caller that needs the code compiles it.
  constexpr auto in_a_thread_if_possible = std::launch::async | std::launch::deferred;
  if (!code.valid()) {
    code = std::async(in_a_thread_if_possible, [=, this] { return compile(text, compute_capability); }).share();
  }
  return code;
}

std::string Compiler::compile(const std::string& text, int compute_capability) {
  const Target target = target_for(compute_capability);
  std::vector<std::string> options{target.option};
  options.insert(options.end(), std::begin(fixed_options), std::end(fixed_options));
  const std::string key = gpu::key_of_texts(version_text(), join(options, " "), text);
  if (std::optional<std::string> known = cache_.find(key)) return *std::move(known);
  free_slots_.acquire();
  const std::shared_ptr<void> at_the_end(nullptr, [this](void*) { free_slots_.release(); });
  std::string code = compile_now(text, options, target.machine_code);
  cache_.store(key, code);
  return code;
}

}  // namespace pmaptrain::cuda
