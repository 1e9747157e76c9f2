#include "core/run/run_state.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <type_traits>

#include "core/base/error.h"
#include "core/base/version.h"
#include "core/run/files/file_writer.h"

namespace pmaptrain::train {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Measures may be infinite or NaN, which JSON has no numbers for.
OrderedJson number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

double to_number(const OrderedJson& value) {
  if (value.is_number()) return value.get<double>();
  const auto text = value.get<std::string>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf" || text == "-inf") {
    return text == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  }
  throw std::invalid_argument("no number");
}

OrderedJson measures_json(const Measures& measures) {
  OrderedJson object = OrderedJson::object();
  for (const auto& [name, value] : measures) object[name] = number(value);
  return object;
}

Measures to_measures(const OrderedJson& object) {
  Measures measures;
  for (const auto& [name, value] : object.items()) measures.emplace_back(name, to_number(value));
  return measures;
}

// Each part of the state with its name in the document. `Visit` stores it, or loads it; `by_member` takes the parts
// that each member of an ensemble has of its own.
template <class State, class Visit, class ByMember>
void for_each_part(State& state, Visit&& visit, ByMember&& by_member) {
  visit("step", state.step);
  by_member("member_steps", &MemberState::steps);
  by_member("steps_skipped", &MemberState::steps_skipped);
  by_member("updates", &MemberState::updates);
  visit("example_cursor", state.example_cursor);
  visit("schedule_steps", state.schedule_steps);
  by_member("schedule_began", &MemberState::schedule_began);
  visit("changes", state.changes);
  visit("seconds", state.seconds);
  visit("epoch_seconds", state.epoch_seconds);
  visit("metrics_bytes", state.metrics_bytes);
  by_member("logged_step", &MemberState::logged_step);
  by_member("final", &MemberState::measures);
  by_member("confusion_matrix", &MemberState::confusions);
  by_member("evaluated_step", &MemberState::evaluated_step);
  by_member("last_step", &MemberState::last_step);
  by_member("last_epoch", &MemberState::last_epoch);
  visit("evaluation_is_due", state.evaluation_is_due);
  by_member("best", &MemberState::best);
  by_member("lost_best", &MemberState::lost_best);
  visit("best_mode", state.best_mode);
  by_member("early_stopping", &MemberState::early_stopping);
  by_member("reduce_on_plateau", &MemberState::plateau);
  by_member("loss_sums", &MemberState::loss_sums);
  by_member("finished", &MemberState::finished);
  by_member("finished_why", &MemberState::finished_why);
  by_member("left_behind", &MemberState::left_behind);
  by_member("seed", &MemberState::seed);
  by_member("data_seed", &MemberState::data_seed);
  visit("encoding", state.encoding);
  visit("input", state.input);
  visit("target", state.target);
  visit("batch_size", state.batch_size);
  visit("train_examples", state.train_examples);
  visit("config_hash", state.config_hash);
  visit("checksums", state.checksums);
}

template <class T>
OrderedJson stored(const T& value) {
  return value;
}
OrderedJson stored(const double& value) { return number(value); }
OrderedJson stored(const std::optional<std::int64_t>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}
OrderedJson stored(const std::vector<spec::Change>& changes) {
  OrderedJson list = OrderedJson::array();
  for (const spec::Change& change : changes) {
    list.push_back({{"step", change.step}, {"key", change.key}, {"value", change.value}});
  }
  return list;
}
OrderedJson stored(const std::map<std::string, Measures>& measures) {
  OrderedJson object = OrderedJson::object();
  for (const auto& [split, of_split] : measures) object[split] = measures_json(of_split);
  return object;
}
OrderedJson stored(const std::optional<Best>& best) {
  if (!best) return nullptr;
  return {{"step", best->step}, {"metric", best->metric}, {"value", number(best->value)}};
}

