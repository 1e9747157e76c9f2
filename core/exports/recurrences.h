// What the operators LSTM and GRU of ONNX take, which have the products of the inputs within them.
#pragma once

#include <optional>
#include <vector>

#include "core/graph/program.h"

namespace pmaptrain::exports {

struct RecurrenceInputs {
  Value x, kernel, bias;         // [B,T,C], [C,gates · F], [gates · F]
  std::optional<Value> lengths;  // i32[B]: of sequences at whose ends it begins
};

// None for an equation that is no recurrence.
std::optional<RecurrenceInputs> recurrence_inputs(const Program& program, const Equation& equation);

// By equation: whether only recurrences take what it gives, of which they need the inputs alone.
std::vector<bool> parts_of_recurrences(const Program& program);

}  // namespace pmaptrain::exports
