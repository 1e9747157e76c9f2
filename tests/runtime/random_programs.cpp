// Random programs over two axes: what the schedule, the memory plan and the passes make of any mixture of ops.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/graph/passes.h"
#include "core/graph/text.h"
#include "core/passes/fuse.h"
#include "core/passes/fuse_epilogues.h"
#include "core/passes/hoist.h"
#include "core/passes/sink_pvary.h"
#include "tests/catch.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {
namespace {

// Writes a program of i32 values, whose sums wrap and so are the same in any order. `a` and `b` are its axes.
class Writer {
 public:
  explicit Writer(std::uint32_t seed) : state_(seed * 2654435761u + 12345u) {}

  std::string write() {
    const std::vector<std::string> meshes{"a=2 b=3", "a=3 b=1", "a=1 b=9", "a=2 b=5", "a=1 b=1", "a=17 b=1"};
    text_ = "mesh " + meshes[below(6)] + "\n";
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
  static std::string type(int shape, std::uint32_t set) { return "i32" + shape_text(shape) + axes(set); }

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
    values.push_back(result);
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
    std::string results, arguments;
    for (const Named& operand : operands) {
      const Named result{fresh(), operand.shape, operand.set & ~over};
      results += (results.empty() ? "%" : ", %") + result.name;
      arguments += (arguments.empty() ? "%" : ", %") + operand.name;
      values_.push_back(result);
    }
    line(results + " = " + ops[below(4)] + "[axes=" + axes(over) + "] " + arguments);
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
    line("%" + product + " = matmul[transpose_a=true] %" + x + ", %" + y);
    if (below(4) == 0) {
      line("%v" + std::to_string(count_) + " = reshape[shape=[5000]] %" + product);
      values_.push_back({fresh(), 2, 3});
    }
    const std::uint32_t over = below(4) == 0 ? 1 + below(2) : 3;
    const Named other = pick(values_, [&](const Named& v) { return (v.set & over) == over; });
    const Named other_sum{fresh(), other.shape, other.set & ~over};
    line("%" + sum + ", %" + other_sum.name + " = psum[axes=" + axes(over) + "] %" + product + ", %" + other.name);
    line("%v" + std::to_string(count_) + " = reshape[shape=[5000]] %" + sum);
    values_.push_back({fresh(), 2, 3 & ~over});
    values_.push_back(other_sum);
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
      inside.push_back(sum);
    }
    for (std::uint32_t i = 1 + below(6); i > 0; --i) add_elementwise(inside, "  ");
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
    switch (below(18)) {
      case 0:
        line(head + "constant[dtype=i32, shape=" + shape_text(x.shape) + ", value=" + std::to_string(below(4)) + "]");
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
        return values_.push_back({fresh(), 0, x.set});
      case 7: {
        const std::uint32_t axis = 1 + below(2);
        line(head + "axis_index[axes=" + axes(axis) + "]");
        return values_.push_back({fresh(), 0, axis});
      }
      case 8: {
        line(head + "stop_gradient %" + x.name);
        return values_.push_back({fresh(), x.shape, x.set});
      }
      case 9:
      case 10: return add_loop();
      case 11:
      case 12: return add_gradient();
      default: return add_elementwise(values_);
    }
  }

  std::uint32_t state_;
  std::string text_;
  int count_ = 0;
  std::vector<Named> values_, kept_;
};

void check_plans(std::shared_ptr<const Program> program, const test::Values& inputs, const test::Values& expected) {
  for (const int workers : {1, 2, 5}) {
    for (const bool private_copies : {false, true}) {
      for (const bool step_by_step : {false, true}) {
        INFO("workers " << workers << ", private copies " << private_copies << ", step by step " << step_by_step);
        const bool same = test::run(program, inputs, {workers, private_copies, 4, step_by_step}) == expected;
        REQUIRE(same);
      }
    }
    // The best kernels, and pieces of other numbers of devices.
    INFO("workers " << workers << ", best kernels");
    const bool same =
        test::run(program, inputs, {workers, false, 4, false, KernelChoice::best, 2 + workers}) == expected;
    REQUIRE(same);
  }
}

