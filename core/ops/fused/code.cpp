#include "core/ops/fused/code.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <unordered_map>

#include "core/ops/all.h"
#include "core/ops/constant/constant.h"

namespace pmaptrain::ops::fused {
namespace {

constexpr std::int64_t tile_elements = 1024;  // four kilobytes of f32, so that a dozen registers fit the L2 cache
constexpr std::int64_t one_tile = 2048;       // up to this many elements form a single tile
constexpr std::size_t widest_element = sizeof(double);

// Compiles a region to instructions on tiles.
class Compiler {
 public:
  explicit Compiler(const CpuRequest& request)
      : request_(request), region_(*request.region), local_(numel(request.results.front())) {}

  Code run() {
    choose_passes();
    for (std::size_t i = 0; i < region_.params.size(); ++i) add_operand(i);
    for (const Equation& equation : region_.equations) add(equation);
    for (Value result : region_.results) code_.yields.push_back(yield(node(result)));
    join_pairs();
    choose_tile();
    place_results();
    place_registers();
    return std::move(code_);
  }

 private:
  const Type& type(Value value) const { return request_.types[static_cast<std::size_t>(value.id)]; }
  int node(Value value) const { return nodes_.at(value.id); }
  Node& at(int node) { return code_.nodes[static_cast<std::size_t>(node)]; }
  // Whether an operand has as many elements as a result. This uses the types of the call, which may have other numbers
  // of rows than the region.
  bool is_full(std::size_t operand) const { return numel(request_.operands[operand]) == local_; }

  // One pass covers the elements of all devices if each device reads every operand in the same pattern.
  void choose_passes() {
    bool flat = true;
    for (std::size_t i = 0; i < region_.params.size(); ++i) {
      if (request_.stacked[i]) {
        flat &= is_full(i) || repeats_along_last_only(i);
      } else {
        flat &= !is_full(i) || local_ == 1;
      }
    }
    code_.passes = flat ? 1 : request_.devices;
    code_.elements = flat ? request_.devices * local_ : local_;
    for (std::size_t i = 0; i < request_.operands.size(); ++i) {
      code_.operand_strides.push_back(request_.stacked[i] ? bytes(request_.operands[i]) : 0);
    }
    for (const Type& result : request_.results) code_.result_strides.push_back(bytes(result));
  }

  // Whether the broadcast maps [B] to [B, ...]: then rows of several devices are like more rows of one device.
  bool repeats_along_last_only(std::size_t operand) const {
    const Value param = region_.params[operand];
    if (numel(request_.operands[operand]) == 1) return false;
    for (const Equation& equation : region_.equations) {
      if (std::find(equation.operands.begin(), equation.operands.end(), param) == equation.operands.end()) continue;
      const auto* broadcast = equation.op.as<Broadcast>();
      if (broadcast == nullptr) return false;
      const Spread spread = local_spread(*broadcast);
      if (spread.inner * spread.size != local_) return false;
    }
    return true;
  }

  // The pattern of a broadcast for the rows of this call.
  Spread local_spread(Broadcast broadcast) const {
    const Shape& result = request_.results.front().shape;
    const Shape& declared = type(region_.results.front()).shape;
    if (result.size() == declared.size() && result != declared) broadcast.shape.front() = result.front();
    return *spread_of(broadcast);
  }

  void add_operand(std::size_t i) {
    const Type& operand = request_.operands[i];
    const bool one_for_all = local_ == 1 && request_.devices > 1 && !request_.stacked[i];
    Node operand_node{.kind = Node::Kind::operand, .index = i, .dtype = operand.dtype};
    operand_node.scalar = one_for_all || (numel(operand) == 1 && !is_full(i));
    code_.nodes.push_back(operand_node);
    nodes_[region_.params[i].id] = static_cast<int>(code_.nodes.size()) - 1;
  }

  void add(const Equation& equation) {
    const Op& op = equation.op;
    const Value result = equation.results.front();
    if (const auto* constant = op.as<Constant>()) {
      nodes_[result.id] = add_constant(*constant);
    } else if (op.rules().view) {
      nodes_[result.id] = node(equation.operands.front());
    } else if (const auto* broadcast = op.as<Broadcast>()) {
      nodes_[result.id] = add_broadcast(*broadcast, equation);
    } else {
      nodes_[result.id] = add_elementwise(equation);
    }
  }

  int add_constant(const Constant& constant) {
    const Type one{constant.dtype, {}, {}};
    const std::size_t offset = code_.constants.size();
    code_.constants.resize(offset + widest_element);
    Constant scalar = constant;
    scalar.shape.clear();
    const Array to{&one, code_.constants.data() + offset};
    scalar.reference({{}, {&to, 1}});
    code_.nodes.push_back({.kind = Node::Kind::immediate, .offset = offset, .dtype = constant.dtype, .scalar = true});
    return static_cast<int>(code_.nodes.size()) - 1;
  }

