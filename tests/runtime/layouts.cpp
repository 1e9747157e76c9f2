// Divided arrays and parts of divided buckets: written and read as wholes, on every backend and in several processes.
#include "tests/runtime/layouts.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/philox.h"
#include "core/graph/bucket.h"
#include "core/graph/builder.h"
#include "core/graph/check.h"
#include "core/graph/stacked_layout.h"
#include "core/ops/all.h"
#include "core/runtime/backends.h"
#include "core/setup/values.h"
#include "tests/catch.h"
#include "tests/mesh/random_layouts.h"
#include "tests/runtime/placements.h"
#include "tests/runtime/programs.h"
#include "tests/slice.h"

namespace pmaptrain {
namespace {

// Columns of a matrix and rows of a table, both padded; a bucket with rows of a matrix, a whole array and columns of
// another, in shards along another axis. Each step adds 1.
constexpr const char* text = R"(mesh shards=2 model=3
params %columns:f32[7,2]{model} as [7,5{model}]
params %table:f32[2,4]{shards, model} as [11{model, shards},4]
params %b:f32[192]{shards, model} as [384{shards}] of %rows:[4{model},30], %w:[70], %square:[9,20{model}]
%one = constant[dtype=f32, shape=[], value=1.0]
%next_columns = add %columns, %one
%next_table = add %table, %one
%next_b = add %b, %one
update %columns = %next_columns
update %table = %next_table
update %b = %next_b
)";

const std::vector<std::string> names{"columns", "table", "rows", "w", "square"};

std::vector<float> counted_from(float first, std::size_t count) {
  std::vector<float> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

std::vector<float> read(Module& module, std::int64_t member, const std::string& name, std::size_t begin,
                        std::size_t count) {
  std::vector<float> numbers(count);
  module.wait(module.read(module.input(name), {module.own_device(), member}, std::as_writable_bytes(std::span(numbers)),
                          begin * sizeof(float)));
  return numbers;
}

// Assertions of Catch2 are for one thread.
void demand(bool is_true, const std::string& what) {
  if (!is_true) throw std::runtime_error(what);
}

// Writes all arrays of a member, runs a step and reads them, whole and in ranges, from this process's first device.
void check(Module& module, std::int64_t member) {
  const DeviceOfMember everywhere(every_device, member);
  const float of_member = 20000.0F * static_cast<float>(member);
  const auto size_of = [&](const std::string& name) {
    return static_cast<std::size_t>(numel(module.type(module.input(name))));
  };
  demand(size_of("columns") == 35 && size_of("table") == 44 && size_of("rows") == 120 && size_of("square") == 180,
         "a name means the whole array");
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::vector<float> numbers = counted_from(of_member + 1000.0F * static_cast<float>(i), size_of(names[i]));
    if (i % 2 == 0) {
      module.wait(module.write(module.input(names[i]), everywhere, std::as_bytes(std::span(numbers))));
    } else {
      module.fill(module.input(names[i]), member,
                  [&](std::span<std::byte> into) { std::memcpy(into.data(), numbers.data(), into.size()); });
    }
  }
  module.wait(module.submit(0, 0, 1, {&member, 1}));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const float first = of_member + 1000.0F * static_cast<float>(i) + 1;
    const std::size_t size = size_of(names[i]);
    demand(read(module, member, names[i], 0, size) == counted_from(first, size), names[i]);
    for (std::size_t begin = 0; begin < size; begin += 7) {
      const std::size_t count = std::min(size - begin, 1 + begin % 23);
      demand(read(module, member, names[i], begin, count) == counted_from(first + static_cast<float>(begin), count),
             "a range of " + names[i]);
    }
    // Some elements in the middle are written anew, and no others.
    const std::vector<float> some = counted_from(-50, 13);
    module.wait(module.write(module.input(names[i]), everywhere, std::as_bytes(std::span(some)), 9 * sizeof(float)));
    demand(read(module, member, names[i], 9, 13) == some &&
               read(module, member, names[i], 8, 1) == counted_from(first + 8, 1) &&
               read(module, member, names[i], 22, 1) == counted_from(first + 22, 1),
           "a range of " + names[i] + " that was written");
  }
  if (!module.member_share().has(member)) return;
  // The local array of a device: two columns. The third position has one column and padding, which a step keeps.
  const std::int64_t device = module.own_device();
  const Handle local = module.stored(module.input("columns"));
  demand(module.slice_bytes(local) == 14 * sizeof(float), "the size of a local array");
  std::vector<float> own(14);
  module.wait(module.read_here(local, {device, member}, std::as_writable_bytes(std::span(own))));
  const std::int64_t position = device % 3;
  demand(own[12] == of_member + 1.0F + static_cast<float>(6 * 5 + 2 * position), "an element of a local array");
  demand(own[13] == (position == 2 ? 1.0F : of_member + 2.0F + static_cast<float>(6 * 5 + 2 * position)), "padding");
}

}  // namespace

