// A choice whose alternatives are bound, and what must not compile: CASE says which, tests/CMakeLists.txt what the
// compiler must then say.
#include "core/spec/rows/row.h"

namespace pmaptrain::spec {

struct Bound {
#if CASE == 5  // a member of a type without Takes
  struct Rate {
  } rate;
#else
  double rate = 0.5;
#endif
};
struct Other {
  std::int64_t count = 1;
};
#if CASE == 1  // an alternative without a row
using Example = std::variant<Bound, Other>;
#else
using Example = std::variant<Bound>;
#endif

#if CASE == 2  // a member without an option
static auto row(Tag<Bound>) { return alternative<Bound>({.path = "bound"}); }
#elif CASE == 3  // a row whose struct is no alternative
static auto row(Tag<Bound>) { return alternative<Bound>({.path = "bound"}, option(&Bound::rate, {.path = "rate"})); }
static auto row(Tag<Other>) { return alternative<Other>({.path = "other"}, option(&Other::count, {.path = "count"})); }
#elif CASE == 4  // an option of a member that the alternative does not have
static auto row(Tag<Bound>) { return alternative<Bound>({.path = "bound"}, option(&Other::count, {.path = "rate"})); }
#else
static auto row(Tag<Bound>) { return alternative<Bound>({.path = "bound"}, option(&Bound::rate, {.path = "rate"})); }
#endif

template struct Choice<Example>;

}  // namespace pmaptrain::spec
