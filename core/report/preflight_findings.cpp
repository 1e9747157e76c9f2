// What preflight finds in its measurements, and how it shows them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/base/wrap.h"
#include "core/report/json.h"
#include "core/report/preflight.h"

namespace pmaptrain::report {
namespace {

constexpr double slow_factor = 3;
// Clocks are compared only for the times in records.
constexpr double most_clock_offset = 1;
constexpr std::size_t most_links_shown = 28;

std::string seconds_text(double seconds) { return with_prefix(seconds, "s"); }
std::string bandwidth_text(double bytes) { return with_prefix(bytes, "B/s"); }

class Finder {
 public:
  explicit Finder(const Preflight& preflight) : all_(preflight), slow_(preflight.processes.size(), false) {}

  std::vector<Finding> run() {
    find_different("the program", &ProcessFacts::program, "build the same commit with the same compiler everywhere");
    find_different("the instruction set", &ProcessFacts::instruction_set,
                   "ONEDNN_MAX_CPU_ISA limits it where hosts differ");
    for (std::size_t p = 0; p < all_.processes.size(); ++p) {
      const std::string& error = all_.processes[p].data_error;
      if (!error.empty()) add(true, name_of(p) + " cannot read the data: " + error);
    }
    find_different("the data", &ProcessFacts::data, "every process needs the same files at the same path");
    find_clocks();
    find_small_memory();
    find_slow_processes();
    find_slow_links();
    return std::move(findings_);
  }

 private:
  std::string name_of(std::size_t process) const {
    const ProcessFacts& facts = all_.processes[process];
    return fmt::format("process {} ({}, pid {})", process, printable(facts.host), facts.pid);
  }
  void add(bool is_error, std::string text) { findings_.push_back({is_error, std::move(text)}); }

  void find_different(const std::string& what, std::string ProcessFacts::*member, const std::string& help) {
    const ProcessFacts& first = all_.processes.front();
    for (std::size_t p = 1; p < all_.processes.size(); ++p) {
      const ProcessFacts& other = all_.processes[p];
      const bool is_unreadable = !first.data_error.empty() || !other.data_error.empty();
      if (other.*member == first.*member || (member == &ProcessFacts::data && is_unreadable)) continue;
      const bool is_shown = member != &ProcessFacts::data;
      add(true,
          fmt::format("{} of {} is not that of process 0{}; {}", what, name_of(p),
                      is_shown ? ": " + printable(other.*member) + " and " + printable(first.*member) : "", help));
    }
  }

  void find_clocks() {
    for (std::size_t p = 0; p < all_.processes.size(); ++p) {
      const double offset = all_.processes[p].clock_offset;
      if (std::abs(offset) < most_clock_offset) continue;
      add(false, fmt::format("the clock of {} is {} {} that of process 0", name_of(p), seconds_text(std::abs(offset)),
                             offset > 0 ? "ahead of" : "behind"));
    }
  }

  // How many times the median of all a value is, if it is too large; else 0.
  static double times_median(double value, double of_all) { return value > slow_factor * of_all ? value / of_all : 0; }

  void find_small_memory() {
    std::vector<double> free;
    for (const ProcessFacts& facts : all_.processes) free.push_back(static_cast<double>(facts.free_memory));
    const double typical = median_of(free);
    for (std::size_t p = 0; p < free.size(); ++p) {
      if (free[p] * slow_factor >= typical) continue;
      add(false, fmt::format("{} has {} of free memory, and most have {}", name_of(p), human_bytes(free[p]),
                             human_bytes(typical)));
    }
  }

  // `costs`, by process, are larger where a process is slower.
  void find_slow(const std::vector<double>& costs, const std::string& what) {
    const double typical = median_of(costs);
    for (std::size_t p = 0; p < costs.size(); ++p) {
      const double times = times_median(costs[p], typical);
      if (times == 0) continue;
      slow_[p] = true;
      add(false, fmt::format("{} is slow: {} {:.1f} times the median", name_of(p), what, times));
    }
  }

  void find_slow_processes() {
    std::vector<double> computing;
    for (const ProcessFacts& facts : all_.processes) computing.push_back(facts.compute_seconds);
    find_slow(computing, "it computes for");
    if (all_.processes.size() < 3) return;  // both processes have the one link
    const double none = INFINITY;
    std::vector<double> latencies(all_.processes.size(), none), costs(all_.processes.size(), none);
    for (const Link& link : all_.links) {
      for (const int p : {link.a, link.b}) {
        const auto at = static_cast<std::size_t>(p);
        latencies[at] = std::min(latencies[at], link.latency);
        costs[at] = std::min(costs[at], 1 / link.bandwidth);
      }
    }
    find_slow(latencies, "the latency of its best link is");
    find_slow(costs, "a large message takes over its best link");
  }

