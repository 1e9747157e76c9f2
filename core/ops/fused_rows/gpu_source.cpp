#include "core/ops/fused_rows/gpu_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/ops/argmax/argmax.h"
#include "core/ops/broadcast/broadcast.h"
#include "core/ops/fused/gpu_text.h"
#include "core/ops/one_hot/one_hot.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/reduce/reducers.h"
#include "core/ops/support/gpu.h"

namespace pmaptrain::ops {
namespace {

constexpr unsigned threads_of_short_rows = 32;  // few threads per block spread a batch over the GPU

// The largest element and the sum of exponentials, and the least element but for the label's, as reductions of x.
ReductionText softmax_text(DType dtype, std::string_view x) {
  const std::string type = fmt::format("Softmax<{}>", type_text(dtype));
  return {"SoftmaxReducer", type, fmt::format("{}{{{}, 1}}", type, x)};
}
ReductionText least_text(DType dtype, std::string_view x) {
  const std::string type(type_text(dtype));
  return {"MinReducer", type, fmt::format("j == place ? std::numeric_limits<{}>::infinity() : {}", type, x)};
}

// Values of a whole row are computed once, in order. Values of its elements are computed again wherever a reduction or
// a result needs them.
class RowsWriter {
 public:
  RowsWriter(const FusedRows& op, const GpuRequest& request, std::string_view name)
      : op_(op), request_(request), name_(name), length_(op.length) {
    const Region& region = *request.region;
    for (std::size_t i = 0; i < region.params.size(); ++i) params_[region.params[i].id] = i;
    for (const Equation& equation : region.equations) {
      made_by_[equation.results[0].id] = &equation;
      if (equation.operands.empty() || !reduces_rows(equation.op, type(equation.operands[0]).shape, op.length))
        continue;
      rows_ = numel(type(equation.operands[0])) / op.length;
    }
    // Rows of several devices may be passed as one row.
    for (std::size_t i = 0; i < region.params.size(); ++i) {
      if (is_full(region.params[i])) length_ = numel(request.operands[i]) / rows_;
    }
    is_long_ = length_ >= static_cast<std::int64_t>(wide_group);
    keeps_ = is_long_ && keeps_elements();
    all_rows_ = rows_ * request.devices;
    // Shorter rows are in registers or a cache when they are read again.
    if (own_elements() > static_cast<std::int64_t>(kept_elements)) {
      softmax_ = online_softmax(region, request.types, op.length);
    }
  }

  GpuSource write() {
    for (const Equation& equation : request_.region->equations) {
      if (!is_full(equation.results[0])) add_to_row(equation);
    }
    reduce_pending();
    std::string parameters;
    Scope elements;
    for (std::size_t i = 0; i < request_.results.size(); ++i) {
      const Value result = request_.region->results[i];
      parameters += fmt::format("{}* __restrict__ r{}, ", type_text(type(result).dtype), i);
      if (is_full(result)) {
        const std::string value = in_element(result, elements);
        elements.text += fmt::format("      r{}[row * {}u + j] = {};\n", i, length_, value);
      } else {
        const std::string value = in_row(result);
        row_.text += fmt::format("    {}r{}[row] = {};\n", is_long_ ? "if (threadIdx.x == 0) " : "", i, value);
      }
    }
    for (std::size_t i = 0; i < request_.operands.size(); ++i) {
      parameters += fmt::format("const {}* __restrict__ a{}, ", type_text(request_.operands[i].dtype), i);
    }
    parameters.resize(parameters.size() - 2);
    return {kernel_text(parameters, elements.text), {launch()}};
  }

 private:
  struct Scope {
    std::string text;
    std::unordered_map<std::int32_t, std::string> known;
  };

  // The elements of a thread in the row of a block.
  std::int64_t own_elements() const { return divided_up(length_, static_cast<std::int64_t>(wide_group)); }

