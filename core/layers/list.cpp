#include "core/layers/activations.h"
#include "core/layers/attention.h"
#include "core/layers/batch_norm.h"
#include "core/layers/conv.h"
#include "core/layers/conv_transpose.h"
#include "core/layers/dense.h"
#include "core/layers/dropout.h"
#include "core/layers/embedding.h"
#include "core/layers/nested.h"
#include "core/layers/norms.h"
#include "core/layers/parallel.h"
#include "core/layers/pooling.h"
#include "core/layers/positions.h"
#include "core/layers/recurrent.h"
#include "core/layers/reshape.h"
#include "core/layers/scale.h"
#include "core/layers/swiglu.h"
#include "core/layers/table_embedding.h"
#include "core/layers/upsample.h"

namespace pmaptrain::layers {

// In the order of help.
const std::vector<declare::AnyKind>& family(declare::Tag<LayerKind>) {
  static const auto all =
      declare::kinds_of<LayerKind, Dense, Conv, MaxPool, AvgPool, GlobalAvgPool, GlobalMaxPool, ConvTranspose, Upsample,
                        Reshape, Layers, Residual, Parallel, Repeat, Flatten, Transpose, Dropout, LayerNorm, RmsNorm,
                        GroupNorm, BatchNorm, Embedding, Attend, PositionEmbedding, TableEmbedding, ClassToken, Take,
                        Attention, Lstm, Gru, Swiglu, Scale, Relu, Tanh, Gelu, Sigmoid, Silu, Softmax, LeakyRelu, Elu,
                        Softplus>();
  return all;
}

// The keys beside those of its kind.
Declaration<Layer> Layer::keys() {
  return declare::map<Layer>(
      field(&Layer::name, {.path = "name",
                           .identifier = true,
                           .meaning = "The prefix of the layer's parameter names: head.kernel, head.bias.",
                           .example = "{name: head, dense: 10}",
                           .fallback_text = "its kind and its index among that kind: conv_0"}),
      field(&Layer::precision,
            {.path = "precision",
             .words = {"float32"},
             .meaning = "Keeps this layer, or list of layers, in float32 under precision: mixed_bfloat16.",
             .example = "{dense: 10, precision: float32}",
             .fallback_text = "the precision of the config"}),
      field(&Layer::remat,
            {.path = "remat",
             .meaning = "Whether the backward pass computes the activations of this layer, or list of layers, "
                        "again from its input: less memory, more time.",
             .example = "{residual: {layers: [{dense: 64}, relu]}, remat: true}",
             .fallback_text = "false"}),
      field(&Layer::tensor,
            {.path = "tensor",
             .meaning = "none: where parallelism.tensor divides layers over devices, each computes all of this layer, "
                        "or list of layers.",
             .example = "{dense: 64, tensor: none}",
             .fallback_text = "divided if parallelism.tensor is there and its kind can be"}),
      declare::alternatives(&Layer::kind, &Layer::place));
}

}  // namespace pmaptrain::layers
