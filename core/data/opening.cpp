#include "core/data/opening.h"

#include <fmt/format.h>

#include "core/base/error.h"

namespace pmaptrain::data {

void check_equal(std::string_view what, Split first, const Field& a, Split second, const Field& b) {
  if (a.dtype == b.dtype && a.shape == b.shape) return;
  fail_data(
      fmt::format("the {} split's {} are {}{}, but the {} split's are {}{}", name_of(first), what, to_string(a.dtype),
                  to_string(a.shape), name_of(second), to_string(b.dtype), to_string(b.shape)),
      "the examples of all splits must have the same type and shape");
}

}  // namespace pmaptrain::data
