#include "core/report/runs/metrics_file.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/data/file.h"
#include "core/report/json.h"

namespace pmaptrain::report {
namespace {

[[noreturn]] void fail_line(const std::string& file, int line, const std::string& why) {
  Diagnostic diagnostic{"data", {}, "this is no line of metrics.jsonl: " + why};
  diagnostic.place.file = file;
  diagnostic.place.line = line;
  diagnostic.help = "the file was damaged or edited; without this line it can be read";
  throw Error(ExitStatus::data, std::move(diagnostic));
}

class MetricsReader {
 public:
  explicit MetricsReader(std::string file) : file_(std::move(file)) {}

  void add(std::string_view text) {
    ++line_;
    Json json = try_parse_json(text);
    if (json.is_discarded() || !json.is_object()) fail_line(file_, line_, "it is no JSON object");
    try {
      const auto event = json.at("event").get<std::string>();
      const auto step = json.at("step").get<std::int64_t>();
      if (event == "change") {
        metrics_.changes.push_back({step, json.value("epoch", std::int64_t{1}), json.at("key").get<std::string>(),
                                    yaml_of(json.at("before")), yaml_of(json.at("value"))});
      } else if (json.contains("checkpoint")) {
        // Parameters of an earlier step, evaluated at the end of the run: summary.json has them.
      } else if (event == "step" || event == "epoch" || event == "eval") {
        add_measures(json, event, step);
      }  // else a later version wrote it
    } catch (const Json::exception&) {
      fail_line(file_, line_, "it has no event and step, or a measure that is no number");
    }
  }

  Metrics finish() {
    for (Series& series : metrics_.series) {
      if (series.event != "step") set_seconds(series);
    }
    return std::move(metrics_);
  }

 private:
  static std::string yaml_of(const Json& value) {
    return value.is_string() ? value.get<std::string>() : exact(value.get<double>());
  }

  void add_measures(const Json& json, const std::string& event, std::int64_t step) {
    run::MemberNumber member;
    if (json.contains("member")) member = json.at("member").get<std::int64_t>();
    const std::string split = event == "eval" ? json.at("split").get<std::string>() : "train";
    const double seconds = event == "step" ? json.at("seconds").get<double>() : 0;
    const std::string prefix = event + "\n" + split + "\n" + std::to_string(member.value_or(-1)) + "\n";
    for (const auto& [name, value] : json.items()) {
      const bool describes = name == "event" || name == "step" || name == "epoch" || name == "member" ||
                             name == "split" || name == "examples" || name == "seconds" || name == "finite";
      if (describes) continue;
      const auto [at, is_new] = places_.try_emplace(prefix + name, metrics_.series.size());
      if (is_new) metrics_.series.push_back({event, split, name, member, {}, {}, {}});
      Series& series = metrics_.series[at->second];
      series.steps.push_back(step);
      series.seconds.push_back(seconds);
      series.values.push_back(value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
    }
  }

  // Steps are logged in ascending order, at the first and the last one too.
  void set_seconds(Series& series) const {
    const Series* const times = metrics_.find("step", "train", "loss", series.member);
    if (times == nullptr || times->steps.empty()) return;
    for (std::size_t i = 0; i < series.steps.size(); ++i) {
      const std::int64_t step = series.steps[i];
      const auto after = static_cast<std::size_t>(std::lower_bound(times->steps.begin(), times->steps.end(), step) -
                                                  times->steps.begin());
      if (after == times->steps.size() || times->steps[after] == step) {
        series.seconds[i] = times->seconds[std::min(after, times->steps.size() - 1)];
        continue;
      }
      const std::int64_t before_step = after > 0 ? times->steps[after - 1] : 0;
      const double before = after > 0 ? times->seconds[after - 1] : 0;
      const auto share =
          static_cast<double>(step - before_step) / static_cast<double>(times->steps[after] - before_step);
      series.seconds[i] = before + share * (times->seconds[after] - before);
    }
  }

  std::string file_;
  int line_ = 0;
  Metrics metrics_;
  std::unordered_map<std::string, std::size_t> places_;
};

}  // namespace

const Series* Metrics::find(std::string_view event, std::string_view split, std::string_view measure,
                            run::MemberNumber member) const {
  const auto found = std::find_if(series.begin(), series.end(), [&](const Series& one) {
    return one.event == event && one.split == split && one.measure == measure && (!member || one.member == member);
  });
  return found == series.end() ? nullptr : &*found;
}

Metrics read_metrics(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    fail_data("there is no '" + file.string() + "'",
              "the file was moved or removed, or the run ended before its first line");
  }
  MetricsReader reader(file.string());
  // A run that has just begun has no lines yet.
  if (std::filesystem::is_regular_file(file, error) && std::filesystem::file_size(file, error) == 0) {
    return reader.finish();
  }
  const std::vector<std::byte> bytes = data::read_file(file.string());
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (std::size_t end = 0; (end = rest.find('\n')) != std::string_view::npos; rest.remove_prefix(end + 1)) {
    reader.add(rest.substr(0, end));
  }
  return reader.finish();
}

}  // namespace pmaptrain::report