  // Adds a register for the result of the next instruction.
  int add_register(DType dtype, bool scalar) {
    code_.nodes.push_back({.kind = Node::Kind::scratch,
                           .dtype = dtype,
                           .scalar = scalar,
                           .defined = static_cast<int>(code_.instructions.size())});
    return static_cast<int>(code_.nodes.size()) - 1;
  }

  int add_broadcast(const Broadcast& broadcast, const Equation& equation) {
    const int from = node(equation.operands.front());
    const std::size_t param = at(from).index;
    if (at(from).scalar || at(from).kind != Node::Kind::operand || is_full(param)) return from;
    Instruction instruction{.kind = Instruction::Kind::spread,
                            .function = find_copy(at(from).dtype, true),
                            .in = {from, -1, -1},
                            .spread = local_spread(broadcast)};
    if (code_.passes == 1 && request_.stacked[param]) instruction.spread.size *= request_.devices;
    instruction.out = add_register(at(from).dtype, false);
    code_.instructions.push_back(instruction);
    return instruction.out;
  }

  int add_elementwise(const Equation& equation) {
    assert(equation.operands.size() <= 3);
    Instruction instruction;
    unsigned scalars = 0;
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
      instruction.in[i] = node(equation.operands[i]);
      if (at(instruction.in[i]).scalar) scalars |= 1u << i;
    }
    const bool scalar = scalars + 1 == 1u << equation.operands.size();
    instruction.scalar = instruction.once = scalar;
    const DType selected = type(equation.operands.back()).dtype;
    const DType to = type(equation.results.front()).dtype;
    instruction.function = scalar || code_.elements == 1 ? find_scalar_function(equation.op, selected)
                                                         : find_vector_function(equation.op, selected, scalars);
    if (instruction.function == nullptr) {
      instruction.kind = Instruction::Kind::reference;
      instruction.reference = add_reference(equation, instruction, scalar);
    }
    if (!scalar && code_.elements > 1 && to == DType::f32) instruction.arithmetic = arithmetic_of(equation.op);
    instruction.out = add_register(to, scalar);
    code_.instructions.push_back(instruction);
    return instruction.out;
  }

  std::size_t add_reference(const Equation& equation, const Instruction& instruction, bool scalar) {
    ReferenceInstruction reference{equation.op.shared(), kernels_of(equation.op).reference, {}, {}, {}};
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
      reference.operand_types.push_back({type(equation.operands[i]).dtype, {}, {}});
      if (!at(instruction.in[i]).scalar) reference.operand_types.back().shape = {1};
    }
    reference.result_type = {type(equation.results.front()).dtype, scalar ? Shape{} : Shape{1}, {}};
    reference.operands.resize(reference.operand_types.size());
    code_.references.push_back(std::move(reference));
    return code_.references.size() - 1;
  }

  // Joins an operation and the only one that reads its result: the result passes through no register.
  void join_pairs() {
    std::vector<int> readers(code_.nodes.size(), 0);
    for (const Instruction& instruction : code_.instructions) {
      for (const int in : instruction.in) {
        if (in >= 0) ++readers[static_cast<std::size_t>(in)];
      }
    }
    std::vector<bool> is_joined(code_.instructions.size(), false);
    for (Instruction& second : code_.instructions) {
      for (std::size_t side = 0; side < 2 && second.arithmetic; ++side) {
        const int result = second.in[side];
        if (readers[static_cast<std::size_t>(result)] != 1 || !is_register(result)) continue;
        const auto defined = static_cast<std::size_t>(at(result).defined);
        const Instruction& first = code_.instructions[defined];
        if (!first.arithmetic) continue;
        const std::array<int, 3> in{first.in[0], first.in[1], second.in[1 - side]};
        unsigned scalars = 0;
        for (std::size_t i = 0; i < in.size(); ++i) scalars |= at(in[i]).scalar ? 1U << i : 0U;
        second.function = find_pair(*first.arithmetic, *second.arithmetic, side == 1, scalars);
        second.in = in;
        second.arithmetic.reset();
        is_joined[defined] = true;
      }
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < is_joined.size(); ++i) {
      if (is_joined[i]) continue;
      at(code_.instructions[i].out).defined = static_cast<int>(kept);
      code_.instructions[kept++] = code_.instructions[i];
    }
    code_.instructions.resize(kept);
  }

