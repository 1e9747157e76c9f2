#include "tests/cuda/generated.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string_view>

#include "core/graph/text.h"
#include "core/ops/all.h"
#include "core/ops/list.h"
#include "tests/catch.h"
#include "tests/cuda/on_gpu.h"
#include "tests/emulated_gpu/host_kernels.h"
#include "tests/files.h"
#include "tests/gpu/gpus.h"
#include "tests/running.h"

namespace pmaptrain::test {
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

// The addresses that a launch of generated code takes.
std::vector<void*> addresses_of(const GpuLaunch& launch, const HostMemory& memory) {
  std::vector<void*> addresses;
  for (const GpuArgument& argument : launch.arguments) {
    REQUIRE(argument.kind != GpuArgument::Kind::value);
    addresses.push_back(reinterpret_cast<void*>(gpu::value_of(argument, memory)));
  }
  return addresses;
}

// In the folder for temporary files: what is in memory (/dev/shm) may not be executable.
std::shared_ptr<const std::filesystem::path> own_folder() {
  std::string path = (std::filesystem::temp_directory_path() / "pmaptrain-generated-XXXXXX").string();
  REQUIRE(::mkdtemp(path.data()) != nullptr);
  return {new std::filesystem::path(path), [](const std::filesystem::path* folder) {
            std::filesystem::remove_all(*folder);
            delete folder;
          }};
}

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

}  // namespace

void Generated::add(KernelCase c) {
  c.complete(static_cast<unsigned>(cases_.size()));
  cases_.push_back(std::move(c));
}

void Generated::check() {
  if (tests_use_cuda()) {
    for (const KernelCase& c : cases_) check_on_gpu(c, run_reference(c));
    return;
  }
  const std::vector<std::vector<Bytes>> results = run();
  for (std::size_t number = 0; number < cases_.size(); ++number) {
    const KernelCase& c = cases_[number];
    const std::string differs = difference(c.results, results[number], run_reference(c));
    INFO(sources_[number].source.text << "on " << c.devices << " devices: " << differs);
    CHECK(differs.empty());
  }
}

std::vector<std::vector<Bytes>> Generated::run() {
  std::vector<std::vector<Bytes>> results;
  if (tests_use_cuda()) {
    for (const KernelCase& c : cases_) results.push_back(run_on_gpu(c));
    return results;
  }
  const auto folder = own_folder();
  const RunKernel run_kernel = compile(*folder);
  for (std::size_t number = 0; number < cases_.size(); ++number) results.push_back(run(number, run_kernel));
  return results;
}

Generated::RunKernel Generated::compile(const std::filesystem::path& folder) {
  std::string text(ops::gpu_prelude()), table;
  std::map<std::string, Source> known;  // by what cases with equal kernels have in common
  int functions = 0;
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    const KernelCase& c = cases_[i];
    const auto [same, is_new] = known.try_emplace(ops::gpu_source(c.op, c.request(), "k").text);
    if (is_new) {
      const std::string& name = names_.emplace_back(fmt::format("k{}", i));
      same->second = {ops::gpu_source(c.op, c.request(), name), functions};
      text += same->second.source.text;
      for (std::size_t launch = 0; launch < same->second.source.launches.size(); ++launch, ++functions) {
        table +=
            fmt::format("  [](void* const* arguments) {{ call({}, arguments); }},\n", generated_name(name, launch));
      }
    }
    sources_.push_back(same->second);
  }
  std::string end(driver);
  end.insert(end.find("extern"), "void (*const kernels[])(void* const*) = {\n" + table + "};\n");
  write_text(folder / "kernels.cpp", text + end);
  const std::string library = (folder / "kernels.so").string();
  const std::string command =
      fmt::format("'{}' -std=c++20 -O0 -fno-math-errno -ffp-contract=off -shared -fPIC -I. '{}' -o '{}'",
                  PMAPTRAIN_COMPILER, (folder / "kernels.cpp").string(), library);
  test::check_may_start_a_process();
  REQUIRE(std::system(command.c_str()) == 0);
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  INFO((handle == nullptr ? ::dlerror() : ""));
  REQUIRE(handle != nullptr);
  return reinterpret_cast<RunKernel>(::dlsym(handle, "run_kernel"));
}

std::vector<Bytes> Generated::run(std::size_t number, RunKernel run) const {
  const KernelCase& c = cases_[number];
  std::vector<Bytes> first;
  for (int order = 0; order < 3; ++order) {
    std::vector<Bytes> results;
    std::vector<std::byte*> to;
    std::vector<const std::byte*> from;
    for (const Type& type : c.results) {
      results.emplace_back(bytes(type) * static_cast<std::size_t>(c.devices), std::byte{0xff});
    }
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
    int function = sources_[number].first_function;
    for (const GpuLaunch& launch : sources_[number].source.launches) {
      run(function++, launch.blocks[0], launch.threads, order, addresses_of(launch, {from, to, scratch.data()}).data());
    }
    if (first.empty()) first = results;
    const std::string differs = difference(c.results, results, first);
    INFO(sources_[number].source.text << "on " << c.devices << " devices, order " << order << ": " << differs);
    CHECK(differs.empty());
  }
  return first;
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

// An equation with a region; the program outlives the case.
KernelCase case_of(const Program& program, const Equation& equation) {
  KernelCase c{equation.op, types_of(program, equation.operands)};
  c.region = &equation.regions.front();
  c.types = program.types;
  c.results = types_of(program, equation.results);
  return c;
}

void check_bits_of_devices(Program given, const std::function<std::vector<Bytes>(unsigned device)>& values) {
  constexpr unsigned devices = 3;
  Generated kernels;
  const Program& program = kernels.keep(std::move(given));
  KernelCase all = case_of(program, program.equations.front());
  all.devices = devices;
  all.values.resize(all.operands.size());
  for (unsigned device = 0; device < devices; ++device) {
    KernelCase one = case_of(program, program.equations.front());
    one.values = values(device);
    for (std::size_t i = 0; i < all.values.size(); ++i) {
      all.values[i].insert(all.values[i].end(), one.values[i].begin(), one.values[i].end());
    }
    kernels.add(std::move(one));
  }
  kernels.add(std::move(all));
  const std::vector<std::vector<Bytes>> results = kernels.run();
  for (std::size_t r = 0; r < results[devices].size(); ++r) {
    Bytes joined;
    for (std::size_t device = 0; device < devices; ++device) {
      joined.insert(joined.end(), results[device][r].begin(), results[device][r].end());
    }
    CHECK((joined == results[devices][r]));
  }
}

namespace {

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

}  // namespace

// All that has neither barriers nor shared memory in one case, whose text is compiled once.
DEVICE_TEST_CASE("generated code of ops and chains has the reference's bits", "[cuda][kernels][elementwise][process]") {
  Generated kernels;
  add_elementwise_ops(kernels);
  add_shared_operands(kernels);
  add_chains(kernels);
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

}  // namespace pmaptrain::test
