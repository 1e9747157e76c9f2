#include "core/runtime/cuda/compiler.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
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

// The cache of compiled code: a file for each key. Files are replaced atomically and have checksums; damaged files are
// ignored. If the cache cannot be read or written, kernels are compiled again.
std::filesystem::path cache_folder() {
  const auto folder_in = [](const char* variable) {
    const char* const value = std::getenv(variable);
    const std::filesystem::path path = value == nullptr ? "" : value;
    // The XDG standard says that relative paths are ignored.
    return path.is_absolute() ? path : std::filesystem::path();
  };
  if (const auto cache = folder_in("XDG_CACHE_HOME"); !cache.empty()) return cache / "pmaptrain";
  if (const auto home = folder_in("HOME"); !home.empty()) return home / ".cache" / "pmaptrain";
  return {};
}

std::string checksum(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::optional<std::string> find_code(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(stream), {}};
  const std::size_t head = 32;
  if (content.size() <= head || checksum(std::string_view(content).substr(head)) != content.substr(0, head)) {
    return std::nullopt;
  }
  return content.substr(head);
}

void store_code(const std::filesystem::path& path, std::string_view code) noexcept try {
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  // Another thread or process may write the same file.
  static std::atomic<int> count = 0;
  const auto temporary = path.parent_path() / fmt::format(".{}.{}-{}", path.stem().string(), getpid(), ++count);
  std::ofstream stream(temporary, std::ios::binary);
  stream << checksum(code) << code;
  stream.close();
  if (stream) std::filesystem::rename(temporary, path, ignored);
  if (!stream || ignored) std::filesystem::remove(temporary, ignored);
} catch (const std::exception&) {
  return;  // a missing entry is compiled again next time
}

}  // namespace

Compiler::Compiler() : cache_(cache_folder()), free_slots_(std::max(1U, std::thread::hardware_concurrency())) {}

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
  std::string all;
  for (const std::string& part : {version_text(), join(options, " "), text}) {
    all += fmt::format("{}:{}", part.size(), part);
  }
  const std::filesystem::path kept = cache_ / (checksum(all) + ".kernel");
  if (!cache_.empty()) {
    if (std::optional<std::string> known = find_code(kept)) return *std::move(known);
  }
  free_slots_.acquire();
  const std::shared_ptr<void> at_the_end(nullptr, [this](void*) { free_slots_.release(); });
  std::string code = compile_now(text, options, target.machine_code);
  if (!cache_.empty()) store_code(kept, code);
  return code;
}

}  // namespace pmaptrain::cuda
