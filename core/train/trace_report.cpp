#include "core/train/trace_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/json.h"

namespace pmaptrain::train {
namespace {

using Time = Clock::time_point;

// ---- the work for each logical device

struct DeviceSpan {
  Time begin, end;
  std::int64_t pieces = 0;
  std::int32_t first_row = -1, last_row = -1;  // numbers of the first and the last instruction
};

using DeviceKey = std::pair<std::int64_t, std::int64_t>;  // member, device

bool is_of(const Mesh& mesh, const InstanceRange& instances, std::int64_t device) {
  const std::int64_t position = mesh.position(device, instances.axes);
  return instances.first <= position && position < instances.first + instances.count;
}

// Workers may work on pieces of one device at the same time. Overlapping spans become one.
std::vector<DeviceSpan> merged(std::vector<DeviceSpan> spans) {
  std::sort(spans.begin(), spans.end(), [](const DeviceSpan& a, const DeviceSpan& b) { return a.begin < b.begin; });
  std::vector<DeviceSpan> all;
  for (const DeviceSpan& span : spans) {
    if (all.empty() || span.begin >= all.back().end) {
      all.push_back(span);
      continue;
    }
    DeviceSpan& into = all.back();
    into.pieces += span.pieces;
    into.first_row = std::min(into.first_row, span.first_row);
    into.last_row = std::max(into.last_row, span.last_row);
    into.end = std::max(into.end, span.end);
  }
  return all;
}

std::map<DeviceKey, std::vector<DeviceSpan>> device_spans(const TracedRun& traced, const TracedStep& step) {
  std::map<DeviceKey, std::vector<DeviceSpan>> found;
  for (const std::vector<WorkSpan>& spans : step.trace.workers) {
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const WorkSpan& task = spans[i];
      if (task.kind != WorkKind::task || task.of.count == 0) continue;
      DeviceSpan span{task.begin, task.end, 1};
      for (std::size_t j = i + 1; j < spans.size() && spans[j].kind != WorkKind::task; ++j) {
        if (spans[j].kind != WorkKind::instruction) continue;
        if (span.first_row < 0) span.first_row = spans[j].row;
        span.last_row = std::max(span.last_row, spans[j].row);
      }
      for (std::int64_t device = 0; device < traced.mesh.devices(); ++device) {
        if (is_of(traced.mesh, task.of, device)) found[{task.member, device}].push_back(span);
      }
    }
  }
  for (auto& [key, spans] : found) spans = merged(std::move(spans));
  return found;
}

// from_of(): the layer in the config; empty for an instruction without an equation. name_of(): the layer, or else the
// instruction's own name.
std::string from_of(const InstructionReport& row) { return row.equation == nullptr ? "" : row.equation->origin->scope; }
std::string name_of(const InstructionReport& row) {
  std::string from = from_of(row);
  return from.empty() ? row.name : from;
}

// The time at which a worker had nothing left to do: it then waits for the last work of others.
Time end_of(const TracedStep& step, const std::vector<WorkSpan>& spans) {
  Time end = step.trace.begin;
  for (const WorkSpan& span : spans) end = std::max(end, span.end);
  return end;
}

// ---- the file

enum Process : int { workers = 1, devices = 2, host = 3 };
enum HostRow : int { loop_row = 0, loader_row = 1, checkpoints_row = 2, host_rows = 3 };
// Perfetto requires numbers of rows that are not 0, not the number of a process, and not used by any other process.
constexpr std::int64_t first_row_number = 10;

class Writer {
 public:
  explicit Writer(const TracedRun& traced) : traced_(traced) {
    out_ = fmt::format("{},\"run\":{},\"steps\":\"{}..{}\"}},\n\"displayTimeUnit\":\"ms\",\n\"traceEvents\":[",
                       trace_head, json_string(traced.name), traced.steps.front().step, traced.steps.back().step);
    for (const InstructionReport& row : traced.instructions) {
      names_.push_back(json_string(name_of(row)));
      ops_.push_back(json_string(row.name));
    }
    zero_ = traced.steps.front().trace.begin;
    for (const auto* const spans : {&traced.loop, &traced.loader, &traced.checkpoints}) {
      for (const Span& span : *spans) zero_ = std::min(zero_, span.begin);
    }
  }

