// An initializer that compiles, and what must not: CASE says which, tests/CMakeLists.txt what the compiler must then
// say.
#include "core/layers/initializers.h"

namespace pmaptrain::layers {

struct Example {
  double value = 0.5;
#if CASE == 2  // a member without a key
  double other = 1.0;
#endif

#if CASE != 1  // no declaration
  static Declaration<Example> declaration() {
    return declare::kind<Example>({.path = "example"}, field(&Example::value, {.path = "value"}));
  }
#endif
#if CASE != 3  // no first values
  Initializer initial(const Fans&) const { return {InitializerKind::constant, value}; }
#endif
};

std::vector<declare::AnyKind> initializers_of_a_test() { return declare::kinds_of<KernelInit, Example>(); }

}  // namespace pmaptrain::layers
