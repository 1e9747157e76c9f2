#include "core/runtime/cuda/prepared_command.h"

#include <numeric>

namespace pmaptrain::cuda {

Slices::Slices(const GpuRequest& request) : devices(request.devices) {
  for (std::size_t i = 0; i < request.operands.size(); ++i) {
    operand_stride.push_back(request.stacked[i] ? static_cast<std::int64_t>(bytes(request.operands[i])) : 0);
  }
  for (const Type& type : request.results) result_stride.push_back(static_cast<std::int64_t>(bytes(type)));
}

std::size_t alignment_of(const Type& type, std::size_t limit) {
  return bytes(type) == 0 ? limit : std::gcd(bytes(type), limit);
}

}  // namespace pmaptrain::cuda
