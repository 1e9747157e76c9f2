// A program that several processes carry gives the bits of one process with the same blocks.
#include "tests/runtime/placements.h"

#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/passes.h"
#include "core/graph/text.h"
#include "core/passes/pipeline.h"
#include "tests/catch.h"
#include "tests/runtime/program_writer.h"
#include "tests/slice.h"

namespace pmaptrain {
namespace test {
namespace {

// What a module has of the results: as run_program(), with empty arrays for values of other processes.
Values results_of(Module& module, std::span<const Input> inputs) {
  NamedValues named(module);
  const Program& program = module.program(0);
  Values results;
  for (std::int64_t d = 0; d < program.mesh.devices(); ++d) {
    for (const Output& output : program.outputs) {
      const bool has = module.has(module.output(0, output.name), d);
      results["output " + output.name].push_back(has ? named.output(output.name, d) : std::vector<std::byte>());
    }
    for (const Input& input : inputs) {
      if (input.group == Group::batch) continue;
      const bool has = module.has(module.input(input.name), d);
      results[(input.next ? "update " : "input ") + input.name].push_back(has ? named.input(input.name, d)
                                                                              : std::vector<std::byte>());
    }
  }
  return results;
}

void join(Values& all, const Values& more) {
  for (const auto& [name, values] : more) {
    PerDevice& into = all[name];
    into.resize(values.size());
    for (std::size_t d = 0; d < values.size(); ++d) {
      if (values[d].empty()) continue;
      if (into[d].empty()) into[d] = values[d];
      if (into[d] != values[d]) throw std::runtime_error(name + " of device " + std::to_string(d) + " differs");
    }
  }
}

}  // namespace

Values run_placements(const Program& program, const Values& inputs, std::int64_t steps, MemoryTransport& transport,
                      int processes, const LoadModule& load) {
  std::vector<Values> of_each(static_cast<std::size_t>(processes));
  transport.counts = false;
  on_each_process(transport, processes, [&](int p) {
    const std::unique_ptr<Module> module = load({{p, processes}, &transport.end(p)});
    transport.count_from_here();
    NamedValues named(*module);
    for (const Input& input : program.inputs) named.set_each(input.name, inputs.at(input.name));
    named.run(steps);
    of_each[static_cast<std::size_t>(p)] = results_of(*module, program.inputs);
  });
  Values all;
  for (const Values& each : of_each) join(all, each);
  return all;
}

Values run_placements(std::shared_ptr<const Program> program, const Values& inputs, const Run& how, int processes,
                      const MemoryTransport::Tamper& tamper, std::size_t* sent) {
  MemoryTransport transport(processes);
  transport.tamper = tamper;
  const auto load = [&](const Processes& all) {
    const CpuBackendOptions options{how.workers, how.kernels, {}, how.pieces};
    const Source source{{{"test", program, 1}}, how.private_copies, 1, how.blocks};
    return std::move(*CpuBackend(options).plan(source, all)).load();
  };
  Values all = run_placements(*program, inputs, how.steps, transport, processes, load);
  if (sent != nullptr) *sent = transport.bytes();
  return all;
}

std::shared_ptr<const Program> sum_of_rows(const std::string& columns) {
  return program_of("mesh a=4\nbatch %x:f32[6," + columns +
                    "]{a}\n%r = reduce_sum[dims=[0]] %x\n%s = psum[axes={a}] %r\nreturn s = %s\n");
}

std::string every_collective(const std::string& mesh, const std::string& more) {
  return "mesh " + mesh + R"(
batch %x:f32[4,6]{b}
batch %y:f32[4,6]{a, b}
batch %n:f32[4,6]{a}
%r = reduce_sum[dims=[0]] %x
%s = psum[axes={b}] %r
%t = psum[axes={b}] %y
%u = psum[axes={a}] %y
%v = psum[axes={a, b}] %y
%p = psum_scatter[axes={a}, dim=0] %y
%q = psum_scatter[axes={b}, dim=1] %y
%m = pmax[axes={b}] %y
%c = all_gather[axes={b}, dim=0] %y
%i = all_gather_invariant[axes={b}, dim=1] %x
%g = all_gather_invariant[axes={a, b}, dim=0] %y
%l = all_slice[axes={b}, dim=1] %n
%h = pack[elements=768] %y, %v
%j = psum_scatter[axes={a, b}, dim=0] %h
%e = all_to_all[axes={a}, split=0, concat=1] %y
%o = ppermute[axes={b}, pairs=[0:1,1:2,5:0]] %y
%w = psum[axes={a}] %n
%k = axis_index[axes={b}]
)" + more +
         R"(return s = %s
return t = %t
return u = %u
return v = %v
return p = %p
return q = %q
return m = %m
return c = %c
return i = %i
return g = %g
return l = %l
return j = %j
return e = %e
return o = %o
return w = %w
return k = %k
)";
}

}  // namespace test

