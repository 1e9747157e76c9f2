#include "core/runtime/gpu/environment.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/base/error.h"

namespace pmaptrain::gpu {
namespace {

std::string_view variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

[[noreturn]] void refuse(const char* name, std::string_view text, const std::string& expected, std::string help) {
  fail_usage(fmt::format("{} is {}, not '{}'", name, expected, text), std::move(help));
}

}  // namespace

std::chrono::duration<double> gpu_timeout() {
  constexpr const char* name = "PMAPTRAIN_GPU_TIMEOUT";
  const std::string text(variable(name));
  if (text.empty()) return std::chrono::minutes(10);
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  if (*end != '\0' || !std::isfinite(seconds) || seconds <= 0) {
    refuse(name, text, "a number of seconds above 0", "for example PMAPTRAIN_GPU_TIMEOUT=60");
  }
  return std::chrono::duration<double>(seconds);
}

bool uses_graphs() {
  constexpr const char* name = "PMAPTRAIN_GPU_GRAPHS";
  const std::string_view text = variable(name);
  if (text.empty()) return true;
  if (text == "off") return false;
  refuse(name, text, "off", "without it, all but the collectives of several GPUs is part of CUDA graphs");
}

}  // namespace pmaptrain::gpu
