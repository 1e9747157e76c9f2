// Plans as golden text, and what they promise about memory.
#include <set>
#include <string>

#include "core/base/saturate.h"
#include "core/graph/text.h"
#include "tests/catch.h"
#include "tests/golden.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {
namespace {

const std::string microbatches = R"(mesh a=20
params %w:f32[3,2]{}
state %step:i32[]{}
batch %x:f32[8,3]{a}
hyper %rate:f32[]{}
%v = pvary[axes={a}] %w
%zero = constant[dtype=f32, shape=[3,2], value=0.0]
%g0 = pvary[axes={a}] %zero
%g = loop[iterations=4, consts=1, carries=1] %v, %g0, %x (%k:f32[3,2]{a}, %acc:f32[3,2]{a}, %rows:f32[2,3]{a}) {
  %y = matmul %rows, %k
  %t = tanh %y
  %h = matmul[transpose_a=true] %rows, %t
  %next = add %acc, %h
  yield %next
}
%s = psum[axes={a}] %g
%d = mul %s, %rate
%w2 = sub %w, %d
%one = constant[dtype=i32, shape=[], value=1]
%step2 = add %step, %one
update %w = %w2
update %step = %step2
return norm = %d
)";

const std::string stages = R"(mesh r=2 c=2
state %p:f32[5000]{}
state %q:f32[5000]{}
batch %x:f32[6]{r, c}
%i = axis_index[axes={c}]
%1 = neg %x
%2 = exp %1
%3 = psum[axes={c}] %2
%4 = add %1, %3
%5 = psum[axes={r, c}] %4
%6 = neg %p
%7 = mul %6, %6
update %p = %q
update %q = %7
return five = %5
return i = %i
)";

// A layer whose weights are worth packing.
const std::string layer = R"(mesh a=8
params %w:f32[256,256]{}
batch %x:f32[64,256]{a}
%y = matmul %x, %w
%g = matmul[transpose_a=true] %x, %y
%s = psum[axes={a}] %g
%w2 = sub %w, %s
update %w = %w2
)";

TEST_CASE("plans are what the golden text says", "[runtime]") {
  std::string all;
  for (const std::string& text : {microbatches, stages, layer}) {
    const auto program = test::program_of(text);
    for (const bool private_copies : {false, true}) {
      all += std::string(private_copies ? "private copies\n" : "shared copies\n") +
             to_text(cpu::make_plan(program, {private_copies, 2})) + "\n";
    }
  }
  test::check_golden("plans.txt", all);
}

TEST_CASE("the runtime carries out what the golden plans show", "[runtime]") {
  test::check_runtime(stages);
  const auto program = test::program_of(microbatches);
  const auto inputs = test::random_inputs(*program, 2);
  const auto expected = test::run_program(program, inputs, {1, false, 2, false, KernelChoice::reference});
  for (const int workers : {2, 3, 5}) {
    for (const bool private_copies : {false, true}) {
      const bool same =
          test::run_program(program, inputs, {workers, private_copies, 2, true, KernelChoice::reference}) == expected;
      CHECK(same);
    }
  }
}

TEST_CASE("a chain of any length needs the arena of its widest place, and a carry no second copy", "[runtime]") {
  std::string text = "mesh a=8\nbatch %x:f32[1024]{a}\n%v0 = neg %x\n";
  for (int i = 1; i < 30; ++i) text += "%v" + std::to_string(i) + " = exp %v" + std::to_string(i - 1) + "\n";
  text += "%s = reduce_sum[dims=[0]] %v29\n%t = psum[axes={a}] %s\nreturn t = %t\n";
  const cpu::Plan plan = cpu::make_plan(test::program_of(text), {false, 8});
  CHECK(plan.transient.arena == 4096);
}

// Values that cross barriers: a sum over devices in each of `count` stages needs all of the value before.
std::string chain_of_sums(int count) {
  std::string text = "mesh a=2\nbatch %x:f32[64,1000]{a}\n%v0 = neg %x\n";
  for (int i = 1; i <= count; ++i) {
    const std::string n = std::to_string(i), before = std::to_string(i - 1);
    text += "%s" + n + " = reduce_sum[dims=[0,1]] %v" + before + "\n%m" + n + " = psum[axes={a}] %s" + n + "\n%b" + n +
            " = broadcast[shape=[64,1000], dims=[]] %m" + n + "\n%v" + n + " = sub %v" + before + ", %b" + n + "\n";
  }
  return text + "%r = reduce_sum[dims=[0,1]] %v" + std::to_string(count) + "\n%t = psum[axes={a}] %r\nreturn t = %t\n";
}

