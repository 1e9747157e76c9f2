// Fused programs against what they were made from, bit by bit.
#include "core/passes/fuse.h"

#include <random>
#include <string>
#include <vector>

#include "core/graph/builder.h"
#include "core/graph/check.h"
#include "core/graph/passes.h"
#include "core/graph/text.h"
#include "core/ops/list.h"
#include "tests/arrays.h"
#include "tests/catch.h"
#include "tests/passes/check_fused.h"
#include "tests/runtime/programs.h"
#include "tests/slice.h"

namespace pmaptrain {
namespace {

// Values of one number of elements, scalars and what can be repeated, combined at random.
class RandomProgram {
 public:
  explicit RandomProgram(std::uint32_t seed) : random_(seed) {}

  Program make() {
    program_.name = "random";
    const std::int64_t rows = pick({1, 2, 7, 70}), columns = pick({1, 3, 64, 100});
    program_.mesh = Mesh({{"a", rows < 70 ? pick({1, 3, 20}) : pick({1, 3})}});
    const AxisSet varying = chance(2) ? AxisSet{} : program_.mesh.all();
    whole_ = {rows, columns};
    Builder b(program_, all_ops());
    const auto input = [&](const char* name, DType dtype, Shape shape, bool keeps = false) {
      const Value value = b.input(keeps ? Group::state : Group::batch, name, {dtype, std::move(shape), varying});
      if (dtype == DType::f32) values_.push_back(value);
      return value;
    };
    const Value x = input("x", DType::f32, whole_, true), y = input("y", DType::f32, whole_, true);
    const Value bytes = input("bytes", DType::u8, whole_);
    const Value last = input("last", DType::f32, {columns}), first = input("first", DType::f32, {rows});
    input("scalar", DType::f32, {});
    values_.push_back(b.emit(ops::Cast{DType::f32}, {bytes}));
    values_.push_back(b.emit(ops::Broadcast{whole_, {1}}, {last}));
    values_.push_back(b.emit(ops::Broadcast{whole_, {0}}, {first}));
    values_.push_back(b.constant(DType::f32, 0.75));
    predicates_.push_back(b.emit(ops::Lt{}, {x, y}));
    for (int i = 0; i < 25; ++i) add(b);
    Value next = values_.back();
    for (Value value : values_) next = b.type(value).shape == whole_ ? value : next;
    replace(x, b.vary(b.emit(ops::Relu{}, {next}), varying));
    replace(y, b.emit(ops::Sub{}, {next, y}));
    for (int i = 0; i < 4; ++i) b.output("o" + std::to_string(i), values_[any(values_.size())]);
    check(program_, "making it up");
    return std::move(program_);
  }

 private:
  std::size_t any(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }
  bool chance(std::size_t in) { return any(in) == 0; }
  std::int64_t pick(std::vector<std::int64_t> from) { return from[any(from.size())]; }

  // Two values that go together: of one shape, or one of them a scalar.
  std::pair<Value, Value> two(Builder& b) {
    for (;;) {
      const Value p = values_[any(values_.size())], q = values_[any(values_.size())];
      const Shape &s = b.type(p).shape, &t = b.type(q).shape;
      if (s == t || s.empty() || t.empty()) return {p, q};
    }
  }

  void add(Builder& b) {
    const auto [p, q] = two(b);
    switch (any(12)) {
      case 0: values_.push_back(b.emit(ops::Add{}, {p, q})); break;
      case 1: values_.push_back(b.emit(ops::Sub{}, {p, q})); break;
      case 2: values_.push_back(b.emit(ops::Mul{}, {p, q})); break;
      case 3: values_.push_back(b.emit(ops::Max{}, {p, q})); break;
      case 4: values_.push_back(b.emit(ops::Tanh{}, {p})); break;
      case 5: values_.push_back(b.emit(ops::Relu{}, {q})); break;
      case 6: predicates_.push_back(b.emit(ops::Gt{}, {p, q})); break;
      case 7: {
        const Value predicate = predicates_[any(predicates_.size())];
        const Shape &shape = b.type(predicate).shape, &s = b.type(p).shape, &t = b.type(q).shape;
        const bool fits = (shape.empty() || s.empty() || shape == s) && (shape.empty() || t.empty() || shape == t);
        if (fits) values_.push_back(b.emit(ops::Select{}, {predicate, p, q}));
        break;
      }
      case 8: values_.push_back(b.emit(ops::Cast{DType::f32}, {predicates_[any(predicates_.size())]})); break;
      case 9: {
        const Value flat = b.emit(ops::Reshape{{numel(b.type(p))}}, {p});
        values_.push_back(b.emit(ops::Reshape{b.type(p).shape}, {b.emit(ops::Neg{}, {flat})}));
        break;
      }
      case 10:
        if (b.type(p).shape == whole_) values_.push_back(b.emit(ops::ReduceSum{{0, 1}}, {p}));
        break;
      default:
        if (b.type(p).shape == whole_) {
          const Value sum = b.emit(ops::ReduceSum{{0}}, {p});
          values_.push_back(b.emit(ops::Broadcast{whole_, {1}}, {b.emit(ops::Tanh{}, {sum})}));
        }
    }
  }

