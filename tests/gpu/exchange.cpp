// Sums over GPUs whose order of additions is fixed: the trees, the bits, what is sent, and the memory.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/report/kernels.h"
#include "core/runtime/gpu/division.h"
#include "core/runtime/gpu/report.h"
#include "core/setup/plan.h"
#include "core/setup/setup.h"
#include "tests/catch.h"
#include "tests/gpu/gpus.h"
#include "tests/gpu/programs.h"
#include "tests/session_run.h"
#include "tests/words.h"

namespace pmaptrain::testing {
namespace {

using Subtree = gpu::SumTree::Subtree;

const std::size_t always = 1, never = std::size_t{1} << 40;  // as PlanOptions::least_exchanged

// Two steps. Fails unless the GPUs send what the plan says.
test::Values run_exchanging(const std::shared_ptr<const Program>& program, const test::OnGpus& how) {
  const auto platform = test::make_emulated({.devices = how.gpus});
  const auto module = test::load_on(*platform, how.gpus, {{{"test", program, 1}}}, how.plan());
  test::Values found = test::run_module(*module, test::uneven_inputs(*program, 6), 2);
  const std::size_t sent = gpu::sent_bytes_of(test::plan_of(program, how.gpus, how.plan()));
  CHECK(test::calls_of(*platform).bytes_between == 2 * static_cast<std::size_t>(how.gpus) * sent);
  return found;
}

// Fails unless each possible number of GPUs leaves the bits of one.
void check_bits_of_one(const std::shared_ptr<const Program>& program,
                       const std::vector<std::size_t>& least_exchanged = {always, never},
                       const std::vector<std::size_t>& message_bytes = {gpu::PlanOptions{}.message_bytes}) {
  const test::Values one = run_exchanging(program, {});
  for (const int gpus : gpu::possible_gpu_counts(program->mesh, 8, gpu::Parts::whole_blocks)) {
    for (const std::size_t least : least_exchanged) {
      for (const std::size_t message : message_bytes) {
        INFO("GPUs " << gpus << ", exchanged from " << least << ", messages of " << message);
        CHECK((run_exchanging(program, {.gpus = gpus, .message_bytes = message, .least_exchanged = least}) == one));
      }
    }
  }
}

// A bucket of two gradients that are sums over the rows of each device, and of one that is there.
std::string step_over(const std::string& mesh, const std::string& all, const std::string& over) {
  return "mesh " + mesh + "\nparams %w:f32[5,3]{}\nbatch %x:f32[4,5]{" + all + "}\nbatch %y:f32[70]{" + all +
         "}\n%v = pvary[axes={" + all + "}] %w\n%p = matmul %x, %v\n%g = matmul[transpose_a=true] %x, %p\n" +
         "%h = reduce_sum[dims=[0]] %p\n%b = pack %g, %h, %y\n%loss = reduce_sum[dims=[0,1]] %p\n%s, %t = psum[axes={" +
         over + "}] %b, %loss\n%m = pmax[axes={" + over + "}] %y\n%rows = reshape[shape=[4,64]] %s\n" +
         "%sq, %most = norms %rows\nreturn s = %s\nreturn t = %t\nreturn m = %m\nreturn sq = %sq\n";
}

}  // namespace

TEST_CASE("GPUs have the largest subtrees of the tree of blocks that they have as a whole", "[gpu]") {
  const auto subtrees = [](const Mesh& mesh, int gpus, AxisSet over) {
    return gpu::sum_tree(gpu::blocks_of(mesh), gpu::divide(mesh, gpus), over).subtrees;
  };
  const AxisSet a = AxisSet::of(0), b = AxisSet::of(1);
  const Mesh eight({{"a", 16}});
  CHECK(subtrees(eight, 1, a) == std::vector<Subtree>{{{0, 8}, 0, 0}});
  CHECK(subtrees(eight, 2, a) == std::vector<Subtree>{{{0, 4}, 0, 0}, {{4, 4}, 1, 0}});
  CHECK(subtrees(eight, 8, a).size() == 8);
  // The tree of six blocks is one of four and one of two.
  CHECK(subtrees(Mesh({{"a", 6}}), 2, a) ==
        std::vector<Subtree>{{{0, 2}, 0, 0}, {{2, 1}, 0, 1}, {{3, 1}, 1, 0}, {{4, 2}, 1, 1}});
  CHECK(subtrees(Mesh({{"a", 6}}), 3, a) == std::vector<Subtree>{{{0, 2}, 0, 0}, {{2, 2}, 1, 0}, {{4, 2}, 2, 0}});
  // GPUs divide the inner axis, so they have every other block.
  const Mesh two({{"a", 3}, {"b", 4}});
  CHECK(subtrees(two, 2, b) == std::vector<Subtree>{{{0, 1}, 0, 0}, {{1, 1}, 1, 0}});
  CHECK(subtrees(two, 2, a) == std::vector<Subtree>{{{0, 3}, 0, 0}});
  const gpu::SumTree all = gpu::sum_tree(gpu::blocks_of(two), gpu::divide(two, 2), a | b);
  CHECK(all.slots == 3);
  CHECK(all.of_gpu(1) == std::vector<IndexRange>{{1, 1}, {3, 1}, {5, 1}});
}

TEST_CASE("a sum over GPUs has the bits of one GPU, whether parts are exchanged or all is gathered", "[gpu]") {
  struct Sums {
    std::string mesh, all, over;
  };
  for (const auto& [mesh, all, over] : std::vector<Sums>{{"a=16", "a", "a"},
                                                         {"a=6", "a", "a"},
                                                         {"a=10", "a", "a"},
                                                         {"a=2 b=4", "a, b", "a"},
                                                         {"a=2 b=4", "a, b", "b"},
                                                         {"a=4 b=2", "a, b", "a, b"},
                                                         {"a=3 b=4", "a, b", "a, b"},
                                                         {"a=3 b=4", "a, b", "b"}}) {
    INFO(mesh << " over " << over);
    // One message, or several.
    check_bits_of_one(test::program_of(step_over(mesh, all, over)), {always, never},
                      {gpu::PlanOptions{}.message_bytes, 0});
  }
}

TEST_CASE("steps of shipped configs whose gradients are exchanged have the bits of one GPU", "[gpu]") {
  for (const std::string config : {"cnn.yaml", "fashion_mnist.yaml", "nested_axes.yaml"}) {
    const std::shared_ptr<const Program> program = shortened(config, KernelChoice::reference).training;
    const int most = gpu::possible_gpu_counts(program->mesh, 8, gpu::Parts::whole_blocks).back();
    REQUIRE(most >= 4);
    INFO(config);
    check_bits_of_one(program, {always});
    // Another order of additions has other bits.
    CHECK_FALSE((run_exchanging(program, {.gpus = most, .deterministic = false}) == run_exchanging(program, {})));
  }
}

TEST_CASE("psum_scatter sends the parts alone, with the bits of one GPU", "[gpu]") {
  const std::string scatter =
      "mesh a=2 b=4\nbatch %x:f32[64]{AXES}\n%s = psum_scatter[axes={OVER}, dim=0] %x\n"
      "return s = %s\n";
  const auto with = [&](const std::string& axes, const std::string& over) {
    std::string text = scatter;
    text.replace(text.find("AXES"), 4, axes);
    return test::program_of(text.replace(text.find("OVER"), 4, over));
  };
  for (const auto& [axes, over] : std::vector<std::pair<std::string, std::string>>{
           {"a, b", "a, b"}, {"a, b", "b"}, {"a, b", "a"}, {"b", "b"}, {"a", "a"}}) {
    INFO("over " << over << " of " << axes);
    check_bits_of_one(with(axes, over));
  }
  const gpu::Plan plan = test::plan_of(with("a, b", "a, b"), 8, {.least_exchanged = always});
  INFO(to_string(plan));
  CHECK(gpu::sent_bytes_of(plan) == 7 * 8 * sizeof(float));
}

TEST_CASE("a deterministic sum over GPUs sends the bytes of a ring, and takes the memory of one bucket more", "[gpu]") {
  const std::string text = R"(mesh a=8
params %bucket:f32[1048576]{}
batch %x:f32[512,1024]{a}
batch %z:f32[512,1024]{a}
%y = tanh %x
%u = tanh %z
%g = pack %y, %u
%s = psum[axes={a}] %g
%new = sub %bucket, %s
update %bucket = %new
)";
  const auto program = test::program_of(text);
  const std::size_t bucket = (std::size_t{4} << 20);
  for (const std::size_t gpus : {std::size_t{2}, std::size_t{4}, std::size_t{8}}) {
    const auto plan_of = [&](bool deterministic, std::size_t message_bytes) {
      return test::plan_of(program, static_cast<int>(gpus),
                           {.deterministic = deterministic, .message_bytes = message_bytes});
    };
    for (const std::size_t message_bytes : {gpu::PlanOptions{}.message_bytes, std::size_t{1} << 20}) {
      const gpu::Plan plan = plan_of(true, message_bytes);
      INFO(to_string(plan));
      CHECK(gpu::sent_bytes_of(plan) == 2 * (gpus - 1) * bucket / gpus);
      CHECK(gpu::sent_bytes_of(plan) == gpu::sent_bytes_of(plan_of(false, message_bytes)));
      // The gradient of each block of the GPU, their sum, and what arrives, where the sum of all becomes complete.
      const std::size_t blocks = 8 / gpus;
      CHECK(plan.transient_bytes <= (blocks > 1 ? blocks + 2 : 2) * bucket);
    }
  }
}

