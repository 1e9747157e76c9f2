// How the members and the logical devices of a config divide over processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/mesh/share.h"
#include "core/spec/spec.h"

namespace pmaptrain::report {

// How processes divide the members of an ensemble, and the logical devices of each.
struct ProcessDivision {
  std::vector<IndexRange> members;        // by process; without an ensemble one member
  std::vector<IndexRange> devices;        // by process: of each of its members
  std::vector<std::int64_t> that_divide;  // numbers of processes that would have as many members and blocks each,
                                          // ascending; of one block, that would have as many devices each
};
// There must be at least as many blocks as processes of a member.
ProcessDivision divide_over_processes(const spec::Spec& spec, int processes);

// "2 workers", "2 workers in each of 4 processes, in 8 blocks"
std::string carriers_text(int workers, bool are_gpus, int processes, const spec::MeshSpec& mesh);

// What each of `processes` has, and which numbers of processes would divide members and devices alike; and
// `sent_bytes`, which process 0 sends in a step. One line, or two.
std::string processes_text(const spec::Spec& spec, int processes, std::optional<std::size_t> sent_bytes);

}  // namespace pmaptrain::report
