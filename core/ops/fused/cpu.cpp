#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "core/ops/fused/code.h"
#include "core/ops/fused/fused.h"

namespace pmaptrain::ops {
namespace {

using fused::Code, fused::Instruction, fused::Node, fused::ReferenceInstruction;

// Expands elements [first, first + count) of a repeated operand, whose elements have `size` bytes. `repeat` is the
// find_copy() of their type.
void expand(const std::byte* from, const Spread& spread, std::size_t size, VectorFunction repeat, std::int64_t first,
            std::int64_t count, std::byte* to) {
  std::int64_t at = first / spread.inner % spread.size, left = spread.inner - first % spread.inner;
  while (count > 0) {
    const bool runs = spread.inner == 1;  // of elements that follow one another
    const std::int64_t run = std::min(count, runs ? spread.size - at : left);
    const std::byte* const element = from + static_cast<std::size_t>(at) * size;
    if (runs) {
      std::memcpy(to, element, static_cast<std::size_t>(run) * size);
    } else {
      repeat(element, nullptr, nullptr, to, static_cast<std::size_t>(run));
    }
    to += static_cast<std::size_t>(run) * size;
    count -= run;
    at = runs || at + 1 == spread.size ? 0 : at + 1;
    left = spread.inner;
  }
}

class FusedKernel final : public CpuKernel {
 public:
  explicit FusedKernel(Code code) : code_(std::move(code)) {
    pointers_.resize(code_.nodes.size() + 1);  // the last one stands for operands that an instruction does not have
    for (std::size_t i = 0; i < code_.nodes.size(); ++i) {
      const Node& node = code_.nodes[i];
      if (node.kind == Node::Kind::immediate) pointers_[i] = code_.constants.data() + node.offset;
      if (node.kind == Node::Kind::operand) operands_.push_back(i);
      if (node.kind == Node::Kind::result) results_.push_back(i);
      const bool moves = node.kind == Node::Kind::result || (node.kind == Node::Kind::operand && is_full(i));
      if (moves) moving_.emplace_back(i, static_cast<std::size_t>(code_.tile) * node.size());
    }
    for (Instruction instruction : code_.instructions) {
      for (int& in : instruction.in) in = in < 0 ? static_cast<int>(code_.nodes.size()) : in;
      (instruction.once ? once_ : each_).push_back(instruction);
    }
    for (ReferenceInstruction& reference : code_.references) {
      for (std::size_t i = 0; i < reference.operands.size(); ++i)
        reference.operands[i].type = &reference.operand_types[i];
    }
    for (std::size_t r = 0; r < code_.yields.size(); ++r) {
      const auto yield = static_cast<std::size_t>(code_.yields[r]);
      if (code_.nodes[yield].kind != Node::Kind::result) copied_.emplace_back(yield, r);
    }
  }

  std::size_t scratch_bytes() const override { return code_.scratch; }
  std::string implementation() const override { return "tiles"; }

  void run(const CpuArguments& arguments) override {
    if (arguments.scratch != scratch_) place_scratch(arguments.scratch);
    for (std::int64_t pass = 0; pass < code_.passes; ++pass) {
      const auto p = static_cast<std::size_t>(pass);
      for (std::size_t i : operands_) {
        const std::size_t number = code_.nodes[i].index;
        pointers_[i] = const_cast<std::byte*>(arguments.operands[number]) + p * code_.operand_strides[number];
      }
      for (std::size_t i : results_) {
        const std::size_t number = code_.nodes[i].index;
        pointers_[i] = arguments.results[number] + p * code_.result_strides[number];
      }
      for (const Instruction& instruction : once_) execute(instruction, 0, std::min(code_.tile, code_.elements));
      for (std::int64_t first = 0; first < code_.elements; first += code_.tile) {
        const std::int64_t count = std::min(code_.tile, code_.elements - first);
        for (const Instruction& instruction : each_) execute(instruction, first, count);
        for (const auto& [node, result] : copied_) {
          const std::size_t size = code_.nodes[node].size();
          std::memcpy(
              arguments.results[result] + p * code_.result_strides[result] + static_cast<std::size_t>(first) * size,
              pointers_[node], static_cast<std::size_t>(count) * size);
        }
        if (first + count == code_.elements) break;
        for (const auto& [node, stride] : moving_) pointers_[node] += stride;
      }
    }
  }

 private:
  bool is_full(std::size_t node) const {
    if (code_.nodes[node].scalar) return false;
    return std::none_of(code_.instructions.begin(), code_.instructions.end(), [&](const Instruction& instruction) {
      return instruction.kind == Instruction::Kind::spread && instruction.in[0] == static_cast<int>(node);
    });
  }

  void place_scratch(std::byte* scratch) {
    scratch_ = scratch;
    for (std::size_t i = 0; i < code_.nodes.size(); ++i) {
      if (code_.nodes[i].kind == Node::Kind::scratch) pointers_[i] = scratch + code_.nodes[i].offset;
    }
  }

  std::byte* pointer(int node) const { return pointers_[static_cast<std::size_t>(node)]; }

  void execute(const Instruction& instruction, std::int64_t first, std::int64_t count) {
    const std::array<int, 3>& in = instruction.in;
    std::byte* const out = pointer(instruction.out);
    if (instruction.scalar) count = 1;
    switch (instruction.kind) {
      case Instruction::Kind::vector:
        instruction.function(pointer(in[0]), pointer(in[1]), pointer(in[2]), out, static_cast<std::size_t>(count));
        return;
      case Instruction::Kind::spread:
        return expand(pointer(in[0]), instruction.spread, code_.nodes[static_cast<std::size_t>(instruction.out)].size(),
                      instruction.function, first, count, out);
      case Instruction::Kind::reference: break;
    }
    ReferenceInstruction& reference = code_.references[instruction.reference];
    for (std::size_t i = 0; i < reference.operands.size(); ++i) {
      reference.operands[i].data = pointer(in[i]);
      for (std::int64_t& size : reference.operand_types[i].shape) size = count;
    }
    for (std::int64_t& size : reference.result_type.shape) size = count;
    const Array result{&reference.result_type, out};
    reference.function(reference.op.get(), {reference.operands, {&result, 1}});
  }

  Code code_;
  std::vector<std::byte*> pointers_;  // by node
  std::vector<std::size_t> operands_, results_;
  std::vector<std::pair<std::size_t, std::size_t>> moving_;  // nodes whose pointers advance, and bytes per tile
  std::vector<std::pair<std::size_t, std::size_t>> copied_;  // nodes, and the results that they are copied to
  std::vector<Instruction> once_, each_;
  std::byte* scratch_ = nullptr;
};

}  // namespace

std::unique_ptr<CpuKernel> Fused::cpu(const CpuRequest& request) const {
  assert(request.region != nullptr);
  return std::make_unique<FusedKernel>(fused::compile(request));
}

}  // namespace pmaptrain::ops
