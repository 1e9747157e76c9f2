// No op has a rule for this: the program for sequences of one position less tells which sizes follow the length.
#include "core/exports/lengths.h"

#include <optional>

#include "core/base/error.h"
#include "core/exports/known.h"
#include "core/model/prediction.h"
#include "core/ops/all.h"
#include "core/ops/list.h"

namespace pmaptrain::exports {
namespace {

// None if a layer takes no other length.
std::optional<Program> shorter_program(const model::Model& model) {
  model::Model shorter = model;
  --shorter.input.shape.front();
  try {
    return model::prediction_program(shorter, Mesh(), {}, rows_of_programs, all_ops(), model::PredictionKind::logits);
  } catch (const Error&) {
    return std::nullopt;
  }
}

class LengthComparison {
 public:
  LengthComparison(const Program& program, const Program& shorter, std::int64_t length)
      : program_(program), shorter_(shorter), length_(length) {
    for (const Type& type : program.types) dims_.emplace_back(type.shape.size(), false);
  }

  // None if a size follows the length in another way.
  std::optional<LengthDims> compare() {
    for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
      if (!compare(program_.inputs[i].value, shorter_.inputs[i].value)) return std::nullopt;
    }
    auto other = shorter_.equations.begin();
    for (const Equation& equation : program_.equations) {
      // The longer program reads the whole table, and needs no slice of it.
      const bool is_slice = other != shorter_.equations.end() && other->op.as<ops::Slice>() != nullptr;
      if (is_slice && equation.op.as<ops::Slice>() == nullptr) ++other;
      if (other == shorter_.equations.end() || other->op.name() != equation.op.name()) return std::nullopt;
      if (skips_positions(equation)) return std::nullopt;
      for (std::size_t i = 0; i < equation.results.size(); ++i) {
        if (!compare(equation.results[i], other->results[i])) return std::nullopt;
      }
      ++other;
    }
    return dims_;
  }

 private:
  // Whether windows slide over the length by more than one position: these give two lengths the same size.
  bool skips_positions(const Equation& equation) const {
    std::vector<std::int64_t> strides;
    if (const auto* const conv = equation.op.as<ops::Conv>()) strides = conv->strides;
    if (const auto* const pool = equation.op.as<ops::MaxPool>()) strides = pool->strides;
    if (const auto* const pool = equation.op.as<ops::AvgPool>()) strides = pool->strides;
    for (std::size_t d = 0; d < strides.size(); ++d) {
      if (strides[d] > 1 && dims_[static_cast<std::size_t>(equation.operands.front().id)][d + 1]) return true;
    }
    return false;
  }

  bool compare(Value value, Value other) {
    const Shape &shape = program_.type(value).shape, &shorter = shorter_.type(other).shape;
    if (shape.size() != shorter.size()) return false;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == shorter[d]) continue;
      if (shape[d] != length_ || shorter[d] != length_ - 1) return false;
      dims_[static_cast<std::size_t>(value.id)][d] = true;
    }
    return true;
  }

  const Program &program_, &shorter_;
  std::int64_t length_;
  LengthDims dims_;
};

}  // namespace

LengthDims length_dims(const model::Model& model, const Program& program) {
  const Shape& input = model.input.shape;
  LengthDims none;
  for (const Type& type : program.types) none.emplace_back(type.shape.size(), false);
  const bool has_sequences = input.size() == 2 || (input.size() == 1 && model.takes_tokens());
  const bool has_units = model.target_statistics && model.target_statistics->mean.size() > 1;  // of each position
  if (!has_sequences || model.has_lengths || input.front() < 2 || has_units) return none;
  const std::optional<Program> shorter = shorter_program(model);
  if (!shorter) return none;
  return LengthComparison(program, *shorter, input.front()).compare().value_or(none);
}

}  // namespace pmaptrain::exports
