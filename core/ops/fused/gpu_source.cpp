#include "core/ops/fused/gpu_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/ops/broadcast/broadcast.h"
#include "core/ops/constant/constant.h"
#include "core/ops/fused/fused.h"
#include "core/ops/fused/gpu_text.h"
#include "core/ops/fused_columns/gpu_source.h"
#include "core/ops/fused_rows/gpu_source.h"
#include "core/ops/support/gpu.h"

namespace pmaptrain::ops {
namespace {

// Writes the source of one kernel. Element e of the results of all devices is element i of device d. Large arrays are
// read and written 16 bytes at a time, or more: a thread then has a pack of neighbouring elements.
class Writer {
 public:
  Writer(const GpuRequest& request, std::string_view name)
      : request_(request), name_(name), local_(numel(request.results.front())), total_(local_ * request.devices) {}

  GpuSource of_op(const Op& op) {
    for (std::size_t i = 0; i < request_.operands.size(); ++i) values_.push_back(load(i, element_index(i)));
    std::vector<int> operands(values_.size());
    for (std::size_t i = 0; i < operands.size(); ++i) operands[i] = static_cast<int>(i);
    return finish({emit(op, operands, request_.results.front().dtype)});
  }

  GpuSource of_region(const Region& region) {
    for (std::size_t i = 0; i < region.params.size(); ++i) params_[region.params[i].id] = i;
    for (const Equation& equation : region.equations) add(equation);
    std::vector<int> results;
    for (const Value result : region.results) results.push_back(value_of(result));
    return finish(results);
  }

  GpuSource of_values(const Constant& constant) {
    std::string words;
    for (const double value : constant.values) words += fmt::format("{:#x}, ", bits_of(constant.dtype, value));
    const std::string_view word = word_text(constant.dtype);
    body_ = fmt::format("    r0[e] = {}_values[e % {}];\n", name_, local_);
    const std::string text = fmt::format("__device__ const {} {}_values[] = {{{}}};\n", word, name_, words) +
                             kernel_text(fmt::format("{}* r0", word));
    return {text, {launch()}};
  }

 private:
  struct Held {
    std::string name;
    DType dtype = DType::f32;
    bool uniform = false;  // one value for all elements, computed before the loop
  };

  // The index of a result's element in operand i, which has as many elements as the result, or one.
  std::string element_index(std::size_t i) {
    const bool full = numel(request_.operands[i]) == local_;
    if (!request_.stacked[i]) return full && local_ > 1 ? index("i") : "";
    if (full) return "e";
    assert(numel(request_.operands[i]) == 1);
    return index("d");
  }

  // The index of the element that a broadcast repeats.
  std::string repeated_index(std::size_t i, const Spread& spread) {
    const std::string at = fmt::format("{} / {} % {}", index("i"), spread.inner, spread.size);
    return request_.stacked[i] ? fmt::format("{} * {} + {}", index("d"), spread.size, at) : at;
  }

  // "d" or "i". The loop then computes that variable.
  std::string index(const char* which) {
    if (request_.devices == 1) return *which == 'd' ? "0" : "e";
    divides_ = true;
    return which;
  }

  // The value of operand i at an index. With an empty index, the operand is a single value.
  Held load(std::size_t i, const std::string& at) {
    Held held{next_name(), request_.operands[i].dtype, at.empty() || at == "0"};
    if (at == "e") packed_.insert(i);
    define(held, fmt::format("a{}[{}]", i, held.uniform ? "0" : at));
    return held;
  }

  std::string next_name() { return fmt::format("v{}", names_++); }

  void define(const Held& held, std::string_view expression) {
    (held.uniform ? head_ : body_) += fmt::format("{}const {} {} = {};\n", held.uniform ? "  " : "    ",
                                                  type_text(held.dtype), held.name, expression);
  }

  int keep(Held held) {
    values_.push_back(std::move(held));
    return static_cast<int>(values_.size()) - 1;
  }

  // A parameter is loaded where its value is first needed.
  int value_of(Value value) {
    const auto known = known_.find(value.id);
    if (known != known_.end()) return known->second;
    const std::size_t param = params_.at(value.id);
    return known_[value.id] = keep(load(param, element_index(param)));
  }

  void add(const Equation& equation) {
    const Op& op = equation.op;
    const Value result = equation.results.front();
    const auto* broadcast = op.as<Broadcast>();
    if (op.rules().view) {
      known_[result.id] = value_of(equation.operands.front());
    } else if (broadcast != nullptr) {
      known_[result.id] = add_broadcast(*broadcast, equation.operands.front());
    } else {
      std::vector<int> operands;
      for (const Value operand : equation.operands) operands.push_back(value_of(operand));
      known_[result.id] = emit(op, operands, type(result).dtype);
    }
  }

  int add_broadcast(Broadcast broadcast, Value operand) {
    const auto param = params_.find(operand.id);
    if (param == params_.end()) return value_of(operand);
    const std::int64_t size = numel(request_.operands[param->second]);
    if (size == local_ || size == 1) return value_of(operand);
    // The request may be for a part of the rows.
    const Shape& result = request_.results.front().shape;
    if (result.size() == broadcast.shape.size()) broadcast.shape = result;
    return keep(load(param->second, repeated_index(param->second, *spread_of(broadcast))));
  }

  int emit(const Op& op, const std::vector<int>& operands, DType dtype) {
    Held held{next_name(), dtype, true};
    std::string list;
    for (const int operand : operands) {
      const Held& from = values_[static_cast<std::size_t>(operand)];
      held.uniform &= from.uniform;
      list += (list.empty() ? "" : ", ") + from.name;
    }
    define(held, element_text(op, dtype, list));
    return keep(std::move(held));
  }

