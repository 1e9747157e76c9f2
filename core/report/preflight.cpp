#include "core/report/preflight.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "core/base/clock.h"
#include "core/base/json.h"
#include "core/base/machine.h"
#include "core/graph/text.h"
#include "core/kernel/in_f32.h"
#include "core/ops/all.h"
#include "core/report/json.h"
#include "core/runtime/backends.h"
#include "core/setup/processes.h"

namespace pmaptrain::report {
namespace {

double wall_clock() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double monotonic_seconds() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

// The least time of a few, so that a pause does not count.
double time_of_computation() {
  constexpr int rounds = 10, steps = 200000;
  double least = std::numeric_limits<double>::infinity();
  volatile double kept = 2;  // so that the loop is not removed
  for (int round = 0; round < rounds; ++round) {
    double value = kept;
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < steps; ++i) value = value * 0.999 + 1e-3;
    least = std::min(least, seconds_since(begin));
    kept = value;
  }
  return least;
}

Json json_of_facts(const ProcessFacts& facts) {
  return {{"host", facts.host},
          {"pid", facts.pid},
          {"program", facts.program},
          {"instruction_set", facts.instruction_set},
          {"cores", facts.cores},
          {"free_memory_bytes", facts.free_memory},
          {"compute_seconds", facts.compute_seconds},
          {"data", facts.data},
          {"data_error", facts.data_error}};
}

ProcessFacts facts_from(const std::string& text) {
  const Json json = parse_json(text);
  ProcessFacts facts;
  facts.host = json["host"];
  facts.pid = json["pid"];
  facts.program = json["program"];
  facts.instruction_set = json["instruction_set"];
  facts.cores = json["cores"];
  facts.free_memory = json["free_memory_bytes"];
  facts.compute_seconds = json["compute_seconds"];
  facts.data = json["data"];
  facts.data_error = json["data_error"];
  return facts;
}

// Measures between this process and others. All processes call the same functions in the same order.
class Links {
 public:
  Links(Agreement& agreement, const PreflightOptions& options)
      : agreement_(agreement), options_(options), memory_(options.large_bytes) {}

  struct Measured {
    double latency = 0, bandwidth = 0, clock_offset = 0;
  };

  // Between two processes, while all others wait. The two of them return what they measure.
  Measured measure(int a, int b) {
    agreement_.agree({});
    const int own = agreement_.processes().placement.process;
    if (own != a && own != b) return {};
    return own == a ? ask(b) : answer(a);
  }

 private:
  Transport& transport() const { return *agreement_.processes().transport; }
  void send(int to, std::span<const std::byte> bytes) {
    const Transport::Outgoing message{to, bytes.data(), bytes.size()};
    transport().exchange({&message, 1}, {});
  }
  void receive(int from, std::span<std::byte> bytes) {
    const Transport::Incoming message{from, bytes.data(), bytes.size()};
    transport().exchange({}, {&message, 1});
  }

  // Sends small messages, which the other process answers with the time of its clock; then large ones.
  Measured ask(int other) {
    Measured found;
    std::vector<double> latencies;
    double shortest = std::numeric_limits<double>::infinity();
    for (int i = -1; i < options_.rounds; ++i) {  // the first round may set up the connection
      double theirs = 0;
      const double sent = wall_clock();
      const double begin = options_.seconds();
      send(other, std::as_bytes(std::span(&sent, 1)));
      receive(other, std::as_writable_bytes(std::span(&theirs, 1)));
      const double there_and_back = options_.seconds() - begin;
      if (i < 0) continue;
      latencies.push_back(there_and_back / 2);
      if (there_and_back >= shortest) continue;
      shortest = there_and_back;
      found.clock_offset = theirs - (sent + there_and_back / 2);
    }
    found.latency = median_of(latencies);
    for (int i = -1; i < large_rounds; ++i) {
      double done = 0;
      const double begin = options_.seconds();
      send(other, memory_);
      receive(other, std::as_writable_bytes(std::span(&done, 1)));
      const double seconds = options_.seconds() - begin;
      if (i >= 0) found.bandwidth = std::max(found.bandwidth, static_cast<double>(memory_.size()) / seconds);
    }
    const std::array<double, 3> all{found.latency, found.bandwidth, found.clock_offset};
    send(other, std::as_bytes(std::span(all)));
    return found;
  }