Source test::divided_arrays(bool private_copies, std::int64_t members) {
  Source source{{{"step", test::program_of(text), 1}}};
  source.private_copies = private_copies;
  source.members = members;
  source.blocks = 6;
  return source;
}

void test::check_divided_arrays(Module& module) {
  for (const std::string& name : names) module.clear(module.input(name));
  for (std::int64_t m = 0; m < module.source().members; ++m) check(module, m);
  module.clear(module.input("w"));
  demand(read(module, 0, "w", 0, 70) == std::vector<float>(70, 0.0F), "w after clear");
  demand(read(module, 0, "rows", 30, 90) == counted_from(2031, 90), "rows after w was cleared");
}

namespace {

using test::check_divided_arrays;
using test::divided_arrays;

TEST_CASE("a divided array is written and read as a whole", "[runtime][layouts]") {
  for (const bool private_copies : {false, true}) {
    for (const BackendKind kind : {BackendKind::cpu, BackendKind::reference}) {
      const std::unique_ptr<Module> module = make_backend(kind, {})->load(divided_arrays(private_copies));
      CHECK_FALSE(module->is_divided(module->input("columns")));
      CHECK_NOTHROW(check_divided_arrays(*module));
    }
    const std::unique_ptr<Module> members = make_backend(BackendKind::cpu, {})->load(divided_arrays(private_copies, 2));
    CHECK_NOTHROW(check_divided_arrays(*members));
  }
}

TEST_CASE("processes that have different parts read an array together", "[runtime][placements][layouts]") {
  for (const auto& [processes, members] :
       {std::pair(2, 1), std::pair(3, 1), std::pair(6, 1), std::pair(2, 2), std::pair(6, 2)}) {
    INFO(processes << " processes, " << members << " members");
    test::MemoryTransport transport(processes);
    test::on_each_process(transport, processes, [&, processes = processes, members = members](int process) {
      const Processes all{{process, processes}, &transport.end(process)};
      BackendOptions options;
      options.workers = 1;
      const std::unique_ptr<Module> module =
          std::move(*make_backend(BackendKind::cpu, options)->plan(divided_arrays(false, members), all)).load();
      // Each of two processes has all positions along `model`, and one shard.
      if (members == 1) {
        demand(module->is_divided(module->input("columns")) == (processes > 2), "whether the columns are divided");
        demand(module->is_divided(module->input("rows")), "whether the rows are");
      }
      check_divided_arrays(*module);
    });
  }
}

TEST_CASE("a layout that devices cannot have is refused", "[runtime][layouts]") {
  const auto error_of = [](const std::string& line) -> std::string {
    try {
      test::program_of("mesh data=2 model=3\n" + line + "\n");
    } catch (const Error& error) {
      const Diagnostic& diagnostic = error.diagnostics().front();
      return diagnostic.message + " | " + diagnostic.help;
    }
    return "";
  };
  CHECK(error_of("params %a:f32[7,2]{model} as [7,5{model}]").empty());
  CHECK(error_of("params %a:f32[7,5]{model} as [7,5{model}]") ==
        "'a' cannot be divided so | a device has [7,2] of [7,5{model}], and it is f32[7,5]{model}");
  CHECK(error_of("params %a:f32[7,2]{} as [7,5{model}]") ==
        "'a' cannot be divided so | its parts vary over {model}, and it is f32[7,2]{}");
  CHECK(error_of("params %a:f32[4,2]{model} as [8{model},4{model}]") ==
        "'a' cannot be divided so | the axis 'model' divides it twice");
  CHECK(error_of("params %a:f32[4,2]{model} as [8{modle},4]") ==
        "axis 'modle', which the mesh does not have | the mesh has {data, model}; did you mean model?");
  CHECK(error_of("params %b:f32[64]{data} as [127{data}] of %v:[128]") ==
        "'b' is no bucket of its parts | its parts need one dimension of a multiple of 64 elements, at least 128 in "
        "the 2 "
        "shards together, and it has [64]");
  CHECK(error_of("params %b:f32[64]{data} as [128{data}] of %v:[8{data}]") ==
        "'b' is no bucket of its parts | 'v': the bucket is divided along {data} already");
  CHECK(error_of("params %b:f32[64]{data} as [128{data}] of %v:[8{model}]") ==
        "'b' is no bucket of its parts | 'v': it varies over {model}, and the bucket is f32[64]{data}");
}

// ---- random layouts

const Mesh three_axes({{"shards", 2}, {"model", 3}, {"data", 2}});
constexpr int shards = 0, model = 1, data = 2;

std::shared_ptr<const Program> random_program(std::uint32_t seed) {
  auto program = std::make_shared<Program>();
  program->mesh = three_axes;
  Builder b(*program, all_ops());
  std::vector<Value> inputs;
  for (const std::uint32_t i : {0U, 1U}) {
    inputs.push_back(b.input(i == 0 ? Group::params : Group::state, "array_" + std::to_string(i), DType::f32,
                             test::random_layout({shards, model, data}, 5 * seed + i)));
  }
  const std::vector<std::vector<int>> along{{}, {shards}, {data, shards}};
  const std::vector<int>& dividing = along[seed % along.size()];
  std::vector<int> others;
  for (const int axis : {shards, model, data}) {
    if (std::count(dividing.begin(), dividing.end(), axis) == 0) others.push_back(axis);
  }
  std::vector<Part> parts;
  for (const std::uint32_t i : {2U, 3U, 4U}) {
    parts.push_back({"part_" + std::to_string(i), test::random_layout(others, 5 * seed + i)});
  }
  Layout layout{{offsets_of(parts, three_axes).back()}};
  if (!dividing.empty()) layout.divided = {dividing};
  const std::int64_t unit = bucket_unit * three_axes.devices();
  layout.logical[0] = (layout.logical[0] + unit - 1) / unit * unit;
  inputs.push_back(b.bucket(Group::params, "bucket", DType::f32, parts, layout));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    program->inputs[i].next = b.emit(b.ops().add(), {inputs[i], b.constant(DType::f32, 1.0)});
  }
  check(*program, "writing a test");
  return program;
}

