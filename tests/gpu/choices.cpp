// Which of several kernels a GPU takes: by their times where nothing speaks against it, and then the same at each
// start.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/runtime/gpu/disk_cache.h"
#include "core/runtime/gpu/executor.h"
#include "core/runtime/gpu/timed_choice.h"
#include "tests/catch.h"
#include "tests/cuda/module.h"
#include "tests/files.h"
#include "tests/gpu/programs.h"

namespace pmaptrain::test {
namespace {

const std::vector<std::string> three = {"first", "second", "third"};

// By kernel: its times, run after run; the last one goes on. A negative one cannot be taken.
using Times = std::vector<std::vector<double>>;

class Stopwatch {
 public:
  explicit Stopwatch(Times seconds) : seconds_(std::move(seconds)) {}
  std::function<double(std::size_t)> seconds_of() {
    return [this](std::size_t index) {
      const std::vector<double>& all = seconds_.at(index);
      const auto run = static_cast<std::size_t>(runs[index]++);
      order.push_back(index);
      const double seconds = all[std::min(run, all.size() - 1)];
      if (seconds < 0) fail_running("the kernel does not run");
      return seconds;
    };
  }

  std::map<std::size_t, int> runs;  // by index
  std::vector<std::size_t> order;

 private:
  Times seconds_;
};

// As a process chooses that has chosen nothing yet.
std::size_t chosen(Stopwatch& watch, const std::string& purpose = "a convolution",
                   const std::vector<std::string>& names = three) {
  return gpu::TimedChoices().fastest(purpose, names, watch.seconds_of());
}
std::size_t chosen(const Times& seconds, const std::string& purpose) {
  Stopwatch watch(seconds);
  return chosen(watch, purpose);
}

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  return files;
}

}  // namespace

TEST_CASE("the kernel with the smallest median of the times after the first run is chosen", "[gpu]") {
  const TemporaryFolder folder;
  const Variable cache("XDG_CACHE_HOME", folder.path().string());
  CHECK(chosen({{3}, {1}, {2}}, "plain") == 1);
  CHECK(chosen({{2}, {1}, {1}}, "equal") == 1);
  CHECK(chosen({{2}, {50, 1}, {3}}, "a slow first run") == 1);
  // Of five times, two may be anything.
  CHECK(chosen({{9, 4, 4, 4, 4, 4}, {9, 3, 90, 3, 90, 3}, {9, 5, 1, 1, 5, 5}}, "disturbed") == 1);

  Stopwatch in_turn(Times{{1}, {2}, {3}});
  CHECK(chosen(in_turn, "in turn") == 0);
  REQUIRE(in_turn.order.size() == three.size() * gpu::TimedChoices::runs);
  for (std::size_t i = 0; i < in_turn.order.size(); ++i) CHECK(in_turn.order[i] == i % three.size());

  Stopwatch alone(Times{{1}});
  CHECK(chosen(alone, "alone", {"only"}) == 0);
  CHECK(alone.order.empty());
}

TEST_CASE("a choice is kept for the next start, for equal purposes and kernels alone", "[gpu]") {
  const TemporaryFolder folder;
  const Variable cache("XDG_CACHE_HOME", folder.path().string());
  Stopwatch before(Times{{3}, {2}, {1}});
  CHECK(chosen(before) == 2);
  Stopwatch after(Times{{1}, {2}, {3}});
  CHECK(chosen(after) == 2);
  CHECK(after.order.empty());
  CHECK(chosen(after, "another convolution") == 0);
  CHECK(after.runs[0] == gpu::TimedChoices::runs);
  // Other candidates, also if they have the chosen one.
  Stopwatch others(Times{{1}, {2}, {3}});
  CHECK(chosen(others, "a convolution", {"fourth", "second", "third"}) == 0);
  CHECK(chosen(others, "a convolution", {"first", "secondthird"}) == 0);

  // All devices of a process share what it has found out, also where nothing can be kept.
  const Variable nowhere("XDG_CACHE_HOME", folder.write("file", "") + "/below");
  gpu::TimedChoices of_process;
  Stopwatch first(Times{{3}, {1}, {2}}), second(Times{{1}, {2}, {3}});
  CHECK(of_process.fastest("shared", three, first.seconds_of()) == 1);
  CHECK(of_process.fastest("shared", three, second.seconds_of()) == 1);
  CHECK(second.order.empty());
}

TEST_CASE("a kept choice that is damaged, or no candidate, is made again", "[gpu]") {
  const TemporaryFolder folder;
  const Variable cache("XDG_CACHE_HOME", folder.path().string());
  CHECK(chosen({{3}, {2}, {1}}, "a convolution") == 2);
  const auto files = files_in(folder.path() / "pmaptrain");
  REQUIRE(files.size() == 1);
  CHECK(files.front().extension() == ".choice");
  const std::string whole = read_text(files.front());
  for (const std::string& damaged : {std::string(), whole.substr(0, whole.size() - 1), "x" + whole.substr(1)}) {
    write_text(files.front(), damaged);
    CHECK(chosen({{3}, {1}, {2}}, "a convolution") == 1);
    CHECK(chosen({{1}, {2}, {3}}, "a convolution") == 1);
  }
  const std::string key =
      gpu::key_of_texts("a convolution") + gpu::key_of_texts("first") + gpu::key_of_texts("second", "third");
  CHECK(gpu::DiskCache("choice").find(key) == "second");
  gpu::DiskCache("choice").store(key, "none of them");
  CHECK(chosen({{1}, {2}, {3}}, "a convolution") == 0);
}

TEST_CASE("a kernel that does not run is not chosen, and what is chosen without it is not kept", "[gpu]") {
  const TemporaryFolder folder;
  const Variable cache("XDG_CACHE_HOME", folder.path().string());
  Stopwatch watch(Times{{-1}, {3}, {1, 1, 1, -1}});
  CHECK(chosen(watch) == 1);
  CHECK(watch.runs[0] == 1);
  CHECK(watch.runs[2] == 4);
  CHECK(chosen({{1}, {2}, {3}}, "a convolution") == 0);
  CHECK(chosen({{-1}, {-1}, {-1}}, "none runs") == 0);
  CHECK(files_in(folder.path() / "pmaptrain").size() == 1);
}

TEST_CASE("a launch may differ from run to run where no other GPU computes the same, and bits are not promised",
          "[gpu]") {
  const auto program = program_of(
      "mesh a=2 b=2\nbatch %x:f32[4,4]{a, b}\nbatch %y:f32[4,4]{a}\n%p = matmul %x, %x\n%q = matmul %y, %y\n"
      "return p = %p\nreturn q = %q\n");
  const auto bound = [&](int gpus, bool deterministic) {
    const gpu::Plan plan = plan_of(program, gpus, {.deterministic = deterministic});
    std::vector<bool> each;
    for (const std::size_t place : launches_of(plan, "matmul")) {
      each.push_back(gpu::request_of(plan, std::get<gpu::Launch>(plan.commands[place])).deterministic);
    }
    std::sort(each.begin(), each.end());
    each.erase(std::unique(each.begin(), each.end()), each.end());
    return each;
  };
  using Each = std::vector<bool>;
  CHECK(bound(1, false) == Each{false});
  CHECK(bound(2, false) == Each{false});        // along a
  CHECK(bound(4, false) == Each{false, true});  // along b two GPUs have the same %y
  for (const int gpus : {1, 2, 4}) CHECK(bound(gpus, true) == Each{true});
}

}  // namespace pmaptrain::test