TEST_CASE("values that no stage needs together share memory", "[runtime]") {
  const auto bytes_of_devices = [](const std::string& text) {
    return cpu::make_plan(test::program_of(text), {false, 4}).transient.devices;
  };
  const std::size_t value = 2 * 64 * 1000 * sizeof(float);
  CHECK(bytes_of_devices(chain_of_sums(3)) < 3 * value);
  CHECK(bytes_of_devices(chain_of_sums(12)) == bytes_of_devices(chain_of_sums(3)));
  for (const int workers : {1, 3}) {
    CAPTURE(workers);
    const auto program = test::program_of(chain_of_sums(12));
    const auto inputs = test::random_inputs(*program, 2);
    const bool same = test::run_program(program, inputs, {workers, false, 4, true, KernelChoice::reference}) ==
                      test::run_program(program, inputs, {1, false, 4, false, KernelChoice::reference});
    CHECK(same);
  }
}

TEST_CASE("sums that no stage needs together share memory, whoever reads them", "[runtime]") {
  // Each sum is read by the pieces of the next stage, or reversed by a task for all workers.
  const auto chain = [](int count, const std::string& read) {
    std::string text = "mesh a=2\nbatch %x:f32[64,1000]{a}\n%v0 = neg %x\n";
    for (int i = 1; i <= count; ++i) {
      const std::string n = std::to_string(i), before = std::to_string(i - 1);
      text += "%m" + n + " = psum[axes={a}] %v" + before + "\n%r" + n + " = " + read + " %m" + n + "\n%v" + n +
              " = sub %v" + before + ", %r" + n + "\n";
    }
    return text + "%r = reduce_sum[dims=[0,1]] %v" + std::to_string(count) +
           "\n%t = psum[axes={a}] %r\nreturn t = %t\n";
  };
  for (const std::string read : {"neg", "reverse[dims=[0]]"}) {
    INFO(read);
    const auto bytes_of_shared = [&](int count) {
      return cpu::make_plan(test::program_of(chain(count, read)), {false, 4}).transient.shared;
    };
    CHECK(bytes_of_shared(3) > 0);
    CHECK(bytes_of_shared(12) == bytes_of_shared(3));
    for (const int workers : {1, 3}) {
      CAPTURE(workers);
      const auto program = test::program_of(chain(12, read));
      const auto inputs = test::random_inputs(*program, 2);
      const bool same = test::run_program(program, inputs, {workers, false, 4, true, KernelChoice::reference}) ==
                        test::run_program(program, inputs, {1, false, 4, false, KernelChoice::reference});
      CHECK(same);
    }
  }
}

TEST_CASE("sixty-four devices hold eight accumulators, not sixty-four", "[runtime]") {
  const auto program = test::program_of(
      "mesh a=64\nbatch %x:f32[100000]{a}\n%y = reverse[dims=[0]] %x\n%s = psum[axes={a}] %y\n"
      "return s = %s\n");
  const cpu::Plan plan = cpu::make_plan(program);
  CHECK(plan.max_pieces() == 8);
  CHECK(plan.transient.accumulators == 8 * 400000);
}

TEST_CASE("the small sums of a piece share a cache line, and large ones have lines of their own", "[runtime]") {
  const auto program = test::program_of(
      "mesh a=8\nbatch %x:f32[4,3]{a}\nbatch %y:f32[4,40]{a}\nbatch %z:f64[4]{a}\n%b = reduce_sum[dims=[0]] %x\n"
      "%c = reduce_sum[dims=[0]] %y\n%d = reduce_sum[dims=[0]] %z\n%s, %t, %u = psum[axes={a}] %b, %c, %d\n"
      "return s = %s\nreturn t = %t\nreturn u = %u\n");
  const cpu::Plan plan = cpu::make_plan(program, {false, 8});
  REQUIRE(plan.accumulators.size() == 3);
  CHECK(plan.accumulators[0].offset == 0);
  CHECK(plan.accumulators[0].piece_stride == 64);
  CHECK(plan.accumulators[2].offset == 16);  // behind 12 bytes, where an f64 may begin
  CHECK(plan.accumulators[2].piece_stride == 64);
  CHECK(plan.accumulators[1].offset == 8 * 64);
  CHECK(plan.accumulators[1].piece_stride == 192);
  CHECK(plan.transient.accumulators == 8 * (64 + 192));
  test::check_runtime(to_text(*program), {});
}

