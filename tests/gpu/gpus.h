// The GPUs of the cases that are tagged [device] (DEVICE_TEST_CASE): emulated ones, or with PMAPTRAIN_TEST_GPUS=cuda
// those of this machine. So each of them runs everywhere, but for those that are also tagged [cuda_only], which ask for
// CUDA itself.
//
// Cases that are also tagged [one] run on one GPU, and those tagged [several] on several; with both tags a case takes
// its numbers of GPUs from gpu_counts(). `cuda:one` and `emulated:one` leave out all numbers above 1; `:virtual` and
// `:several` leave out 1, and with `cuda:virtual` several GPUs share the first one, whatever the machine has.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/runtime/backends.h"
#include "core/runtime/gpu/device.h"
#include "tests/emulated_gpu/platform.h"
#include "tests/slice.h"

namespace pmaptrain::test {

enum class Counts : std::uint8_t { all, one, virtual_gpus, several };

struct TestGpus {
  bool cuda = false;
  Counts counts = Counts::all;
};
// As PMAPTRAIN_TEST_GPUS says; null is nothing. Throws std::invalid_argument for what it cannot be.
TestGpus read_test_gpus(const char* text);

// The examples that have begun, in a file, a line each; a line "passed" follows one that has passed. Without a name in
// no file.
class Examples {
 public:
  explicit Examples(const char* file);
  ~Examples() { ends(); }
  Examples(const Examples&) = delete;
  Examples& operator=(const Examples&) = delete;
  bool are_kept() const { return !file_.empty(); }
  // Ends the one before, then adds an example of a case, and says whether the file did not have it. The same text may
  // come several times.
  bool begins(const std::string& case_name, const std::string& example);

 private:
  void ends();

  std::string file_;
  std::set<std::string> earlier_;
  std::map<std::string, int> times_;
  bool has_begun_ = false;  // the example that is added last, and has not ended
  std::uint64_t failed_before_ = 0;
};

// Of the numbers of GPUs that a case wants, those that are run where the machine has so many.
std::vector<int> chosen_counts(const std::vector<int>& wanted, Counts counts, int there);

// Whether PMAPTRAIN_TEST_GPUS is cuda.
bool tests_use_cuda();

// Of the numbers of GPUs that a case wants, those that it runs on here. Where there are none, a warning says so.
std::vector<int> gpu_counts(const std::vector<int>& wanted);

// Runs one of a case's examples. What it throws is a failure of that example, and does not keep the others from
// running.
//
// PMAPTRAIN_TEST_EXAMPLES may name a file, to which each example adds a line when it begins, and one when it has
// passed. Those that the file has already are left out. So scripts/gpu-minutes sees which example has hung or crashed,
// and a second process runs those after it. A process whose GPU refuses everything after an error ends for the same
// purpose.
//
// PMAPTRAIN_TEST_PLANTED makes examples fail, for a rehearsal of scripts/gpu-minutes: "hangs WORDS; crashes WORDS;
// fails WORDS", each for the examples whose case and text have these words.
void run_apart(const std::string& example, const std::function<void()>& run);

// The same for one whose failures are reported by the caller: whether it is to run, and what follows an exception.
bool begins_example(const std::string& example);
void after_exception();

// All combinations on CUDA, where a step takes a hundredth of the time that it takes on emulated GPUs.
inline Slices gpu_slices() { return tests_use_cuda() ? Slices{true, slices().number} : slices(); }

// False where this machine has no GPU that CUDA reaches. A warning then says why, and the case has to end: Catch2 2 has
// no skipped cases, and ctest and scripts/gpu-minutes take such a warning for one.
bool has_cuda_gpu();

// False where the tests use CUDA and there is no GPU, likewise.
bool has_gpus();

// A test case with the tag [device], which ends at once where it has no GPUs. Its other tags follow its name.
#define DEVICE_TEST_CASE(name, tags) DEVICE_TEST_CASE_AS(INTERNAL_CATCH_UNIQUE_NAME(device_case_), name, tags)
#define DEVICE_TEST_CASE_AS(body, name, tags) \
  static void body();                         \
  TEST_CASE(name, "[device]" tags) {          \
    if (pmaptrain::test::has_gpus()) body();  \
  }                                           \
  static void body()

// As many GPUs as that; on CUDA they share the first one where the machine has fewer, or with `:virtual`.
// Emulated ones have so much memory each.
std::unique_ptr<gpu::Platform> open_gpus(int count, std::size_t memory = Emulation{}.memory);
inline constexpr std::size_t ample_memory = std::size_t{64} << 30;  // far more than any plan of a test needs

// The backend cuda has these GPUs as long as this lives.
class WithGpus {
 public:
  explicit WithGpus(std::unique_ptr<gpu::Platform> platform) : platform_(std::move(platform)) {
    set_gpu_platform(platform_.get());
  }
  explicit WithGpus(int count) : WithGpus(open_gpus(count)) {}
  ~WithGpus() { set_gpu_platform(nullptr); }
  WithGpus(const WithGpus&) = delete;
  WithGpus& operator=(const WithGpus&) = delete;

  const gpu::Platform& platform() const { return *platform_; }

 private:
  std::unique_ptr<gpu::Platform> platform_;
};

}  // namespace pmaptrain::test
