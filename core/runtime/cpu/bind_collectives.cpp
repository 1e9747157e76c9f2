// Binds the instructions of collectives.
#include <algorithm>
#include <cassert>

#include "core/analysis/row_cut.h"
#include "core/runtime/cpu/bind.h"

namespace pmaptrain::cpu {

void BoundPlan::bind(const ReducePartial& partial, const Instruction& instruction, Binding to,
                     std::vector<Command>& into) {
  const Accumulator& a = plan_.accumulators[count_of(partial.accumulator)];
  const Buffer& operand = buffer(partial.operand);
  assert(operand.dtype == a.dtype);  // no conversion is implemented
  const bool stacked = is_stacked(plan_, operand, to.extent);
  Addends slices;
  for (std::int64_t i = 0; i < to.extent.instances(); ++i) {
    slices.addresses.push_back(slice_of(partial.operand, stacked ? i : 0, to.extent));
  }
  add_reduce(*partial.equation, slices, accumulator_address(partial.accumulator, to.extent.piece, to.extent),
             a.elements, a.dtype, instruction, to, into);
}

std::vector<BoundPlan::Addend> BoundPlan::addends_of(const ReduceCombine& combine, std::int64_t device,
                                                     const Extent& extent) const {
  const Mesh& mesh = plan_.program->mesh;
  const AxisSet along = combine.equation->op.axes();
  std::vector<Addend> addends;
  if (combine.accumulator >= 0) {
    const Cut& cut = plan_.cuts[count_of(plan_.accumulators[count_of(combine.accumulator)].cut)];
    const AxisSet apart = cut.axes - along;
    for (std::int64_t p = 0; p < cut.own.count; ++p) {
      const IndexRange& piece = cut.pieces[count_of(cut.own.first + p)];
      const std::int64_t first = mesh.device_at(extent_of(cut, piece).instance, cut.axes);
      if (piece.count == 0 || mesh.position(first, apart) != mesh.position(device, apart)) continue;
      addends.push_back(
          {accumulator_address(combine.accumulator, count_of(p), extent), share_.blocks().of_device(first)});
    }
    return addends;
  }
  const std::size_t skipped =
      extent.kind == Extent::Kind::chunk ? count_of(extent.first) * size_of(buffer(combine.operand).dtype) : 0;
  for (std::int64_t other : mesh.group(device, along)) {
    if (combine.step == ReduceCombine::Step::own_sums && !share_.has_device(other)) continue;
    Address addend = slice_of_device(combine.operand, other);
    addend.offset += skipped;
    const std::int64_t instance = mesh.position(other, combine.axes);
    addends.push_back({addend, share_.blocks().of_instance(instance, combine.axes)});
  }
  return addends;
}

BoundPlan::Addends BoundPlan::as_tree(const std::vector<Addend>& addends) {
  Addends all;
  std::vector<std::int64_t> blocks;
  for (const Addend& addend : addends) {
    all.addresses.push_back(addend.address);
    blocks.push_back(addend.block);
  }
  all.tree = leaves_of(blocks);
  return all;
}

BoundPlan::Addends BoundPlan::sums_of(const ReduceCombine& combine, std::int64_t device, const Extent& extent) const {
  const std::int64_t result = plan_.program->mesh.position(device, combine.axes - combine.equation->op.axes());
  Addends sums;
  for (const Contribution& sum : combine.ranks->sums) {
    if (sum.result != result) continue;
    sums.tree.push_back({1, sum.leaves});
    if (!combine.ranks->in_parts || sum.owner == share_.process()) {
      sums.addresses.push_back(contribution(combine.operand, sum, extent));
      continue;
    }
    const Buffer& received = buffer(combine.received);
    const std::int64_t first = buffer(combine.operand).bucket_begin + extent.first - combine.ranks->own.first;
    sums.addresses.push_back(address_in(combine.received, sum.slice * received.elements + first));
  }
  return sums;
}

Address BoundPlan::address_in(int index, std::int64_t element) const {
  const Buffer& b = buffer(index);
  return {base_of(b), b.offset + count_of(element) * size_of(b.dtype)};
}

Address BoundPlan::contribution(int index, const Contribution& which, const Extent& extent) const {
  Address address = this->address(index, extent);
  address.offset += count_of(which.slice) * buffer(index).stride();
  return address;
}

void BoundPlan::add_reduce(const Equation& equation, const Addends& addends, Address result, std::int64_t elements,
                           DType dtype, const Instruction& instruction, Binding to, std::vector<Command>& into) {
  const Reduce command{equation.op.data(),       kernels_of(equation.op).exchange,
                       to.list.addresses.size(), to.list.flat_type(dtype, elements),
                       addends.addresses.size(), to.list.keep(addends.tree)};
  to.list.add(addends.addresses, result);
  into.push_back({&instruction, command});
}

// Emits one command for each instance of the result, or for each sum that this process contributes.
void BoundPlan::bind(const ReduceCombine& combine, const Instruction& instruction, Binding to,
                     std::vector<Command>& into) {
  const Mesh& mesh = plan_.program->mesh;
  const Equation& equation = *combine.equation;
  const AxisSet along = equation.op.axes();
  const Buffer& result = buffer(combine.result);
  const std::int64_t elements = to.extent.kind == Extent::Kind::chunk ? to.extent.count : result.elements;
  if (to.extent.kind == Extent::Kind::piece && to.extent.rows_per_instance > 0) {
    return bind_rows(combine, instruction, to, into);
  }
  if (combine.step == ReduceCombine::Step::own_sums) {
    for (const Contribution& sum : combine.ranks->sums) {
      if (sum.owner != share_.process()) continue;
      const std::int64_t device = mesh.device_at(sum.result, combine.axes - along);
      std::vector<Addend> addends = addends_of(combine, device, to.extent);
      std::erase_if(addends, [&](const Addend& addend) { return !sum.has_block(addend.block); });
      add_reduce(equation, as_tree(addends), contribution(combine.result, sum, to.extent), elements, result.dtype,
                 instruction, to, into);
    }
    return;
  }
  for (std::int64_t i = 0; i < to.extent.instances(); ++i) {
    const std::int64_t device = mesh.device_at(to.extent.instance + i, to.extent.axes);
    add_reduce(equation, addends_or_sums_of(combine, device, to.extent), slice_of(combine.result, i, to.extent),
               elements, result.dtype, instruction, to, into);
  }
}

BoundPlan::Addends BoundPlan::addends_or_sums_of(const ReduceCombine& combine, std::int64_t device,
                                                 const Extent& extent) const {
  return combine.step == ReduceCombine::Step::tree ? sums_of(combine, device, extent)
                                                   : as_tree(addends_of(combine, device, extent));
}

// The rows of each instance are a chunk of it.
void BoundPlan::bind_rows(const ReduceCombine& combine, const Instruction& instruction, Binding to,
                          std::vector<Command>& into) {
  const Mesh& mesh = plan_.program->mesh;
  const Buffer& result = buffer(combine.result);
  const std::int64_t rows = to.extent.rows_per_instance, width = result.elements / rows;
  const Address begin = address(combine.result, to.extent, true);
  for (std::int64_t row = to.extent.first, end = row + to.extent.count; row < end;) {
    Extent chunk;
    chunk.kind = Extent::Kind::chunk;
    chunk.axes = to.extent.axes;
    chunk.instance = row / rows;
    const std::int64_t count = std::min(end, (chunk.instance + 1) * rows) - row;
    chunk.first = row % rows * width;
    chunk.count = count * width;
    chunk.chunked_elements = result.elements;
    const std::int64_t device = mesh.device_at(chunk.instance, chunk.axes);
    Address target = begin;
    target.offset += count_of((row - to.extent.first) * width) * size_of(result.dtype);
    add_reduce(*combine.equation, addends_or_sums_of(combine, device, chunk), target, chunk.count, result.dtype,
               instruction, to, into);
    row += count;
  }
}

// Messages to one process are sent in the order of the values, in which that process receives them.
void BoundPlan::bind(const Communicate& communicate, const Instruction& instruction, Binding to,
                     std::vector<Command>& into) {
  RunCommunication command;
  command.transport = transport_;
  for (const Communicate::Values& values : communicate.values) {
    const Buffer& from = buffer(values.from);
    for (const Contribution& each : values.instances) {
      if (each.owner != share_.process()) continue;
      const std::int64_t device = share_.own_device(each.result, values.axes).value();
      command.copies.push_back({to.list.add(slice_of_device(values.from, device)), from.slice_bytes(), 1});
      to.list.add(address_in(values.to, each.slice * from.elements));
    }
    const auto add = [&](const RankMessage& message, int index, std::vector<RunCommunication::Message>& all) {
      all.push_back({message.other + first_process_, to.list.add(address_in(index, message.elements.first)),
                     count_of(message.elements.count) * size_of(from.dtype)});
    };
    const int sent = values.instances.empty() ? values.from : values.to;
    for (const RankMessage& message : values.messages.sends) add(message, sent, command.sends);
    for (const RankMessage& message : values.messages.receives) add(message, values.to, command.receives);
  }
  command.outgoing.reserve(command.sends.size());
  command.incoming.reserve(command.receives.size());
  into.push_back({&instruction, std::move(command)});
}

Address BoundPlan::slice_of(int index, std::int64_t i, const Extent& extent) const {
  Address slice = address(index, extent);
  slice.offset += count_of(i) * buffer(index).slice_bytes();
  return slice;
}

RunExchange BoundPlan::exchange_of(const Exchange& exchange, std::int64_t device, const GroupAddresses& group,
                                   std::int64_t i, Binding to) {
  const Equation& equation = *exchange.equation;
  RunExchange command{equation.op.data(), kernels_of(equation.op).exchange, group.first_pointer};
  command.operand = &plan_.program->type(equation.operands[exchange.index]);
  command.result = &plan_.program->type(equation.results[exchange.index]);
  command.devices = group.count;
  command.position = plan_.program->mesh.position(device, equation.op.axes());
  command.result_pointer = to.list.add(slice_of(exchange.result, i, to.extent));
  return command;
}

void BoundPlan::bind_own_parts(const Exchange& slice, const Instruction& instruction, Binding to,
                               std::vector<Command>& into) {
  const Mesh& mesh = plan_.program->mesh;
  const CollectiveRule rule = slice.equation->op.collective();
  const Type& part = plan_.program->type(slice.equation->results[slice.index]);
  std::size_t outer = 1, width = size_of(part.dtype);
  for (std::size_t i = 0; i < part.shape.size(); ++i) {
    (static_cast<std::int64_t>(i) < rule.dim ? outer : width) *= count_of(part.shape[i]);
  }
  for (std::int64_t i = 0; i < to.extent.instances(); ++i) {
    const std::int64_t device = mesh.device_at(to.extent.instance + i, to.extent.axes);
    Address from = slice_of_device(slice.operand, device);
    from.offset += count_of(mesh.position(device, rule.axes)) * width;
    StridedCopy copy{to.list.add(from), width, outer, width * count_of(mesh.group_size(rule.axes)), width};
    to.list.add(slice_of(slice.result, i, to.extent));
    into.push_back({&instruction, copy});
  }
}

// Emits one command for each instance of the result. A gather gives all devices of a group the same result, which is
// computed once and then copied.
void BoundPlan::bind(const Exchange& exchange, const Instruction& instruction, Binding to, std::vector<Command>& into) {
  const Mesh& mesh = plan_.program->mesh;
  const Buffer &operand = buffer(exchange.operand), &result = buffer(exchange.result);
  if (exchange.equation->op.rules().communication == Communication::slice) {
    return bind_own_parts(exchange, instruction, to, into);
  }
  const AxisSet along = exchange.equation->op.axes();
  const bool is_same = exchange.equation->op.rules().communication == Communication::gather;
  std::map<std::int64_t, GroupAddresses> groups;  // by the index of the group
  for (std::int64_t i = 0; i < to.extent.instances(); ++i) {
    const std::int64_t device = mesh.device_at(to.extent.instance + i, to.extent.axes);
    const auto [known, is_new] = groups.try_emplace(mesh.position(device, mesh.all() - along));
    GroupAddresses& group = known->second;
    if (is_new) {
      std::vector<Address> all;
      for (const std::int64_t other : mesh.group(device, along)) {
        const AxisSet varying = plan_.program->type(exchange.equation->operands[exchange.index]).varying;
        all.push_back(operand.contributions == 0
                          ? slice_of_device(exchange.operand, other)
                          : address_in(exchange.operand, mesh.position(other, varying) * operand.elements));
      }
      group = {to.list.add(all), all.size(), {}};
    }
    if (is_same && group.first_instance) {
      StridedCopy copy{to.list.add(slice_of(exchange.result, *group.first_instance, to.extent)), result.slice_bytes(),
                       1};
      to.list.add(slice_of(exchange.result, i, to.extent));
      into.push_back({&instruction, copy});
    } else {
      group.first_instance = i;
      into.push_back({&instruction, exchange_of(exchange, device, group, i, to)});
    }
  }
}

}  // namespace pmaptrain::cpu