TEST_CASE("of a sum whose parts devices take, GPUs send half of a ring's bytes, and gather what several read",
          "[gpu]") {
  const auto text = [](const std::string& axis, int shards) {
    return "mesh a=2 b=4\nparams %bucket:f32[" + std::to_string(1048576 / shards) + "]{" + axis +
           "}\nbatch %x:f32[512,1024]{a, b}\nbatch %z:f32[512,1024]{a, b}\n%y = tanh %x\n%u = tanh %z\n" +
           "%g = pack %y, %u\n%s = psum[axes={a, b}] %g\n%o = all_slice[axes={" + axis +
           "}, dim=0] %s\n%new = sub %bucket, %o\nupdate %bucket = %new\n";
  };
  constexpr std::size_t bucket = std::size_t{4} << 20;
  const auto sent = [&](const std::string& axis, int shards, int gpus, bool deterministic) {
    const gpu::Plan plan = test::plan_of(test::program_of(text(axis, shards)), gpus, {.deterministic = deterministic});
    INFO(to_string(plan));
    CHECK(plan.transient_bytes <= (8 / static_cast<std::size_t>(gpus) + 4) * bucket);
    return gpu::sent_bytes_of(plan);
  };
  for (const int gpus : {2, 4, 8}) {
    const auto ranks = static_cast<std::size_t>(gpus);
    for (const bool deterministic : {true, false}) {
      CHECK(sent("a, b", 8, gpus, deterministic) == (ranks - 1) * bucket / ranks);
    }
  }
  // Along some axes, the GPUs that read the same part gather what they have added of it. Two GPUs divide `a` alone, and
  // so each has devices that read any part along `b`.
  CHECK(sent("b", 4, 2, true) == bucket);
  CHECK(sent("b", 4, 4, true) == 3 * bucket / 4 + bucket / 4);
  CHECK(sent("b", 4, 8, true) == 7 * bucket / 8 + bucket / 8);
  CHECK(sent("a", 2, 2, true) == bucket / 2);
  CHECK(sent("a", 2, 8, true) == 7 * bucket / 8 + 3 * bucket / 8);
  // A library adds along `b` and then the parts along `a`: three quarters, and a ring of two with a quarter.
  CHECK(sent("b", 4, 8, false) == 3 * bucket / 4 + bucket / 4);
  CHECK(sent("a", 2, 8, false) == bucket / 2 + 2 * 3 * (bucket / 2) / 4);
}

