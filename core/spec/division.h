// Words shared by the checks of divisibility: of what the config alone says (division.cpp), and of what only the number
// of examples shows (data/batch.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pmaptrain::spec {

inline constexpr std::string_view mask_help = "remainder: mask pads the batch with rows of zero weight";

// "100 = 8 × 12 + 4"
std::string division(std::int64_t value, std::int64_t by);

}  // namespace pmaptrain::spec
