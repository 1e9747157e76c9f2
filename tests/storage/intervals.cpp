// Memory of arrays that are needed at different times.
#include "core/storage/intervals.h"

#include "core/base/saturate.h"
#include "tests/catch.h"

namespace pmaptrain {
namespace {

using Sizes = std::vector<std::size_t>;

TEST_CASE("arrays that are never needed together share memory", "[storage]") {
  const std::vector<Interval> intervals{{0, 1, 100}, {2, 3, 80}, {2, 2, 20}, {4, 4, 128}};
  const Offsets offsets = place(intervals, 64);
  CHECK(offsets.of == Sizes{0, 0, 128, 0});
  CHECK(offsets.end == 192);
}

TEST_CASE("an array that ends where another begins does not share its memory", "[storage]") {
  const std::vector<Interval> intervals{{0, 1, 64}, {1, 2, 64}, {2, 3, 64}};
  CHECK(place(intervals, 64).of == Sizes{0, 64, 0});
}

TEST_CASE("larger arrays are placed first where that needs less memory", "[storage]") {
  const std::vector<Interval> intervals{{0, 1, 64}, {1, 3, 64}, {2, 3, 128}};
  const Offsets offsets = place(intervals, 64);
  CHECK(offsets.end == 192);
  CHECK(offsets.of == Sizes{0, 128, 0});
}

TEST_CASE("arrays without bytes have places of their own, and sizes that overflow saturate", "[storage]") {
  const std::vector<Interval> empty{{0, 0, 0}, {0, 0, 0}};
  CHECK(place(empty, 64).of == Sizes{0, 64});
  const std::vector<Interval> large{{0, 1, most_bytes - 1}, {1, 1, most_bytes - 1}};
  CHECK(place(large, 64).end == most_bytes);
  CHECK(place({}, 64).end == 0);
}

}  // namespace
}  // namespace pmaptrain
