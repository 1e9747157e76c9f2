// Random programs as text.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/dtype.h"

namespace pmaptrain::test {

// Writes a program of i32 values, whose sums wrap and so are the same in any order, or of bf16 values, which are
// clamped to whole numbers of at most 64, so that sums of them are exact in f32. `a` and `b` are its axes.
class ProgramWriter {
 public:
  // `with_rows`: with rows that replace others.
  explicit ProgramWriter(std::uint32_t seed, DType dtype = DType::i32, bool with_rows = false)
      : state_(seed * 2654435761u + 12345u),
        dtype_(to_string(dtype)),
        narrow_(dtype == DType::bf16),
        with_rows_(with_rows) {}

  std::string write() {
    const std::vector<std::array<std::uint32_t, 2>> meshes{{2, 3}, {3, 1}, {1, 9}, {2, 5}, {1, 1}, {17, 1}};
    sizes_ = meshes[below(6)];
    text_ = "mesh a=" + std::to_string(sizes_[0]) + " b=" + std::to_string(sizes_[1]) + "\n";
    const std::uint32_t inputs = 3 + below(5);
    for (std::uint32_t i = 0; i < inputs; ++i) {
      const char* const groups[] = {"state", "params", "batch", "state"};
      const std::uint32_t group = below(4);
      const Named input{"i" + std::to_string(i), static_cast<int>(below(3)), below(4)};
      line(groups[group] + (" %" + input.name) + ":" + type(input.shape, input.set));
      values_.push_back(input);
      if (group != 2) kept_.push_back(input);
    }
    const std::uint32_t equations = 6 + below(24);
    for (std::uint32_t i = 0; i < equations; ++i) add_equation();
    for (const Named& input : kept_) {
      if (below(6) == 0) continue;
      const Named& next = pick(values_, [&](const Named& v) { return v.shape == input.shape && v.set == input.set; });
      line("update %" + input.name + " = %" + next.name);
    }
    for (int i = 0; i < 3; ++i) line("return o" + std::to_string(i) + " = %" + pick(values_).name);
    return text_;
  }

 private:
  // Of shape [], [6], [5000], which is large enough to be split between workers, or half of one of these, where a loop
  // of two iterations cuts it; a bit of `set` for each axis.
  struct Named {
    std::string name;
    int shape;
    std::uint32_t set;
  };

  std::uint32_t below(std::uint32_t n) {
    state_ = state_ * 1664525u + 1013904223u;
    return (state_ >> 16) % n;
  }
  void line(const std::string& text) { text_ += text + "\n"; }
  std::string fresh() { return "v" + std::to_string(count_++); }
  static int half_of(int shape) { return shape + 2; }
  static std::string shape_text(int shape) {
    const char* const shapes[] = {"[]", "[6]", "[5000]", "[3]", "[2500]"};
    return shapes[shape];
  }
  static std::string axes(std::uint32_t set) {
    return set == 3 ? "{a, b}" : set == 1 ? "{a}" : set == 2 ? "{b}" : "{}";
  }
  std::string type(int shape, std::uint32_t set) const { return dtype_ + shape_text(shape) + axes(set); }

  // The value within the bounds of bf16 values; of i32 values there are none.
  Named bounded(const Named& value, const std::string& indent = "") {
    if (!narrow_) return value;
    const std::string low = fresh(), high = fresh();
    const Named result{fresh(), value.shape, value.set};
    line(indent + "%" + low + " = constant[dtype=bf16, shape=[], value=-64.0]");
    line(indent + "%" + high + " = constant[dtype=bf16, shape=[], value=64.0]");
    line(indent + "%" + result.name + " = clamp %" + low + ", %" + value.name + ", %" + high);
    return result;
  }
  // Sums over devices are f32 in a program of bf16.
  std::string widened(const std::string& value) {
    if (!narrow_) return value;
    const std::string wide = fresh();
    line("%" + wide + " = cast[dtype=f32] %" + value);
    return wide;
  }
  Named narrowed(const Named& value) {
    if (!narrow_) return value;
    const Named result{fresh(), value.shape, value.set};
    line("%" + result.name + " = cast[dtype=bf16] %" + value.name);
    return bounded(result);
  }