TEST_CASE("little work is one piece, whatever the number of devices", "[runtime]") {
  const auto program = test::program_of("mesh a=64\nbatch %x:f32[8]{a}\n%s = psum[axes={a}] %x\nreturn s = %s\n");
  CHECK(cpu::make_plan(program).max_pieces() == 1);
}

TEST_CASE("a weight gradient is one call over the rows of a piece", "[runtime]") {
  const auto program = test::program_of(
      "mesh a=8\nbatch %x:f32[4,3]{a}\nbatch %y:f32[4,2]{a}\n%g = matmul[transpose_a=true] %x, %y\n"
      "%b = reduce_sum[dims=[0]] %y\n%s, %t = psum[axes={a}] %g, %b\nreturn s = %s\nreturn t = %t\n");
  const std::string text = to_text(cpu::make_plan(program, {false, 8}));
  CHECK(text.find("accumulator 0 = matmul[transpose_a=true, transpose_b=false] over the piece's rows") !=
        std::string::npos);
  CHECK(text.find("accumulator 1 = reduce_sum[dims=[0]] over the piece's rows") != std::string::npos);
  test::check_runtime(to_text(*program), {});
}

TEST_CASE("each device's part of a sum over rows is added up from the pieces' accumulators", "[runtime]") {
  for (const std::string dim : {"0", "1"}) {
    for (const std::string axes : {"{a}", "{b}"}) {
      const auto program = test::program_of(
          "mesh a=2 b=4\nbatch %x:f32[4,8]{a, b}\nbatch %y:f32[4,16]{a, b}\n"
          "%g = matmul[transpose_a=true] %x, %y\n%p = psum_scatter[axes=" +
          axes + ", dim=" + dim + "] %g\nreturn p = %p\n");
      const std::string text = to_text(cpu::make_plan(program, {false, 16}));
      INFO(text);
      CHECK(text.find("accumulator 0 = matmul[transpose_a=true, transpose_b=false] over the piece's rows") !=
            std::string::npos);
      CHECK(text.find("= psum[axes=" + axes + "] over pieces of accumulator 0") != std::string::npos);
      test::check_runtime(to_text(*program), {});
    }
  }
}

TEST_CASE("what is computed of a parameter on each device is not packed for all", "[runtime]") {
  const auto program = test::program_of(R"(mesh d=2
params %w:f32[256,300]{}
batch %x:f32[40,256]{d}
%wv = pvary[axes={d}] %w
%h = relu %wv
%y = matmul %x, %h
%s = reduce_sum[dims=[0]] %y
%u = psum[axes={d}] %s
return u = %u
)");
  const test::Values inputs = test::random_inputs(*program, 5);
  for (const int workers : {1, 2}) {
    const test::Run how{workers, false, 1, false, KernelChoice::best, 8};
    const bool same = test::run_program(program, inputs, how) == test::interpreted(*program, inputs, 1);
    CHECK(same);
  }
}

TEST_CASE("parameters are cast and packed before all pieces, which then meet nowhere in their midst", "[runtime]") {
  const auto program = test::program_of(
      "mesh a=8\nparams %w:f32[64,128]{}\nparams %u:f32[128,8]{}\nbatch %x:bf16[32,64]{a}\n"
      "%wn = cast[dtype=bf16] %w\n%un = cast[dtype=bf16] %u\n%wv = pvary[axes={a}] %wn\n%uv = pvary[axes={a}] %un\n"
      "%n = neg %x\n%y = matmul %n, %wv\n%z = matmul[preferred_element_type=f32] %y, %uv\n"
      "%r = reduce_sum[dims=[0]] %z\n%s = psum[axes={a}] %r\nreturn s = %s\n");
  const cpu::Plan plan = cpu::make_plan(program, {false, 8});
  INFO(to_text(plan));
  std::vector<std::size_t> pieces;
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    if (!plan.stages[i].piece_lists.empty()) pieces.push_back(i);
  }
  REQUIRE(pieces.size() == 1);
  CHECK(plan.stages[pieces.front()].piece_lists.front().instructions.size() == 4);
  CHECK(plan.stages.size() == pieces.front() + 2);
  CHECK(plan.stages.front().chunk_lists.size() == 1);   // the cast of w, which is large
  CHECK(plan.stages.front().every_worker.size() == 1);  // that of u
  test::check_runtime(to_text(*program), {});
}

