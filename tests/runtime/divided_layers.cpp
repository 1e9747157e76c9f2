// A product divided by columns and one divided by rows along an axis `model`, as a layer that is divided over devices
// has them, with its gradients: the values of the undivided products.
//
// h = relu(x a + c) is divided by columns, and so y = h b + d is a sum along `model`. All else is equal on the devices
// along the axis: the examples, d, and the gradients of both.
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/text.h"
#include "tests/catch.h"
#include "tests/runtime/placements.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {
namespace {

using Bytes = std::vector<std::byte>;

struct Sizes {
  std::int64_t rows, in, hidden, out;  // the rows of one position along `data`
  std::int64_t data = 1, model = 1;
};

std::string axes_of(const Sizes& sizes, bool along_model) {
  std::string axes = sizes.data > 1 ? "data" : "";
  if (along_model && sizes.model > 1) axes += axes.empty() ? "model" : ", model";
  return "{" + axes + "}";
}

// The step of one device. With one position along `model` it is that of the undivided layers.
std::string step_text(const Sizes& sizes) {
  const auto array = [](std::initializer_list<std::int64_t> shape, const std::string& axes) {
    std::string text = "f32[";
    for (const std::int64_t n : shape) text += (text.back() == '[' ? "" : ",") + std::to_string(n);
    return text + "]" + axes;
  };
  const auto dims = [](std::int64_t first, std::int64_t second) {
    return "[" + std::to_string(first) + "," + std::to_string(second) + "]";
  };
  const std::string rows = axes_of(sizes, false), columns = sizes.model > 1 ? "{model}" : "{}";
  const std::int64_t n = sizes.rows, own = sizes.hidden / sizes.model;
  // Along an axis that the mesh has not, nothing varies and nothing is added.
  const auto along = [](std::int64_t size, const std::string& op, const std::string& axis, const std::string& operand) {
    return size > 1 ? op + "[axes={" + axis + "}] " + operand : "optimization_barrier " + operand;
  };
  const auto sum = [&](const std::string& operand) { return along(sizes.data, "psum", "data", operand); };
  std::string text = "mesh";
  if (sizes.data > 1) text += " data=" + std::to_string(sizes.data);
  if (sizes.model > 1) text += " model=" + std::to_string(sizes.model);
  text += "\nbatch %x:" + array({n, sizes.in}, rows) + "\nbatch %t:" + array({n, sizes.out}, rows);
  text += "\nparams %a:" + array({sizes.in, own}, columns) + "\nparams %c:" + array({own}, columns);
  text += "\nparams %b:" + array({own, sizes.out}, columns) + "\nparams %d:" + array({sizes.out}, "{}");
  text += "\n%xv = " + along(sizes.model, "pvary", "model", "%x");
  for (const char* const name : {"a", "c", "b", "d"}) {
    text += std::string("\n%") + name + "v = " + along(sizes.data, "pvary", "data", std::string("%") + name);
  }
  text += "\n%h0 = matmul %xv, %av\n%h1 = broadcast[shape=" + dims(n, own) + ", dims=[1]] %cv";
  text += "\n%h2 = add %h0, %h1\n%h = relu %h2\n%y0 = matmul %h, %bv";
  text += "\n%y1 = " + along(sizes.model, "psum", "model", "%y0");
  text += "\n%y2 = broadcast[shape=" + dims(n, sizes.out) + ", dims=[1]] %dv\n%y = add %y1, %y2";
  text += R"(
%e = sub %y, %t
%q = mul %e, %e
%l = reduce_sum[dims=[0,1]] %q)";
  text += "\n%ev = " + along(sizes.model, "pvary", "model", "%e");
  text += R"(
%gb = matmul[transpose_a=true] %h, %ev
%gd = reduce_sum[dims=[0]] %e
%gh0 = matmul[transpose_b=true] %ev, %bv
%zero = constant[dtype=f32, shape=[], value=0.0]
%on = gt %h2, %zero
%gh = select %on, %gh0, %zero
%ga = matmul[transpose_a=true] %xv, %gh
%gc = reduce_sum[dims=[0]] %gh
%gx0 = matmul[transpose_b=true] %gh, %av)";
  text += "\n%gx = " + along(sizes.model, "psum", "model", "%gx0");
  for (const char* const name : {"a", "c", "b", "d"}) {
    const std::string of = name;
    text += "\n%s" + of + " = " + sum("%g" + of) + "\n%n" + of + " = sub %" + of + ", %s" + of;
    text += "\nupdate %" + of + " = %n" + of;
  }
  text += "\n%loss = " + sum("%l") + "\nreturn loss = %loss\nreturn y = %y\nreturn gx = %gx\n";
  return text;
}

