#include "core/ops/fused_columns/gpu_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/ops/broadcast/broadcast.h"
#include "core/ops/fused/fused.h"
#include "core/ops/fused/gpu_text.h"
#include "core/ops/support/gpu.h"

namespace pmaptrain::ops {
namespace {

class ColumnsWriter {
 public:
  ColumnsWriter(const GpuRequest& request, std::string_view name)
      : request_(request),
        name_(name),
        parts_(parts_of_sums(request)),
        sums_(column_sums(*request.region, request.types)) {
    const Region& region = *request.region;
    for (std::size_t i = 0; i < region.params.size(); ++i) params_[region.params[i].id] = i;
    for (const Equation& equation : region.equations) made_by_[equation.results[0].id] = &equation;
  }

  GpuSource write() {
    std::string text = sums_text();
    text += columns_text();
    return {std::move(text), {launch(false), launch(true)}};
  }

 private:
  const Type& type(Value value) const { return request_.types[static_cast<std::size_t>(value.id)]; }
  Value operand(const ColumnSum& sum) const { return sum.equation->operands[0]; }
  // The type of a sum's parts.
  std::string part_text(const ColumnSum& sum) const {
    const std::string plain = reduction_text(sum.equation->op, type(operand(sum)).dtype, "").type;
    return sum.centred ? fmt::format("Shifted<{}>", plain) : plain;
  }

  std::string define(std::string& scope, std::string_view indent, Value value, std::string_view expression) {
    std::string name = fmt::format("v{}", names_++);
    scope += fmt::format("{}const {} {} = {};\n", indent, type_text(type(value).dtype), name, expression);
    return known_[value.id] = name;
  }
  // A value that all elements of a thread share.
  std::string in_thread(Value value, std::string_view expression) { return define(thread_, "    ", value, expression); }

  // A value for element i of device d.
  std::string in_element(Value value) {
    const auto known = known_.find(value.id);
    if (known != known_.end()) return known->second;
    const auto param = params_.find(value.id);
    if (param != params_.end()) {
      const std::size_t i = param->second;
      if (numel(request_.operands[i]) == 1) return in_thread(value, fmt::format("a{}[{}]", i, at_device(i, 1, "0")));
      return define(element_, "      ", value, fmt::format("a{}[{}]", i, at_device(i, elements(), "i")));
    }
    const Equation& equation = *made_by_.at(value.id);
    if (const auto* const broadcast = equation.op.as<Broadcast>()) return repeated(value, *broadcast, equation);
    std::string operands;
    for (const Value operand : equation.operands) operands += (operands.empty() ? "" : ", ") + in_element(operand);
    if (equation.op.rules().view) return known_[value.id] = operands;
    return define(element_, "      ", value, element_text(equation.op, type(value).dtype, operands));
  }

  std::string repeated(Value value, const Broadcast& broadcast, const Equation& equation) {
    const Value operand = equation.operands[0];
    const auto param = params_.find(operand.id);
    const std::int64_t size = param == params_.end() ? 1 : numel(request_.operands[param->second]);
    if (size == 1 || size == elements()) return known_[value.id] = in_element(operand);
    const std::size_t i = param->second;
    const std::int64_t inner = spread_of(broadcast)->inner;
    if (inner == 1 && parts_.order.columns % size == 0) {
      return in_thread(value, fmt::format("a{}[{}]", i, at_device(i, size, fmt::format("column % {}u", size))));
    }
    const std::string at = fmt::format("i / {}u % {}u", inner, size);
    return define(element_, "      ", value, fmt::format("a{}[{}]", i, at_device(i, size, at)));
  }

  // The index `at` in the slice of the device that a thread computes for, whose slices have `size` elements.
  std::string at_device(std::size_t operand, std::int64_t size, const std::string& at) const {
    return request_.devices > 1 && request_.stacked[operand] ? fmt::format("d * {}u + {}", size, at) : at;
  }
  std::int64_t elements() const { return parts_.order.rows * parts_.order.columns; }

  // The parameters for the parts of sums, and for operands.
  std::string parameters(std::string_view parts) const {
    std::string text;
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      text += fmt::format("{}{}* __restrict__ p{}, ", parts, part_text(sums_[i]), i);
    }
    for (std::size_t i = 0; i < request_.operands.size(); ++i) {
      text += fmt::format("const {}* __restrict__ a{}, ", type_text(request_.operands[i].dtype), i);
    }
    text.resize(text.size() - 2);
    return text;
  }

