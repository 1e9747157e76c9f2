// Sweeps in several processes of a launcher, as threads of this one.
#include "core/sweep/runners.h"

#include <atomic>
#include <csignal>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/machine.h"
#include "core/runtime/mpi/job.h"
#include "core/sweep/messages.h"
#include "core/sweep/plan.h"
#include "core/sweep/run.h"
#include "tests/catch.h"
#include "tests/runtime/placements.h"
#include "tests/sweep/trials.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
namespace fs = std::filesystem;

namespace {

// The processes of a launcher on one host.
struct RunnersOfTest {
  explicit RunnersOfTest(int count)
      : transport(count), stops(static_cast<std::size_t>(count)), trials(static_cast<std::size_t>(count)) {}

  // Calls `f` in process 0, with the trials of all processes.
  template <class F>
  void run(F&& f) {
    test::on_each_process(transport, static_cast<int>(trials.size()), [&](int process) {
      const auto at = static_cast<std::size_t>(process);
      const Processes processes{{process, static_cast<int>(trials.size())}, &transport.end(process)};
      if (process != 0) return sweep::serve(processes, trials[at], stops[at]);
      std::vector<sweep::Runner> all;
      for (std::size_t p = 0; p < trials.size(); ++p) all.push_back({.host = "node" + std::to_string(p), .cores = 2});
      sweep::Runners runners(processes, all, trials[at], [this](int signal) { stops[0] = signal; });
      f(runners);
    });
  }

  std::vector<sweep::Row> sweep(const SweepFolder& folder, const spec::Sweep& sweep, const std::string& name,
                                bool resume = false) {
    sweep::SweepOptions options;
    options.folder = folder.path(name);
    options.how.resume = resume;
    options.stop = stops.data();
    std::vector<sweep::Row> rows;
    run([&](sweep::Runners& runners) { rows = sweep::run_sweep(sweep, options, runners); });
    return rows;
  }

  test::MemoryTransport transport;
  std::vector<std::atomic<int>> stops;  // by process: the signal that came to it
  std::vector<CalledTrials> trials;
};

}  // namespace

TEST_CASE("trials that are divided over processes have the bits of those of one process", "[sweep][placements]") {
  const bool vectorize = GENERATE(false, true);
  const SweepFolder folder;
  const spec::Sweep sweep = folder.sweep(halved, vectorize);
  CalledTrials alone;
  const std::string expected = results_of(folder.path("one"), folder.run(sweep, "one", alone));
  for (const int processes : {2, 3}) {
    RunnersOfTest job(processes);
    const std::string name = "of-" + std::to_string(processes);
    CHECK(results_of(folder.path(name), job.sweep(folder, sweep, name)) == expected);
    std::int64_t calls = 0;
    for (const CalledTrials& trials : job.trials) {
      CHECK(trials.calls > 0);
      CHECK(trials.most_at_once <= 2);
      calls += trials.calls;
    }
    // Of trials that are trained together, every process has an ensemble of each of the two programs, in three rungs.
    CHECK((vectorize ? calls <= 2 * 3 * processes : calls == 8 + 4 + 2));
  }
}

TEST_CASE("a sweep goes on in another number of processes to the same values", "[sweep][placements]") {
  const bool vectorize = GENERATE(false, true);
  const SweepFolder folder;
  const spec::Sweep sweep = folder.sweep(halved, vectorize);
  CalledTrials alone;
  const std::string expected = results_of(folder.path("one"), folder.run(sweep, "one", alone));
  for (const int processes : {2, 3}) {
    RunnersOfTest job(processes);
    job.trials.front().instead = [&](std::size_t /*job*/, const auto& /*arguments*/) -> std::optional<sweep::Exit> {
      if (job.trials.front().calls <= processes - 1) return std::nullopt;
      throw Killed{};
    };
    CHECK_THROWS_AS(job.sweep(folder, sweep, "killed", true), Killed);
  }
  CalledTrials last;
  CHECK(results_of(folder.path("killed"), folder.run(sweep, "killed", last, true)) == expected);
  CHECK(last.calls > 0);
}

TEST_CASE("a signal to one process stops the trials of all, and the sweep goes on", "[sweep][placements]") {
  const SweepFolder folder;
  const spec::Sweep sweep = folder.sweep(halved);
  CalledTrials alone;
  const std::string expected = results_of(folder.path("one"), folder.run(sweep, "one", alone));
  RunnersOfTest job(3);
  job.trials[2].instead = [&](std::size_t /*job*/, const auto& /*arguments*/) {
    job.stops[2] = SIGTERM;
    return std::nullopt;
  };
  std::int64_t waiting = 0;
  for (const sweep::Row& row : job.sweep(folder, sweep, "stopped")) {
    CHECK(row.status != sweep::Status::running);
    waiting += row.status == sweep::Status::waiting || row.status == sweep::Status::stopped ? 1 : 0;
  }
  CHECK(job.stops[0] == SIGTERM);
  CHECK(waiting > 0);
  RunnersOfTest next(2);
  CHECK(results_of(folder.path("stopped"), next.sweep(folder, sweep, "stopped", true)) == expected);
}