  std::string write() {
    add_names();
    for (const TracedStep& step : traced_.steps) {
      for (std::size_t w = 0; w < step.trace.workers.size(); ++w) add_worker(step, static_cast<std::int64_t>(w));
      for (const auto& [key, spans] : device_spans(traced_, step)) add_device(step.step, device_row(key), spans);
    }
    add_host(loop_row, traced_.loop);
    add_host(loader_row, traced_.loader);
    add_host(checkpoints_row, traced_.checkpoints);
    return std::move(out_) + "\n]}\n";
  }

 private:
  void add(const std::string& event) {
    out_ += is_first_ ? "\n" : ",\n";
    out_ += event;
    is_first_ = false;
  }

  void add_process(int process, const char* name) {
    add(fmt::format(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":"{}"}}}})", process, name));
    add(fmt::format(R"({{"ph":"M","pid":{0},"name":"process_sort_index","args":{{"sort_index":{0}}}}})", process));
  }
  void add_row(int process, std::int64_t row, const std::string& name) {
    add(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"{}"}}}})", process, row,
                    name));
    add(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})", process,
                    row, row));
  }

  void add_names() {
    add_process(workers, "workers");
    for (std::int64_t w = 0; w < workers_count(); ++w) add_row(workers, worker_row(w), fmt::format("worker {}", w));
    bool communicates = false;
    for (const TracedStep& step : traced_.steps) {
      for (const std::vector<WorkSpan>& spans : step.trace.workers) {
        for (const WorkSpan& span : spans) {
          members_ = std::max(members_, span.member + 1);
          communicates = communicates || span.kind == WorkKind::collective;
        }
      }
    }
    for (std::int64_t w = 0; communicates && w < workers_count(); ++w) {
      add_row(workers, collectives_row(w), fmt::format("worker {}, collectives", w));
    }
    add_process(devices, "logical devices");
    for (std::int64_t member = 0; member < members_; ++member) {
      for (std::int64_t device = 0; device < traced_.mesh.devices(); ++device) {
        const std::string of_member = traced_.is_ensemble ? fmt::format("member {}, ", member) : "";
        add_row(devices, device_row({member, device}), of_member + fmt::format("device {}", device));
      }
    }
    add_process(host, "host");
    add_row(host, host_row(loop_row), "training loop");
    add_row(host, host_row(loader_row), "loader");
    add_row(host, host_row(checkpoints_row), "checkpoint writer");
  }

  std::int64_t workers_count() const { return std::ssize(traced_.steps.front().trace.workers); }
  std::int64_t worker_row(std::int64_t worker) const { return first_row_number + worker; }
  std::int64_t device_row(const DeviceKey& key) const {
    return worker_row(workers_count()) + key.first * traced_.mesh.devices() + key.second;
  }
  std::int64_t host_row(std::int64_t row) const { return device_row({members_, 0}) + row; }

  std::int64_t collectives_row(std::int64_t worker) const { return host_row(host_rows) + worker; }

  // The time in microseconds, exactly.
  static std::string micro(Clock::duration time) {
    const std::int64_t ns = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
    return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
  }

  // `name` and `category` are quoted, `args` is an object without its braces.
  void add_span(int process, std::int64_t row, const std::string& name, const std::string& category, Time begin,
                Time end, const std::string& args) {
    add(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"cat":{},"args":{{{}}}}})", process, row,
                    micro(begin - zero_), micro(end - begin), name, category, args));
  }

  void add_worker(const TracedStep& step, std::int64_t worker) {
    const std::vector<WorkSpan>& spans = step.trace.workers[static_cast<std::size_t>(worker)];
    const std::string number = fmt::format(R"("step":{})", step.step);
    add_span(workers, worker_row(worker), fmt::format("\"step {}\"", step.step), "\"step\"", step.trace.begin,
             step.trace.end, number);
    for (const WorkSpan& span : spans) {
      std::string args = number;
      if (traced_.is_ensemble) args += fmt::format(R"(,"member":{})", span.member);
      if (span.kind == WorkKind::wait) {
        add_span(workers, worker_row(worker), "\"wait for other workers\"", "\"wait\"", span.begin, span.end, args);
      } else if (span.kind == WorkKind::task) {
        if (span.of.count > 0) args += fmt::format(R"(,"devices":{})", json_string(devices_text(span.of)));
        add_span(workers, worker_row(worker), "\"task\"", "\"task\"", span.begin, span.end, args);
      } else {
        const auto row = static_cast<std::size_t>(span.row);
        const InstructionReport& report = traced_.instructions[row];
        args += fmt::format(R"(,"op":{},"result":{},"by":{})", ops_[row], json_string(report.result),
                            json_string(report.implementation));
        const bool beside = span.kind == WorkKind::collective;
        add_span(workers, beside ? collectives_row(worker) : worker_row(worker), names_[row], ops_[row], span.begin,
                 span.end, args);
      }
    }
    const Time end = end_of(step, spans);
    if (end < step.trace.end) {
      add_span(workers, worker_row(worker), "\"wait for other workers\"", "\"wait\"", end, step.trace.end, number);
    }
  }

  // "2", "0 to 3"
  std::string devices_text(const InstanceRange& of) const {
    std::int64_t first = -1, last = -1;
    for (std::int64_t device = 0; device < traced_.mesh.devices(); ++device) {
      if (!is_of(traced_.mesh, of, device)) continue;
      if (first < 0) first = device;
      last = device;
    }
    return first == last ? std::to_string(first) : fmt::format("{} to {}", first, last);
  }

  void add_device(std::int64_t step, std::int64_t row, const std::vector<DeviceSpan>& spans) {
    for (const DeviceSpan& span : spans) {
      std::string name = "work";
      if (span.first_row >= 0) {
        const auto& rows = traced_.instructions;
        const std::string first = name_of(rows[static_cast<std::size_t>(span.first_row)]);
        const std::string last = name_of(rows[static_cast<std::size_t>(span.last_row)]);
        name = first == last ? first : fmt::format("{} to {}", first, last);
      }
      add_span(devices, row, json_string(name), "\"device\"", span.begin, span.end,
               fmt::format(R"("step":{},"pieces":{})", step, span.pieces));
    }
  }

  void add_host(HostRow row, const std::vector<Span>& spans) {
    for (const Span& span : spans) {
      add_span(host, host_row(row), json_string(span.name), "\"host\"", span.begin, span.end,
               fmt::format(R"("step":{})", span.step));
    }
  }

  const TracedRun& traced_;
  std::vector<std::string> names_, ops_;  // of the instructions, quoted
  std::int64_t members_ = 1;
  Time zero_;
  std::string out_;
  bool is_first_ = true;
};

}  // namespace