  GpuSource finish(const std::vector<int>& results) {
    std::string parameters;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Held& value = values_[static_cast<std::size_t>(results[i])];
      parameters += fmt::format("{}* r{}, ", type_text(value.dtype), i);
      body_ += fmt::format("    r{}[e] = {};\n", i, value.name);
    }
    for (std::size_t i = 0; i < request_.operands.size(); ++i) {
      parameters += fmt::format("const {}* a{}, ", type_text(request_.operands[i].dtype), i);
    }
    parameters.resize(parameters.size() - 2);
    choose_pack();
    return {kernel_text(parameters), {launch()}};
  }

  // The elements of a thread: as many of the smallest ones as are 16 bytes, but at most 8. One where arrays are so
  // small that threads would be few.
  void choose_pack() {
    constexpr std::int64_t least_threads = std::int64_t{1} << 14;
    std::size_t smallest = 16;
    for (const Type& type : request_.results) smallest = std::min(smallest, size_of(type.dtype));
    for (const std::size_t i : packed_) smallest = std::min(smallest, size_of(request_.operands[i].dtype));
    const auto most = std::min<std::int64_t>(8, 16 / static_cast<std::int64_t>(smallest));
    pack_ = total_ / most < least_threads ? 1 : most;
  }

  std::string kernel_text(std::string_view parameters) const {
    // Division of 32-bit indices is several times as fast.
    const std::string_view index = total_ < std::int64_t{1} << 31 ? "std::uint32_t" : "std::uint64_t";
    std::string text = fmt::format("extern \"C\" __global__ void {}({}) {{\n{}", name_, parameters, head_);
    const std::string divided =
        divides_ ? fmt::format("    const auto d = e / {0}u, i = e % {0}u;\n", local_) : std::string();
    if (pack_ > 1) text += packs_text(index, divided);
    text += fmt::format("  for (auto e = {}first_element<{}>(); e < {}u; e += all_threads<{}>()) {{\n",
                        pack_ > 1 ? fmt::format("packs * {}u + ", pack_) : "", index, total_, index);
    return text + divided + body_ + "  }\n}\n";
  }

  // The loop over packs, of whose elements arrays have copies by the same names. There are none where an array begins
  // at another address than a multiple of 16.
  std::string packs_text(std::string_view index, const std::string& divided) const {
    std::string arrays, loads, windows, stores;
    for (const std::size_t i : packed_) {
      arrays += fmt::format("a{}, ", i);
      loads += fmt::format("    const auto p{0} = pack_at<{1}>(a{0}, g);\n", i, pack_);
      windows += fmt::format("      const Window a{0}{{p{0}.at, g * {1}u}};\n", i, pack_);
    }
    for (std::size_t i = 0; i < request_.results.size(); ++i) {
      arrays += fmt::format("r{}, ", i);
      loads += fmt::format("    auto q{0} = empty_pack<{1}>(r{0});\n", i, pack_);
      windows += fmt::format("      const Window r{0}{{q{0}.at, g * {1}u}};\n", i, pack_);
      stores += fmt::format("    store_pack(r{0}, g, q{0});\n", i);
    }
    arrays.resize(arrays.size() - 2);
    return fmt::format("  const {0} packs = are_aligned({1}) ? {2}u : 0;\n", index, arrays, total_ / pack_) +
           fmt::format("  for (auto g = first_element<{0}>(); g < packs; g += all_threads<{0}>()) {{\n", index) +
           loads +
           fmt::format("    UNROLL for (unsigned j = 0; j < {0}; ++j) {{\n      const auto e = g * {0}u + j;\n",
                       pack_) +
           windows + divided + body_ + "    }\n" + stores + "  }\n";
  }

  GpuLaunch launch() const {
    std::vector<GpuArgument> arguments;
    for (std::size_t i = 0; i < request_.results.size(); ++i) arguments.push_back(GpuArgument::result(i));
    for (std::size_t i = 0; i < request_.operands.size(); ++i) arguments.push_back(GpuArgument::operand(i));
    return launch_elements(name_, divided_up(total_, pack_), std::move(arguments));
  }
  const Type& type(Value value) const { return request_.types[static_cast<std::size_t>(value.id)]; }

  const GpuRequest& request_;
  const std::string_view name_;
  const std::int64_t local_, total_;  // elements of a result: of one device, and of all devices
  std::vector<Held> values_;
  std::unordered_map<std::int32_t, int> known_;           // by value of the region
  std::unordered_map<std::int32_t, std::size_t> params_;  // by value: number of the operand
  std::string head_, body_;
  std::set<std::size_t> packed_;  // operands that have an element for each of the results, at the same index
  std::int64_t pack_ = 1;         // elements of a thread
  int names_ = 0;
  bool divides_ = false;
};

}  // namespace

GpuSource gpu_source(const Op& op, const GpuRequest& request, std::string_view name) {
  if (const auto* rows = op.as<FusedRows>()) return gpu_source_of_rows(*rows, request, name);
  if (op.as<FusedColumns>() != nullptr) return gpu_source_of_columns(request, name);
  Writer writer(request, name);
  if (op.as<Fused>() != nullptr) return writer.of_region(*request.region);
  const auto* constant = op.as<Constant>();
  return constant != nullptr && !constant->splat() ? writer.of_values(*constant) : writer.of_op(op);
}

}  // namespace pmaptrain::ops