TEST_CASE("a process that cannot start a trial is named, and the sweep ends so that it can go on",
          "[sweep][placements]") {
  const SweepFolder folder;
  const spec::Sweep sweep = folder.sweep("parameters: {optimizer.learning_rate: {choice: [0.01, 0.05, 0.1]}}\n");
  RunnersOfTest job(2);
  job.trials[1].starts = [] { fail_resource("a trial cannot be started: no processes are left"); };
  CHECK(error_of([&] { job.sweep(folder, sweep, "sweep"); }) ==
        "error: process 1 (node1): a trial cannot be started: no processes are left\n"
        "  help: --resume goes on with the sweep\n");
  RunnersOfTest next(2);
  for (const sweep::Row& row : next.sweep(folder, sweep, "sweep", true)) CHECK(row.status == sweep::Status::done);
}

TEST_CASE("a process that does not see the folder of a sweep or its data is named before a trial starts",
          "[sweep][placements]") {
  const SweepFolder folder;
  const spec::Sweep sweep = folder.sweep("parameters: {optimizer.learning_rate: {choice: [0.01, 0.05]}}\n");
  RunnersOfTest job(3);
  const std::string path = folder.path("unseen");
  job.transport.tamper = [&path](int /*from*/, int to, std::vector<std::byte>& message) {
    const std::string text(reinterpret_cast<const char*>(message.data()), message.size());
    if (const std::size_t at = text.find(path); to == 2 && at != std::string::npos) message[at + 1] = std::byte{'-'};
  };
  CHECK(error_of([&] { job.sweep(folder, sweep, "unseen"); }) ==
        "error: process 2 (node2) does not see the sweep's folder '" + path +
            "'\n  help: every process writes the run folders of its trials there: --dir DIR names a folder on a file "
            "system that all hosts share\n");
  for (const CalledTrials& trials : job.trials) CHECK(trials.calls == 0);
  std::set<std::string> left;
  for (const auto& entry : fs::directory_iterator(path)) left.insert(entry.path().filename().string());
  CHECK(left == std::set<std::string>{".pmaptrain-sweep", "configs", "ensembles", "trials"});
  // Nothing is recorded yet, so it is no sweep to go on with.
  RunnersOfTest next(2);
  for (const sweep::Row& row : next.sweep(folder, sweep, "unseen", true)) CHECK(row.status == sweep::Status::done);

  RunnersOfTest reads(2);
  CHECK(error_of([&] {
          reads.run([&](sweep::Runners& runners) { runners.prepare(folder.path(""), {"/none/images.npy"}, {}); });
        }) ==
        "error: process 1 (node1) does not see '/none/images.npy', which the trials read\n"
        "  help: it must be readable at the same path in every process\n");
}

TEST_CASE("the processes of a host divide its cores and its memory, unless they are bound to cores of their own",
          "[sweep]") {
  const auto cores_of = [](const std::vector<sweep::RunnerFacts>& facts) {
    std::vector<int> cores;
    for (const sweep::Runner& runner : sweep::runners_of(facts)) cores.push_back(runner.cores);
    return cores;
  };
  const std::vector<int> four{0, 1, 2, 3};
  CHECK(cores_of({{"a", "", four, 0, 100}}) == std::vector{4});
  CHECK(cores_of({{"a", "", four, 0, 100}, {"a", "", four, 0, 100}}) == std::vector{2, 2});
  CHECK(cores_of({{"a", "", four, 0, 100}, {"b", "", four, 0, 100}}) == std::vector{4, 4});
  CHECK(cores_of({{"a", "", {0, 1, 2}, 0, 100}, {"a", "", {3}, 0, 100}}) == std::vector{3, 1});
  CHECK(cores_of({{"a", "", {0, 1}, 0, 100}, {"a", "", {0, 1}, 0, 100}, {"a", "", {0, 1}, 0, 100}}) ==
        std::vector{1, 1, 1});
  CHECK(cores_of({{"a", "", {0, 1, 2}, 0, 9}, {"a", "", {0, 1, 2}, 0, 9}, {"a", "", {0, 1, 2}, 0, 9}}) ==
        std::vector{1, 1, 1});
  CHECK(cores_of({{"a", "", four, 3, 100}}) == std::vector{3});
  CHECK(cores_of({{"a", "", four, 2, 100}, {"a", "", four, 2, 100}}) == std::vector{1, 1});

  const auto runners = sweep::runners_of(std::vector<sweep::RunnerFacts>{
      {"a", "0", four, 0, 100}, {"a", "1", four, 0, 100}, {"a", "0", four, 0, 100}, {"b", "0", four, 0, 100}});
  CHECK(runners[0].sharers == 3);
  CHECK(runners[0].memory == 33);
  CHECK(runners[3].memory == 100);
  CHECK((runners[0].has_gpus && runners[1].has_gpus && !runners[2].has_gpus && runners[3].has_gpus));
  CHECK_FALSE(sweep::runners_of(std::vector<sweep::RunnerFacts>{{"a", "", four, 0, 100}}).front().memory);
  CHECK(sweep::own_facts().cores.size() == static_cast<std::size_t>(affinity_cores()));
}

