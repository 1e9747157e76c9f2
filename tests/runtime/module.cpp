// Modules: entries over one set of values, batches in slots, and what a backend says that it needs.
#include "core/runtime/cpu/module.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <regex>
#include <sstream>

#include "core/base/error.h"
#include "core/base/machine.h"
#include "core/runtime/backends.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/runtime/programs.h"

using namespace pmaptrain;

namespace {

// %w grows by the sum of the batch; the other entry doubles it and says what it was.
const std::string grow = R"(mesh a=2
params %w:f32[]{}
batch %x:f32[]{a}
%sum = psum[axes={a}] %x
%next = add %w, %sum
return sum = %sum
update %w = %next
)";
const std::string twice = R"(mesh a=2
params %w:f32[]{}
batch %y:f32[]{a}
%next = add %w, %w
%far = pvary[axes={a}] %w
%shifted = add %far, %y
return before = %w
return shifted = %shifted
update %w = %next
)";

Source two_entries(int batches = 1, bool private_copies = false) {
  return {{{"grow", test::program_of(grow), batches}, {"twice", test::program_of(twice), batches}}, private_copies};
}

std::span<const std::byte> bytes_of(const float& value) { return std::as_bytes(std::span(&value, 1)); }

float read(Module& module, Handle value, std::int64_t device = 0) {
  float found = 0;
  module.wait(module.read(value, device, std::as_writable_bytes(std::span(&found, 1))));
  return found;
}

void set_batch(Module& module, std::size_t entry, int slot, const std::string& name, std::vector<float> values) {
  const std::span<std::byte> to = module.batch(entry, slot, name);
  const std::span<const std::byte> from = std::as_bytes(std::span(values));
  REQUIRE(to.size() == from.size());
  std::copy(from.begin(), from.end(), to.begin());
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.diagnostics().front().message;
  } catch (const std::exception& error) {
    return error.what();
  }
  return "none";
}

// Each backend, with two workers where it has several.
std::unique_ptr<Backend> any_backend() {
  const BackendKind kind = GENERATE(from_range(std::begin(host_backends), std::end(host_backends)));
  UNSCOPED_INFO(to_string(kind));
  return make_backend(kind, {.workers = 2});
}

// The third run of each kernel fails.
class Failing final : public CpuKernel {
 public:
  void run(const CpuArguments&) override {
    if (++runs_ >= 3) throw std::runtime_error("a kernel failed");
  }
  std::string implementation() const override { return "failing"; }

 private:
  int runs_ = 0;
};

}  // namespace

TEST_CASE("entries share the inputs that have equal names, whichever ran last", "[runtime]") {
  const std::unique_ptr<Backend> backend = any_backend();
  for (const int batches : {1, 2}) {
    for (const bool private_copies : {false, true}) {
      const std::unique_ptr<Module> module = backend->load(two_entries(batches, private_copies));
      const Handle w = module->input("w");
      CHECK(w.id == module->input("w").id);
      const float one = 1;
      module->write(w, every_device, bytes_of(one));
      set_batch(*module, 0, 0, "x", {2, 3});
      set_batch(*module, 1, 0, "y", {10, 20});
      module->submit(0, 0);
      CHECK(read(*module, w) == 6);
      module->submit(1, 0);
      CHECK(read(*module, module->output(1, "before")) == 6);
      CHECK(read(*module, module->output(1, "shifted"), 1) == 26);
      CHECK(read(*module, w) == 12);
      module->submit(0, 0, 2);
      module->submit(1, 0);
      CHECK(read(*module, module->output(0, "sum")) == 5);
      CHECK(read(*module, w) == 44);
    }
  }
}

TEST_CASE("a value may be written in parts, on all devices and for all members", "[runtime]") {
  const auto program = test::program_of("mesh a=2\ndata %d:f32[3]{}\n%e = add %d, %d\nreturn e = %e\n");
  const std::unique_ptr<Module> module = any_backend()->load({{{"test", program, 1}}, false, 2});
  const float first[] = {1, 2}, last = 3;
  const DeviceOfMember everywhere(every_device, every_member);
  module->write(module->input("d"), everywhere, std::as_bytes(std::span(first)), 0);
  module->write(module->input("d"), everywhere, bytes_of(last), 8);
  module->submit(0, 0);
  for (const std::int64_t member : {0, 1}) {
    std::vector<float> found(3);
    module->wait(module->read(module->output(0, "e"), {1, member}, std::as_writable_bytes(std::span(found))));
    CHECK(found == std::vector<float>{2, 4, 6});
  }
}

