// A module of another version of the program.
#include "core/runtime/gpu/module_table.h"

extern "C" const pmaptrain::gpu::ModuleTable* pmaptrain_cuda() {
  static constexpr pmaptrain::gpu::ModuleTable table{pmaptrain::gpu::module_abi + 1, nullptr, nullptr};
  return &table;
}
