// The programs that continue a sequence token by token, with the keys and values of the positions before in memory.
#pragma once

#include "core/model/model.h"

namespace pmaptrain::model {

// Two programs of one module: they share the parameters and, as state, the keys and values of each attention layer at
// each position, which both replace. Both have one example, and their output "predictions" is the logits.
struct Continuation {
  Program whole;  // inputs i32[1,T] -> [1,T,V]: a sequence from its first position on
  Program next;   // inputs i32[1,1], position i32[1] -> [1,1,V]: the token at `position`, after those in memory
};

// Of a model of tokens in which no position sees those after it. With what positions before it have left in memory,
// `next` gives the logits that `whole` has at its position, but for rounding.
Continuation continuation(const Model& model, const Mesh& mesh, const OpSet& ops);

}  // namespace pmaptrain::model
