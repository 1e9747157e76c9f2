// Chooses the next token of a text from what a model says about it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace pmaptrain::evaluate {

struct Sampling {
  double temperature = 0.0;                          // 0: the most probable token
  std::optional<std::int64_t> top_k = std::nullopt;  // only so many of the most probable tokens
  double top_p = 1.0;                                // only the most probable tokens that have this share together
  std::uint64_t seed = 0;
};

// The token that follows, for its logits: their softmax after a division by the temperature. Of equal logits the lower
// token is the more probable. Draws depend on the seed and `number`, the place of the token in what is generated.
// Throws Error (failed) if a logit is NaN or infinite.
std::int32_t next_token(std::span<const float> logits, const Sampling& sampling, std::int64_t number);

}  // namespace pmaptrain::evaluate
