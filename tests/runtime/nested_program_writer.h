// Random programs whose rows vary over nested sets of axes, as text: those of examples, and those of activations that
// are divided over an axis `model`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/dtype.h"

namespace pmaptrain::test {

// Writes a program of i32 values, whose sums wrap and so are the same in any order, or of f32 values, which tanh keeps
// small.
class NestedProgramWriter {
 public:
  NestedProgramWriter(std::uint32_t seed, DType dtype)
      : state_(seed * 2654435761u + 4242u), dtype_(to_string(dtype)), is_real_(dtype == DType::f32) {}

  std::string write() {
    // The batch is divided along `data`, which some meshes lack; either axis may be the inner one, and there may be
    // more.
    const std::vector<std::pair<std::string, std::string>> meshes{{"model=2", ""},
                                                                  {"model=3", ""},
                                                                  {"data=2 model=2", "data"},
                                                                  {"model=2 data=2", "data"},
                                                                  {"data=3 model=2", "data"},
                                                                  {"model=4 data=2", "data"},
                                                                  {"data=1 model=2", "data"},
                                                                  {"model=3 more=2", ""},
                                                                  {"data=2 more=2 model=2", "data"},
                                                                  {"data=2 model=2 more=2", "data, more"}};
    const auto& [mesh, batch] = meshes[below(static_cast<std::uint32_t>(meshes.size()))];
    batch_ = batch;
    rows_ = 3 + below(8);
    text_ = "mesh " + mesh + "\n";
    values_ = {{"x", false, false}, {"y", true, false}};
    for (const Rows& input : values_) {
      line("batch %" + input.name + ":" + type(matrix(rows_, input.wide), set(false)));
    }
    parameters_ = {{"a", matrix(narrow, true), "model"},
                   {"b", matrix(wide, false), "model"},
                   {"c", matrix(narrow, true), ""},
                   {"d", matrix(wide, false), ""},
                   {"e", vector(false), ""},
                   {"f", vector(true), "model"}};
    for (const Parameter& each : parameters_) line("params %" + each.name + ":" + type(each.shape, each.axes));
    const std::uint32_t equations = 8 + below(16);
    for (std::uint32_t i = 0; i < equations; ++i) add_equation();
    for (std::uint32_t i = 0; i < 2; ++i) add_gradient();
    for (std::uint32_t i = 0; i < 3; ++i) line("return o" + std::to_string(i) + " = %" + pick().name);
    return text_;
  }

 private:
  static constexpr std::int64_t narrow = 36, wide = 130;  // products of both are large enough for parts
  // Rows of one of the two widths, and whether they are divided over `model`.
  struct Rows {
    std::string name;
    bool wide, divided;
  };
  struct Parameter {
    std::string name, shape, axes;
    bool updated = false;
  };

  std::uint32_t below(std::uint32_t n) {
    state_ = state_ * 1664525u + 1013904223u;
    return (state_ >> 16) % n;
  }
  void line(const std::string& text) { text_ += text + "\n"; }
  std::string fresh() { return "v" + std::to_string(count_++); }
  // Writes an equation. Returns the name of its result.
  std::string add(const std::string& equation) {
    const std::string name = fresh();
    line("%" + name + " = " + equation);
    return name;
  }
  static std::int64_t width(bool wide_one) { return wide_one ? wide : narrow; }
  static std::string vector(bool wide_one) { return "[" + std::to_string(width(wide_one)) + "]"; }
  static std::string matrix(std::int64_t first, bool wide_one) {
    return "[" + std::to_string(first) + "," + std::to_string(width(wide_one)) + "]";
  }
  std::string type(const std::string& shape, const std::string& axes) const {
    return dtype_ + shape + "{" + axes + "}";
  }
  std::string set(bool divided) const { return batch_ + (divided ? (batch_.empty() ? "model" : ", model") : ""); }

  Rows pick() {
    const auto count = static_cast<std::uint32_t>(values_.size());
    return values_[count - 1 - below(below(3) == 0 ? count : std::min(count, 5u))];
  }
  // One of this width, divided if `divided`.
  Rows pick_like(bool wide_one, bool divided) {
    std::vector<Rows> good;
    for (const Rows& value : values_) {
      if (value.wide == wide_one && (divided || !value.divided)) good.push_back(value);
    }
    return varied(good[below(static_cast<std::uint32_t>(good.size()))], divided);
  }
  Rows varied(Rows value, bool divided) {
    if (divided && !value.divided) value = {add("pvary[axes={model}] %" + value.name), value.wide, true};
    return value;
  }
  // What is equal on all positions along these axes, as a value that varies over them.
  std::string spread(const std::string& name, const std::string& axes) {
    return axes.empty() ? name : add("pvary[axes={" + axes + "}] %" + name);
  }
  std::string small(const std::string& name) { return is_real_ ? add("tanh %" + name) : name; }

  void add_product() {
    Rows x = pick();
    const bool by_divided = below(2) == 0;
    x = varied(x, by_divided);
    const std::string weight = std::string(1, by_divided ? (x.wide ? 'b' : 'a') : (x.wide ? 'd' : 'c'));
    std::string axes = batch_;
    if (!by_divided && x.divided) axes = set(true);
    const std::string product = add("matmul %" + x.name + ", %" + spread(weight, axes));
    values_.push_back({small(product), !x.wide, x.divided});
  }

