// Processes that are killed or stopped by signals continue as tests/run/kills.cpp shows of recorded changes.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "tests/app/process.h"
#include "tests/catch.h"
#include "tests/train/long_run.h"

using namespace pmaptrain::tests;
using nlohmann::json;
using pmaptrain::testing::differences;
using pmaptrain::testing::Kept;
using pmaptrain::testing::LongRun;
namespace fs = std::filesystem;

namespace {

constexpr int all_steps = 203;  // no multiple of any interval

// Starts a process that resumes the run, and sends it a signal once it has written more than `bytes` of metrics.jsonl,
// or has ended.
Finished signalled(const LongRun& run, int signal, std::uintmax_t bytes) {
  const fs::path metrics = run.path("run") + "/metrics.jsonl";
  Process process(run.command("run", {"--resume"}));
  std::error_code none_yet;
  wait_until([&] { return (fs::file_size(metrics, none_yet) > bytes && !none_yet) || !process.running(); });
  process.send(signal);
  return process.wait();
}

}  // namespace

TEST_CASE("a process that is killed again and again leaves a run that continues to the same bits", "[app][process]") {
  const LongRun run(all_steps);
  run.complete("whole");
  const Kept whole = run.kept("whole");
  const std::uintmax_t bytes = fs::file_size(run.path("whole") + "/metrics.jsonl");
  int kills = 0;
  for (const std::uintmax_t part : {0U, 1U, 2U, 4U, 6U}) {
    const Finished result = signalled(run, SIGKILL, part * bytes / 8);
    INFO(result.err);
    kills += result.signal == SIGKILL ? 1 : 0;
    CHECK((result.signal == SIGKILL || result.status == 0));
  }
  CHECK(kills > 0);
  const Finished result = run_binary(run.command("run", {"--resume", "--workers", "3"}));
  INFO(result.err);
  REQUIRE(result.status == 0);
  CHECK(differences(whole, run.kept("run")) == "");
}

TEST_CASE("a process that SIGTERM stops leaves a run that continues to the same bits", "[app][process]") {
  const LongRun run(all_steps);
  run.complete("whole");
  const Kept whole = run.kept("whole");
  const std::uintmax_t bytes = fs::file_size(run.path("whole") + "/metrics.jsonl");
  for (const std::uintmax_t part : {1U, 4U}) {
    const Finished result = signalled(run, SIGTERM, part * bytes / 8);
    INFO(result.err);
    CHECK((result.signal == SIGTERM || result.status == 0));
    CHECK(json::parse(read_text(run.path("run") + "/summary.json"))["steps"] <= all_steps);
  }
  REQUIRE(run_binary(run.command("run", {"--resume", "--workers", "1"})).status == 0);
  CHECK(differences(whole, run.kept("run")) == "");
  const std::string before = pmaptrain::test::listing(run.path("run"));
  CHECK(run_binary(run.command("run", {"--resume"})).status == 0);
  CHECK(pmaptrain::test::listing(run.path("run")) == before);
}
