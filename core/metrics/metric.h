// Metrics.
//
// A metric is a struct in a file of this folder and one line of list.cpp: its options, which declare their keys
// (core/declare/kind.h), and
//
//   static constexpr std::optional<Mode> better   which values are better; none: it is no number
//   static constexpr Compares compares            what it takes
//   void check(const MetricCall&, const Checks&) const    more checks of the targets; optional
//   PlannedMetric plan(const MetricCall& call) const      the sums from which it is computed (planned.h),
//   void finish(const RowCall& call) const                or the function of rows of examples (rows.h)
//
// A member `average` says how the values of classes or labels become one; `usual` is the average that the name does not
// tell. A member `threshold` is the probability above which a label counts as predicted.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/declare/kind.h"

namespace pmaptrain::losses {
class Checks;
}  // namespace pmaptrain::losses

namespace pmaptrain::metrics {

using declare::Mode;

// How the values of classes or labels become one. micro: of all decisions together; weighted: the mean by how often
// each occurs; samples: of each example, then the mean over examples; none: one value for each class or label.
enum class Average { macro, micro, weighted, samples, none };
constexpr std::array<declare::Word<Average>, 5> words_of(declare::Tag<Average>) {
  return {{{"macro", Average::macro},
           {"micro", Average::micro},
           {"weighted", Average::weighted},
           {"samples", Average::samples},
           {"none", Average::none}}};
}

// What a metric takes.
enum class Compares {
  classes,    // one class for each example, or for each position of a sequence
  labels,     // the same, or 0 and 1 for a single output, or several labels
  one_label,  // the same, but not of sequences
  numbers,    // outputs like the targets
  other       // what its own check() says
};

struct Metric;
struct MetricCall;
struct MetricKind;
struct PlannedMetric;
struct RowCall;

// The interface of all kinds.
class MetricRules {
 public:
  virtual ~MetricRules() = default;

  // The name in the config: "top_k_accuracy"; and the name of its values: "top_5_accuracy", "f1_micro".
  virtual const std::string& name() const = 0;
  virtual std::string label() const = 0;
  virtual std::optional<Mode> better() const = 0;
  virtual Compares compares() const = 0;
  // Reports targets and options that do not fit.
  virtual void check(const MetricCall& call, const losses::Checks& checks) const = 0;
  // Whether it is computed from rows of examples, by finish(); else from sums, which plan() plans.
  virtual bool needs_rows() const = 0;
  virtual PlannedMetric plan(const MetricCall& call) const = 0;
  virtual void finish(const RowCall& call) const = 0;
  // How it is averaged, if it is; and the probability above which a label counts, 0.5 if it has none.
  virtual std::optional<Average> average() const = 0;
  virtual double threshold() const = 0;
  // The same metric with this threshold, if it has one.
  virtual std::optional<MetricKind> with_threshold(double threshold) const = 0;
};

// The interface for a metric of one kind (planned.h).
template <class Kind>
class Held;

// A metric of any kind.
struct MetricKind : declare::Any<MetricRules, Held> {
  using Any::Any;
};
// The list of all kinds: list.cpp.
const std::vector<declare::AnyKind>& family(declare::Tag<MetricKind>);

struct Metric {
  MetricKind kind;
  Place place = {};

  static declare::Declaration<Metric> keys() {
    return declare::map<Metric>(declare::alternatives(&Metric::kind, &Metric::place));
  }
  bool has_kind() const { return static_cast<bool>(kind); }
  std::string label() const { return kind->label(); }
  // Whether it has one value for each class.
  bool is_per_class() const { return kind->average() == Average::none; }
  // Whether it is one value, by which the best checkpoint and the like may be selected.
  bool is_single_value() const { return kind->better().has_value() && !is_per_class(); }
};

}  // namespace pmaptrain::metrics