  void add_binary() {
    const Rows x = pick();
    const bool divided = x.divided || below(4) == 0;
    const Rows y = pick_like(x.wide, divided), left = varied(x, divided);
    const char* const ops[] = {"add", "sub", "mul", "max"};
    values_.push_back({small(add(std::string(ops[below(4)]) + " %" + left.name + ", %" + y.name)), x.wide, divided});
  }

  // A sum, or the largest or least, over the devices that have parts of the same rows.
  void add_reduction() {
    const Rows x = varied(pick(), true);
    const char* const ops[] = {"psum", "psum", "pmax", "pmin"};
    const std::string op = std::string(ops[below(4)]) + "[axes={model}] ";
    if (below(3) == 0) {
      const Rows y = pick_like(below(2) == 0, true);
      const std::string first = fresh(), second = fresh();
      line("%" + first + ", %" + second + " = " + op + "%" + x.name + ", %" + y.name);
      values_.push_back({small(first), x.wide, false});
      values_.push_back({small(second), y.wide, false});
      return;
    }
    values_.push_back({small(add(op + "%" + x.name)), x.wide, false});
  }

  // What all columns of a row have in common, or all rows of a device.
  void add_statistic() {
    const Rows x = pick();
    const bool of_row = below(2) == 0;
    const char* const op = below(2) == 0 ? "reduce_max" : "reduce_sum";
    const std::string statistic = small(add(std::string(op) + "[dims=[" + (of_row ? "1" : "0") + "]] %" + x.name));
    const std::string all =
        add("broadcast[shape=" + matrix(rows_, x.wide) + ", dims=[" + (of_row ? "0" : "1") + "]] %" + statistic);
    values_.push_back({small(add("sub %" + x.name + ", %" + all)), x.wide, x.divided});
  }

  // A vector that is added to each row.
  void add_bias() {
    const bool divided = below(2) == 0;
    const Rows x = varied(pick_like(divided, divided), divided);
    const std::string shape = "broadcast[shape=" + matrix(rows_, divided) + ", dims=[1]] %";
    const std::string vector = divided ? "f" : "e";
    const std::string all = below(2) == 0 ? spread(add(shape + vector), batch_) : add(shape + spread(vector, batch_));
    values_.push_back({small(add("add %" + x.name + ", %" + all)), divided, divided});
  }

  // What needs rows of other pieces, or columns of other devices.
  void add_exchange() {
    const Rows x = pick();
    if (!x.divided || below(2) == 0) {
      values_.push_back({add("reverse[dims=[0]] %" + x.name), x.wide, x.divided});
      return;
    }
    if (below(2) == 0) {
      values_.push_back({add("ppermute[axes={model}, pairs=[0:1,1:0]] %" + x.name), x.wide, true});
      return;
    }
    const std::string whole = add("all_gather_invariant[axes={model}, dim=1] %" + x.name);
    values_.push_back({add("slice[starts=[0,1], limits=[" + std::to_string(rows_) + "," +
                           std::to_string(1 + width(x.wide)) + "]] %" + whole),
                       x.wide, false});
  }

  // The gradient of a parameter, and its update.
  void add_gradient() {
    Parameter& of = parameters_[below(static_cast<std::uint32_t>(parameters_.size()))];
    const bool is_vector = of.name == "e" || of.name == "f";
    const bool wide_rows = of.name == "b" || of.name == "d" || of.name == "f";
    const bool is_divided = !of.axes.empty(), sums_model = !is_divided && below(2) == 0;
    const bool divided = is_divided || sums_model;
    const Rows x = pick_like(wide_rows, divided);
    std::string gradient;
    if (is_vector) {
      gradient = add("reduce_sum[dims=[0]] %" + x.name);
    } else {
      gradient = add("matmul[transpose_a=true] %" + x.name + ", %" + pick_like(!wide_rows, divided).name);
    }
    const std::string over = sums_model ? set(true) : batch_;
    if (below(3) == 0) {  // in a bucket, with a sum of another shape
      const Rows other = pick_like(below(2) == 0, divided);
      const std::string bucket = add("pack %" + gradient + ", %" + add("reduce_sum[dims=[0]] %" + other.name));
      const std::string sum = fresh(), all = summed(bucket, over);
      gradient = fresh();
      line("%" + gradient + ", %" + sum + " = unpack[shapes=[" + of.shape + "," + vector(other.wide) + "]] %" + all);
      line("return s" + std::to_string(count_++) + " = %" + sum);
    } else {
      gradient = summed(gradient, over);
    }
    if (of.updated || is_real_) return line("return g" + std::to_string(count_++) + " = %" + gradient);
    of.updated = true;
    line("update %" + of.name + " = %" + add("add %" + of.name + ", %" + gradient));
  }
  std::string summed(const std::string& value, const std::string& over) {
    return over.empty() ? value : add("psum[axes={" + over + "}] %" + value);
  }

  void add_equation() {
    switch (below(10)) {
      case 0:
      case 1: return add_product();
      case 2:
      case 3: return add_reduction();
      case 4: return add_statistic();
      case 5: return add_bias();
      case 6: return add_exchange();
      case 7: return values_.push_back(varied(pick(), true));
      default: return add_binary();
    }
  }

  std::uint32_t state_;
  std::string dtype_;
  bool is_real_;
  std::string batch_;  // the axes of the batch
  std::int64_t rows_ = 0;
  std::string text_;
  int count_ = 0;
  std::vector<Rows> values_;
  std::vector<Parameter> parameters_;
};

}  // namespace pmaptrain::test
