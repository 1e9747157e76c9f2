// Low-rank adapters beside the kernels of a model that stays as it is (Hu et al., "LoRA: Low-Rank Adaptation of Large
// Language Models", 2021).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/declare/values.h"
#include "core/equations/numbers.h"
#include "core/layers/node.h"

namespace pmaptrain::model {

enum class BasePrecision { float32, bfloat16 };
constexpr std::array<declare::Word<BasePrecision>, 2> words_of(declare::Tag<BasePrecision>) {
  return {{{"float32", BasePrecision::float32}, {"bfloat16", BasePrecision::bfloat16}}};
}

struct Lora {
  std::int64_t rank = 8;
  double alpha = 16.0;
  double dropout = 0.0;
  std::vector<declare::Pattern> parameters;       // of kernels, by their names without ".kernel": *.query
  std::vector<declare::Pattern> also_train = {};  // of other parameters
  BasePrecision base_precision = BasePrecision::float32;
  Place place = {}, rank_place = {};

  double scale() const { return alpha / static_cast<double>(rank); }
};

// Adds adapters to the nodes, whose kernels must not be numbered yet: "X.lora_a" (in, rank) and "X.lora_b" (rank, out)
// for each kernel "X.kernel" that a pattern matches. All other parameters become the base (LoraRole), but those of
// also_train. What does not fit is reported to `errors`.
void adapt(const Lora& lora, std::vector<layers::Node>& nodes, std::vector<Diagnostic>& errors);

// The numbers of dropout before adapters; none if nothing is dropped.
std::vector<equations::Number> lora_numbers(const Lora& lora, DType storage);

}  // namespace pmaptrain::model
