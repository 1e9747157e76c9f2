#include "core/report/runs/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/data/file.h"
#include "core/report/json.h"
#include "core/train/trace_report.h"

namespace pmaptrain::report {
namespace {

[[noreturn]] void fail_trace(const std::string& file, int line) {
  Diagnostic diagnostic{"data", {}, "the trace is damaged"};
  diagnostic.place.file = file;
  diagnostic.place.line = line;
  diagnostic.help = "trace the run again: pmaptrain run CONFIG --trace FILE";
  throw Error(ExitStatus::data, std::move(diagnostic));
}

// Events are lines of their own, so that a file of 150 MB is never in memory as a tree.
class TraceReader {
 public:
  explicit TraceReader(std::string file) : file_(std::move(file)) {}

  void add(std::string_view line) {
    ++line_;
    if (line_ == 1) return add_head(line);
    if (!line.starts_with("{\"ph\":\"X\"")) return;
    if (line.ends_with(',')) line.remove_suffix(1);
    const Json event = try_parse_json(line);
    try {
      const auto category = event.at("cat").get<std::string>();
      const double seconds = event.at("dur").get<double>() * 1e-6;
      if (event.at("pid").get<int>() != workers || category == "step" || category == "task") return;
      if (category == "wait") {
        table_.waits += seconds;
        return;
      }
      const auto name = event.at("name").get<std::string>();
      seconds_[{name == category ? "" : name, category}] += seconds;
    } catch (const Json::exception&) {
      fail_trace(file_, line_);
    }
  }

  TraceTable finish() {
    for (const auto& [key, sum] : seconds_) table_.items.push_back({key.first, key.second, sum});
    std::stable_sort(table_.items.begin(), table_.items.end(),
                     [](const TraceTable::Item& a, const TraceTable::Item& b) { return a.seconds > b.seconds; });
    return std::move(table_);
  }

 private:
  static constexpr int workers = 1;  // the number of their rows' process

  // {"otherData":{"program":"pmaptrain","run":"cnn","steps":"2..6"},
  void add_head(std::string_view line) {
    if (line.ends_with(',')) line.remove_suffix(1);
    const Json head = try_parse_json(std::string(line) + "}");
    if (head.is_discarded()) fail_trace(file_, 1);
    try {
      table_.run = head.at("otherData").at("run").get<std::string>();
      table_.steps = head.at("otherData").at("steps").get<std::string>();
    } catch (const Json::exception&) {
      fail_trace(file_, 1);
    }
  }

  std::string file_;
  int line_ = 0;
  TraceTable table_;
  std::map<std::pair<std::string, std::string>, double> seconds_;
};

}  // namespace

double TraceTable::total() const {
  double sum = 0;
  for (const Item& item : items) sum += item.seconds;
  return sum;
}

TraceTable read_trace(const std::filesystem::path& file) {
  const data::Bytes bytes = data::map_file(file.string());
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!rest.starts_with(train::trace_head)) {
    fail_data(fmt::format("'{}' is no trace of pmaptrain", file.string()),
              "pmaptrain run CONFIG --trace FILE writes one");
  }
  if (!rest.ends_with("]}\n")) {
    fail_data(fmt::format("the trace '{}' is not whole", file.string()),
              "trace the run again: pmaptrain run CONFIG --trace FILE");
  }
  TraceReader reader(file.string());
  for (std::size_t end = 0; (end = rest.find('\n')) != std::string_view::npos; rest.remove_prefix(end + 1)) {
    reader.add(rest.substr(0, end));
  }
  bytes.check_intact();
  return reader.finish();
}

}  // namespace pmaptrain::report
