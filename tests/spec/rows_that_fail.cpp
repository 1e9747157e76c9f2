// A map whose keys are bound, and what must not compile: CASE says which, tests/CMakeLists.txt what the compiler must
// then say.
#include "core/spec/rows/row.h"

namespace pmaptrain::spec {

struct Bound {
#if CASE == 4  // a member of a type without Takes
  struct Rate {
  } rate;
#else
  double rate = 0.5;
#endif
};
struct Other {
  std::int64_t count = 1;
};

#if CASE == 2  // a row whose struct is no section
static auto row(Tag<Other>) { return keys_of<Other>(option(&Other::count, {.path = "count"})); }
#endif
#if CASE == 3  // an option of a member that the section does not have
static auto row(Tag<Bound>) { return keys_of<Bound>(option(&Other::count, {.path = "rate"})); }
#elif CASE != 1  // a section without a row
static auto row(Tag<Bound>) { return keys_of<Bound>(option(&Bound::rate, {.path = "rate"})); }
#endif

template struct Section<Bound>;

}  // namespace pmaptrain::spec
