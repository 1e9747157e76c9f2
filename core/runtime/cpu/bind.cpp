#include "core/runtime/cpu/bind.h"

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "core/base/saturate.h"

namespace pmaptrain::cpu {
namespace {

using pmaptrain::to_string;

std::string key_of(const Op& op, const CpuRequest& request) {
  std::string key = to_string(op) + "|" + std::to_string(request.devices);
  const auto add = [&](const Type& type) { key += "|" + std::string(to_string(type.dtype)) + to_string(type.shape); };
  for (std::size_t i = 0; i < request.operands.size(); ++i) {
    add(request.operands[i]);
    if (request.stacked[i]) key += "*";
    if (request.packed == i) key += "packed";
  }
  for (const Type& type : request.results) add(type);
  for (const auto& [operand, result] : request.shared) {
    key += "|" + std::to_string(operand) + "=" + std::to_string(result);
  }
  if (request.region != nullptr) key += "|" + std::to_string(reinterpret_cast<std::uintptr_t>(request.region));
  return key;
}

// A request and the types that it refers to.
struct Request {
  std::vector<Type> operands, results;
  CpuRequest request;

  const CpuRequest& get() {
    request.operands = operands;
    request.results = results;
    return request;
  }
};

Request request_of(const Plan& plan, const Kernel& kernel, std::int64_t devices) {
  Request out;
  const Equation& equation = *kernel.equation;
  out.operands = types_of(*plan.program, equation.operands);
  out.results = types_of(*plan.program, equation.results);
  out.request.devices = plan.buffers[static_cast<std::size_t>(kernel.results.front())].stacked ? devices : 1;
  for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
    const Buffer& operand = plan.buffers[static_cast<std::size_t>(kernel.operands[i])];
    out.request.stacked.push_back(out.request.devices == 1 || operand.stacked);
    if (operand.layout == Layout::packed) {
      out.request.packed = i;
      out.request.stacked[i] = false;
    }
  }
  if (!equation.regions.empty()) {
    out.request.region = &equation.regions.front();
    out.request.types = plan.program->types;
  }
  return out;
}

// Where item `index` of `count` stands among all, from 0 to 1.
template <class I>
double share(I index, I count) {
  return (static_cast<double>(index) + 0.5) / static_cast<double>(count);
}

std::int64_t devices_of(const Buffer& buffer, std::int64_t devices) { return buffer.stacked ? devices : 1; }

// By packed buffer, the kernel that reads it: there is one for each.
std::map<int, const Kernel*> readers_of_packed(const Plan& plan) {
  std::map<int, const Kernel*> readers;
  const auto look = [&](const auto& self, const std::vector<Instruction>& instructions) -> void {
    for (const Instruction& instruction : instructions) {
      if (const Loop* const loop = instruction.as<Loop>()) self(self, loop->body);
      const Kernel* const kernel = instruction.as<Kernel>();
      if (kernel == nullptr) continue;
      for (int operand : kernel->operands) {
        if (plan.buffers[static_cast<std::size_t>(operand)].layout == Layout::packed) readers[operand] = kernel;
      }
    }
  };
  for (const Stage& stage : plan.stages) look(look, stage.pieces);
  return readers;
}

// The bytes of an operand in the layout that the kernels of all pieces want; none where they want it as it is, or
// disagree.
std::size_t packed_bytes(const Plan& plan, const Kernel& reader, KernelChoice choice) {
  std::string layout;
  std::size_t bytes = 0;
  for (const Block& piece : {plan.pieces.front(), plan.pieces.back()}) {
    Request request = request_of(plan, reader, piece.count);
    const auto preparation = make_preparation(reader.equation->op, request.get(), choice);
    if (!preparation || (bytes > 0 && preparation->layout() != layout)) return 0;
    layout = preparation->layout();
    bytes = preparation->bytes();
  }
  return bytes;
}

void replace_buffers(std::vector<Instruction>& instructions, const std::map<int, int>& replaced) {
  const auto replace = [&](int& buffer) {
    const auto found = replaced.find(buffer);
    if (found != replaced.end()) buffer = found->second;
  };
  for (Instruction& instruction : instructions) {
    for_each_value(instruction, replace, replace);
    if (Loop* const loop = instruction.as<Loop>()) replace_buffers(loop->body, replaced);
  }
}

}  // namespace

