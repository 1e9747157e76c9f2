// Rows over nested sets of axes: a batch that an axis `data` divides, or none, beside activations that are divided over
// an axis `model`. All are cut into pieces of examples.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/graph/passes.h"
#include "core/graph/text.h"
#include "core/passes/pipeline.h"
#include "core/runtime/cpu/bind.h"
#include "core/runtime/cpu/parallelism.h"
#include "tests/catch.h"
#include "tests/golden.h"
#include "tests/runtime/nested_program_writer.h"
#include "tests/runtime/placements.h"
#include "tests/runtime/programs.h"
#include "tests/slice.h"

namespace pmaptrain {
namespace {

// A layer that is divided by columns, one that is divided by rows, and the gradients of both. `batch` are the axes that
// divide the batch: "data", or none.
std::string divided_layers(const std::string& mesh, const std::string& batch, std::int64_t rows, std::int64_t width) {
  const std::string both = batch.empty() ? "model" : batch + ", model", n = std::to_string(rows),
                    w = std::to_string(width), half = std::to_string(width / 2);
  const auto spread = [&](const std::string& of) {
    return batch.empty() ? "optimization_barrier %" + of : "pvary[axes={" + batch + "}] %" + of;
  };
  const auto sum = [&](const std::string& of) { return batch.empty() ? of : "s" + of; };
  std::string text = "mesh " + mesh + "\nbatch %x:f32[" + n + "," + w + "]{" + batch + "}\nparams %a:f32[" + w + "," +
                     half + "]{model}\nparams %b:f32[" + half + "," + w + "]{model}\n%xv = pvary[axes={model}] %x\n";
  text += "%av = " + spread("a") + "\n%bv = " + spread("b") + R"(
%h0 = matmul %xv, %av
%h = tanh %h0
%y0 = matmul %h, %bv
%y1 = psum[axes={model}] %y0
%y2 = tanh %y1
%y = sub %y2, %x
%q = mul %y, %y
%l = reduce_sum[dims=[0,1]] %q
%ev = pvary[axes={model}] %y
%gb = matmul[transpose_a=true] %h, %ev
%gh = matmul[transpose_b=true] %ev, %bv
%ga = matmul[transpose_a=true] %xv, %gh
)";
  if (!batch.empty()) text += "%sl, %sa, %sb = psum[axes={" + batch + "}] %l, %ga, %gb\n";
  if (batch.empty()) text += "%sa = neg %ga\n%sb = neg %gb\n";
  text += "%na = sub %a, %sa\n%nb = sub %b, %sb\nupdate %a = %na\nupdate %b = %nb\nreturn loss = %" + sum("l") +
          "\nreturn y = %y\n";
  return text;
}

// The same layers without a division, on a mesh of an axis that divides the batch.
std::string whole_layers(const std::string& mesh, std::int64_t rows, std::int64_t width) {
  const std::string n = std::to_string(rows), w = std::to_string(width);
  return "mesh " + mesh + "\nbatch %x:f32[" + n + "," + w + "]{data}\nparams %a:f32[" + w + "," + w +
         "]{}\nparams %b:f32[" + w + "," + w + R"(]{}
%h0 = matmul %x, %a
%h = tanh %h0
%y1 = matmul %h, %b
%y2 = tanh %y1
%y = sub %y2, %x
%q = mul %y, %y
%l = reduce_sum[dims=[0,1]] %q
%gb = matmul[transpose_a=true] %h, %y
%gh = matmul[transpose_b=true] %y, %b
%ga = matmul[transpose_a=true] %x, %gh
%sl, %sa, %sb = psum[axes={data}] %l, %ga, %gb
%na = sub %a, %sa
%nb = sub %b, %sb
update %a = %na
update %b = %nb
return loss = %sl
return y = %y
)";
}

// The names of what has other values than expected.
std::string differences(const test::Values& found, const test::Values& expected) {
  std::string names = found.empty() ? "nothing was found" : "";
  for (const auto& [name, values] : found) {
    if (values != expected.at(name)) names += name + "; ";
  }
  return names;
}

// The same of what processes give.
std::string differences_of_processes(const std::shared_ptr<const Program>& program, const test::Values& inputs,
                                     const test::Run& how, std::int64_t processes, const test::Values& expected) {
  return differences(test::run_placements(program, inputs, how, static_cast<int>(processes)), expected);
}

