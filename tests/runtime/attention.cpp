// Programs with attention: examples as pieces, and memory.
#include <fmt/format.h>

#include "core/runtime/cpu/module.h"
#include "tests/catch.h"
#include "tests/runtime/programs.h"

using namespace pmaptrain;

namespace {

// A step's forward and backward, for `positions` of two heads.
std::string attention_step(std::int64_t positions, bool causal, bool dropout = false, int width = 8) {
  const std::string q = fmt::format("f32[3,{},2,{}]{{a}}", positions, width);
  const std::string k = fmt::format("f32[3,{},1,{}]{{a}}", positions, width);
  return fmt::format(R"(batch %q:{0}
batch %k:{1}
batch %v:{1}
batch %g:{0}
batch %rows:i64[3]{{a}}
%key = constant[dtype=u32, shape=[2], value=7]
%rate = constant[dtype=f32, shape=[], value=0.3]
%scale = constant[dtype=f32, shape=[], value=0.5]
%small = constant[dtype=f32, shape=[], value=0.21]
%qs = mul %q, %small
%out, %lse = attention[causal={2}] %qs, %k, %v{3}
%gs = mul %g, %out
%dq, %dk, %dv = attention_grad[causal={2}] %qs, %k, %v, %out, %lse, %gs{3}
%sq = reduce_sum[dims=[0]] %dq
%pq = psum[axes={{a}}] %sq
return out = %out
return dk = %dk
return dv = %dv
return dq = %pq
)",
                     q, k, causal, dropout ? ", %key, %rows, %rate, %scale" : "");
}

}  // namespace

TEST_CASE("attention runs on some of the examples at a time, with the same bits for all workers", "[runtime]") {
  for (const auto& [causal, dropout] : {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
    test::check_on_all_meshes(attention_step(5, causal, dropout));
    for (const std::int64_t devices : {1, 5}) {
      for (const auto& [positions, width] : {std::pair(70, 8), {72, 16}}) {  // rows that are copied, and that are not
        const auto program =
            test::program_of("mesh a=1\n" + attention_step(positions, causal, dropout, width), {{"a", devices}});
        test::same_for_all_workers(program, test::random_inputs(*program, 5));
      }
    }
  }
}

TEST_CASE("the memory of a program with attention is linear in the positions", "[runtime]") {
  const auto bytes = [](std::int64_t positions) {
    const auto program = test::program_of("mesh a=1\n" + attention_step(positions, true, true));
    const MemoryNeeds needs = CpuBackend({.workers = 2}).plan({{{"step", program, 1}}})->needs();
    return needs.total() - needs.programs;
  };
  CHECK(bytes(4096) <= 4 * bytes(1024));
}
