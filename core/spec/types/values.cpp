#include "core/spec/types/values.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/spec/yaml/find.h"
#include "core/spec/yaml/scalar.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

template <class T>
void store_items(const Node* node, std::vector<T>& out) {
  if (node == nullptr) return;
  out.clear();
  for (const Node& item : node->items) store(&item, out.emplace_back());
}

void flatten(const Node& node, std::vector<double>& out) {
  if (node.is(Kind::scalar)) {
    store(&node, out.emplace_back());
    return;
  }
  for (const Node& item : node.items) flatten(item, out);
}

void add_tensors(const Node& node, const std::string& prefix, std::map<std::string, Tensor>& out) {
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const std::string path = prefix.empty() ? node.keys[i].text : prefix + "." + node.keys[i].text;
    const Node& value = node.items[i];
    if (value.is(Kind::map)) {
      add_tensors(value, path, out);
      continue;
    }
    Tensor tensor;
    tensor.place = overridden(value) != nullptr ? error_place(value) : place_of(node.keys[i]);
    for (const Node* at = &value; at->is(Kind::sequence); at = &at->items.front()) {
      tensor.shape.push_back(static_cast<std::int64_t>(at->items.size()));
    }
    flatten(value, tensor.values);
    out.emplace(path, std::move(tensor));
  }
}

}  // namespace

void store(const Node* node, std::int64_t& out) {
  if (node != nullptr) out = parse_integer(node->text).value;
}
void store(const Node* node, double& out) {
  if (node != nullptr) out = parse_number(node->text).value;
}
void store(const Node* node, bool& out) {
  if (node != nullptr) out = node->text == "true";
}
void store(const Node* node, std::string& out) {
  if (node != nullptr) out = node->text;
}
void store(const Node* node, std::vector<std::int64_t>& out) { store_items(node, out); }
void store(const Node* node, std::vector<double>& out) { store_items(node, out); }
void store(const Node* node, std::vector<std::vector<double>>& out) { store_items(node, out); }

void store(const Node* node, std::uint64_t& out) {
  if (node != nullptr) out = parse_seed(node->text).value;
}
void store(const Node* node, std::optional<int>& out) {
  out.reset();
  if (node != nullptr && node->text != "auto") out = static_cast<int>(parse_integer(node->text).value);
}

void store(const Node* node, Range& out) {
  if (node == nullptr) return;
  store(&node->items[0], out.low);
  store(&node->items[1], out.high);
}
void store(const Node* node, Spread& out) {
  if (node == nullptr) return;
  out = {};
  if (node->is(Kind::scalar)) {
    store(node, out.distance);
  } else {
    store(node, out.range.emplace());
  }
}

void store(const Node* node, FilePair& out) {
  if (node != nullptr) out = {node->items[0].text, node->items[1].text};
}

void store(const Node* node, Npz::Split& out) {
  if (node == nullptr) return;
  const bool names = node->is(Kind::sequence);
  out = names ? Npz::Split{"", node->items[0].text, node->items[1].text} : Npz::Split{node->text, "", ""};
}

void store(const Node* node, ColumnName& out) {
  if (node != nullptr) out = {node->text, place_of(*node)};
}
void store(const Node* node, std::vector<ColumnName>& out) { store_items(node, out); }
void store(const Node* node, MissingCells& out) {
  const auto treatment = [](const std::string& word) {
    return word == "mean" ? Missing::mean : word == "category" ? Missing::category : Missing::error;
  };
  if (node == nullptr) return;
  out = {};
  if (node->is(Kind::scalar) && node->text != "error") out.numbers = Missing::mean;
  if (node->is(Kind::scalar) && node->text == "fill") out.texts = Missing::category;
  for (std::size_t i = 0; i < node->keys.size(); ++i) {
    out.columns.emplace_back(ColumnName{node->keys[i].text, place_of(node->keys[i])}, treatment(node->items[i].text));
  }
}
void store(const Node* node, ClassWeights& out) {
  out.balanced = node != nullptr && node->is(Kind::scalar);
  if (!out.balanced) store(node, out.each);
}
void store(const Node* node, Csv::Files& out) { store_items(node, out); }

void store(const Node* node, Padding& out) {
  if (node == nullptr) return;
  out.amounts.clear();
  if (node->is(Kind::scalar)) {
    out.kind = node->text == "SAME" ? PaddingKind::same : PaddingKind::valid;
    return;
  }
  out.kind = PaddingKind::explicit_;
  for (const Node& amounts : node->items) {
    auto& [low, high] = out.amounts.emplace_back();
    store(&amounts.items[0], low);
    store(&amounts.items[1], high);
  }
}

void store(const Node* node, Mesh& out) {
  if (node == nullptr) return;
  std::vector<Axis> axes;
  for (const Node& item : node->items) {
    axes.push_back(Axis{item.keys.front().text, parse_integer(item.items.front().text).value});
  }
  out = Mesh(std::move(axes));
}

void store(const Node* node, Duration& out) {
  if (node == nullptr) return;
  const std::size_t space = node->text.find(' ');
  out.count = parse_integer(node->text.substr(0, space)).value;
  const std::string unit = node->text.substr(space + 1);
  constexpr std::array<std::pair<std::string_view, Unit>, 6> units = {{{"step", Unit::steps},
                                                                       {"epoch", Unit::epochs},
                                                                       {"example", Unit::examples},
                                                                       {"second", Unit::seconds},
                                                                       {"minute", Unit::minutes},
                                                                       {"hour", Unit::hours}}};
  for (const auto& [name, meant] : units) {
    if (unit.starts_with(name)) out.unit = meant;
  }
  out.place = place_of(*node);
}

void store(const Node* node, Interval& out) {
  out.reset();
  if (node != nullptr && node->text != "never") store(node, out.emplace());
}

void store(const Node* node, std::vector<Pattern>& out) {
  if (node == nullptr) return;
  out.clear();
  for (const Node& item : node->items) out.push_back({item.text, place_of(item)});
}

void store(const Node* node, std::optional<MemorySize>& out) {
  if (node != nullptr) out = MemorySize{parse_memory(node->text).value_or(0)};
}
void store(const Node* node, Amount& out) {
  if (node == nullptr) return;
  const std::size_t space = node->text.find(' ');
  out.count = parse_integer(node->text.substr(0, space)).value;
  out.batches = node->text.substr(space + 1).starts_with("batch");
  out.place = place_of(*node);
}

void store(const Node* node, std::vector<Duration>& out) { store_items(node, out); }

void store(const Node* node, std::vector<schedule::Scale>& out) {
  if (node == nullptr) return;
  out.clear();
  for (const Node& pair : node->items) {
    schedule::Scale& scale = out.emplace_back();
    store(&pair.items[0], scale.boundary);
    store(&pair.items[1], scale.scale);
  }
}

void store(const Node* node, std::map<std::string, Tensor>& out) {
  if (node != nullptr) add_tensors(*node, "", out);
}

}  // namespace pmaptrain::spec