OrderedJson stored(const std::optional<Logged>& logged) {
  if (!logged) return nullptr;
  return {{"step", logged->step},
          {"epoch", logged->epoch},
          {"measures", measures_json(logged->measures)},
          {"learning_rate", number(logged->learning_rate)},
          {"grad_norm", number(logged->grad_norm)}};
}
OrderedJson stored(const std::optional<EpochEnded>& epoch) {
  if (!epoch) return nullptr;
  return {{"step", epoch->step},
          {"epoch", epoch->epoch},
          {"measures", measures_json(epoch->measures)},
          {"examples", epoch->examples}};
}
OrderedJson stored(const MemberState::Waiting& waiting) {
  const OrderedJson best = waiting.best ? number(*waiting.best) : OrderedJson(nullptr);
  return {{"metric", waiting.metric}, {"mode", waiting.mode}, {"best", best}, {"waited", waiting.waited}};
}
OrderedJson stored(const MemberState::Plateau& plateau) {
  const PlateauState& state = plateau.state;
  const OrderedJson best = state.best ? number(*state.best) : OrderedJson(nullptr);
  return {{"metric", plateau.metric},
          {"best", best},
          {"bad_evaluations", state.bad_evaluations},
          {"cooldown", state.cooldown},
          {"scale", number(state.scale)}};
}
OrderedJson stored(const std::optional<LossSums>& watched) {
  if (!watched) return nullptr;
  const LossSums& sums = *watched;
  OrderedJson means = OrderedJson::array();
  for (const LossMean& mean : sums.means) means.push_back({mean.from, mean.to, number(mean.loss)});
  return {{"means", means},
          {"line", sums.line},
          {"at_line", {number(sums.loss_at_line), number(sums.examples_at_line)}},
          {"ended", {number(sums.loss_ended), number(sums.examples_ended)}}};
}

OrderedJson stored(const std::optional<data::Encoding::Statistics>& statistics) {
  if (!statistics) return nullptr;
  return {{"mean", statistics->mean}, {"std", statistics->std}};
}

OrderedJson stored(const data::Encoding& encoding) {
  OrderedJson columns = OrderedJson::array();
  for (const auto& [name, categories, missing] : encoding.columns) {
    const OrderedJson mean = missing ? OrderedJson(*missing) : OrderedJson(nullptr);
    columns.push_back({{"name", name}, {"categories", categories}, {"missing", mean}});
  }
  OrderedJson skipped = OrderedJson::array();
  for (const auto& [split, row, reason, file] : encoding.skipped) {
    skipped.push_back({{"split", split}, {"row", row}, {"reason", reason}});
    if (!file.empty()) skipped.back()["file"] = file;
  }
  return {{"columns", columns},
          {"classes", encoding.classes},
          {"image", encoding.image},
          {"statistics", stored(encoding.statistics)},
          {"targets", stored(encoding.targets)},
          {"class_weights", encoding.class_weights},
          {"skipped", skipped}};
}

OrderedJson stored(const data::Field& field) { return {{"dtype", to_string(field.dtype)}, {"shape", field.shape}}; }

template <class T>
void load(const OrderedJson& json, T& value) {
  value = json.get<T>();
}
void load(const OrderedJson& json, double& value) { value = to_number(json); }
void load(const OrderedJson& json, std::optional<std::int64_t>& value) {
  if (!json.is_null()) value = json.get<std::int64_t>();
}
void load(const OrderedJson& json, std::vector<spec::Change>& changes) {
  for (const OrderedJson& one : json) {
    changes.push_back(
        {one.at("step").get<std::int64_t>(), one.at("key").get<std::string>(), one.at("value").get<std::string>(), {}});
  }
}
void load(const OrderedJson& json, std::map<std::string, Measures>& measures) {
  for (const auto& [split, of_split] : json.items()) measures[split] = to_measures(of_split);
}
void load(const OrderedJson& json, std::optional<Best>& best) {
  if (json.is_null()) return;
  best = Best{json.at("step").get<std::int64_t>(), json.at("metric").get<std::string>(), to_number(json.at("value"))};
}