TEST_CASE("a function writes a member's input for all devices; clear() sets it to zero for all members", "[runtime]") {
  const auto program =
      test::program_of("mesh a=2\nstate %s:f32[3]{}\n%t = add %s, %s\nreturn t = %t\nupdate %s = %t\n");
  const std::unique_ptr<Backend> backend = any_backend();
  for (const bool private_copies : {false, true}) {
    const std::unique_ptr<Module> module = backend->load({{{"test", program, 1}}, private_copies, 2});
    const Handle s = module->input("s");
    const auto values = [&](std::int64_t device, std::int64_t member) {
      std::vector<float> found(3);
      module->wait(module->read(s, {device, member}, std::as_writable_bytes(std::span(found))));
      return found;
    };
    const auto fill = [&](std::int64_t member, std::vector<float> with) {
      module->fill(s, member, [&](std::span<std::byte> into) {
        REQUIRE(into.size() == 12);
        std::memcpy(into.data(), with.data(), 12);
      });
    };
    module->clear(s);
    CHECK(values(1, 1) == std::vector<float>{0, 0, 0});
    fill(0, {1, 2, 3});
    fill(1, {4, 5, 6});
    module->submit(0, 0);
    for (const std::int64_t device : {0, 1}) {
      CHECK(values(device, 0) == std::vector<float>{2, 4, 6});
      CHECK(values(device, 1) == std::vector<float>{8, 10, 12});
    }
    module->clear(s);
    fill(1, {7, 8, 9});
    for (const std::int64_t device : {0, 1}) {
      CHECK(values(device, 0) == std::vector<float>{0, 0, 0});
      CHECK(values(device, 1) == std::vector<float>{7, 8, 9});
    }
    // A value that only a step has changed since it was cleared.
    module->submit(0, 0);
    module->clear(s);
    CHECK(values(0, 1) == std::vector<float>{0, 0, 0});
    // A failure is the caller's alone: the module goes on.
    CHECK_THROWS_WITH(module->fill(s, 0, [](std::span<std::byte>) { throw std::runtime_error("no such file"); }),
                      "no such file");
    fill(0, {1, 2, 3});
    module->submit(0, 0);
    CHECK(values(1, 0) == std::vector<float>{2, 4, 6});
  }
}

TEST_CASE("memory that is only written before the first step is cleared too", "[runtime]") {
  const auto program =
      test::program_of("mesh a=2\nstate %s:f32[3]{}\n%t = add %s, %s\nreturn t = %t\nupdate %s = %t\n");
  const std::unique_ptr<Module> module = any_backend()->load({{{"test", program, 1}}});
  const Handle s = module->input("s");
  const float part = 3;
  module->clear(s);
  module->wait(module->write(s, every_device, bytes_of(part), 4));
  module->clear(s);
  std::vector<float> found(3, 1.0F);
  module->wait(module->read(s, 0, std::as_writable_bytes(std::span(found))));
  CHECK(found == std::vector<float>{0, 0, 0});
}

TEST_CASE("memory of many megabytes is mapped: it begins as zeros, is there, and counts like other memory",
          "[runtime]") {
  constexpr std::size_t elements = 2'200'000;
  const CpuBackend backend({.workers = 2});
  const Source source{{{"test",
                        test::program_of("mesh a=2\nstate %s:f32[2200000]{}\n%t = add %s, %s\nreturn t = %t\nupdate %s "
                                         "= %t\n"),
                        1}}};
  const std::unique_ptr<Planned> planned = backend.plan(source);
  const MemoryNeeds needs = planned->needs();
  const std::unique_ptr<Module> module = std::move(*planned).load();
  CHECK(module->allocated() == needs.total() - needs.programs);
  const Handle s = module->input("s");
  module->clear(s);
  const std::vector<float> zeros(elements), ones(elements, 1.0F);
  module->fill(s, 0, [&](std::span<std::byte> into) {
    const auto address = reinterpret_cast<std::uintptr_t>(into.data());
    CHECK(address % 64 == 0);
    const std::size_t page = 4096, before = address % page, size = before + into.size();
    std::vector<unsigned char> there((size + page - 1) / page);
    REQUIRE(::mincore(into.data() - before, size, there.data()) == 0);
    CHECK(std::all_of(there.begin(), there.end(), [](unsigned char bits) { return (bits & 1) != 0; }));
    CHECK(std::memcmp(into.data(), zeros.data(), into.size()) == 0);
    std::memcpy(into.data(), ones.data(), into.size());
  });
  module->submit(0, 0);
  std::vector<float> found(elements);
  module->wait(module->read(s, 0, std::as_writable_bytes(std::span(found))));
  CHECK(found == std::vector<float>(elements, 2.0F));
}

