// What part of the combinations of expensive cases is run.
#include "tests/slice.h"

#include <algorithm>
#include <set>
#include <string>

#include "tests/catch.h"

using namespace pmaptrain;
using test::read_slices;
using test::Slice;

TEST_CASE("every slice has the covering set, and all slices together have every combination", "[base]") {
  std::set<std::uint32_t> seen;
  for (std::uint64_t number = 0; number < 5; ++number) {
    const auto seeds = test::some_seeds(3, 20, 5, {false, number});
    CHECK(seeds == test::some_seeds(3, 20, 5, {false, number + 5000}));
    CHECK(seeds.size() <= 3 + 4);
    for (const std::uint32_t covering : {0u, 1u, 2u}) {
      CHECK(std::count(seeds.begin(), seeds.end(), covering) == 1);
    }
    seen.insert(seeds.begin(), seeds.end());
  }
  CHECK(seen.size() == 20);
  CHECK(test::some_seeds(3, 20, 5, {true, 1}).size() == 20);
}

TEST_CASE("combinations of the covering set take no turn of a slice", "[base]") {
  Slice slice(2, {false, 1});
  CHECK_FALSE(slice.takes());
  CHECK(slice.takes(true));
  CHECK(slice.takes());
  CHECK_FALSE(slice.takes());
}

TEST_CASE("values take turns, from another one on in another slice, and all have one at once where all are run",
          "[base]") {
  using Values = std::vector<std::size_t>;
  test::Turns turns({false, 4}), all({true, 4});
  for (const std::size_t value : {1u, 2u, 0u, 1u}) CHECK(turns.next(3) == Values{value});
  CHECK(all.next(3) == Values{1, 0, 2});
  CHECK(test::Turns({false, 5}).next(2) == Values{1});
}

TEST_CASE("wrong values of the variables that select slices are refused", "[base]") {
  CHECK(read_slices(nullptr, nullptr).number == 0);
  CHECK_FALSE(read_slices(nullptr, nullptr).all);
  CHECK_FALSE(read_slices("0", "").all);
  CHECK(read_slices("1", nullptr).all);
  CHECK(read_slices("", "18446744073709551615").number == 18446744073709551615u);
  for (const char* const wrong : {"-1", "x", "1 ", " 1", "1.5", "0x1", "18446744073709551616"}) {
    CHECK_THROWS_WITH(read_slices(nullptr, wrong),
                      "PMAPTRAIN_TEST_SLICE is a number of at least 0, below 2^64, not '" + std::string(wrong) + "'");
  }
  for (const char* const wrong : {"2", "yes", "true", " 1"}) {
    CHECK_THROWS_WITH(read_slices(wrong, nullptr), "PMAPTRAIN_TEST_ALL is 0 or 1, not '" + std::string(wrong) + "'");
  }
}
