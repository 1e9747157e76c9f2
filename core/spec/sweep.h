// A sweep file: a base config, and keys that have other values in each trial.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/spec/changes/loaded.h"
#include "core/spec/durations.h"

namespace pmaptrain::spec {

// The values that a parameter may have.
enum class Space {
  choice,       // of a list
  range,        // start, start + step, ... up to stop, which is included
  integer,      // from low to high, both included
  log_integer,  // the same, uniform in the logarithm
  uniform,      // from low up to high
  log_uniform,
};

struct SweepParameter {
  std::string name;  // the path of a key, or a free name of a choice between maps of keys
  Space space = Space::choice;
  std::vector<std::string> values;  // of choice and range, as YAML in one line
  double low = 0, high = 0;         // of the others
};

enum class Search { grid, random, successive_halving };
std::string to_string(Search search);

struct SweepSpec {
  std::string name;  // of the file, without its extension
  std::vector<SweepParameter> parameters;
  std::int64_t replicates = 1;
  Search search = Search::grid;
  std::int64_t trials = 1;  // of grid: the product of the numbers of values
  // Of successive_halving.
  Duration first_rung;
  std::int64_t factor = 3;
  std::string metric;
  Mode mode = Mode::min;
  bool by_best = true;                         // a trial's value is its best evaluation, not the last one
  std::optional<std::int64_t> max_concurrent;  // none: auto
  bool vectorize = true;
  std::uint64_t seed = 0;
  std::vector<std::string> notes;  // for the user
};

// The value of one parameter of a trial: the index of a choice or of a value of a range, or a number.
struct TrialValue {
  std::size_t index = 0;
  double number = 0;
};
using TrialValues = std::vector<TrialValue>;  // one for each parameter

// The keys of a sweep file that --set sets as a whole, but for those that a config has, too.
std::vector<std::string> sweep_settings();

class Sweep {
 public:
  // `path` is a YAML file or the folder of a sweep (its sweep.yaml). `set` has "KEY=VALUE" of --set: KEY is a key of
  // the sweep file, or one of a config, which is then added to `set`. Throws Error (usage) with all mistakes.
  static Sweep load(const std::string& path, const std::vector<std::string>& set);

  const SweepSpec& spec() const;
  // The file with defaults, overrides and absolute paths; it reads back as the same sweep.
  const std::string& resolved() const;

  // The config of a trial, with `name` as its name. Values of the sweep have their places in its file, so that errors
  // point there. Throws Error (usage).
  Loaded config(const TrialValues& values, std::int64_t replicate, const std::string& name) const;
  // The base of all configs: an absolute path.
  const std::string& base() const;
  // What makes the base that config, but for the name: "KEY=VALUE" of --set, in order. Paths are absolute.
  std::vector<std::string> settings(const TrialValues& values, std::int64_t replicate) const;

  // Throws Error (usage) if the losses of two configs of this sweep do not compare, and they are what it selects by.
  void check_comparable(const Loaded& one, const Loaded& other) const;

  // A trial's values as YAML, each in one line, by parameter.
  std::vector<std::string> texts(const TrialValues& values) const;
  // The same as one JSON object: {"optimizer.learning_rate": 0.001}.
  std::string json(const TrialValues& values) const;

  // The values of a parameter as the file has them, in one line: "{log_uniform: [0.001, 0.1]}".
  std::string space_text(std::size_t parameter) const;

  // A mode that takes the worst values of the metric for the best, which the base does not state as well: an error of a
  // new sweep. One that has begun goes on with its mode.
  const std::optional<Diagnostic>& doubtful_mode() const;

  // An error at a key of the sweep file, such as "search.successive_halving.min".
  Diagnostic error_at(std::string_view key, std::string message, std::string help) const;
  // An error at the values of a parameter.
  Diagnostic error_at(std::size_t parameter, std::string message, std::string help) const;
  // Throws Error (usage) at a key of the sweep file.
  [[noreturn]] void fail(std::string_view key, std::string message, std::string help) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

// Text by which configs that differ in numbers alone are equal: their programs and their memory are the same, and one
// ensemble may train them. The numbers are those that an ensemble can vary; the run's name plays no role.
std::string structure_of(const Loaded& loaded);

// The config of an ensemble with these members, which have one structure, along a new outermost axis "trials".
std::string ensemble_config(std::span<const Loaded> members, const std::string& name);

}  // namespace pmaptrain::spec