Bound::Bound(const Plan& plan, const Kernels& kernels) : plan_(plan), make_(kernels) {
  use_one_thread_in_libraries();
  readers_ = readers_of_packed(plan);
  stages_.resize(plan.stages.size());
  for (std::size_t i = 0; i < plan.stages.size(); ++i) bind(plan.stages[i], stages_[i]);
}

std::size_t Bound::scratch_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [key, kernel] : kernels_) {
    if (kernel) bytes = std::max(bytes, kernel->scratch_bytes());
  }
  for (const auto& preparation : preparations_) bytes = std::max(bytes, preparation->scratch_bytes());
  return round_up(bytes, alignment);
}

std::string Bound::shapes() const {
  std::string text;
  for (const auto& [key, kernel] : kernels_) text += key + " " + kernel->implementation() + "\n";
  return text;
}

void Bound::bind(const Stage& stage, BoundStage& bound) {
  bind(stage.once, {}, bound.once, bound.once.commands);
  for (const Chunked& chunked : stage.chunked) {
    std::map<std::int64_t, CommandList*> by_size;
    for (std::int64_t chunk = 0; chunk < chunked.chunks; ++chunk) {
      const std::int64_t begin = chunk_begin(chunked, chunk), size = chunk_begin(chunked, chunk + 1) - begin;
      CommandList*& list = by_size[size];
      if (list == nullptr) {
        list = &new_list();
        bind(chunked.instructions, {Extent::Kind::chunk, 1, size, chunked.elements}, *list, list->commands);
      }
      bound.tasks.push_back({list, {.element = begin}, share(chunk, chunked.chunks)});
    }
  }
  for (const Instruction& task : stage.tasks) bind_parts(task, bound);
  std::map<std::int64_t, CommandList*> by_size;
  for (std::size_t p = 0; p < plan_.pieces.size() && !stage.pieces.empty(); ++p) {
    const Block& piece = plan_.pieces[p];
    CommandList*& list = by_size[piece.count];
    if (list == nullptr) {
      list = &new_list();
      bind(stage.pieces, {Extent::Kind::piece, piece.count}, *list, list->commands);
    }
    bound.tasks.push_back(
        {list, {.device = piece.first, .piece = static_cast<std::int64_t>(p)}, share(p, plan_.pieces.size())});
  }
  // Every worker's range has the same share of each array and of the pieces, step after step: what it touched lies in
  // its cache.
  std::stable_sort(bound.tasks.begin(), bound.tasks.end(),
                   [](const Task& a, const Task& b) { return a.share < b.share; });
}

// A task for each part, or for a preparation.
void Bound::bind_parts(const Instruction& instruction, BoundStage& bound) {
  const Parts* const parts = instruction.as<Parts>();
  const std::int64_t count = parts != nullptr ? parts->parts : 1;
  const std::int64_t rows = parts != nullptr ? plan_.program->type(parts->equation->results.front()).shape[0] : 1;
  std::map<std::int64_t, CommandList*> by_size;
  for (std::int64_t part = 0; part < count; ++part) {
    const std::int64_t begin = part_begin(rows, count, part), size = part_begin(rows, count, part + 1) - begin;
    CommandList*& list = by_size[size];
    if (list == nullptr) {
      list = &new_list();
      const Extent extent{Extent::Kind::part, 1, size};
      list->commands.push_back({&instruction, {}});
      if (parts != nullptr) {
        // It gathers the columns of the first operand that make the part's rows, so that any kernel can take them. That
        // is little beside the product: each element is multiplied many times.
        const Buffer& columns = buffer(parts->operands[0]);
        const auto size_of_element = size_of(columns.dtype);
        const auto width = static_cast<std::size_t>(rows), length = static_cast<std::size_t>(size);
        Address from = address(parts->operands[0], extent);
        from.by = Address::By::element;
        from.stride = size_of_element;
        CopyRuns gather{list->add(from), length * size_of_element, 0, width * size_of_element,
                        length * size_of_element};
        gather.count = static_cast<std::size_t>(plan_.program->mesh.devices()) *
                       static_cast<std::size_t>(plan_.program->type(parts->equation->operands[0]).shape[0]);
        list->add({Base::arena});
        list->commands.front().what = gather;
        list->commands.push_back({&instruction, bind(*parts, extent, *list)});
      } else {
        list->commands.front().what = bind(*instruction.as<Prepare>(), extent, *list);
      }
    }
    bound.tasks.push_back({list, {.element = begin}, share(part, count)});
  }
}