  // Whether a thread keeps its elements of the operands in registers between the passes over a row.
  bool keeps_elements() const {
    constexpr std::int64_t most_registers = 96;
    std::int64_t full = 0;
    for (const Value param : request_.region->params) full += is_full(param) ? 1 : 0;
    const std::vector<Equation>& equations = request_.region->equations;
    return own_elements() <= static_cast<std::int64_t>(kept_elements) && full * own_elements() <= most_registers &&
           std::none_of(equations.begin(), equations.end(),
                        [](const Equation& equation) { return equation.op.as<Argmax>() != nullptr; });
  }

  // Loads the thread's elements of an operand into an array.
  void keep(std::size_t operand, std::string_view load) {
    if (!kept_.insert(operand).second) return;
    loads_ += fmt::format("    {0} q{1}[{2}];\n    UNROLL for (unsigned k = 0; k < {2}; ++k) {{\n",
                          type_text(request_.operands[operand].dtype), operand, own_elements());
    loads_ += fmt::format("      const auto j = k * {}u + threadIdx.x;\n      if (j < {}u) q{}[k] = {};\n    }}\n",
                          wide_group, length_, operand, load);
  }

  const Type& type(Value value) const { return request_.types[static_cast<std::size_t>(value.id)]; }
  bool is_full(Value value) const { return numel(type(value)) == rows_ * op_.length; }

  std::string define(Scope& scope, Value value, std::string_view indent, std::string_view expression) {
    std::string name = fmt::format("v{}", names_++);
    scope.text += fmt::format("{}const {} {} = {};\n", indent, type_text(type(value).dtype), name, expression);
    scope.known[value.id] = name;
    return name;
  }

  // A value for the row, or for all rows, that needs no pending reduction.
  std::string in_row(Value value) {
    const auto known = row_.known.find(value.id);
    if (known != row_.known.end()) return known->second;
    const auto param = params_.find(value.id);
    if (param == params_.end()) {
      const Equation& equation = *made_by_.at(value.id);
      std::string operands;
      for (const Value operand : equation.operands) operands += (operands.empty() ? "" : ", ") + in_row(operand);
      if (equation.op.as<Broadcast>() != nullptr) return row_.known[value.id] = operands;
      return define(row_, value, "    ", element_text(equation.op, type(value).dtype, operands));
    }
    const std::size_t i = param->second;
    const bool by_row = numel(type(value)) == rows_, stacked = request_.stacked[i];
    const char* const index = by_row ? (stacked ? "row" : here()) : (stacked ? device() : "0");
    return define(row_, value, "    ", fmt::format("a{}[{}]", i, index));
  }

  // Expressions for the row's index on its device, and for the device's index.
  const char* here() {
    divides_ |= request_.devices > 1;
    return request_.devices > 1 ? "i" : "row";
  }
  const char* device() {
    divides_ |= request_.devices > 1;
    return request_.devices > 1 ? "d" : "0";
  }

  // A value for element j.
  std::string in_element(Value value, Scope& scope) {
    if (!is_full(value)) return in_row(value);
    const auto known = scope.known.find(value.id);
    if (known != scope.known.end()) return known->second;
    constexpr std::string_view indent = "      ";
    const auto param = params_.find(value.id);
    if (param != params_.end()) {
      const char* const row = request_.stacked[param->second] ? "row" : here();
      const std::string load = fmt::format("a{}[{} * {}u + j]", param->second, row, length_);
      if (!keeps_) return define(scope, value, indent, load);
      keep(param->second, load);
      return define(scope, value, indent, fmt::format("q{}[k]", param->second));
    }
    const Equation& equation = *made_by_.at(value.id);
    if (const auto vector = vector_of(equation)) {
      const std::string of_device =
          request_.stacked[*vector] && request_.devices > 1 ? fmt::format("{} * {}u + ", device(), length_) : "";
      return define(scope, value, indent, fmt::format("a{}[{}j]", *vector, of_device));
    }
    std::string operands;
    for (const Value operand : equation.operands) {
      operands += (operands.empty() ? "" : ", ") + in_element(operand, scope);
    }
    if (equation.op.as<Broadcast>() != nullptr) return scope.known[value.id] = operands;
    if (equation.op.as<OneHot>() != nullptr) {
      return define(scope, value, indent,
                    fmt::format("element<{0}>({1} == static_cast<std::int64_t>(j) ? {2:#x} : {3:#x})",
                                type_text(type(value).dtype), operands, bits_of(type(value).dtype, 1),
                                bits_of(type(value).dtype, 0)));
    }
    return define(scope, value, indent, element_text(equation.op, type(value).dtype, operands));
  }