  // Between processes that are not slow themselves.
  void find_slow_links() {
    std::vector<const Link*> links;
    std::vector<double> latencies, costs;
    for (const Link& link : all_.links) {
      if (slow_[static_cast<std::size_t>(link.a)] || slow_[static_cast<std::size_t>(link.b)]) continue;
      links.push_back(&link);
      latencies.push_back(link.latency);
      costs.push_back(1 / link.bandwidth);
    }
    if (links.size() < 3) return;
    const double typical_latency = median_of(latencies), typical_cost = median_of(costs);
    for (std::size_t i = 0; i < links.size(); ++i) {
      const std::string between = "the link between " + name_of(static_cast<std::size_t>(links[i]->a)) + " and " +
                                  name_of(static_cast<std::size_t>(links[i]->b)) + " is slow: ";
      if (const double times = times_median(latencies[i], typical_latency); times > 0)
        add(false, between + fmt::format("its latency is {:.1f} times the median", times));
      if (const double times = times_median(costs[i], typical_cost); times > 0)
        add(false, between + fmt::format("a large message takes {:.1f} times the median", times));
    }
  }

  const Preflight& all_;
  std::vector<bool> slow_;
  std::vector<Finding> findings_;
};

std::string processes_table(const std::vector<ProcessFacts>& processes) {
  std::vector<std::vector<std::string>> rows{
      {"process", "host", "pid", "cores", "free memory", "computation", "clock"}};
  for (std::size_t p = 0; p < processes.size(); ++p) {
    const ProcessFacts& facts = processes[p];
    rows.push_back({std::to_string(p), printable(facts.host), std::to_string(facts.pid),
                    fmt::format("{:.3g}", facts.cores), human_bytes(facts.free_memory),
                    seconds_text(facts.compute_seconds), p == 0 ? "" : fmt::format("{:+.6f} s", facts.clock_offset)});
  }
  return in_columns(rows, {false, false, true, true, true, true, true});
}

// Of many links the slowest.
std::string links_table(std::vector<Link> links) {
  const std::size_t count = links.size();
  if (count > most_links_shown) {
    std::sort(links.begin(), links.end(), [](const Link& a, const Link& b) { return a.latency > b.latency; });
    links.resize(most_links_shown);
  }
  std::vector<std::vector<std::string>> rows{{"processes", "latency", "bandwidth"}};
  for (const Link& link : links) {
    rows.push_back(
        {fmt::format("{} and {}", link.a, link.b), seconds_text(link.latency), bandwidth_text(link.bandwidth)});
  }
  const std::string out = in_columns(rows, {false, true, true});
  return count > links.size()
             ? out + fmt::format("  the {} of {} links with the longest latency\n", links.size(), count)
             : out;
}

}  // namespace

std::vector<Finding> findings_of(const Preflight& preflight) { return Finder(preflight).run(); }

std::string preflight_text(const Preflight& preflight) {
  std::set<std::string> hosts;
  for (const ProcessFacts& facts : preflight.processes) hosts.insert(facts.host);
  const ProcessFacts& first = preflight.processes.front();
  std::string out = fmt::format("{} process{} on {}: pmaptrain {}, instruction set {}\n", preflight.processes.size(),
                                preflight.processes.size() == 1 ? "" : "es", counted(std::ssize(hosts), "host"),
                                printable(first.program), printable(first.instruction_set));
  out += processes_table(preflight.processes);
  if (preflight.links.empty()) {
    out += "\nno links: mpirun -n 4 pmaptrain preflight measures those between processes\n";
  } else {
    out += "\nlinks:\n" + links_table(preflight.links) + "\nsum over all processes, as in a step:\n";
    std::vector<std::vector<std::string>> rows;
    for (const AllReduceTime& sum : preflight.sums) {
      rows.push_back({human_bytes(sum.bytes), seconds_text(sum.seconds),
                      bandwidth_text(static_cast<double>(sum.bytes) / sum.seconds)});
    }
    out += in_columns(rows, {true, true, true});
  }
  out += "\n";
  if (!first.data.empty() && preflight.findings.empty()) out += "the data is readable and the same in every process\n";
  for (const Finding& finding : preflight.findings) {
    out += std::string(finding.is_error ? "error: " : "warning: ") + finding.text + "\n";
  }
  if (preflight.findings.empty()) out += "nothing is slow or different\n";
  return out;
}

std::string preflight_json(const Preflight& preflight) {
  Json json;
  json["processes"] = Json::array();
  for (const ProcessFacts& facts : preflight.processes) {
    json["processes"].push_back({{"host", facts.host},
                                 {"pid", facts.pid},
                                 {"program", facts.program},
                                 {"instruction_set", facts.instruction_set},
                                 {"cores", facts.cores},
                                 {"free_memory_bytes", facts.free_memory},
                                 {"computation_seconds", facts.compute_seconds},
                                 {"clock_offset_seconds", facts.clock_offset},
                                 {"data_error", facts.data_error.empty() ? Json(nullptr) : Json(facts.data_error)}});
  }
  json["links"] = Json::array();
  for (const Link& link : preflight.links) {
    json["links"].push_back(
        {{"processes", {link.a, link.b}}, {"latency_seconds", link.latency}, {"bytes_per_second", link.bandwidth}});
  }
  json["sums"] = Json::array();
  for (const AllReduceTime& sum : preflight.sums) {
    json["sums"].push_back({{"bytes", sum.bytes}, {"seconds", sum.seconds}});
  }
  json["findings"] = Json::array();
  for (const Finding& finding : preflight.findings) {
    json["findings"].push_back({{"error", finding.is_error}, {"message", finding.text}});
  }
  return to_text(json);
}

}  // namespace pmaptrain::report
