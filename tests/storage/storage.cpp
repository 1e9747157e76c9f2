// Where values live: aliases, and which new values may be computed in the memory of those that they replace.
#include "core/storage/storage.h"

#include "tests/catch.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {
namespace {

using How = Replacement::How;

// The result `result` of equation number `equation` of the program's own list, from 0.
Value result_of(const Program& program, std::size_t equation, std::size_t result = 0) {
  return program.equations[equation].results[result];
}

Storage storage_of_text(const char* text) { return storage_of(*test::program_of(text), false); }

std::vector<How> hows(const std::vector<Replacement>& replacements) {
  std::vector<How> all;
  for (const Replacement& each : replacements) all.push_back(each.how);
  return all;
}

constexpr const char* bucket = R"(mesh a=2
params %b:f32[192]{} of %w:[5,3], %c:[70]
batch %x:f32[4,5]{a}
%w, %c = unpack[shapes=[[5,3],[70]]] %b
%v = reshape[shape=[15]] %w
%t = neg %v
return t = %t
return c = %c
)";

TEST_CASE("an array of a bucket lives in the bucket, from its offset on", "[storage]") {
  const auto program = test::program_of(bucket);
  const Storage storage = storage_of(*program, false);
  const Value b = program->inputs[0].value;
  CHECK(storage.home(result_of(*program, 0, 0)).root == b);
  CHECK(storage.home(result_of(*program, 0, 1)).root == b);
  CHECK(storage.home(result_of(*program, 0, 1)).begin == 64);
  CHECK(storage.home(result_of(*program, 1)).root == b);  // a view of an array
  CHECK(storage.is_root(result_of(*program, 2)));
}

TEST_CASE("with private copies the arrays of a bucket are copied out of it", "[storage]") {
  const auto program = test::program_of(bucket);
  const Storage storage = storage_of(*program, true);
  CHECK(storage.is_root(result_of(*program, 0, 0)));
  CHECK(storage.is_root(result_of(*program, 0, 1)));
  CHECK(storage.home(result_of(*program, 1)).root == result_of(*program, 0, 0));
}

TEST_CASE("a new value may overwrite the old one if an equation computes it in memory of its own", "[storage]") {
  const Storage storage = storage_of_text(R"(mesh a=2
params %w:f32[4]{}
params %u:f32[2,2]{}
params %s:f32[4]{}
params %k:f32[4]{}
%w2 = add %w, %w
%m = matmul %u, %u
%s2 = add %s, %w
%k2 = constant[value=1.0, dtype=f32, shape=[4]]
update %w = %w2
update %u = %m
update %s = %s
update %k = %k2
return r = %s2
)");
  CHECK(hows(storage.updates) == std::vector{How::overwrite, How::overwrite, How::none, How::copy});
  CHECK(storage.updates[0].by_element);
  CHECK_FALSE(storage.updates[1].by_element);  // a product reads each element of %u several times
}

TEST_CASE("inputs that swap their values are copied twice, and what is handed on is not overwritten", "[storage]") {
  const Storage storage = storage_of_text(R"(mesh a=2
params %w:f32[4]{}
params %u:f32[4]{}
params %old:f32[4]{}
params %new:f32[4]{}
%n = neg %new
update %w = %u
update %u = %w
update %old = %new
update %new = %n
return r = %n
)");
  CHECK(hows(storage.updates) == std::vector{How::copy_twice, How::copy_twice, How::copy_twice, How::copy});
}

TEST_CASE("one value replaces two inputs: it is computed in the memory of the first", "[storage]") {
  const Storage storage = storage_of_text(R"(mesh a=2
params %w:f32[4]{}
params %u:f32[4]{}
%n = add %w, %u
update %w = %n
update %u = %n
)");
  CHECK(hows(storage.updates) == std::vector{How::overwrite, How::copy});
}

TEST_CASE("a result that reads a number of what it replaces is not written element by element", "[storage]") {
  const Storage storage = storage_of_text(R"(mesh a=2
params %b:f32[128]{} of %s:[], %w:[64]
%s, %w = unpack[shapes=[[],[64]]] %b
%w2 = mul %w, %w
%b2 = pack %s, %w2
%b3 = mul %b2, %s
update %b = %b3
)");
  REQUIRE(storage.updates.size() == 1);
  CHECK(storage.updates[0].how == How::overwrite);
  CHECK_FALSE(storage.updates[0].by_element);
}

TEST_CASE("an output is copied first if the step replaces the input whose memory it has", "[storage]") {
  const Storage storage = storage_of_text(R"(mesh a=2
params %w:f32[4]{}
params %k:f32[4]{}
%v = reshape[shape=[2,2]] %w
%n = neg %w
update %w = %n
update %k = %k
return old = %v
return kept = %k
return new = %n
)");
  CHECK(storage.copied_first == std::vector{true, false, false});
}

TEST_CASE("a carry lives in the loop's result, and a sum is computed in it", "[storage]") {
  const auto program = test::program_of(R"(mesh a=2
batch %x:f32[8,3]{a}
%k = reduce_sum[dims=[0]] %x
%g, %h, %last = loop[iterations=4, consts=1, carries=3] %k, %k, %k, %k, %x (%q:f32[3]{a}, %acc:f32[3]{a}, %p:f32[3]{a}, %l:f32[3]{a}, %rows:f32[2,3]{a}) {
  %r = reduce_sum[dims=[0]] %rows
  %next = add %acc, %r
  yield %next, %l, %q
}
return g = %g
return h = %h
return last = %last
)");
  const Storage storage = storage_of(*program, false);
  const Equation& loop = program->equations[1];
  const std::vector<Value>& params = loop.regions.front().params;
  CHECK(storage.home(params[0]).root == result_of(*program, 0));  // a constant of the loop is its operand
  CHECK(storage.home(params[1]).root == loop.results[0]);
  CHECK(storage.is_root(params[4]));
  const std::vector<Replacement>& yields = storage.yields.at(&loop);
  CHECK(hows(yields) == std::vector{How::overwrite, How::copy_twice, How::copy});
  CHECK(yields[0].by_element);
}

TEST_CASE("a bucket of parts of a carry is not written element by element", "[storage]") {
  const auto program = test::program_of(R"(mesh a=2
batch %x:f32[8,64]{}
%k = constant[value=1.0, dtype=f32, shape=[128]]
%g = loop[iterations=4, consts=0, carries=1] %k, %x (%acc:f32[128]{}, %rows:f32[2,64]{}) {
  %one, %two = unpack[shapes=[[64],[64]]] %acc
  %next = pack %two, %one
  yield %next
}
return g = %g
)");
  const Storage storage = storage_of(*program, false);
  const std::vector<Replacement>& yields = storage.yields.at(&program->equations[1]);
  REQUIRE(yields.size() == 1);
  CHECK(yields[0].how == How::overwrite);
  CHECK_FALSE(yields[0].by_element);
}

}  // namespace
}  // namespace pmaptrain
