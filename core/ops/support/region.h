// What ops with a region share: it runs equation by equation, and its values are found by what defines them.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>

#include "core/graph/program.h"
#include "core/kernel/reference.h"

namespace pmaptrain::ops {

// Computes the results of a call from its region, by the references of the region's equations. The operands of a call
// may have other numbers of rows than their declared types: `type_here` gives the type of an equation's result in this
// call.
void run_region(const ReferenceCall& call, const std::function<Type(Value)>& type_here);

// The equations of a region by their results. The region outlives this.
class RegionValues {
 public:
  explicit RegionValues(const Region& region);

  // The value that this one is a view of, or itself.
  Value source(Value value) const;
  // The equation that gives a value, behind views; null for a parameter.
  const Equation* behind_views(Value value) const;
  // The same, null also if it is of another op.
  template <class Op>
  const Equation* made_by(Value value) const {
    const Equation* const made = behind_views(value);
    return made != nullptr && made->op.as<Op>() != nullptr ? made : nullptr;
  }

 private:
  std::unordered_map<std::int32_t, const Equation*> made_by_;
};

}  // namespace pmaptrain::ops
