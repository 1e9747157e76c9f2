// How the logical devices of a mesh are divided over processes. Process p of P carries the blocks from p * blocks / P
// up to (p + 1) * blocks / P, which are neighbours (core/mesh/blocks.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/mesh/blocks.h"

namespace pmaptrain {

// Which of the processes that carry a mesh this is.
struct Placement {
  int process = 0, processes = 1;
  friend bool operator==(const Placement&, const Placement&) = default;
};

// What a process has of a mesh. The mesh must outlive it. There must be at least as many blocks as processes.
class Share {
 public:
  explicit Share(const Mesh& mesh, std::int64_t blocks = 1, Placement placement = {})
      : mesh_(&mesh), blocks_(mesh, blocks), count_(blocks), placement_(placement) {}

  const Mesh& mesh() const { return *mesh_; }
  const Blocks& blocks() const { return blocks_; }
  int process() const { return placement_.process; }
  int processes() const { return placement_.processes; }
  bool is_whole() const { return placement_.processes == 1; }

  IndexRange devices(int process) const;
  IndexRange devices() const { return devices(process()); }
  bool has_device(std::int64_t device) const;
  // The first device of this process that has an instance of a value that varies over `axes`.
  std::optional<std::int64_t> own_device(std::int64_t instance, AxisSet axes) const;
  int process_of_block(std::int64_t block) const;
  int process_of(std::int64_t device) const { return process_of_block(blocks_.of_device(device)); }

  // The instances that a process has of a value that varies over `axes`: the smallest range with the instances of all
  // of its devices that begins and ends where blocks of instances do (Blocks::of_instance).
  IndexRange instances(AxisSet axes, int process) const;
  IndexRange instances(AxisSet axes) const { return instances(axes, process()); }
  bool has_instance(std::int64_t instance, AxisSet axes, int process) const;
  // Whether processes have different instances of such a value.
  bool divides(AxisSet axes) const;

 private:
  const Mesh* mesh_;
  Blocks blocks_;
  std::int64_t count_;
  Placement placement_;
};

// A value that one process computes and sends to all others that need it: the sum over some neighbouring blocks of the
// addends of one instance of a result, or an instance that a collective moves.
struct Contribution {
  std::int64_t result = 0;   // the instance of the result; of a value that is moved, the instance
  IndexRange blocks;         // the sum is over the addends of these blocks
  std::int64_t leaves = 1;   // how many of the blocks have addends
  int owner = 0;             // the process that computes it
  std::vector<int> readers;  // the other processes that get it from the owner, ascending
  // Where this process stores it: the index of a slice; -1 if this process neither owns nor needs it.
  std::int64_t slice = -1;

  bool has_block(std::int64_t block) const { return blocks.first <= block && block < blocks.first + blocks.count; }
};

// What the processes contribute to a reduction along `along` of a value that varies over `varying`: for each instance
// of the result, from left to right, the largest subtrees of the tree of blocks whose blocks one process carries.
std::vector<Contribution> sums_of_processes(const Share& share, AxisSet varying, AxisSet along);

// The instances of a value that varies over `varying`. A process owns those of its devices, and gets each other
// one from the device that has it in the group along `varying` of its own first device.
std::vector<Contribution> instances_of_processes(const Share& share, AxisSet varying);

// The number of slices that this process stores, and whether any process sends something.
std::int64_t slices_of(const std::vector<Contribution>& all);
bool any_is_sent(const std::vector<Contribution>& all);

}  // namespace pmaptrain