namespace {

// Fails unless placements give the results of one process.
void check_placements(const std::shared_ptr<const Program>& program, const test::Values& inputs, std::int64_t blocks,
                      test::Run how) {
  how.blocks = blocks;
  const test::Values expected = test::run_program(program, inputs, how);
  for (const int processes : {2, 3, 4, 8}) {
    if (processes > blocks) continue;
    INFO(processes << " processes, " << blocks << " blocks, private copies " << how.private_copies);
    for (const auto& [name, values] : test::run_placements(program, inputs, how, processes)) {
      INFO(name);
      const bool same = values == expected.at(name);
      REQUIRE(same);
    }
  }
}

std::vector<std::int64_t> divisors(std::int64_t devices) {
  std::vector<std::int64_t> found;
  for (std::int64_t d = 1; d <= devices; ++d) {
    if (devices % d == 0) found.push_back(d);
  }
  return found;
}

constexpr const char* step = R"(mesh a=8
batch %x:f32[6,160]{a}
batch %y:f32[6,40]{a}
params %w:f32[160,40]{}
params %b:f32[40]{}
%wv = pvary[axes={a}] %w
%z = matmul %x, %wv
%d = sub %z, %y
%g = matmul[transpose_a=true] %x, %d
%h = reduce_sum[dims=[0]] %d
%e = mul %d, %d
%l = reduce_sum[dims=[0, 1]] %e
%m = reduce_max[dims=[0, 1]] %e
%sg, %sh, %sl = psum[axes={a}] %g, %h, %l
%top = pmax[axes={a}] %m
%k = constant[dtype=f32, shape=[160,40], value=-1e-05]
%u = mul %sg, %k
%w2 = add %w, %u
%b2 = sub %b, %sh
update %w = %w2
update %b = %b2
return loss = %sl
return top = %top
)";

TEST_CASE("a step of training has the same bits on any number of processes", "[runtime][placements]") {
  const auto program = test::program_of(step);
  const test::Values inputs = test::uneven_inputs(*program, 6);
  for (const std::int64_t blocks : {2, 4, 8}) {
    for (const bool private_copies : {false, true}) {
      for (const int workers : {1, 2}) {
        check_placements(program, inputs, blocks, {workers, private_copies, 3, false, KernelChoice::best, 8});
      }
    }
  }
}

// Gradients of each kind in one bucket with gaps: in parts, of pieces, and of whole instances.
constexpr const char* bucket_of_gradients = R"(mesh a=8
batch %x:f32[5,700]{a}
batch %y:f32[5,150]{a}
%g = matmul[transpose_a=true] %x, %y
%h = reduce_sum[dims=[0]] %y
%c = cumsum[dim=0] %x
%k = reduce_sum[dims=[0]] %c
%p = pack %h, %k, %g
%s = psum[axes={a}] %p
return s = %s
)";

TEST_CASE("a large sum is reduced in ranges: the same bits, and the bytes of a ring", "[runtime][placements]") {
  const auto program = test::program_of(R"(mesh a=8
batch %x:f32[5,700]{a}
batch %y:f32[5,150]{a}
%g = matmul[transpose_a=true] %x, %y
%h = reduce_sum[dims=[0]] %y
%sg, %sh = psum[axes={a}] %g, %h
return g = %sg
return h = %sh
)");
  const test::Values inputs = test::uneven_inputs(*program, 8);
  for (const std::int64_t blocks : {2, 4, 8}) {
    for (const bool private_copies : {false, true}) {
      check_placements(program, inputs, blocks, {2, private_copies, 2, false, KernelChoice::best, 8});
    }
  }
  const auto bucket = test::program_of(bucket_of_gradients);
  for (const std::int64_t blocks : {4, 8}) {
    check_placements(bucket, inputs, blocks, {2, false, 2, false, KernelChoice::best, 8});
  }
  constexpr std::size_t large = 700 * 150 * sizeof(float), small = 150 * sizeof(float);
  for (const int processes : {2, 4, 8}) {
    std::size_t sent = 0;
    test::run_placements(program, inputs, {1, false, 1, false, KernelChoice::best, 8, 8}, processes, {}, &sent);
    const auto others = static_cast<std::size_t>(processes - 1);
    CHECK(sent == 2 * others * large + static_cast<std::size_t>(processes) * others * small);
  }
}

