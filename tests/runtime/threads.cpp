// Workers: threads, barriers, failures, and memory in the steady state.
#include "tests/threads.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/base/machine.h"
#include "core/graph/text.h"
#include "core/runtime/cpu/barrier.h"
#include "tests/catch.h"
#include "tests/runtime/allocations.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {
namespace {

// One step of linear regression: gradients summed over the devices in one bucket.
const std::string regression = R"(mesh devices=8
params %w:f32[3,1]{}
params %b:f32[1]{}
batch %x:f32[4,3]{devices}
batch %y:f32[4,1]{devices}
%rate = constant[dtype=f32, shape=[], value=0.001]
%xw = matmul %x, %w
%bb = broadcast[shape=[4,1], dims=[1]] %b
%p = add %xw, %bb
%e = sub %p, %y
%ee = mul %e, %e
%loss = reduce_sum[dims=[0,1]] %ee
%gw = matmul[transpose_a=true] %x, %e
%gb = reduce_sum[dims=[0]] %e
%sw, %sb, %sl = psum[axes={devices}] %gw, %gb, %loss
%dw = mul %sw, %rate
%db = mul %sb, %rate
%w2 = sub %w, %dw
%b2 = sub %b, %db
update %w = %w2
update %b = %b2
return loss = %sl
)";

void set_inputs(test::Single& single, const Program& program) {
  for (const auto& [name, value] : test::random_inputs(program, 1)) single.set_each(name, value);
}

TEST_CASE("a step of linear regression meets once", "[runtime]") {
  const auto program = test::program_of(regression);
  CHECK(cpu::make_plan(program).barriers_per_step() == 1);
  // Any worker may carry out the last stage's pieces, so they end before the next step begins.
  CHECK(cpu::make_plan(program, {true}).barriers_per_step() == 2);
}

TEST_CASE("a large parameter costs a second barrier, and no more", "[runtime]") {
  const auto program = test::program_of(R"(mesh a=4
params %w:f32[70,100]{}
state %m:f32[70,100]{}
batch %x:f32[2,70]{a}
%half = constant[dtype=f32, shape=[], value=0.5]
%y = matmul %x, %w
%g = matmul[transpose_a=true] %x, %y
%s = psum[axes={a}] %g
%k = mul %m, %half
%m2 = add %k, %s
%d = mul %m2, %half
%w2 = sub %w, %d
update %w = %w2
update %m = %m2
)");
  CHECK(cpu::make_plan(program).barriers_per_step() == 2);
}

// Runs three steps at once and one by one, for several numbers of workers.
void check_bits(const std::string& text, std::int64_t steps) {
  const auto program = test::program_of(text);
  const auto inputs = test::random_inputs(*program, 5);
  for (const KernelChoice kernels : {KernelChoice::reference, KernelChoice::best}) {
    const auto expected = test::run_program(program, inputs, {1, false, steps, true, kernels});
    for (const int workers : {1, 2, 5}) {
      for (const bool step_by_step : {false, true}) {
        INFO("workers " << workers << ", step by step " << step_by_step);
        const bool same =
            test::run_program(program, inputs, {workers, false, steps, step_by_step, kernels}) == expected;
        CHECK(same);
      }
    }
    if (steps > 3) continue;
    for (const auto& [name, value] : test::interpreted(*program, inputs, steps)) {
      INFO(name);
      const bool same = expected.at(name) == value;
      CHECK(same);
    }
  }
}

TEST_CASE("an update beside the layer that reads the parameter waits for it, packed or not", "[runtime]") {
  check_bits(R"(mesh devices=4
params %w:f32[256,256]{}
batch %x:f32[8,256]{devices}
%half:f32[]{} = constant[dtype=f32, shape=[], value=0.5]
%v:f32[256,256]{devices} = pvary[axes={devices}] %w
%y = matmul %x, %v
%s = reduce_sum[dims=[0,1]] %y
%t:f32[]{} = psum[axes={devices}] %s
%w2 = mul %w, %half
update %w = %w2
return t = %t
)",
             2);
}

TEST_CASE("what a worker computes for itself from a shared array is done before the next step changes that",
          "[runtime]") {
  check_bits(R"(mesh devices=4
params %w:i32[16384]{}
state %s:i32[]{}
%one:i32[]{} = constant[dtype=i32, shape=[], value=1]
%w2 = add %w, %one
%r = reduce_sum[dims=[0]] %w2
%s2 = add %s, %r
update %w = %w2
update %s = %s2
return r = %r
)",
             50);
}