  // Whether a node is computed, has n elements, and is not the value of a result.
  bool is_register(int node) { return at(node).kind == Node::Kind::scratch && !at(node).scalar && at(node).yields < 0; }

  // The node for the value of a result. It is computed, has n elements, and is not shared with another result.
  int yield(int value) {
    const int number = yields_++;
    if (!is_register(value)) {
      Instruction instruction{.function = find_copy(at(value).dtype, at(value).scalar), .in = {value, -1, -1}};
      value = instruction.out = add_register(at(value).dtype, false);
      code_.instructions.push_back(instruction);
    }
    at(value).yields = number;
    return value;
  }

  // If possible, a tile has a whole number of periods of repeated operands. Then one expansion serves all tiles.
  void choose_tile() {
    code_.tile = code_.elements <= one_tile ? code_.elements : tile_elements;
    if (code_.elements <= one_tile) return;
    std::int64_t period = 1;
    for (const Instruction& instruction : code_.instructions) {
      if (instruction.kind != Instruction::Kind::spread) continue;
      const std::int64_t own = instruction.spread.inner * instruction.spread.size;
      assert(own > 0);  // a broadcast has as many elements as the chain
      if (own <= tile_elements && std::lcm(period, own) <= tile_elements) period = std::lcm(period, own);
    }
    code_.tile = tile_elements / period * period;
    for (Instruction& instruction : code_.instructions) {
      if (instruction.kind != Instruction::Kind::spread) continue;
      instruction.once = code_.tile % (instruction.spread.inner * instruction.spread.size) == 0;
    }
  }

  // A result is written directly to its memory, unless this is the memory of an operand that a later instruction reads.
  // Then it is written to a register and copied at the end of the tile.
  void place_results() {
    for (std::size_t i = 0; i < code_.instructions.size(); ++i) {
      for (int in : code_.instructions[i].in) {
        if (in >= 0) at(in).last = static_cast<int>(i);
      }
    }
    for (std::size_t r = 0; r < code_.yields.size(); ++r) {
      Node& result = at(code_.yields[r]);
      bool direct = !code_.instructions[static_cast<std::size_t>(result.defined)].once;
      for (const auto& [operand, number] : request_.shared) {
        if (number == r) direct &= at(nodes_.at(region_.params[operand].id)).last <= result.defined;
      }
      if (direct) {
        result.kind = Node::Kind::result;
        result.index = r;
      } else {
        result.last = static_cast<int>(code_.instructions.size());
      }
    }
  }

  // Registers are reused after their last use. A result never reuses the register of an operand with another element
  // size, because the loop would overwrite elements that it has not read yet.
  void place_registers() {
    const std::size_t size =
        std::max<std::size_t>(64, (static_cast<std::size_t>(code_.tile) * widest() + 63) / 64 * 64);
    std::vector<std::size_t> free;
    const auto release = [&](int in, std::size_t at_most) {
      if (in < 0) return;
      const Node& read = at(in);
      if (read.kind == Node::Kind::scratch && !keeps(in) && read.last == static_cast<int>(at_most)) {
        if (std::find(free.begin(), free.end(), read.offset) == free.end()) free.push_back(read.offset);
      }
    };
    for (std::size_t i = 0; i < code_.instructions.size(); ++i) {
      const Instruction& instruction = code_.instructions[i];
      Node& out = at(instruction.out);
      const bool in_place = instruction.kind != Instruction::Kind::spread;
      for (int in : instruction.in) {
        if (in >= 0 && in_place && at(in).size() == out.size()) release(in, i);
      }
      if (out.kind == Node::Kind::scratch) {
        if (free.empty() || keeps(instruction.out)) {
          out.offset = code_.scratch;
          code_.scratch += out.scalar ? 64 : size;
        } else {
          out.offset = free.back();
          free.pop_back();
        }
      }
      for (int in : instruction.in) {
        if (in >= 0 && !(in_place && at(in).size() == out.size())) release(in, i);
      }
    }
  }

  // A node that is computed once keeps its register to the end.
  bool keeps(int node) {
    const Node& n = at(node);
    return n.defined >= 0 && code_.instructions[static_cast<std::size_t>(n.defined)].once;
  }

  std::size_t widest() const {
    std::size_t size = 1;
    for (const Node& node : code_.nodes) size = std::max(size, node.size());
    return size;
  }

  const CpuRequest& request_;
  const Region& region_;
  const std::int64_t local_;  // elements of a result of the call
  Code code_;
  std::unordered_map<std::int32_t, int> nodes_;  // by value
  int yields_ = 0;
};

}  // namespace

Code compile(const CpuRequest& request) { return Compiler(request).run(); }

}  // namespace pmaptrain::ops::fused
