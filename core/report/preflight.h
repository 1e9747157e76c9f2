// Checks the processes of a launcher before a run: what they are, how fast they compute and send, and what differs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/runtime/agreement.h"

namespace pmaptrain::report {

// What a process says of itself.
struct ProcessFacts {
  std::string host;
  std::int64_t pid = 0;
  std::string program;          // version, commit and compiler
  std::string instruction_set;  // of the kernel library
  double cores = 0;             // that it may use
  std::size_t free_memory = 0;
  double compute_seconds = 0;  // that a fixed computation takes on one core
  std::string data;            // equal for equal data; empty if no data is checked
  std::string data_error;      // why the data cannot be read
  double clock_offset = 0;     // seconds by which its clock is ahead of that of process 0
};

// Between two processes, `a` < `b`.
struct Link {
  int a = 0, b = 0;
  double latency = 0;    // seconds that a small message takes
  double bandwidth = 0;  // bytes a second of a large message, the best of a few
};

// A sum over one logical device of each process, as a step has it.
struct AllReduceTime {
  std::size_t bytes = 0;
  double seconds = 0;
};

struct Finding {
  bool is_error = false;  // whether a run would be refused
  std::string text;
};

struct Preflight {
  std::vector<ProcessFacts> processes;
  std::vector<Link> links;
  std::vector<AllReduceTime> sums;
  std::vector<Finding> findings;
};

struct PreflightOptions {
  int rounds = 30;  // of small messages over a link, and of sums, of which the median counts
  std::size_t large_bytes = std::size_t{4} << 20;
  std::function<double()> seconds;  // the clock of links and sums; the monotonic one if empty
};

// Of an even number of values the smaller one of the two in the middle. There must be at least one.
double median_of(std::vector<double> values);

// The facts of this process, but the data.
ProcessFacts facts_of_this_process();

// Gathers the facts of all processes, and measures. Every process calls it, and each gets everything.
Preflight examine(Agreement& agreement, const ProcessFacts& own, PreflightOptions options = {});

// What is different, or slow: more than three times the median. A process is slow if its best link is. One of two
// processes has nothing to be compared with.
std::vector<Finding> findings_of(const Preflight& preflight);

std::string preflight_text(const Preflight& preflight);
std::string preflight_json(const Preflight& preflight);

}  // namespace pmaptrain::report
