#include "core/train/record_events.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <variant>

#include "core/base/error.h"
#include "core/train/record_report.h"

namespace pmaptrain::train {
namespace {

using OrderedJson = nlohmann::ordered_json;

// A JSON object that remembers whether every number in it was finite.
class Object {
 public:
  void add(const std::string& key, double value) {
    finite_ = finite_ && std::isfinite(value);
    json_[key] = std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
  }
  template <class T>
  requires(!std::is_floating_point_v<T>) void add(const std::string& key, T value) { json_[key] = std::move(value); }
  void add(const Measures& measures) {
    for (const auto& [name, value] : measures) add(name, value);
  }
  void add(const std::string& key, const Object& object) {
    finite_ = finite_ && object.finite_;
    json_[key] = object.json_;
  }
  std::string text(int indent) {
    if (!finite_) json_["finite"] = false;
    return json_.dump(indent, ' ', false, OrderedJson::error_handler_t::replace);
  }

 private:
  OrderedJson json_ = OrderedJson::object();
  bool finite_ = true;
};

template <class E>
Object object_for(const char* name, const E& event) {
  Object object;
  object.add("event", name);
  object.add("step", event.step);
  object.add("epoch", event.epoch);
  return object;
}

}  // namespace

std::string metrics_line(const Event& event) {
  constexpr int one_line = -1;
  if (const auto* const logged = std::get_if<Logged>(&event)) {
    Object object = object_for("step", *logged);
    object.add(logged->measures);
    object.add("learning_rate", logged->learning_rate);
    object.add("grad_norm", logged->grad_norm);
    object.add("examples_per_second", logged->examples_per_second);
    object.add("seconds", logged->seconds);
    return object.text(one_line);
  }
  if (const auto* const epoch = std::get_if<EpochEnded>(&event)) {
    Object object = object_for("epoch", *epoch);
    object.add(epoch->measures);
    object.add("examples", epoch->examples);
    object.add("seconds", epoch->seconds);
    return object.text(one_line);
  }
  if (const auto* const evaluated = std::get_if<Evaluated>(&event)) {
    Object object = object_for("eval", *evaluated);
    object.add("split", evaluated->split);
    object.add(evaluated->measures);
    object.add("examples", evaluated->examples);
    object.add("seconds", evaluated->seconds);
    return object.text(one_line);
  }
  return "";
}

std::string summary_json(const Ended& ended, const std::string& version) {
  Object final_measures;
  for (const auto& [split, measures] : ended.final_measures) {
    Object object;
    object.add(measures);
    final_measures.add(split, object);
  }
  Object summary;
  summary.add("status", ended.status);
  summary.add("reason", ended.reason);
  summary.add("exit_status", ended.exit_status);
  summary.add("steps", ended.steps);
  summary.add("steps_skipped", ended.steps_skipped);
  summary.add("epochs", ended.epochs);
  summary.add("examples_seen", ended.examples_seen);
  summary.add("examples_skipped", ended.examples_skipped);
  summary.add("final", final_measures);
  if (!ended.test_parameters.empty()) summary.add("test_parameters", ended.test_parameters);
  if (ended.best) {
    Object best;
    best.add("step", ended.best->step);
    best.add("metric", ended.best->metric);
    best.add("value", ended.best->value);
    summary.add("best", best);
  } else {
    summary.add("best", nullptr);
  }
  summary.add("seconds", ended.seconds);
  summary.add("version", version);
  return summary.text(2) + "\n";
}

std::optional<Ended> parse_summary(const std::string& text) {
  const auto number = [](const OrderedJson& value) {
    return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
  };
  try {
    const OrderedJson json = OrderedJson::parse(text);
    Ended ended;
    ended.status = json.at("status").get<std::string>();
    ended.reason = json.at("reason").get<std::string>();
    ended.exit_status = json.at("exit_status").get<int>();
    ended.steps = json.at("steps").get<std::int64_t>();
    ended.steps_skipped = json.at("steps_skipped").get<std::int64_t>();
    ended.epochs = json.at("epochs").get<std::int64_t>();
    ended.examples_seen = json.at("examples_seen").get<std::int64_t>();
    ended.examples_skipped = json.at("examples_skipped").get<std::int64_t>();
    for (const auto& [split, object] : json.at("final").items()) {
      Measures measures;
      for (const auto& [name, value] : object.items()) {
        if (name != "finite") measures.emplace_back(name, number(value));
      }
      ended.final_measures.emplace_back(split, std::move(measures));
    }
    ended.test_parameters = json.value("test_parameters", "");
    if (const OrderedJson& best = json.at("best"); !best.is_null()) {
      ended.best =
          Best{best.at("step").get<std::int64_t>(), best.at("metric").get<std::string>(), number(best.at("value"))};
    }
    ended.seconds = json.at("seconds").get<double>();
    return ended;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void Records::on(const Event& event) {
  const std::string line = metrics_line(event);
  if (!line.empty()) metrics_.write(line + "\n");

  std::string text;
  for (const Line& shown : lines_(event)) text += shown.text() + "\n";
  const auto* const ended = std::get_if<Ended>(&event);
  if (ended != nullptr) text += "\n" + final_report(*ended) + how_to_continue(*ended);
  if (!text.empty()) log_.write(text);

  if (ended != nullptr) write_summary(*ended);
}

void Records::write_summary(const Ended& ended) {
  try {
    write_whole(summary_, summary_json(ended, version_));
  } catch (const Error& error) {
    summary_problem_ = error.diagnostics().front().message;
    warn_(summary_problem_);
  }
}

void Records::flush() {
  metrics_.flush();
  log_.flush();
}

std::vector<std::string> Records::missing() const {
  std::vector<std::string> sentences{metrics_.missing(), log_.missing(), summary_problem_};
  std::erase(sentences, "");
  return sentences;
}

}  // namespace pmaptrain::train
