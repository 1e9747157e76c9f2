// The programs that continue a sequence by one token after the other.
#include <set>
#include <string>

#include "core/layers/attention.h"
#include "core/layers/embedding.h"
#include "core/layers/nested.h"
#include "core/model/prediction.h"
#include "tests/catch.h"
#include "tests/model/fixture.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

TEST_CASE("the program of a next token computes nothing for the tokens in memory but their scores", "[model]") {
  constexpr std::int64_t positions = 64, features = 16;
  layers::Attention attention;
  attention.heads = 2;
  attention.causal = true;
  const Network net = network({layer("tokens", layers::Embedding{5, features}), layer("attention", attention),
                               layer("head", layers::Dense{5})});
  const Field tokens{DType::i32, {positions}};
  const model::Model model = model::make_model(net, tokens, tokens);
  const Program next = model::continuation(model, Mesh(), all_ops()).next;
  std::set<std::string> ops;
  for (const Equation& equation : next.equations) {
    for (const Value result : equation.results) {
      if (numel(next.type(result)) >= positions * features) ops.insert(std::string(equation.op.name()));
    }
  }
  // A scatter writes in place, and a reshape moves nothing.
  CHECK(ops == std::set<std::string>{"reshape", "scatter"});
}