  // The number of the operand if the equation repeats a vector.
  std::optional<std::size_t> vector_of(const Equation& equation) const {
    if (equation.op.as<Broadcast>() == nullptr || !is_vector(numel(type(equation.operands[0])), rows_, op_.length)) {
      return {};
    }
    return params_.at(equation.operands[0].id);
  }

  void add_to_row(const Equation& equation) {
    const Value result = equation.results[0];
    if (std::any_of(equation.operands.begin(), equation.operands.end(), [&](Value v) { return needs_pending(v); })) {
      reduce_pending();
    }
    if (row_.known.contains(result.id)) return;  // found together with another value
    if (!equation.operands.empty() && is_full(equation.operands[0])) {
      const bool is_argmax = equation.op.as<Argmax>() != nullptr;  // in a pass of its own
      if (is_argmax) reduce_pending();
      pending_.push_back(&equation);
      needs_.clear();
      if (is_argmax) reduce_pending();
      return;
    }
    in_row(result);
  }

  // Whether a value is computed from the result of a pending reduction.
  bool needs_pending(Value value) {
    if (pending_.empty() || row_.known.contains(value.id) || params_.contains(value.id)) return false;
    const Equation& equation = *made_by_.at(value.id);
    const auto [known, is_new] = needs_.try_emplace(value.id, false);
    if (!is_new) return known->second;
    const bool needs = std::find(pending_.begin(), pending_.end(), &equation) != pending_.end() ||
                       std::any_of(equation.operands.begin(), equation.operands.end(),
                                   [&](Value operand) { return needs_pending(operand); });
    return needs_[value.id] = needs;
  }

  // Reductions that need no result of one another are computed in one pass over the row.
  void reduce_pending() {
    if (pending_.empty()) return;
    const std::string_view by = is_long_ ? "block" : "thread";
    Scope elements;
    std::vector<ReductionText> reductions;
    const Equation* const largest = softmax_ ? softmax_->largest : nullptr;
    for (const Equation* const equation : pending_) {
      const Value operand = equation->operands[0];
      const std::string x = in_element(operand, elements);
      const DType dtype = type(operand).dtype;
      reductions.push_back(equation == largest ? softmax_text(dtype, x) : reduction_text(equation->op, dtype, x));
    }
    const bool picks = largest != nullptr && softmax_->picked != nullptr &&
                       std::find(pending_.begin(), pending_.end(), largest) != pending_.end();
    if (picks) {
      const std::string label = in_row(softmax_->label);
      row_.text += fmt::format("    const auto place = place_of<{}>({});\n", length_, label);
      const Value x = largest->operands[0];
      reductions.push_back(least_text(type(x).dtype, in_element(x, elements)));
    }
    const ReductionText all = joined(reductions);
    const bool is_argmax = pending_.front()->op.as<Argmax>() != nullptr;
    const std::string function = is_argmax ? fmt::format("argmax_by_{}<{}>", by, length_)
                                           : fmt::format("reduce_by_{}<{}, {}>", by, all.reducer, length_);
    const std::string element = is_argmax ? in_element(pending_.front()->operands[0], elements) : all.element;
    const std::string name = fmt::format("v{}", names_++);
    row_.text +=
        fmt::format("    const auto {} = {}([&](unsigned k, std::uint32_t j) {{\n{}      return {};\n    }});\n", name,
                    function, elements.text, element);
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      const Value result = pending_[i]->results[0];
      const std::string text = result_text(name, i, reductions.size());
      if (pending_[i] == largest) {
        define(row_, result, "    ", text + ".largest");
        define(row_, softmax_->sum->results[0], "    ", text + ".total()");
      } else {
        define(row_, result, "    ", fmt::format("static_cast<{}>({})", type_text(type(result).dtype), text));
      }
    }
    if (picks) pick(result_text(name, reductions.size() - 1, reductions.size()));
    pending_.clear();
    needs_.clear();
  }