TEST_CASE("the kernels of convolutions are packed once a step, for the pieces of both passes", "[runtime]") {
  const std::string text = R"(mesh a=2
params %w:f32[3,3,64,128]{}
batch %x:f32[5,4,4,64]{a}
batch %y:f32[5,4,4,128]{a}
%v = pvary[axes={a}] %w
%n = neg %x
%c = conv[strides=[1,1], padding=[1:1,1:1]] %n, %v
%d = sub %c, %y
%g = conv_input_grad[strides=[1,1], padding=[1:1,1:1], input_shape=[5,4,4,64]] %v, %d
%r = reduce_sum[dims=[0]] %g
%s = psum[axes={a}] %r
return s = %s
)";
  const cpu::Plan plan = cpu::make_plan(test::program_of(text), {false, 4});
  INFO(to_text(plan));
  CHECK(plan.stages.front().tasks.size() == 2);
  for (const cpu::Instruction& task : plan.stages.front().tasks) CHECK(task.as<cpu::PackOperand>() != nullptr);
  test::check_runtime(text);
  test::same_for_all_workers(test::program_of(text), test::uneven_inputs(*test::program_of(text), 7), 3);
}

TEST_CASE("pieces are ranges of rows that know no device, but keep to the group of their sums", "[runtime]") {
  // The program that core/runtime/cpu/README.md draws.
  const std::string text = R"(mesh replicas=2 shards=2
batch %x:f32[6,8]{replicas, shards}
params %w:f32[8,4]{replicas}
%v = pvary[axes={shards}] %w
%y = matmul %x, %v
%g = matmul[transpose_a=true] %x, %y
%s = psum[axes={shards}] %g
%w2 = sub %w, %s
update %w = %w2
)";
  const cpu::Plan plan = cpu::make_plan(test::program_of(text), {false, 8});
  INFO(to_text(plan));
  REQUIRE(plan.stages.size() == 2);
  const cpu::Cut& rows = plan.cuts.front();
  CHECK(rows.rows_per_instance == 6);
  REQUIRE(rows.pieces.size() == 8);
  for (std::size_t p = 0; p < 8; ++p) {
    CHECK(rows.pieces[p].first == static_cast<std::int64_t>(3 * p));
    CHECK(rows.pieces[p].count == 3);
  }
  // One instance of w for each replica, not one for each device.
  CHECK(plan.persistent.devices == 2 * 128);
  test::check_runtime(text);
  // A sum over all devices: a piece may have rows of several.
  const cpu::Plan all =
      cpu::make_plan(test::program_of("mesh a=6\nbatch %x:f32[2,8]{a}\n%y = neg %x\n%g = reduce_sum[dims=[0]] %y\n"
                                      "%s = psum[axes={a}] %g\nreturn s = %s\n"),
                     {false, 4});
  REQUIRE(all.cuts.size() == 1);
  for (const IndexRange& piece : all.cuts.front().pieces) CHECK(piece.count == 3);
}

TEST_CASE("a piece has four rows at least", "[runtime]") {
  const auto pieces = [](const std::string& rows) {
    return cpu::make_plan(test::program_of("mesh a=1\nparams %w:f32[512,512]{}\nbatch %x:f32[" + rows +
                                           ",512]{a}\n%y = matmul %x, %w\nreturn y = %y\n"))
        .max_pieces();
  };
  CHECK(pieces("7") == 1);
  CHECK(pieces("8") == 2);
  CHECK(pieces("16") == 4);
}