// The devices along `axis` each take a shard of the sum of a large bucket, and then gather the shards.
std::shared_ptr<const Program> shards_of_a_sum(const std::string& mesh, const std::string& axis) {
  return test::program_of("mesh " + mesh + R"(
batch %x:f32[5,700]{a, b}
batch %y:f32[5,150]{a, b}
%g = matmul[transpose_a=true] %x, %y
%h = reduce_sum[dims=[0]] %y
%c = cumsum[dim=0] %x
%k = reduce_sum[dims=[0]] %c
%p = pack[elements=106752] %h, %k, %g
%s = psum[axes={a, b}] %p
%o = all_slice[axes={)" + axis +
                          R"(}, dim=0] %s
%w = all_gather_invariant[axes={)" +
                          axis + R"(}, dim=0] %o
return o = %o
return w = %w
)");
}

TEST_CASE("of a large sum a process gets the shards of its devices alone, along any of the axes",
          "[runtime][placements]") {
  for (const char* const mesh : {"a=2 b=4", "a=4 b=2", "a=3 b=4"}) {
    for (const char* const axis : {"a", "b"}) {
      INFO(mesh << ", shards along " << axis);
      const auto program = shards_of_a_sum(mesh, axis);
      const test::Values inputs = test::uneven_inputs(*program, 8);
      for (const std::int64_t blocks : divisors(program->mesh.devices())) {
        if (blocks == 1) continue;
        for (const bool private_copies : {false, true}) {
          check_placements(program, inputs, blocks, {2, private_copies, 2, false, KernelChoice::best, 8});
        }
      }
    }
  }
}

TEST_CASE("shards along some of the axes are received once, and no whole sum is gathered", "[runtime][placements]") {
  constexpr std::size_t bucket = 106752 * sizeof(float);
  // Each process adds its range of the sum, and gets it from all others. Then those with the same shards gather them:
  // of the four processes two have the same half, and of the eight four have the same half, or two the same quarter.
  // The last addend is the gather of the shards: a process gets those that it lacks from one that is near.
  const auto sent = [&](const char* axis, int processes) {
    std::size_t bytes = 0;
    const auto program = shards_of_a_sum("a=2 b=4", axis);
    test::run_placements(program, test::uneven_inputs(*program, 8), {1, false, 1, false, KernelChoice::best, 8, 8},
                         processes, {}, &bytes);
    return bytes;
  };
  CHECK(sent("b", 8) == 7 * bucket + bucket + 8 * 3 * bucket / 4);
  CHECK(sent("b", 4) == 3 * bucket + bucket + 4 * bucket / 2);
  CHECK(sent("b", 2) == bucket + bucket);  // each has all shards
  CHECK(sent("a", 8) == 7 * bucket + 3 * bucket + 8 * bucket / 2);
  CHECK(sent("a", 4) == 3 * bucket + bucket + 4 * bucket / 2);
  CHECK(sent("a", 2) == bucket + 2 * bucket / 2);
}

TEST_CASE("the steps of ranks count the bytes that processes send", "[runtime][placements]") {
  // Devices along `b` have sums of their own, so the arrays of the bucket are summed one by one.
  const auto buckets = test::program_of(
      "mesh a=4 b=2\nbatch %x:f32[5,7]{a, b}\n%h = reduce_sum[dims=[0]] %x\n%p = pack[elements=192] %h, %x\n"
      "%s = psum[axes={a}] %p\nreturn s = %s\n");
  for (const auto& program : {test::program_of(test::every_collective("a=2 b=6")), shards_of_a_sum("a=2 b=4", "b"),
                              shards_of_a_sum("a=4 b=2", "b"), buckets}) {
    for (const int processes : {2, 3, 4}) {
      const std::int64_t blocks = program->mesh.devices();
      std::size_t sent = 0, counted = 0, received = 0;
      test::run_placements(program, test::uneven_inputs(*program, 8),
                           {1, false, 1, false, KernelChoice::best, 8, blocks}, processes, {}, &sent);
      for (int process = 0; process < processes; ++process) {
        const auto planned =
            CpuBackend(CpuBackendOptions()).plan({{{"test", program, 1}}, false, 1, blocks}, {{process, processes}});
        for (const auto& [equation, steps] : planned->report(0).rank_steps) {
          for (const RankStep& step : steps) counted += step.sent, received += step.received;
        }
      }
      CHECK(counted == sent);
      CHECK(received == sent);
    }
  }
}

TEST_CASE("every collective gives the same bits on any number of processes", "[runtime][placements]") {
  const auto program =
      test::program_of(test::every_collective("a=2 b=6", "%z = all_slice[axes={a}, dim=1] %v\nreturn z = %z\n"));
  const test::Values inputs = test::uneven_inputs(*program, 7);
  for (const std::int64_t blocks : {2, 3, 4, 6, 12}) {
    for (const bool private_copies : {false, true}) {
      check_placements(program, inputs, blocks, {2, private_copies, 2, false, KernelChoice::best, 8});
    }
  }
}

TEST_CASE("an instance that devices of two processes hold is read from a device of the process's own",
          "[runtime][placements]") {
  const auto program = test::program_of(R"(mesh a=2 b=3
batch %x:i32[5000]{a}
state %s:i32[5000]{a}
%product = mul %s, %x
return product = %product
)");
  const test::Values inputs = test::random_inputs(*program, 5);
  for (const std::int64_t blocks : {2, 3, 6}) {
    for (const bool private_copies : {false, true}) {
      check_placements(program, inputs, blocks, {1, private_copies, 2, false, KernelChoice::reference, 8});
    }
  }
}

TEST_CASE("random programs over two axes have the same bits on any number of processes", "[runtime][placements]") {
  test::Turns turns;
  for (const std::uint32_t seed : test::some_seeds(0, 60, test::slices_with_sanitizer(12))) {
    const auto plain = test::program_of(test::ProgramWriter(seed, DType::i32, seed % 2 == 1).write());
    const auto passed = std::make_shared<const Program>(run_passes(simplify(*plain), passes_of_all_backends()));
    const test::Values inputs = test::random_inputs(*plain, seed);
    for (const auto& program : {plain, passed}) {
      INFO("seed " << seed << "\n" << to_text(*program));
      for (const std::int64_t blocks : divisors(program->mesh.devices())) {
        if (blocks == 1) continue;
        check_placements(program, inputs, blocks,
                         {1, turns.next(2).front() == 1, 2, false, KernelChoice::reference, 8});
      }
    }
  }
}

// The messages from one process to another, in order.
using Messages = std::map<std::pair<int, int>, std::vector<std::vector<std::byte>>>;

TEST_CASE("a chunk that is sent twice, comes late or is added in another order is found in the results",
          "[runtime][placements]") {
  const auto program = test::program_of(step);
  const test::Values inputs = test::uneven_inputs(*program, 6);
  const test::Run how{1, false, 3, false, KernelChoice::best, 8, 8};
  const test::Values expected = test::run_program(program, inputs, how);
  // Replaces each message by what `other` gives for it: the sender, the receiver and the message's number.
  const auto differs = [&](const std::function<const std::vector<std::byte>*(int, int, std::size_t)>& other,
                           Messages* sent = nullptr) {
    std::map<std::pair<int, int>, std::size_t> count;
    int replaced = 0;
    const auto tamper = [&](int from, int to, std::vector<std::byte>& message) {
      if (sent != nullptr) (*sent)[{from, to}].push_back(message);
      const std::vector<std::byte>* instead = other(from, to, count[{from, to}]++);
      if (instead == nullptr || instead->size() != message.size() || *instead == message) return;
      message = *instead;
      ++replaced;
    };
    bool found = false;
    try {
      for (const auto& [name, values] : test::run_placements(program, inputs, how, 3, tamper)) {
        found = found || values != expected.at(name);
      }
    } catch (const std::runtime_error&) {  // the placements give a value different bits
      found = true;
    }
    CHECK((sent != nullptr || replaced > 0));
    return found;
  };
  Messages sent;
  CHECK_FALSE(differs([](int, int, std::size_t) { return nullptr; }, &sent));
  const auto of = [&](int from, int to, std::size_t number) -> const std::vector<std::byte>* {
    const std::vector<std::vector<std::byte>>& all = sent.at({from, to});
    return number < all.size() ? &all[number] : nullptr;
  };
  const std::size_t a_step = sent.at({1, 0}).size() / 3;
  REQUIRE(a_step * 3 == sent.at({1, 0}).size());
  // What process 1 sent to process 0 in the first step, again in the second.
  CHECK(differs([&](int from, int to, std::size_t number) {
    const bool is_second = number / a_step == 1;
    return from == 1 && to == 0 && is_second ? of(from, to, number - a_step) : nullptr;
  }));
  // Everything that process 2 sends to process 0, a step late.
  CHECK(differs([&](int from, int to, std::size_t number) {
    return from == 2 && to == 0 && number >= a_step ? of(from, to, number - a_step) : nullptr;
  }));
  // Process 0 takes what process 1 sends for what process 2 sends, and the reverse: another order of the same sum.
  CHECK(differs([&](int from, int to, std::size_t number) { return to == 0 ? of(3 - from, to, number) : nullptr; }));
}

}  // namespace
}  // namespace pmaptrain