std::string chrome_trace(const TracedRun& traced) { return Writer(traced).write(); }

TraceSummary summarise(const TracedRun& traced) {
  TraceSummary summary;
  summary.steps = {traced.steps.front().step, traced.steps.back().step};
  summary.seconds = seconds_between(traced.steps.front().trace.begin, traced.steps.back().trace.end);
  summary.workers.resize(traced.steps.front().trace.workers.size());
  std::vector<double> seconds(traced.instructions.size());
  std::map<DeviceKey, double> of_devices;
  for (const TracedStep& step : traced.steps) {
    for (std::size_t w = 0; w < summary.workers.size(); ++w) {
      const std::vector<WorkSpan>& spans = step.trace.workers[w];
      TraceSummary::Worker& worker = summary.workers[w];
      worker.waits += seconds_between(end_of(step, spans), step.trace.end);
      for (const WorkSpan& span : spans) {
        const double took = seconds_between(span.begin, span.end);
        if (span.kind == WorkKind::wait) worker.waits += took;
        if (span.kind != WorkKind::instruction) continue;
        worker.busy += took;
        seconds[static_cast<std::size_t>(span.row)] += took;
      }
    }
    for (const auto& [key, spans] : device_spans(traced, step)) {
      for (const DeviceSpan& span : spans) of_devices[key] += seconds_between(span.begin, span.end);
    }
  }
  for (TraceSummary::Worker& worker : summary.workers) {
    worker.busy /= summary.seconds;
    worker.waits /= summary.seconds;
  }
  for (const auto& [key, busy] : of_devices) summary.devices.push_back(busy / summary.seconds);
  std::map<std::pair<std::string, std::string>, double> items;
  for (std::size_t row = 0; row < seconds.size(); ++row) {
    if (seconds[row] > 0) items[{from_of(traced.instructions[row]), traced.instructions[row].name}] += seconds[row];
  }
  for (const auto& [key, sum] : items) summary.items.push_back({key.first, key.second, sum});
  std::stable_sort(summary.items.begin(), summary.items.end(),
                   [](const TraceSummary::Item& a, const TraceSummary::Item& b) { return a.seconds > b.seconds; });
  return summary;
}

}  // namespace pmaptrain::train
