// preflight: what is measured between processes, and what is named.
#include "core/report/preflight.h"

#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/runtime/placements.h"

using namespace pmaptrain;
using namespace pmaptrain::report;

namespace {

ProcessFacts facts_of(int process) {
  ProcessFacts facts;
  facts.host = "node" + std::to_string(process / 2);
  facts.pid = 100 + process;
  facts.program = "1.0 abc gcc";
  facts.instruction_set = "AVX2";
  facts.cores = 4;
  facts.free_memory = std::size_t{8} << 30;
  facts.compute_seconds = 0.001;
  return facts;
}

// What each of `processes` finds by a clock of its own, which only messages move: those of process `slow` take 8 ms,
// and the others 0.3 ms, at both ends.
std::vector<Preflight> measured(int processes, int slow) {
  test::MemoryTransport transport(processes);
  std::vector<double> clocks(static_cast<std::size_t>(processes));
  const auto move = [&](int process, int from) {
    clocks[static_cast<std::size_t>(process)] += from == slow ? 8e-3 : 3e-4;
  };
  transport.tamper = [&](int from, int, std::vector<std::byte>&) { move(from, from); };
  transport.received = [&](int from, int to) { move(to, from); };
  std::vector<Preflight> found(static_cast<std::size_t>(processes));
  test::on_each_process(transport, processes, [&](int process) {
    Agreement agreement({{process, processes}, &transport.end(process)});
    const auto p = static_cast<std::size_t>(process);
    found[p] = examine(agreement, facts_of(process),
                       {.rounds = 5, .large_bytes = std::size_t{64} << 10, .seconds = [&, p] { return clocks[p]; }});
  });
  return found;
}

// Four processes with links that are alike.
Preflight four_alike() {
  Preflight preflight;
  for (int p = 0; p < 4; ++p) preflight.processes.push_back(facts_of(p));
  for (int a = 0; a < 4; ++a) {
    for (int b = a + 1; b < 4; ++b) preflight.links.push_back({a, b, 1e-6, 5e9});
  }
  preflight.sums = {{4, 3e-6}, {std::size_t{4} << 20, 2e-3}};
  return preflight;
}

std::vector<std::string> texts_of(const std::vector<Finding>& findings) {
  std::vector<std::string> texts;
  for (const Finding& finding : findings) texts.push_back((finding.is_error ? "error: " : "warning: ") + finding.text);
  return texts;
}

}  // namespace

TEST_CASE("a process that is slow to send is named by all processes, and no other is", "[report][placements]") {
  for (const int slow : {0, 2}) {
    INFO("process " << slow);
    const std::vector<Preflight> found = measured(4, slow);
    for (const Preflight& each : found) {
      REQUIRE(each.links.size() == 6);
      REQUIRE(each.sums.size() == 2);
      CHECK(preflight_json(each) == preflight_json(found.front()));
      bool is_named = false;
      for (const std::string& text : texts_of(each.findings)) {
        INFO(text);
        CHECK(text.starts_with("warning: process " + std::to_string(slow) + " (node" + std::to_string(slow / 2) +
                               ", pid " + std::to_string(100 + slow) + ") is slow: "));
        is_named = is_named || text.find("the latency of its best link is ") != std::string::npos;
      }
      CHECK(is_named);
    }
  }
}

TEST_CASE("one process is examined alone, and two have nothing to be compared with", "[report][placements]") {
  Agreement alone;
  const Preflight one = examine(alone, facts_of(0));
  CHECK(one.links.empty());
  CHECK(one.findings.empty());
  const std::string text = preflight_text(one);
  CHECK(text.starts_with("1 process on 1 host: pmaptrain 1.0 abc gcc, instruction set AVX2\n"));
  CHECK(text.find("no links: mpirun -n 4 pmaptrain preflight measures those between processes\n") != std::string::npos);
  CHECK(text.ends_with("nothing is slow or different\n"));
  CHECK(measured(2, 1).front().findings.empty());
}