// The numbers of pieces of the cuts by rows, in order.
std::vector<std::size_t> pieces_of_rows(const cpu::Plan& plan) {
  std::vector<std::size_t> pieces;
  for (const cpu::Cut& cut : plan.cuts) {
    if (cut.rows_per_instance > 0) pieces.push_back(cut.pieces.size());
  }
  return pieces;
}

// The equations that run once for each piece of rows, as the numbers of these pieces, and those that do not: the names
// of their ops.
struct Cutting {
  std::vector<std::size_t> pieces;
  std::vector<std::string> others;
};
Cutting cutting_of(const cpu::Plan& plan) {
  Cutting found;
  const auto name = [&](const cpu::Instruction& instruction) {
    const Equation* const equation = cpu::equation_of(instruction);
    return std::string(equation == nullptr ? "copy" : equation->op.name());
  };
  for (const cpu::Stage& stage : plan.stages) {
    for (const cpu::PieceList& list : stage.piece_lists) {
      const cpu::Cut& cut = plan.cuts[static_cast<std::size_t>(list.cut)];
      for (const cpu::Instruction& instruction : list.instructions) {
        if (cut.rows_per_instance > 0) {
          found.pieces.push_back(cpu::extents_of(plan, list).size());
        } else {
          found.others.push_back(name(instruction));
        }
      }
    }
    for (const cpu::Instruction& instruction : stage.every_worker) found.others.push_back(name(instruction));
    for (const cpu::Instruction& instruction : stage.tasks) found.others.push_back(name(instruction));
    for (const cpu::ChunkList& list : stage.chunk_lists) {
      for (const cpu::Instruction& instruction : list.instructions) found.others.push_back(name(instruction));
    }
  }
  std::sort(found.others.begin(), found.others.end());
  return found;
}

TEST_CASE("the work of a batch is cut into as many pieces on an axis that divides layers as on one that divides it",
          "[runtime][nested]") {
  const auto by_data = test::program_of(whole_layers("data=2", 32, 64));
  const cpu::Plan expected = cpu::make_plan(by_data, {false, 8});
  CHECK(pieces_of_rows(expected) == std::vector<std::size_t>{8});
  for (const auto& [mesh, batch, rows] : {std::tuple("model=2", "", 64), std::tuple("data=2 model=2", "data", 32),
                                          std::tuple("model=2 data=2", "data", 32)}) {
    const auto by_model = test::program_of(divided_layers(mesh, batch, rows, 64));
    const cpu::Plan plan = cpu::make_plan(by_model, {false, 8});
    INFO(to_text(plan));
    // The rows of the divided activations, and those of the examples.
    CHECK(pieces_of_rows(plan) == std::vector<std::size_t>{8, 8});
    const Cutting cutting = cutting_of(plan);
    CHECK(std::count(cutting.pieces.begin(), cutting.pieces.end(), 8U) == std::ssize(cutting.pieces));
    // What remains are the sums over all examples, and the update of each parameter.
    const std::vector<std::string> neg{"neg", "neg"}, rest{"psum", "psum", "psum", "sub", "sub"};
    std::vector<std::string> others = rest;
    if (std::string(batch).empty()) others.insert(others.begin(), neg.begin(), neg.end());
    CHECK(cutting.others == others);
    const Cutting of_data = cutting_of(expected);
    CHECK(of_data.others == rest);
    // The divided layers have a sum along `model` more.
    CHECK(cutting.pieces.size() == of_data.pieces.size() + 1);
  }
}

TEST_CASE("the report of a plan counts as many tasks for divided layers as for a divided batch", "[runtime][nested]") {
  const auto tasks = [](const std::string& text) {
    const cpu::Plan plan = cpu::make_plan(test::program_of(text), {false, 8});
    const cpu::BoundPlan bound(plan, {KernelChoice::reference, {}});
    std::int64_t most = 0;
    for (const StageReport& stage : cpu::parallelism_of(plan, bound)) most = std::max(most, stage.tasks);
    return most;
  };
  const std::int64_t expected = tasks(whole_layers("data=2", 32, 64));
  CHECK(expected == 8);
  CHECK(tasks(divided_layers("model=2", "", 64, 64)) == expected);
  CHECK(tasks(divided_layers("data=2 model=2", "data", 32, 64)) == expected);
}

