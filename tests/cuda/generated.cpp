// The text of generated kernels, compiled by the host's compiler, against the references.
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <deque>
#include <filesystem>
#include <limits>
#include <memory>

#include "core/graph/program.h"
#include "core/graph/text.h"
#include "core/ops/all.h"
#include "core/ops/fused/gpu_source.h"
#include "core/ops/list.h"
#include "tests/catch.h"
#include "tests/cuda/kernel_case.h"
#include "tests/cuda/on_gpu.h"
#include "tests/emulated_gpu/host_kernels.h"
#include "tests/files.h"
#include "tests/gpu/gpus.h"
#include "tests/running.h"

using namespace pmaptrain;
using namespace pmaptrain::test;

namespace {

// Behind the kernels k0, k1, ...: a function that runs one on the host.
constexpr std::string_view driver = R"(
#include <utility>
template <class... P>
void call(void (*kernel)(P...), void* const* arguments) {
  [&]<std::size_t... i>(std::index_sequence<i...>) { kernel(static_cast<P>(arguments[i])...); }
  (std::index_sequence_for<P...>{});
}
extern "C" void run_kernel(int number, unsigned blocks, unsigned threads, int order, void* const* arguments) {
  simt::launch({.grid = {blocks}, .threads = threads, .order = static_cast<simt::Order>(order), .seed = 1},
               [&] { kernels[number](arguments); });
}
)";

using RunKernel = void (*)(int number, unsigned blocks, unsigned threads, int order, void* const* arguments);

// The addresses that a launch of generated code takes.
std::vector<void*> addresses_of(const GpuLaunch& launch, const HostMemory& memory) {
  std::vector<void*> addresses;
  for (const GpuArgument& argument : launch.arguments) {
    REQUIRE(argument.kind != GpuArgument::Kind::value);
    addresses.push_back(reinterpret_cast<void*>(gpu::value_of(argument, memory)));
  }
  return addresses;
}

// Kernels of many cases, which are compiled together: most of the time goes to the headers.
class Generated {
 public:
  void add(KernelCase c) {
    c.complete(static_cast<unsigned>(cases_.size()));
    cases_.push_back(std::move(c));
  }

  // What kernels refer to.
  const Program& keep(Program program) { return programs_.emplace_back(std::move(program)); }

  // CHECKs the bits of each in every order of threads; on CUDA, what its compiler makes of the same text.
  void check() {
    if (tests_use_cuda()) {
      for (const KernelCase& c : cases_) check_on_gpu(c, run_reference(c));
      return;
    }
    const auto folder = own_folder();
    const RunKernel run = compile(folder.get());
    int function = 0;
    for (std::size_t number = 0; number < cases_.size(); ++number) {
      check(number, function, run);
      function += static_cast<int>(sources_[number].launches.size());
    }
  }

 private:
  // In the folder for temporary files: what is in memory (/dev/shm) may not be executable.
  static std::shared_ptr<const std::filesystem::path> own_folder() {
    std::string path = (std::filesystem::temp_directory_path() / "pmaptrain-generated-XXXXXX").string();
    REQUIRE(::mkdtemp(path.data()) != nullptr);
    return {new std::filesystem::path(path), [](const std::filesystem::path* folder) {
              std::filesystem::remove_all(*folder);
              delete folder;
            }};
  }

  RunKernel compile(const std::filesystem::path* folder) {
    std::string text(ops::gpu_prelude()), table;
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      const KernelCase& c = cases_[i];
      sources_.push_back(ops::gpu_source(c.op, c.request(), names_.emplace_back(fmt::format("k{}", i))));
      text += sources_.back().text;
      for (std::size_t launch = 0; launch < sources_.back().launches.size(); ++launch) {
        table += fmt::format("  [](void* const* arguments) {{ call({}, arguments); }},\n",
                             generated_name(names_.back(), launch));
      }
    }
    std::string end(driver);
    end.insert(end.find("extern"), "void (*const kernels[])(void* const*) = {\n" + table + "};\n");
    write_text(*folder / "kernels.cpp", text + end);
    const std::string library = (*folder / "kernels.so").string();
    const std::string command =
        fmt::format("'{}' -std=c++20 -O0 -fno-math-errno -ffp-contract=off -shared -fPIC -I. '{}' -o '{}'",
                    PMAPTRAIN_COMPILER, (*folder / "kernels.cpp").string(), library);
    test::check_may_start_a_process();
    REQUIRE(std::system(command.c_str()) == 0);
    void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    INFO((handle == nullptr ? ::dlerror() : ""));
    REQUIRE(handle != nullptr);
    return reinterpret_cast<RunKernel>(::dlsym(handle, "run_kernel"));
  }

  void check(std::size_t number, int first_function, RunKernel run) {
    const KernelCase& c = cases_[number];
    const std::vector<Bytes> expected = run_reference(c);
    for (int order = 0; order < 3; ++order) {
      std::vector<Bytes> results;
      std::vector<std::byte*> to;
      std::vector<const std::byte*> from;
      for (const Bytes& result : expected) results.emplace_back(result.size(), std::byte{0xff});
      for (Bytes& result : results) to.push_back(result.data());
      // At last, operands begin beside a multiple of 16 bytes.
      std::deque<Bytes> moved;
      for (std::size_t i = 0; i < c.values.size(); ++i) {
        const std::size_t by = order == 2 ? size_of(c.operands[i].dtype) : 0;
        Bytes& copy = moved.emplace_back(by);
        copy.insert(copy.end(), c.values[i].begin(), c.values[i].end());
        from.push_back(copy.data() + by);
      }
      Bytes scratch(make_gpu_kernel(c.op, c.request()).scratch_bytes, std::byte{0xff});
      int function = first_function;
      for (const GpuLaunch& launch : sources_[number].launches) {
        run(function++, launch.blocks[0], launch.threads, order,
            addresses_of(launch, {from, to, scratch.data()}).data());
      }
      const std::string differs = difference(c.results, results, expected);
      INFO(sources_[number].text << "on " << c.devices << " devices, order " << order << ": " << differs);
      CHECK(differs.empty());
    }
  }

  std::deque<Program> programs_;
  std::vector<KernelCase> cases_;
  std::deque<std::string> names_;
  std::vector<ops::GpuSource> sources_;
};