// Where an element of the local array of an input is: in which variable, by name, and at which element of that. None:
// it is padding, or between parts.
std::optional<std::pair<std::string, std::size_t>> element_of(const Input& input, std::int64_t device,
                                                              std::int64_t local) {
  const std::int64_t at = test::logical_of(input.layout, three_axes, device, local);
  if (at < 0) return std::nullopt;
  if (input.parts.empty()) return std::pair(input.name, static_cast<std::size_t>(at));
  std::int64_t begin = 0;
  for (const Part& part : input.parts) {
    const std::int64_t size = numel(local_shape(part.layout, three_axes));
    if (begin <= at && at < begin + size) {
      const std::int64_t element = test::logical_of(part.layout, three_axes, device, at - begin);
      if (element < 0) return std::nullopt;
      return std::pair(part.name, static_cast<std::size_t>(element));
    }
    begin += (size + 63) / 64 * 64;
  }
  return std::nullopt;
}

using Arrays = std::map<std::string, std::vector<float>>;  // by variable

std::pair<std::size_t, std::size_t> random_range(std::uint32_t seed, std::uint32_t number, std::size_t size) {
  const auto words = philox4x32(stream_key(seed, "range"), {number, 0, 0, 0});
  const std::size_t begin = words[0] % size;
  return {begin, 1 + words[1] % (size - begin)};
}

