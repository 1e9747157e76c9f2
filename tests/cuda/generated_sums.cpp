// The text of generated kernels that add up rows and columns, against the references.
#include <fmt/format.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/text.h"
#include "core/ops/all.h"
#include "tests/catch.h"
#include "tests/cuda/generated.h"
#include "tests/gpu/gpus.h"

namespace pmaptrain::test {
namespace {

// A text with each of these words replaced.
std::string filled_in(std::string text, const std::vector<std::pair<std::string, std::string>>& words) {
  for (const auto& [word, value] : words) {
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word)) {
      text.replace(at, word.size(), value);
    }
  }
  return text;
}

// Softmax cross-entropy with its derivative, and the largest of each row. A result of each kind; a label may be none.
Program softmax_program(const std::string& shape, const std::string& dims, const std::string& length,
                        const std::string& dtype) {
  const std::string text = R"(batch %x:TYPE[4,SHAPE]{}
batch %t:i32[4]{}
batch %w:TYPE[4]{}
batch %s:TYPE[]{}
%a, %b, %c, %d = fused_rows[length=LENGTH] %x, %t, %w, %s (%p:TYPE[4,SHAPE]{}, %q:i32[4]{}, %r:TYPE[4]{}, %u:TYPE[]{}) {
  %m = reduce_max[dims=DIMS] %p
  %mb = broadcast[shape=[4,SHAPE], dims=[0]] %m
  %h = sub %p, %mb
  %e = exp %h
  %z = reduce_sum[dims=DIMS] %e
  %l = log %z
  %o = one_hot[depth=LENGTH, dtype=TYPE] %q
  %o2 = reshape[shape=[4,SHAPE]] %o
  %ho = mul %h, %o2
  %k = reduce_sum[dims=DIMS] %ho
  %y = sub %l, %k
  %yw = mul %y, %r
  %i = div %r, %z
  %ib = broadcast[shape=[4,SHAPE], dims=[0]] %i
  %g = mul %e, %ib
  %gs = mul %g, %u
  %flat = reshape[shape=[4,LENGTH]] %p
  %best = argmax[dim=1] %flat
  yield %yw, %gs, %best, %m
}
return a = %a
return b = %b
return c = %c
return d = %d
)";
  const std::string filled = filled_in(text, {{"SHAPE", shape}, {"DIMS", dims}, {"LENGTH", length}, {"TYPE", dtype}});
  return parse_program(filled, "softmax.pmt", all_ops(), {});
}

KernelCase softmax_case(Generated& kernels, int length, const std::string& dtype = "f32") {
  const std::string n = std::to_string(length);
  const Program& program = kernels.keep(softmax_program(n, "[1]", n, dtype));
  return case_of(program, program.equations.front());
}

void add_rows(Generated& kernels) {
  // By a thread: no whole narrow group, some, one below a wide group. By a block: one wide group, several, and more
  // than one block of them, with and without a rest. Of long rows, floats are added up in another order
  // (generated_softmax.cpp).
  for (const int length : {2, 10, 16, 40, 63, 64, 100, 1000}) {
    for (const std::string dtype : {"f32", "bf16", "f64"}) kernels.add(softmax_case(kernels, length, dtype));
  }
  kernels.add(softmax_case(kernels, 16384 + 130, "bf16"));
  for (const int length : {10, 100}) add_stacked(kernels, softmax_case(kernels, length));
  const Program& two_dims = kernels.keep(softmax_program("5,7", "[1, 2]", "35", "f32"));
  kernels.add(case_of(two_dims, two_dims.equations.front()));
}

// A layer norm, whose scale is one vector for all rows.
void add_norms(Generated& kernels) {
  for (const std::string length : {"3", "64", "100", "1000"}) {
    const Program& program = kernels.keep(parse_program(
        "batch %x:f32[4," + length + "]{}\nbatch %v:bf16[" + length + "]{}\n%a = fused_rows[length=" + length +
            "] %x, %v (%p:f32[4," + length + "]{}, %q:bf16[" + length +
            "]{}) {\n  %s = reduce_sum[dims=[1]] %p\n"
            "  %b = broadcast[shape=[4," +
            length + "], dims=[0]] %s\n  %d = sub %p, %b\n" + "  %w = broadcast[shape=[4," + length +
            "], dims=[1]] %q\n  %f = cast[dtype=f32] %w\n"
            "  %y = mul %d, %f\n  yield %y\n}\nreturn a = %a\n",
        "norm.pmt", all_ops(), {}));
    const KernelCase c = case_of(program, program.equations.front());
    kernels.add(c);
    add_stacked(kernels, c);
  }
}