// The operands that an elementwise op takes, of this element type; none where it takes no such elements.
std::vector<Type> operands_of(const Op& op, DType dtype, const Shape& shape) {
  for (std::size_t count = 1; count <= 3; ++count) {
    std::vector<Type> operands(count, Type{dtype, shape, {}});
    if (op.as<ops::Select>() != nullptr) operands[0].dtype = DType::boolean;
    try {
      op.infer({.mesh = Mesh(), .operands = operands});
      return operands;
    } catch (const TypeError&) {
      continue;
    }
  }
  return {};
}

// Every choice of stacked operands, but for none of them.
void add_stacked(Generated& kernels, const KernelCase& c) {
  const auto choices = 1U << c.operands.size();
  for (unsigned choice = 0; choice + 1 < choices; ++choice) {
    KernelCase some = c;
    some.devices = 3;
    for (std::size_t i = 0; i < c.operands.size(); ++i) some.stacked.push_back((choice >> i & 1U) == 0);
    kernels.add(std::move(some));
  }
}

void add_elementwise_ops(Generated& kernels) {
  for (const OpRules* rules : all_ops().all) {
    if (!rules->elementwise || rules->region || rules->name == ops::Cast::name) continue;
    const Op op(*rules, rules->make());
    for (const DType dtype : all_dtypes) {
      const std::vector<Type> operands = operands_of(op, dtype, {3, 50});
      if (operands.empty()) continue;
      kernels.add({op, operands});
      if (dtype != DType::f32 && dtype != DType::bf16) continue;
      // One element for all: each operand alone, and all but it.
      for (std::size_t i = 0; operands.size() > 1 && i < operands.size(); ++i) {
        std::vector<Type> one = operands, others = operands;
        one[i].shape = {};
        for (std::size_t j = 0; j < others.size(); ++j) others[j].shape = j == i ? others[j].shape : Shape{};
        kernels.add({op, one});
        kernels.add({op, others});
      }
    }
  }
  for (const DType from : all_dtypes) {
    for (const DType to : all_dtypes) kernels.add({ops::Cast{to}, {{from, {200}, {}}}});
  }
}

// Each device has its own operands but for those that all share.
void add_shared_operands(Generated& kernels) {
  for (const Shape& shape : {Shape{7}, Shape{1}, Shape{}}) {
    add_stacked(kernels, {ops::Sub{}, {{DType::f32, shape, {}}, {DType::f32, shape, {}}}});
    add_stacked(kernels, {ops::Sub{}, {{DType::bf16, shape, {}}, {DType::bf16, {}, {}}}});
    add_stacked(kernels, {ops::Clamp{}, {{DType::i32, {}, {}}, {DType::i32, shape, {}}, {DType::i32, {}, {}}}});
  }
  kernels.add({ops::Constant{DType::bf16, {3}, 0, {1, -2, 0.5}}, {}, 3});
  kernels.add({ops::Constant{DType::i64, {2, 2}, 0, {1, -2, 3, 1LL << 40}}, {}, 2});
  kernels.add({ops::Add{}, {{DType::f32, {20000}, {}}, {DType::f32, {20000}, {}}}});
  // So large that threads have packs of elements: of equal types, of two, of one device and of three, with a rest.
  kernels.add({ops::Add{}, {{DType::f32, {70001}, {}}, {DType::f32, {70001}, {}}}});
  kernels.add({ops::Cast{DType::f32}, {{DType::bf16, {140003}, {}}}});
  kernels.add({ops::Cast{DType::u8}, {{DType::f64, {140003}, {}}}});
  add_stacked(kernels, {ops::Mul{}, {{DType::bf16, {50001}, {}}, {DType::bf16, {50001}, {}}}});
}

