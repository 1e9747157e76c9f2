// An op that lacks a rule, one case at a time: tests/CMakeLists.txt expects the compiler's message. Case 0 compiles.
#include "core/graph/op.h"

namespace pmaptrain {

struct Example {
  static constexpr std::string_view name = "example";
#if CASE < 3
  static constexpr bool local = true;
#else
  static constexpr bool local = false;
#endif
#if CASE == 4
  static constexpr Communication communication = Communication::sum;
#elif CASE == 5
  static constexpr Communication communication = Communication::gather;
#elif CASE == 6
  static constexpr Communication communication = Communication::all_to_all;
#elif CASE == 7
  static constexpr Communication communication = Communication::permute;
#endif
#if CASE > 4
  AxisSet axes;
#endif
#if CASE != 1
  static constexpr WholeRows row_rule{"it is an example"};
#endif
#if CASE != 2
  static constexpr NoDerivative derivative{"it is an example"};
#endif

  std::vector<Type> infer(const InferContext& context) const {
    return {context.operands.begin(), context.operands.end()};
  }
  Cost cost(const Mesh&, std::span<const Type>, std::span<const Type>) const { return {}; }
  void attributes(AttributeVisitor&) {}
};

const OpRules& example() { return rules_of<Example>(); }

}  // namespace pmaptrain
