// A source that compiles, and what must not: CASE says which, tests/CMakeLists.txt what the compiler must then say.
#include "core/data/opening.h"

namespace pmaptrain::data {

struct Example {
  std::string train;
#if CASE == 2  // a member without a key
  std::int64_t other = 1;
#endif

#if CASE != 4  // not said
  static constexpr bool has_test = false;
#endif
#if CASE != 1  // no declaration
  static Declaration<Example> declaration() {
    return declare::kind<Example>({.path = "example"}, field(&Example::train, {.path = "train"}));
  }
#endif
#if CASE != 3  // nothing opens it
  Source open(const Opening&) const { return {}; }
#endif
};

std::vector<declare::AnyKind> sources_of_a_test() { return declare::kinds_of<SourceKind, Example>(); }

}  // namespace pmaptrain::data
