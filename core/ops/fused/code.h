// What the region of a fused equation is compiled to for a call: loops over tiles of its elements.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/kernel/cpu.h"
#include "core/ops/elementwise/vector.h"
#include "core/ops/fused/fused.h"

namespace pmaptrain::ops::fused {

// An operand or result of an instruction: memory of the call, a register (one tile of scratch memory), or a constant.
struct Node {
  enum class Kind { operand, result, scratch, immediate };
  Kind kind = Kind::scratch;
  std::size_t index = 0;   // index of the operand or result
  std::size_t offset = 0;  // offset in scratch memory, or in the constants
  DType dtype = DType::f32;
  bool scalar = false;          // a single element for all
  int defined = -1, last = -1;  // indices of the instruction that writes it and of the last one that reads it
  int yields = -1;              // the first result whose value it is; -1 if there is none

  std::size_t size() const { return size_of(dtype); }
};

struct Instruction {
  enum class Kind { vector, reference, spread };
  Kind kind = Kind::vector;
  VectorFunction function = nullptr;
  std::array<int, 3> in{-1, -1, -1};
  int out = -1;
  bool scalar = false;  // whether the result is a scalar
  bool once = false;    // run once for all tiles, because the result is a scalar or repeats in every tile
  Spread spread = {};
  std::size_t reference = 0;
  std::optional<Arithmetic> arithmetic = {};  // of f32, which may become a part of a pair
};

// An op without a vectorized loop, computed by its reference on one tile.
struct ReferenceInstruction {
  std::shared_ptr<const void> op;
  ReferenceFunction function;
  std::vector<Type> operand_types;
  Type result_type;
  std::vector<ConstArray> operands;
};

struct Code {
  std::vector<Node> nodes;
  std::vector<Instruction> instructions;
  std::vector<ReferenceInstruction> references;
  std::vector<std::byte> constants;
  std::vector<int> yields;                                   // by result: its node
  std::vector<std::size_t> operand_strides, result_strides;  // distances in bytes between successive passes
  std::int64_t passes = 1;    // one pass for each device, or a single one over the elements of all devices
  std::int64_t elements = 0;  // elements of a pass
  std::int64_t tile = 0;
  std::size_t scratch = 0;
};

// The code for a request of a fused equation.
Code compile(const CpuRequest& request);

}  // namespace pmaptrain::ops::fused
