// A layer that compiles, and what must not: CASE says which, tests/CMakeLists.txt what the compiler must then say.
#include "core/layers/keys.h"
#include "core/layers/node.h"

namespace pmaptrain::layers {

struct Example {
  double slope = 0.5;
#if CASE == 2  // a member without a key
  bool other = false;
#endif
#if CASE == 6  // a value that no key can have
  float small = 1.0F;
#endif

#if CASE != 1  // no declaration
  static Declaration<Example> declaration() {
    return declare::kind<Example>({.path = "example"}, field(&Example::slope, {.path = "slope"})
#if CASE == 6
                                                           ,
                                  field(&Example::small, {.path = "small"})
#endif
    );
  }
#endif
#if CASE == 5  // another signature
  bool looks_ahead(int position) const { return position > 0; }
#elif CASE != 4  // not said
  static constexpr bool looks_ahead = false;
#endif
#if CASE != 3  // no equations
  std::optional<Node> plan(const LayerInput& in) const { return in.start(); }
#endif
};

std::vector<declare::AnyKind> layers_of_a_test() { return declare::kinds_of<LayerKind, Example>(); }

}  // namespace pmaptrain::layers
