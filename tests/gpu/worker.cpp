// The threads of GPUs: how far they are, and what a failure of one means for the others and for later work.
#include "core/runtime/gpu/worker.h"

#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "tests/catch.h"
#include "tests/emulated_gpu/platform.h"

namespace pmaptrain::test {
namespace {

std::exception_ptr failure(const std::string& text) { return std::make_exception_ptr(std::runtime_error(text)); }

// What waiting for a ticket throws; empty where nothing.
std::string error_of(gpu::Progress& progress, std::int64_t ticket) {
  try {
    progress.wait(ticket);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

// An executor of nothing.
std::unique_ptr<gpu::Executor> no_entries(gpu::Device& device) {
  static const std::vector<gpu::Plan> none;
  return std::make_unique<gpu::Executor>(device, none, gpu::MemorySizes{}, gpu::MakeKernel{}, 1);
}

// A worker with no entries, which has begun; its first failure is counted.
struct Working {
  Working() { progress.wait(0); }

  std::unique_ptr<gpu::Platform> platform = make_emulated({});
  gpu::Progress progress{1};
  int failures = 0;
  gpu::Worker worker{*platform, 0, 0, {}, progress, no_entries, [this](std::int64_t ticket) {
                       if (progress.fail(ticket, std::current_exception())) ++failures;
                     }};
};

}  // namespace

TEST_CASE("a ticket is done when all workers are, and the first failure is that of all later tickets", "[gpu]") {
  gpu::Progress progress(2);
  progress.advance(0, 5);
  progress.advance(1, 3);
  CHECK(progress.done(3));
  CHECK_FALSE(progress.done(4));
  CHECK(progress.fail(3, failure("the first")));
  progress.advance(1, 5);
  CHECK(error_of(progress, 2).empty());
  CHECK(error_of(progress, 3) == "the first");
  CHECK(error_of(progress, 5) == "the first");
  // Work of an earlier ticket that another worker did not carry out any more has failed too.
  CHECK_FALSE(progress.fail(2, failure("the second")));
  CHECK(error_of(progress, 2) == "the first");
  CHECK(error_of(progress, 1).empty());
}

TEST_CASE("after a failure a worker carries out nothing more, and all that was queued is over", "[gpu]") {
  Working of;
  std::atomic<int> carried_out = 0;
  bool has_followed = false;
  of.worker.add(1, [&](gpu::Executor&) { ++carried_out; });
  of.worker.add(
      2, [](gpu::Executor&) { fail_running("a kernel has failed"); }, [&](gpu::Executor&) { has_followed = true; });
  for (std::int64_t ticket = 3; ticket < 20; ++ticket) of.worker.add(ticket, [&](gpu::Executor&) { ++carried_out; });
  CHECK_THROWS_WITH(of.progress.wait(19), Catch::Contains("a kernel has failed"));
  CHECK(of.failures == 1);
  CHECK(carried_out == 1);
  CHECK_FALSE(has_followed);
}

TEST_CASE("a worker that is to end carries out what is queued first", "[gpu]") {
  Working of;
  int carried_out = 0;
  for (std::int64_t ticket = 1; ticket <= 50; ++ticket) of.worker.add(ticket, [&](gpu::Executor&) { ++carried_out; });
  of.worker.close();
  CHECK(carried_out == 50);
  CHECK(of.progress.done(50));
}

TEST_CASE("what is to follow when the device is done does not hold up what is queued behind it", "[gpu]") {
  Working of;
  std::vector<std::string> order;
  std::promise<void> all_added;
  of.worker.add(1, [&, added = all_added.get_future().share()](gpu::Executor&) { added.wait(); });
  of.worker.add(
      2, [&](gpu::Executor&) { order.emplace_back("a value is copied"); },
      [&](gpu::Executor&) {
        CHECK_FALSE(of.progress.done(2));
        order.emplace_back("the value is there");
      });
  of.worker.add(3, [&](gpu::Executor&) { order.emplace_back("a step"); });
  all_added.set_value();
  of.progress.wait(3);
  CHECK(order == std::vector<std::string>{"a value is copied", "a step", "the value is there"});
}

}  // namespace pmaptrain::test
