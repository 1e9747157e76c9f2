// Layers of tokens: their table, the positions of a sequence, and logits by the transposed table.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/equations/arithmetic.h"
#include "core/equations/division.h"
#include "core/layers/keys.h"
#include "core/layers/node.h"

namespace pmaptrain::layers {

inline void add_table(Node& layer, const LayerInput& in, const Shape& shape, const KernelInit& init) {
  layer.parameters.push_back(in.parameter("embedding", shape, init({shape[0], shape[1]})));
  layer.parameters.back().torch.field = "weight";
  layer.parameters.back().may_be_rounded = true;
}

// The rows of the table at the tokens. They are read in the type of parameters and then cast, so that the gradient of
// the table is a sum in that type.
struct Embedding {
  std::int64_t num_embeddings = 1, features = 1;
  KernelInit embedding_init = {};

  static Declaration<Embedding> declaration() {
    return declare::kind<Embedding>(
        {.path = "embedding",
         .meaning = "A row of a table for each token: integers of the data become features along a new last dimension. "
                    "Parameter: embedding (num_embeddings, features).",
         .example = "- {name: tokens, embedding: {num_embeddings: 256, features: 128}}"},
        field(&Embedding::num_embeddings,
              {.path = "num_embeddings",
               .need = Need::required,
               .low = 1,
               .high = 2147483647,
               .meaning = "The number of rows: tokens are 0 to num_embeddings - 1. Bytes have 256.",
               .example = "num_embeddings: 256"}),
        field(&Embedding::features, {.path = "features",
                                     .need = Need::required,
                                     .low = 1,
                                     .meaning = "Number of features of a token.",
                                     .example = "features: 128"}),
        field(&Embedding::embedding_init, layers::embedding_init("normal of stddev 1 / sqrt(features)")));
  }
  static constexpr bool looks_ahead = false;
  static constexpr bool takes_tokens = true;

  std::optional<Node> plan(const LayerInput& in) const {
    if (in.input_dtype != DType::i32) {
      return in.refuse("takes tokens, which are integers; its input is " + in.shown(),
                       "make it the first layer, of data that are tokens: data.source.text, or an array of integers "
                       "(data.source.npz)");
    }
    Node layer = in.start();
    layer.takes_tokens = true;
    layer.image = {};
    layer.output.push_back(features);
    const KernelInit otherwise = NormalInit{std::sqrt(1.0 / static_cast<double>(features))};
    add_table(layer, in, {num_embeddings, features}, embedding_init ? embedding_init : otherwise);
    layer.parameters.back().cut = {.rows = 0};
    layer.divisible = {.inside = true, .unit = "vocabulary"};
    layer.apply = [compute = layer.compute](const LayerCall& call, Value x) {
      const AxisSet divided = call.node.division_axes;
      if (!divided.empty()) {
        // Tokens of other devices are outside, and their rows zeros.
        const std::int64_t own = call.b.type(call.parameters[0]).shape.front();
        x = sub(call.b, x, offset_along(call.b, divided, own));
      }
      Value rows = call.b.emit(ops::Gather{}, {call.parameters[0], x});
      if (!divided.empty()) rows = summed_along(call.b, rows, divided);
      if (call.forward.looked_up != nullptr) (*call.forward.looked_up)[call.node.first_parameter] = rows;
      return cast(call.b, rows, compute);
    };
    return layer;
  }
};

// The embedding layers of a list, by their paths.
inline void find_tables(const std::vector<Layer>& layers, const std::string& prefix,
                        std::vector<std::pair<std::string, const Embedding*>>& out) {
  for (const Layer& layer : layers) {
    const std::string path = prefix + layer.name;
    if (const auto* const table = layer.kind.as<Embedding>()) out.emplace_back(path, table);
    for (const Inside& inside : layer.kind->inside()) {
      if (!inside.times) find_tables(*inside.layers, path + inside.prefix, out);
      for (std::int64_t time = 0; time < inside.times.value_or(0); ++time) {
        find_tables(*inside.layers, path + inside.prefix + std::to_string(time) + ".", out);
      }
    }
  }
}

// x times the transposed table of an embedding layer: a logit for each token. The table is the same parameter, so its
// gradient is the sum of both uses.
struct Attend {
  std::string embedding;  // the path of the layer whose table it takes

