// A metric that compiles, and what must not: CASE says which, tests/CMakeLists.txt what the compiler must then say.
#include "core/metrics/rows.h"

namespace pmaptrain::metrics {

struct Example {
  double threshold = 0.5;
#if CASE == 2  // a member without a key
  bool other = false;
#endif

#if CASE != 3  // not said
  static constexpr std::optional<Mode> better = Mode::min;
#endif
#if CASE != 4  // not said
  static constexpr Compares compares = Compares::numbers;
#endif
#if CASE != 1  // no declaration
  static Declaration<Example> declaration() {
    return declare::kind<Example>({.path = "example"}, field(&Example::threshold, threshold_key()));
  }
#endif
#if CASE != 5  // no computation
  PlannedMetric plan(const MetricCall& call) const { return {{call.name}, {}, {}, {}}; }
#endif
#if CASE == 6  // two
  void finish(const RowCall&) const {}
#endif
};

std::vector<declare::AnyKind> metrics_of_a_test() { return declare::kinds_of<MetricKind, Example>(); }

}  // namespace pmaptrain::metrics
