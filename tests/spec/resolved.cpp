// What is printed for a config is accepted, and is that config: of random configs, written from the table of keys.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/spec/keys.h"
#include "core/spec/load.h"
#include "core/spec/types/duration.h"
#include "core/spec/types/lists.h"
#include "core/spec/types/memory.h"
#include "core/spec/types/padding.h"
#include "core/spec/types/path.h"
#include "core/spec/types/renames.h"
#include "core/spec/types/text.h"
#include "core/spec/types/word.h"
#include "tests/catch.h"
#include "tests/slice.h"

using namespace pmaptrain;
using namespace pmaptrain::spec;

namespace {

// Writes a config with any alternatives and options. Many are refused for what the table does not say, such as momentum
// for nesterov.
class ConfigWriter {
 public:
  explicit ConfigWriter(std::uint32_t seed) : state_(seed * 2654435761u + 12345u) {}

  std::string write() {
    is_ensemble_ = below(5) == 0;
    std::string text;
    for (const auto& [name, value] : members(root_key(), 0)) text += name + ": " + value + "\n";
    return text;
  }

 private:
  using Members = std::vector<std::pair<std::string, std::string>>;

  std::uint32_t below(std::uint32_t n) {
    state_ = state_ * 1664525u + 1013904223u;
    return (state_ >> 16) % n;
  }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(static_cast<std::uint32_t>(from.size()))];
  }

  // What depends on other keys, and texts that are more than texts.
  const std::vector<std::string>* given(const Key& key) const {
    static const std::vector<std::string> loss = {"loss"}, none = {""}, two_axes = {"[{replicas: 2}, {shards: 4}]"};
    static const std::map<std::string, std::vector<std::string>> values = {
        {"mesh.axes", {"{devices: 8}", "[{replicas: 2}, {shards: 4}]"}},
        {"data.axes", none},
        {"data.microbatches", {"1", "2"}},
        {"data.source.npz", {"{file: f.npz, train: [x, \"1\"]}", "{train: a.npz, test: b.npz, inputs: x, targets: y}"}},
        {"data.source.values", {"{inputs: [1, 2], targets: [[3], [4]]}"}},
        {"data.source.csv.delimiter", {"\";\"", "\"\\t\""}},
        {"data.source.csv.inputs", {"[a, \"010\"]"}},
        {"data.source.csv.categorical", {"a", "[]"}},
        {"data.source.csv.exclude", {"[]"}},
        {"data.source.csv.target", {"y", "\"3\""}},
        {"data.source.csv.weight", {"w"}},
        {"data.validation.group", none},
        {"data.bucket_by_length", none},  // of few sources
        {"data.normalize.mean", {"0.5", "[0.5, 1]"}},
        {"data.normalize.std", {"[2, 3]", "1.0e-8"}},
        {"model.init.values", {"{a.kernel: [[1, 2]], b: {bias: 0.5}}", "{}"}},
        {"optimizer.reduce_on_plateau.metric", loss},
        {"train.early_stopping.metric", loss},
        {"train.checkpoint.best.metric", loss},
    };
    static const std::vector<std::string> ensembles = {"{axis: replicas, vary: {seed: [0, 1]}}"};
    static const std::vector<std::string> of_shards = {"", "{tensor: {axis: shards}}",
                                                       "{fsdp: {axis: shards, stage: 2}}",
                                                       "{fsdp: {axis: [shards], stage: 3}, tensor: null}"};
    if (key.path == "ensemble") return is_ensemble_ ? &ensembles : &none;
    if (key.path == "parallelism") return is_ensemble_ ? &of_shards : &none;
    if (key.path == "mesh.axes" && is_ensemble_) return &two_axes;
    const auto found = values.find(key.path);
    return found == values.end() ? nullptr : &found->second;
  }

  Members members(const Key& key, int depth) {
    Members all;
    const bool per_device = below(4) == 0;
    for (const Key* other : children(key)) {
      if (other->need == Need::alternative) continue;
      bool is_there = other->need == Need::required || below(3) == 0;
      if (other->path == "data.batch_size") is_there = !per_device;
      if (other->path == "data.batch_size_per_device") is_there = per_device;
      if (is_ensemble_ && (other->path == "ensemble" || other->path == "mesh" || other->path == "mesh.axes")) {
        is_there = true;
      }
      std::string value = is_there ? value_of(*other, depth + 1) : "";
      if (!value.empty()) all.emplace_back(other->name(), std::move(value));
    }
    return all;
  }

  static std::string map_of(const Members& members) {
    std::vector<std::string> parts;
    for (const auto& [name, value] : members) parts.push_back(name + ": " + value);
    return "{" + join(parts, ", ") + "}";
  }

  // One alternative and what stands beside it. Lists of layers and of schedules end at some depth.
  std::string choice(const Key& key, int depth) {
    std::vector<const Key*> all = alternatives(key);
    if (depth > 6) {
      std::erase_if(all, [](const Key* other) {
        const std::vector<const Key*> below = children(*other);
        return !other->like.empty() || std::any_of(below.begin(), below.end(), [](const Key* option) {
          return !option->like.empty() || option->type == spec::Type::entries;
        });
      });
    }
    const Key& chosen = *pick(all);
    Members own = members(key, depth);
    own.emplace_back(chosen.name(), value_of(chosen, depth + 1));
    return map_of(own);
  }

  std::string list(std::uint32_t least, const auto& item) {
    std::vector<std::string> items;
    for (std::uint32_t count = least + below(3); count > 0; --count) items.push_back(item());
    return "[" + join(items, ", ") + "]";
  }

  std::string number(const Key& key) {
    std::vector<std::string> fit;
    for (const char* text : {"0", "1", "0.5", "1.0e-8", "2.5", "-3", "100000", "0.1"}) {
      const double value = std::stod(text);
      const bool low = value > key.low || (!key.open_low && !(value < key.low));
      const bool high = value < key.high || (!key.open_high && !(value > key.high));
      if (low && high) fit.emplace_back(text);
    }
    return pick(fit);
  }

  std::string range(const Key& key) {
    std::string low = number(key), high = number(key);
    if (std::stod(low) > std::stod(high)) std::swap(low, high);
    return "[" + low + ", " + high + "]";
  }

  std::string spread(const Key& key) {
    if (below(2) == 0) return range(key);
    Key distance = key;
    distance.low = 0;
    return number(distance);
  }

  std::string integer(const Key& key) {
    if (!key.words.empty() && below(2) == 0) return pick(key.words);
    std::vector<std::string> fit;
    for (const char* text : {"0", "1", "2", "8", "3", "16", "1.6e1", "4.0"}) {
      const double value = std::stod(text);
      if (!(value < key.low) && !(value > key.high)) fit.emplace_back(text);
    }
    if (fit.empty()) fit.push_back(std::to_string(static_cast<std::int64_t>(key.low)));
    return pick(fit);
  }

  std::string count(const Key& key) {
    if (key.type == spec::Type::interval && below(4) == 0) return "never";
    return std::to_string(1 + below(20)) + (below(2) == 0 ? " " : "") + pick(units_of(key));
  }

  std::string text() { return pick<std::string>({"a", "\"yes\"", "\"1e-3\"", "\"a b: c\"", "\"null\"", "\"*.bias\""}); }
  std::string path() { return pick<std::string>({"a.csv", "../b c", "\"010\"", "/t/x.gz"}); }

  std::string value_of(const Key& key, int depth) {
    if (const auto* values = given(key)) return pick(*values);
    const auto several = [&](std::uint32_t least, auto item) { return list(least, item); };
    const auto is = [&](const spec::Type& type) { return key.type == type; };
    if (is(spec::Type::map)) {
      if (!key.words.empty() && below(2) == 0) return pick(key.words);
      return map_of(members(key, depth));
    }
    if (is(spec::Type::choice)) return key.or_number && below(2) == 0 ? number(key) : choice(key, depth);
    if (is(spec::Type::choices)) {
      return several(1, [&] {
        const Key& item = key.like.empty() ? key : *find_key(key.like);
        return item.or_number && below(2) == 0 ? number(item) : choice(item, depth);
      });
    }
    if (is(spec::Type::maps)) {
      return several(0, [&] { return map_of(members(key, depth)); });
    }
    if (is(spec::Type::entries)) {
      const auto each = [&] { return below(3) == 0 ? "[]" : value_of(*child(key, ""), depth + 1); };
      if (below(2) == 0) return several(1, each);
      std::string map;
      for (std::uint32_t i = 0, n = 1 + below(3); i < n; ++i) {
        map += (i == 0 ? "b" : ", b") + std::to_string(i) + ": " + each();
      }
      return "{" + map + "}";
    }
    if (is(spec::Type::text)) return text();
    if (is(TakesTexts::type)) return below(2) == 0 ? text() : several(1, [&] { return text(); });
    if (is(Takes<std::vector<Rename>>::type)) return pick<std::string>({"{}", "{a.*: \"b.*\", \"010\": head.bias}"});
    if (is(spec::Type::run_name)) return pick<std::string>({"run", "010", "true", "\"a b\""});
    if (is(spec::Type::layer_name)) return "n" + std::to_string(names_++);
    if (is(spec::Type::path)) return path();
    if (is(Takes<declare::FilePair>::type)) return "[" + path() + ", " + path() + "]";
    if (is(Takes<std::vector<std::string>>::type)) return below(2) == 0 ? path() : several(1, [&] { return path(); });
    if (is(spec::Type::word)) return pick(key.words);
    if (is(spec::Type::axis_names)) return pick<std::string>({"[]", "[a]", "[a, b]"});
    if (is(named_words)) return below(2) == 0 ? pick(key.words) : "{a: " + pick(key.item_words) + "}";
    if (is(Takes<bool>::type)) return pick<std::string>({"true", "false"});
    if (is(spec::Type::integer)) return integer(key);
    if (is(spec::Type::seed)) return pick<std::string>({"0", "7", "18446744073709551615"});
    if (is(spec::Type::number)) return number(key);
    if (is(spec::Type::duration) || is(spec::Type::interval) || is(Takes<Amount>::type)) return count(key);
    if (is(Takes<MemorySize>::type)) return "80GiB";
    if (is(Takes<std::vector<Duration>>::type)) {
      return several(1, [&] { return count(key); });
    }
    if (is(spec::Type::scales)) {
      return several(1, [&] { return "[" + count(key) + ", " + number(key) + "]"; });
    }
    if (is(Takes<std::vector<std::int64_t>>::type)) {
      if (key.length == 0) return several(1, [&] { return integer(key); });
      std::vector<std::string> items;
      const std::size_t length = key.least_length > 0 ? 2 : key.length;  // of images
      for (std::size_t i = 0; i < length; ++i) items.push_back(integer(key));
      return "[" + join(items, ", ") + "]";
    }
    if (is(TakesNumbers::type)) return below(2) == 0 ? number(key) : several(1, [&] { return number(key); });
    if (is(Takes<declare::ClassWeights>::type)) return below(2) == 0 ? "balanced" : "[" + number(key) + ", 1.0]";
    if (is(Takes<declare::Range>::type)) return range(key);
    if (is(Takes<declare::Spread>::type)) return spread(key);
    if (is(Takes<Padding>::type)) return pick<std::string>({"SAME", "VALID", "[[1, 0], [0, 2]]"});
    FAIL("write values for " << key.path);
    return {};
  }

  std::uint32_t state_;
  bool is_ensemble_ = false;
  int names_ = 0;
};

}  // namespace