void Bound::bind(const std::vector<Instruction>& instructions, const Extent& extent, CommandList& list,
                 std::vector<Command>& into) {
  into.reserve(into.size() + instructions.size());
  for (const Instruction& instruction : instructions) {
    visit([&](const auto& i) { into.push_back({&instruction, bind(i, extent, list)}); }, instruction);
  }
}

Address Bound::address(int index, const Extent& extent) const {
  const Buffer& b = buffer(index);
  Address address{base_of(b), Address::By::nothing, b.offset, 0};
  if (extent.kind == Extent::Kind::piece && b.stacked && b.pool != Pool::arena) {
    address.by = Address::By::device;
    address.stride = b.slice_bytes();
  } else if (extent.kind == Extent::Kind::chunk && b.elements == extent.whole) {
    address.by = Address::By::element;
    address.stride = size_of(b.dtype);
  }
  return address;
}

// Of one piece.
Address Bound::accumulator(int index, std::size_t piece, const Extent& extent) const {
  const Accumulator& a = plan_.accumulators[static_cast<std::size_t>(index)];
  Address address{Base::accumulators, Address::By::nothing, a.offset + piece * plan_.passing.accumulators, 0};
  if (extent.kind == Extent::Kind::chunk) {
    address.by = Address::By::element;
    address.stride = size_of(a.dtype);
  }
  return address;
}

CpuKernel* Bound::kernel(const Op& op, const CpuRequest& request) {
  const auto [found, is_new] = kernels_.try_emplace(key_of(op, request));
  if (is_new) found->second = make_.make ? make_.make(op, request) : make_cpu_kernel(op, request, make_.choice);
  return found->second.get();
}

RunKernel Bound::bind(const Kernel& kernel, const Extent& extent, CommandList& list) {
  Request request = request_of(plan_, kernel, extent.devices);
  std::vector<Address> operands, results;
  for (int operand : kernel.operands) operands.push_back(address(operand, extent));
  for (int result : kernel.results) results.push_back(address(result, extent));
  if (extent.kind == Extent::Kind::chunk) {
    const auto cut = [&](Type& type) { type.shape = numel(type) == extent.whole ? Shape{extent.elements} : Shape{}; };
    for (Type& type : request.operands) cut(type);
    for (Type& type : request.results) cut(type);
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    for (std::size_t r = 0; r < results.size(); ++r) {
      if (operands[i].base == results[r].base && operands[i].offset == results[r].offset) {
        request.request.shared.emplace_back(i, r);
      }
    }
  }
  RunKernel command{this->kernel(kernel.equation->op, request.get()), list.addresses.size(), operands.size()};
  for (const Address& operand : operands) list.add(operand);
  for (const Address& result : results) list.add(result);
  return command;
}

