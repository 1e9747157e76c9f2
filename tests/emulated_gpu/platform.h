// GPUs emulated on the host, behind the seam of core/runtime/gpu/device.h: every call is carried out at once, on host
// memory, and is checked for what a GPU would only sometimes show: accesses without an order, accesses that were not
// declared, memory of another device, ranks that do not meet.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/runtime/gpu/device.h"

namespace pmaptrain::test {

struct Emulation {
  int devices = 1;
  std::size_t memory = std::size_t{1} << 30;  // of each device
  unsigned seed = 0;   // of what the real thing leaves open: the order of a sum, when poll() says yes
  bool graphs = true;  // a graph is one launch; else a replay makes each call that was recorded
  std::chrono::milliseconds patience{10'000};  // how long a rank waits for the others
  // Planted: from its collective of this number on (counted over all communicators, from 0) a rank no longer comes.
  int lost_rank = -1;
  int lost_from = 0;
  bool turned_parts = false;   // planted: what an exchange gets of the ranks begins with that of rank 1, not of rank 0
  int forgotten_barrier = -1;  // planted: no kernel's threads wait at their barrier of this number, from 0
};

// In place of make_gpu_kernel: every equation by its op's reference, as the emulation carries out generated code.
inline GpuKernel by_reference(const Op&, const GpuRequest&) { return {{GpuGenerated{}}, 0}; }

// Devices throw Error as device.h says. One that was opened may outlive its platform.
std::unique_ptr<gpu::Platform> make_emulated(const Emulation& options);

// The GPUs of several processes, as many as `options` says in each: platform p is that of process p. A device reaches
// those of other processes by communicators alone.
std::vector<std::unique_ptr<gpu::Platform>> make_emulated(int processes, const Emulation& options);

// What the emulation cannot see: the host reads, or writes, pinned memory. Throws Error (failed) where a call that the
// host has not waited for uses the same bytes.
void host_reads(const gpu::Platform& emulated, gpu::Range range);
void host_writes(const gpu::Platform& emulated, gpu::Range range);

// What was found to be wrong so far where nothing can be thrown: memory that is freed while another device uses it.
// Empty where nothing is, and again afterwards; the end of the platform and its devices fails a test case otherwise.
std::string take_misuse(const gpu::Platform& emulated);

// Bytes that all devices have sent to others so far, as gpu::bytes_sent() counts them.
std::size_t bytes_between(const gpu::Platform& emulated);
// Bytes that have been copied from the host to all devices so far.
std::size_t bytes_from_host(const gpu::Platform& emulated);

}  // namespace pmaptrain::test