  // One of those that fit, by preference a late one. At least one fits.
  template <class Fits>
  Named pick(const std::vector<Named>& from, Fits fits) {
    std::vector<Named> good;
    std::copy_if(from.begin(), from.end(), std::back_inserter(good), fits);
    const auto count = static_cast<std::uint32_t>(good.size());
    const std::uint32_t window = below(3) == 0 ? count : std::min(count, 8u);
    return good[count - 1 - below(window)];
  }
  Named pick(const std::vector<Named>& from) {
    return pick(from, [](const Named&) { return true; });
  }

  void add_elementwise(std::vector<Named>& values, const std::string& indent = "") {
    Named x = pick(values);
    Named y = pick(values, [&](const Named& v) { return v.shape == x.shape || v.shape == 0 || x.shape == 0; });
    const Named result{fresh(), std::max(x.shape, y.shape), x.set | y.set};
    if (below(2) == 0) std::swap(x, y);
    const char* const ops[] = {"add", "sub", "mul", "max"};
    line(indent + "%" + result.name + " = " + ops[below(4)] + " %" + x.name + ", %" + y.name);
    values.push_back(bounded(result, indent));
  }

  void add_reduction() {
    const Named first = pick(values_);
    if (first.set == 0) return;
    const std::uint32_t over = first.set == 3 ? 1 + below(3) : first.set;
    std::vector<Named> operands{first};
    for (std::uint32_t more = below(3); more > 0; --more) {
      operands.push_back(pick(values_, [&](const Named& v) { return (v.set & over) == over; }));
    }
    const char* const ops[] = {"psum", "psum", "pmax", "pmin"};
    const std::uint32_t op = below(4);
    std::string results, arguments;
    std::vector<Named> reduced;
    for (const Named& operand : operands) {
      const std::string argument = op < 2 ? widened(operand.name) : operand.name;
      reduced.push_back({fresh(), operand.shape, operand.set & ~over});
      results += (results.empty() ? "%" : ", %") + reduced.back().name;
      arguments += (arguments.empty() ? "%" : ", %") + argument;
    }
    line(results + " = " + ops[op] + "[axes=" + axes(over) + "] " + arguments);
    for (const Named& result : reduced) values_.push_back(op < 2 ? narrowed(result) : result);
  }

  std::uint32_t group(std::uint32_t set) const {
    return ((set & 1) != 0 ? sizes_[0] : 1) * ((set & 2) != 0 ? sizes_[1] : 1);
  }
  // The value `count` times, along dimension 0.
  std::string repeated(const std::string& name, std::uint32_t count) {
    std::string copies = "%" + name;
    for (std::uint32_t i = 1; i < count; ++i) copies += ", %" + name;
    const std::string result = fresh();
    line("%" + result + " = concatenate[dim=0] " + copies);
    return result;
  }
  void add_scatter() {
    const Named x = pick(values_);
    if (x.set == 0 || x.shape == 0) return;
    const std::uint32_t over = x.set == 3 ? 1 + below(2) : x.set;
    const std::string whole = widened(repeated(x.name, group(over)));
    const Named part{fresh(), x.shape, x.set};
    line("%" + part.name + " = psum_scatter[axes=" + axes(over) + ", dim=0] %" + whole);
    values_.push_back(narrowed(part));
  }

