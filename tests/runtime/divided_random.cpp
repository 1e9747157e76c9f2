// Random values of arrays that are divided along an axis `model`, in the runtime: each device has what one device that
// has the whole array draws for these elements.
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/text.h"
#include "tests/catch.h"
#include "tests/runtime/placements.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {
namespace {

// Of rows [6, outer, inner] the devices along `model` have parts of `outer` or of `inner`. `keep` is a sum over the
// examples, and the bits of bernoulli are in it.
struct Division {
  std::int64_t outer, inner, data, model;
  bool of_inner;

  std::int64_t own_outer() const { return of_inner ? outer : outer / model; }
  std::int64_t own_inner() const { return of_inner ? inner / model : inner; }
};

std::string program_text(const Division& d, bool is_divided) {
  const std::string shape = is_divided ? std::to_string(d.own_outer()) + "," + std::to_string(d.own_inner())
                                       : std::to_string(d.outer) + "," + std::to_string(d.inner);
  const std::string part = ", strides=[" + std::to_string(d.inner) + ",1]";
  const std::string arguments = is_divided ? "%k, %r, %offset" : "%k, %r";
  const std::string rows = d.data > 1 ? "{data}" : "{}";
  std::string text = "mesh";
  if (d.data > 1) text += " data=" + std::to_string(d.data);
  if (is_divided) text += " model=" + std::to_string(d.model);
  text += "\nbatch %rows:i64[6]" + rows + "\nparams %key:u32[2]{}";
  text += is_divided ? "\n%r = pvary[axes={model}] %rows" : "\n%r = optimization_barrier %rows";
  const std::string all = d.data > 1 && is_divided ? "data, model" : d.data > 1 ? "data" : is_divided ? "model" : "";
  text += all.empty() ? "\n%k = optimization_barrier %key" : "\n%k = pvary[axes={" + all + "}] %key";
  if (is_divided) {
    // Of columns the number of a device's first column, of rows that of its first row times their width.
    text += "\n%at = axis_index[axes={model}]\n%each = constant[dtype=i32, shape=[], value=" +
            std::to_string(d.of_inner ? d.own_inner() : d.own_outer() * d.inner) + "]";
    text += "\n%first = mul %at, %each";
    text += d.data > 1 ? "\n%offset = pvary[axes={data}] %first" : "\n%offset = optimization_barrier %first";
  }
  const std::string strides = is_divided ? part : "";
  text += "\n%u = random_uniform[shape=[" + shape + "]" + strides + "] " + arguments;
  text += "\n%n = random_normal[shape=[" + shape + "]" + strides + "] " + arguments;
  text += "\n%b = random_bernoulli[shape=[" + shape + "], probability=0.4" + strides + "] " + arguments;
  text += R"(
%f = cast[dtype=f32] %b
%m = mul %n, %f
%s = reduce_sum[dims=[0]] %f
return u = %u
return m = %m
return s = %s
)";
  return text;
}

// The part of a device along `model` of an array [rows, outer, inner] of f32, whose bytes are given.
std::vector<std::byte> part_of(const std::vector<std::byte>& whole, const Division& d, std::int64_t device) {
  std::vector<std::byte> part;
  const auto rows = static_cast<std::int64_t>(whole.size()) / (d.outer * d.inner * 4);
  const std::int64_t first_outer = d.of_inner ? 0 : device * d.own_outer();
  const std::int64_t first_inner = d.of_inner ? device * d.own_inner() : 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t o = first_outer; o < first_outer + d.own_outer(); ++o) {
      const auto begin = whole.begin() + ((r * d.outer + o) * d.inner + first_inner) * 4;
      part.insert(part.end(), begin, begin + d.own_inner() * 4);
    }
  }
  return part;
}

void check_outputs(const test::Values& found, const test::Values& expected) {
  for (const char* const name : {"output u", "output m", "output s"}) {
    INFO(name);
    CHECK((found.at(name) == expected.at(name)));
  }
}

TEST_CASE("devices that have parts of an array draw the bits of the undivided one", "[runtime][placements][divided]") {
  for (const Division& d : {Division{4, 6, 1, 2, true}, Division{4, 6, 2, 3, true}, Division{4, 6, 2, 2, false},
                            Division{3, 40, 4, 4, true}, Division{8, 5, 3, 4, false}}) {
    const auto whole = test::program_of(program_text(d, false)), program = test::program_of(program_text(d, true));
    INFO(to_text(*program));
    const test::Values inputs = test::random_inputs(*whole, 5);
    test::Values repeated, expected;
    for (const auto& [name, arrays] : inputs) {
      for (std::int64_t i = 0; i < d.data * d.model; ++i) {
        repeated[name].push_back(arrays[static_cast<std::size_t>(i / d.model)]);
      }
    }
    for (const auto& [name, arrays] : test::interpreted(*whole, inputs)) {
      if (!name.starts_with("output ")) continue;
      for (std::int64_t i = 0; i < d.data * d.model; ++i) {
        expected[name].push_back(part_of(arrays[static_cast<std::size_t>(i / d.model)], d, i % d.model));
      }
    }
    check_outputs(test::interpreted(*program, repeated), expected);
    for (const KernelChoice kernels : {KernelChoice::reference, KernelChoice::best}) {
      for (const int workers : {1, 2, 3}) {
        check_outputs(test::run_program(program, repeated, {workers, workers == 2, 1, false, kernels}), expected);
      }
      for (const int processes : {2, 4}) {
        if (d.data * d.model % processes != 0) continue;
        const test::Run how{2, false, 1, false, kernels, 8, processes};
        check_outputs(test::run_placements(program, repeated, how, processes), expected);
      }
    }
    for (const test::CheckProgram check : test::other_backends()) check(program);
  }
}