// One call over the rows of all the piece's devices, whose results are its accumulators.
RunKernel Bound::bind(const RowSums& sums, const Extent& extent, CommandList& list) {
  const Equation& equation = *sums.equation;
  std::vector<Type> operands = types_of(*plan_.program, equation.operands);
  const std::vector<Type> results = types_of(*plan_.program, equation.results);
  for (Type& operand : operands) operand.shape.front() *= extent.devices;
  const CpuRequest request{operands, results, 1, std::vector<bool>(operands.size(), true)};
  RunKernel command{kernel(equation.op, request), list.addresses.size(), operands.size()};
  for (int operand : sums.operands) list.add(address(operand, extent));
  for (int index : sums.accumulators) {
    Address to = accumulator(index, 0, extent);
    to.by = Address::By::piece;
    to.stride = plan_.passing.accumulators;
    list.add(to);
  }
  return command;
}

// The columns are gathered in the arena; the result's rows begin at the part's.
RunKernel Bound::bind(const Parts& parts, const Extent& extent, CommandList& list) {
  const Equation& equation = *parts.equation;
  std::vector<Type> operands = types_of(*plan_.program, equation.operands);
  Type result = plan_.program->type(equation.results.front());
  const std::size_t row_bytes = bytes(result) / static_cast<std::size_t>(result.shape[0]);
  for (Type& operand : operands) operand.shape.front() *= plan_.program->mesh.devices();
  operands[0].shape[1] = result.shape[0] = extent.elements;
  const CpuRequest request{operands, {&result, 1}, 1, {true, true}};
  RunKernel command{kernel(equation.op, request), list.addresses.size(), operands.size()};
  list.add({Base::arena});
  list.add(address(parts.operands[1], extent));
  Address to = address(parts.result, extent);
  to.by = Address::By::element;
  to.stride = row_bytes;
  list.add(to);
  return command;
}

CopyRuns Bound::bind(const Copy& copy, const Extent& extent, CommandList& list) {
  const Buffer &from = buffer(copy.from), &to = buffer(copy.to);
  CopyRuns runs;
  runs.at = list.add(address(copy.from, extent));
  list.add(address(copy.to, extent));
  runs.count = static_cast<std::size_t>(devices_of(to, extent.devices));
  runs.bytes = extent.kind == Extent::Kind::chunk ? size_of(to.dtype) * static_cast<std::size_t>(extent.elements)
                                                  : to.slice_bytes();
  runs.from_stride = from.stacked ? from.slice_bytes() : 0;
  runs.to_stride = to.slice_bytes();
  return runs;
}

Pack Bound::bind(const Prepare& prepare, const Extent& extent, CommandList& list) {
  Request request = request_of(plan_, *readers_.at(prepare.to), plan_.pieces.front().count);
  preparations_.push_back(make_preparation(prepare.equation->op, request.get(), make_.choice));
  Pack command{preparations_.back().get(), list.add(address(prepare.from, extent))};
  list.add(address(prepare.to, extent));
  return command;
}

// The slices of the piece's devices, in device order.
Reduce Bound::bind(const Start& start, const Extent& extent, CommandList& list) {
  const Accumulator& a = plan_.accumulators[static_cast<std::size_t>(start.accumulator)];
  const Buffer& operand = buffer(start.operand);
  assert(operand.dtype == a.dtype);  // nothing converts yet
  const Reduce command{start.equation->op.data(), kernels_of(start.equation->op).exchange, list.addresses.size(),
                       list.flat(a.dtype, a.elements), static_cast<std::size_t>(extent.devices)};
  list.members.resize(std::max(list.members.size(), command.members));
  for (std::int64_t d = 0; d < extent.devices; ++d) {
    Address member = address(start.operand, extent);
    if (operand.stacked) member.offset += static_cast<std::size_t>(d) * operand.slice_bytes();
    list.add(member);
  }
  Address to = accumulator(start.accumulator, 0, extent);
  to.by = Address::By::piece;
  to.stride = plan_.passing.accumulators;
  list.add(to);
  return command;
}

