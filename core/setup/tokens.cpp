// Checks the tokens of a split against the table of the embedding layer, which requires reading them.
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/setup/data_checks.h"

namespace pmaptrain::setup {
namespace {

struct Found {
  std::int64_t example = 0, position = 0, token = 0;
};

// The first token that is negative or at least `rows` in the examples as they are without an offset.
std::optional<Found> first_beyond(const data::Dataset& split, std::int64_t rows) {
  const data::Field field = split.input();
  const bool bytes = field.dtype == DType::u8;
  std::vector<std::byte> input(field.bytes()), target(split.target().bytes());
  for (std::int64_t example = 0; example < split.size(); ++example) {
    split.read(example, input.data(), target.data());
    for (std::int64_t position = 0; position < numel(field.shape); ++position) {
      std::int64_t token = std::to_integer<std::int64_t>(input[static_cast<std::size_t>(position)]);
      if (!bytes) {
        std::int32_t value = 0;
        std::memcpy(&value, input.data() + static_cast<std::size_t>(position) * sizeof(value), sizeof(value));
        token = value;
      }
      if (token < 0 || token >= rows) return Found{example, position, token};
    }
  }
  return std::nullopt;
}

// The embedding of the inputs with the fewest rows: the paths of a residual layer may have one each.
const model::Node& smallest_table(const model::Model& model) {
  const model::Node* smallest = model::first_layer(model.layers);
  for (const model::Node* const node : model.nodes()) {
    if (!node->takes_tokens) continue;
    const auto rows = [](const model::Node& table) { return table.parameters.front().shape.front(); };
    if (rows(*node) < rows(*smallest)) smallest = node;
  }
  return *smallest;
}

}  // namespace

void check_tokens(const model::Model& model, const data::Dataset& split, const Place& source) {
  if (!model.takes_tokens()) return;
  const model::Node& table = smallest_table(model);
  const std::int64_t rows = table.parameters.front().shape.front();
  const data::Field input = split.input();
  const bool bytes = input.dtype == DType::u8;
  if (bytes && rows >= 256) return;
  // Of windows into a sequence the labels are its tokens.
  std::int64_t largest = bytes ? 255 : -1;
  if (split.offsets() > 1) {
    const auto range = split.label_range();
    if (range) largest = range->second;
    if (range && largest < rows) return;
  }
  const std::optional<Found> found = first_beyond(split, rows);
  if (!found && split.offsets() == 1) return;
  if (found) largest = std::max(largest, found->token);
  const std::string origin = input.origin.empty() ? "" : " in " + input.origin;
  const std::string what = found ? "position " + std::to_string(found->position) + " of example " +
                                       std::to_string(split.index_in_source(found->example)) + origin +
                                       " has the token " + std::to_string(found->token)
                                 : "the tokens" + origin + " go up to " + std::to_string(largest);
  std::vector<std::string> notes;
  if (table.place.known() && table.place.line > 0) {
    notes.push_back("the table is that of layer '" + table.name + "', " + table.place.file + ":" +
                    std::to_string(table.place.line) + ":" + std::to_string(table.place.column));
  }
  throw Error(
      ExitStatus::data,
      Diagnostic{"data", source,
                 what + ", but '" + table.name + "' has num_embeddings " + std::to_string(rows) + ": tokens 0 to " +
                     std::to_string(rows - 1),
                 found && found->token < 0 ? "tokens start at 0"
                 : bytes || input.tokens > 0
                     ? "write num_embeddings: " + std::to_string(std::max(largest + 1, input.tokens)) +
                           ", one row for each " + (bytes || input.tokens == 256 ? "byte" : "token of data.tokenizer")
                     : "write num_embeddings: " + std::to_string(largest + 1),
                 std::move(notes)});
}

}  // namespace pmaptrain::setup
