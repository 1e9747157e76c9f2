#include "core/run/run_state.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/version.h"
#include "core/run/files/file_writer.h"

namespace pmaptrain::run {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Measures may be infinite or NaN, which JSON cannot represent as numbers.
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

// ---- the document: every struct as a table of its fields, by which it is stored and loaded

// Whether the document has a field.
enum class Presence : std::uint8_t { always, newer, not_empty };  // newer: older versions did not write it

bool has(const OrderedJson& json, const char* name, Presence presence) {
  return presence == Presence::always || json.contains(name);
}

template <class T, class Struct>
concept Is = std::same_as<std::remove_const_t<T>, Struct>;

template <class Visit>
void for_each_field(Is<Best> auto& best, Visit&& visit) {
  visit("step", best.step);
  visit("metric", best.metric);
  visit("value", best.value);
  visit("loss", best.loss, Presence::newer);
}

template <class Visit>
void for_each_field(Is<Logged> auto& logged, Visit&& visit) {
  visit("step", logged.step);
  visit("epoch", logged.epoch);
  visit("measures", logged.measures);
  visit("learning_rate", logged.learning_rate);
  visit("grad_norm", logged.grad_norm);
}

template <class Visit>
void for_each_field(Is<EpochEnded> auto& epoch, Visit&& visit) {
  visit("step", epoch.step);
  visit("epoch", epoch.epoch);
  visit("measures", epoch.measures);
  visit("examples", epoch.examples);
}

template <class Visit>
void for_each_field(Is<MemberState::Waiting> auto& waiting, Visit&& visit) {
  visit("metric", waiting.metric);
  visit("mode", waiting.mode);
  visit("best", waiting.best);
  visit("waited", waiting.waited);
}

template <class Visit>
void for_each_field(Is<MemberState::Plateau> auto& plateau, Visit&& visit) {
  visit("metric", plateau.metric);
  visit("best", plateau.state.best);
  visit("bad_evaluations", plateau.state.bad_evaluations);
  visit("cooldown", plateau.state.cooldown);
  visit("scale", plateau.state.scale);
}

template <class Visit>
void for_each_field(Is<LossSums> auto& sums, Visit&& visit) {
  visit("means", sums.means);
  visit("line", sums.line);
  visit("at_line", std::tie(sums.loss_at_line, sums.examples_at_line));
  visit("ended", std::tie(sums.loss_ended, sums.examples_ended));
}

template <class Visit>
void for_each_field(Is<spec::Change> auto& change, Visit&& visit) {
  visit("step", change.step);
  visit("key", change.key);
  visit("value", change.value);
}

template <class Visit>
void for_each_field(Is<data::Encoding::Statistics> auto& statistics, Visit&& visit) {
  visit("mean", statistics.mean);
  visit("std", statistics.std);
}

template <class Visit>
void for_each_field(Is<data::Encoding::Column> auto& column, Visit&& visit) {
  visit("name", column.name);
  visit("categories", column.categories);
  visit("missing", column.missing);
  visit("numbered", column.numbered, Presence::newer);
}

template <class Visit>
void for_each_field(Is<data::Encoding::Skipped> auto& skipped, Visit&& visit) {
  visit("split", skipped.split);
  visit("row", skipped.row);
  visit("reason", skipped.reason);
  visit("file", skipped.file, Presence::not_empty);
}

template <class Visit>
void for_each_field(Is<data::Encoding> auto& encoding, Visit&& visit) {
  visit("columns", encoding.columns);
  visit("classes", encoding.classes);
  visit("labels", encoding.labels, Presence::newer);
  visit("features", encoding.features, Presence::newer);
  visit("image", encoding.image);
  visit("statistics", encoding.statistics);
  visit("targets", encoding.targets, Presence::newer);
  visit("exact", encoding.exact, Presence::newer);
  visit("wide_inputs", encoding.wide_inputs, Presence::newer);
  visit("wide_targets", encoding.wide_targets, Presence::newer);
  visit("class_weights", encoding.class_weights, Presence::newer);
  visit("tokenizer", encoding.tokenizer, Presence::newer);
  visit("skipped", encoding.skipped, Presence::newer);
}

template <class Visit>
void for_each_field(Is<input::Content> auto& content, Visit&& visit) {
  visit("key", content.key);
  visit("path", content.path);
  visit("bytes", content.bytes);
  visit("files", content.files);
  visit("hash", content.hash);
  visit("whole", content.whole);
}

template <class Visit>
void for_each_field(Is<data::Field> auto& field, Visit&& visit) {
  visit("dtype", field.dtype);
  visit("shape", field.shape);
}

// `by_member` visits the fields that each member of an ensemble has.
template <class Visit, class ByMember>
void for_each_field(Is<RunState> auto& state, Visit&& visit, ByMember&& by_member) {
  visit("step", state.step);
  by_member("member_steps", &MemberState::steps);
  by_member("steps_skipped", &MemberState::steps_skipped);
  by_member("updates", &MemberState::updates);
  visit("example_cursor", state.example_cursor);
  visit("schedule_steps", state.schedule_steps);
  by_member("schedule_began", &MemberState::schedule_began, Presence::newer);
  visit("changes", state.changes, Presence::newer);
  visit("seconds", state.seconds);
  visit("epoch_seconds", state.epoch_seconds);
  visit("metrics_bytes", state.metrics_bytes);
  by_member("logged_step", &MemberState::logged_step);
  by_member("final", &MemberState::measures);
  by_member("confusion_matrix", &MemberState::confusions, Presence::newer);
  by_member("evaluated_step", &MemberState::evaluated_step);
  by_member("last_step", &MemberState::last_step);
  by_member("last_epoch", &MemberState::last_epoch);
  visit("evaluation_is_due", state.evaluation_is_due);
  by_member("best", &MemberState::best);
  by_member("lost_best", &MemberState::lost_best, Presence::newer);
  visit("best_mode", state.best_mode);
  by_member("early_stopping", &MemberState::early_stopping);
  by_member("reduce_on_plateau", &MemberState::plateau);
  by_member("loss_sums", &MemberState::loss_sums);
  by_member("finished", &MemberState::finished);
  by_member("finished_why", &MemberState::finished_why);
  by_member("left_behind", &MemberState::left_behind);
  by_member("seed", &MemberState::seed);
  by_member("data_seed", &MemberState::data_seed);
  visit("encoding", state.encoding, Presence::newer);
  visit("contents", state.contents, Presence::newer);
  visit("base", state.base, Presence::newer);
  visit("input", state.input);
  visit("target", state.target);
  visit("batch_size", state.batch_size);
  visit("train_examples", state.train_examples);
  visit("config_hash", state.config_hash);
  visit("checksums", state.checksums);
}

// The overloads of of() call each other in any order, so they are members of a class.
struct Store {
  template <class T>
  static OrderedJson of(const T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::same_as<T, std::string>) {
      return value;
    } else {
      OrderedJson object = OrderedJson::object();
      for_each_field(value, [&](const char* name, const auto& field, Presence presence = Presence::always) {
        OrderedJson json = of(field);
        if (presence == Presence::not_empty && json.get_ref<const std::string&>().empty()) return;
        object[name] = std::move(json);
      });
      return object;
    }
  }