void load(const OrderedJson& json, std::optional<Logged>& logged) {
  if (json.is_null()) return;
  logged.emplace();
  logged->step = json.at("step").get<std::int64_t>();
  logged->epoch = json.at("epoch").get<std::int64_t>();
  logged->measures = to_measures(json.at("measures"));
  logged->learning_rate = to_number(json.at("learning_rate"));
  logged->grad_norm = to_number(json.at("grad_norm"));
}
void load(const OrderedJson& json, std::optional<EpochEnded>& epoch) {
  if (json.is_null()) return;
  epoch.emplace();
  epoch->step = json.at("step").get<std::int64_t>();
  epoch->epoch = json.at("epoch").get<std::int64_t>();
  epoch->measures = to_measures(json.at("measures"));
  epoch->examples = json.at("examples").get<std::int64_t>();
}
void load(const OrderedJson& json, MemberState::Waiting& waiting) {
  waiting.metric = json.at("metric").get<std::string>();
  waiting.mode = json.at("mode").get<std::string>();
  if (!json.at("best").is_null()) waiting.best = to_number(json.at("best"));
  waiting.waited = json.at("waited").get<std::int64_t>();
}
void load(const OrderedJson& json, MemberState::Plateau& plateau) {
  plateau.metric = json.at("metric").get<std::string>();
  if (!json.at("best").is_null()) plateau.state.best = to_number(json.at("best"));
  plateau.state.bad_evaluations = json.at("bad_evaluations").get<std::int64_t>();
  plateau.state.cooldown = json.at("cooldown").get<std::int64_t>();
  plateau.state.scale = to_number(json.at("scale"));
}
void load(const OrderedJson& json, std::optional<LossSums>& watched) {
  if (json.is_null()) return;
  LossSums& sums = watched.emplace();
  for (const OrderedJson& mean : json.at("means")) {
    sums.means.push_back({mean.at(0).get<std::int64_t>(), mean.at(1).get<std::int64_t>(), to_number(mean.at(2))});
  }
  sums.line = json.at("line").get<std::int64_t>();
  sums.loss_at_line = to_number(json.at("at_line").at(0));
  sums.examples_at_line = to_number(json.at("at_line").at(1));
  sums.loss_ended = to_number(json.at("ended").at(0));
  sums.examples_ended = to_number(json.at("ended").at(1));
}

void load(const OrderedJson& json, std::optional<data::Encoding::Statistics>& statistics) {
  if (json.is_null()) return;
  statistics = {json.at("mean").get<std::vector<double>>(), json.at("std").get<std::vector<double>>()};
}

void load(const OrderedJson& json, data::Encoding& encoding) {
  for (const OrderedJson& column : json.at("columns")) {
    const OrderedJson& mean = column.at("missing");
    encoding.columns.push_back(
        {column.at("name").get<std::string>(), column.at("categories").get<std::vector<std::string>>(), {}});
    if (!mean.is_null()) encoding.columns.back().missing = mean.get<double>();
  }
  encoding.classes = json.at("classes").get<std::vector<std::string>>();
  encoding.image = json.at("image").get<std::vector<std::int64_t>>();
  load(json.at("statistics"), encoding.statistics);
  // Older checkpoints have none of these.
  if (json.contains("targets")) load(json.at("targets"), encoding.targets);
  if (json.contains("skipped")) {
    for (const OrderedJson& one : json.at("skipped")) {
      encoding.skipped.push_back(
          {one.at("split").get<std::string>(), one.at("row").get<std::int64_t>(), one.at("reason").get<std::string>()});
      if (one.contains("file")) encoding.skipped.back().file = one.at("file").get<std::string>();
    }
  }
  if (json.contains("class_weights")) encoding.class_weights = json.at("class_weights").get<std::vector<double>>();
}

void load(const OrderedJson& json, data::Field& field) {
  const std::optional<DType> dtype = parse_dtype(json.at("dtype").get<std::string>());
  if (!dtype) throw std::invalid_argument("no element type");
  field.dtype = *dtype;
  field.shape = json.at("shape").get<Shape>();
}

// A path may hold bytes that are no UTF-8.
std::string text_of(const OrderedJson& json) {
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

constexpr std::size_t most_state_bytes = std::size_t{1} << 30;  // of a table of very many columns
constexpr int most_depth = 8;
constexpr std::string_view before_checksum = ",\n  \"checksum\": \"xxh3:", after_checksum = "\"\n}\n";

// The text with a last member, the checksum of the text without it.
std::string with_checksum(const std::string& text) {
  const std::string hash = hash_hex(std::as_bytes(std::span(text)));
  return text.substr(0, text.size() - std::string_view("\n}\n").size()) + std::string(before_checksum) + hash +
         std::string(after_checksum);
}

bool has_its_checksum(const std::string& text) {
  const std::size_t at = text.rfind(before_checksum);
  return at != std::string::npos && with_checksum(text.substr(0, at) + "\n}\n") == text;
}

// Whether arrays and objects are nested at most so deep. A callback of the parser could tell, but then the parser looks
// through an array again for each object in it.
bool is_shallow(const std::string& text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > most_depth) return false;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return true;
}

