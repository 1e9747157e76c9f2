// Texts shared by the checks of divisibility: those that need only the config (division.cpp) and those that need the
// number of examples (data/batch.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pmaptrain::spec {

inline constexpr std::string_view mask_help = "remainder: mask pads the batch with rows of zero weight";

// "100 = 8 × 12 + 4"
std::string division(std::int64_t value, std::int64_t by);

}  // namespace pmaptrain::spec