TEST_CASE("max_concurrent counts the runs of all processes, and memory those of each", "[sweep]") {
  const SweepFolder folder;
  const auto runs_of = [&](const std::string& keys, const std::vector<sweep::Runner>& runners, std::size_t memory = 1,
                           bool on_gpus = false) {
    const spec::Sweep sweep = folder.sweep(halved + keys);
    sweep::SweepPlan plan = sweep::plan_sweep(sweep, 1);
    for (sweep::TrialProgram& program : plan.programs) {
      program.memory = memory;
      program.available = 100;
      program.on_gpus = on_gpus;
      program.speed_up = 1;
    }
    std::string text;
    for (const sweep::Concurrency& one : sweep::concurrency_of(sweep, plan, runners)) {
      text += std::to_string(one.runs) + "x" + std::to_string(one.workers) + " ";
    }
    text += "|";
    for (const sweep::Concurrency& one : sweep::one_each(sweep, plan, runners)) text += " " + std::to_string(one.runs);
    return text;
  };
  const std::vector<sweep::Runner> one{{.cores = 4}}, two{{.cores = 2}, {.cores = 4}};
  CHECK(runs_of("", one) == "4x1 | 1");
  CHECK(runs_of("max_concurrent: 3\n", one) == "3x1 | 1");
  CHECK(runs_of("max_concurrent: 30\n", one) == "8x1 | 1");
  CHECK(runs_of("", one, 40) == "2x2 | 1");
  CHECK(runs_of("", one, 400) == "1x4 | 1");
  CHECK(runs_of("", two) == "2x1 4x1 | 1 1");
  CHECK(runs_of("max_concurrent: 3\n", two) == "1x2 2x2 | 1 1");
  CHECK(runs_of("max_concurrent: 1\n", two) == "0x2 1x4 | 1 0");
  CHECK(runs_of("max_concurrent: 8\n", two) == "3x1 5x1 | 1 1");
  CHECK(runs_of("", {{.cores = 4, .memory = 50}, {.cores = 4, .memory = 10}}, 20) == "2x2 0x4 | 1 1");
  CHECK(runs_of("", {{.cores = 4}, {.cores = 4, .has_gpus = false}}, 1, true) == "1x4 0x4 | 1 0");
}

TEST_CASE("messages between the processes of a sweep keep every byte", "[sweep]") {
  const std::string any("a\0\xff\n", 4);
  sweep::Request request;
  request.paths = {any, ""};
  request.timeout = 2.5;
  request.starts = {{3, {"run", any}}, {4, {}}};
  request.stop = true;
  const sweep::Request asked = sweep::request_from(sweep::text_of(request));
  CHECK(asked.paths == request.paths);
  CHECK(asked.timeout == 2.5);
  REQUIRE(asked.starts.size() == 2);
  CHECK((asked.starts[0].job == 3 && asked.starts[0].arguments == request.starts[0].arguments));
  CHECK((asked.stop && !asked.over));
  const sweep::Answer answer =
      sweep::answer_from(sweep::text_of(sweep::Answer{{5}, {{7, -1, SIGKILL, any, ""}}, SIGTERM, "no room"}));
  CHECK(answer.missing == std::vector<std::size_t>{5});
  REQUIRE(answer.ended.size() == 1);
  const sweep::Exit& exit = answer.ended.front();
  CHECK((exit.job == 7 && exit.status == -1 && exit.signal == SIGKILL && exit.out == any && exit.err.empty()));
  CHECK((answer.signal == SIGTERM && answer.problem == "no room"));
}

TEST_CASE("a run that a process of a launcher starts is not told of the launcher's job", "[sweep]") {
  for (const char* const variable : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_FD", "SLURM_STEP_NUM_TASKS"}) {
    CHECK(tells_of_job(variable));
  }
  for (const char* const variable : {"PATH", "TMPDIR", "CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "OMP_NUM_THREADS"}) {
    CHECK_FALSE(tells_of_job(variable));
  }
}
