// The programs that continue a sequence by one token after the other.
#include <memory>
#include <set>
#include <string>

#include "core/layers/attention.h"
#include "core/layers/embedding.h"
#include "core/model/prediction.h"
#include "core/runtime/cpu/plan.h"
#include "core/setup/programs.h"
#include "tests/catch.h"
#include "tests/model/fixture.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

TEST_CASE("the program of a next token writes its keys and values among those in memory", "[model]") {
  constexpr std::int64_t positions = 512, features = 32, cached = positions * features;
  layers::Attention attention;
  attention.heads = 2;
  attention.causal = true;
  const Network net = network({layer("tokens", layers::Embedding{5, features}), layer("attention", attention),
                               layer("head", layers::Dense{5})});
  const Field tokens{DType::i32, {positions}};
  const model::Model model = model::make_model(net, tokens, tokens);
  Program next = model::continuation(model, Mesh(), all_ops()).next;
  std::set<std::string> ops;
  for (const Equation& equation : next.equations) {
    for (const Value result : equation.results) {
      if (numel(next.type(result)) >= cached) ops.insert(std::string(equation.op.name()));
    }
  }
  CHECK(ops == std::set<std::string>{"reshape", "scatter"});  // the second writes rows, the first nothing
  const cpu::Plan plan = cpu::make_plan(std::make_shared<const Program>(setup::optimize(std::move(next))));
  INFO(to_text(plan));
  const cpu::PoolSizes& sizes = plan.transient;
  CHECK(sizes.worker + sizes.shared + sizes.devices + sizes.arena < cached * sizeof(float));
}
