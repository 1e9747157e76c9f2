#include "tests/emulated_gpu/host_kernels.h"

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/ops/gpu_kernels.cuh"

namespace pmaptrain::test {
namespace {

// A kernel whose parameters are addresses and numbers of 8 bytes.
struct HostKernel {
  std::vector<bool> addresses;  // by parameter
  void (*call)(const std::uint64_t* arguments) = nullptr;
};

template <auto kernel, class... Parameters>
HostKernel host_kernel(void (*)(Parameters...)) {
  static_assert(((sizeof(Parameters) == 8) && ...));
  return {{std::is_pointer_v<Parameters>...}, [](const std::uint64_t* arguments) {
            [&]<std::size_t... i>(std::index_sequence<i...>) { kernel(std::bit_cast<Parameters>(arguments[i])...); }
            (std::index_sequence_for<Parameters...>{});
          }};
}

const std::unordered_map<std::string_view, HostKernel>& host_kernels() {
  static const std::unordered_map<std::string_view, HostKernel> kernels{
#define PMAPTRAIN_ENTRY(base, suffix) \
  {#base "_" #suffix, host_kernel<ops::device::base##_##suffix>(ops::device::base##_##suffix)},
      PMAPTRAIN_GPU_KERNELS(PMAPTRAIN_ENTRY)
#undef PMAPTRAIN_ENTRY
  };
  return kernels;
}

}  // namespace

void launch_on_host(const GpuLaunch& launch, const HostMemory& memory, ThreadOrder order, unsigned seed,
                    int forgotten_barrier) {
  const std::string name(launch.kernel);
  const auto found = host_kernels().find(launch.kernel);
  if (found == host_kernels().end()) throw std::logic_error("there is no kernel " + name);
  const HostKernel& kernel = found->second;
  if (kernel.addresses.size() != launch.arguments.size()) {
    throw std::logic_error(name + " has " + std::to_string(kernel.addresses.size()) + " parameters, not " +
                           std::to_string(launch.arguments.size()));
  }
  std::vector<std::uint64_t> arguments;
  for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
    const bool is_address = launch.arguments[i].kind != GpuArgument::Kind::value;
    if (is_address != kernel.addresses[i]) {
      throw std::logic_error("argument " + std::to_string(i) + " of " + name + " is " +
                             (is_address ? "an address, not a number" : "a number, not an address"));
    }
    arguments.push_back(gpu::value_of(launch.arguments[i], memory));
  }
  simt::launch({.grid = {launch.blocks[0], launch.blocks[1], launch.blocks[2]},
                .threads = launch.threads,
                .order = static_cast<simt::Order>(order),
                .seed = seed,
                .forgotten_barrier = forgotten_barrier},
               [&] { kernel.call(arguments.data()); });
}

}  // namespace pmaptrain::test