  Measured answer(int other) {
    for (int i = -1; i < options_.rounds; ++i) {
      double theirs = 0;
      receive(other, std::as_writable_bytes(std::span(&theirs, 1)));
      const double own = wall_clock();
      send(other, std::as_bytes(std::span(&own, 1)));
    }
    for (int i = -1; i < large_rounds; ++i) {
      const double done = 1;
      receive(other, memory_);
      send(other, std::as_bytes(std::span(&done, 1)));
    }
    std::array<double, 3> all{};
    receive(other, std::as_writable_bytes(std::span(all)));
    return {all[0], all[1], all[2]};
  }

  static constexpr int large_rounds = 5;

  Agreement& agreement_;
  PreflightOptions options_;
  std::vector<std::byte> memory_;
};

// The median time of a step that only adds `elements` numbers of each process, by the program of such a step.
double time_of_sum(Agreement& agreement, std::int64_t elements, const PreflightOptions& how) {
  const int processes = agreement.processes().placement.processes;
  const std::string shape = "f32[" + std::to_string(elements) + "]";
  const std::string text = "mesh processes=" + std::to_string(processes) + "\nbatch %x:" + shape +
                           "{processes}\n%s = psum[axes={processes}] %x\nreturn s = %s\n";
  const auto program = std::make_shared<const Program>(parse_program(text, "preflight", all_ops(), {}));
  Source source{{{"sum", program, 1}}};
  source.blocks = processes;
  BackendOptions options;
  options.workers = 1;
  const std::unique_ptr<Module> module =
      std::move(*make_backend(BackendKind::cpu, options)->plan(std::move(source), agreement.processes())).load();
  std::vector<double> seconds;
  for (int i = -1; i < how.rounds; ++i) {
    agreement.agree({});
    const double begin = how.seconds();
    module->wait(module->submit(0, 0));
    if (i >= 0) seconds.push_back(how.seconds() - begin);
  }
  return median_of(seconds);
}

}  // namespace

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

ProcessFacts facts_of_this_process() {
  ProcessFacts facts;
  facts.host = host_name();
  facts.pid = getpid();
  facts.program = setup::program_identity();
  facts.instruction_set = instruction_set();
  facts.cores = allowed_cores();
  facts.free_memory = available_memory();
  facts.compute_seconds = time_of_computation();
  return facts;
}

Preflight examine(Agreement& agreement, const ProcessFacts& own, PreflightOptions options) {
  if (!options.seconds) options.seconds = monotonic_seconds;
  const Processes& processes = agreement.processes();
  const int count = processes.placement.processes;
  agreement.agree({});
  Preflight found;
  for (const std::string& text : texts_of_all(processes, json_text(json_of_facts(own)))) {
    found.processes.push_back(facts_from(text));
  }
  if (count > 1) {
    Links links(agreement, options);
    Json measured = Json::array();
    for (int a = 0; a < count; ++a) {
      for (int b = a + 1; b < count; ++b) {
        const Links::Measured link = links.measure(a, b);
        if (processes.placement.process == a) measured.push_back({link.latency, link.bandwidth, link.clock_offset});
      }
    }
    const std::vector<std::string> of_all = texts_of_all(processes, json_text(measured));
    for (int a = 0; a < count; ++a) {
      const Json of_one = parse_json(of_all[static_cast<std::size_t>(a)]);
      for (int b = a + 1; b < count; ++b) {
        const Json& link = of_one[static_cast<std::size_t>(b - a - 1)];
        found.links.push_back({a, b, link[0], link[1]});
        if (a == 0) found.processes[static_cast<std::size_t>(b)].clock_offset = link[2];
      }
    }
    for (const std::size_t bytes : {sizeof(float), options.large_bytes}) {
      double seconds = time_of_sum(agreement, static_cast<std::int64_t>(bytes / sizeof(float)), options);
      processes.transport->broadcast(std::as_writable_bytes(std::span(&seconds, 1)));
      found.sums.push_back({bytes, seconds});
    }
  }
  found.findings = findings_of(found);
  return found;
}

}  // namespace pmaptrain::report