// Rows of NaN, of infinities and of equal numbers.
void add_special_rows(Generated& kernels) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (const int length : {10, 130}) {
    KernelCase c = softmax_case(kernels, length);
    std::vector<float> x;
    for (int row = 0; row < 4; ++row) {
      for (int j = 0; j < length; ++j) {
        const bool special = row < 3 && j % 7 == 3;
        const float specials[] = {nan, infinity, -infinity};
        x.push_back(special ? specials[row] : 1.5F);
      }
    }
    c.values = {bytes_of(x), bytes_of(std::vector<std::int32_t>{3, -1, length, 3}),
                bytes_of(std::vector<float>{1, 1, 1, 0}), bytes_of(std::vector<float>{2})};
    kernels.add(std::move(c));
  }
}

// Sums over rows of what chains compute: of several types, of values that are repeated along rows and columns.
Program columns_program(std::int64_t rows, std::int64_t columns, const std::string& dtype) {
  const std::string text = R"(batch %x:TYPE[ROWS,COLUMNS]{}
batch %y:TYPE[ROWS,COLUMNS]{}
batch %r:f32[ROWS]{}
batch %c:f32[COLUMNS]{}
batch %s:f32[]{}
%a, %b, %g = fused_columns %x, %y, %r, %c, %s (%p:TYPE[ROWS,COLUMNS]{}, %q:TYPE[ROWS,COLUMNS]{}, %u:f32[ROWS]{}, %v:f32[COLUMNS]{}, %w:f32[]{}) {
  %t = cast[dtype=f32] %p
  %m = broadcast[shape=[ROWS,COLUMNS], dims=[1]] %v
  %d = sub %t, %m
  %i = broadcast[shape=[ROWS,COLUMNS], dims=[0]] %u
  %h = mul %d, %i
  %wb = broadcast[shape=[ROWS,COLUMNS], dims=[]] %w
  %e = max %h, %wb
  %sum = reduce_sum[dims=[0]] %e
  %z = mul %p, %q
  %flat = reshape[shape=[ROWS,1,COLUMNS]] %z
  %other = reduce_sum[dims=[0, 1]] %flat
  %mean = mul %sum, %w
  %shifted = sub %mean, %v
  yield %sum, %other, %shifted
}
return a = %a
return b = %b
return g = %g
)";
  const std::string filled =
      filled_in(text, {{"ROWS", std::to_string(rows)}, {"COLUMNS", std::to_string(columns)}, {"TYPE", dtype}});
  return parse_program(filled, "columns.pmt", all_ops(), {});
}

// As many sums as one equation has: pairs of up to 64 bytes.
Program many_sums(const std::string& dtype) {
  std::string lines, sums, results, returns;
  for (int i = 0; i < 8; ++i) {
    lines += fmt::format(
        "  %k{0} = constant[dtype={1}, shape=[300,5], value={0}]\n  %y{0} = mul %p, %k{0}\n"
        "  %s{0} = reduce_sum[dims=[0]] %y{0}\n",
        i, dtype);
    sums += fmt::format("{}%s{}", i == 0 ? "" : ", ", i);
    results += fmt::format("{}%r{}", i == 0 ? "" : ", ", i);
    returns += fmt::format("return r{0} = %r{0}\n", i);
  }
  const std::string text =
      fmt::format("batch %x:{0}[300,5]{{}}\n{1} = fused_columns %x (%p:{0}[300,5]{{}}) {{\n{2}  yield {3}\n}}\n{4}",
                  dtype, results, lines, sums, returns);
  return parse_program(text, "sums.pmt", all_ops(), {});
}

void add_columns(Generated& kernels) {
  for (const std::string dtype : {"f32", "f64"}) {
    const Program& program = kernels.keep(many_sums(dtype));
    kernels.add(case_of(program, program.equations.front()));
  }
  struct Size {
    std::int64_t rows, columns;
  };
  // Wide rows of one row and of many; one block and several; with rows that are left after the last wide row.
  for (const Size size : {Size{2, 3}, {260, 200}, {2000, 5}, {16 * 256 + 3, 3}, {700, 64}}) {
    for (const std::string dtype : {"f32", "bf16"}) {
      const Program& program = kernels.keep(columns_program(size.rows, size.columns, dtype));
      KernelCase c = case_of(program, program.equations.front());
      kernels.add(c);
      c.devices = 3;
      c.stacked = {true, size.rows > 300, false, true, size.rows > 1000};
      kernels.add(c);
      // The rows of three devices, one after another.
      c.devices = 1;
      c.stacked.clear();
      for (const std::size_t i : {0U, 1U, 2U}) c.operands[i].shape[0] *= 3;
      kernels.add(std::move(c));
    }
  }
}

}  // namespace

DEVICE_TEST_CASE("generated code of rows has the reference's bits", "[cuda][kernels][process]") {
  Generated kernels;
  add_rows(kernels);
  add_norms(kernels);
  add_special_rows(kernels);
  kernels.check();
}

DEVICE_TEST_CASE("generated code of sums over rows has the reference's bits", "[cuda][kernels][process]") {
  Generated kernels;
  add_columns(kernels);
  kernels.check();
}

}  // namespace pmaptrain::test
