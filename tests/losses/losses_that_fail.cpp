// A loss that compiles, and what must not: CASE says which, tests/CMakeLists.txt what the compiler must then say.
#include "core/losses/keys.h"
#include "core/losses/objective.h"

namespace pmaptrain::losses {

struct Example {
  double delta = 1.0;
#if CASE == 2  // a member without a key
  bool other = false;
#endif

#if CASE != 3  // not said
  static constexpr Outputs outputs = Outputs::values;
#endif
#if CASE != 1  // no declaration
  static Declaration<Example> declaration() {
    return declare::kind<Example>({.path = "example"}, field(&Example::delta, {.path = "delta"}));
  }
#endif
#if CASE != 4  // no checks
  void check(const LossChecks& checks) const { checks.need_numbers(); }
#endif
#if CASE != 5  // no numbers
  std::vector<Number> numbers(const Objective&) const { return {}; }
#endif
#if CASE != 6  // no equations
  Value losses(const LossCall& call) const { return call.output; }
#endif
};

std::vector<declare::AnyKind> losses_of_a_test() { return declare::kinds_of<Loss, Example>(); }

}  // namespace pmaptrain::losses