// All elements of all members are different numbers.
Arrays write_random(Module& module, std::int64_t member, std::uint32_t seed) {
  Arrays arrays;
  float next = 1 + 100000.0F * static_cast<float>(member);
  for (const Variable& variable : module.variables(0)) {
    const std::string name(variable.name);
    const Handle input = module.input(name);
    std::vector<float>& all = arrays[name];
    all.resize(static_cast<std::size_t>(numel(variable.layout.logical)));
    std::iota(all.begin(), all.end(), next);
    next += static_cast<float>(all.size());
    module.wait(module.write(input, {every_device, member}, std::as_bytes(std::span(all))));
    const auto [begin, count] = random_range(seed, 0, all.size());
    const std::span<float> some = std::span(all).subspan(begin, count);
    std::iota(some.begin(), some.end(), next);
    next += static_cast<float>(count);
    module.wait(module.write(input, {every_device, member}, std::as_bytes(some), begin * sizeof(float)));
  }
  return arrays;
}

void check_reads(Module& module, std::int64_t member, const Arrays& arrays, std::uint32_t seed) {
  for (const auto& [name, all] : arrays) {
    for (std::uint32_t number = 0; number < 4; ++number) {
      const auto [begin, count] =
          number == 0 ? std::pair(std::size_t{0}, all.size()) : random_range(seed, number, all.size());
      std::vector<float> found(count);
      module.wait(module.read(module.input(name), {module.own_device(), member},
                              std::as_writable_bytes(std::span(found)), begin * sizeof(float)));
      demand(std::equal(found.begin(), found.end(), all.begin() + static_cast<std::ptrdiff_t>(begin)), name);
    }
  }
}

void check_local_arrays(Module& module, std::int64_t member, const Arrays& arrays) {
  const IndexRange own = module.share(0).devices();
  for (const Input& input : module.program(0).inputs) {
    const Handle local = module.stored(module.input(input.name));
    for (std::int64_t device = own.first; device < own.first + own.count; ++device) {
      std::vector<float> found(static_cast<std::size_t>(numel(module.type(local))));
      module.wait(module.read_here(local, {device, member}, std::as_writable_bytes(std::span(found))));
      for (std::size_t i = 0; i < found.size(); ++i) {
        const auto element = element_of(input, device, static_cast<std::int64_t>(i));
        demand(found[i] == (element ? arrays.at(element->first)[element->second] : 0.0F),
               input.name + " of device " + std::to_string(device) + ", element " + std::to_string(i));
      }
    }
  }
}

}  // namespace

Source test::random_arrays(std::uint32_t seed, bool private_copies, std::int64_t members) {
  Source source{{{"step", random_program(seed), 1}}};
  source.private_copies = private_copies;
  source.members = members;
  source.blocks = three_axes.devices();
  return source;
}

void test::check_random_arrays(Module& module, std::uint32_t seed) {
  for (const Input& input : module.program(0).inputs) module.clear(module.stored(module.input(input.name)));
  std::vector<Arrays> of_members;
  for (std::int64_t m = 0; m < module.source().members; ++m) of_members.push_back(write_random(module, m, seed));
  for (std::int64_t m = 0; m < module.source().members; ++m) {
    const Arrays& arrays = of_members[static_cast<std::size_t>(m)];
    check_reads(module, m, arrays, seed);
    if (module.member_share().has(m)) check_local_arrays(module, m, arrays);
  }
}

namespace {

TEST_CASE("each element of arrays with random layouts is where a plain computation finds it", "[runtime][layouts]") {
  test::Slice slice(6);
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    if (!slice.takes(seed < 3)) continue;  // a bucket that is whole, and one in shards along one axis and along two
    INFO("seed " << seed);
    for (const auto& [kind, private_copies, members] :
         {std::tuple(BackendKind::cpu, false, 1), std::tuple(BackendKind::cpu, true, 2),
          std::tuple(BackendKind::reference, seed % 2 == 0, 2)}) {
      const std::unique_ptr<Module> module =
          make_backend(kind, {})->load(test::random_arrays(seed, private_copies, members));
      REQUIRE_NOTHROW(test::check_random_arrays(*module, seed));
    }
  }
}