  GpuLaunch launch(bool of_columns) const {
    std::vector<GpuArgument> arguments;
    for (std::size_t i = 0; of_columns && i < request_.results.size(); ++i) arguments.push_back(GpuArgument::result(i));
    for (const std::size_t offset : parts_.offsets) arguments.push_back(GpuArgument::scratch(offset));
    for (std::size_t i = 0; i < request_.operands.size(); ++i) arguments.push_back(GpuArgument::operand(i));
    const std::int64_t count = (of_columns ? parts_.order.columns : parts_.order.parts()) * request_.devices;
    return launch_blocks(name_, divided_up(count, part_lanes), part_threads, std::move(arguments));
  }

  // The parts: a thread has a lane, and the lane a part (parts.cuh). Lanes after the last part compute it again.
  std::string sums_text() {
    std::vector<ReductionText> reductions;
    std::vector<std::size_t> plain;
    std::string stores, shifted, joins, adds;
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      if (const std::optional<CentredSum>& centred = sums_[i].centred) {
        shifted += fmt::format("    {} own{}{{}};\n", part_text(sums_[i]), i);
        const std::string inside = centred->inside ? in_element(*centred->inside) : "true";
        adds += fmt::format("      own{}.add({}, {});\n", i, inside, in_element(centred->x));
        joins += fmt::format("    own{0} = joined_in_lane(own{0});\n", i);
        stores += fmt::format("      p{0}[part] = own{0};\n", i);
      } else {
        reductions.push_back(
            reduction_text(sums_[i].equation->op, type(operand(sums_[i])).dtype, in_element(operand(sums_[i]))));
        plain.push_back(i);
      }
    }
    for (std::size_t k = 0; k < plain.size(); ++k) {
      stores += fmt::format("      p{}[part] = {};\n", plain[k], result_text("sums", k, plain.size()));
    }
    const ReductionText sums = joined(reductions);
    const std::int64_t count = parts_.order.parts() * request_.devices;
    constexpr auto block = static_cast<std::int64_t>(reduce_block);
    const ColumnOrder& order = parts_.order;
    const bool is_small = elements() * request_.devices < std::int64_t{1} << 31;
    const std::string_view index = is_small ? "std::uint32_t" : "std::uint64_t";
    const std::int64_t in_blocks = order.parts_of_blocks(), wide = order.wide(), last = order.wide_rows() % block;
    std::string text = fmt::format("extern \"C\" __global__ void {}({}) {{\n", name_, parameters(""));
    text += fmt::format("  for (auto group = blockIdx.x; group < {}u; group += gridDim.x) {{\n",
                        divided_up(count, part_lanes));
    text += fmt::format("    const {} part = group * part_lanes + threadIdx.x % part_lanes;\n", index);
    text += fmt::format("    const {0} all = part < {1}u ? part : {2}u, d = all / {3}u, own = all % {3}u;\n", index,
                        count, count - 1, order.parts());
    // The first element of the part, how far apart its elements are, and their number.
    text += fmt::format("    {0} first = own / {1}u * {2}u + own % {1}u, stride = {1}u;\n", index, wide, wide * block);
    text += fmt::format("    unsigned count = {};\n", block);
    if (last != 0) text += fmt::format("    if (own + {}u >= {}u) count = {};\n", wide, in_blocks, last);
    if (order.left() > 0) {
      text += fmt::format("    if (own >= {0}u) first = own - {0}u + {1}u, stride = {2}u, count = {3};\n", in_blocks,
                          order.wide_rows() * wide, order.columns, order.left());
    }
    if (thread_.find("column") != std::string::npos) {
      text += fmt::format("    const {} column = first % {}u;\n", index, order.columns);
    }
    text += thread_ + shifted;
    const std::int64_t most = std::max(std::min(order.wide_rows(), block), order.left());
    text += fmt::format(
        "    const auto sums = reduce_part<{0}, {1}>({0}::identity<{1}>(), count, {2}, [&](unsigned row) {{\n",
        sums.reducer, sums.type, most);
    text += fmt::format("      const {} i = first + row * stride;\n{}{}      return {};\n    }});\n{}", index, element_,
                        adds, sums.element, joins);
    text += fmt::format("    if (threadIdx.x < part_lanes && part < {}u) {{\n{}    }}\n", count, stores);
    return text + "  }\n}\n";
  }

  // ---- the columns