// Attention with dropout of 4 positions and 4 heads of 5 elements, of which the devices along `model` have their own.
std::string attention_text(const Division& d, bool is_divided) {
  const std::string heads = is_divided ? std::to_string(4 / d.model) : "4";
  const std::string array = "f32[6,4," + heads + ",5]" + (is_divided ? "{data, model}" : "{data}");
  std::string text = "mesh data=" + std::to_string(d.data);
  if (is_divided) text += " model=" + std::to_string(d.model);
  for (const char* const name : {"q", "k", "v", "dout"}) text += std::string("\nbatch %") + name + ":" + array;
  text += "\nbatch %rows:i64[6]{data}\nparams %key:u32[2]{}";
  const std::string all = is_divided ? "data, model" : "data";
  text += is_divided ? "\n%r = pvary[axes={model}] %rows" : "\n%r = optimization_barrier %rows";
  text += "\n%kk = pvary[axes={" + all + "}] %key";
  text += R"(
%rate0 = constant[dtype=f32, shape=[], value=0.5]
%scale0 = constant[dtype=f32, shape=[], value=2.0])";
  for (const char* const name : {"rate", "scale"}) {
    text += std::string("\n%") + name + " = pvary[axes={" + all + "}] %" + name + "0";
  }
  if (is_divided) {
    text += "\n%at = axis_index[axes={model}]\n%each0 = constant[dtype=i32, shape=[], value=" +
            std::to_string(4 / d.model * 16) + "]\n%each = pvary[axes={model}] %each0\n%first = mul %at, %each";
    text += "\n%offset = pvary[axes={data}] %first";
  }
  const std::string flags = is_divided ? "[causal=true, offset=true]" : "[causal=true]";
  const std::string dropout = std::string("%kk, %r, %rate, %scale") + (is_divided ? ", %offset" : "");
  text += "\n%out, %lse = attention" + flags + " %q, %k, %v, " + dropout;
  text += "\n%dq, %dk, %dv = attention_grad" + flags + " %q, %k, %v, %out, %lse, %dout, " + dropout;
  for (const char* const name : {"out", "dq", "dk", "dv"}) text += std::string("\nreturn ") + name + " = %" + name;
  return text + "\n";
}

TEST_CASE("devices that have some of the heads of an attention drop what one device drops",
          "[runtime][placements][divided]") {
  for (const std::int64_t model : {2, 4}) {
    const Division d{4, 20, 2, model, true};
    const auto whole = test::program_of(attention_text(d, false)), program = test::program_of(attention_text(d, true));
    INFO(to_text(*program));
    const auto divided = [&](const test::Values& values) {
      test::Values parts;
      for (const auto& [name, arrays] : values) {
        const bool has_heads = arrays.front().size() == 6 * 4 * 20 * 4;
        for (std::int64_t i = 0; i < d.data * d.model; ++i) {
          const auto& array = arrays[static_cast<std::size_t>(i / d.model)];
          parts[name].push_back(has_heads ? part_of(array, d, i % d.model) : array);
        }
      }
      return parts;
    };
    const test::Values inputs = test::random_inputs(*whole, 5);
    for (const KernelChoice kernels : {KernelChoice::reference, KernelChoice::best}) {
      const test::Values expected = divided(test::run_program(whole, inputs, {1, false, 1, false, kernels}));
      const auto check = [&](const test::Values& found) {
        for (const char* const name : {"output out", "output dq", "output dk", "output dv"}) {
          INFO(name);
          CHECK((found.at(name) == expected.at(name)));
        }
      };
      for (const int workers : {1, 2, 3}) {
        check(test::run_program(program, divided(inputs), {workers, workers == 2, 1, false, kernels}));
      }
      for (const int processes : {2, 4}) {
        check(test::run_placements(program, divided(inputs), {2, false, 1, false, kernels, 8, processes}, processes));
      }
    }
    for (const test::CheckProgram check : test::other_backends()) check(program);
  }
}

}  // namespace
}  // namespace pmaptrain
