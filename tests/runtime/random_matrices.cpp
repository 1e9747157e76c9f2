// Random programs over one axis, of matrices: reductions, broadcasts, views, transposes and loops.
#include <cstdint>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/runtime/programs.h"
#include "tests/slice.h"

namespace pmaptrain {
namespace {

using test::check_runtime;
using test::device_counts;

// Random programs of elementwise ops, reductions, matmuls, psums and loops on [4,4] matrices of whole numbers.
class Generator {
 public:
  explicit Generator(std::uint32_t seed) : state_(seed * 2654435761u + 99u) {}

  std::string program() {
    text_ = "batch %x:i32[4,4]{a}\nbatch %w:i32[4,4]{}\nstate %s:i32[4,4]{a}\nstate %t:i32[4,4]{}\n";
    varying_ = {"x", "s"};
    same_ = {"w", "t"};
    const std::uint32_t count = 8 + below(12);
    for (std::uint32_t i = 0; i < count; ++i) add_equation("v" + std::to_string(i));
    text_ += "update %s = %" + pick(varying_) + "\nupdate %t = %" + pick(same_) + "\n";
    for (int i = 0; i < 3; ++i) text_ += "return a" + std::to_string(i) + " = %" + pick(varying_) + "\n";
    for (int i = 0; i < 2; ++i) text_ += "return b" + std::to_string(i) + " = %" + pick(same_) + "\n";
    return text_;
  }

 private:
  std::uint32_t below(std::uint32_t n) {
    state_ = state_ * 1664525u + 1013904223u;
    return (state_ >> 16) % n;
  }
  const std::string& pick(const std::vector<std::string>& names) {
    return names[below(static_cast<std::uint32_t>(names.size()))];
  }

  void add_equation(const std::string& name) {
    const bool varies = below(3) != 0;
    std::vector<std::string>& names = varies ? varying_ : same_;
    const std::string a = "%" + pick(names), b = "%" + pick(below(4) == 0 ? same_ : names);
    const std::string set = varies ? "{a}" : "{}";
    const std::string head = "%" + name + " = ";
    switch (below(10)) {
      case 0: text_ += head + "add " + a + ", " + b; break;
      case 1: text_ += head + "sub " + a + ", " + b; break;
      case 2: text_ += head + "max " + a + ", " + b; break;
      case 3: text_ += head + "neg " + a; break;
      case 4: text_ += head + "transpose[permutation=[1,0]] " + a; break;
      case 5:
        text_ += "%" + name + "r = reduce_sum[dims=[0]] " + a + "\n" + head + "broadcast[shape=[4,4], dims=[1]] %" +
                 name + "r";
        break;
      case 6:
        text_ += "%" + name + "f = reshape[shape=[16]] " + a + "\n%" + name + "n = neg %" + name + "f\n" + head +
                 "reshape[shape=[4,4]] %" + name + "n";
        break;
      case 7: {
        const std::string type = "i32[4,4]" + set;
        text_ += head + "loop[iterations=2, consts=0, carries=1] " + a + ", %" + pick(names) + " (%" + name +
                 "c:" + type + ", %" + name + "y:i32[2,4]" + set + ") {\n  %" + name + "z = reduce_max[dims=[0]] %" +
                 name + "y\n  %" + name + "b = broadcast[shape=[4,4], dims=[0]] %" + name + "z\n  %" + name +
                 "q = sub %" + name + "c, %" + name + "b\n  yield %" + name + "q\n}";
        break;
      }
      case 8:
        if (varies) {
          text_ += head + (below(2) == 0 ? "psum" : "pmin") + "[axes={a}] " + a + "\n";
          same_.push_back(name);
          return;
        }
        text_ += head + "pvary[axes={a}] " + a + "\n";
        varying_.push_back(name);
        return;
      default:
        if (varies) {
          text_ += head + "ppermute[axes={a}, pairs=[0:0]] " + a;
        } else {
          text_ += head + "add " + a + ", " + a;
        }
    }
    text_ += "\n";
    names.push_back(name);
  }

  std::uint32_t state_;
  std::string text_;
  std::vector<std::string> varying_, same_;
};

TEST_CASE("random programs run as the interpreter says", "[runtime]") {
  for (const std::uint32_t seed : test::some_seeds(12, 60, 8)) {  // three on each mesh, and a slice
    INFO("seed " << seed);
    check_runtime("mesh a=1\n" + Generator(seed).program(), {{"a", device_counts[seed % device_counts.size()]}});
  }
}

}  // namespace
}  // namespace pmaptrain
