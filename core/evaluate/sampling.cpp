#include "core/evaluate/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/base/error.h"
#include "core/base/philox.h"

namespace pmaptrain::evaluate {
namespace {

// In [0, 1).
double draw(std::uint64_t seed, std::int64_t number) {
  const auto at = static_cast<std::uint64_t>(number);
  const auto words = philox4x32(stream_key(seed, "predict/prompt"),
                                {0, 0, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at >> 32)});
  return static_cast<double>(words[0]) / 4294967296.0;
}

}  // namespace

std::int32_t next_token(std::span<const float> logits, const Sampling& sampling, std::int64_t number) {
  if (!std::all_of(logits.begin(), logits.end(), [](float logit) { return std::isfinite(logit); })) {
    fail_running("the model's output for the next token is not finite", "a checkpoint of an earlier step may be whole");
  }
  const auto largest = std::max_element(logits.begin(), logits.end());  // the first of equal ones
  if (sampling.temperature == 0) return static_cast<std::int32_t>(largest - logits.begin());
  std::vector<std::int32_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto logit = [&](std::int32_t token) { return logits[static_cast<std::size_t>(token)]; };
  std::stable_sort(tokens.begin(), tokens.end(), [&](std::int32_t a, std::int32_t b) { return logit(a) > logit(b); });
  if (sampling.top_k && *sampling.top_k < std::ssize(tokens)) tokens.resize(static_cast<std::size_t>(*sampling.top_k));
  std::vector<double> weights;
  double all = 0;
  for (const std::int32_t token : tokens) {
    const double above = static_cast<double>(logit(token)) - static_cast<double>(*largest);
    weights.push_back(std::exp(above / sampling.temperature));
    all += weights.back();
  }
  double kept = 0;
  std::size_t count = 0;
  while (count < weights.size() && (count == 0 || kept < sampling.top_p * all)) kept += weights[count++];
  double left = draw(sampling.seed, number) * kept;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    left -= weights[i];
    if (left < 0) return tokens[i];
  }
  return tokens[count - 1];
}

}  // namespace pmaptrain::evaluate