  static OrderedJson of(const double& value) { return number(value); }
  static OrderedJson of(const DType& dtype) { return to_string(dtype); }
  static OrderedJson of(const LossMean& mean) { return {mean.from, mean.to, number(mean.loss)}; }
  static OrderedJson of(const std::tuple<const double&, const double&>& pair) {
    return {number(std::get<0>(pair)), number(std::get<1>(pair))};
  }
  static OrderedJson of(const Measures& measures) {
    OrderedJson object = OrderedJson::object();
    for (const auto& [name, value] : measures) object[name] = number(value);
    return object;
  }
  template <class T>
  static OrderedJson of(const std::optional<T>& value) {
    return value ? of(*value) : OrderedJson(nullptr);
  }
  template <class T>
  static OrderedJson of(const std::vector<T>& values) {
    OrderedJson array = OrderedJson::array();
    for (const T& value : values) array.push_back(of(value));
    return array;
  }
  template <class T>
  static OrderedJson of(const std::map<std::string, T>& values) {
    OrderedJson object = OrderedJson::object();
    for (const auto& [name, value] : values) object[name] = of(value);
    return object;
  }
};

struct Load {
  template <class T>
  static void from(const OrderedJson& json, T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::same_as<T, std::string>) {
      value = json.get<T>();
    } else {
      for_each_field(value, [&]<class Field>(const char* name, Field&& field, Presence presence = Presence::always) {
        if (has(json, name, presence)) from(json.at(name), field);
      });
    }
  }

  static void from(const OrderedJson& json, double& value) { value = to_number(json); }
  static void from(const OrderedJson& json, DType& value) {
    const std::optional<DType> dtype = parse_dtype(json.get<std::string>());
    if (!dtype) throw std::invalid_argument("no element type");
    value = *dtype;
  }
  static void from(const OrderedJson& json, LossMean& mean) {
    mean = {json.at(0).get<std::int64_t>(), json.at(1).get<std::int64_t>(), to_number(json.at(2))};
  }
  static void from(const OrderedJson& json, std::tuple<double&, double&>& pair) {
    std::get<0>(pair) = to_number(json.at(0));
    std::get<1>(pair) = to_number(json.at(1));
  }
  static void from(const OrderedJson& json, Measures& measures) {
    for (const auto& [name, value] : json.items()) measures.emplace_back(name, to_number(value));
  }
  template <class T>
  static void from(const OrderedJson& json, std::optional<T>& value) {
    if (!json.is_null()) from(json, value.emplace());
  }
  template <class T>
  static void from(const OrderedJson& json, std::vector<T>& values) {
    for (const OrderedJson& element : json) from(element, values.emplace_back());
  }
  template <class T>
  static void from(const OrderedJson& json, std::map<std::string, T>& values) {
    for (const auto& [name, element] : json.items()) from(element, values[name]);
  }
};

