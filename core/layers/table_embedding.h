// The columns of a table as features: numbers as they are, categories as rows of tables that are learned.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/base/utf8.h"
#include "core/equations/arithmetic.h"
#include "core/layers/dropout.h"
#include "core/layers/keys.h"
#include "core/layers/nested.h"
#include "core/layers/node.h"

namespace pmaptrain::layers {

// The layer whose input are the inputs of the model, and which alone has them; null if there is none.
inline const Layer* layer_of_inputs(const std::vector<Layer>& layers) {
  if (layers.empty()) return nullptr;
  const auto* const list = layers.front().kind.as<Layers>();
  return list != nullptr ? layer_of_inputs(list->layers) : &layers.front();
}

// Names of parameters for columns: letters, digits and '_' of their names, each once. Other characters are one '_' for
// each run of them.
inline std::vector<std::string> names_of_tables(std::span<const InputColumn> columns) {
  std::vector<std::string> names;
  std::unordered_set<std::string> taken;
  std::unordered_map<std::string, int> last;  // the number behind the last column of a name
  for (const InputColumn& column : columns) {
    std::string name;
    for (const char c : column.name) {
      const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
      if (is_plain || name.empty() || name.back() != '_') name += is_plain ? c : '_';
    }
    if (name.empty()) name = "_";
    std::string own = name;
    for (int& number = last.try_emplace(name, 1).first->second; !taken.insert(own).second;) {
      own = name + "_" + std::to_string(++number);
    }
    names.push_back(std::move(own));
  }
  return names;
}

// A row of a table for each category (Guo and Berkhahn, "Entity Embeddings of Categorical Variables", 2016). Row 0
// stands for a category that training does not have, so nothing trains it: it begins as zeros, which is the mean of
// the first values of the others, and what such a category is without this layer.
struct TableEmbedding {
  std::optional<std::int64_t> width;  // none: by the number of categories
  double dropout = 0.0;

  static Declaration<TableEmbedding> declaration() {
    return declare::kind<TableEmbedding>(
        {.path = "table_embedding",
         .meaning = "Of a table with columns of categories (data.source.csv.categorical), as the first layer: the "
                    "columns in their order, numbers as they are, and for each category a row of a table of its "
                    "column, in place of an input for each category. Row 0 is that of a category which training does "
                    "not have (data.source.csv.unknown: ignore), and begins as zeros. Parameters, by the names of "
                    "columns: city.embedding (categories + 1, width).",
         .example = "- table_embedding\n- table_embedding: {width: 8, dropout: 0.1}"},
        field(&TableEmbedding::width,
              {.path = "width",
               .fallback = "auto",
               .low = 1,
               .high = 65536,
               .words = {"auto"},
               .meaning = "Number of features of each category. auto: 1.6 times the number of the column's categories "
                          "to the power of 0.56, rounded, and at most 600: 5 of 8, 31 of 200, 77 of 1000.",
               .example = "width: 8"}),
        field(&TableEmbedding::dropout,
              dropout_rate("dropout", Need::optional,
                           "In training, the probability that a feature of a category is set to zero; the others are "
                           "divided by 1 - dropout. Numbers are never dropped.",
                           "dropout: 0.1")));
  }
  static constexpr bool looks_ahead = false;

  // Of a column with so many categories.
  std::int64_t width_for(std::int64_t categories) const {
    constexpr std::int64_t most = 600;
    if (width) return *width;
    return std::min<std::int64_t>(most, std::llround(1.6 * std::pow(static_cast<double>(categories), 0.56)));
  }

  std::optional<Node> plan(const LayerInput& in) const {
    const std::span<const InputColumn> columns = in.around.columns;
    const auto is_category = [](const InputColumn& column) { return column.categories > 0; };
    if (layer_of_inputs(in.around.layers) != &in.layer) {
      return in.refuse("takes the columns of the data, which only the first layer of a model has",
                       "put it at the beginning of model.layers, outside of residual, parallel and repeat");
    }
    if (columns.empty()) {
      return in.refuse("takes the columns of a table, and the data are no table: " + in.shown(),
                       "data.source.csv has columns, of which categorical names those of categories; tokens take "
                       "embedding");
    }
    if (std::none_of(columns.begin(), columns.end(), is_category)) {
      return in.refuse("makes features of categories, and no column of the table has any",
                       "name such columns: data.source.csv.categorical: [" + shown_name(columns.front().name) +
                           "]; for numbers alone leave the layer out");
    }
    Node layer = in.start();
    layer.compute = in.precision.storage;  // bf16 does not tell the numbers of categories apart
    layer.image = {};
    layer.output = {0};
    const std::vector<std::string> names = names_of_tables(columns);
    std::vector<Part> parts;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (!is_category(columns[i])) {
        if (parts.empty() || parts.back().is_table) parts.push_back({false, static_cast<std::int64_t>(i), 0});
        ++parts.back().width;
        ++layer.output.front();
        continue;
      }
      const std::int64_t features = width_for(columns[i].categories);
      Initializer initial = NormalInit{std::sqrt(1.0 / static_cast<double>(features))}.initial();
      initial.zeros = features;
      layer.parameters.push_back(in.parameter(names[i] + ".embedding", {columns[i].categories + 1, features}, initial));
      layer.parameters.back().torch.field = "weight";
      parts.push_back({true, static_cast<std::int64_t>(i), features});
      layer.output.front() += features;
    }
    add_dropout(layer, dropout, in.precision.storage);
    layer.apply = [parts = std::move(parts)](const LayerCall& call, Value x) { return apply(call, parts, x); };
    return layer;
  }

 private:
  // Neighbours among the features that the layer gives: those of a column of categories, or columns of numbers.
  struct Part {
    bool is_table = false;
    std::int64_t column = 0;  // the first one
    std::int64_t width = 0;
  };

  static Value columns_of(Builder& b, Value x, std::int64_t first, std::int64_t count) {
    const std::int64_t rows = b.type(x).shape.front();
    if (b.type(x).shape.back() == count) return x;
    return b.emit(ops::Slice{{0, first}, {rows, first + count}}, {x});
  }
  static Value side_by_side(Builder& b, const std::vector<Value>& values) {
    return values.size() == 1 ? values.front() : b.emit(ops::Concatenate{1}, values);
  }

  static Value apply(const LayerCall& call, const std::vector<Part>& parts, Value x) {
    Builder& b = call.b;
    const std::int64_t rows = b.type(x).shape.front();
    std::vector<Value> features, of_categories;
    for (const Part& part : parts) {
      Value own = columns_of(b, x, part.column, part.is_table ? 1 : part.width);
      if (part.is_table) {
        own = b.emit(ops::Reshape{{rows}}, {cast(b, own, DType::i32)});
        own = b.emit(ops::Gather{}, {call.parameters[of_categories.size()], own});
        of_categories.push_back(own);
      }
      features.push_back(own);
    }
    if (call.training && call.node.draws) {
      // One draw for all of them.
      const Value dropped = drop(call, side_by_side(b, of_categories));
      std::int64_t at = 0;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if (!parts[i].is_table) continue;
        features[i] = columns_of(b, dropped, at, parts[i].width);
        at += parts[i].width;
      }
    }
    return side_by_side(b, features);
  }
};

// Whether the model takes the columns of a table by such a layer.
inline bool begins_with_table_embedding(const std::vector<Layer>& layers) {
  const Layer* const first = layer_of_inputs(layers);
  return first != nullptr && first->kind.as<TableEmbedding>() != nullptr;
}

}  // namespace pmaptrain::layers
