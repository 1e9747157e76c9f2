#include "core/model/lora.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/text.h"
#include "core/layers/initializers.h"
#include "core/layers/product.h"

namespace pmaptrain::model {
namespace {

using layers::LoraRole;
using layers::Node;
using layers::Parameter;

// "attention_0.query" of "attention_0.query.kernel".
std::string path_of(const Parameter& kernel) { return kernel.name.substr(0, kernel.name.rfind('.')); }

std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 8;
  const std::size_t shown = std::min(most, names.size());
  const std::vector<std::string> some(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown));
  return join(some, ", ") + (names.size() > most ? " and " + std::to_string(names.size() - most) + " more" : "");
}

class Adapting {
 public:
  Adapting(const Lora& lora, std::vector<Node>& nodes, std::vector<Diagnostic>& errors)
      : lora_(lora), nodes_(nodes), errors_(errors) {
    layers::for_each_node(nodes_, [&](const Node& node) {
      paths_.push_back(node.name);
      for (const Parameter& parameter : node.parameters) {
        if (!parameter.is_state) names_.push_back(parameter.name);
        if (!parameter.matrix.empty()) kernels_.push_back(path_of(parameter));
      }
    });
  }

  void run() {
    if (!check_patterns()) return;
    layers::for_each_node(nodes_, [&](Node& node) {
      assign_roles(node);
      add_adapters(node);
    });
  }

 private:
  void refuse(const Place& place, std::string message, std::string help) {
    errors_.push_back({"config", place, std::move(message), std::move(help), {}});
  }

