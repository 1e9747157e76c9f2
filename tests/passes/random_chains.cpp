// Random programs of elementwise equations, sums over rows and columns and casts: the passes for GPUs change no bit.
#include <fmt/format.h>

#include <random>
#include <string>
#include <vector>

#include "core/ops/fused_columns/fused_columns.h"
#include "core/passes/pipeline.h"
#include "tests/passes/check_fused.h"

namespace pmaptrain {
namespace {

class Writer {
 public:
  explicit Writer(unsigned seed) : random_(seed) {}

  std::string write() {
    const std::int64_t rows[] = {4, 100, 300, 700}, columns[] = {3, 4, 64, 100};
    rows_ = rows[below(4)];
    columns_ = columns[below(4)];
    for (const Kind kind : {Kind::matrix, Kind::matrix, Kind::row, Kind::column}) {
      text_ += fmt::format("batch %v{}:f32{}{{a}}\n", values_.size(), shape(kind));
      values_.push_back({kind, "f32"});
    }
    const std::size_t count = 8 + below(16);
    for (std::size_t i = 0; i < count; ++i) add();
    for (std::size_t i = 1; i <= 4; ++i) {
      text_ += fmt::format("return r{} = %v{}\n", i, values_.size() - i);
    }
    return text_;
  }

 private:
  enum class Kind { matrix, row, column };  // an element each, one for each row, one for each column
  struct Value {
    Kind kind;
    std::string dtype;
  };

  std::size_t below(std::size_t count) { return random_() % count; }

  std::string shape(Kind kind) const {
    if (kind == Kind::matrix) return fmt::format("[{},{}]", rows_, columns_);
    return fmt::format("[{}]", kind == Kind::row ? rows_ : columns_);
  }

  std::size_t define(Value value, const std::string& expression) {
    text_ += fmt::format("%v{} = {}\n", values_.size(), expression);
    values_.push_back(std::move(value));
    return values_.size() - 1;
  }

  // One of the last values.
  std::size_t pick() { return values_.size() - 1 - below(std::min<std::size_t>(values_.size(), 6)); }
  std::size_t matrix() {
    const std::size_t i = pick();
    return values_[i].kind == Kind::matrix ? i : expanded(i);
  }
  std::size_t expanded(std::size_t i) {
    if (values_[i].kind == Kind::matrix) return i;
    return define({Kind::matrix, values_[i].dtype},
                  fmt::format("broadcast[shape={}, dims=[{}]] %v{}", shape(Kind::matrix),
                              values_[i].kind == Kind::row ? 0 : 1, i));
  }
  std::size_t as(std::size_t i, const std::string& dtype) {
    if (values_[i].dtype == dtype) return i;
    return define({values_[i].kind, dtype}, fmt::format("cast[dtype={}] %v{}", dtype, i));
  }

  void add() {
    const char* const unary[] = {"exp", "tanh", "neg", "abs"};
    const char* const binary[] = {"add", "sub", "mul", "max"};
    switch (below(9)) {
      case 0: {
        const std::size_t i = pick();
        define(values_[i], fmt::format("{} %v{}", unary[below(4)], i));
        return;
      }
      case 1: as(pick(), below(2) == 0 ? "f32" : "bf16"); return;
      case 2:
      case 3: {
        const std::size_t i = matrix();
        define({Kind::column, values_[i].dtype}, fmt::format("reduce_sum[dims=[0]] %v{}", i));
        return;
      }
      case 4: {
        const std::size_t i = matrix();
        define({Kind::row, values_[i].dtype},
               fmt::format("reduce_{}[dims=[1]] %v{}", below(2) == 0 ? "sum" : "max", i));
        return;
      }
      case 5: {
        // A sum of columns, and that of the squared differences from what is made of it.
        const std::size_t i = as(as(matrix(), "bf16"), "f32");
        const std::size_t of = define({Kind::matrix, "f32"}, fmt::format("{} %v{}", unary[below(4)], i));
        const std::size_t sum = define({Kind::column, "f32"}, fmt::format("reduce_sum[dims=[0]] %v{}", of));
        const std::size_t mean = define({Kind::column, "f32"}, fmt::format("{} %v{}", unary[below(4)], sum));
        const std::size_t repeated = expanded(mean);
        const std::size_t apart = define({Kind::matrix, "f32"}, fmt::format("sub %v{}, %v{}", i, repeated));
        const std::size_t square = define({Kind::matrix, "f32"}, fmt::format("mul %v{0}, %v{0}", apart));
        define({Kind::column, "f32"}, fmt::format("reduce_sum[dims=[0]] %v{}", square));
        return;
      }
      default: {
        std::size_t x = pick(), y = pick();
        if (values_[x].kind != values_[y].kind) {
          x = expanded(x);
          y = expanded(y);
        }
        y = as(y, values_[x].dtype);
        define(values_[x], fmt::format("{} %v{}, %v{}", binary[below(4)], x, y));
      }
    }
  }

  std::mt19937 random_;
  std::int64_t rows_ = 0, columns_ = 0;
  std::vector<Value> values_;
  std::string text_;
};

}  // namespace

TEST_CASE("the passes for GPUs change no bit of random programs", "[passes]") {
  int changed = 0;
  std::size_t joined = 0;  // sums that need others
  for (unsigned seed = 0; seed < 60; ++seed) {
    const auto before = fused(*test::program_of(Writer(seed).write(), {{"a", 2}}));
    const Program after = run_passes(*before, passes_of_gpus());
    INFO("seed " << seed << "\n" << to_text(*before) << to_text(after));
    const test::Values inputs = test::random_inputs(*before, seed);
    require_same(test::interpreted(after, inputs, 1), test::interpreted(*before, inputs, 1), "interpreted");
    changed += to_text(after) != to_text(*before) ? 1 : 0;
    for (const Equation& equation : after.equations) {
      if (equation.op.as<ops::FusedColumns>() == nullptr) continue;
      for (const ops::ColumnSum& sum : ops::column_sums(equation.regions[0], after.types)) {
        if (sum.centred) ++joined;
      }
    }
  }
  CHECK(changed > 30);
  CHECK(joined > 3);
}

}  // namespace pmaptrain
