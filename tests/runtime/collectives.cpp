// Collectives in the planned runtime against the interpreter, bit by bit.
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {
namespace {

using test::check_on_all_meshes;
using test::check_runtime;
using test::device_counts;

TEST_CASE("every collective, over the only axis", "[runtime]") {
  for (const std::int64_t devices : device_counts) {
    const std::string n = std::to_string(devices);
    check_runtime(R"(
batch %x:f32[3]{a}
batch %y:i32[2,)" + n +
                      R"(]{a}
state %s:f32[3]{a}
%i = axis_index[axes={a}]
%sum, %sum2 = psum[axes={a}] %x, %i
%most = pmax[axes={a}] %x
%least = pmin[axes={a}] %x
%all = all_gather[axes={a}, dim=0] %x
%part = psum_scatter[axes={a}, dim=1] %y
%whole = all_gather_invariant[axes={a}, dim=0] %x
%turned = all_to_all[axes={a}, split=1, concat=0] %y
%next = ppermute[axes={a}, pairs=[0:)" +
                      std::to_string(devices - 1) + R"(]] %s
%t = add %s, %x
%d = sub %most, %least
%e = add %d, %sum
update %s = %t
return sum = %sum
return count = %sum2
return all = %all
return whole = %whole
return turned = %turned
return part = %part
return next = %next
return e = %e
return i = %i
)",
                  {{"a", devices}});
  }
}

TEST_CASE("collectives over one axis of two, and over both", "[runtime]") {
  for (const std::vector<Axis>& mesh :
       {std::vector<Axis>{{"r", 2}, {"c", 3}}, {{"r", 3}, {"c", 1}}, {{"r", 5}, {"c", 4}}}) {
    check_runtime(R"(
batch %x:f32[2]{r, c}
batch %u:f32[2]{c}
state %s:f32[2]{r, c}
state %w:f32[2]{}
%1 = psum[axes={c}] %x
%2 = psum[axes={r}] %1
%3 = psum[axes={r}] %x
%4 = psum[axes={r, c}] %x
%5 = psum[axes={c}] %u
%6 = pmax[axes={r}] %x
%7 = all_gather[axes={r}, dim=0] %x
%8 = ppermute[axes={c}, pairs=[0:0]] %s
%g = all_gather_invariant[axes={c}, dim=0] %x
%h = all_gather_invariant[axes={c}, dim=0] %u
%9 = axis_index[axes={c}]
%10 = axis_index[axes={r}]
%11 = add %9, %10
%12 = add %8, %1
%13 = add %2, %4
%14 = add %13, %5
%15 = add %w, %14
update %s = %12
update %w = %15
return a = %3
return b = %6
return c = %7
return d = %11
return e = %13
return f = %1
return g = %g
return h = %h
)",
                  mesh);
  }
}

TEST_CASE("psums in sequence, of invariant values and of what other psums gave", "[runtime]") {
  check_on_all_meshes(R"(
params %w:f32[2]{}
params %big:f32[5000]{}
batch %x:f32[2]{a}
%v = pvary[axes={a}] %w
%count = psum[axes={a}] %v
%y = add %x, %count
%s = psum[axes={a}] %y
%m = pmax[axes={a}] %y
%z = sub %y, %m
%t = psum[axes={a}] %z
%vb = pvary[axes={a}] %big
%sb = psum[axes={a}] %vb
%nb = neg %sb
%vn = pvary[axes={a}] %nb
%tb = pmin[axes={a}] %vn
%k = add %s, %t
%late = add %x, %k
return count = %count
return late = %late
return k = %k
return tb = %tb
return y = %y
)");
}

}  // namespace
}  // namespace pmaptrain