// A path may contain bytes that are not UTF-8.
std::string text_of(const OrderedJson& json) { return json_text(json, 2) + "\n"; }

constexpr std::size_t most_state_bytes = std::size_t{1} << 30;  // enough for a table with very many columns
constexpr int most_depth = 8;
constexpr std::string_view before_checksum = ",\n  \"checksum\": \"xxh3:", after_checksum = "\"\n}\n";

// Adds a last member to the text: the checksum of the text without it.
std::string with_checksum(const std::string& text) {
  const std::string hash = hash_hex(std::as_bytes(std::span(text)));
  return text.substr(0, text.size() - std::string_view("\n}\n").size()) + std::string(before_checksum) + hash +
         std::string(after_checksum);
}

bool has_its_checksum(const std::string& text) {
  const std::size_t at = text.rfind(before_checksum);
  return at != std::string::npos && with_checksum(text.substr(0, at) + "\n}\n") == text;
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

// Throws Error (data) for a state that no run can have written.
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

RunState::RunState() = default;
RunState::RunState(const RunState&) = default;
RunState::RunState(RunState&&) noexcept = default;
RunState& RunState::operator=(const RunState&) = default;
RunState& RunState::operator=(RunState&&) noexcept = default;
RunState::~RunState() = default;

std::string to_json(const RunState& state) {
  OrderedJson json;
  const auto visit = [&](const char* name, const auto& field, Presence = Presence::always) {
    json[name] = Store::of(field);
  };
  const auto by_member = [&](const char* name, auto field, Presence = Presence::always) {
    if (!state.is_ensemble) {
      json[name] = Store::of(state.members.front().*field);
      return;
    }
    json[name] = OrderedJson::array();
    for (const MemberState& member : state.members) json[name].push_back(Store::of(member.*field));
  };
  if (state.is_ensemble) json["members"] = state.members.size();
  for_each_field(state, visit, by_member);
  json["version"] = version;
  return with_checksum(text_of(json));
}

RunState parse_run_state(const std::string& text, const std::string& file) {
  try {
    if (text.size() > most_state_bytes || !has_its_checksum(text)) throw std::invalid_argument("another checksum");
    if (is_nested_deeper(text, most_depth)) throw std::invalid_argument("nested too deep");
    const OrderedJson json = parse_json(text);
    RunState state;
    state.is_ensemble = json.contains("members");
    if (state.is_ensemble) state.members.resize(json.at("best").size());
    if (state.members.empty()) throw std::invalid_argument("no member");
    const auto visit = [&](const char* name, auto& field, Presence presence = Presence::always) {
      if (has(json, name, presence)) Load::from(json.at(name), field);
    };
    const auto by_member = [&](const char* name, auto field, Presence presence = Presence::always) {
      if (!has(json, name, presence)) return;
      for (std::size_t m = 0; m < state.members.size(); ++m) {
        Load::from(state.is_ensemble ? json.at(name).at(m) : json.at(name), state.members[m].*field);
      }
    };
    for_each_field(state, visit, by_member);
    check_sane(state);
    return state;
  } catch (const std::exception&) {
    fail_data("'" + file + "' is damaged: it is not what was written", "use another checkpoint of the run");
  }
}

}  // namespace pmaptrain::run