Reduce Bound::bind(const Done& done, const Extent& extent, CommandList& list) {
  const Accumulator& a = plan_.accumulators[static_cast<std::size_t>(done.accumulator)];
  const std::int64_t elements = extent.kind == Extent::Kind::chunk ? extent.elements : a.elements;
  const Reduce command{done.equation->op.data(), kernels_of(done.equation->op).exchange,
                       list.addresses.size(),    list.flat(a.dtype, elements),
                       plan_.pieces.size(),      devices_of(buffer(done.result), extent.devices)};
  list.members.resize(std::max(list.members.size(), command.members));
  for (std::size_t p = 0; p < plan_.pieces.size(); ++p) list.add(accumulator(done.accumulator, p, extent));
  list.add(address(done.result, extent));
  return command;
}

RunExchange Bound::bind(const Exchange& exchange, const Extent& extent, CommandList& list) {
  const Mesh& mesh = plan_.program->mesh;
  const Equation& equation = *exchange.equation;
  const AxisSet axes = equation.op.axes();
  RunExchange command{equation.op.data(), kernels_of(equation.op).exchange, list.addresses.size(),
                      devices_of(buffer(exchange.result), extent.devices), std::make_unique<ExchangeGroups>()};
  ExchangeGroups& all = *command.groups;
  all.operand = plan_.program->type(equation.operands[exchange.index]);
  all.result = plan_.program->type(equation.results[exchange.index]);
  all.size = static_cast<std::size_t>(mesh.group_size(axes));
  all.members.resize(static_cast<std::size_t>(mesh.devices()));
  // By what the devices of a group agree on, in the order of their first devices.
  std::map<std::int64_t, std::int64_t> groups;
  const Buffer& operand = buffer(exchange.operand);
  for (std::int64_t device = 0; device < mesh.devices(); ++device) {
    const auto [group, is_new] =
        groups.try_emplace(mesh.position(device, mesh.all() - axes), static_cast<std::int64_t>(groups.size()));
    all.group.push_back(group->second);
    all.member.push_back(mesh.position(device, axes));
    if (!is_new) continue;
    for (std::int64_t other : mesh.group(device, axes)) {
      const std::size_t slice = operand.stacked ? static_cast<std::size_t>(other) * operand.slice_bytes() : 0;
      list.add({base_of(operand), Address::By::nothing, operand.offset + slice, 0});
    }
  }
  list.add(address(exchange.result, extent));
  return command;
}

RunLoop Bound::bind(const Loop& loop, const Extent& extent, CommandList& list) {
  RunLoop command;
  command.iterations = loop.iterations;
  for (const Copy& copy : loop.slices) {
    CopyRuns& slice = command.slices.emplace_back(bind(copy, extent, list));
    slice.per_iteration = slice.bytes;
  }
  for (const Copy& copy : loop.before) command.before.push_back(bind(copy, extent, list));
  bind(loop.body, extent, list, command.body);
  return command;
}

std::size_t settle_packing(Plan& plan, const Kernels& kernels) {
  const std::map<int, const Kernel*> readers = readers_of_packed(plan);
  if (readers.empty()) return 0;
  use_one_thread_in_libraries();
  Stage& first = plan.stages.front();
  std::map<int, int> unpacked;
  std::size_t total = 0;
  std::erase_if(first.tasks, [&](const Instruction& instruction) {
    const Prepare* const prepare = instruction.as<Prepare>();
    if (prepare == nullptr) return false;
    const std::size_t bytes = packed_bytes(plan, *readers.at(prepare->to), kernels.choice);
    if (bytes == 0) {
      unpacked[prepare->to] = prepare->from;
      return true;
    }
    plan.buffers[static_cast<std::size_t>(prepare->to)].offset = total;
    total = sum_of(total, round_up(bytes, alignment));
    return false;
  });
  for (Stage& stage : plan.stages) replace_buffers(stage.pieces, unpacked);
  if (!first.has_tasks() && first.once.empty()) plan.stages.erase(plan.stages.begin());
  return total;
}

}  // namespace pmaptrain::cpu
