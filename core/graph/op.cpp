#include "core/graph/op.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/base/text.h"

namespace pmaptrain {
namespace {

class AttributePrinter : public AttributeVisitor {
 public:
  explicit AttributePrinter(const Mesh* mesh) : mesh_(mesh) {}

  void field(std::string_view name, std::int64_t& value) override { add(name, std::to_string(value)); }
  void field(std::string_view name, double& value) override { add(name, exact(value)); }
  void field(std::string_view name, bool& value) override { add(name, value ? "true" : "false"); }
  bool leaves_out_usual() const override { return true; }
  void field(std::string_view name, DType& value) override { add(name, std::string(to_string(value))); }
  void field(std::string_view name, std::optional<DType>& value) override {
    if (value) add(name, std::string(to_string(*value)));
  }
  void field(std::string_view name, AxisSet& value) override {
    add(name, mesh_ != nullptr ? mesh_->to_string(value) : "{#" + std::to_string(value.bits()) + "}");
  }
  void field(std::string_view name, std::vector<std::int64_t>& value) override { add(name, to_string(value)); }
  void field(std::string_view name, std::vector<double>& value) override {
    std::string text = "[";
    for (const double element : value) text += (text.size() > 1 ? "," : "") + exact(element);
    add(name, text + "]");
  }
  void field(std::string_view name, std::vector<Shape>& value) override {
    std::string text = "[";
    for (const Shape& shape : value) text += (text.size() > 1 ? "," : "") + to_string(shape);
    add(name, text + "]");
  }
  void field(std::string_view name, std::vector<std::pair<std::int64_t, std::int64_t>>& value) override {
    std::string text = "[";
    for (const auto& [first, second] : value) {
      if (text.size() > 1) text += ",";
      text += std::to_string(first) + ":" + std::to_string(second);
    }
    add(name, text + "]");
  }

  const std::string& text() const { return text_; }

 private:
  void add(std::string_view name, const std::string& value) {
    if (!text_.empty()) text_ += ", ";
    text_ += std::string(name) + "=" + value;
  }

  const Mesh* mesh_;
  std::string text_;
};

class KeyMaker : public AttributeVisitor {
 public:
  explicit KeyMaker(std::string& key) : key_(key) {}

  void field(std::string_view /*name*/, std::int64_t& value) override { add(value); }
  void field(std::string_view /*name*/, double& value) override { add_number(value); }
  void field(std::string_view /*name*/, bool& value) override { add(value); }
  void field(std::string_view /*name*/, DType& value) override { add(value); }
  void field(std::string_view /*name*/, std::optional<DType>& value) override {
    add(value.has_value());
    add(value.value_or(DType::f32));
  }
  void field(std::string_view /*name*/, AxisSet& value) override { add(value.bits()); }
  void field(std::string_view /*name*/, std::vector<std::int64_t>& value) override {
    add(value.size());
    for (const std::int64_t element : value) add(element);
  }
  void field(std::string_view /*name*/, std::vector<double>& value) override {
    add(value.size());
    for (const double element : value) add_number(element);
  }
  void field(std::string_view name, std::vector<Shape>& value) override {
    add(value.size());
    for (Shape& shape : value) field(name, shape);
  }
  void field(std::string_view /*name*/, std::vector<std::pair<std::int64_t, std::int64_t>>& value) override {
    add(value.size());
    for (const auto& [first, second] : value) {
      add(first);
      add(second);
    }
  }

 private:
  template <class T>
  void add(const T& value) {
    key_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  // All NaNs are equal, as in an op's text.
  void add_number(double value) { add(std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value); }

  std::string& key_;
};

}  // namespace

std::string to_string(const Type& type, const Mesh& mesh) {
  return std::string(to_string(type.dtype)) + to_string(type.shape) + mesh.to_string(type.varying);
}

std::string size_error(const Type& type, const Mesh& mesh) {
  constexpr double most_elements = 1e12, most_bytes = 1e15;
  double elements = 1;
  for (const std::int64_t size : type.shape) {
    if (size < 0) return "a dimension has a negative size";
    elements *= static_cast<double>(std::max<std::int64_t>(size, 1));  // strides count what 0 elements would hide
  }
  if (elements > most_elements) return "a value of more than 10^12 elements";
  const double bytes = elements * static_cast<double>(size_of(type.dtype)) * static_cast<double>(mesh.devices());
  return bytes > most_bytes ? "a value of more than 10^15 bytes over all devices" : "";
}

std::vector<Type> Op::infer(const InferContext& context) const {
  std::vector<Type> results = infer_unchecked(context);
  for (const Type& result : results) {
    const std::string error = size_error(result, context.mesh);
    if (!error.empty()) throw TypeError(6, std::string(name()) + " gives " + to_string(result.shape) + ": " + error);
  }
  return results;
}

std::vector<Type> Op::infer_unchecked(const InferContext& context) const {
  if (!local()) return rules_->infer(op_.get(), context);
  // Rule 1: operands of a local op have equal sets, and its results have that set. What a view only waits for may vary
  // over any axes.
  const AxisSet varying = context.operands.empty() ? AxisSet{} : context.operands.front().varying;
  for (const Type& operand : context.operands) {
    if (operand.varying == varying || rules_->view) continue;
    throw TypeError(1,
                    std::string(name()) + ": its operands vary over different axes: " +
                        context.mesh.to_string(varying) + " and " + context.mesh.to_string(operand.varying),
                    "pvary makes a value vary over more axes; psum reduces it over an axis");
  }
  std::vector<Type> results = rules_->infer(op_.get(), context);
  for (Type& result : results) result.varying = varying;
  return results;
}

RowRule Op::rows(std::span<const Type> operands, std::span<const Type> results) const {
  if (rules_->rows == nullptr) return {};
  const RowRule rule = rules_->rows(op_.get(), operands, results);
  const bool rounds = rule.kind == RowRule::Kind::sums &&
                      std::any_of(results.begin(), results.end(), [](const Type& t) { return t.dtype == DType::bf16; });
  return rounds ? RowRule{} : rule;
}

std::string to_string(const Op& op, const Mesh* mesh) {
  AttributePrinter printer(mesh);
  op.rules().read_attributes(op.data(), printer);
  std::string text(op.name());
  if (!printer.text().empty()) text += "[" + printer.text() + "]";
  return text;
}

void append_key(const Op& op, std::string& key) {
  const auto rules = reinterpret_cast<std::uintptr_t>(&op.rules());
  key.append(reinterpret_cast<const char*>(&rules), sizeof rules);
  KeyMaker maker(key);
  op.rules().read_attributes(op.data(), maker);
}

const OpRules* OpSet::find(std::string_view name) const {
  for (const OpRules* rules : all) {
    if (rules->name == name) return rules;
  }
  return nullptr;
}

}  // namespace pmaptrain
