#include "core/passes/pipeline.h"

#include <utility>

#include "core/passes/fuse.h"
#include "core/passes/fuse_bias_gradients.h"
#include "core/passes/fuse_columns.h"
#include "core/passes/fuse_epilogues.h"
#include "core/passes/fuse_rows.h"
#include "core/passes/hoist.h"
#include "core/passes/inline_chains.h"
#include "core/passes/join_columns.h"
#include "core/passes/join_sums.h"
#include "core/passes/remove_identities.h"
#include "core/passes/sink_pvary.h"
#include "core/passes/split_early.h"
#include "core/passes/widen.h"

namespace pmaptrain {

std::span<const Pass> passes_of_all_backends() {
  static constexpr Pass passes[] = {widen, remove_identities, hoist, sink_pvary, fuse_epilogues, fuse};
  return passes;
}

std::span<const Pass> passes_of_gpus() {
  static constexpr Pass passes[] = {fuse_bias_gradients, fuse_columns, inline_chains, join_columns,
                                    split_early,         fuse_rows,    join_sums};
  return passes;
}

Program run_passes(Program program, std::span<const Pass> passes) {
  for (const Pass pass : passes) program = pass(std::move(program));
  return program;
}

}  // namespace pmaptrain
