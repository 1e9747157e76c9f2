#include "tests/gpu/gpus.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string_view>

#include "core/runtime/gpu/generate.h"
#include "core/runtime/gpu/load_platform.h"
#include "tests/catch.h"
#include "tests/emulated_gpu/platform.h"

namespace pmaptrain::test {
namespace {

const Gpus& gpus_here() {
  static const Gpus gpus = find_gpus();
  return gpus;
}

TestGpus test_gpus() { return read_test_gpus(std::getenv("PMAPTRAIN_TEST_GPUS")); }

}  // namespace

TestGpus read_test_gpus(const char* text) {
  const std::string_view all = text == nullptr || *text == '\0' ? "emulated" : text;
  const std::size_t colon = all.find(':');
  const std::string_view kind = all.substr(0, colon);
  const std::string_view counts = colon == all.npos ? "" : all.substr(colon);
  if (kind == "cuda" || kind == "emulated") {
    const bool cuda = kind == "cuda";
    if (counts.empty()) return {cuda, Counts::all};
    if (counts == ":one") return {cuda, Counts::one};
    if (counts == ":virtual") return {cuda, Counts::virtual_gpus};
    if (counts == ":several") return {cuda, Counts::several};
  }
  throw std::invalid_argument(
      "PMAPTRAIN_TEST_GPUS is emulated or cuda, with :one, :virtual or :several behind it, not '" + std::string(all) +
      "'");
}

std::vector<int> chosen_counts(const std::vector<int>& wanted, Counts counts, int there) {
  std::vector<int> chosen;
  std::copy_if(wanted.begin(), wanted.end(), std::back_inserter(chosen), [&](int count) {
    switch (counts) {
      case Counts::all: return true;
      case Counts::one: return count == 1;
      case Counts::virtual_gpus: return count > 1;
      case Counts::several: return count > 1 && count <= there;
    }
    return false;
  });
  return chosen;
}

bool tests_use_cuda() { return test_gpus().cuda; }

std::vector<int> gpu_counts(const std::vector<int>& wanted) {
  const int there = tests_use_cuda() ? static_cast<int>(gpus_here().all.size()) : std::numeric_limits<int>::max();
  std::vector<int> chosen = chosen_counts(wanted, test_gpus().counts, there);
  if (chosen.empty()) WARN("skipped: none of the numbers of GPUs that this case takes is to be run");
  return chosen;
}

void run_apart(const std::string& example, const std::function<void()>& run) {
  try {
    run();
  } catch (const std::exception& error) {
    FAIL_CHECK(example << ": " << error.what());
  }
}

bool has_cuda_gpu() {
  if (!gpus_here().all.empty()) return true;
  WARN("skipped: there is no GPU to test: " << gpus_here().none_because);
  return false;
}

bool has_gpus() { return !tests_use_cuda() || has_cuda_gpu(); }

std::unique_ptr<gpu::Platform> open_gpus(int count) {
  if (!tests_use_cuda()) return make_emulated({.devices = count, .seed = static_cast<unsigned>(count)});
  const bool are_there =
      count == 1 || (test_gpus().counts != Counts::virtual_gpus && count <= static_cast<int>(gpus_here().all.size()));
  return gpu::load_platform({gpu::generate_source, are_there ? 0 : count, {}});
}

}  // namespace pmaptrain::test

TEST_CASE("PMAPTRAIN_TEST_GPUS says which GPUs the tests take, and how many", "[gpu]") {
  using pmaptrain::test::chosen_counts, pmaptrain::test::Counts, pmaptrain::test::read_test_gpus;
  CHECK(!read_test_gpus(nullptr).cuda);
  CHECK(!read_test_gpus("").cuda);
  CHECK(!read_test_gpus("emulated").cuda);
  CHECK(read_test_gpus("cuda").cuda);
  CHECK(read_test_gpus("cuda").counts == Counts::all);
  CHECK(read_test_gpus("emulated:one").counts == Counts::one);
  CHECK(read_test_gpus("cuda:virtual").counts == Counts::virtual_gpus);
  CHECK(read_test_gpus("cuda:several").counts == Counts::several);
  for (const char* const wrong : {"CUDA", "cuda:", "cuda:two", ":one"}) CHECK_THROWS(read_test_gpus(wrong));

  using Numbers = std::vector<int>;
  const Numbers wanted{1, 2, 4, 8};
  CHECK(chosen_counts(wanted, Counts::all, 1) == wanted);
  CHECK(chosen_counts(wanted, Counts::one, 8) == Numbers{1});
  CHECK(chosen_counts(wanted, Counts::virtual_gpus, 1) == Numbers{2, 4, 8});
  CHECK(chosen_counts(wanted, Counts::several, 4) == Numbers{2, 4});
  CHECK(chosen_counts({1, 8}, Counts::several, 4).empty());
}
