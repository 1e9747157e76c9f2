// Layers of tokens: their table, the positions of a sequence, and logits by the transposed table.
#include <cmath>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/equations/arithmetic.h"
#include "core/model/layers.h"

namespace pmaptrain::model {
namespace {

struct Table {
  std::string path;  // of the embedding layer
  spec::Embedding of;
};

// The embedding layers of a config, with their paths.
void find_tables(const std::vector<spec::Layer>& layers, const std::string& prefix, std::vector<Table>& out) {
  for (const spec::Layer& layer : layers) {
    const std::string path = prefix + layer.name;
    if (const auto* table = std::get_if<spec::Embedding>(&layer.kind)) out.push_back({path, *table});
    if (const auto* list = std::get_if<spec::Layers>(&layer.kind)) find_tables(list->layers, path + ".", out);
    if (const auto* residual = std::get_if<spec::Residual>(&layer.kind)) {
      find_tables(residual->layers, path + ".", out);
      find_tables(residual->shortcut, path + ".shortcut.", out);
    }
    if (const auto* repeat = std::get_if<spec::Repeat>(&layer.kind)) {
      for (std::int64_t time = 0; time < repeat->times; ++time) {
        find_tables(repeat->layers, path + "." + std::to_string(time) + ".", out);
      }
    }
  }
}

void add_table(Node& layer, const LayerInput& in, const Shape& shape, const spec::KernelInit& init) {
  layer.parameters.push_back(in.parameter("embedding", shape, initializer_of(init, {shape[0], shape[1]})));
  layer.parameters.back().torch.field = "weight";
}

}  // namespace

// The rows of the table at the tokens. They are read in the type of parameters and then cast, so that the gradient of
// the table is a sum in that type.
std::optional<Node> plan(const spec::Embedding& embedding, const LayerInput& in) {
  if (in.input_dtype != DType::i32) {
    return in.refuse("takes tokens, which are integers; its input is " + in.shown(),
                     "make it the first layer, of data that are tokens: data.source.text, or an array of integers "
                     "(data.source.npz)");
  }
  Node layer = in.start();
  layer.takes_tokens = true;
  layer.image = {};
  layer.output.push_back(embedding.features);
  const spec::KernelInit otherwise = spec::NormalInit{std::sqrt(1.0 / static_cast<double>(embedding.features))};
  add_table(layer, in, {embedding.num_embeddings, embedding.features},
            embedding.embedding_init ? embedding.embedding_init : otherwise);
  layer.apply = [compute = layer.compute](const LayerCall& call, Value x) {
    const Value rows = call.b.emit(ops::Gather{}, {call.parameters[0], x});
    if (call.forward.looked_up != nullptr) (*call.forward.looked_up)[call.node.first_parameter] = rows;
    return cast(call.b, rows, compute);
  };
  return layer;
}

// x times the transposed table of an embedding layer: a logit for each token. The table is the same parameter, so its
// gradient is the sum of both uses.
std::optional<Node> plan(const spec::Attend& attend, const LayerInput& in) {
  std::vector<Table> tables;
  find_tables(in.spec.model.layers, "", tables);
  const Table* found = nullptr;
  std::vector<std::string> paths;
  for (const Table& table : tables) {
    paths.push_back(table.path);
    if (table.path == attend.embedding) found = &table;
  }
  if (found == nullptr) {
    const std::string near = nearest(attend.embedding, paths);
    return in.refuse("takes the table of '" + attend.embedding + "', which is no embedding layer of this model",
                     paths.empty()  ? "begin with {name: tokens, embedding: {num_embeddings: 256, features: 128}}, and "
                                      "write attend: {embedding: tokens}"
                     : near.empty() ? "its embedding layers are " + join(paths, ", ")
                                    : "did you mean '" + near + "'?");
  }
  if (in.shape.empty() || in.shape.back() != found->of.features) {
    return in.refuse("takes features [..., " + std::to_string(found->of.features) + "], as '" + found->path +
                         "' gives; its input is " + in.shown(),
                     "add dense: " + std::to_string(found->of.features) + " before it");
  }
  Node layer = in.start();
  layer.image = {};
  layer.output.back() = found->of.num_embeddings;
  layer.shared_name = found->path + ".embedding";
  layer.apply = [](const LayerCall& call, Value x) {
    const Value table = cast(call.b, call.forward.parameters[call.node.shared], call.b.type(x).dtype);
    return call.b.emit(ops::Matmul{false, true}, {x, table});
  };
  return layer;
}

// x plus a row of the table for each position. The sum is computed in the type of parameters.
std::optional<Node> plan(const spec::PositionEmbedding& embedding, const LayerInput& in) {
  if (in.shape.size() != 2) {
    return in.refuse("takes sequences [T, C]; its input is " + in.shown(),
                     in.shape.size() == 1 ? "put it after embedding" : "add reshape: [T, C] before it");
  }
  if (in.shape.front() > embedding.length) {
    return in.refuse("has length " + std::to_string(embedding.length) + ", but its input " + in.shown() + " has " +
                         std::to_string(in.shape.front()) + " positions",
                     "write length: " + std::to_string(in.shape.front()) + ", or use shorter sequences");
  }
  Node layer = in.start();
  layer.image = {};
  const spec::KernelInit otherwise = spec::NormalInit{0.02};
  add_table(layer, in, {embedding.length, in.shape.back()},
            embedding.embedding_init ? embedding.embedding_init : otherwise);
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
    rows = b.emit(ops::Broadcast{type.shape, {1, 2}}, {rows});
    return cast(b, add(b, cast(b, x, storage), rows), type.dtype);
  };
  return layer;
}

}  // namespace pmaptrain::model
