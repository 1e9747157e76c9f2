// How a GPU's thread queues steps and batches, and the times of what a step consists of.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "tests/catch.h"
#include "tests/cuda/module.h"
#include "tests/gpu/gpus.h"
#include "tests/gpu/programs.h"
#include "tests/runtime/programs.h"
#include "tests/words.h"

namespace pmaptrain::test {
namespace {

std::shared_ptr<const Program> summing() {
  return program_of("mesh a=4\nbatch %x:f32[8]{a}\n%y = exp %x\n%s = psum[axes={a}] %y\nreturn s = %s\n");
}

std::shared_ptr<const Program> looping(int iterations) {
  const std::string n = std::to_string(iterations), rows = std::to_string(2 * iterations);
  return program_of("mesh a=1\nbatch %x:f32[" + rows + ",3]{a}\nbatch %c:f32[3]{a}\n%d = exp %c\n" +
                    "%g = loop[iterations=" + n + ", consts=0, carries=1] %d, %x " +
                    "(%acc:f32[3]{a}, %two:f32[2,3]{a}) {\n  %r = reduce_sum[dims=[0]] %two\n" +
                    "  %n = add %acc, %r\n  yield %n\n}\n%s = psum[axes={a}] %g\n%e = exp %s\nreturn s = %e\n");
}

// What a step on this value alone sums up to.
std::vector<float> sums_of(Module& module, float value, std::int64_t steps = 1) {
  const std::span<std::byte> batch = module.batch(0, 0, module.program(0).inputs.front().name);
  std::fill_n(reinterpret_cast<float*>(batch.data()), 4 * 8, value);
  std::vector<float> sums(8);
  module.submit(0, 0, steps);
  module.wait(module.read(module.output(0, "s"), {0, 0}, std::as_writable_bytes(std::span(sums))));
  return sums;
}

std::ptrdiff_t count_of(const std::vector<std::string>& queued, const std::string& call) {
  return std::count(queued.begin(), queued.end(), call);
}

}  // namespace

TEST_CASE("short steps on one batch are launched sixteen at a time, and the rest in powers of two", "[gpu]") {
  EmulatedGpus gpus;
  const auto module = gpus.load({{{"test", summing(), 1, false, true}}});
  CHECK(gpus.calls.graphs == 5);
  module->wait(module->submit(0, 0, 35));
  CHECK(count_of(gpus.calls.queued.take(), "replay") == 2 + 2);
  CHECK(gpus.calls.graphs == 5);
}

TEST_CASE("groups of steps that no entry asks for are recorded when they are submitted", "[gpu]") {
  EmulatedGpus gpus;
  const auto module = gpus.load(summing());  // as the evaluation of a single batch
  CHECK(gpus.calls.graphs == 1);
  module->wait(module->submit(0, 0, 3));
  CHECK(gpus.calls.graphs == 2);
}

TEST_CASE("two modules take steps in turn on the same GPUs", "[gpu]") {
  EmulatedGpus gpus({.devices = 2});
  const std::vector<float> of_zeros(8, 4);
  auto one = gpus.load(summing());
  CHECK(sums_of(*one, 0) == of_zeros);
  const auto two = gpus.load(summing());
  for (int i = 0; i < 3; ++i) {
    CHECK(sums_of(*one, 0) == of_zeros);
    CHECK(sums_of(*two, 1).front() == Approx(4 * std::exp(1.0F)));
  }
  one.reset();
  CHECK(sums_of(*two, 0) == of_zeros);
  CHECK(take_misuse(*gpus.platform) == "");
}

TEST_CASE("a GPU is at most four launches behind its thread, whatever one ticket has, and in loops some more",
          "[gpu]") {
  const auto most_behind = [](const std::shared_ptr<const Program>& program, std::int64_t steps) {
    EmulatedGpus gpus;
    const auto module = gpus.load(program);
    module->wait(module->submit(0, 0, steps));
    return gpus.calls.most_in_flight.load();
  };
  CHECK(most_behind(summing(), 640) == 4);
  CHECK(most_behind(summing(), 32) == 2);
  const int in_a_loop = most_behind(looping(500), 2);
  CHECK(in_a_loop > 4);
  CHECK(in_a_loop <= 5 * 64);
}

TEST_CASE("a GPU is few calls behind its thread where a graph is many calls, and a step more than a queue has places",
          "[gpu]") {
  // 700 equations and a sum over the GPUs in the middle of them.
  std::string text = "mesh a=4\nbatch %0:f32[8]{a}\n";
  const auto negate = [&](int from, int to) {
    for (int i = from; i < to; ++i) text += fmt::format("%{} = neg %{}\n", i + 1, i);
  };
  negate(0, 350);
  text += "%351 = psum[axes={a}] %350\n";
  negate(351, 701);
  const auto program = program_of(text + "return s = %701\n");
  for (const int count : {1, 2}) {
    EmulatedGpus gpus({.devices = count, .graphs = false});
    const auto module = gpus.load(program);
    CHECK(sums_of(*module, 1, 3) == std::vector<float>(8, 4));
    StepTrace trace;
    module->wait(module->submit_traced(0, 0, {}, trace));
    CHECK(gpus.calls.most_in_flight > 64);
    CHECK(gpus.calls.most_in_flight <= 5 * 64);
  }
}

TEST_CASE("all graphs that groups and steps by themselves will need are recorded when a program is loaded", "[gpu]") {
  EmulatedGpus gpus;
  const auto module = gpus.load({{{"test", summing(), 3, false, true}}});
  REQUIRE(module->slots(0) == 48);
  constexpr int graphs = 48 + 24 + 12 + 6 + 3;
  CHECK(gpus.calls.graphs == graphs);
  module->wait(module->submit_each(0, 1, 7));  // the slots 1; 2 and 3; 4 to 7
  for (int slot = 0; slot < 48; ++slot) {
    module->submit(0, slot);
    module->submit_each(0, slot, std::min(48 - slot, 1 + slot % 16));
  }
  // The batches of a group are copied when all steps that read its slots before are done, which the emulation checks:
  // the steps on its last slots were submitted after those on its first ones.
  Ticket last;
  for (int round = 0; round < 20; ++round) {
    module->submit_each(0, 0, 4);
    module->submit_each(0, 4, 12);
    last = module->submit_each(0, 0, 16);
  }
  CHECK_NOTHROW(module->wait(last));
  CHECK(gpus.calls.graphs == graphs);
}

TEST_CASE("the graphs of a loop do not grow with its iterations", "[gpu]") {
  const auto launched = [](int iterations) {
    EmulatedGpus gpus;
    const auto module = gpus.load(looping(iterations));
    module->wait(module->submit(0, 0));
    gpus.calls.queued.take();
    module->wait(module->submit(0, 0));
    const std::vector<std::string> queued = gpus.calls.queued.take();
    return std::vector<std::ptrdiff_t>{gpus.calls.graphs, count_of(queued, "replay"),
                                       count_of(queued, "copy on compute")};
  };
  CHECK(launched(10) == std::vector<std::ptrdiff_t>{1, 1, 0});
  // Steps of 100 iterations do not go together. What is before the loop, its body, and what is after it; in each
  // iteration its rows are copied.
  CHECK(launched(100) == std::vector<std::ptrdiff_t>{3, 1 + 100 + 1, 100});
  CHECK(launched(500) == std::vector<std::ptrdiff_t>{3, 1 + 500 + 1, 500});
}

TEST_CASE("a batch is copied to a GPU as soon as the steps that read the one before in its slot are done", "[gpu]") {
  EmulatedGpus gpus;
  const auto module = gpus.load(summing(), 2);
  for (const int slot : {0, 1}) module->wait(module->submit(0, slot));
  gpus.calls.queued.take();
  module->wait(module->submit(0, 0));
  // Nothing that the stream compute does now comes before the copy: a step on the other slot may run meanwhile.
  CHECK(gpus.calls.queued.take() ==
        std::vector<std::string>{"follow on copy", "copy on copy", "order copy before compute", "replay"});
}

DEVICE_TEST_CASE("values are read as they are between two steps, more of them than are on their way at a time",
                 "[gpu]") {
  const auto platform = open_gpus(1);
  const auto counting = program_of("mesh a=1\nstate %n:i64[]{}\n%m = add %n, %n\nupdate %n = %m\nreturn m = %m\n");
  const auto module = load_on(*platform, 1, {{{"test", counting, 1}}}, {}, make_gpu_kernel);
  const std::int64_t one = 1;
  const Handle state = module->input("n"), result = module->output(0, "m");
  module->write(state, {every_device, 0}, std::as_bytes(std::span(&one, 1)));
  constexpr std::size_t steps = 40;
  std::vector<std::int64_t> states(steps), results(steps);
  Ticket last;
  for (std::size_t i = 0; i < steps; ++i) {
    last = module->read(state, {0, 0}, std::as_writable_bytes(std::span(&states[i], 1)));
    module->submit(0, 0);
    last = module->read(result, {0, 0}, std::as_writable_bytes(std::span(&results[i], 1)));
  }
  module->wait(last);
  for (std::size_t i = 0; i < steps; ++i) {
    CHECK(states[i] == std::int64_t{1} << i);
    CHECK(results[i] == std::int64_t{2} << i);
  }
}

TEST_CASE("the emulation finds each wait that the executor forgets", "[gpu]") {
  const auto said_without = [](const std::string& forgotten) {
    EmulatedGpus gpus({.devices = 2, .patience = std::chrono::seconds(1)});
    gpus.calls.forgotten = forgotten;
    return message_of_error([&] {
      const auto module = gpus.load(summing());
      for (int step = 0; step < 3; ++step) module->submit(0, 0);
      module->wait(module->submit(0, 0));
    });
  };
  CHECK(said_without("") == "");
  CHECK(contains(said_without("order compute before communicate"), "is captured before order() has begun"));
  CHECK(contains(said_without("order communicate before compute"), "is not joined to compute"));
  // A step reads a batch that is not there yet; a batch is replaced that a step still reads.
  for (const std::string call : {"order copy before compute", "follow on copy"}) {
    CHECK(contains(said_without(call), "order"));
  }
  // After a load the GPUs do not meet.
  CHECK(contains(said_without("meet after recording"), "no order on the host between "));
}

// What is recorded after the load, and what is wrong with it.
struct Late {
  std::string error;
  int graphs = 0, barriers = 0;  // of two GPUs
  std::chrono::steady_clock::duration passed{};
};
Late recorded_late(const std::string& forgotten, int graphs_that_work, const std::function<void(Module&)>& submit) {
  EmulatedGpus gpus({.devices = 2, .patience = std::chrono::seconds(10)});
  const auto module = gpus.load(summing(), 2);
  CHECK(gpus.calls.graphs == 2 * 2);
  CHECK(gpus.calls.barriers == 2);
  for (int step = 0; step < 3; ++step) module->submit(0, step % 2);
  module->wait(module->submit(0, 0));
  gpus.calls.graphs = gpus.calls.barriers = 0;
  gpus.calls.forgotten = forgotten;
  gpus.calls.graphs_that_work = graphs_that_work;
  const auto begin = std::chrono::steady_clock::now();
  const std::string error = message_of_error([&] {
    for (int step = 0; step < 3; ++step) module->submit(0, step % 2);
    submit(*module);
    module->wait(module->submit(0, 1));
  });
  return {error, gpus.calls.graphs, gpus.calls.barriers, std::chrono::steady_clock::now() - begin};
}

TEST_CASE("what is recorded while GPUs run lies between two barriers of all of them", "[gpu]") {
  StepTrace trace;
  const std::function<void(Module&)> two_steps = [](Module&module) { module.submit(0, 1, 2); },
                                     traced = [&](Module&module) { module.submit_traced(0, 1, {}, trace); },
                                     foreseen = [](Module&module) { module.submit(0, 1); };
  for (const auto& submit : {two_steps, traced}) {
    const Late late = recorded_late("", -1, submit);
    CHECK(late.error == "");
    CHECK(late.graphs == 2);
    CHECK(late.barriers == 2 * 2);
    for (const std::string forgotten : {"meet before recording", "meet after recording"}) {
      const std::string said = recorded_late(forgotten, -1, submit).error;
      for (const char* const part :
           {"no order on the host between ", "capture() of device ", "all_gather of 256 bytes "})
        CHECK(contains(said, part));
    }
  }
  CHECK(recorded_late("meet before recording", -1, foreseen).graphs == 0);
}

TEST_CASE("a GPU that cannot record leaves no other one in a barrier", "[gpu]") {
  const std::string planted = "planted: a graph cannot be made";
  for (const int graphs : {0, 1}) {
    const Late late = recorded_late("", graphs, [](Module& module) { module.submit(0, 1, 2); });
    CHECK(late.error == planted);
    CHECK(late.passed < std::chrono::seconds(5));
  }
  // Of the first steps: the other GPU waits at the end of the load.
  EmulatedGpus gpus({.devices = 2});
  gpus.calls.graphs_that_work = 3;
  const auto begin = std::chrono::steady_clock::now();
  CHECK(message_of_error([&] { gpus.load(summing(), 2); }) == planted);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
}

TEST_CASE("the GPU that has pinned the batches is closed when all others are", "[gpu]") {
  for (int round = 0; round < 5; ++round) {
    EmulatedGpus gpus({.devices = 4});
    {
      const auto module = gpus.load(summing(), 2);
      for (int step = 0; step < 8; ++step) module->submit(0, step % 2);
    }
    const std::vector<int> closed = gpus.calls.closed.take();
    REQUIRE(closed.size() == 4);
    CHECK(closed.back() == 0);
  }
}

TEST_CASE("no GPU ends while others run a collective without it, or fail", "[gpu]") {
  const auto program =
      program_of("mesh a=2 b=2\nbatch %x:f32[8]{a, b}\n%y = exp %x\n%s = psum[axes={b}] %y\nreturn s = %s\n");
  for (const int slow : {0, 3}) {
    for (const bool fails : {false, true}) {
      INFO("GPU " << slow << " is slow, and fails " << fails);
      EmulatedGpus gpus({.devices = 4});
      auto module = gpus.load(program);
      gpus.calls.before_replay = [&](int device) {
        if (device == slow) std::this_thread::sleep_for(std::chrono::milliseconds(50));
        if (device == slow && fails) fail_running("planted: a graph does not run");
      };
      module->submit(0, 0);
      module.reset();
      CHECK(take_misuse(*gpus.platform) == "");
    }
  }
}

TEST_CASE("after the failure of one of several GPUs the devices stay as they are, and take no more work", "[gpu]") {
  static auto& gpus = *new EmulatedGpus({.devices = 4});  // the devices stay
  const Variable timeout("PMAPTRAIN_GPU_TIMEOUT", "0.5");
  std::promise<void> test_ends;
  auto module = gpus.load(summing());
  module->wait(module->submit(0, 0));
  // GPU 0 fails, and GPU 1 is held in a call that nothing ends, as NCCL holds who waits for a rank that is gone.
  static std::promise<void> is_held;
  gpus.calls.before_replay = [held = test_ends.get_future().share()](int device) {
    if (device == 1) {
      is_held.set_value();
      held.wait();
    } else if (device == 0) {
      is_held.get_future().wait();
      fail_running("planted: a GPU fails");
    }
  };
  CHECK_THROWS_WITH(module->wait(module->submit(0, 0)), Catch::Contains("planted: a GPU fails"));
  module.reset();
  CHECK(gpus.calls.closed.take().empty());
  CHECK(gpus.platform->given_up() == "planted: a GPU fails");
  CHECK(refusal([&] { gpus.load(summing()); }, ExitStatus::failed) ==
        "the GPUs of this process take no more work, since one has failed: planted: a GPU fails | start the program "
        "again");
  test_ends.set_value();
}

TEST_CASE("a GPU whose thread does not come back from a call fails its module, and another one beside it", "[gpu]") {
  static auto& gpus = *new EmulatedGpus({.devices = 2});  // the devices stay
  const Variable timeout("PMAPTRAIN_GPU_TIMEOUT", "0.5");
  std::promise<void> test_ends;
  auto stuck = gpus.load(summing()), beside = gpus.load(summing());
  gpus.calls.before_replay = [held = test_ends.get_future().share()](int device) {
    if (device != 1) return;
    gpus.calls.late_rank = 1;
    held.wait();
  };
  const Ticket ticket = stuck->submit(0, 0);
  CHECK(refusal([&] { stuck->wait(ticket); }, ExitStatus::failed) ==
        "planted: a call is late | another rank did not come to it; PMAPTRAIN_GPU_TIMEOUT sets the seconds");
  stuck.reset();
  beside.reset();
  CHECK(gpus.calls.closed.take().empty());
  CHECK(gpus.platform->given_up() == "planted: a call is late");
  test_ends.set_value();
}

TEST_CASE("GPUs that fail before they are connected, or alone, are closed, and work again", "[gpu]") {
  for (const int count : {1, 4}) {
    EmulatedGpus gpus({.devices = count});
    (count == 1 ? gpus.calls.graphs_that_work : gpus.calls.kernels_that_work) = count == 1 ? 0 : 1;
    CHECK_THROWS_AS(gpus.load(summing()), Error);
    CHECK(static_cast<int>(gpus.calls.closed.take().size()) == count);
    CHECK_FALSE(gpus.platform->given_up());
    gpus.calls.graphs_that_work = gpus.calls.kernels_that_work = -1;
    const auto again = gpus.load(summing());
    CHECK_NOTHROW(again->wait(again->submit(0, 0)));
  }
}

DEVICE_TEST_CASE("a step is profiled and traced by the GPU's own times", "[gpu]") {
  const auto platform = open_gpus(2);
  const auto module = load_on(*platform, 2, {{{"test", summing(), 1}}}, {}, make_gpu_kernel);
  const Profile profile = module->profile(0, 0, 2);
  CHECK(profile.seconds.size() == module->instructions(0).size());
  CHECK(profile.wall_seconds > 0);
  for (const double seconds : profile.seconds) CHECK((seconds >= 0 && seconds <= profile.wall_seconds));

  StepTrace trace;
  module->wait(module->submit_traced(0, 0, {}, trace));
  REQUIRE(trace.workers.size() == 2);
  for (const std::vector<WorkSpan>& spans : trace.workers) {
    std::vector<WorkKind> kinds;
    for (const WorkSpan& span : spans) {
      kinds.push_back(span.kind);
      CHECK(span.begin <= span.end);
      CHECK((trace.begin <= span.begin && span.end <= trace.end));
    }
    // exp, and the sum within the GPU; what the GPUs gather, and the sum of that.
    CHECK(kinds == std::vector{WorkKind::task, WorkKind::instruction, WorkKind::instruction, WorkKind::collective,
                               WorkKind::collective, WorkKind::wait});
    CHECK(spans[3].begin >= spans[2].begin);
    CHECK(spans[5].end >= spans[4].end);
  }
}

}  // namespace pmaptrain::test
