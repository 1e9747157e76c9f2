#include "core/runtime/cpu/worker.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace pmaptrain {
namespace {

std::string key_of(const Op& op, const CpuRequest& request) {
  std::string key = to_string(op) + "|" + std::to_string(request.devices);
  const auto add = [&](const Type& type) { key += "|" + std::string(to_string(type.dtype)) + to_string(type.shape); };
  for (std::size_t i = 0; i < request.operands.size(); ++i) {
    add(request.operands[i]);
    if (request.stacked[i]) key += "*";
  }
  for (const Type& type : request.results) add(type);
  for (const auto& [operand, result] : request.shared) {
    key += "|" + std::to_string(operand) + "=" + std::to_string(result);
  }
  if (request.region != nullptr) key += "|" + std::to_string(reinterpret_cast<std::uintptr_t>(request.region));
  return key;
}

}  // namespace

Worker::Worker(const Plan& plan, const Memory& memory, MakeKernel make_kernel, int index, int count)
    : plan_(plan), memory_(memory), make_kernel_(std::move(make_kernel)), index_(index), count_(count) {
  use_one_thread_in_libraries();
  const auto blocks = static_cast<int>(plan.blocks.size()), at_once = static_cast<int>(memory.blocks_at_once());
  for (const Stage& stage : plan.stages) {
    BoundStage& bound = stages_.emplace_back();
    bound.invariant = bind(stage.invariant, {});
    const int end = (index + 1) * blocks / count;
    for (int b = index * blocks / count; b < end; b += at_once) {
      bound.runs.push_back(bind(stage.varying, {b, std::min(at_once, end - b)}));
    }
  }
  std::size_t bytes = alignment;
  for (const auto& [key, kernel] : kernels_) bytes = std::max(bytes, kernel->scratch_bytes());
  bytes = (bytes + alignment - 1) / alignment * alignment;
  scratch_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, bytes)));
  if (!scratch_) throw std::bad_alloc();
}

Block Worker::devices_of(Place place) const {
  if (place.blocks == 0) return {0, 1};
  const auto first = static_cast<std::size_t>(place.first_block), blocks = static_cast<std::size_t>(place.blocks);
  Block all = plan_.blocks[first];
  for (std::size_t b = first + 1; b < first + blocks; ++b) all.count += plan_.blocks[b].count;
  return all;
}

std::byte* Worker::address(int index, Place place, std::int64_t device_in_block) const {
  return memory_.address(buffer(index), index_, devices_of(place).first + device_in_block, device_in_block);
}

const Type* Worker::flat(DType dtype, std::int64_t elements) {
  types_.push_back({dtype, {elements}, {}});
  return &types_.back();
}

// The elements of a split value that are this worker's: whole cache lines, whatever the element type.
std::pair<std::int64_t, std::int64_t> Worker::range(std::int64_t elements) const {
  const auto cut = [&](std::int64_t worker) {
    return worker == count_ ? elements : elements * worker / count_ / 64 * 64;
  };
  return {cut(index_), cut(index_ + 1)};
}

CpuKernel* Worker::kernel(const Op& op, const CpuRequest& request) {
  std::unique_ptr<CpuKernel>& kernel = kernels_[key_of(op, request)];
  if (!kernel) kernel = make_kernel_(op, request);
  return kernel.get();
}

std::vector<Command> Worker::bind(const std::vector<Step>& steps, Place place) {
  std::vector<Command> commands;
  commands.reserve(steps.size());
  for (const Step& step : steps) {
    if (step.parts > 0) {
      bind_parts(step, commands);
    } else if (!step.row_sums.empty()) {
      bind_row_sums(step, place, commands);
    } else {
      commands.push_back(bind(step, place));
    }
  }
  return commands;
}