  void replace(Value input, Value next) {
    for (Input& candidate : program_.inputs) {
      if (candidate.value == input) candidate.next = next;
    }
  }

  std::mt19937 random_;
  Program program_;
  Shape whole_;
  std::vector<Value> values_, predicates_;
};

TEST_CASE("random programs give the same bits when fused", "[passes]") {
  for (const std::uint32_t seed : test::some_seeds(12, 40, 7)) {
    INFO("seed " << seed);
    check_fused(RandomProgram(seed).make(), seed);
  }
}

TEST_CASE("every elementwise op gives the same bits in a chain, whichever of its operands are scalars", "[passes]") {
  for (const OpRules* rules : all_ops().all) {
    if (!rules->elementwise || rules->view || rules->region || rules->name == "select") continue;
    for (unsigned scalars = 0; scalars < 8; ++scalars) {
      for (const char* dtype : {"f32", "f64", "i32", "u8"}) {
        std::string operands;
        std::size_t count = 0;
        const Op op(*rules, rules->make());
        const auto accepted = [&] {
          const Type type{*parse_dtype(dtype), {}, {}};
          return test::refusal_of(op, std::vector<Type>(count, type)) == "accepted";
        };
        while (count < 4 && !accepted()) ++count;
        if (count == 4 || scalars >= 1u << count) continue;
        std::string text;
        for (std::size_t i = 0; i < count; ++i) {
          const std::string name = "%x" + std::to_string(i);
          text += "batch " + name + ":" + dtype + ((scalars >> i & 1) != 0 ? "[]" : "[3000]") + "{a}\n";
          operands += (i == 0 ? " " : ", ") + name;
        }
        text += "batch %z:" + std::string(dtype) + "[3000]{a}\n";
        text += "%p = " + std::string(rules->name) + operands + "\n%q = cast[dtype=f64] %p\n";
        text += "%r = cast[dtype=f64] %z\n%y = add %q, %r\nreturn y = %y\nreturn p = %p\n";
        const auto program = test::program_of("mesh a=2\n" + text);
        INFO(text);
        const test::Values inputs = test::random_inputs(*program, 3);
        const test::Run best{.kernels = KernelChoice::best};
        require_same(test::run_program(fused(*program), inputs, best), test::run_program(program, inputs, best),
                     "fused");
      }
    }
  }
}

TEST_CASE("a chain takes constants and broadcasts inside and leaves what others read outside", "[passes]") {
  const auto program = test::program_of(R"(mesh a=2
batch %x:f32[2,3]{a}
params %bias:f32[3]{}
%v = pvary[axes={a}] %bias
%b = broadcast[shape=[2,3], dims=[1]] %v
%y = add %x, %b
%h = constant[dtype=f32, shape=[], value=0.5]
%c = pvary[axes={a}] %h
%z = mul %y, %c
%t = tanh %z
%s = reduce_sum[dims=[0]] %z
return t = %t
return s = %s
)");
  CHECK(to_text(fuse(simplify(*program))) == R"(mesh a=2
batch %x:f32[2,3]{a}
params %bias:f32[3]{}
%0:f32[3]{a} = pvary[axes={a}] %bias
%1:f32[2,3]{a}, %2:f32[2,3]{a} = fused %x, %0 (%3:f32[2,3]{a}, %4:f32[3]{a}) {
  %5:f32[2,3]{a} = broadcast[shape=[2,3], dims=[1]] %4
  %6:f32[2,3]{a} = add %3, %5
  %7:f32[]{} = constant[dtype=f32, shape=[], value=0.5]
  %8:f32[]{a} = pvary[axes={a}] %7
  %9:f32[2,3]{a} = mul %6, %8
  %10:f32[2,3]{a} = tanh %9
  yield %9, %10
}
%11:f32[3]{a} = reduce_sum[dims=[0]] %1
return t = %2
return s = %11
)");
  const std::string text = to_text(fuse(simplify(*program)));
  CHECK(to_text(*test::program_of(text)) == text);
}

TEST_CASE("a constant with a list of values is an operand of the chains that read it", "[passes]") {
  const std::string text = R"(
batch %x:f32[2,3]{a}
%c = constant[dtype=f32, shape=[3], values=[0.5,-1.0,2.0]]
%b = broadcast[shape=[2,3], dims=[1]] %c
%v = pvary[axes={a}] %b
%y = sub %x, %v
%d = constant[dtype=f32, shape=[2,3], values=[1.0,2.0,3.0,4.0,5.0,6.0]]
%e = exp %d
%f = pvary[axes={a}] %e
%z = mul %y, %f
return z = %z
return e = %e
)";
  check_fused(text);
  const auto after = fused(*test::program_of("mesh a=2" + text));
  INFO(to_text(*after));
  CHECK(count(*after, "constant") == 2);
  CHECK(count(*after, "broadcast") == 0);
  CHECK(count(*after, "fused") == 1);
}

TEST_CASE("an operand varies as its chain does, wherever that was said", "[passes]") {
  check_fused(R"(
batch %x:f32[3,4]{a}
params %bias:f32[4]{}
%b = broadcast[shape=[3,4], dims=[1]] %bias
%v = pvary[axes={a}] %b
%y = add %x, %v
%c = constant[dtype=f32, shape=[4], value=2.0]
%d = broadcast[shape=[3,4], dims=[1]] %c
%e = pvary[axes={a}] %d
%z = mul %y, %e
return z = %z
)");
}

TEST_CASE("what waits for a result of a chain is not in it", "[passes]") {
  const auto program = test::program_of(R"(
params %w:f32[6]{}
batch %g:f32[6]{}
%two = constant[dtype=f32, shape=[], value=2.0]
%h = div %g, %two
%q = mul %h, %h
%n = reduce_sum[dims=[0]] %q
%r = mul %h, %n
%u = sub %w, %r
update %w = %u
)");
  const Program after = fuse(simplify(*program));
  CHECK(after.equations.size() == 3);
  CHECK(count(after, "fused") == 2);
  check_fused(*program);
}

TEST_CASE("all moments of a parameter are updated in place by one equation", "[passes]") {
  for (const char* size : {"6", "1500", "5000"}) {
    std::string text = R"(
params %w:f32[N]{}
state %m:f32[N]{}
state %v:f32[N]{}
hyper %g:f32[N]{}
batch %good:bool[]{}
%b1 = constant[dtype=f32, shape=[], value=0.9]
%c1 = constant[dtype=f32, shape=[], value=0.1]
%m1 = mul %m, %b1
%m2 = mul %g, %c1
%m3 = add %m1, %m2
%v1 = mul %v, %b1
%v2 = mul %g, %g
%v3 = add %v1, %v2
%d1 = sqrt %v3
%d2 = add %d1, %c1
%d3 = div %m3, %d2
%w1 = sub %w, %d3
%wn = select %good, %w1, %w
%mn = select %good, %m3, %m
%vn = select %good, %v3, %v
update %w = %wn
update %m = %mn
update %v = %vn
)";
    for (std::size_t at; (at = text.find("[N]")) != std::string::npos;) {
      text.replace(at, 3, "[" + std::string(size) + "]");
    }
    const auto program = test::program_of(text);
    const auto after = fused(*program);
    CHECK(after->equations.size() == 1);
    const std::string plan = to_text(cpu::make_plan(after));
    INFO(plan);
    CHECK(plan.find("copy") == std::string::npos);
    CHECK(plan.find("stage 1") == std::string::npos);
    check_fused(*program);
  }
}