TEST_CASE("what is different or slow is named, and is an error where a run would be refused", "[report]") {
  CHECK(findings_of(four_alike()).empty());

  Preflight other = four_alike();
  other.processes[2].program = "1.1 def gcc";
  other.processes[3].instruction_set = "AVX512";
  CHECK(texts_of(findings_of(other)) ==
        std::vector<std::string>{
            "error: the program of process 2 (node1, pid 102) is not that of process 0: 1.1 def gcc and 1.0 abc gcc; "
            "build the same commit with the same compiler everywhere",
            "error: the instruction set of process 3 (node1, pid 103) is not that of process 0: AVX512 and AVX2; "
            "ONEDNN_MAX_CPU_ISA limits it where hosts differ"});

  Preflight data = four_alike();
  for (ProcessFacts& facts : data.processes) facts.data = "17";
  data.processes[1].data = "18";
  data.processes[3].data = "";
  data.processes[3].data_error = "cannot open 'x.npz'";
  CHECK(
      texts_of(findings_of(data)) ==
      std::vector<std::string>{"error: process 3 (node1, pid 103) cannot read the data: cannot open 'x.npz'",
                               "error: the data of process 1 (node0, pid 101) is not that of process 0; every process "
                               "needs the same files at the same path"});

  Preflight slow = four_alike();
  slow.processes[1].compute_seconds = 0.004;
  slow.processes[2].clock_offset = -2.5;
  slow.processes[3].free_memory = std::size_t{1} << 30;
  slow.links[0].latency = 1e-4;   // 0 and 1
  slow.links[1].bandwidth = 1e9;  // 0 and 2
  CHECK(texts_of(findings_of(slow)) ==
        std::vector<std::string>{
            "warning: the clock of process 2 (node1, pid 102) is 2.5 s behind that of process 0",
            "warning: process 3 (node1, pid 103) has 1.0 GiB of free memory, and most have 8.0 GiB",
            "warning: process 1 (node0, pid 101) is slow: it computes for 4.0 times the median",
            "warning: the link between process 0 (node0, pid 100) and process 2 (node1, pid 102) is slow: a large "
            "message takes 5.0 times the median"});
}

TEST_CASE("preflight shows processes, links and sums, as text and as JSON", "[report]") {
  Preflight preflight = four_alike();
  preflight.processes[1].clock_offset = 0.00125;
  preflight.findings = findings_of(preflight);
  CHECK(preflight_text(preflight) ==
        "4 processes on 2 hosts: pmaptrain 1.0 abc gcc, instruction set AVX2\n"
        "  process  host   pid  cores  free memory  computation        clock\n"
        "  0        node0  100      4      8.0 GiB         1 ms\n"
        "  1        node0  101      4      8.0 GiB         1 ms  +0.001250 s\n"
        "  2        node1  102      4      8.0 GiB         1 ms  +0.000000 s\n"
        "  3        node1  103      4      8.0 GiB         1 ms  +0.000000 s\n"
        "\n"
        "links:\n"
        "  processes  latency  bandwidth\n"
        "  0 and 1       1 µs     5 GB/s\n"
        "  0 and 2       1 µs     5 GB/s\n"
        "  0 and 3       1 µs     5 GB/s\n"
        "  1 and 2       1 µs     5 GB/s\n"
        "  1 and 3       1 µs     5 GB/s\n"
        "  2 and 3       1 µs     5 GB/s\n"
        "\n"
        "sum over all processes, as in a step:\n"
        "      4 B  3 µs  1.333 MB/s\n"
        "  4.0 MiB  2 ms  2.097 GB/s\n"
        "\n"
        "nothing is slow or different\n");
  const nlohmann::json document = nlohmann::json::parse(preflight_json(preflight));
  CHECK(document["processes"][1]["clock_offset_seconds"] == 0.00125);
  CHECK(document["links"][5]["processes"] == nlohmann::json{2, 3});
  CHECK(document["sums"][1]["bytes"] == 4194304);
  CHECK(document["findings"].empty());
}
