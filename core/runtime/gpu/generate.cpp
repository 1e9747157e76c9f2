#include "core/runtime/gpu/generate.h"

#include <string>
#include <utility>

#include "core/ops/fused/gpu_source.h"

namespace pmaptrain::gpu {

GeneratedSource generate_source(const Op& op, const GpuRequest& request) {
  ops::GpuSource source = ops::gpu_source(op, request, "generated");
  return {std::string(ops::gpu_prelude()) + source.text, std::move(source.launch)};
}

}  // namespace pmaptrain::gpu