Command Worker::bind(const Step& step, Place place) {
  Command command;
  command.kind = step.kind;
  command.step = &step;
  switch (step.kind) {
    case Step::Kind::kernel: bind_kernel(step, place, command); break;
    case Step::Kind::copy: bind_copy(step, place, command); break;
    case Step::Kind::accumulate: bind_accumulate(step, place, command); break;
    case Step::Kind::combine: bind_combine(step, place, command); break;
    case Step::Kind::exchange: bind_exchange(step, place, command); break;
    case Step::Kind::loop: bind_loop(step, place, command); break;
  }
  return command;
}

// For each block, one call over the rows of all its devices, whose result is its accumulator.
void Worker::bind_row_sums(const Step& step, Place place, std::vector<Command>& commands) {
  const std::int64_t first = devices_of(place).first;
  for (int number = place.first_block; number < place.first_block + place.blocks; ++number) {
    const auto b = static_cast<std::size_t>(number);
    const Block block = plan_.blocks[b];
    Command& command = commands.emplace_back();
    command.step = &step;
    std::vector<Type> operands = step.operand_types;
    for (Type& operand : operands) operand.shape.front() *= block.count;
    for (int operand : step.operands) command.operands.push_back(address(operand, place, block.first - first));
    for (int index : step.row_sums) {
      const Accumulator& accumulator = plan_.accumulators[static_cast<std::size_t>(index)];
      command.results.push_back(memory_.accumulator(accumulator, b, 0));
      command.odd_results.push_back(memory_.accumulator(accumulator, b, 1));
    }
    const CpuRequest request{operands, step.result_types, 1, std::vector<bool>(operands.size(), true)};
    command.kernel = kernel(step.equation->op, request);
  }
}

// One command for each of this worker's parts: it gathers the columns of the first operand that make the part's rows,
// so that any kernel can take them. That is little beside the product: each element is multiplied many times.
void Worker::bind_parts(const Step& step, std::vector<Command>& commands) {
  const auto devices = plan_.program->mesh.devices();
  Type columns = step.operand_types[0], other = step.operand_types[1], result = step.result_types.front();
  const std::int64_t width = columns.shape[1], rows = columns.shape[0] *= devices;
  other.shape[0] *= devices;
  std::byte* const gathered = memory_.arena(index_);  // no block is at hand
  const std::size_t size = size_of(columns.dtype), row_of_result = bytes(result) / static_cast<std::size_t>(width);
  for (std::int64_t part = index_ * step.parts / count_; part < (index_ + 1) * step.parts / count_; ++part) {
    const std::int64_t begin = part_begin(width, step.parts, part), end = part_begin(width, step.parts, part + 1);
    const auto first = static_cast<std::size_t>(begin), count = static_cast<std::size_t>(end - begin);
    Command& command = commands.emplace_back();
    command.step = &step;
    columns.shape[1] = result.shape[0] = end - begin;
    command.copies.push_back({memory_.address(buffer(step.operands[0]), index_, 0, 0) + first * size, gathered,
                              count * size, static_cast<std::size_t>(rows), static_cast<std::size_t>(width) * size,
                              count * size, 0});
    command.operands = {gathered, memory_.address(buffer(step.operands[1]), index_, 0, 0)};
    command.results = {memory_.address(buffer(step.results.front()), index_, 0, 0) + first * row_of_result};
    const Type operands[] = {columns, other};
    command.kernel = kernel(step.equation->op, {operands, {&result, 1}, 1, {true, true}});
  }
}

void Worker::bind_kernel(const Step& step, Place place, Command& command) {
  const std::int64_t devices = buffer(step.results.front()).stacked() ? devices_of(place).count : 1;
  std::vector<Type> operands = step.operand_types, results = step.result_types;
  CpuRequest request{operands, results, devices, {}};
  for (int operand : step.operands) {
    request.stacked.push_back(devices == 1 || buffer(operand).stacked());
    command.operands.push_back(address(operand, place));
  }
  for (int result : step.results) command.results.push_back(address(result, place));
  if (step.split) {
    const std::int64_t elements = numel(results.front());
    const auto [begin, end] = range(elements);
    if (begin == end) return;  // no kernel: nothing to do
    const auto cut = [&, from = begin, to = end](Type& type, auto& data) {
      if (numel(type) != elements) return type.shape.clear();
      type.shape = {to - from};
      data += static_cast<std::size_t>(from) * size_of(type.dtype);
    };
    for (std::size_t i = 0; i < operands.size(); ++i) cut(operands[i], command.operands[i]);
    for (std::size_t i = 0; i < results.size(); ++i) cut(results[i], command.results[i]);
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    for (std::size_t r = 0; r < results.size(); ++r) {
      if (command.operands[i] == command.results[r]) request.shared.emplace_back(i, r);
    }
  }
  if (!step.equation->regions.empty()) {
    request.region = &step.equation->regions.front();
    request.types = plan_.program->types;
  }
  command.kernel = kernel(step.equation->op, request);
}