bool is_sane(const data::Encoding& encoding) {
  const std::vector<std::int64_t>& image = encoding.image;
  const auto fits = [](const std::optional<data::Encoding::Statistics>& statistics) {
    return !statistics || statistics->mean.size() == statistics->std.size();
  };
  return (image.empty() || image.size() == 3) &&
         std::all_of(image.begin(), image.end(), [](std::int64_t size) { return size >= 1 && size <= 65535; }) &&
         fits(encoding.statistics) && fits(encoding.targets);
}

// What no run can have left.
void check_sane(const RunState& state) {
  constexpr std::int64_t most_steps = 1'000'000'000'000;
  bool counts = state.step >= 0 && state.step <= most_steps && state.schedule_steps >= 0;
  for (const MemberState& member : state.members) {
    counts = counts && member.steps >= 0 && member.steps <= state.step && member.steps_skipped >= 0 &&
             member.updates >= 0 && member.steps_skipped <= member.steps && member.updates <= member.steps &&
             member.logged_step >= 0 && member.logged_step <= state.step && member.schedule_began.value_or(0) >= 0;
  }
  for (const spec::Change& change : state.changes) counts = counts && change.step >= 0 && change.step <= state.step;
  const bool times = state.seconds >= 0 && state.epoch_seconds >= 0;
  if (!counts || !times || !is_sane(state.encoding)) throw std::invalid_argument("a number out of its range");
}

}  // namespace

std::string to_json(const RunState& state) {
  OrderedJson json;
  const auto by_member = [&](const char* name, auto part) {
    if (!state.is_ensemble) {
      json[name] = stored(state.members.front().*part);
      return;
    }
    json[name] = OrderedJson::array();
    for (const MemberState& member : state.members) json[name].push_back(stored(member.*part));
  };
  if (state.is_ensemble) json["members"] = state.members.size();
  for_each_part(
      state, [&](const char* name, const auto& part) { json[name] = stored(part); }, by_member);
  json["version"] = version;
  return with_checksum(text_of(json));
}

RunState parse_run_state(const std::string& text, const std::string& file) {
  try {
    if (text.size() > most_state_bytes || !has_its_checksum(text)) throw std::invalid_argument("another checksum");
    if (!is_shallow(text)) throw std::invalid_argument("nested too deep");
    const OrderedJson json = OrderedJson::parse(text);
    RunState state;
    state.is_ensemble = json.contains("members");
    if (state.is_ensemble) state.members.resize(json.at("best").size());
    if (state.members.empty()) throw std::invalid_argument("no member");
    const auto by_member = [&](const char* name, auto part) {
      // A checkpoint that is older than these has none.
      const std::string_view newer[] = {"lost_best", "confusion_matrix", "schedule_began"};
      const bool is_newer = std::find(std::begin(newer), std::end(newer), name) != std::end(newer);
      if (is_newer && !json.contains(name)) return;
      for (std::size_t m = 0; m < state.members.size(); ++m) {
        load(state.is_ensemble ? json.at(name).at(m) : json.at(name), state.members[m].*part);
      }
    };
    const auto visit = [&]<class T>(const char* name, T& part) {
      // A checkpoint that is older than encodings, or than changes, has none.
      constexpr bool is_newer = std::is_same_v<T, data::Encoding> || std::is_same_v<T, std::vector<spec::Change>>;
      if (is_newer && !json.contains(name)) return;
      load(json.at(name), part);
    };
    for_each_part(state, visit, by_member);
    check_sane(state);
    return state;
  } catch (const std::exception&) {
    fail_data("'" + file + "' is damaged: it is not what was written", "use another checkpoint of the run");
  }
}

}  // namespace pmaptrain::train