  static bool matches_any(const std::vector<declare::Pattern>& patterns, const std::string& name) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const declare::Pattern& pattern) { return matches(pattern.text, name); });
  }
  static bool any_matches(const declare::Pattern& pattern, const std::vector<std::string>& names) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return matches(pattern.text, name); });
  }
  bool is_adapted(const Parameter& parameter) const {
    return !parameter.matrix.empty() && matches_any(lora_.parameters, path_of(parameter));
  }

  bool check_patterns() {
    const std::size_t before = errors_.size();
    for (const declare::Pattern& pattern : lora_.parameters) {
      if (!any_matches(pattern, kernels_)) refuse_pattern(pattern);
    }
    for (const declare::Pattern& pattern : lora_.also_train) check_also_trained(pattern);
    return errors_.size() == before;
  }

  void refuse_pattern(const declare::Pattern& pattern) {
    const std::string can_be = kernels_.empty()
                                   ? "dense, attention and swiglu have kernels that can be adapted, and this model has "
                                     "none of these layers"
                                   : "kernels that can be adapted are " + some_of(kernels_);
    // "*.query.kernel" is meant as "*.query".
    constexpr std::string_view last = ".kernel";
    if (pattern.text.ends_with(last)) {
      const std::string without = pattern.text.substr(0, pattern.text.size() - last.size());
      if (any_matches({without}, kernels_)) {
        return refuse(pattern.place, "lora.parameters names kernels without '.kernel', and has '" + pattern.text + "'",
                      "write '" + without + "'");
      }
    }
    if (any_matches(pattern, names_) || any_matches(pattern, paths_)) {
      return refuse(pattern.place, "what '" + pattern.text + "' matches has no product with a kernel to adapt", can_be);
    }
    std::string plain = pattern.text;
    std::erase(plain, '*');
    const std::string near = nearest(plain, kernels_);
    refuse(pattern.place, "no kernel of this model matches '" + pattern.text + "'",
           near.empty() ? can_be : "did you mean '" + near + "'?");
  }

  void check_also_trained(const declare::Pattern& pattern) {
    if (!any_matches(pattern, names_)) {
      std::string plain = pattern.text;
      std::erase(plain, '*');
      const std::string near = nearest(plain, names_);
      return refuse(pattern.place, "no parameter of this model matches '" + pattern.text + "'",
                    near.empty() ? "the parameters are " + some_of(names_) : "did you mean '" + near + "'?");
    }
    const Parameter* both = nullptr;
    layers::for_each_node(nodes_, [&](const Node& node) {
      for (const Parameter& parameter : node.parameters) {
        const bool is_both = is_adapted(parameter) && matches(pattern.text, parameter.name);
        if (is_both && both == nullptr) both = &parameter;
      }
    });
    if (both == nullptr) return;
    refuse(pattern.place,
           "'" + both->name + "' is adapted by lora.parameters and trained as a whole by '" + pattern.text + "'",
           "let one of the two patterns leave it out: an adapter is for a kernel that stays as it is");
  }

  // Statistics belong to the base if the layer keeps them: if it has parameters, and none is trained.
  void assign_roles(Node& node) const {
    bool has_any = false, trains_any = false;
    for (Parameter& parameter : node.parameters) {
      if (parameter.is_state) continue;
      const bool trained = matches_any(lora_.also_train, parameter.name);
      parameter.lora = trained ? LoraRole::none : LoraRole::base;
      has_any = true;
      trains_any = trains_any || trained;
      if (!trained && parameter.may_be_rounded && lora_.base_precision == BasePrecision::bfloat16) {
        parameter.stored_as = DType::bf16;
      }
    }
    if (!has_any || trains_any) return;
    for (Parameter& parameter : node.parameters) parameter.lora = LoraRole::base;
  }

  void add_adapters(Node& node) {
    const std::size_t count = node.parameters.size();
    for (std::size_t i = 0; i < count; ++i) {
      const Parameter kernel = node.parameters[i];
      if (!is_adapted(kernel)) continue;
      const std::int64_t in = kernel.matrix[0], out = kernel.matrix[1], most = std::min(in, out);
      const std::string path = path_of(kernel);
      if (lora_.rank > most) {
        if (!refused_rank_) {
          refuse(lora_.rank_place,
                 "lora.rank is " + std::to_string(lora_.rank) + ", and '" + kernel.name + "' is a matrix " +
                     to_string(kernel.matrix),
                 "a rank of at most " + std::to_string(most) + ", the smaller of its sizes");
        }
        refused_rank_ = true;
        continue;
      }
      const std::size_t at = node.parameters.size();
      // PyTorch's kaiming_uniform of a = √5, as PEFT has it: ±1 / √in.
      const layers::VarianceScalingInit uniform{1.0 / 3.0, layers::Fan::in, layers::InitDistribution::uniform};
      Parameter a{path + ".lora_a", {in, lora_.rank}, uniform.initial({in, lora_.rank}), kernel.place};
      Parameter b{path + ".lora_b", {lora_.rank, out}, layers::zeros, kernel.place};
      a.lora = b.lora = LoraRole::adapter;
      divide_as(kernel, a, b);
      node.parameters.push_back(std::move(a));
      node.parameters.push_back(std::move(b));
      node.adapters.push_back({path, i, at, at + 1, lora_.scale(), lora_.dropout > 0.0});
    }
  }

  // a has the rows of the kernel, and b its columns; devices that divide one of the two read all of the other.
  static void divide_as(const Parameter& kernel, Parameter& a, Parameter& b) {
    const AxisSet axes = kernel.layout().axes();
    a.read_along = b.read_along = axes | kernel.read_along;
    if (axes.empty()) return;
    const bool rows = layers::divides_rows(kernel);
    Parameter& divided = rows ? a : b;
    divided.divided = {{}, {}};
    divided.divided[rows ? 0 : 1] = axes.list();
    divided.read_along = {};
  }

  const Lora& lora_;
  std::vector<Node>& nodes_;
  std::vector<Diagnostic>& errors_;
  std::vector<std::string> paths_, names_, kernels_;  // of nodes, of parameters, and of kernels that can be adapted
  bool refused_rank_ = false;
};

}  // namespace

void adapt(const Lora& lora, std::vector<Node>& nodes, std::vector<Diagnostic>& errors) {
  Adapting(lora, nodes, errors).run();
}

std::vector<equations::Number> lora_numbers(const Lora& lora, DType storage) {
  if (lora.dropout <= 0.0) return {};
  return {{"lora/dropout/rate", lora.dropout, DType::f32}, {"lora/dropout/scale", 1.0 / (1.0 - lora.dropout), storage}};
}

}  // namespace pmaptrain::model