TEST_CASE("the same global batch has the same pieces, and bits, on any mesh", "[runtime]") {
  const auto program = [](std::int64_t devices) {
    return test::program_of("mesh a=1\nparams %w:f32[8,4]{}\nbatch %x:f32[" + std::to_string(24 / devices) +
                                ",8]{a}\n%y = matmul %x, %w\n%t = tanh %y\n%g = matmul[transpose_a=true] %x, %t\n"
                                "%s = psum[axes={a}] %g\n%w2 = sub %w, %s\nupdate %w = %w2\nreturn s = %s\n",
                            {{"a", devices}});
  };
  const auto inputs_of = [&](std::int64_t devices) {
    test::Values inputs = test::random_inputs(*program(1), 3);
    const std::vector<std::byte> rows = inputs.at("x").front();
    const std::size_t size = rows.size() / static_cast<std::size_t>(devices);
    PerDevice& x = inputs.at("x");
    x.clear();
    for (std::int64_t d = 0; d < devices; ++d) {
      const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(d) * size);
      x.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(size));
    }
    inputs.at("w").resize(static_cast<std::size_t>(devices), inputs.at("w").front());
    return inputs;
  };
  const auto sum = [&](std::int64_t devices) {
    const test::Values ran =
        test::run_program(program(devices), inputs_of(devices), {2, false, 3, false, KernelChoice::best, 5});
    return ran.at("output s").front();
  };
  for (const std::int64_t devices : {2, 3, 4, 8, 24}) {
    INFO(devices << " devices");
    const bool same = sum(devices) == sum(1);
    CHECK(same);
  }
}

TEST_CASE("a plan that needs more memory than can be counted says so", "[runtime]") {
  // Each value has 10^15 bytes over all devices; 2^64 is less than 18,600 times as many.
  std::string text = "mesh a=1000\nbatch %x:f32[]{a}\n";
  for (int i = 0; i < 18600; ++i) text += "%b" + std::to_string(i) + " = broadcast[shape=[250000000000], dims=[]] %x\n";
  Program program = *test::program_of(text);
  for (const Equation& equation : program.equations) program.outputs.push_back({"y", equation.results.front()});
  const cpu::Plan plan = cpu::make_plan(std::make_shared<const Program>(std::move(program)));
  CHECK(plan.persistent.devices == most_bytes);
  // Of one piece, since each piece of each value would have its own kernel.
  CHECK(CpuBackend({.workers = 1, .pieces = 1}).plan({{{"test", plan.program, 1}}})->needs().total() == most_bytes);
}

TEST_CASE("layers over the rows of pieces have the same bits whoever runs them", "[runtime]") {
  // 20 devices are eight blocks of two or three; carried one by one where there are as many workers.
  const auto program = test::program_of(R"(mesh a=20
params %w:f32[96,64]{}
params %v:f32[64,80]{}
params %b:f32[80]{}
batch %x:f32[6,96]{a}
%small = constant[dtype=f32, shape=[], value=0.0078125]
%h = matmul %x, %w
%hs = mul %h, %small
%t = tanh %hs
%y = matmul[relu=true] %t, %v, %b
%m = reduce_max[dims=[1]] %y
%gt = matmul[transpose_b=true] %y, %v
%gv = matmul[transpose_a=true] %t, %y
%gw = matmul[transpose_a=true] %x, %gt
%gb = reduce_sum[dims=[0]] %y
%all = reduce_sum[dims=[0]] %m
%largest = pmax[axes={a}] %all
%sv, %sw, %sb, %sm = psum[axes={a}] %gv, %gw, %gb, %m
%dw = mul %sw, %small
%w2 = sub %w, %dw
update %w = %w2
return sv = %sv
return sb = %sb
return sm = %sm
return largest = %largest
return y = %y
)");
  const auto inputs = test::random_inputs(*program, 11);
  for (const KernelChoice kernels : {KernelChoice::reference, KernelChoice::best}) {
    const auto expected = test::run_program(program, inputs, {8, false, 3, false, kernels, 8});
    for (const int workers : {1, 2, 3, 5}) {
      for (const bool private_copies : {false, true}) {
        const bool same =
            test::run_program(program, inputs, {workers, private_copies, 3, workers == 2, kernels, 8}) == expected;
        INFO("workers " << workers << ", private " << private_copies);
        CHECK(same);
      }
    }
  }
}

}  // namespace
}  // namespace pmaptrain