TEST_CASE("a sum in parts beside another operand of a later stage", "[runtime]") {
  check_bits(R"(mesh devices=4
params %w:f32[128,64]{}
batch %x:f32[2,128]{devices}
batch %d:f32[2,64]{devices}
%dx0 = reduce_sum[dims=[0,1]] %x
%p:f32[]{} = psum[axes={devices}] %dx0
%pv:f32[]{devices} = pvary[axes={devices}] %p
%g = matmul[transpose_a=true] %x, %d
%xx = mul %x, %pv
%h = reduce_sum[dims=[0,1]] %xx
%gs:f32[128,64]{}, %hs:f32[]{} = psum[axes={devices}] %g, %h
%w2 = sub %w, %gs
update %w = %w2
return h = %hs
)",
             2);
}

TEST_CASE("allocations of every thread are counted", "[runtime]") {
  CHECK(test::count_allocations([] { std::thread([] { std::vector<int>(100).front() = 1; }).join(); }) >= 1);
  CHECK(test::count_allocations([] {}) == 0);
}

TEST_CASE("nothing is allocated by a step, from the first on, with reference kernels", "[runtime]") {
  for (const char* const text : {regression.c_str(), R"(mesh r=2 c=3
params %w:f32[5000]{}
batch %x:f32[4,2,3]{r, c}
batch %i:i32[4]{r, c}
batch %key:u32[2]{}
batch %rows:i64[4]{r, c}
state %s:f32[2]{r, c}
%t = transpose[permutation=[2,0,1]] %x
%p = pad[low=[1,0,0], high=[0,0,0]] %t
%c = slice[starts=[1,0,0], limits=[3,4,2]] %p
%m = reduce_max[dims=[0,1]] %c
%o = one_hot[depth=3, dtype=f32] %i
%u = random_uniform[shape=[3]] %key, %rows
%v = random_normal[shape=[3]] %key, %rows
%q = mul %u, %v
%z = add %q, %o
%b = reduce_sum[dims=[1]] %z
%g = argmax[dim=1] %z
%k = gather %x, %g
%l = loop[iterations=2, consts=1, carries=1] %m, %s, %x (%e:f32[2]{r, c}, %f:f32[2]{r, c}, %y:f32[2,2,3]{r, c}) {
  %h = add %e, %f
  yield %h
}
%n = psum[axes={c}] %l
%a = all_gather[axes={r}, dim=0] %l
%d = ppermute[axes={c}, pairs=[0:1]] %l
%ww = exp %w
%bc = broadcast[shape=[2,4], dims=[1]] %b
update %s = %d
return n = %n
return a = %a
return k = %k
return ww = %ww
return bc = %bc
)"}) {
    const auto program = test::program_of(text);
    for (const int workers : {1, 3}) {
      test::Single single(program, {workers, KernelChoice::reference});
      set_inputs(single, *program);
      single.run();
      const std::int64_t allocations = test::count_allocations([&] {
        single.run(5);
        single.run();
      });
      CHECK(allocations == 0);
    }
  }
}

TEST_CASE("a process has as many threads as workers, whatever kernels they run", "[runtime]") {
  // A matmul and a reduction that are large enough for a library to want a team of threads.
  const auto program = test::program_of(R"(mesh a=8
params %w:f32[256,256]{}
batch %x:f32[256,256]{a}
%y = matmul %x, %w
%z = relu %y
%s = reduce_sum[dims=[0,1]] %z
%t = psum[axes={a}] %s
return t = %t
)");
  const std::int64_t before = test::settled_threads();
  for (const int workers : {1, 2, 5}) {
    test::Single single(program, {workers, KernelChoice::best});
    set_inputs(single, *program);
    single.run(2);
    // ThreadSanitizer has a thread of its own, which was there before.
    CHECK(test::settled_threads() == before + workers - 1);
  }
  CHECK(test::settled_threads() == before);
}

TEST_CASE("more workers than pieces, and a module that never runs, end as they should", "[runtime]") {
  const auto program = test::program_of(regression);
  for (const int workers : {1, 8, 13}) {
    const test::Single single(program, {workers, KernelChoice::reference});
    CHECK(single.module().workers() == workers);
  }
}

// Fails at its n-th call, counted over all workers; else does nothing.
class FailingKernel final : public CpuKernel {
 public:
  explicit FailingKernel(std::atomic<int>& calls_left) : calls_left_(calls_left) {}
  void run(const CpuArguments&) override {
    if (calls_left_.fetch_sub(1) == 1) throw std::runtime_error("the kernel failed");
  }
  std::string implementation() const override { return "failing"; }

 private:
  std::atomic<int>& calls_left_;
};

CpuBackendOptions failing(int workers, std::string_view op_name, std::atomic<int>& calls_left) {
  CpuBackendOptions options{workers, KernelChoice::reference};
  options.make_kernel = [op_name, &calls_left](const Op& op, const CpuRequest& request) -> std::unique_ptr<CpuKernel> {
    if (op.name() == op_name) return std::make_unique<FailingKernel>(calls_left);
    return make_cpu_kernel(op, request, KernelChoice::reference);
  };
  return options;
}

template <class F>
std::string thrown_by(F&& f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing";
}

