// What chains compute again where others read it, and what they store.
#include "core/passes/recompute.h"

#include "tests/arrays.h"
#include "tests/catch.h"
#include "tests/passes/check_fused.h"

namespace pmaptrain {
namespace {

// The fused equations in order: how many arrays each reads and gives.
std::vector<std::pair<std::size_t, std::size_t>> arrays_of(const std::string& text) {
  std::vector<std::pair<std::size_t, std::size_t>> found;
  const auto program = fused(*test::program_of(text));
  for (const Equation& equation : program->equations) {
    if (equation.op.name() == "fused") found.emplace_back(equation.operands.size(), equation.results.size());
  }
  return found;
}
using Arrays = std::vector<std::pair<std::size_t, std::size_t>>;

// A layer with an activation, its gradient, and products that keep the two apart.
std::string layer(const std::string& forward, const std::string& backward, std::int64_t rows = 40) {
  const std::string n = std::to_string(rows);
  return "mesh a=2\nparams %w:f32[32,32]{}\nbatch %x:f32[" + n + ",32]{a}\nbatch %dy:f32[" + n +
         ",32]{a}\n%v = pvary[axes={a}] %w\n%h = matmul[transpose_a=false, transpose_b=false] %x, %v\n" + forward +
         "%z = matmul[transpose_a=false, transpose_b=false] %y, %v\n%e = sub %z, %dy\n"
         "%g = matmul[transpose_a=false, transpose_b=true] %e, %v\n" +
         backward + "return d = %d\nreturn e = %e\n";
}

const std::string gelu =
    "%t = tanh %h\n%c = constant[dtype=f32, shape=[], value=1]\n%o = pvary[axes={a}] %c\n"
    "%s = add %t, %o\n%y = mul %h, %s\n";
const std::string of_gelu =
    "%a = mul %g, %s\n%b = mul %g, %h\n%tt = mul %t, %t\n%r = sub %o, %tt\n%q = mul %b, %r\n%d = add %a, %q\n";

TEST_CASE("what a backward chain reads of a forward chain is computed again from one array", "[passes]") {
  // Forward h -> y, backward h, g -> d. Stored, t and s would be written and read.
  CHECK(arrays_of(layer(gelu, of_gelu)) == Arrays{{1, 1}, {2, 1}});
  check_fused(*test::program_of(layer(gelu, of_gelu)));
}

TEST_CASE("small arrays are stored, because they stay in a cache", "[passes]") {
  const Arrays found = arrays_of(layer(gelu, of_gelu, 31));
  REQUIRE(found.size() == 2);
  CHECK(found.front().second > 1);
}

TEST_CASE("a value that is stored for another reader is not computed again", "[passes]") {
  const std::string text =
      layer(gelu + "%m = matmul[transpose_a=true, transpose_b=false] %t, %x\n%k = psum[axes={a}] %m\n",
            "%tt = mul %t, %t\n%d = mul %tt, %g\n") +
      "return k = %k\n";
  CHECK(arrays_of(text) == Arrays{{1, 2}, {2, 1}});
  check_fused(*test::program_of(text));
}

TEST_CASE("a value is stored where it would take more to compute it again than to load it", "[passes]") {
  // Two arrays would have to be kept for one.
  const std::string both = "%t = sub %h, %dy\n%y = mul %t, %t\n", of_both = "%d = mul %t, %g\n";
  std::string text = layer(both, of_both);
  text.replace(text.find("%e = sub %z, %dy"), 16, "%e = neg %z");
  CHECK(arrays_of(text).front() == std::pair<std::size_t, std::size_t>(2, 2));
  // An exponential takes longer than to write and to read it.
  CHECK(arrays_of(layer("%t = exp %h\n%y = mul %t, %t\n", "%d = mul %t, %g\n")).front() ==
        std::pair<std::size_t, std::size_t>(1, 2));
}

TEST_CASE("a normalisation keeps what it was computed from, through chains of chains", "[passes]") {
  // h less its mean is read by the squares, by the normalised rows and by the gradient: each computes it again.
  const std::string norm =
      "%m = reduce_sum[dims=[1]] %h\n%mm = broadcast[shape=[40,32], dims=[0]] %m\n%t = sub %h, %mm\n%tt = mul %t, %t\n"
      "%n = reduce_sum[dims=[1]] %tt\n%r = rsqrt %n\n%rr = broadcast[shape=[40,32], dims=[0]] %r\n%u = mul %t, %rr\n"
      "%y = tanh %u\n";
  const std::string text = layer(norm, "%a = mul %u, %g\n%d = mul %a, %u\n");
  for (const auto& [reads, gives] : arrays_of(text)) CHECK(gives == 1);
  check_fused(*test::program_of(text));
}

TEST_CASE("chains compute again inside of loops", "[passes]") {
  const std::string text = R"(mesh a=2
batch %x:f32[120,32]{a}
params %w:f32[32,32]{}
%zero = constant[dtype=f32, shape=[], value=0.0]
%k0 = pvary[axes={a}] %zero
%v = pvary[axes={a}] %w
%r = loop[iterations=3, consts=1, carries=1] %v, %k0, %x (%c:f32[32,32]{a}, %k:f32[]{a}, %b:f32[40,32]{a}) {
  %h = matmul[transpose_a=false, transpose_b=false] %b, %c
  %u = mul %h, %h
  %t = sub %h, %u
  %y = mul %t, %h
  %z = matmul[transpose_a=false, transpose_b=false] %y, %c
  %g = mul %z, %t
  %gg = mul %g, %z
  %s = reduce_sum[dims=[0,1]] %gg
  %n = add %k, %s
  yield %n
}
return r = %r
)";
  const auto program = test::program_of(text);
  check_fused(*program);
  std::size_t chains = 0;
  const auto after = fused(*program);
  for (const Equation& equation : after->equations) {
    for (const Region& region : equation.regions) {
      for (const Equation& inner : region.equations) {
        if (inner.op.name() != "fused") continue;
        ++chains;
        CHECK(inner.results.size() == 1);
      }
    }
  }
  CHECK(chains >= 2);
}

}  // namespace
}  // namespace pmaptrain
