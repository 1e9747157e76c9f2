// The row of `lora`.
#include "core/spec/rows/row.h"

// Rows are found beside their structs.
namespace pmaptrain::model {

using namespace spec;

static auto row(Tag<Lora>) {
  return keys_of<Lora>(
      option(&Lora::rank, {.path = "rank",
                           .low = 1,
                           .high = 65536,
                           .meaning = "The number of columns of a and of rows of b; at most the smaller size of each "
                                      "kernel.",
                           .example = "rank: 16"}),
      option(&Lora::alpha, {.path = "alpha",
                            .high = unbounded,
                            .open_low = true,
                            .meaning = "The product of an adapter is multiplied by alpha / rank.",
                            .example = "alpha: 32.0"}),
      option(&Lora::dropout,
             {.path = "dropout",
              .high = 1,
              .open_high = true,
              .varies = true,
              .structural = declare::Structural{0.0, "dropout of rate 0 does nothing"},
              .meaning = "In training, the probability that an input of a is set to zero; the others are divided by "
                         "1 - dropout.",
              .example = "dropout: 0.05"}),
      option(&Lora::parameters,
             {.path = "parameters",
              .need = Need::required,
              .meaning = "The kernels to adapt, of dense, attention and swiglu, by their names without .kernel; * "
                         "stands for any characters, dots included.",
              .example = "parameters: [\"*.query\", \"*.value\"]"}),
      option(&Lora::also_train,
             {.path = "also_train",
              .fallback = "[]",
              .meaning = "Names of parameters that are trained as a whole, beside the adapters, such as those of a new "
                         "head.",
              .example = "also_train: [\"head.*\"]"}),
      option(&Lora::base_precision,
             {.path = "base_precision",
              .meaning = "How the parameters that stay as they are lie in memory. bfloat16: kernels and tables are "
                         "rounded once, when they are loaded; biases and norms are float32.",
              .example = "base_precision: bfloat16"}));
}

}  // namespace pmaptrain::model

namespace pmaptrain::spec {

template struct Section<model::Lora>;

}  // namespace pmaptrain::spec