void Worker::bind_copy(const Step& step, Place place, Command& command) {
  const Buffer& from = buffer(step.operands.front());
  const Buffer& to = buffer(step.results.front());
  const auto devices = static_cast<std::size_t>(to.stacked() ? devices_of(place).count : 1);
  std::size_t offset = 0, bytes = to.slice_bytes();
  if (step.split) {
    const auto [begin, end] = range(to.elements);
    offset = static_cast<std::size_t>(begin) * size_of(to.dtype);
    bytes = static_cast<std::size_t>(end - begin) * size_of(to.dtype);
  }
  command.copies.push_back({address(step.operands.front(), place) + offset,
                            address(step.results.front(), place) + offset, bytes, devices,
                            from.stacked() ? from.slice_bytes() : 0, to.slice_bytes(), 0});
}

void Worker::bind_loop(const Step& step, Place place, Command& command) {
  command.iterations = step.iterations;
  for (std::size_t i = 0; i < step.slices.size(); ++i) {
    const Buffer& whole = buffer(step.operands[i]);
    const Buffer& slice = buffer(step.slices[i]);
    const auto devices = static_cast<std::size_t>(slice.stacked() ? devices_of(place).count : 1);
    command.copies.push_back({address(step.operands[i], place), address(step.slices[i], place), slice.slice_bytes(),
                              devices, whole.stacked() ? whole.slice_bytes() : 0, slice.slice_bytes(),
                              slice.slice_bytes()});
  }
  command.before = bind(step.before, place);
  command.body = bind(step.body, place);
}

void Worker::bind_accumulate(const Step& step, Place place, Command& command) {
  const Accumulator& accumulator = plan_.accumulators[static_cast<std::size_t>(step.accumulator)];
  const Type* const type = flat(accumulator.dtype, accumulator.elements);
  command.exchange = kernels_of(step.equation->op).exchange;
  const bool stacked = buffer(step.operands.front()).stacked();
  const std::int64_t first = devices_of(place).first;
  for (int number = place.first_block; number < place.first_block + place.blocks; ++number) {
    const auto b = static_cast<std::size_t>(number);
    const Block block = plan_.blocks[b];
    for (int parity = 0; parity < 2; ++parity) {
      Command::Exchange& exchange = command.exchanges[parity].emplace_back();
      std::vector<ConstArray>& addends = command.arrays.emplace_back();
      for (std::int64_t d = block.first - first; d < block.first - first + block.count; ++d) {
        addends.push_back({type, address(step.operands.front(), place, stacked ? d : 0)});
      }
      exchange.operands = {addends};
      exchange.results = {{type, memory_.accumulator(accumulator, b, parity)}};
    }
  }
}