TEST_CASE("what is printed for a random config is accepted, and is that config", "[spec]") {
  int accepted = 0, all = 0;
  for (const std::uint32_t seed : test::some_seeds(150, 1200, 8)) {
    const std::string text = ConfigWriter(seed).write();
    INFO("seed " << seed << "\n" << text);
    ++all;
    Loaded loaded;
    try {
      loaded = load_text(text, "run.yaml", "/base", {});
    } catch (const Error&) {
      continue;
    }
    ++accepted;
    INFO(loaded.resolved);
    std::string again;
    REQUIRE_NOTHROW(again = load_text(loaded.resolved, "config.yaml", "/elsewhere", {}).resolved);
    CHECK(again == loaded.resolved);
  }
  CHECK(accepted > all / 5);
}

TEST_CASE("the validation share of a text is printed without what chooses examples", "[spec]") {
  const std::string text = R"(data: {source: {text: {train: a.txt, length: 8}}, batch_size: 8, validation: 0.1}
model: {layers: [flatten, {dense: 10}]}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)";
  for (const char* const set : {"seed=0", "data.validation.shuffle=false"}) {
    Overrides overrides;
    overrides.set = {set};
    const Loaded loaded = load_text(text, "run.yaml", "/base", overrides);
    CHECK(loaded.resolved.find("seed: 0}") == std::string::npos);
    CHECK(load_text(loaded.resolved, "config.yaml", "/elsewhere", {}).resolved == loaded.resolved);
  }
}
