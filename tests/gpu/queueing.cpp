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
#include "core/runtime/gpu/module.h"
#include "tests/catch.h"
#include "tests/cuda/module.h"
#include "tests/emulated_gpu/platform.h"
#include "tests/gpu/counted.h"
#include "tests/gpu/gpus.h"
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

}  // namespace

TEST_CASE("short steps on one batch are launched sixteen at a time, and the rest in powers of two", "[gpu]") {
  CallCounts counts;
  const auto platform = make_counted(make_emulated({}), counts);
  gpu::GpuModule gpus({{{"test", summing(), 1, false, true}}}, *platform, 1, {1, {}, by_reference});
  Module& module = gpus;
  CHECK(counts.graphs == 5);
  module.wait(module.submit(0, 0, 35));
  const std::vector<std::string> queued = counts.take_queued();
  CHECK(std::count(queued.begin(), queued.end(), "replay") == 2 + 2);
  CHECK(counts.graphs == 5);
}

TEST_CASE("groups of steps that no entry asks for are recorded when they are submitted", "[gpu]") {
  CallCounts counts;
  const auto platform = make_counted(make_emulated({}), counts);
  // As the evaluation of a single batch.
  gpu::GpuModule gpus({{{"test", summing(), 1}}}, *platform, 1, {1, {}, by_reference});
  Module& module = gpus;
  CHECK(counts.graphs == 1);
  module.wait(module.submit(0, 0, 3));
  CHECK(counts.graphs == 2);
}

TEST_CASE("two modules take steps in turn on the same GPUs", "[gpu]") {
  const auto platform = make_emulated({.devices = 2});
  const auto load = [&] {
    return std::make_unique<gpu::GpuModule>(Source{{{"test", summing(), 1}}}, *platform, 2,
                                            gpu::GpuOptions{2, {}, by_reference});
  };
  const auto step = [](Module& module, float value) {
    const std::span<std::byte> batch = module.batch(0, 0, "x");
    std::fill_n(reinterpret_cast<float*>(batch.data()), 4 * 8, value);
    std::vector<float> sums(8);
    module.submit(0, 0);
    module.wait(module.read(module.output(0, "s"), {0, 0}, std::as_writable_bytes(std::span(sums))));
    return sums;
  };
  const std::vector<float> of_zeros(8, 4);
  auto one = load();
  CHECK(step(*one, 0) == of_zeros);
  const auto two = load();
  for (int i = 0; i < 3; ++i) {
    CHECK(step(*one, 0) == of_zeros);
    CHECK(step(*two, 1).front() == Approx(4 * std::exp(1.0F)));
  }
  one.reset();
  CHECK(step(*two, 0) == of_zeros);
  CHECK(take_misuse(*platform) == "");
}

TEST_CASE("a module that is loaded while another one may run collectives is refused by the emulation", "[gpu]") {
  CallCounts counts;
  auto emulated = make_emulated({.devices = 2});
  const gpu::Platform& of_both = *emulated;
  const auto platform = make_counted(std::move(emulated), counts);
  gpu::GpuModule gpus({{{"test", summing(), 1}}}, *platform, 2, {2, {}, by_reference});
  Module& module = gpus;
  module.wait(module.submit(0, 0));
  std::atomic<bool> has_begun = false, goes_on = false;
  counts.before_replay = [&](int device) {
    if (device != 0) return;
    has_begun = true;
    while (!goes_on) std::this_thread::yield();
  };
  const Ticket later = module.submit(0, 0);
  while (!has_begun) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // device 1 waits in the collective
  const auto load = [&] { gpu::GpuModule({{{"test", summing(), 1}}}, *platform, 2, {2, {}, by_reference}); };
  CHECK(contains(refusal(load, ExitStatus::failed), " of another module"));
  CHECK(contains(take_misuse(of_both), " of another module may run"));  // the module that was refused ends as well
  goes_on = true;
  CHECK_NOTHROW(module.wait(later));
}