TEST_CASE("a kernel that fails in one worker comes out of run, at once and ever after", "[runtime]") {
  const auto program = test::program_of(regression);
  for (const int workers : {1, 2, 5}) {
    // The first call of a step, one in the middle of a later step, and one after the barrier.
    for (const auto& [op, calls] :
         std::vector<std::pair<std::string, int>>{{"matmul", 1}, {"matmul", 37}, {"mul", 30}}) {
      std::atomic<int> calls_left{calls};
      test::Single single(program, failing(workers, op, calls_left));
      set_inputs(single, *program);
      CHECK(thrown_by([&] { single.run(50); }) == "the kernel failed");
      CHECK(thrown_by([&] { single.run(); }) == "the kernel failed");
    }
  }
}

TEST_CASE("a kernel that cannot be made comes out of the constructor", "[runtime]") {
  const auto program = test::program_of(regression);
  for (const int workers : {1, 3}) {
    CpuBackendOptions options{workers, KernelChoice::reference};
    options.make_kernel = [](const Op&, const CpuRequest&) -> std::unique_ptr<CpuKernel> {
      throw std::runtime_error("no such kernel");
    };
    CHECK(thrown_by([&] { const test::Single single(program, options); }) == "no such kernel");
  }
}

TEST_CASE("workers block signals, and the thread that made them does not", "[runtime]") {
  const auto blocks_stops = [](const std::string& task) {
    std::ifstream status("/proc/self/task/" + task + "/status");
    for (std::string line; std::getline(status, line);) {
      if (!line.starts_with("SigBlk:")) continue;
      const std::uint64_t blocked = std::stoull(line.substr(7), nullptr, 16);
      const auto has = [&](int signal) { return (blocked >> (signal - 1) & 1) != 0; };
      CHECK(has(SIGINT) == has(SIGTERM));
      CHECK_FALSE(has(SIGSEGV));
      return has(SIGINT);
    }
    return false;
  };
  std::set<std::string> before;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) before.insert(task.path().filename());
  const test::Single single(test::program_of(regression), {3, KernelChoice::reference});
  int workers = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const std::string number = task.path().filename();
    if (before.contains(number)) continue;
    ++workers;
    CHECK(blocks_stops(number));
  }
  CHECK(workers == 2);
  CHECK_FALSE(blocks_stops(std::to_string(::getpid())));
}

TEST_CASE("threads that sleep at every barrier all wake", "[runtime]") {
  // They arrive apart by as long as it takes to fall asleep, more or less, so that one comes while another is at it.
  constexpr std::uint32_t barriers = 100'000;
  Barrier barrier(2, false);
  const auto meet = [&](std::uint32_t seed) {
    try {
      for (std::uint32_t i = 0; i < barriers; ++i) {
        seed = seed * 1664525 + 1013904223;
        for (std::uint32_t wait = seed >> 21; wait > 0; --wait) std::atomic_signal_fence(std::memory_order_seq_cst);
        barrier.arrive_and_wait();
      }
    } catch (const BrokenBarrier&) {
    }
  };
  std::thread one([&] { meet(1); }), other([&] { meet(2); });
  // A sleeper whom nobody woke would sleep for good: break_all, which comes later, does wake him.
  using Clock = std::chrono::steady_clock;
  std::uint32_t seen = 0;
  for (Clock::time_point last = Clock::now(); seen < barriers && Clock::now() < last + std::chrono::seconds(20);) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (barrier.completed_phases() != seen) last = Clock::now();
    seen = barrier.completed_phases();
  }
  CHECK(seen == barriers);
  barrier.break_all();
  one.join();
  other.join();
}

TEST_CASE("workers spin only where each of them has a core's worth of time", "[runtime]") {
  const auto spins = [](int workers, const char* cpu_max) {
    return may_spin(workers, allowed_cores(8, cores_of_quota(cpu_max)));
  };
  CHECK(spins(8, "max 100000"));
  CHECK_FALSE(spins(9, "max 100000"));
  CHECK(spins(2, "200000 100000"));
  CHECK_FALSE(spins(2, "199000 100000"));
  CHECK(spins(1, "10000 100000"));
}

TEST_CASE("a barrier that breaks wakes everybody, also who comes later", "[runtime]") {
  for (const bool may_spin : {false, true}) {
    for (int round = 0; round < 50; ++round) {
      Barrier barrier(4, may_spin);
      std::atomic<int> unwound{0};
      std::vector<std::thread> threads;
      for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&] {
          try {
            while (true) barrier.arrive_and_wait();
          } catch (const BrokenBarrier&) {
            ++unwound;
          }
        });
      }
      for (int i = 0; i < round % 7; ++i) barrier.arrive_and_wait();
      barrier.break_all();
      for (std::thread& thread : threads) thread.join();
      CHECK(unwound == 3);
      CHECK_THROWS_AS(barrier.arrive_and_wait(), BrokenBarrier);
    }
  }
}

}  // namespace
}  // namespace pmaptrain
