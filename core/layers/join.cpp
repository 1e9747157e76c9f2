#include "core/layers/join.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/equations/arithmetic.h"
#include "core/layers/window.h"

namespace pmaptrain::layers {
namespace {

// [B, C] repeated to `shape` [B, ..., C]; any other value is x itself.
Value repeated(Builder& b, Value x, const Shape& shape) {
  if (b.type(x).shape == shape) return x;
  return b.emit(ops::Broadcast{shape, {0, std::ssize(shape) - 1}}, {x});
}

// Shapes are those of the values: a sequence may be shorter than the one for which the layers were planned.
Value joined(Builder& b, std::span<const Value> parts, Join join) {
  const auto has_less = [&](Value x, Value y) { return b.type(x).shape.size() < b.type(y).shape.size(); };
  const Shape shape = b.type(*std::max_element(parts.begin(), parts.end(), has_less)).shape;
  const std::int64_t last = std::ssize(shape) - 1;
  if (join == Join::concat) return parts.size() == 1 ? parts.front() : b.emit(ops::Concatenate{last}, parts);
  Value all = repeated(b, parts.front(), shape);
  for (const Value part : parts.subspan(1)) {
    const Value other = repeated(b, part, shape);
    all = join == Join::add ? add(b, all, other) : mul(b, all, other);
  }
  return all;
}

std::optional<Shape> concatenated(std::span<const Node> branches) {
  Shape shape = branches.front().output;
  if (shape.empty()) return std::nullopt;
  for (const Node& branch : branches.subspan(1)) {
    const Shape& other = branch.output;
    if (other.size() != shape.size()) return std::nullopt;
    if (!std::equal(other.begin(), other.end() - 1, shape.begin())) return std::nullopt;
    shape.back() += other.back();
  }
  return shape;
}

std::optional<Shape> repeated_shape(std::span<const Node> branches) {
  const auto has_less = [](const Node& a, const Node& b) { return a.output.size() < b.output.size(); };
  const Shape& shape = std::max_element(branches.begin(), branches.end(), has_less)->output;
  for (const Node& branch : branches) {
    const bool is_vector = branch.output.size() == 1 && !shape.empty() && branch.output.front() == shape.back();
    if (branch.output != shape && !is_vector) return std::nullopt;
  }
  return shape;
}

}  // namespace

std::optional<Shape> joined_shape(Join join, std::span<const Node> branches) {
  return join == Join::concat ? concatenated(branches) : repeated_shape(branches);
}

bool joined_lengths(std::span<const Node> branches) {
  const std::optional<Lengths>* known = nullptr;
  for (const Node& branch : branches) {
    if (!branch.lengths) continue;
    if (known != nullptr && **known != *branch.lengths) return false;
    known = &branch.lengths;
  }
  return true;
}

void join_children(Node& node, Join join, Shape output) {
  const auto is_first_image = [&](const Node& branch) { return branch.image == node.children.front().image; };
  const bool is_image = join != Join::concat || node.children.size() == 1;
  const bool is_one_image = is_image && std::all_of(node.children.begin(), node.children.end(), is_first_image);
  node.image = is_one_image ? node.children.front().image : Shape();
  node.output = std::move(output);
  node.lengths.reset();
  for (const Node& branch : node.children) {
    if (branch.lengths) node.lengths = branch.lengths;
  }
  const auto has_image = [](const Node& branch) { return !branch.image.empty(); };
  if (node.output.size() == 2 && std::all_of(node.children.begin(), node.children.end(), has_image)) {
    node.image = image_of_windows(node.output);  // sequences of windows
  }
  node.apply = [join](const LayerCall& call, Value x) {
    Builder& b = call.b;
    std::vector<Value> parts;
    for (const Node& branch : call.node.children) parts.push_back(apply(b, branch, call.forward, x));
    for (Value& part : parts) part = cast(b, part, call.node.compute);
    return joined(b, parts, join);
  };
}

}  // namespace pmaptrain::layers
