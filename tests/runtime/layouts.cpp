// Divided arrays and parts of divided buckets: written and read as wholes, on every backend and in several processes.
#include "tests/runtime/layouts.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/runtime/backends.h"
#include "core/setup/values.h"
#include "tests/catch.h"
#include "tests/runtime/placements.h"
#include "tests/runtime/programs.h"

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

}  // namespace
}  // namespace pmaptrain
