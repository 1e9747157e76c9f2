// The rows of `model` and of its initial values.
#include "core/spec/rows/row.h"
#include "core/spec/types/path.h"
#include "core/spec/types/renames.h"
#include "core/spec/types/tensors.h"

namespace pmaptrain::spec {

static constexpr std::array<Word<Weights>, 2> words_of(Tag<Weights>) {
  return {{{"ema", Weights::ema}, {"raw", Weights::raw}}};
}

static auto row(Tag<InitialFrom>) {
  return keys_of<InitialFrom>(
      option(&InitialFrom::path, {.path = "path",
                                  .type = Type::path,
                                  .need = Need::required,
                                  .shorthand = true,
                                  .meaning = "A safetensors file, a run folder, or a folder that transformers wrote.",
                                  .example = "path: runs/cnn"}),
      option(&InitialFrom::checkpoint, {.path = "checkpoint",
                                        .type = Type::integer,
                                        .low = 1,
                                        .words = {"last", "best"},
                                        .meaning = "The checkpoint of a run folder: last, best or a step.",
                                        .example = "checkpoint: best"}),
      option(&InitialFrom::weights,
             {.path = "weights",
              .meaning = "The weights of a run folder's checkpoint: ema are the averaged ones of train.ema, where the "
                         "checkpoint has them; raw are those that training continues from.",
              .example = "weights: raw"}),
      option(&InitialFrom::member, {.path = "member",
                                    .low = 0,
                                    .meaning = "The member of an ensemble's parameters, from 0.",
                                    .example = "member: 3",
                                    .fallback_text = "of as many members each its own; of another run there is none"}),
      option(&InitialFrom::include, {.path = "include",
                                     .fallback = "[\"*\"]",
                                     .meaning = "Patterns of the names of the parameters to take; * stands for any "
                                                "characters, dots too.",
                                     .example = "include: [\"conv_*\"]"}),
      option(&InitialFrom::exclude, {.path = "exclude",
                                     .fallback = "[]",
                                     .meaning = "Patterns of the names of parameters that keep their default "
                                                "initialisation.",
                                     .example = "exclude: [\"head.*\"]"}),
      option(&InitialFrom::layout,
             {.path = "layout",
              .meaning =
                  "How the parameters are named and stored in a file. flax: as pmaptrain and Flax do, (in, out). "
                  "torch: as PyTorch does: kernels are named weight, (out, in) and (out, in, height, width), and "
                  "the inputs of a dense layer after an image that was flattened are in the order channels, "
                  "height, width. hf_gpt2, hf_llama, hf_vit and torchvision_resnet: as transformers and torchvision "
                  "name and store such a model, for the layers that pmaptrain init hf and init torchvision write.",
              .example = "layout: torch"}),
      option(
          &InitialFrom::rename,
          {.path = "rename",
           .fallback = "{}",
           .meaning = "Names of tensors in the file, and the parameters that they are. Each * on the left stands for "
                      "any characters, which take the place of the same * on the right. The first that matches a "
                      "tensor applies.",
           .example = "rename: {\"features.0.weight\": conv_0.kernel, \"features.0.bias\": conv_0.bias}"}),
      option(&InitialFrom::transpose,
             {.path = "transpose",
              .meaning = "Patterns of the names of the parameters that the file has transposed, in place of all that "
                         "layout has so.",
              .example = "transpose: [\"head.*\"]",
              .fallback_text = "what the layout stores so: with torch all kernels, with flax none"}));
}

static auto row(Tag<ModelSpec>) {
  return keys_of<ModelSpec>(
      choices(&ModelSpec::layers,
              {.path = "layers",
               .need = Need::required,
               .meaning = "The layers, in order. Images are (height, width, channels). A layer is written as a bare "
                          "name, or as one key with its options.",
               .example = "layers:\n  - conv: {features: 32, kernel_size: [3, 3]}\n  - relu\n  - flatten\n"
                          "  - {name: head, dense: 10}",
               .item = "layer"}),
      by_hand<ModelSpec>(
          {.path = "init",
           .type = Type::choice,
           .meaning = "Initial values of parameters, by name. By default kernels are LeCun normal and biases are zero.",
           .example = "init: {from: params.safetensors}",
           .fallback_text = "random values from the seed"}),
      section(&ModelSpec::initial_from,
              {.path = "init.from",
               .need = Need::alternative,
               .meaning = "A safetensors file, or a checkpoint of a run, with the initial value of each parameter.",
               .example = "init: {from: params.safetensors}\ninit: {from: runs/cnn}\n"
                          "init: {from: {path: runs/cnn, checkpoint: best, exclude: [\"head.*\"]}}"}),
      option(&ModelSpec::initial_values, {.path = "init.values",
                                          .type = Type::tensors,
                                          .need = Need::alternative,
                                          .low = -unbounded,
                                          .high = unbounded,
                                          .meaning = "Initial values as nested lists of numbers; parameters that are "
                                                     "not listed keep their default initialisation.",
                                          .example = "init: {values: {dense_0: {kernel: [[1.0]], bias: [0.0]}}}"}));
}

template struct Section<ModelSpec>;
template struct Section<InitialFrom>;

}  // namespace pmaptrain::spec
