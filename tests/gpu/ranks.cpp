// The GPUs of several processes carry a program as those of one process do: with the same bits.
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/graph/text.h"
#include "core/runtime/gpu/backend.h"
#include "core/runtime/gpu/module_table.h"
#include "tests/catch.h"
#include "tests/emulated_gpu/platform.h"
#include "tests/gpu/programs.h"
#include "tests/runtime/placements.h"
#include "tests/runtime/program_writer.h"
#include "tests/slice.h"

namespace pmaptrain {
namespace {

using test::OnGpus, test::Values;

using Platforms = std::vector<std::unique_ptr<gpu::Platform>>;

// The module of one of several processes, which have these platforms.
std::unique_ptr<Module> load_in(const Platforms& platforms, const Processes& all, Source source,
                                const gpu::GpuOptions& options) {
  const auto open = [&]() -> gpu::Platform& { return *platforms[static_cast<std::size_t>(all.placement.process)]; };
  return std::move(*gpu::GpuBackend(open, options).plan(std::move(source), all)).load();
}

// With how.gpus in each process.
Values run_on_processes(const std::shared_ptr<const Program>& program, const Values& inputs, const OnGpus& how,
                        int processes) {
  const auto seed = static_cast<unsigned>(how.gpus * processes);
  const Platforms platforms = test::make_emulated(processes, {.devices = how.gpus, .seed = seed});
  test::MemoryTransport transport(processes);
  return run_placements(*program, inputs, how.steps, transport, processes, [&](const Processes& all) {
    return load_in(platforms, all, {{{"test", program, 1}}, how.private_copies, 1, processes},
                   {how.gpus, how.plan(), test::by_reference});
  });
}

// Processes and the GPUs of each.
constexpr std::pair<int, int> divisions[] = {{2, 1}, {2, 2}, {4, 1}, {4, 2}, {3, 1}, {3, 2}, {2, 3}};

// Of how many divisions the program can have.
int check_ranks(const std::shared_ptr<const Program>& program, const Values& inputs, OnGpus how) {
  int checked = 0;
  for (const auto& [processes, each] : divisions) {
    const std::vector<int> possible = gpu::possible_gpu_counts(program->mesh, processes * each, how.limits(processes));
    if (possible.empty() || possible.back() != processes * each) continue;
    INFO(processes << " processes with " << each << " GPUs, deterministic " << how.deterministic << ", private copies "
                   << how.private_copies << ", exchanged from " << how.least_exchanged);
    how.gpus = processes * each;
    const Values expected = test::run_on_gpus(program, inputs, how);
    how.gpus = each;
    for (const auto& [name, values] : run_on_processes(program, inputs, how, processes)) {
      INFO(name);
      const bool same = values == expected.at(name);
      REQUIRE(same);
    }
    ++checked;
  }
  return checked;
}

void check_ranks(const std::shared_ptr<const Program>& program) {
  const Values inputs = test::uneven_inputs(*program, 6);
  INFO(to_text(*program));
  test::Turns turns;
  for (const bool deterministic : {true, false}) {
    for (const std::size_t turn : turns.next(4)) {
      const OnGpus how{.deterministic = deterministic,
                       .private_copies = turn % 2 == 1,
                       .steps = 2,
                       .least_exchanged = turn < 2 ? gpu::PlanOptions{}.least_exchanged : 1};
      CHECK(check_ranks(program, inputs, how) > 0);
    }
  }
}

}  // namespace

TEST_CASE("every collective over one axis or two has the bits of one process", "[gpu][placements]") {
  check_ranks(test::program_of(test::every_collective("a=4 b=6")));
}

TEST_CASE("GPUs whose programs have other collectives do not load them", "[gpu][placements]") {
  const auto small = test::sum_of_rows("8"), large = test::sum_of_rows("200");
  const auto failures = [&](const std::shared_ptr<const Program>& second) {
    const Platforms platforms = test::make_emulated(2, {.devices = 2});
    test::MemoryTransport transport(2);
    std::vector<std::string> thrown(2);
    test::on_each_process(transport, 2, [&](int process) {
      try {
        load_in(platforms, {{process, 2}, &transport.end(process)},
                {{{"test", process == 1 ? second : small, 1}}, false, 1, 4}, {2, {}, test::by_reference});
      } catch (const Error& error) {
        thrown[static_cast<std::size_t>(process)] = error.diagnostics().front().message;
      }
    });
    return thrown;
  };
  CHECK(failures(small) == std::vector<std::string>(2));
  const std::vector<std::string> both = failures(large);
  CHECK(both.front() == both.back());
  INFO(both.front());
  CHECK(
      both.front().starts_with("GPU 0 and GPU 2 would wait for each other without end: number 1 of what they do "
                               "together is, in GPU 0, "));
}

TEST_CASE("random programs over two axes have the bits of one process on the GPUs of several", "[gpu][placements]") {
  test::Slice slice(10);
  test::Turns turns;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    if (!slice.takes()) continue;
    const auto program = test::program_of(test::ProgramWriter(seed, DType::i32, seed % 2 == 1).write());
    INFO("seed " << seed << "\n" << to_text(*program));
    const Values inputs = test::random_inputs(*program, seed);
    for (const bool deterministic : {true, false}) {
      const bool private_copies = turns.next(2).front() == 1;
      check_ranks(program, inputs, {.deterministic = deterministic, .private_copies = private_copies, .steps = 2});
    }
  }
}

