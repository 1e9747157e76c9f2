// An augmentation that compiles, and what must not: CASE says which, tests/CMakeLists.txt what the compiler must then
// say.
#include "core/augment/augmentation.h"

namespace pmaptrain::augment {

struct Example {
  double strength = 0.5;
#if CASE == 2  // a member without a key
  double other = 1.0;
#endif

#if CASE != 1  // no declaration
  static Declaration<Example> declaration() {
    return declare::kind<Example>({.path = "example"}, field(&Example::strength, {.path = "strength"}));
  }
#endif
#if CASE != 3  // neither of the two
  void change(const Pixels&, const Draws&) const {}
#endif
#if CASE == 4  // both
  Mix mix(ImageSize, const Draws&) const { return {}; }
#endif
};

std::vector<declare::AnyKind> augmentations_of_a_test() { return declare::kinds_of<AugmentationKind, Example>(); }

}  // namespace pmaptrain::augment