TEST_CASE("a large gradient of a divided layer is computed in parts, for each position along the axis",
          "[runtime][nested]") {
  for (const auto& [mesh, batch] : {std::pair("model=2", ""), std::pair("data=2 model=2", "data"),
                                    std::pair("model=2 data=2", "data"), std::pair("data=4 model=2", "data")}) {
    const auto program = test::program_of(divided_layers(mesh, batch, 12, 320));
    const cpu::Plan plan = cpu::make_plan(program, {false, 8});
    INFO(to_text(plan));
    std::int64_t products = 0, tasks = 0, parts = 0;
    for (const cpu::Stage& stage : plan.stages) {
      for (const cpu::Instruction& task : stage.tasks) {
        const auto* const product = task.as<cpu::ProductInParts>();
        if (product == nullptr) continue;
        ++products;
        parts += product->parts;
        tasks += std::ssize(cpu::extents_of(plan, task));
      }
    }
    CHECK(products == 2);
    CHECK(tasks == 2 * parts);
    const test::Values inputs = test::uneven_inputs(*program, 3);
    const std::int64_t devices = program->mesh.devices();
    for (std::int64_t blocks = 1; blocks <= devices; blocks *= 2) {
      INFO(blocks << " blocks");
      const test::Values expected = test::same_for_all_workers(program, inputs, 8, blocks);
      for (int processes = 2; processes <= blocks; processes *= 2) {
        INFO(processes << " processes");
        for (const bool private_copies : {false, true}) {
          const test::Run how{2, private_copies, 3, false, KernelChoice::best, 8, blocks};
          CHECK(differences_of_processes(program, inputs, how, processes, expected) == "");
        }
      }
    }
  }
}

TEST_CASE("a plan of rows over nested sets of axes is what the golden text says", "[runtime][nested]") {
  std::string all;
  for (const auto& [mesh, batch] : {std::pair("model=2", ""), std::pair("data=2 model=2", "data")}) {
    const auto program = test::program_of(divided_layers(mesh, batch, 6, 4));
    for (const bool private_copies : {false, true}) {
      all += std::string(mesh) + (private_copies ? ", private copies\n" : ", shared copies\n") +
             to_text(cpu::make_plan(program, {private_copies, 4})) + "\n";
    }
  }
  test::check_golden("nested_plans.txt", all);
}

// Microbatches of divided layers: devices communicate in each iteration.
std::string divided_microbatches(const std::string& mesh, const std::string& batch) {
  const std::string both = batch.empty() ? "model" : batch + ", model";
  const std::string spread = batch.empty() ? "optimization_barrier %w" : "pvary[axes={" + batch + "}] %w";
  std::string text = "mesh " + mesh + "\nbatch %x:i32[24,700]{" + batch +
                     "}\nparams %w:i32[700,2]{model}\n%wv = " + spread +
                     "\n%zero = constant[dtype=i32, shape=[700,2], value=0]\n%z = pvary[axes={" + both +
                     "}] %zero\n%none = constant[dtype=i32, shape=[], value=0]\n%l0 = " +
                     (batch.empty() ? "optimization_barrier %none" : "pvary[axes={" + batch + "}] %none");
  text += "\n%g, %l = loop[iterations=3, consts=1, carries=2] %wv, %z, %l0, %x (%u:i32[700,2]{" + both +
          "}, %c:i32[700,2]{" + both + "}, %s:i32[]{" + batch + "}, %m:i32[8,700]{" + batch + "}) {" + R"(
  %mv = pvary[axes={model}] %m
  %h = matmul %mv, %u
  %t = psum[axes={model}] %h
  %k = mul %t, %t
  %o = reduce_sum[dims=[0,1]] %k
  %n = add %s, %o
  %tv = pvary[axes={model}] %t
  %d = matmul[transpose_a=true] %mv, %tv
  %e = add %c, %d
  yield %e, %n
}
)";
  if (batch.empty()) return text + "%v = add %w, %g\nupdate %w = %v\nreturn loss = %l\n";
  return text + "%sg, %sl = psum[axes={" + batch + "}] %g, %l\n%v = add %w, %sg\nupdate %w = %v\nreturn loss = %sl\n";
}

TEST_CASE("the microbatches of divided layers are cut by rows, and give the interpreter's values",
          "[runtime][nested]") {
  for (const auto& [mesh, batch] :
       {std::pair("model=2", ""), std::pair("data=2 model=2", "data"), std::pair("model=2 data=3", "data")}) {
    const std::string text = divided_microbatches(mesh, batch);
    const auto program = test::program_of(text);
    CHECK(pieces_of_rows(cpu::make_plan(program, {false, 8})).size() == 2);
    test::check_runtime(text);
    const test::Values inputs = test::random_inputs(*program, 5), expected = test::interpreted(*program, inputs);
    const auto devices = static_cast<int>(program->mesh.devices());
    const test::Run how{2, false, 1, false, KernelChoice::best, 8, devices};
    CHECK(differences_of_processes(program, inputs, how, devices, expected) == "");
  }
}