TEST_CASE("parts of a sum have the bits of one GPU where the order of additions is fixed", "[gpu]") {
  // Of a bucket whose arrays are summed one by one, of one with more padding, and of an array that is there.
  const auto program = test::program_of(R"(mesh a=2 b=4
batch %x:f32[4,5]{a, b}
batch %k:f32[5,3]{a, b}
batch %y:f32[500]{a, b}
%p = matmul %x, %k
%g = matmul[transpose_a=true] %x, %p
%b = pack %y
%c = pack[elements=1024] %g, %y
%d = pack[elements=1024] %y, %g
%e = add %d, %d
%sb = psum[axes={a, b}] %b
%ob = all_slice[axes={a, b}, dim=0] %sb
%sc = psum[axes={a, b}] %c
%oc = all_slice[axes={a, b}, dim=0] %sc
%sd = psum[axes={a, b}] %d
%od = all_slice[axes={b}, dim=0] %sd
%oe = psum_scatter[axes={a, b}, dim=0] %e
return ob = %ob
return oc = %oc
return od = %od
return oe = %oe
)");
  check_bits_of_one(program);
}

TEST_CASE("parts of a sum along any of its axes have the bits of one GPU", "[gpu]") {
  for (const std::string along : {"a", "b", "c", "a, b", "a, c", "b, c", "a, b, c"}) {
    const auto program = test::program_of("mesh a=2 b=2 c=2\nbatch %x:f32[1024]{a, b, c}\nbatch %y:f32[50]{a, b, c}\n" +
                                          std::string("%g = pack[elements=512] %y\n%e = add %x, %x\n") +
                                          "%sx = psum[axes={a, b, c}] %e\n%ox = all_slice[axes={" + along +
                                          "}, dim=0] %sx\n%sg = psum[axes={a, b, c}] %g\n%og = all_slice[axes={" +
                                          along + "}, dim=0] %sg\nreturn ox = %ox\nreturn og = %og\n");
    INFO(along);
    check_bits_of_one(program);
  }
}