// An equation with a region; the program outlives the case.
KernelCase case_of(const Program& program, const Equation& equation) {
  KernelCase c{equation.op, types_of(program, equation.operands)};
  c.region = &equation.regions.front();
  c.types = program.types;
  c.results = types_of(program, equation.results);
  return c;
}

void add_chains(Generated& kernels) {
  const Program& program = kernels.keep(parse_program(R"(batch %x:f32[5,2,3]{}
batch %f:f32[5,6]{}
batch %s:f32[]{}
batch %v:f32[3]{}
batch %h:bf16[5,2,3]{}
batch %r:bf16[5]{}
batch %one:f32[1]{}
%a, %b = fused %x, %f, %s (%p:f32[5,2,3]{}, %q:f32[5,6]{}, %r:f32[]{}) {
  %t = reshape[shape=[5,6]] %p
  %u = mul %t, %q
  %e = exp %r
  %w = broadcast[shape=[5,6], dims=[]] %e
  %y = add %u, %w
  %z = reshape[shape=[5,3,2]] %y
  yield %y, %z
}
%c = fused %x, %v (%p:f32[5,2,3]{}, %q:f32[3]{}) {
  %t = broadcast[shape=[5,2,3], dims=[2]] %q
  %u = mul %p, %t
  yield %u
}
%d, %e = fused %h, %r, %s (%p:bf16[5,2,3]{}, %q:bf16[5]{}, %r:f32[]{}) {
  %t = broadcast[shape=[5,2,3], dims=[0]] %q
  %u = mul %p, %t
  %k = constant[dtype=bf16, shape=[], value=0.1]
  %l = add %u, %k
  %w = cast[dtype=f32] %l
  %i = is_finite %w
  %y = select %i, %w, %r
  yield %y, %l
}
%g = fused %v, %s (%p:f32[3]{}, %q:f32[]{}) {
  %t = broadcast[shape=[4,3,2], dims=[1]] %p
  %k = constant[dtype=f32, shape=[4,3,2], value=-3]
  %u = max %t, %k
  %y = rsqrt %u
  %z = sub %y, %q
  yield %z
}
%j = fused %one, %s (%p:f32[1]{}, %q:f32[]{}) {
  %t = reshape[shape=[]] %p
  %y = pow %t, %q
  yield %y
}
return a = %a
return b = %b
return c = %c
return d = %d
return e = %e
return g = %g
return j = %j
)",
                                                      "chains.pmt", all_ops(), {}));
  for (const Equation& equation : program.equations) {
    const KernelCase c = case_of(program, equation);
    kernels.add(c);
    add_stacked(kernels, c);
  }
}

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
  // than one block of them, with and without a rest.
  for (const int length : {2, 10, 16, 40, 63, 64, 100, 1000, 16384 + 130}) {
    for (const std::string dtype : {"f32", "bf16", "f64"}) {
      if (length <= 1000 || dtype == "f32") kernels.add(softmax_case(kernels, length, dtype));
    }
  }
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

// All that has neither barriers nor shared memory in one case, whose text is compiled once.
DEVICE_TEST_CASE("generated code of ops and chains has the reference's bits", "[cuda][kernels][elementwise][process]") {
  Generated kernels;
  add_elementwise_ops(kernels);
  add_shared_operands(kernels);
  add_chains(kernels);
  kernels.check();
}

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

TEST_CASE("what is generated is one kernel whose shapes are constants", "[cuda]") {
  KernelCase c{ops::Mul{}, {{DType::bf16, {4, 3}, {}}, {DType::bf16, {}, {}}}, 2, {true, true}};
  c.complete(1);
  const ops::GpuSource source = ops::gpu_source(c.op, c.request(), "scaled");
  CHECK(source.text == R"(extern "C" __global__ void scaled(bf16* r0, const bf16* a0, const bf16* a1) {
  for (auto e = first_element<std::uint32_t>(); e < 24u; e += all_threads<std::uint32_t>()) {
    const auto d = e / 12u, i = e % 12u;
    const bf16 v0 = a0[e];
    const bf16 v1 = a1[d];
    const bf16 v2 = apply<MulOf>(v0, v1);
    r0[e] = v2;
  }
}
)");
  CHECK(source.launches[0].blocks[0] == 1);
  CHECK(source.launches[0].threads == 256);
  CHECK(source.launches[0].arguments.size() == 3);
}

TEST_CASE("equations of elementwise ops are left to generated code, and those of no elements to nobody", "[cuda]") {
  KernelCase c{ops::Tanh{}, {{DType::f32, {3}, {}}}};
  c.complete(1);
  CHECK(make_gpu_kernel(c.op, c.request()).find<GpuGenerated>() != nullptr);
  KernelCase none{ops::Tanh{}, {{DType::f32, {0, 3}, {}}}};
  none.complete(1);
  CHECK(make_gpu_kernel(none.op, none.request()).commands.empty());
}