TEST_CASE("random programs over two axes run as the interpreter says, with passes and without", "[runtime]") {
  // More, by hand: PMAPTRAIN_RANDOM_PROGRAMS=FIRST:LAST
  std::uint32_t first = 0, last = 40;
  if (const char* range = std::getenv("PMAPTRAIN_RANDOM_PROGRAMS")) {
    const std::string text = range;
    first = static_cast<std::uint32_t>(std::stoul(text));
    last = static_cast<std::uint32_t>(std::stoul(text.substr(text.find(':') + 1)));
  }
  for (std::uint32_t seed = first; seed < last; ++seed) {
    const auto program = test::program_of(Writer(seed).write());
    INFO("seed " << seed << "\n" << to_text(*program));
    const test::Values inputs = test::random_inputs(*program, seed);
    const test::Values expected = test::interpreted(*program, inputs, 4);
    const bool first = test::run(program, inputs, {2, false, 1, false}) == test::interpreted(*program, inputs, 1);
    REQUIRE(first);
    check_plans(program, inputs, expected);
    Program passed = sink_pvary(hoist(simplify(*program)));
    passed = fuse(fuse_epilogues(std::move(passed)));
    INFO("after the passes\n" << to_text(passed));
    const bool same = test::interpreted(passed, inputs, 4) == expected;
    REQUIRE(same);
    check_plans(std::make_shared<const Program>(std::move(passed)), inputs, expected);
  }
}

TEST_CASE("pieces of different numbers of devices have the same bits under the best kernels for all workers",
          "[runtime]") {
  const std::string body = R"(params %k:f32[3,3,8,16]{}
params %c:f32[16]{}
params %w:f32[400,40]{}
params %b:f32[40]{}
batch %i:f32[4,10,10,8]{a}
%small = constant[dtype=f32, shape=[], value=0.013]
%x = mul %i, %small
%z = conv[strides=[1,1], padding=[1:1,1:1], relu=true] %x, %k, %c
%p = max_pool[window=[2,2], strides=[2,2], padding=[0:0,0:0]] %z
%f = reshape[shape=[4,400]] %p
%h = matmul %f, %w, %b
%hs = mul %h, %small
%t = tanh %hs
%gw = matmul[transpose_a=true] %f, %t
%gf = matmul[transpose_b=true] %t, %w
%gp = reshape[shape=[4,5,5,16]] %gf
%gz = max_pool_grad[window=[2,2], strides=[2,2], padding=[0:0,0:0]] %z, %gp
%gk, %gc = conv_kernel_grad[strides=[1,1], padding=[1:1,1:1], kernel_shape=[3,3,8,16], bias=true] %x, %gz
%gx = conv_input_grad[strides=[1,1], padding=[1:1,1:1], input_shape=[4,10,10,8]] %k, %gz
%gb = reduce_sum[dims=[0]] %t
%sk, %sc, %sw, %sb = psum[axes={a}] %gk, %gc, %gw, %gb
%dw = mul %sw, %small
%w2 = sub %w, %dw
update %w = %w2
return sk = %sk
return sc = %sc
return sb = %sb
return gx = %gx
)";
  struct Ragged {
    std::int64_t devices, pieces;
  };
  for (const Ragged& ragged : {Ragged{17, 8}, Ragged{5, 3}, Ragged{7, 3}}) {
    const auto program = test::program_of("mesh a=1\n" + body, {{"a", ragged.devices}});
    const cpu::Plan plan = cpu::make_plan(program, {false, ragged.pieces});
    INFO(ragged.devices << " devices in " << ragged.pieces << " pieces");
    const cpu::Cut& rows = plan.cuts.front();
    CHECK(rows.rows == 4);
    CHECK(rows.largest() > rows.pieces.front().count);
    const test::Values inputs = test::random_inputs(*program, 5);
    const auto run = [&](int workers, bool private_copies, bool step_by_step) {
      return test::run(program, inputs, {workers, private_copies, 3, step_by_step, KernelChoice::best, ragged.pieces});
    };
    const test::Values expected = run(1, false, false);
    for (const int workers : {1, 2, 3, 5}) {
      for (const bool private_copies : {false, true}) {
        INFO("workers " << workers << ", private copies " << private_copies);
        const bool same = run(workers, private_copies, workers == 2) == expected;
        CHECK(same);
      }
    }
  }
}

TEST_CASE("memory is not used again while chunks over other axes read the value that was there", "[runtime]") {
  const auto program = test::program_of(R"(mesh a=17 b=1
batch %x:i32[5000]{}
batch %y:i32[5000]{a, b}
batch %i:i32[]{a}
state %s:i32[5000]{}
%same = pvary[axes={a, b}] %x
%first = psum[axes={a, b}] %same
%v = pvary[axes={a}] %first
%large = add %v, %i
%sum = psum[axes={a, b}] %y
%p = psum[axes={a}] %large
%next = mul %p, %sum
update %s = %next
)");
  const test::Values inputs = test::random_inputs(*program, 5);
  check_plans(program, inputs, test::interpreted(*program, inputs, 4));
}