// Of an array of `rows` rows of `columns` f32, the part of `parts` with this number: of its rows, or of its columns.
Bytes part_of(const Bytes& whole, std::int64_t rows, bool of_columns, std::int64_t parts, std::int64_t number) {
  const std::size_t size = whole.size() / static_cast<std::size_t>(parts);
  if (!of_columns) {
    const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(size) * number;
    return {begin, begin + static_cast<std::ptrdiff_t>(size)};
  }
  const auto row = static_cast<std::ptrdiff_t>(whole.size()) / rows, own = row / parts;
  Bytes part;
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto begin = whole.begin() + row * i + own * number;
    part.insert(part.end(), begin, begin + own);
  }
  return part;
}

// What the devices of the divided layers have, where those of the undivided ones, one for each position along `data`,
// have `whole`.
test::Values divided(const test::Values& whole, const Sizes& sizes) {
  test::Values values;
  for (const auto& [name, arrays] : whole) {
    const std::string variable = name.substr(name.find(' ') + 1);
    for (std::int64_t d = 0; d < sizes.data * sizes.model; ++d) {
      const Bytes& of = arrays[static_cast<std::size_t>(d / sizes.model)];
      const bool by_columns = variable == "a" || variable == "c", by_rows = variable == "b";
      const std::int64_t rows = variable == "a" ? sizes.in : variable == "b" ? sizes.hidden : 1;
      values[name].push_back(by_columns || by_rows ? part_of(of, rows, by_columns, sizes.model, d % sizes.model) : of);
    }
  }
  return values;
}

// Whether results are equal to rounding: sums along `model` have another order.
bool close(const Program& program, const test::Values& found, const test::Values& expected) {
  for (const auto& [name, values] : found) {
    INFO(name);
    const bool same = test::close(test::dtype_of(program, name), values, expected.at(name));
    CHECK(same);
    if (!same) return false;
  }
  return !found.empty();
}

// Calls check(sizes, program, inputs, expected) for the divided layers on several meshes, with what the interpreter
// gives for the undivided ones.
void for_each_mesh(const std::function<void(const Sizes&, const std::shared_ptr<const Program>&, const test::Values&,
                                            const test::Values&)>& check) {
  for (const Sizes& sizes : {Sizes{12, 5, 8, 3, 1, 2}, Sizes{12, 5, 8, 3, 2, 2}, Sizes{12, 5, 8, 3, 2, 4},
                             Sizes{96, 40, 64, 24, 1, 2}, Sizes{96, 40, 64, 24, 4, 2}}) {
    Sizes undivided = sizes;
    undivided.model = 1;
    const auto whole = test::program_of(step_text(undivided)), program = test::program_of(step_text(sizes));
    const test::Values inputs = test::random_inputs(*whole, 3);
    INFO(to_text(*program));
    check(sizes, program, divided(inputs, sizes), divided(test::interpreted(*whole, inputs), sizes));
  }
}

TEST_CASE("a product divided by columns and one by rows have the values of the undivided ones", "[runtime][divided]") {
  for_each_mesh([](const Sizes&, const std::shared_ptr<const Program>& program, const test::Values& inputs,
                   const test::Values& expected) {
    CHECK(close(*program, test::interpreted(*program, inputs), expected));
    for (const int workers : {1, 2, 3}) {
      for (const bool private_copies : {false, true}) {
        INFO("workers " << workers << ", private copies " << private_copies);
        CHECK(close(*program,
                    test::run_program(program, inputs, {workers, private_copies, 1, false, KernelChoice::best}),
                    expected));
      }
    }
    for (const test::CheckProgram check : test::other_backends()) check(program);
  });
}

TEST_CASE("processes that divide layers have the values of the undivided ones", "[runtime][placements][divided]") {
  for_each_mesh([](const Sizes& sizes, const std::shared_ptr<const Program>& program, const test::Values& inputs,
                   const test::Values& expected) {
    for (const int processes : {1, 2, 4}) {
      if (sizes.data * sizes.model % processes != 0) continue;
      for (const bool private_copies : {false, true}) {
        INFO("processes " << processes << ", private copies " << private_copies);
        const test::Run how{2, private_copies, 1, false, KernelChoice::best, 8, processes};
        CHECK(close(*program, test::run_placements(program, inputs, how, processes), expected));
      }
    }
  });
}

}  // namespace
}  // namespace pmaptrain
