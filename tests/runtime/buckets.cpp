// Buckets in the planned runtime against the interpreter, bit by bit: arrays that are ranges of a bucket, sums over
// devices of what pack joins, and work on whole buckets.
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {
namespace {

using test::check_on_all_meshes;
using test::check_runtime;

TEST_CASE("a step on a bucket of two parameters, whose gradients are sums over rows", "[runtime]") {
  check_on_all_meshes(R"(
params %bucket:f32[128]{}
state %mu:f32[128]{}
batch %x:f32[6,5]{a}
batch %y:f32[6,3]{a}
%w, %b = unpack[shapes=[[5,3],[3]]] %bucket
%vw = pvary[axes={a}] %w
%vb = pvary[axes={a}] %b
%rows = broadcast[shape=[6,3], dims=[1]] %vb
%p = matmul %x, %vw
%q = add %p, %rows
%d = sub %q, %y
%gw = matmul[transpose_a=true] %x, %d
%gb = reduce_sum[dims=[0]] %d
%g = pack %gw, %gb
%loss = reduce_sum[dims=[0,1]] %d
%s, %total = psum[axes={a}] %g, %loss
%table = reshape[shape=[2,64]] %s
%squares, %largest = norms %table
%bounds = constant[dtype=i64, shape=[2,2], values=[0,1,1,2]]
%norms = segment_sum %squares, %bounds
%most = reduce_max[dims=[0]] %largest
%m2 = add %mu, %s
%b2 = sub %bucket, %m2
update %bucket = %b2
update %mu = %m2
return norms = %norms
return most = %most
return total = %total
return w = %w
return s = %s
)");
}

TEST_CASE("large parameters of a bucket get their gradients from tasks, small ones from pieces", "[runtime]") {
  check_on_all_meshes(R"(
params %bucket:f32[24704]{}
batch %x:f32[2,192]{a}
batch %d:f32[2,128]{a}
%w, %b = unpack[shapes=[[192,128],[100]]] %bucket
%vw = pvary[axes={a}] %w
%p = matmul %x, %vw
%e = sub %p, %d
%gw = matmul[transpose_a=true] %x, %e
%part = slice[starts=[0,0], limits=[2,100]] %e
%gb = reduce_sum[dims=[0]] %part
%g = pack %gw, %gb
%s = psum[axes={a}] %g
%rows = reshape[shape=[386,64]] %s
%squares, %largest = norms %rows
%all = reduce_sum[dims=[0]] %squares
%sign = sign %s
%b2 = sub %bucket, %sign
update %bucket = %b2
return squares = %all
return largest = %largest
)");
}

TEST_CASE("gradients of a loop over microbatches are packed after it", "[runtime]") {
  check_on_all_meshes(R"(
params %bucket:f32[128]{}
batch %x:f32[6,5]{a}
%w, %b = unpack[shapes=[[5,3],[3]]] %bucket
%vw = pvary[axes={a}] %w
%vb = pvary[axes={a}] %b
%zw = constant[dtype=f32, shape=[5,3], value=0]
%zb = constant[dtype=f32, shape=[3], value=0]
%vzw = pvary[axes={a}] %zw
%vzb = pvary[axes={a}] %zb
%gw, %gb = loop[iterations=3, consts=2, carries=2] %vw, %vb, %vzw, %vzb, %x (%cw:f32[5,3]{a}, %cb:f32[3]{a}, %aw:f32[5,3]{a}, %ab:f32[3]{a}, %r:f32[2,5]{a}) {
  %rows = broadcast[shape=[2,3], dims=[1]] %cb
  %p = matmul %r, %cw
  %q = add %p, %rows
  %dw = matmul[transpose_a=true] %r, %q
  %db = reduce_sum[dims=[0]] %q
  %sw = add %aw, %dw
  %sb = add %ab, %db
  yield %sw, %sb
}
%g = pack %gw, %gb
%s = psum[axes={a}] %g
%b2 = sub %bucket, %s
update %bucket = %b2
)");
}

TEST_CASE("a loop reads, packs, reduces and carries a bucket", "[runtime]") {
  check_on_all_meshes(R"(
state %bucket:f32[128]{}
batch %x:f32[6,5]{a}
%sum = loop[iterations=3, consts=0, carries=1] %bucket, %x (%acc:f32[128]{}, %r:f32[2,5]{a}) {
  %w, %b = unpack[shapes=[[2,5],[5]]] %acc
  %vw = pvary[axes={a}] %w
  %vb = pvary[axes={a}] %b
  %d = sub %r, %vw
  %rows = reduce_sum[dims=[0]] %d
  %e = max %rows, %vb
  %g = pack %d, %e
  %s = psum[axes={a}] %g
  %sign = sign %s
  %n = add %acc, %sign
  yield %n
}
update %bucket = %sum
return s = %sum
)");
}

TEST_CASE("a bucket whose arrays are computed by device, and one that varies over an axis", "[runtime]") {
  for (const std::vector<Axis>& mesh : {std::vector<Axis>{{"r", 2}, {"c", 3}}, {{"r", 5}, {"c", 4}}}) {
    check_runtime(R"(
batch %x:f32[3]{r, c}
batch %y:f32[2,2]{r, c}
state %own:f32[128]{r}
%g = pack %x, %y
%inner = psum[axes={c}] %g
%all = psum[axes={r, c}] %g
%t = add %own, %inner
%u, %v = unpack[shapes=[[3],[2,2]]] %t
%h = pack %y, %x
%sum = psum[axes={r, c}] %h
update %own = %t
return all = %all
return sum = %sum
return u = %u
return v = %v
)",
                  mesh);
  }
}

TEST_CASE("an array of a bucket that is replaced becomes the new value of another input", "[runtime]") {
  check_on_all_meshes(R"(
params %bucket:f32[128]{}
state %old:f32[3]{}
batch %x:f32[5,3]{a}
%w, %b = unpack[shapes=[[5,3],[3]]] %bucket
%vw = pvary[axes={a}] %w
%d = sub %vw, %x
%gb = reduce_sum[dims=[0]] %d
%g = pack %d, %gb
%s = psum[axes={a}] %g
%sign = sign %s
%b2 = sub %bucket, %sign
%c, %e = unpack[shapes=[[5,3],[3]]] %b2
update %bucket = %b2
update %old = %b
return new = %e
return was = %old
return w = %w
)");
}

TEST_CASE("a loop that yields an array of a carried bucket gives the array that it had before", "[runtime]") {
  check_on_all_meshes(R"(
params %bucket:f32[128]{}
params %t:f32[3]{}
batch %x:f32[2,3]{a}
%c, %u = loop[iterations=2, consts=0, carries=2] %bucket, %t (%p:f32[128]{}, %q:f32[3]{}) {
  %e, %f = unpack[shapes=[[5,3],[3]]] %p
  %g = add %p, %p
  yield %g, %f
}
return c = %c
return u = %u
)");
}

TEST_CASE("an array of a bucket that is cast as a whole is packed for its product after the cast", "[runtime]") {
  check_on_all_meshes(R"(
params %bucket:f32[65664]{}
batch %x:f32[3,256]{a}
%cast = cast[dtype=f64] %bucket
%again = cast[dtype=f32] %cast
%w, %b = unpack[shapes=[[256,256],[100]]] %again
%v = pvary[axes={a}] %w
%y = matmul %x, %v
%s = reduce_sum[dims=[0]] %y
return s = %s
)");
}

TEST_CASE("an output that is an array of a replaced bucket has its old value, also without elements", "[runtime]") {
  check_on_all_meshes(R"(
params %bucket:f32[6208]{}
batch %x:f32[2,3]{a}
%none, %w = unpack[shapes=[[0],[97,64]]] %bucket
%next = add %bucket, %bucket
update %bucket = %next
return none = %none
return w = %w
)");
}

TEST_CASE("a bucket is not overwritten by a kernel that reads a number of it", "[runtime]") {
  check_on_all_meshes(R"(
params %bucket:f32[128]{}
batch %x:f32[2,3]{a}
%number, %w = unpack[shapes=[[],[3]]] %bucket
%next = mul %bucket, %number
update %bucket = %next
return w = %w
)");
}

TEST_CASE("buckets of one array, of arrays without elements, and of packed arrays that others read too", "[runtime]") {
  check_on_all_meshes(R"(
batch %x:f32[64]{a}
batch %n:f32[0]{a}
batch %y:f32[3]{a}
%one = pack %x
%none = pack %n, %y, %n
%two = pack %y, %y
%s, %t, %u = psum[axes={a}] %one, %none, %two
%p, %q, %r = unpack[shapes=[[0],[3],[0]]] %t
%twice = add %two, %two
%back, %again = unpack[shapes=[[3],[3]]] %twice
return s = %s
return t = %t
return q = %q
return p = %p
return u = %u
return back = %back
return again = %again
)");
}

}  // namespace
}  // namespace pmaptrain
