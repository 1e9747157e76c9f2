// Programs whose flags are norms against what they were made from, bit by bit.
#include "core/passes/flags_as_norms.h"

#include <limits>
#include <string>

#include "core/graph/passes.h"
#include "core/graph/text.h"
#include "core/ops/all.h"
#include "core/passes/fuse.h"
#include "tests/catch.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {
namespace {

std::int64_t equations_of(const Program& program, std::string_view op) {
  std::int64_t total = 0;
  for (const Equation& equation : program.equations) total += equation.op.name() == op ? 1 : 0;
  return total;
}

// Whether the elements of x and of y are finite, as the optimizers' guard asks.
std::string guard(const std::string& rest, const std::string& dtype = "f32") {
  std::string text = "batch %x:" + dtype +
                     "[6,10]{}\nbatch %y:f32[7]{}\n%yes = constant[dtype=u8, shape=[], value=0.0]\n" +
                     "%no = constant[dtype=u8, shape=[], value=1.0]\n";
  for (const std::string name : {"x", "y"}) {
    text += "%" + name + "2 = mul %" + name + ", %" + name + "\n%" + name + "f = is_finite %" + name + "2\n%" + name +
            "u = select %" + name + "f, %yes, %no\n%" + name + "a = reduce_max[dims=[" + (name == "x" ? "0,1" : "0") +
            "]] %" + name + "u\n%" + name + "e = eq %" + name + "a, %yes\n";
  }
  return text + "%f = constant[dtype=bool, shape=[], value=0.0]\n%good = select %xe, %ye, %f\n" + rest +
         "return good = %good\n";
}

struct Changed {
  Program before, after;
};

Changed changed(const std::string& text) {
  Program before = fuse(simplify(*test::program_of(text)));
  Program after = flags_as_norms(before);
  const auto again = parse_program(to_text(after), "again.pmt", all_ops(), {});
  CHECK(to_text(again) == to_text(after));
  return {std::move(before), std::move(after)};
}

}  // namespace

TEST_CASE("flags of several arrays are found by norms, where an element is not finite and where all are", "[passes]") {
  for (const std::string dtype : {"f32", "f64", "bf16"}) {
    INFO(dtype);
    const auto [before, after] = changed(guard("", dtype));
    INFO(to_text(before));
    INFO(to_text(after));
    CHECK(equations_of(before, "reduce_max") == 2);
    CHECK(equations_of(after, "reduce_max") == 0);
    CHECK(equations_of(after, "norms") == 2);
    test::Values inputs = test::random_inputs(before, 5);
    const test::Values finite = test::interpreted(before, inputs);
    CHECK(test::interpreted(after, inputs) == finite);
    // Each of them alone, at its end: a square of infinity.
    for (const std::string name : {"x", "y"}) {
      test::Values others = inputs;
      auto& bytes = others.at(name).front();
      std::fill(bytes.end() - 8, bytes.end(), std::byte{0});
      bytes[bytes.size() - 1] = std::byte{0x7F};  // of every type an infinity, or what overflows
      bytes[bytes.size() - 2] = std::byte{0xF0};
      const test::Values found = test::interpreted(before, others);
      CHECK(found != finite);
      CHECK(test::interpreted(after, others) == found);
    }
  }
}

TEST_CASE("flags that something else reads, that are not of all elements, or that are alone stay", "[passes]") {
  const auto stays = [](const std::string& text) {
    const auto [before, after] = changed(text);
    INFO(to_text(before));
    CHECK(to_text(after) == to_text(before));
  };
  stays(guard("return marks = %xu\n"));
  stays(guard("return any = %xa\n"));
  std::string by_row = guard("");
  by_row.replace(by_row.find("[dims=[0,1]]"), 12, "[dims=[1]]");
  by_row.replace(by_row.find("%xe = eq %xa"), 12, "%xo = reduce_max[dims=[0]] %xa\n%xe = eq %xo");
  stays(by_row);
  std::string not_scalar =
      "batch %x:f32[1,9]{}\nbatch %y:f32[1,7]{}\n%yes = constant[dtype=u8, shape=[], value=0.0]\n"
      "%no = constant[dtype=u8, shape=[], value=1.0]\n%all = constant[dtype=u8, shape=[1], value=0.0]\n";
  for (const std::string name : {"x", "y"}) {
    not_scalar += "%" + name + "f = is_finite %" + name + "\n%" + name + "u = select %" + name + "f, %yes, %no\n%" +
                  name + "a = reduce_max[dims=[1]] %" + name + "u\n%" + name + "e = eq %" + name + "a, %all\n";
  }
  stays(not_scalar + "return x = %xe\nreturn y = %ye\n");
  stays(
      "batch %x:f32[9]{}\n%yes = constant[dtype=u8, shape=[], value=0.0]\n%no = constant[dtype=u8, shape=[], "
      "value=1.0]\n%f = is_finite %x\n%u = select %f, %yes, %no\n%a = reduce_max[dims=[0]] %u\n%e = eq %a, "
      "%yes\nreturn e = %e\n");
}

}  // namespace pmaptrain
