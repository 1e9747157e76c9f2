// Parts of sharded buckets: written and read as wholes, in one process and in several.
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "core/runtime/backends.h"
#include "core/setup/values.h"
#include "tests/catch.h"
#include "tests/runtime/placements.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {
namespace {

// A bucket of 100 and 70 elements in four shards of 64: the second array is in shards 2 and 3. Each step adds 1.
constexpr const char* text = R"(mesh replicas=2 shards=4
params %b:f32[64]{shards} of %v:[100], %w:[7,10] sharded {shards}
%one = constant[dtype=f32, shape=[], value=1.0]
%next = add %b, %one
update %b = %next
%whole = all_gather_invariant[axes={shards}, dim=0] %b
return whole = %whole
)";

std::vector<float> counted_from(float first, std::size_t count) {
  std::vector<float> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

std::vector<float> floats_in(const std::vector<std::byte>& bytes) {
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

Source source_of(bool private_copies) {
  Source source{{{"step", test::program_of(text), 1}}};
  source.private_copies = private_copies;
  source.blocks = 8;
  return source;
}

// Assertions of Catch2 are for one thread.
void demand(bool is_true, const char* what) {
  if (!is_true) throw std::runtime_error(what);
}

// Writes both parts, runs a step, and reads them from this process's first device.
void check(Module& module) {
  const std::vector<float> v = counted_from(0, 100), w = counted_from(1000, 70);
  const DeviceOfMember everywhere(every_device, every_member);
  module.fill(module.input("v"), 0,
              [&](std::span<std::byte> into) { std::memcpy(into.data(), v.data(), into.size()); });
  module.wait(module.write(module.input("w"), everywhere, std::as_bytes(std::span(w))));
  module.wait(module.submit(0, 0));
  demand(floats_in(train::bytes_of(module, module.input("v"), module.own_device())) == counted_from(1, 100),
         "v after a step");
  demand(floats_in(train::bytes_of(module, module.input("w"), module.own_device())) == counted_from(1001, 70),
         "w after a step");
  // From the middle of the first shard to the middle of the second.
  std::vector<float> some(40);
  module.wait(
      module.read(module.input("v"), module.own_device(), std::as_writable_bytes(std::span(some)), 50 * sizeof(float)));
  demand(some == counted_from(51, 40), "some of v");
  // An output has what the step began with, and zeros between the arrays.
  const std::vector<float> whole = floats_in(train::bytes_of(module, module.output(0, "whole"), module.own_device()));
  demand(std::vector<float>(whole.begin(), whole.begin() + 100) == v, "v in the bucket");
  demand(std::vector<float>(whole.begin() + 100, whole.begin() + 128) == std::vector<float>(28, 0.0F),
         "zeros in the bucket");
  demand(std::vector<float>(whole.begin() + 128, whole.begin() + 198) == w, "w in the bucket");
  module.clear(module.input("w"));
  demand(floats_in(train::bytes_of(module, module.input("w"), module.own_device())) == std::vector<float>(70, 0.0F),
         "w after clear");
  demand(floats_in(train::bytes_of(module, module.input("v"), module.own_device())) == counted_from(1, 100),
         "v after clear");
}

TEST_CASE("a part of a sharded bucket is written and read as a whole, on every backend", "[runtime]") {
  for (const BackendKind kind : {BackendKind::cpu, BackendKind::reference}) {
    for (const bool private_copies : {false, true}) {
      const std::unique_ptr<Module> module = make_backend(kind, {})->load(source_of(private_copies));
      CHECK_FALSE(module->is_divided(module->input("v")));
      CHECK_NOTHROW(check(*module));
    }
  }
}

TEST_CASE("processes that have different shards read a part together", "[runtime][placements]") {
  for (const int processes : {2, 3, 4, 8}) {
    INFO(processes << " processes");
    test::MemoryTransport transport(processes);
    test::on_each_process(transport, processes, [&](int process) {
      const Processes all{{process, processes}, &transport.end(process)};
      BackendOptions options;
      options.workers = 1;
      const std::unique_ptr<Module> module =
          std::move(*make_backend(BackendKind::cpu, options)->plan(source_of(false), all)).load();
      // Each of two processes has the devices of a replica, and so all shards.
      demand(module->is_divided(module->input("v")) == (processes > 2), "whether it is divided");
      check(*module);
    });
  }
}

}  // namespace
}  // namespace pmaptrain