  // Defines the sum of the label's element alone.
  void pick(std::string_view least) {
    Scope element;
    const std::string x = in_element(softmax_->largest->operands[0], element);
    const std::string largest = in_row(softmax_->largest->results[0]);
    define(row_, softmax_->picked->results[0], "    ",
           fmt::format("picked<{}>(place, {}, {}, [&](std::uint32_t j) {{\n{}      return {};\n    }})", length_,
                       largest, least, element.text, x));
  }

  std::string kernel_text(std::string_view parameters, std::string_view elements) const {
    const bool is_small = all_rows_ * length_ < std::int64_t{1} << 31;
    const std::string_view index = is_small ? "std::uint32_t" : "std::uint64_t";
    std::string text = fmt::format("extern \"C\" __global__ void {}({}) {{\n", name_, parameters);
    text += is_long_
                ? fmt::format("  for ({0} row = blockIdx.x; row < {1}u; row += gridDim.x) {{\n", index, all_rows_)
                : fmt::format("  for (auto row = first_element<{0}>(); row < {1}u; row += all_threads<{0}>()) {{\n",
                              index, all_rows_);
    if (divides_) text += fmt::format("    const auto d = row / {0}u, i = row % {0}u;\n", rows_);
    text += loads_ + row_.text;
    if (!elements.empty()) {
      text += keeps_ ? fmt::format(
                           "    UNROLL for (unsigned k = 0; k < {0}; ++k) {{\n      const auto j = k * {1}u + "
                           "threadIdx.x;\n      if (j >= {2}u) continue;\n",
                           own_elements(), wide_group, length_)
              : is_long_ ? fmt::format("    UNROLL_BY(4) for (std::uint32_t j = threadIdx.x; j < {}u; j += {}u) {{\n",
                                       length_, wide_group)
                         : fmt::format("    for (std::uint32_t j = 0; j < {}u; ++j) {{\n", length_);
      text += std::string(elements) + "    }\n";
    }
    return text + "  }\n}\n";
  }

  GpuLaunch launch() const {
    std::vector<GpuArgument> arguments;
    for (std::size_t i = 0; i < request_.results.size(); ++i) arguments.push_back(GpuArgument::result(i));
    for (std::size_t i = 0; i < request_.operands.size(); ++i) arguments.push_back(GpuArgument::operand(i));
    if (is_long_) return launch_blocks(name_, all_rows_, wide_group, std::move(arguments));
    const std::int64_t blocks = (all_rows_ + threads_of_short_rows - 1) / threads_of_short_rows;
    return launch_blocks(name_, blocks, threads_of_short_rows, std::move(arguments));
  }

  const FusedRows& op_;
  const GpuRequest& request_;
  const std::string_view name_;
  std::int64_t length_;  // length of the rows of this request
  bool is_long_ = false, keeps_ = false;
  std::set<std::size_t> kept_;            // operands whose elements a thread keeps
  std::string loads_;                     // the loads of these
  std::int64_t rows_ = 0, all_rows_ = 0;  // rows of one device, and of all devices
  std::unordered_map<std::int32_t, std::size_t> params_;
  std::unordered_map<std::int32_t, const Equation*> made_by_;
  Scope row_;
  std::vector<const Equation*> pending_;          // reductions whose text is not written yet
  std::unordered_map<std::int32_t, bool> needs_;  // by value: whether it needs a pending one, where that is known
  std::optional<OnlineSoftmax> softmax_;
  int names_ = 0;
  bool divides_ = false;
};

}  // namespace

GpuSource gpu_source_of_rows(const FusedRows& op, const GpuRequest& request, std::string_view name) {
  return RowsWriter(op, request, name).write();
}

}  // namespace pmaptrain::ops
