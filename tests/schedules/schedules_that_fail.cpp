// A schedule that compiles, and what must not: CASE says which, tests/CMakeLists.txt what the compiler must then say.
#include "core/schedules/keys.h"

namespace pmaptrain::schedules {

struct Example {
  double init_value = 0.5;
#if CASE == 2  // a member without a key
  std::optional<Duration> decay = {};
#endif

#if CASE != 1  // no declaration
  static Declaration<Example> declaration() {
    return declare::kind<Example>({.path = "example"}, field(&Example::init_value, init_value_key()));
  }
#endif
#if CASE != 3  // no curves
  void add(Making& making, std::int64_t start) const { making.add(start, constant(making.scaled(init_value))); }
#endif
};

std::vector<declare::AnyKind> schedules_of_a_test() { return declare::kinds_of<ScheduleKind, Example>(); }

}  // namespace pmaptrain::schedules
