#include "core/onnx/graph.h"

#include <cstring>

namespace pmaptrain::onnx {
namespace {

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace

std::string Graph::unused(std::string_view name) {
  std::string whole = scope_.empty() ? std::string(name) : scope_ + "/" + std::string(name);
  for (std::string candidate = whole;; candidate = whole + "_" + std::to_string(names_[whole])) {
    if (names_[candidate]++ == 0) return candidate;
  }
}

std::string Graph::input(const std::string& name, ElementType type, Shape shape) {
  scope_.clear();
  inputs_.push_back({unused(name), type, std::move(shape)});
  return inputs_.back().name;
}

void Graph::output(const std::string& name, const std::string& value, Shape shape, ElementType type) {
  scope_.clear();
  const std::string own = unused(name);
  nodes_.push_back({"Identity", own, {value}, own, {}});
  outputs_.push_back({own, type, std::move(shape)});
}

std::string Graph::node(std::string op, std::vector<std::string> inputs, Attributes attributes, std::string domain) {
  std::string name = unused(op);
  nodes_.push_back({std::move(op), name, std::move(inputs), name, std::move(attributes), std::move(domain)});
  return name;
}

std::string Graph::initializer(const std::string& name, Shape shape, std::span<const std::byte> elements,
                               ElementType type) {
  initializers_.push_back({unused(name), type, std::move(shape), elements});
  return initializers_.back().name;
}

std::string Graph::initializer(const std::string& name, Shape shape, std::vector<std::byte>&& elements,
                               ElementType type) {
  owned_.push_back(std::move(elements));
  return initializer(name, std::move(shape), std::span<const std::byte>(owned_.back()), type);
}

std::string Graph::numbers(const std::vector<double>& values, Shape shape, ElementType type) {
  if (type == ElementType::f64) return initializer("number", std::move(shape), bytes_of(values), type);
  return initializer("number", std::move(shape), bytes_of(std::vector<float>(values.begin(), values.end())), type);
}

std::string Graph::integers(const std::vector<std::int64_t>& values) {
  return initializer("integers", {std::ssize(values)}, bytes_of(values), ElementType::i64);
}

}  // namespace pmaptrain::onnx