TEST_CASE("with the same blocks, GPUs leave the same bits whatever their number, also in several processes",
          "[gpu][placements]") {
  const auto program = test::program_of(R"(mesh a=4 b=6
batch %x:f32[3,160]{a, b}
batch %y:f32[3,40]{a, b}
params %w:f32[160,40]{}
%wv = pvary[axes={a, b}] %w
%z = matmul %x, %wv
%d = sub %z, %y
%g = matmul[transpose_a=true] %x, %d
%h = reduce_sum[dims=[0]] %d
%sg, %sh = psum[axes={a, b}] %g, %h
%sa = psum[axes={a}] %h
%sb = psum[axes={b}] %h
%k = constant[dtype=f32, shape=[160,40], value=-1e-05]
%u = mul %sg, %k
%w2 = add %w, %u
update %w = %w2
return h = %sh
return a = %sa
return b = %sb
)");
  const Values inputs = test::uneven_inputs(*program, 6);
  std::set<Values> of_blocks;
  test::Turns turns;
  for (const int blocks : {1, 2, 3, 4, 6, 8, 12, 24}) {
    INFO(blocks << " blocks");
    for (const std::size_t turn : turns.next(2)) {
      OnGpus how{.steps = 2, .least_exchanged = turn == 0 ? 1 : gpu::PlanOptions{}.least_exchanged, .blocks = blocks};
      const Values one = test::run_on_gpus(program, inputs, how);
      of_blocks.insert(one);
      for (const int gpus : gpu::possible_gpu_counts(program->mesh, 8, {gpu::Parts::whole_blocks, blocks})) {
        INFO(gpus << " GPUs");
        how.gpus = gpus;
        const bool same = test::run_on_gpus(program, inputs, how) == one;
        CHECK(same);
      }
    }
  }
  // Other blocks are another order of the sums; some orders may give the same.
  CHECK(of_blocks.size() >= 6);
  for (const std::size_t turn : turns.next(4)) {
    constexpr int some[] = {4, 8, 12, 24};
    CHECK(check_ranks(program, inputs, {.steps = 2, .blocks = some[turn]}) > 0);
  }
}

namespace {

// The error of each process whose plan is loaded and runs a step; empty without one.
std::vector<std::string> errors_of(const std::shared_ptr<const Program>& program, int processes,
                                   const std::function<gpu::GpuOptions(int process)>& options,
                                   const Platforms& platforms, std::int64_t blocks) {
  test::MemoryTransport transport(processes);
  std::vector<std::string> errors(static_cast<std::size_t>(processes));
  test::on_each_process(transport, processes, [&](int p) {
    const auto at = static_cast<std::size_t>(p);
    try {
      const auto module = load_in(platforms, {{p, processes}, &transport.end(p)},
                                  {{{"test", program, 1}}, false, 1, blocks}, options(p));
      module->wait(module->submit(0, 0));
    } catch (const Error& error) {
      errors[at] = error.diagnostics().front().message + "\n" + error.diagnostics().front().help;
    }
  });
  return errors;
}

const char* const summed = "mesh a=8\nbatch %x:f32[6]{a}\n%s = psum[axes={a}] %x\nreturn s = %s\n";

}  // namespace