TEST_CASE("each slot is a batch of its own, aligned, and a step reads the one that it is given", "[runtime]") {
  const std::unique_ptr<Module> module = any_backend()->load(two_entries(3));
  const float zero = 0;
  module->write(module->input("w"), every_device, bytes_of(zero));
  for (int slot = 0; slot < 3; ++slot) {
    const auto base = static_cast<float>(slot * slot);
    CHECK(reinterpret_cast<std::uintptr_t>(module->batch(0, slot, "x").data()) % 16 == 0);
    set_batch(*module, 0, slot, "x", {base, base + 1});
  }
  for (const int slot : {2, 0, 1}) {
    module->submit(0, slot);
    CHECK(read(*module, module->output(0, "sum")) == static_cast<float>(2 * slot * slot + 1));
  }
  CHECK(module->batch(0, 0, "y").empty());
  CHECK(module->batch(0, 0, "w").empty());
}

TEST_CASE("a private copy is written and read by device, and a read may begin anywhere", "[runtime]") {
  const std::unique_ptr<Module> module = any_backend()->load(two_entries(1, true));
  const Handle w = module->input("w");
  const float values[] = {1.5F, -2};
  for (std::int64_t device = 0; device < 2; ++device) module->wait(module->write(w, device, bytes_of(values[device])));
  CHECK(read(*module, w, 0) == 1.5F);
  CHECK(read(*module, w, 1) == -2);
  std::uint16_t half = 0;
  module->wait(module->read(w, 1, std::as_writable_bytes(std::span(&half, 1)), 2));
  CHECK(half == 0xc000);
}

TEST_CASE("a module refuses what its programs have not", "[runtime]") {
  const std::unique_ptr<Backend> backend = any_backend();
  const std::unique_ptr<Module> module = backend->load(two_entries());
  CHECK(error_of([&] { module->input("x"); }) == "the module has no input 'x'");
  CHECK(error_of([&] { module->output(0, "before"); }) == "the entry 'grow' has no output 'before'");
  const auto other = test::program_of("mesh a=2\nparams %w:f32[3]{}\nreturn w = %w\n");
  CHECK(error_of([&] {
          backend->load({{{"grow", test::program_of(grow)}, {"look", other}}});
        }) == "input 'w' is f32[]{} in the entry 'grow' and f32[3]{} in the entry 'look'");
  const Handle w = module->input("w");
  float two[2] = {2};
  CHECK(error_of([&] { module->read(w, 0, std::as_writable_bytes(std::span(two))); }) ==
        "a read past the end of a value of 4 bytes");
  CHECK(error_of([&] { module->write(w, 1, bytes_of(two[0])); }) == "input 'w' is kept once for all devices");
  // Afterwards it can be used as before.
  module->wait(module->write(w, every_device, bytes_of(two[0])));
  CHECK(read(*module, w) == 2);
}

TEST_CASE("the reference backend carries out nothing before a ticket is waited for, and then in order", "[runtime]") {
  const std::unique_ptr<Module> module = make_backend(BackendKind::reference)->load(two_entries());
  const Handle w = module->input("w");
  float value = 1, found = -1;
  const Ticket written = module->write(w, every_device, bytes_of(value));
  value = 5;  // too early: the module has the memory until the write is done
  CHECK_FALSE(module->done(written));
  set_batch(*module, 0, 0, "x", {2, 3});
  const Ticket step = module->submit(0, 0);
  set_batch(*module, 0, 0, "x", {10, 20});  // likewise
  const Ticket read = module->read(w, 0, std::as_writable_bytes(std::span(&found, 1)));
  const Ticket next = module->submit(1, 0);
  CHECK(found == -1);
  module->wait(read);
  CHECK(module->done(step));
  CHECK_FALSE(module->done(next));
  CHECK(found == 5 + 10 + 20);
}

