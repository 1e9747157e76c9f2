// Allocation in pools, and the buffers of inputs, which the plans of a module share.
#include <cassert>

#include "core/base/saturate.h"
#include "core/runtime/cpu/plan.h"

namespace pmaptrain::cpu {

std::size_t& size_of_pool(PoolSizes& sizes, Pool pool) {
  switch (pool) {
    case Pool::constant: return sizes.constants;
    case Pool::worker: return sizes.worker;
    case Pool::shared: return sizes.shared;
    case Pool::batch: return sizes.batch;
    default: break;
  }
  assert(pool == Pool::device);
  return sizes.devices;
}

std::int64_t slices_of(const Buffer& buffer, const Share& share) {
  if (buffer.pieces > 0) return buffer.pieces;
  return buffer.contributions > 0 ? buffer.contributions : share.instances(buffer.axes).count;
}

void allocate_in_pool(Buffer& buffer, const Share& share, PoolSizes& sizes) {
  std::size_t& pool = buffer.of_all_members ? sizes.base : size_of_pool(sizes, buffer.pool);
  buffer.offset = pool;
  const auto slices = static_cast<std::size_t>(slices_of(buffer, share));
  pool = sum_of(pool, round_up(product_of(buffer.slice_bytes(), slices), alignment));
}

std::string_view to_string(Pool pool) {
  switch (pool) {
    case Pool::constant: return "constant";
    case Pool::worker: return "worker";
    case Pool::shared: return "shared";
    case Pool::device: return "device";
    case Pool::batch: return "batch";
    case Pool::arena: return "arena";
    case Pool::packed: return "packed";
    case Pool::piece: break;
  }
  return "piece";
}

void add_inputs(const Program& program, const PlanOptions& options, SharedInputs& inputs) {
  for (const Input& input : program.inputs) {
    if (input.group == Group::batch) continue;
    const auto [known, is_new] = inputs.buffers.try_emplace(input.name);
    if (!is_new) continue;
    const Type& type = program.type(input.value);
    Buffer& buffer = known->second;
    buffer.dtype = type.dtype;
    buffer.elements = numel(type);
    buffer.axes = options.private_copies ? program.mesh.all() : type.varying;
    buffer.pool = !buffer.axes.empty() ? Pool::device : buffer.elements <= small_elements ? Pool::worker : Pool::shared;
    buffer.persistent = true;
    // Small values that each worker has are not worth an address of their own.
    buffer.of_all_members = is_of_all_members(input.group) && buffer.pool != Pool::worker;
    allocate_in_pool(buffer, Share(program.mesh, options.blocks, options.placement), inputs.sizes);
  }
}

}  // namespace pmaptrain::cpu
