// The interface between the program and the shared library libpmaptrain_mpi.so, which contains all use of MPI.
#pragma once

#include "core/runtime/transport.h"

namespace pmaptrain::mpi {

// Both sides have the same number, or the program refuses the library.
inline constexpr int module_abi = 4;

struct ModuleTable {
  int abi = module_abi;
  // Joins the job that a launcher has started. `placement` and `place` are set to this process's. Called once. Returns
  // null, with a reason in `why` that is valid forever, if this fails.
  Transport* (*join)(Placement& placement, HostPlace& place, const char*& why) = nullptr;
  // Leaves the job, when all other processes do. The transport must not be used afterwards.
  void (*leave)() = nullptr;
};

inline constexpr const char* module_function = "pmaptrain_mpi";
using ModuleFunction = const ModuleTable* (*)();

}  // namespace pmaptrain::mpi
