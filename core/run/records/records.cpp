#include "core/run/records/records.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>
#include <type_traits>
#include <variant>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/run/records/final_report.h"
#include "core/run/records/matrix_json.h"

namespace pmaptrain::run {
namespace {

using OrderedJson = nlohmann::ordered_json;

// A JSON object or other value that records whether every number in it was finite.
class Object {
 public:
  Object() = default;
  static Object null() { return Object(nullptr); }
  static Object list() { return Object(OrderedJson::array()); }

  void add(const std::string& key, double value) {
    finite_ = finite_ && std::isfinite(value);
    json_[key] = std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
  }
  template <class T>
  requires(!std::is_floating_point_v<T>) void add(const std::string& key, T value) { json_[key] = std::move(value); }
  // Measures of many classes may be many, so they are appended without a search for an existing name.
  void add(const Measures& measures) {
    auto& members = json_.get_ref<OrderedJson::object_t&>();
    for (const auto& [name, value] : measures) {
      finite_ = finite_ && (std::isfinite(value) || may_be_undefined(name));
      members.emplace_back(name, std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr));
    }
  }
  void add(const std::string& key, const Object& object) {
    finite_ = finite_ && object.finite_;
    json_[key] = object.json_;
  }
  // Appends an element to a list.
  void append(const Object& object) {
    finite_ = finite_ && object.finite_;
    json_.push_back(object.json_);
  }
  std::string text(int indent) {
    if (!finite_) json_["finite"] = false;
    return json_text(json_, indent);
  }

 private:
  explicit Object(OrderedJson json) : json_(std::move(json)) {}

  OrderedJson json_ = OrderedJson::object();
  bool finite_ = true;
};

template <class E>
Object object_for(const char* name, const E& event) {
  Object object;
  object.add("event", name);
  object.add("step", event.step);
  object.add("epoch", event.epoch);
  if (event.member) object.add("member", *event.member);
  return object;
}

Object object_of(const Logged& logged) {
  Object object = object_for("step", logged);
  object.add(logged.measures);
  object.add("learning_rate", logged.learning_rate);
  object.add("grad_norm", logged.grad_norm);
  object.add("examples_per_second", logged.examples_per_second);
  object.add("seconds", logged.seconds);
  return object;
}

Object object_of(const EpochEnded& epoch) {
  Object object = object_for("epoch", epoch);
  object.add(epoch.measures);
  object.add("examples", epoch.examples);
  object.add("seconds", epoch.seconds);
  return object;
}

Object object_of(const Evaluated& evaluated) {
  Object object = object_for("eval", evaluated);
  object.add("split", evaluated.split);
  if (!evaluated.checkpoint.empty()) object.add("checkpoint", evaluated.checkpoint);
  object.add(evaluated.measures);
  object.add("examples", evaluated.examples);
  object.add("seconds", evaluated.seconds);
  return object;
}

// A number as a JSON number, a schedule as its YAML text.
OrderedJson json_of_yaml(const std::string& value) {
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  return error == std::errc() && end == value.data() + value.size() ? OrderedJson(number) : OrderedJson(value);
}

void add_change(Object& object, const Changed& changed) {
  object.add("key", changed.key);
  object.add("before", json_of_yaml(changed.before));
  object.add("value", json_of_yaml(changed.value));
}

Object object_of(const Changed& changed) {
  Object object;
  object.add("event", "change");
  object.add("step", changed.step);
  object.add("epoch", changed.epoch);
  add_change(object, changed);
  return object;
}

Object changes_of(const Ended& ended) {
  Object list = Object::list();
  for (const Changed& changed : ended.changes) {
    Object object;
    object.add("step", changed.step);
    add_change(object, changed);
    list.append(object);
  }
  return list;
}

void add_splits(Object& all, const SplitMeasures& splits, const Confusions& confusions) {
  for (const auto& [split, measures] : splits) {
    Object object;
    object.add(measures);
    if (const auto found = confusions.find(split); found != confusions.end()) {
      object.add("confusion_matrix", matrix_json(found->second));
    }
    all.add(split, object);
  }
}

Object final_of(const MemberEnded& member) {
  Object all;
  add_splits(all, member.final_measures, member.confusions);
  return all;
}

Object selected_of(const MemberEnded& member) {
  const Selected selected =
      member.selected.value_or(Selected{"last", member.steps, member.final_measures, member.confusions});
  Object object;
  object.add("checkpoint", selected.checkpoint);
  object.add("step", selected.step);
  add_splits(object, selected.measures, selected.confusions);
  return object;
}

Object best_of(const MemberEnded& member) {
  if (!member.best) return Object::null();
  Object best;
  best.add("step", member.best->step);
  best.add("metric", member.best->metric);
  best.add("value", member.best->value);
  return best;
}

// A JSON number if the text is a number.
OrderedJson value_of(const std::string& text) {
  OrderedJson number = try_parse_json(text);
  return number.is_number() ? number : OrderedJson(text);
}

Object end_of(const MemberEnded& member) {
  Object end;
  end.add("steps", member.steps);
  end.add("steps_skipped", member.steps_skipped);
  Object varied;
  for (const auto& [path, value] : member.varied) varied.add(path, value_of(value));
  if (!member.varied.empty()) end.add("varied", varied);
  end.add("finished", member.reason.empty() ? OrderedJson(nullptr) : OrderedJson(member.reason));
  return end;
}

// A list by member; without an ensemble, the object of the only member.
Object of_members(const Ended& ended, Object (*of_member)(const MemberEnded&)) {
  if (!ended.is_ensemble) return of_member(ended.members.empty() ? MemberEnded{} : ended.members.front());
  Object list = Object::list();
  for (const MemberEnded& member : ended.members) list.append(of_member(member));
  return list;
}

constexpr int one_line = -1;

template <class E>
void add_lines(std::string& lines, const Event& event) {
  const auto* const of_members = std::get_if<std::vector<E>>(&event);
  if (of_members == nullptr) return;
  for (const E& of_member : *of_members) lines += object_of(of_member).text(one_line) + "\n";
}

}  // namespace