TEST_CASE("a sum over rows that several devices have is added once for each of them", "[runtime][nested]") {
  const std::string sums = R"(%y = add %x, %x
%p = reduce_sum[dims=[0]] %y
%v = pvary[axes={model}] %p
)";
  test::check_runtime("mesh data=2 model=2\nbatch %x:i32[9,6]{data}\n" + sums +
                      "%s = psum[axes={data, model}] %v\nreturn s = %s\n");
  test::check_runtime("mesh model=2\nbatch %x:i32[9,6]{}\n" + sums + "%s = psum[axes={model}] %v\nreturn s = %s\n");
}

// By hand: PMAPTRAIN_RANDOM_PROGRAMS=FIRST:LAST
std::vector<std::uint32_t> seeds(std::uint32_t count) {
  std::uint32_t first = 0, last = count;
  test::Slice slice(4);
  if (const char* range = std::getenv("PMAPTRAIN_RANDOM_PROGRAMS")) {
    const std::string text = range;
    first = static_cast<std::uint32_t>(std::stoul(text));
    last = static_cast<std::uint32_t>(std::stoul(text.substr(text.find(':') + 1)));
    slice = test::Slice(1);
  }
  std::vector<std::uint32_t> taken;
  for (std::uint32_t seed = first; seed < last; ++seed) {
    if (slice.takes()) taken.push_back(seed);
  }
  return taken;
}

std::vector<std::int64_t> divisors_of(std::int64_t n) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 1; i <= n; ++i) {
    if (n % i == 0) all.push_back(i);
  }
  return all;
}

TEST_CASE("random programs over nested sets of axes give the interpreter's values", "[runtime][nested]") {
  for (const std::uint32_t seed : seeds(60)) {
    const auto program = test::program_of(test::NestedProgramWriter(seed, DType::i32).write());
    INFO("seed " << seed << "\n" << to_text(*program));
    const test::Values inputs = test::random_inputs(*program, seed);
    const test::Values expected = test::interpreted(*program, inputs, 2);
    for (const int workers : {1, 3}) {
      for (const bool private_copies : {false, true}) {
        INFO("workers " << workers << ", private copies " << private_copies);
        REQUIRE(differences(test::run_program(program, inputs, {workers, private_copies, 2}), expected) == "");
      }
    }
    for (const std::int64_t blocks : divisors_of(program->mesh.devices())) {
      INFO(blocks << " blocks");
      const test::Run how{2, blocks % 2 == 0, 2, false, KernelChoice::reference, 5, blocks};
      REQUIRE(differences(test::run_program(program, inputs, how), expected) == "");
      REQUIRE(differences_of_processes(program, inputs, how, blocks, expected) == "");
    }
    const auto passed = std::make_shared<const Program>(run_passes(simplify(*program), passes_of_all_backends()));
    INFO("after the passes\n" << to_text(*passed));
    for (const bool private_copies : {false, true}) {
      REQUIRE(differences(test::run_program(passed, inputs, {2, private_copies, 2}), expected) == "");
    }
    for (const test::CheckProgram check : test::other_backends()) check(passed);
  }
}

TEST_CASE("random programs over nested sets of axes have the same bits for any number of workers and processes",
          "[runtime][nested][placements]") {
  for (const std::uint32_t seed : seeds(40)) {
    const auto program = test::program_of(test::NestedProgramWriter(seed, DType::f32).write());
    INFO("seed " << seed << "\n" << to_text(*program));
    const test::Values inputs = test::uneven_inputs(*program, seed);
    for (const std::int64_t blocks : divisors_of(program->mesh.devices())) {
      INFO(blocks << " blocks");
      const auto how = [&](int workers, bool private_copies) {
        return test::Run{workers, private_copies, 2, false, KernelChoice::best, 8, blocks};
      };
      const test::Values expected = test::run_program(program, inputs, how(1, false));
      REQUIRE(differences(test::run_program(program, inputs, how(3, true)), expected) == "");
      for (const std::int64_t processes : divisors_of(blocks)) {
        INFO(processes << " processes");
        const test::Run other = how(2, processes % 2 == 0);
        REQUIRE(differences_of_processes(program, inputs, other, processes, expected) == "");
      }
    }
  }
}

}  // namespace
}  // namespace pmaptrain