TEST_CASE("a failure comes out of the wait for its ticket and for every later one, not for those before", "[runtime]") {
  CpuBackendOptions options{.workers = 1};
  options.make_kernel = [](const Op&, const CpuRequest&) { return std::make_unique<Failing>(); };
  const std::unique_ptr<Module> module = CpuBackend(options).load(two_entries());
  const Ticket first = module->submit(0, 0, 2), second = module->submit(0, 0), third = module->submit(1, 0);
  CHECK(error_of([&] { module->wait(first); }) == "none");
  CHECK(error_of([&] { module->wait(second); }) == "a kernel failed");
  CHECK(error_of([&] { module->wait(third); }) == "a kernel failed");
  float value = 0;
  const Ticket read = module->read(module->input("w"), 0, std::as_writable_bytes(std::span(&value, 1)));
  CHECK(error_of([&] { module->wait(read); }) == "a kernel failed");
  CHECK(error_of([&] { module->wait(first); }) == "none");
}

TEST_CASE("workers are as many as asked for, else one for steps that are shorter than a barrier", "[runtime]") {
  const auto tiny = [](std::int64_t devices) { return Source{{{"grow", test::program_of(grow, {{"a", devices}})}}}; };
  CHECK(CpuBackend({.workers = 5}).plan(tiny(64))->workers() == 5);
  CHECK(CpuBackend().plan(tiny(64))->workers() == 1);
  const auto large = test::program_of("mesh a=64\nbatch %x:f32[100000]{a}\n%y = exp %x\nreturn y = %y\n");
  const int workers = CpuBackend().plan({{{"large", large}}})->workers();
  CHECK(workers == std::min<int>(static_cast<int>(allowed_cores()), cpu::most_pieces));
}

TEST_CASE("a module allocates what its backend says that it needs", "[runtime]") {
  const std::unique_ptr<Backend> backend = any_backend();
  for (const int batches : {1, 3}) {
    const std::unique_ptr<Planned> planned = backend->plan(two_entries(batches));
    const MemoryNeeds needs = planned->needs();
    const std::unique_ptr<Module> module = std::move(*planned).load();
    module->submit(0, 0);
    module->wait(module->submit(1, 0));
    CHECK(module->allocated() == needs.total() - needs.programs);
    CHECK(needs.parameters >= 2 * sizeof(float));
    CHECK(needs.batches >= 2U * static_cast<std::size_t>(batches) * 2 * sizeof(float));
  }
}

TEST_CASE("training, commands and benchmarks name no backend's insides", "[runtime]") {
  const std::regex insides(
      R"(\b(CpuExecutor|CpuBackend|CpuBackendOptions|CpuModule|make_plan|Plan|Step)\b|core/runtime/(cpu/|plan\.h))");
  int files = 0;
  for (const char* const folder : {"core/step", "core/run", "core/setup", "core/evaluate", "core/exports", "core/train",
                                   "core/report", "core/sweep", "app", "bench"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      const std::string path = entry.path().string();
      // These two measure the CPU's runtime itself.
      if (!entry.is_regular_file() || path.starts_with("bench/guard") || path.starts_with("bench/limits")) continue;
      if (!path.ends_with(".h") && !path.ends_with(".cpp")) continue;
      ++files;
      std::istringstream lines(test::read_text(path));
      for (std::string line; std::getline(lines, line);) {
        // Most lines have none of the words in another word either, and a search for those takes no time.
        if (line.find("Cpu") == line.npos && line.find("lan") == line.npos && line.find("Step") == line.npos &&
            line.find("core/runtime/cpu/") == line.npos) {
          continue;
        }
        INFO(path << ": " << line);
        CHECK_FALSE(std::regex_search(line, insides));
      }
    }
  }
  CHECK(files > 60);
}