nlohmann::ordered_json matrix_json(const std::vector<std::vector<double>>& matrix) {
  OrderedJson rows = OrderedJson::array();
  for (const std::vector<double>& row : matrix) {
    OrderedJson& numbers = rows.emplace_back(OrderedJson::array());
    for (const double value : row) {
      const bool is_count = value == std::floor(value) && value < 0x1p53;
      numbers.push_back(is_count ? OrderedJson(static_cast<std::int64_t>(value)) : OrderedJson(value));
    }
  }
  return rows;
}

std::string metrics_lines(const Event& event) {
  std::string lines;
  add_lines<Logged>(lines, event);
  add_lines<EpochEnded>(lines, event);
  add_lines<Evaluated>(lines, event);
  if (const auto* const changed = std::get_if<Changed>(&event)) lines = object_of(*changed).text(one_line) + "\n";
  return lines;
}

namespace {

// Returns the path itself if the current directory was removed.
std::string absolute_path(const std::string& path) {
  std::error_code error;
  const std::filesystem::path found = std::filesystem::absolute(path, error);
  return error ? path : found.lexically_normal().string();
}

}  // namespace

std::string summary_json(const Ended& ended, const std::string& version) {
  Object summary;
  summary.add("name", ended.name);
  summary.add("run_dir", absolute_path(ended.run_dir));
  summary.add("config_hash", ended.config_hash);
  summary.add("parameters", ended.parameters);
  summary.add("status", ended.status);
  summary.add("reason", ended.reason);
  summary.add("exit_status", ended.exit_status);
  summary.add("steps", ended.steps);
  summary.add("steps_skipped", ended.steps_skipped());
  summary.add("epochs", ended.epochs);
  summary.add("examples_seen", ended.examples_seen);
  summary.add("examples_skipped", ended.examples_skipped);
  summary.add("final", of_members(ended, final_of));
  summary.add("selected", of_members(ended, selected_of));
  if (ended.normalised_targets) summary.add("normalised_targets", true);
  if (!ended.classes.empty()) summary.add("classes", ended.classes);
  if (!ended.changes.empty()) summary.add("changes", changes_of(ended));
  summary.add("best", of_members(ended, best_of));
  if (ended.is_ensemble) summary.add("members", of_members(ended, end_of));
  summary.add("seconds", ended.seconds);
  summary.add("version", version);
  return summary.text(2) + "\n";
}