  std::string in_column(Value value) {
    const auto known = known_.find(value.id);
    if (known != known_.end()) return known->second;
    const auto param = params_.find(value.id);
    if (param != params_.end()) {
      const std::int64_t size = numel(request_.operands[param->second]);
      const std::string at = at_device(param->second, size, size == 1 ? "0" : "column");
      return define(element_, "      ", value, fmt::format("a{}[{}]", param->second, at));
    }
    const Equation& equation = *made_by_.at(value.id);
    std::string operands;
    for (const Value operand : equation.operands) operands += (operands.empty() ? "" : ", ") + in_column(operand);
    if (equation.op.rules().view || equation.op.as<Broadcast>() != nullptr) return known_[value.id] = operands;
    return define(element_, "      ", value, element_text(equation.op, type(value).dtype, operands));
  }

  std::string columns_text() {
    const ColumnOrder& order = parts_.order;
    const std::int64_t count = order.columns * request_.devices;
    known_.clear();
    element_.clear();
    // Sums that need others come after these, and after what their means need.
    std::string results, sums;
    const auto combine = [&](std::size_t i, std::string_view of_part) {
      const Value sum = sums_[i].equation->results[0];
      const ReductionText reduction = reduction_text(sums_[i].equation->op, type(operand(sums_[i])).dtype, "");
      const std::string call = fmt::format(
          "combine_parts<{0}>({0}::identity<{1}>(), {2}, {3}, {4}, {5}, [&](std::size_t at) {{ return p{6}[d * {7}u + "
          "column + at]{8}; }})",
          reduction.reducer, reduction.type, order.columns, order.group, order.blocks(), order.left() > 0, i,
          order.parts(), of_part);
      define(sums, "    ", sum, fmt::format("static_cast<{}>({})", type_text(type(sum).dtype), call));
    };
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      if (!sums_[i].centred) combine(i, "");
    }
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      if (!sums_[i].centred) continue;
      const std::string mean = in_column(sums_[i].centred->mean);
      sums += std::exchange(element_, {}) + fmt::format("    const auto mean{} = first_of_lane({});\n", i, mean);
      combine(i, fmt::format(".squares_about(mean{})", i));
    }
    std::string stores;
    for (std::size_t i = 0; i < request_.results.size(); ++i) {
      const Value result = request_.region->results[i];
      results += fmt::format("{}* __restrict__ r{}, ", type_text(type(result).dtype), i);
      stores += fmt::format("      r{}[e] = {};\n", i, in_column(result));
    }
    return fmt::format("extern \"C\" __global__ void {}({}{}) {{\n", generated_name(name_, 1), results,
                       parameters("const ")) +
           fmt::format("  for (auto group = blockIdx.x; group < {}u; group += gridDim.x) {{\n",
                       divided_up(count, part_lanes)) +
           "    const std::uint32_t own = group * part_lanes + threadIdx.x % part_lanes;\n" +
           fmt::format("    const std::uint32_t e = own < {0}u ? own : {1}u, d = e / {2}u, column = e % {2}u;\n", count,
                       count - 1, order.columns) +
           sums + fmt::format("    if (threadIdx.x < part_lanes && own < {}u) {{\n", count) + element_ + stores +
           "    }\n  }\n}\n";
  }

  const GpuRequest& request_;
  const std::string_view name_;
  const PartsOfSums parts_;
  const std::vector<ColumnSum> sums_;
  std::unordered_map<std::int32_t, std::size_t> params_;
  std::unordered_map<std::int32_t, const Equation*> made_by_;
  std::unordered_map<std::int32_t, std::string> known_;  // by value: its name
  std::string thread_, element_;                         // definitions for a thread, and for each of its elements
  int names_ = 0;
};

}  // namespace

PartsOfSums parts_of_sums(const GpuRequest& request) {
  const Matrix matrix = matrix_of(request);
  PartsOfSums parts{column_order(matrix.rows, matrix.columns), {}, 0};
  const auto count = static_cast<std::size_t>(parts.order.parts() * request.devices);
  for (const ColumnSum& sum : column_sums(*request.region, request.types)) {
    const DType dtype = request.types[static_cast<std::size_t>(sum.equation->operands[0].id)].dtype;
    const std::size_t size = size_of(dtype == DType::bf16 ? DType::f32 : dtype) * (sum.centred ? 4 : 1);
    parts.offsets.push_back(parts.bytes);
    parts.bytes += (count * size + 15) / 16 * 16;
  }
  return parts;
}

GpuSource gpu_source_of_columns(const GpuRequest& request, std::string_view name) {
  return ColumnsWriter(request, name).write();
}

}  // namespace pmaptrain::ops