TEST_CASE("the arithmetic of scalars is one chain", "[passes]") {
  const auto program = test::program_of(R"(
state %step:i32[]{}
state %total:f64[]{}
batch %loss:f32[]{}
batch %count:f32[]{}
%one = constant[dtype=i32, shape=[], value=1]
%next = add %step, %one
%d = cast[dtype=f64] %loss
%t = add %total, %d
%zero = constant[dtype=f32, shape=[], value=0.0]
%any = gt %count, %zero
%sound = is_finite %loss
%no = constant[dtype=bool, shape=[], value=0]
%good = select %sound, %any, %no
%t2 = select %good, %t, %total
%s2 = select %good, %next, %step
%e = cast[dtype=f64] %next
%f = exp %e
update %step = %s2
update %total = %t2
return good = %good
return f = %f
)");
  CHECK(fuse(simplify(*program)).equations.size() == 1);
  check_fused(*program);
}

TEST_CASE("a choice of one for all, and repeats of elements of every size", "[passes]") {
  check_fused(R"(
batch %x:f32[6]{a}
batch %s:f32[]{a}
batch %p:bool[]{a}
%n = neg %x
%y = select %p, %s, %n
%z = select %p, %y, %s
%u = add %y, %z
return u = %u
)");
  check_fused(R"(
batch %d:f64[3]{a}
batch %e:f64[2,3]{a}
batch %m:bool[3]{a}
batch %t:f64[]{a}
batch %o:bool[]{a}
%f = broadcast[shape=[2,3], dims=[1]] %d
%g = mul %e, %f
%k = broadcast[shape=[2,3], dims=[1]] %m
%w = select %k, %g, %e
%r = broadcast[shape=[2,3], dims=[]] %t
%v = add %w, %r
%q = broadcast[shape=[2,3], dims=[]] %o
%z = select %q, %v, %w
return z = %z
)");
  check_fused(R"(
params %w:f32[5000]{}
hyper %h:f32[]{}
%b = broadcast[shape=[5000], dims=[]] %h
%v = mul %w, %b
%z = neg %v
update %w = %z
)");
}