namespace {

std::string yaml_of_json(const OrderedJson& value) {
  return value.is_string() ? value.get<std::string>() : exact(value.get<double>());
}

std::vector<Changed> to_changes(const OrderedJson& list) {
  std::vector<Changed> changes;
  for (const OrderedJson& one : list) {
    changes.push_back({one.at("step").get<std::int64_t>(), 1, one.at("key").get<std::string>(),
                       yaml_of_json(one.at("before")), yaml_of_json(one.at("value"))});
  }
  return changes;
}

double to_number(const OrderedJson& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

void load_splits(const OrderedJson& splits, SplitMeasures& into, Confusions& confusions) {
  for (const auto& [split, object] : splits.items()) {
    if (!object.is_object()) continue;
    Measures measures;
    for (const auto& [name, value] : object.items()) {
      if (name == "confusion_matrix") {
        confusions[split] = value.get<Confusions::mapped_type>();
      } else if (name != "finite") {
        measures.emplace_back(name, to_number(value));
      }
    }
    into.emplace_back(split, std::move(measures));
  }
}

void load_selected(const OrderedJson& object, MemberEnded& member) {
  const auto checkpoint = object.at("checkpoint").get<std::string>();
  if (checkpoint == "last") return;
  Selected& selected = member.selected.emplace(Selected{checkpoint, object.at("step").get<std::int64_t>(), {}});
  load_splits(object, selected.measures, selected.confusions);
}

// Earlier versions evaluated test under the best parameters alone, and wrote it as final.
void move_test_of_best(MemberEnded& member) {
  if (!member.best || member.final_measures.empty() || member.final_measures.back().first != "test") return;
  Selected& selected = member.selected.emplace(Selected{"best", member.best->step, {member.final_measures.back()}});
  member.final_measures.pop_back();
  if (const auto found = member.confusions.find("test"); found != member.confusions.end()) {
    selected.confusions.insert(member.confusions.extract(found));
  }
}

}  // namespace

std::optional<Ended> parse_summary(const std::string& text) {
  try {
    const OrderedJson json = parse_json(text);
    Ended ended;
    ended.name = json.value("name", "");
    ended.run_dir = json.value("run_dir", "");
    ended.config_hash = json.value("config_hash", "");
    ended.parameters = json.value("parameters", std::int64_t{0});
    ended.status = json.at("status").get<std::string>();
    ended.reason = json.at("reason").get<std::string>();
    ended.exit_status = json.at("exit_status").get<int>();
    ended.steps = json.at("steps").get<std::int64_t>();
    ended.epochs = json.at("epochs").get<std::int64_t>();
    ended.examples_seen = json.at("examples_seen").get<std::int64_t>();
    ended.examples_skipped = json.at("examples_skipped").get<std::int64_t>();
    ended.is_ensemble = json.contains("members");
    ended.members.resize(ended.is_ensemble ? json.at("members").size() : 1);
    for (std::size_t m = 0; m < ended.members.size(); ++m) {
      const auto of_member = [&](const char* key) { return ended.is_ensemble ? json.at(key).at(m) : json.at(key); };
      MemberEnded& member = ended.members[m];
      load_splits(of_member("final"), member.final_measures, member.confusions);
      if (const OrderedJson best = of_member("best"); !best.is_null()) {
        member.best = Best{best.at("step").get<std::int64_t>(), best.at("metric").get<std::string>(),
                           to_number(best.at("value"))};
      }
      const OrderedJson end = ended.is_ensemble ? of_member("members") : json;
      member.steps = end.at("steps").get<std::int64_t>();
      member.steps_skipped = end.at("steps_skipped").get<std::int64_t>();
      if (end.contains("varied")) {
        for (const auto& [path, value] : end.at("varied").items()) {
          member.varied.emplace_back(path, value.is_string() ? value.get<std::string>() : json_text(value));
        }
      }
      if (ended.is_ensemble && !end.at("finished").is_null()) member.reason = end.at("finished").get<std::string>();
      if (json.contains("selected")) load_selected(of_member("selected"), member);
      if (json.value("test_parameters", "") == "best") move_test_of_best(member);
    }
    ended.normalised_targets = json.value("normalised_targets", false);
    ended.classes = json.value("classes", std::vector<std::string>());
    if (json.contains("changes")) ended.changes = to_changes(json.at("changes"));
    ended.seconds = json.at("seconds").get<double>();
    return ended;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void Records::on(const Event& event) {
  if (is_silent_) return;
  write_metrics(event);

  std::string text;
  for (const Line& shown : lines_(event)) text += shown.text() + "\n";
  const auto* const ended = std::get_if<Ended>(&event);
  if (ended != nullptr) text += "\n" + final_report(*ended) + how_to_continue(*ended);
  if (!text.empty()) log_.write(text);

  if (ended != nullptr) write_summary(*ended);
}

void Records::write_metrics(const Event& event) {
  if (is_silent_) return;
  if (const std::string lines = metrics_lines(event); !lines.empty()) metrics_.write(lines);
  if (tensorboard_) tensorboard_->on(event);
}

void Records::write_summary(const Ended& ended) {
  if (is_silent_) return;
  try {
    write_whole(summary_, summary_json(ended, version_));
  } catch (const Error& error) {
    summary_problem_ = error.diagnostics().front().message;
    warn_(summary_problem_);
  }
}

void Records::flush() {
  if (is_silent_) return;
  metrics_.flush();
  log_.flush();
  if (tensorboard_) tensorboard_->flush();
}

std::vector<std::string> Records::missing() const {
  if (is_silent_) return {};
  std::vector<std::string> sentences{metrics_.missing(), log_.missing(), summary_problem_};
  std::erase(sentences, "");
  if (tensorboard_) {
    for (std::string& sentence : tensorboard_->missing()) sentences.push_back(std::move(sentence));
  }
  return sentences;
}

}  // namespace pmaptrain::run