TEST_CASE("processes find each element of arrays with random layouts", "[runtime][placements][layouts]") {
  test::Slice slice(6);
  for (std::uint32_t seed = 0; seed < 24; ++seed) {
    if (!slice.takes(seed < 3)) continue;
    for (const auto& [processes, members] : {std::pair(2, 1), std::pair(3, 2), std::pair(4, 2), std::pair(12, 1)}) {
      INFO("seed " << seed << ", " << processes << " processes, " << members << " members");
      test::MemoryTransport transport(processes);
      REQUIRE_NOTHROW(
          test::on_each_process(transport, processes, [&, processes = processes, members = members](int process) {
            BackendOptions options;
            options.workers = 1;
            const Processes all{{process, processes}, &transport.end(process)};
            const std::unique_ptr<Module> module =
                std::move(*make_backend(BackendKind::cpu, options)
                               ->plan(test::random_arrays(seed, seed % 2 == 1, members), all))
                    .load();
            test::check_random_arrays(*module, seed);
          }));
    }
  }
}

// The batch of all devices, and the outputs of all: an array with a dimension for each axis that it varies over.
void check_stacked(Module& module) {
  const Program& program = module.program(0);
  Arrays batch;
  for (const Input& input : program.inputs) {
    const Type& type = program.type(input.value);
    const Layout layout = stacked_layout(type, program.mesh);
    const std::vector<float> all =
        counted_from(1000.0F * static_cast<float>(batch.size()), static_cast<std::size_t>(numel(layout.logical)));
    batch[input.name] = all;
    const std::span<std::byte> own = module.batch(0, 0, input.name);
    const auto first = static_cast<std::size_t>(module.share(0).instances(type.varying).first);
    std::memcpy(own.data(), std::as_bytes(std::span(all)).subspan(first * bytes(type), own.size()).data(), own.size());
  }
  module.wait(module.submit(0, 0));
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    std::vector<float> expected = batch.at(program.inputs[i].name);
    for (float& number : expected) number *= 2;
    std::vector<float> found(expected.size());
    module.read_every_instance(module.output(0, i), 0, std::as_writable_bytes(std::span(found)));
    demand(found == expected, program.outputs[i].name);
  }
}

TEST_CASE("a batch and an output are the arrays of all devices, one behind the other",
          "[runtime][placements][layouts]") {
  CHECK(stacked_layout({DType::f32, {4, 5}, {}}, three_axes) == Layout{{4, 5}});
  CHECK(stacked_layout({DType::f32, {4, 5}, AxisSet::of(model) | AxisSet::of(data)}, three_axes) ==
        Layout{{3, 2, 4, 5}, {{model}, {data}}});
  const char* const step = R"(mesh shards=2 model=3 data=2
batch %a:f32[4,3]{}
batch %b:f32[4,3]{shards}
batch %c:f32[]{model}
batch %d:f32[4,3]{data}
batch %e:f32[5]{shards, data}
batch %f:f32[4,3]{shards, model, data}
%ya = add %a, %a
%yb = add %b, %b
%yc = add %c, %c
%yd = add %d, %d
%ye = add %e, %e
%yf = add %f, %f
return a = %ya
return b = %yb
return c = %yc
return d = %yd
return e = %ye
return f = %yf
)";
  Source source{{{"step", test::program_of(step), 1}}};
  source.blocks = three_axes.devices();
  for (const bool private_copies : {false, true}) {
    source.private_copies = private_copies;
    for (const BackendKind kind : {BackendKind::cpu, BackendKind::reference}) {
      CHECK_NOTHROW(check_stacked(*make_backend(kind, {})->load(source)));
    }
    for (const int processes : {2, 3, 4, 12}) {
      INFO(processes << " processes, private copies " << private_copies);
      test::MemoryTransport transport(processes);
      CHECK_NOTHROW(test::on_each_process(transport, processes, [&](int process) {
        BackendOptions options;
        options.workers = 1;
        const Processes all{{process, processes}, &transport.end(process)};
        check_stacked(*std::move(*make_backend(BackendKind::cpu, options)->plan(source, all)).load());
      }));
    }
  }
}

}  // namespace
}  // namespace pmaptrain