TEST_CASE("processes that cannot carry a program together on GPUs say why, all of them", "[gpu][placements]") {
  const auto program = test::program_of(summed);
  const auto gpus = [](int count) { return [count](int) { return gpu::GpuOptions{count, {}, test::by_reference}; }; };
  const auto platforms = [](int processes) { return test::make_emulated(processes, {.devices = 2}); };
  const auto alike = [](const std::vector<std::string>& errors) {
    for (const std::string& error : errors) CHECK(error == errors.front());
    return errors.front();
  };
  CHECK(alike(errors_of(program, 2, gpus(2), platforms(2), 2)) == "");
  CHECK(alike(errors_of(program, 2, gpus(3), platforms(2), 2)) ==
        "the 8 logical devices of the mesh do not divide over 3 GPUs in each of 2 processes with mesh.deterministic\n"
        "1, 2 or 4 would do");
  CHECK(alike(errors_of(program, 4, gpus(1), platforms(4), 2)) ==
        "2 blocks cannot be divided evenly over 4 processes with GPUs\na multiple of 4 as mesh.blocks would do");
  CHECK(alike(errors_of(program, 2, gpus(4), platforms(2), 2)) ==
        "4 GPUs are asked for (mesh.workers, --workers), and there are 2\n--workers 2 would do");
  const auto uneven = [](int process) { return gpu::GpuOptions{process + 1, {}, test::by_reference}; };
  CHECK(alike(errors_of(program, 2, uneven, platforms(2), 2)) ==
        "the processes have different numbers of GPUs, from 1 to 2\n"
        "--workers 1 (mesh.workers) takes as many in each");
  // The devices of a process are neighbours and a part of the mesh, which a half of this one is not.
  const auto apart =
      test::program_of("mesh a=3 b=4\nbatch %x:f32[6]{a, b}\n%s = psum[axes={a, b}] %x\nreturn s = %s\n");
  const auto any = [](int) { return gpu::GpuOptions{1, {.deterministic = false}, test::by_reference}; };
  CHECK(alike(errors_of(apart, 2, any, platforms(2), 2)) ==
        "the 12 logical devices of the mesh do not divide over 1 GPU in each of 2 processes\n"
        "1, 3, 6 or 12 processes with a GPU each would do");
}

TEST_CASE("a GPU that cannot be set up in one process fails the start of all", "[gpu][placements]") {
  const auto program = test::program_of(summed);
  Platforms platforms = test::make_emulated(2, {.devices = 1});
  platforms[1] = test::make_emulated({.devices = 1, .memory = 1000});
  const auto one = [](int) { return gpu::GpuOptions{1, {}, test::by_reference}; };
  const std::vector<std::string> errors = errors_of(program, 2, one, platforms, 2);
  CHECK(errors[1].find("memory") != errors[1].npos);
  CHECK(errors[0] == "process 1: " + errors[1]);
}

namespace {

// What `on_process` throws in each of two processes, whose ranks would wait for each other for a minute; they end at
// once.
std::vector<std::string> ends_of(Platforms platforms, int each,
                                 const std::function<void(int process, Module& module)>& on_process) {
  INFO(each << " GPUs in each process");
  test::MemoryTransport transport(2);
  std::vector<std::string> errors(2);
  const auto begin = std::chrono::steady_clock::now();
  CHECK_THROWS(test::on_each_process(transport, 2, [&](int p) {
    try {
      const auto module =
          load_in(platforms, {{p, 2}, &transport.end(p)}, {{{"test", test::program_of(summed), 1}}, false, 1, 2},
                  {each, {}, test::by_reference});
      on_process(p, *module);
    } catch (const std::exception& error) {
      errors[static_cast<std::size_t>(p)] = error.what();
      throw;
    }
  }));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  CHECK(transport.watching() == 0);
  return errors;
}

}  // namespace

TEST_CASE("collectives end when a process is gone, long before they would give up", "[gpu][placements]") {
  for (const int each : {1, 2}) {
    auto platforms = test::make_emulated(2, {.devices = each, .patience = std::chrono::minutes(1)});
    const auto errors = ends_of(std::move(platforms), each, [](int process, Module& module) {
      module.wait(module.submit(0, 0));
      if (process == 1) throw std::runtime_error("gone");
      module.wait(module.submit(0, 0));
    });
    CHECK(errors == std::vector<std::string>{"another placement has failed", "gone"});
  }
}

TEST_CASE("a GPU that fails while processes join their communicators ends the load of all others at once",
          "[gpu][placements]") {
  for (const int each : {1, 2}) {
    auto platforms = test::make_emulated(2, {.devices = each, .patience = std::chrono::minutes(1)});
    test::calls_of(*platforms[1]).before_communicator = [&](int rank) {
      if (rank == 2 * each - 1) fail_running("no more memory");
    };
    const auto errors = ends_of(std::move(platforms), each, [](int, Module&) {});
    CHECK(errors[0] == "another placement has failed");
    CHECK(errors[1].find("no more memory") != errors[1].npos);
  }
}

TEST_CASE("processes of a host divide the GPUs that they find", "[gpu]") {
  const auto share = [](int gpus, int process, int processes) {
    const gpu::GpuRange own = gpu::gpus_of_process(gpus, {process, processes});
    return std::pair(own.first, own.count);
  };
  CHECK(share(4, 0, 1) == std::pair(0, 4));
  CHECK(share(4, 0, 2) == std::pair(0, 2));
  CHECK(share(4, 1, 2) == std::pair(2, 2));
  CHECK(share(8, 3, 4) == std::pair(6, 2));
  // One is left over.
  CHECK(share(3, 1, 2) == std::pair(1, 1));
  CHECK(share(1, 1, 2) == std::pair(0, 1));
}

}  // namespace pmaptrain