  static Declaration<Attend> declaration() {
    return declare::kind<Attend>(
        {.path = "attend",
         .meaning = "The product with the transposed table of an embedding layer: a logit for each of its tokens (tied "
                    "output). It has no parameters of its own.",
         .example = "- attend: {embedding: tokens}"},
        field(&Attend::embedding, {.path = "embedding",
                                   .need = Need::required,
                                   .meaning = "The path of the embedding layer.",
                                   .example = "embedding: tokens"}));
  }
  static constexpr bool looks_ahead = false;

  std::optional<Node> plan(const LayerInput& in) const {
    std::vector<std::pair<std::string, const Embedding*>> tables;
    find_tables(in.around.layers, "", tables);
    const Embedding* table = nullptr;
    for (const auto& [path, of_path] : tables) {
      if (path == embedding) table = of_path;
    }
    if (table == nullptr) {
      std::vector<std::string> paths;
      paths.reserve(tables.size());
      for (const auto& [path, of_path] : tables) paths.push_back(path);
      const std::string near = nearest(embedding, paths);
      return in.refuse("takes the table of '" + embedding + "', which is no embedding layer of this model",
                       paths.empty()  ? "begin with {name: tokens, embedding: {num_embeddings: 256, features: 128}}, "
                                        "and write attend: {embedding: tokens}"
                       : near.empty() ? "its embedding layers are " + join(paths, ", ")
                                      : "did you mean '" + near + "'?");
    }
    if (in.shape.empty() || in.shape.back() != table->features) {
      return in.refuse("takes features [..., " + std::to_string(table->features) + "], as '" + embedding +
                           "' gives; its input is " + in.shown(),
                       "add dense: " + std::to_string(table->features) + " before it");
    }
    Node layer = in.start();
    layer.image = {};
    layer.output.back() = table->num_embeddings;
    layer.shared_name = embedding + ".embedding";
    layer.apply = [](const LayerCall& call, Value x) {
      const Value shared = cast(call.b, call.forward.parameters[call.node.shared], call.b.type(x).dtype);
      return call.b.emit(ops::Matmul{false, true}, {x, shared});
    };
    return layer;
  }
};

// x plus a row of the table for each position. The sum is computed in the type of parameters.
struct PositionEmbedding {
  std::int64_t length = 1;
  KernelInit embedding_init = {};

  static Declaration<PositionEmbedding> declaration() {
    return declare::kind<PositionEmbedding>(
        {.path = "position_embedding",
         .meaning = "Adds a learned row to each position of a sequence (T, C). Parameter: embedding (length, C).",
         .example = "- position_embedding: {length: 128}"},
        field(&PositionEmbedding::length, {.path = "length",
                                           .need = Need::required,
                                           .low = 1,
                                           .meaning = "The most positions that a sequence may have.",
                                           .example = "length: 128"}),
        field(&PositionEmbedding::embedding_init, layers::embedding_init("normal of stddev 0.02")));
  }
  static constexpr bool looks_ahead = false;

  std::optional<Node> plan(const LayerInput& in) const {
    if (in.shape.size() != 2) {
      return in.refuse("takes sequences [T, C]; its input is " + in.shown(),
                       in.shape.size() == 1 ? "put it after embedding" : "add reshape: [T, C] before it");
    }
    if (in.shape.front() > length) {
      return in.refuse("has length " + std::to_string(length) + ", but its input " + in.shown() + " has " +
                           std::to_string(in.shape.front()) + " positions",
                       "write length: " + std::to_string(in.shape.front()) + ", or use shorter sequences");
    }
    Node layer = in.start();
    layer.image = {};
    const KernelInit otherwise = NormalInit{0.02};
    add_table(layer, in, {length, in.shape.back()}, embedding_init ? embedding_init : otherwise);
    layer.apply = [storage = in.precision.storage](const LayerCall& call, Value x) {
      Builder& b = call.b;
      const Type type = b.type(x);
      const std::int64_t positions = type.shape[1], features = type.shape[2];
      Value rows = call.parameters[0];
      if (const std::optional<Value> position = call.forward.position()) {
        rows = b.emit(ops::Gather{}, {rows, *position});
      } else if (b.type(rows).shape.front() > positions) {
        rows = b.emit(ops::Slice{{0, 0}, {positions, features}}, {rows});
      }
      rows = b.emit(ops::Broadcast{type.shape, {1, 2}}, {cast(b, rows, storage)});
      return cast(b, add(b, cast(b, x, storage), rows), type.dtype);
    };
    return layer;
  }
};

}  // namespace pmaptrain::layers