TEST_CASE("a GPU is at most four launches behind its thread, whatever one ticket has, and in loops some more",
          "[gpu]") {
  const auto most_behind = [](const std::shared_ptr<const Program>& program, std::int64_t steps) {
    CallCounts counts;
    const auto platform = make_counted(make_emulated({}), counts);
    gpu::GpuModule gpus({{{"test", program, 1}}}, *platform, 1, {1, {}, by_reference});
    Module& module = gpus;
    module.wait(module.submit(0, 0, steps));
    return counts.most_in_flight.load();
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
  for (const int gpus : {1, 2}) {
    CallCounts counts;
    const auto platform = make_counted(make_emulated({.devices = gpus, .graphs = false}), counts);
    gpu::GpuModule on_gpus({{{"test", program, 1}}}, *platform, gpus, {gpus, {}, by_reference});
    Module& module = on_gpus;
    const std::span<std::byte> batch = module.batch(0, 0, "0");
    std::fill_n(reinterpret_cast<float*>(batch.data()), 4 * 8, 1.0F);
    module.submit(0, 0, 3);
    std::vector<float> sums(8);
    module.wait(module.read(module.output(0, "s"), {0, 0}, std::as_writable_bytes(std::span(sums))));
    CHECK(sums == std::vector<float>(8, 4));
    StepTrace trace;
    module.wait(module.submit_traced(0, 0, {}, trace));
    CHECK(counts.most_in_flight > 64);
    CHECK(counts.most_in_flight <= 5 * 64);
  }
}

TEST_CASE("all graphs that groups and steps by themselves will need are recorded when a program is loaded", "[gpu]") {
  CallCounts counts;
  const auto platform = make_counted(make_emulated({}), counts);
  gpu::GpuModule gpus({{{"test", summing(), 3, false, true}}}, *platform, 1, {1, {}, by_reference});
  Module& module = gpus;
  REQUIRE(module.slots(0) == 48);
  constexpr int graphs = 48 + 24 + 12 + 6 + 3;
  CHECK(counts.graphs == graphs);
  module.wait(module.submit_each(0, 1, 7));  // the slots 1; 2 and 3; 4 to 7
  for (int slot = 0; slot < 48; ++slot) {
    module.submit(0, slot);
    module.submit_each(0, slot, std::min(48 - slot, 1 + slot % 16));
  }
  module.wait(module.submit_each(0, 32, 16));
  CHECK(counts.graphs == graphs);
}

TEST_CASE("the batches of a group are copied when all steps that read its slots before are done", "[gpu]") {
  const auto platform = make_emulated({});
  gpu::GpuModule gpus({{{"test", summing(), 3, false, true}}}, *platform, 1, {1, {}, by_reference});
  Module& module = gpus;
  Ticket last;
  for (int round = 0; round < 20; ++round) {
    module.submit_each(0, 0, 4);
    module.submit_each(0, 4, 12);
    last = module.submit_each(0, 0, 16);  // the steps on its last slots were submitted after those on its first ones
  }
  CHECK_NOTHROW(module.wait(last));
}

TEST_CASE("the graphs of a loop do not grow with its iterations", "[gpu]") {
  const auto launched = [](int iterations) {
    const auto program = looping(iterations);
    CallCounts counts;
    const auto platform = make_counted(make_emulated({}), counts);
    gpu::GpuModule gpus({{{"test", program, 1}}}, *platform, 1, {1, {}, by_reference});
    Module& module = gpus;
    module.wait(module.submit(0, 0));
    counts.take_queued();
    module.wait(module.submit(0, 0));
    const std::vector<std::string> queued = counts.take_queued();
    const auto copies = std::count(queued.begin(), queued.end(), "copy on compute");
    return std::vector<std::int64_t>{counts.graphs, std::count(queued.begin(), queued.end(), "replay"), copies};
  };
  CHECK(launched(10) == std::vector<std::int64_t>{1, 1, 0});
  // Steps of 100 iterations do not go together. What is before the loop, its body, and what is after it; in each
  // iteration its rows are copied.
  CHECK(launched(100) == std::vector<std::int64_t>{3, 1 + 100 + 1, 100});
  CHECK(launched(500) == std::vector<std::int64_t>{3, 1 + 500 + 1, 500});
}

TEST_CASE("a batch is copied to a GPU as soon as the steps that read the one before in its slot are done", "[gpu]") {
  CallCounts counts;
  const auto platform = make_counted(make_emulated({}), counts);
  gpu::GpuModule gpus({{{"test", summing(), 2}}}, *platform, 1, {1, {}, by_reference});
  Module& module = gpus;
  for (const int slot : {0, 1}) module.wait(module.submit(0, slot));
  counts.take_queued();
  module.wait(module.submit(0, 0));
  const std::vector<std::string> queued = counts.take_queued();
  // Nothing that the stream compute does now comes before the copy: a step on the other slot may run meanwhile.
  CHECK(queued == std::vector<std::string>{"follow on copy", "copy on copy", "order copy before compute", "replay"});
}

TEST_CASE("values are read as they are between two steps, more of them than are on their way at a time",
          "[gpu][device]") {
  if (!has_gpus()) return;
  const auto platform = open_gpus(1);
  const auto counting = program_of("mesh a=1\nstate %n:i64[]{}\n%m = add %n, %n\nupdate %n = %m\nreturn m = %m\n");
  gpu::GpuModule gpus({{{"test", counting, 1}}}, *platform, 1, {1, {}, {}});
  Module& module = gpus;
  const std::int64_t one = 1;
  const Handle state = module.input("n"), result = module.output(0, "m");
  module.write(state, {every_device, 0}, std::as_bytes(std::span(&one, 1)));
  constexpr std::size_t steps = 40;
  std::vector<std::int64_t> states(steps), results(steps);
  Ticket last;
  for (std::size_t i = 0; i < steps; ++i) {
    last = module.read(state, {0, 0}, std::as_writable_bytes(std::span(&states[i], 1)));
    module.submit(0, 0);
    last = module.read(result, {0, 0}, std::as_writable_bytes(std::span(&results[i], 1)));
  }
  module.wait(last);
  for (std::size_t i = 0; i < steps; ++i) {
    CHECK(states[i] == std::int64_t{1} << i);
    CHECK(results[i] == std::int64_t{2} << i);
  }
}

TEST_CASE("the emulation finds each wait that the executor forgets", "[gpu]") {
  const auto error_of = [](const std::string& forgotten) {
    CallCounts counts;
    counts.forgotten = forgotten;
    const auto platform = make_counted(make_emulated({.devices = 2, .patience = std::chrono::seconds(1)}), counts);
    try {
      gpu::GpuModule gpus({{{"test", summing(), 1}}}, *platform, 2, {2, {}, by_reference});
      Module& module = gpus;
      for (int step = 0; step < 3; ++step) module.submit(0, 0);
      module.wait(module.submit(0, 0));
    } catch (const Error& error) {
      return error.diagnostics().front().message;
    }
    return std::string("none");
  };
  CHECK(error_of("") == "none");
  CHECK(error_of("order compute before communicate").find("is captured before order() has begun") != std::string::npos);
  CHECK(error_of("order communicate before compute").find("is not joined to compute") != std::string::npos);
  // A step reads a batch that is not there yet; a batch is replaced that a step still reads.
  for (const std::string call : {"order copy before compute", "follow on copy"}) {
    const std::string said = error_of(call);
    INFO(call << ": " << said);
    CHECK(said != "none");
    CHECK(said.find("order") != std::string::npos);
  }
}

// What is recorded after the load, and what is wrong with it.
struct Late {
  std::string error = "none";
  int graphs = 0, barriers = 0;  // of two GPUs
  std::chrono::steady_clock::duration passed{};
};
Late recorded_late(const std::string& forgotten, int graphs_that_work, const std::function<void(Module&)>& submit) {
  CallCounts counts;
  Late late;
  const auto platform = make_counted(make_emulated({.devices = 2, .patience = std::chrono::seconds(10)}), counts);
  gpu::GpuModule gpus({{{"test", summing(), 2}}}, *platform, 2, {2, {}, by_reference});
  Module& module = gpus;
  CHECK(counts.graphs == 2 * 2);
  CHECK(counts.barriers == 2);
  for (int step = 0; step < 3; ++step) module.submit(0, step % 2);
  module.wait(module.submit(0, 0));
  counts.graphs = counts.barriers = 0;
  counts.forgotten = forgotten;
  counts.graphs_that_work = graphs_that_work;
  const auto begin = std::chrono::steady_clock::now();
  try {
    for (int step = 0; step < 3; ++step) module.submit(0, step % 2);
    submit(module);
    module.wait(module.submit(0, 1));
  } catch (const Error& error) {
    late.error = error.diagnostics().front().message;
  }
  late.passed = std::chrono::steady_clock::now() - begin;
  late.graphs = counts.graphs;
  late.barriers = counts.barriers;
  return late;
}

TEST_CASE("what is recorded while GPUs run lies between two barriers of all of them", "[gpu]") {
  StepTrace trace;
  const std::function<void(Module&)> two_steps = [](Module&module) { module.submit(0, 1, 2); },
                                     traced = [&](Module&module) { module.submit_traced(0, 1, {}, trace); },
                                     foreseen = [](Module&module) { module.submit(0, 1); };
  for (const auto& submit : {two_steps, traced}) {
    const Late late = recorded_late("", -1, submit);
    CHECK(late.error == "none");
    CHECK(late.graphs == 2);
    CHECK(late.barriers == 2 * 2);
    for (const std::string forgotten : {"meet before recording", "meet after recording"}) {
      const std::string said = recorded_late(forgotten, -1, submit).error;
      INFO(forgotten << ": " << said);
      CHECK(said.find("no order on the host between ") != std::string::npos);
      CHECK(said.find("capture() of device ") != std::string::npos);
      CHECK(said.find("all_gather of 256 bytes ") != std::string::npos);
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
  CallCounts counts;
  counts.graphs_that_work = 3;
  const auto platform = make_counted(make_emulated({.devices = 2}), counts);
  const auto begin = std::chrono::steady_clock::now();
  const auto load = [&] { gpu::GpuModule({{{"test", summing(), 2}}}, *platform, 2, {2, {}, by_reference}); };
  CHECK(contains(refusal(load, ExitStatus::failed), planted));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
}

TEST_CASE("a load after which the GPUs do not meet is found", "[gpu]") {
  CallCounts counts;
  counts.forgotten = "meet after recording";
  const auto platform = make_counted(make_emulated({.devices = 2, .patience = std::chrono::seconds(1)}), counts);
  const auto run = [&] {
    gpu::GpuModule gpus({{{"test", summing(), 2}}}, *platform, 2, {2, {}, by_reference});
    Module& module = gpus;
    module.wait(module.submit(0, 0));
  };
  CHECK(contains(refusal(run, ExitStatus::failed), "no order on the host between "));
}

TEST_CASE("the GPU that has pinned the batches is closed when all others are", "[gpu]") {
  for (int round = 0; round < 5; ++round) {
    CallCounts counts;
    const auto platform = make_counted(make_emulated({.devices = 4}), counts);
    {
      gpu::GpuModule gpus({{{"test", summing(), 2}}}, *platform, 4, {4, {}, by_reference});
      Module& module = gpus;
      for (int step = 0; step < 8; ++step) module.submit(0, step % 2);
    }
    const std::vector<int> closed = counts.take_closed();
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
      CallCounts counts;
      auto emulated = make_emulated({.devices = 4});
      const gpu::Platform& platform = *emulated;
      const auto counted = make_counted(std::move(emulated), counts);
      {
        gpu::GpuModule gpus({{{"test", program, 1}}}, *counted, 4, {4, {}, by_reference});
        Module& module = gpus;
        counts.before_replay = [&](int device) {
          if (device == slow) std::this_thread::sleep_for(std::chrono::milliseconds(50));
          if (device == slow && fails) fail_running("planted: a graph does not run");
        };
        module.submit(0, 0);
      }
      CHECK(take_misuse(platform) == "");
    }
  }
}

TEST_CASE("after the failure of one of several GPUs the devices stay as they are, and take no more work", "[gpu]") {
  static CallCounts counts;  // the devices stay
  const Variable timeout("PMAPTRAIN_GPU_TIMEOUT", "0.5");
  const auto platform = make_counted(make_emulated({.devices = 4}), counts);
  std::promise<void> test_ends;
  {
    gpu::GpuModule gpus({{{"test", summing(), 1}}}, *platform, 4, {4, {}, by_reference});
    Module& module = gpus;
    module.wait(module.submit(0, 0));
    // GPU 0 fails, and GPU 1 is held in a call that nothing ends, as NCCL holds who waits for a rank that is gone.
    static std::promise<void> is_held;
    counts.before_replay = [held = test_ends.get_future().share()](int device) {
      if (device == 1) {
        is_held.set_value();
        held.wait();
      } else if (device == 0) {
        is_held.get_future().wait();
        fail_running("planted: a GPU fails");
      }
    };
    CHECK_THROWS_WITH(module.wait(module.submit(0, 0)), Catch::Contains("planted: a GPU fails"));
  }
  CHECK(counts.take_closed().empty());
  CHECK(platform->given_up() == "planted: a GPU fails");
  CHECK_THROWS_WITH(gpu::GpuModule({{{"test", summing(), 1}}}, *platform, 4, {4, {}, by_reference}),
                    Catch::Contains("the GPUs of this process take no more work, since one has failed: planted: a GPU "
                                    "fails") &&
                        Catch::Contains("start the program again"));
  test_ends.set_value();
}

TEST_CASE("GPUs that fail before they are connected, or alone, are closed, and work again", "[gpu]") {
  for (const int gpus : {1, 4}) {
    CallCounts counts;
    const auto platform = make_counted(make_emulated({.devices = gpus}), counts);
    const Source source{{{"test", summing(), 1}}};
    counts.graphs_that_work = gpus == 1 ? 0 : -1;
    if (gpus == 4) counts.kernels_that_work = 1;
    CHECK_THROWS_AS(gpu::GpuModule(source, *platform, gpus, {gpus, {}, by_reference}), Error);
    CHECK(static_cast<int>(counts.take_closed().size()) == gpus);
    CHECK_FALSE(platform->given_up());
    counts.graphs_that_work = counts.kernels_that_work = -1;
    gpu::GpuModule again(source, *platform, gpus, {gpus, {}, by_reference});
    CHECK_NOTHROW(again.wait(again.submit(0, 0, 1, {})));
  }
}

TEST_CASE("a step is profiled and traced by the GPU's own times", "[gpu][device]") {
  if (!has_gpus()) return;
  const auto platform = open_gpus(2);
  gpu::GpuModule gpus({{{"test", summing(), 1}}}, *platform, 2, {2, {}, {}});
  Module& module = gpus;
  const Profile profile = module.profile(0, 0, 2);
  CHECK(profile.seconds.size() == module.instructions(0).size());
  CHECK(profile.wall_seconds > 0);
  for (const double seconds : profile.seconds) CHECK((seconds >= 0 && seconds <= profile.wall_seconds));

  StepTrace trace;
  module.wait(module.submit_traced(0, 0, {}, trace));
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