void Worker::bind_combine(const Step& step, Place place, Command& command) {
  const Accumulator& accumulator = plan_.accumulators[static_cast<std::size_t>(step.accumulator)];
  const Buffer& result = buffer(step.results.front());
  const auto [begin, end] =
      step.split ? range(accumulator.elements) : std::pair<std::int64_t, std::int64_t>(0, accumulator.elements);
  if (begin == end) return;
  const Type* const type = flat(accumulator.dtype, end - begin);
  const std::size_t offset = static_cast<std::size_t>(begin) * size_of(accumulator.dtype);
  command.exchange = kernels_of(step.equation->op).exchange;
  for (int parity = 0; parity < 2; ++parity) {
    for (std::int64_t d = 0; d < (result.stacked() ? devices_of(place).count : 1); ++d) {
      Command::Exchange& exchange = command.exchanges[parity].emplace_back();
      std::vector<ConstArray>& blocks = command.arrays.emplace_back();
      for (std::size_t b = 0; b < plan_.blocks.size(); ++b) {
        blocks.push_back({type, memory_.accumulator(accumulator, b, parity) + offset});
      }
      exchange.operands = {blocks};
      exchange.results = {{type, address(step.results.front(), place, d) + offset}};
    }
  }
}

void Worker::bind_exchange(const Step& step, Place place, Command& command) {
  const Mesh& mesh = plan_.program->mesh;
  const AxisSet axes = collective_axes(step.equation->op);
  command.exchange = kernels_of(step.equation->op).exchange;
  const std::int64_t devices = buffer(step.results.front()).stacked() ? devices_of(place).count : 1;
  std::map<std::int64_t, std::vector<std::span<const ConstArray>>> groups;  // by what their devices agree on
  for (std::int64_t d = 0; d < devices; ++d) {
    const std::int64_t device = devices_of(place).first + d;
    const auto [group, is_new] = groups.try_emplace(mesh.position(device, mesh.all() - axes));
    if (is_new) {
      const std::vector<std::int64_t> devices_of_group = mesh.group(device, axes);
      for (std::size_t i = 0; i < step.operands.size(); ++i) {
        std::vector<ConstArray>& members = command.arrays.emplace_back();
        for (std::int64_t other : devices_of_group) {
          members.push_back({&step.operand_types[i], memory_.address(buffer(step.operands[i]), index_, other, 0)});
        }
        group->second.emplace_back(members);
      }
    }
    Command::Exchange& exchange = command.exchanges[0].emplace_back();
    exchange.member = mesh.position(device, axes);
    exchange.operands = group->second;
    for (std::size_t i = 0; i < step.results.size(); ++i) {
      exchange.results.push_back({&step.result_types[i], address(step.results[i], place, d)});
    }
  }
}

void Worker::run_step(int parity, Barrier& barrier) {
  for (std::size_t number = 0; number < stages_.size(); ++number) {
    if (number > 0) barrier.arrive_and_wait();
    BoundStage& stage = stages_[number];
    run(stage.invariant, scratch_.get(), parity);
    for (const std::vector<Command>& commands : stage.runs) run(commands, scratch_.get(), parity);
  }
}

void Worker::run(const std::vector<Command>& commands, std::byte* scratch, int parity) {
  for (const Command& command : commands) run(command, scratch, parity);
}

void Worker::run(const Command& command, std::byte* scratch, int parity) {
  const auto copy = [](const Command::Copy& c, std::size_t iteration) { c.run(iteration); };
  switch (command.kind) {
    case Step::Kind::kernel:
      if (command.kernel != nullptr) {
        for (const Command::Copy& c : command.copies) copy(c, 0);
        const bool odd = parity == 1 && !command.odd_results.empty();
        command.kernel->run({command.operands.data(), (odd ? command.odd_results : command.results).data(), scratch});
      }
      return;
    case Step::Kind::copy:
      for (const Command::Copy& c : command.copies) copy(c, 0);
      return;
    case Step::Kind::accumulate:
    case Step::Kind::combine:
    case Step::Kind::exchange:
      for (const Command::Exchange& e :
           command.exchanges[command.kind == Step::Kind::exchange ? 0 : static_cast<std::size_t>(parity)]) {
        command.exchange(command.step->equation->op.data(), {e.operands, e.member, e.results});
      }
      return;
    case Step::Kind::loop:
      run(command.before, scratch, parity);
      for (std::int64_t k = 0; k < command.iterations; ++k) {
        for (const Command::Copy& c : command.copies) copy(c, static_cast<std::size_t>(k));
        run(command.body, scratch, parity);
      }
      return;
  }
}

}  // namespace pmaptrain