TEST_CASE("chains in loops accumulate in their carries", "[passes]") {
  const std::string body = R"(
batch %x:f32[6,40]{a}
params %w:f32[40]{}
%zero = constant[dtype=f32, shape=[2,40], value=0.0]
%acc = pvary[axes={a}] %zero
%one = constant[dtype=f32, shape=[], value=0.0]
%n0 = pvary[axes={a}] %one
%v = pvary[axes={a}] %w
%r, %n = loop[iterations=3, consts=1, carries=2] %v, %acc, %n0, %x (%c:f32[40]{a}, %s:f32[2,40]{a}, %k:f32[]{a}, %y:f32[2,40]{a}) {
  %1 = broadcast[shape=[2,40], dims=[1]] %c
  %2 = mul %y, %1
  %3 = relu %2
  %4 = add %s, %3
  %5 = reduce_sum[dims=[0,1]] %3
  %6 = add %k, %5
  yield %4, %6
}
%g = psum[axes={a}] %n
return r = %r
return g = %g
)";
  check_fused(body);
  const std::string plan = to_text(cpu::make_plan(fused(*test::program_of("mesh a=1\n" + body, {{"a", 20}}))));
  INFO(plan);
  CHECK(plan.find("fused") != std::string::npos);
}

TEST_CASE("results that are operands, repeated or constant", "[passes]") {
  for (const std::int64_t devices : {1, 20}) {
    const auto program = test::program_of(R"(mesh a=1
state %p:f32[5]{a}
state %q:f32[5]{a}
batch %s:f32[]{a}
%1, %2, %3, %4 = fused %p, %q, %s (%a:f32[5]{a}, %b:f32[5]{a}, %c:f32[]{a}) {
  %d = add %a, %b
  %e = broadcast[shape=[5], dims=[]] %c
  yield %b, %a, %e, %d
}
update %p = %1
update %q = %2
return three = %3
return four = %4
)",
                                          {{"a", devices}});
    const test::Values inputs = test::random_inputs(*program, 3);
    const test::Values expected = test::interpreted(*program, inputs, 3);
    for (const KernelChoice kernels : {KernelChoice::best, KernelChoice::reference}) {
      require_same(test::run_program(program, inputs, {2, false, 3, false, kernels}), expected, "run");
    }
  }
}

}  // namespace
}  // namespace pmaptrain