TEST_CASE("a sum along some axes that is read in parts along others is no sum of the parts", "[gpu]") {
  const auto program = test::program_of(
      "mesh a=2 b=2\nbatch %x:f32[64]{a}\n%s = psum[axes={a}] %x\n%o = all_slice[axes={b}, dim=0] %s\n"
      "%t = psum[axes={a}] %x\n%r = all_slice[axes={a, b}, dim=0] %t\nreturn o = %o\nreturn r = %r\n");
  const test::Values expected = run_exchanging(program, {});
  for (const bool deterministic : {true, false}) {
    CHECK(run_exchanging(program, {.gpus = 4, .deterministic = deterministic, .least_exchanged = always}) == expected);
  }
}

TEST_CASE("the tree of a message is added beside the backward pass, on the stream of its collectives", "[gpu]") {
  const auto program = test::program_of(step_over("a=8", "a", "a"));
  const std::string text = to_string(test::plan_of(program, 4, {.least_exchanged = always}));
  INFO(text);
  const auto at = [&](const std::string& part, std::size_t from) { return text.find(part, from); };
  const std::size_t exchange = at("= exchange", 0), reduce = at("= reduce", exchange),
                    gather = at("= all_gather", reduce);
  REQUIRE(gather != std::string::npos);
  CHECK(at("await", exchange) > gather);
}

TEST_CASE("a report of kernels says what each GPU sends to the others in a step", "[gpu]") {
  setup::Setup setup = shortened("cnn.yaml", KernelChoice::reference);
  setup.loaded.spec.mesh.backend = spec::Backend::cuda;
  setup.loaded.spec.mesh.workers = 2;
  const test::WithGpus gpus(test::make_emulated({.devices = 2}));
  const setup::PlannedSource run = setup::plan_run(setup);
  const std::size_t sent = run.planned->report(setup::train_entry).sent_bytes;
  CHECK(sent == gpu::sent_bytes_of(test::plan_of(setup.training, 2, {.deterministic = false})));
  const std::string text = report::kernels_text(report::kernel_report(*run.backend, *run.planned));
  CHECK(test::contains(text, "each GPU sends " + human_bytes(sent) + " to the others in a step\n"));
}

}  // namespace pmaptrain::testing
