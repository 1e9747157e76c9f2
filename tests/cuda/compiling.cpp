// How generated code is compiled and kept: by NVRTC, which needs no GPU, so all tests here need only the module.
#include <chrono>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/ops/all.h"
#include "core/ops/constant/constant.h"
#include "core/ops/elementwise/unary.h"
#include "tests/catch.h"
#include "tests/cuda/module.h"
#include "tests/files.h"
#include "tests/words.h"

namespace pmaptrain::test {
namespace {

const GpuKernel generated{{GpuGenerated{}}, 0};

const char* text_of_kernel = "";

gpu::GeneratedSource generate(const Op&, const GpuRequest&) {
  return {text_of_kernel, {{"generated", {1, 1, 1}, 256, {GpuArgument::result(0)}}}};
}

// Prepares one equation of generated code.
void compile(gpu::KernelPreparer& device, const char* text) {
  text_of_kernel = text;
  const std::vector<Type> types{{DType::f32, {8}, {}}};
  device.prepare(ops::Neg{}, {types, types, 1, {true}}, generated);
}

// As a process does that has compiled nothing yet. False without a module.
bool compile_anew(const char* text) {
  const auto device = described_device(generate);
  if (device != nullptr) compile(*device, text);
  return device != nullptr;
}

Op constant(double number) { return ops::Constant{DType::f32, {}, number, {}}; }

// A kernel for each number; that for 3 does not compile.
gpu::GeneratedSource generate_numbered(const Op& op, const GpuRequest&) {
  const double number = ops::splat_of(op).value_or(0);
  const std::string literal = number == 3 ? "wrong" : std::to_string(number);
  return {"extern \"C\" __global__ void generated(double* y) { *y = " + literal + "; }",
          {{"generated", {1, 1, 1}, 1, {GpuArgument::result(0)}}}};
}

std::vector<std::filesystem::path> kept_in(const std::filesystem::path& cache) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(cache / "pmaptrain")) files.push_back(entry.path());
  return files;
}

}  // namespace

TEST_CASE("generated kernels are compiled once and kept; what is damaged is compiled again", "[cuda][module]") {
  const TemporaryFolder folder;
  const Variable cache("XDG_CACHE_HOME", folder.path().string());
  const char* const text = "extern \"C\" __global__ void generated(float* y) { y[threadIdx.x] = 1; }";
  if (!compile_anew(text)) return;
  REQUIRE(kept_in(folder.path()).size() == 1);
  const std::filesystem::path file = kept_in(folder.path()).front();
  const std::string whole = read_text(file);
  CHECK(contains(whole,
                 "\x7f"
                 "ELF"));  // machine code

  // What is found is not compiled: time stands still for the file.
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(file, long_ago);
  compile_anew(text);
  CHECK(std::filesystem::last_write_time(file) == long_ago);

  for (const std::string& damaged : {std::string(), whole.substr(0, whole.size() - 1), "x" + whole.substr(1)}) {
    write_text(file, damaged);
    compile_anew(text);
    CHECK(read_text(file) == whole);
  }
  compile_anew("extern \"C\" __global__ void generated(float* y) { y[threadIdx.x] = 2; }");
  CHECK(kept_in(folder.path()).size() == 2);
}

TEST_CASE("what is generated for several threads is compiled in threads, each text once", "[cuda][module]") {
  const TemporaryFolder folder;
  const Variable cache("XDG_CACHE_HOME", folder.path().string());
  const auto device = described_device(generate_numbered);
  if (device == nullptr) return;
  const std::vector<Type> types{{DType::f32, {8}, {}}};
  const GpuRequest request{types, types, 1, {true}};
  const auto prepare_all = [&] {
    std::string error;
    for (double number = 0; number < 6; ++number) device->begin_preparing(constant(number), request, generated);
    for (double number = 0; number < 6; ++number) {
      try {
        device->prepare(constant(number), request, generated);
      } catch (const Error& failure) {
        error += failure.diagnostics().front().message;
      }
    }
    return error;
  };
  std::future<std::string> other = std::async(std::launch::async, prepare_all);
  for (const std::string& error : {prepare_all(), other.get()}) {
    CHECK(contains(error, "identifier \"wrong\" is undefined"));
    CHECK(error.find("identifier") == error.rfind("identifier"));
  }
  CHECK(kept_in(folder.path()).size() == 5);
}

TEST_CASE("a cache that cannot be written keeps nothing from compiling", "[cuda][module]") {
  const TemporaryFolder folder;
  const Variable cache("XDG_CACHE_HOME", folder.write("file", "no folder"));
  const auto device = described_device(generate);
  if (device == nullptr) return;
  CHECK_NOTHROW(compile(*device, "extern \"C\" __global__ void generated(float*) {}"));
}

TEST_CASE("a generated kernel that does not compile shows the compiler's message", "[cuda][module]") {
  const TemporaryFolder folder;
  const Variable cache("XDG_CACHE_HOME", folder.path().string());
  const auto device = described_device(generate);
  if (device == nullptr) return;
  CHECK_THROWS_WITH(
      compile(*device, "extern \"C\" __global__ void generated(float* y) { y = unknown; }"),
      Catch::Contains("this is a mistake of pmaptrain") && Catch::Contains("identifier \"unknown\" is undefined"));
  CHECK(!std::filesystem::exists(folder.path() / "pmaptrain"));
}

}  // namespace pmaptrain::test
