// A rule that compiles, and what must not: CASE says which, tests/CMakeLists.txt what the compiler must then say.
#include <limits>

#include "core/optimizers/rule.h"

namespace pmaptrain::optimizers {

struct Example {
  double rate = 0.5;
#if CASE == 2  // a member without a key
  double other = 1.0;
#endif
#if CASE == 7  // a value that no key can have
  float small = 1.0F;
#endif

#if CASE != 1  // no declaration
  static declare::Declaration<Example> declaration() {
    return declare::kind<Example>({.path = "example"}, declare::field(&Example::rate, {.path = "rate"})
#if CASE == 7
                                                           ,
                                  declare::field(&Example::small, {.path = "small"})
#endif
    );
  }
#endif
#if CASE != 3  // no slots
  std::vector<SlotKind> slots() const { return {}; }
#endif
#if CASE != 4  // no numbers
  std::vector<Number> numbers(DType dtype) const { return {{"rate", rate, dtype}}; }
#endif
#if CASE != 5  // no equations
  Value update(RuleCall& call) const { return call.parameter; }
#endif
#if CASE == 8  // optional functions that do not fit
  Value slot_bound(Builder&, Value largest) { return largest; }
#elif CASE == 9
  BiasCorrections corrections(Builder&, const Numbers&, Value) const { return {}; }
#elif CASE == 10
  int keeps_without_gradient() const { return 1; }
#endif
#if CASE != 6  // no bound
  double largest_change(const Bounds&) const { return std::numeric_limits<double>::infinity(); }
#endif
};

std::vector<declare::AnyKind> rules_of_a_test() { return declare::kinds_of<Rule, Example>(); }

}  // namespace pmaptrain::optimizers