  // A value with three elements of another in place of its own, which are read as well: a table of which rows change.
  void add_rows(std::vector<Named>& values, const std::string& indent = "") {
    const auto is_table = [](const Named& v) { return v.shape == 1 || v.shape == 2; };
    if (std::none_of(values.begin(), values.end(), is_table)) return;
    const Named table = pick(values, is_table);
    const Named from = pick(values, [&](const Named& v) { return v.shape == table.shape && v.set == table.set; });
    const std::string count = fresh(), stride = fresh(), rows = fresh(), old = fresh();
    std::string indices = fresh();
    line(indent + "%" + count + " = iota[dtype=i32, shape=[3], dim=0]");
    line(indent + "%" + stride + " = constant[dtype=i32, shape=[], value=" + (below(2) == 0 ? "2" : "1999") + "]");
    line(indent + "%" + indices + " = mul %" + count + ", %" + stride);
    if (table.set != 0) {
      const std::string varied = fresh();
      line(indent + "%" + varied + " = pvary[axes=" + axes(table.set) + "] %" + indices);
      indices = varied;
    }
    line(indent + "%" + rows + " = slice[starts=[1], limits=[4]] %" + from.name);
    const Named result{fresh(), table.shape, table.set}, sum{fresh(), 0, table.set};
    line(indent + "%" + result.name + " = scatter %" + table.name + ", %" + indices + ", %" + rows);
    line(indent + "%" + old + " = gather %" + table.name + ", %" + indices);
    line(indent + "%" + sum.name + " = reduce_sum[dims=[0]] %" + old);
    values.push_back(result);
    values.push_back(bounded(sum, indent));
  }

  // Two values as matrices of few rows, a weight gradient of them and mostly its reduction: what is computed in parts.
  void add_gradient() {
    const auto fits = [](const Named& v) { return v.shape == 2 && v.set == 3; };
    if (std::none_of(values_.begin(), values_.end(), fits)) return;
    const std::string rows = std::to_string(1 + below(5));
    const auto matrix = [&](std::uint32_t columns) {
      const std::string width = std::to_string(columns), end = std::to_string(columns * std::stoul(rows));
      const std::string part = fresh(), whole = fresh();
      line("%" + part + " = slice[starts=[0], limits=[" + end + "]] %" + pick(values_, fits).name);
      line("%" + whole + " = reshape[shape=[" + rows + "," + width + "]] %" + part);
      return whole;
    };
    const std::string x = matrix(200), y = matrix(25), product = fresh(), sum = fresh();
    const bool wide = narrow_ && below(2) == 0;
    line("%" + product + " = matmul[transpose_a=true" + (wide ? ", preferred_element_type=f32" : "") + "] %" + x +
         ", %" + y);
    if (below(4) == 0) {
      const Named flat{fresh(), 2, 3};
      line("%" + flat.name + " = reshape[shape=[5000]] %" + product);
      values_.push_back(wide ? narrowed(flat) : bounded(flat));
    }
    const std::uint32_t over = below(4) == 0 ? 1 + below(2) : 3;
    const std::uint32_t axis = over == 3 ? 1 + below(2) : over;
    if (const std::uint32_t n = group(axis), dim = below(2); below(4) == 0 && (dim == 0 ? 200 : 25) % n == 0) {
      const std::string addend = wide ? product : widened(product), part = fresh();
      line("%" + part + " = psum_scatter[axes=" + axes(axis) + ", dim=" + std::to_string(dim) + "] %" + addend);
      const std::string whole = repeated(part, n);
      const Named flat{fresh(), 2, 3};
      line("%" + flat.name + " = reshape[shape=[5000]] %" + whole);
      values_.push_back(narrowed(flat));
      return;
    }
    const Named other = pick(values_, [&](const Named& v) { return (v.set & over) == over; });
    const Named other_sum{fresh(), other.shape, other.set & ~over};
    const std::string addend = wide ? product : widened(product), other_addend = widened(other.name);
    line("%" + sum + ", %" + other_sum.name + " = psum[axes=" + axes(over) + "] %" + addend + ", %" + other_addend);
    const Named flat{fresh(), 2, 3 & ~over};
    line("%" + flat.name + " = reshape[shape=[5000]] %" + sum);
    values_.push_back(narrowed(flat));
    values_.push_back(narrowed(other_sum));
  }