// One step, and several: a value that a plan reads too early may be the step before's.
void check_program(const std::string& text) {
  const auto program = test::program_of(text);
  INFO(to_text(*program));
  const test::Values inputs = test::random_inputs(*program, 5);
  for (const std::int64_t steps : {1, 4}) {
    const test::Values expected = test::interpreted(*program, inputs, steps);
    for (const int workers : {1, 3}) {
      for (const bool private_copies : {false, true}) {
        for (const std::int64_t pieces : {1, 2, 5, 8}) {
          INFO("workers " << workers << ", private " << private_copies << ", steps " << steps << ", pieces " << pieces);
          const bool same =
              test::run(program, inputs, {workers, private_copies, steps, false, KernelChoice::reference, pieces}) ==
              expected;
          CHECK(same);
        }
      }
    }
  }
}

TEST_CASE("a row that reads all rows of a value, through a view, waits for them", "[runtime]") {
  check_program(R"(mesh a=2
batch %x:i32[4,2]{a}
%y = add %x, %x
%t = reshape[shape=[2,4]] %y
%z = matmul %y, %t
%m = reduce_max[dims=[0,1]] %z
return max = %m
)");
}

TEST_CASE("the equal rows of a constant inside a loop are as many as a device has", "[runtime]") {
  check_program(R"(mesh a=6
batch %x:i32[6,2]{a}
%z = constant[dtype=i32, shape=[2], value=0]
%zv = pvary[axes={a}] %z
%r = loop[iterations=2, consts=0, carries=1] %zv, %x (%c:i32[2]{a}, %y:i32[3,2]{a}) {
  %k = constant[dtype=i32, shape=[3,2], value=7]
  %m = mul %y, %k
  %s = reduce_sum[dims=[0]] %m
  %t = add %c, %s
  yield %t
}
%g = psum[axes={a}] %r
return g = %g
)");
}

TEST_CASE("sums over rows of two stages may be added", "[runtime]") {
  check_program(R"(mesh a=2
batch %x:i32[4,3]{a}
%g = reduce_sum[dims=[0]] %x
%t = reduce_sum[dims=[0,1]] %x
%m = psum[axes={a}] %t
%y = mul %x, %m
%h = reduce_sum[dims=[0]] %y
%s = add %g, %h
%p = psum[axes={a}] %s
return p = %p
)");
}

TEST_CASE("a carry may vary over fewer axes than its loop", "[runtime]") {
  check_program(R"(mesh a=2 b=3
batch %x:i32[2]{a, b}
state %s:i32[2]{a}
state %w:i32[4]{b}
%r, %v, %n = loop[iterations=2, consts=1, carries=3] %x, %s, %w, %x (%k:i32[2]{a, b}, %c:i32[2]{a}, %d:i32[4]{b}, %e:i32[2]{a, b}) {
  %1 = add %c, %c
  %2 = add %d, %d
  %3 = add %e, %k
  yield %1, %2, %3
}
%q = add %r, %r
%u = neg %v
update %s = %q
update %w = %u
return n = %n
return r = %r
)");
}

TEST_CASE("private copies of what varies over one axis of two are kept apart", "[runtime]") {
  check_program("mesh a=2 b=3\nbatch %x:i32[1]{a}\n%y = add %x, %x\nreturn y = %y\n");
  check_program(
      "mesh a=3 b=2\nbatch %x:i32[4,2]{b}\nparams %w:i32[2]{}\n%y = mul %x, %x\n"
      "%g = reduce_sum[dims=[0]] %y\n%s = psum[axes={b}] %g\n%w2 = add %w, %s\nupdate %w = %w2\n"
      "return y = %y\n");
}

TEST_CASE("the operands of one reduction over some of the axes may have different sets", "[runtime]") {
  const auto program = test::program_of(R"(mesh a=2 b=2
%i = axis_index[axes={a}]
%j = axis_index[axes={b}]
%x = add %i, %j
%p, %q = psum[axes={a}] %x, %i
%r = add %q, %q
%s, %t = psum[axes={a}] %i, %x
return r = %r
return t = %t
)");
  const test::Values expected = test::interpreted(*program, {}, 4);
  const auto first_byte = [](const PerDevice& value) {
    std::vector<int> numbers;
    for (const auto& bytes : value) numbers.push_back(std::to_integer<int>(bytes.front()));
    return numbers;
  };
  CHECK(first_byte(expected.at("output r")) == std::vector<int>{2, 2, 2, 2});
  CHECK(first_byte(expected.at("output t")) == std::vector<int>{1, 3, 1, 3});
  check_plans(program, {}, expected);
}

}  // namespace
}  // namespace pmaptrain
