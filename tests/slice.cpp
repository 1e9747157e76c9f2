#include "tests/slice.h"

#include <charconv>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

namespace pmaptrain::test {

Slices read_slices(const char* all, const char* number) {
  const std::string_view all_text = all == nullptr ? "" : all, text = number == nullptr ? "" : number;
  Slices slices;
  if (all_text != "" && all_text != "0" && all_text != "1") {
    throw std::runtime_error("PMAPTRAIN_TEST_ALL is 0 or 1, not '" + std::string(all_text) + "'");
  }
  slices.all = all_text == "1";
  if (!text.empty()) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slices.number);
    if (error != std::errc() || end != text.data() + text.size()) {
      throw std::runtime_error("PMAPTRAIN_TEST_SLICE is a number of at least 0, below 2^64, not '" + std::string(text) +
                               "'");
    }
  }
  return slices;
}

const Slices& slices() {
  static const Slices from_environment =
      read_slices(std::getenv("PMAPTRAIN_TEST_ALL"), std::getenv("PMAPTRAIN_TEST_SLICE"));
  return from_environment;
}

}  // namespace pmaptrain::test