  void add_loop() {
    const std::uint32_t set = below(2) == 0 ? 0 : 3;
    const auto within = [&](const Named& v) { return (v.set & ~set) == 0; };
    const auto carried = [&](const Named& v) { return v.set == set; };
    if (std::none_of(values_.begin(), values_.end(), carried)) return;
    const std::uint32_t iterations = 1 + below(2);
    std::vector<Named> operands;
    const std::uint32_t consts = below(3), carries = 1 + below(3);
    for (std::uint32_t i = 0; i < consts; ++i) operands.push_back(pick(values_, within));
    for (std::uint32_t i = 0; i < carries; ++i) operands.push_back(pick(values_, carried));
    const auto has_rows = [&](const Named& v) { return v.shape != 0 && within(v); };
    if (std::any_of(values_.begin(), values_.end(), has_rows)) {
      for (std::uint32_t i = below(3); i > 0; --i) operands.push_back(pick(values_, has_rows));
    }

    std::vector<Named> inside;
    std::string head, arguments, params;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const bool is_cut = iterations > 1 && i >= consts + carries;
      const Named& operand = operands[i];
      inside.push_back({fresh(), is_cut ? half_of(operand.shape) : operand.shape, operand.set});
      arguments += (arguments.empty() ? "%" : ", %") + operand.name;
      params += (params.empty() ? "%" : ", %") + inside.back().name + ":" + type(inside.back().shape, operand.set);
    }
    std::vector<Named> results;
    for (std::uint32_t i = 0; i < carries; ++i) {
      results.push_back({fresh(), operands[consts + i].shape, set});
      head += (head.empty() ? "%" : ", %") + results.back().name;
    }
    line(head + " = loop[iterations=" + std::to_string(iterations) + ", consts=" + std::to_string(consts) +
         ", carries=" + std::to_string(carries) + "] " + arguments + " (" + params + ") {");
    // No carry has a slice's shape where it is cut: its sum reaches them.
    for (std::size_t i = consts + carries; i < operands.size(); ++i) {
      const Named sum{fresh(), 0, operands[i].set};
      line("  %" + sum.name + " = reduce_sum[dims=[0]] %" + inside[i].name);
      inside.push_back(bounded(sum, "  "));
    }
    for (std::uint32_t i = 1 + below(6); i > 0; --i) {
      with_rows_&& below(5) == 0 ? add_rows(inside, "  ") : add_elementwise(inside, "  ");
    }
    std::string yields;
    for (const Named& result : results) {
      const Named& next = pick(inside, [&](const Named& v) { return v.shape == result.shape && v.set == result.set; });
      yields += (yields.empty() ? "%" : ", %") + next.name;
    }
    line("  yield " + yields + "\n}");
    values_.insert(values_.end(), results.begin(), results.end());
  }

  void add_equation() {
    const Named x = pick(values_);
    const std::string head = "%v" + std::to_string(count_) + " = ";
    switch (below(19)) {
      case 0:
        line(head + "constant[dtype=" + dtype_ + ", shape=" + shape_text(x.shape) +
             ", value=" + std::to_string(below(4)) + "]");
        return values_.push_back({fresh(), x.shape, 0});
      case 1:
      case 2:
      case 3: return add_reduction();
      case 4:
        if (x.set == 3) return;
        line(head + "pvary[axes=" + axes(3 & ~x.set) + "] %" + x.name);
        return values_.push_back({fresh(), x.shape, 3});
      case 5:
        if (x.set == 0) return;
        line(head + "ppermute[axes=" + axes((x.set & 1) != 0 ? 1 : 2) + ", pairs=[0:0]] %" + x.name);
        return values_.push_back({fresh(), x.shape, x.set});
      case 6:
        if (x.shape == 0) return;
        line(head + "reduce_sum[dims=[0]] %" + x.name);
        return values_.push_back(bounded({fresh(), 0, x.set}));
      case 7: {
        const Named index{fresh(), 0, 1 + below(2)};
        line(head + "axis_index[axes=" + axes(index.set) + "]");
        return values_.push_back(narrowed(index));
      }
      case 8: {
        line(head + "stop_gradient %" + x.name);
        return values_.push_back({fresh(), x.shape, x.set});
      }
      case 9:
      case 10: return add_loop();
      case 11:
      case 12: return add_gradient();
      case 13: return with_rows_ && below(2) == 0 ? add_rows(values_) : add_scatter();
      default: return add_elementwise(values_);
    }
  }

  std::array<std::uint32_t, 2> sizes_{};
  std::uint32_t state_;
  std::string dtype_;
  bool narrow_;  // of bf16
  bool with_rows_;
  std::string text_;
  int count_ = 0;
  std::vector<Named> values_, kept_;
};

}  // namespace pmaptrain::test
