#include "core/base/saturate.h"

#include "tests/catch.h"

using namespace pmaptrain;

TEST_CASE("sums and products of bytes end at the largest number", "[base]") {
  CHECK(sum_of(1, std::size_t{2}, std::size_t{3}) == 6);
  CHECK(sum_of(most_bytes - 1, std::size_t{1}) == most_bytes);
  CHECK(sum_of(most_bytes, std::size_t{1}, std::size_t{5}) == most_bytes);
  CHECK(product_of(6, 7) == 42);
  CHECK(product_of(std::size_t{1} << 32, std::size_t{1} << 32) == most_bytes);
  CHECK(product_of(most_bytes, 0) == 0);
  CHECK(round_up(1, 64) == 64);
  CHECK(round_up(128, 64) == 128);
  CHECK(round_up(most_bytes, 64) == most_bytes - 63);
}
