#include "core/runtime/gpu/division.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/mesh/blocks.h"

namespace pmaptrain::gpu {
namespace {

// The largest number of GPUs that an error message lists.
constexpr int most_listed = 64;

constexpr int most_blocks = 8;

std::optional<Division> try_divide(const Mesh& mesh, int gpus) {
  std::vector<Axis> grid = mesh.axes(), local = mesh.axes();
  std::int64_t left = gpus;
  for (std::size_t axis = 0; axis < grid.size(); ++axis) {
    grid[axis].size = std::gcd(local[axis].size, left);
    local[axis].size /= grid[axis].size;
    left /= grid[axis].size;
  }
  if (left != 1) return std::nullopt;
  return Division{Mesh(std::move(grid)), Mesh(std::move(local))};
}

bool has_whole_blocks(const Mesh& mesh, const Division& division, int blocks) {
  const Mesh block = blocks_of(mesh, blocks).local;
  for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis) {
    if (division.local.size(axis) % block.size(axis) != 0) return false;
  }
  return true;
}

// Whether the devices of each process are neighbours and a sub-box, so that it has the instances of a value from its
// first one to its last (Share::instances).
bool are_neighbours(const Mesh& mesh, const Division& division, int processes) {
  if (processes == 1) return true;
  const std::optional<Division> boxes = try_divide(mesh, processes);
  if (division.gpus() % processes != 0 || !boxes) return false;
  const std::int64_t gpus_each = division.gpus() / processes, devices_each = mesh.devices() / processes;
  for (std::int64_t device = 0; device < mesh.devices(); ++device) {
    const std::int64_t process = device / devices_each;
    if (division.gpu_of(device) / gpus_each != process || boxes->gpu_of(device) != process) return false;
  }
  return true;
}

std::optional<Division> try_divide(const Mesh& mesh, int gpus, Limits limits) {
  std::optional<Division> division = try_divide(mesh, gpus);
  if (division && !are_neighbours(mesh, *division, limits.processes)) return std::nullopt;
  if (division && limits.parts == Parts::whole_blocks && !has_whole_blocks(mesh, *division, limits.blocks)) {
    return std::nullopt;
  }
  return division;
}

// What would do in place of a number of GPUs that does not divide the mesh.
std::string help_for(const Mesh& mesh, Limits limits) {
  std::vector<std::int64_t> counts;
  for (const int gpus : possible_gpu_counts(mesh, most_listed * limits.processes, limits)) {
    counts.push_back(gpus / limits.processes);
  }
  if (!counts.empty()) return listed(counts, "or") + " would do";
  for (int processes = 1; processes <= most_listed; ++processes) {
    if (try_divide(mesh, processes, {limits.parts, limits.blocks, processes})) counts.push_back(processes);
  }
  return counts.empty() ? "" : listed(counts, "or") + " processes with a GPU each would do";
}

}  // namespace

std::int64_t Division::device_of(int gpu, std::int64_t local_device) const {
  std::int64_t index = 0;
  for (int axis = 0; axis < static_cast<int>(grid.axes().size()); ++axis) {
    const std::int64_t coordinate =
        grid.coordinate(gpu, axis) * local.size(axis) + local.coordinate(local_device, axis);
    index = index * grid.size(axis) * local.size(axis) + coordinate;
  }
  return index;
}

std::pair<int, std::int64_t> Division::place_of(std::int64_t device) const {
  std::int64_t gpu = 0, local_device = 0, gpus_behind = 1, devices_behind = 1;
  for (int axis = static_cast<int>(grid.axes().size()) - 1; axis >= 0; --axis) {
    const std::int64_t size = grid.size(axis) * local.size(axis), coordinate = device % size;
    device /= size;
    gpu += coordinate / local.size(axis) * gpus_behind;
    local_device += coordinate % local.size(axis) * devices_behind;
    gpus_behind *= grid.size(axis);
    devices_behind *= local.size(axis);
  }
  return {static_cast<int>(gpu), local_device};
}

Division divide(const Mesh& mesh, int gpus, Limits limits) {
  if (std::optional<Division> division = try_divide(mesh, gpus, limits)) return *std::move(division);
  std::string over = counted(gpus / limits.processes, "GPU");
  if (limits.processes > 1) over += " in each of " + std::to_string(limits.processes) + " processes";
  if (limits.parts == Parts::whole_blocks) over += " with mesh.deterministic";
  if (limits.parts == Parts::whole_blocks && limits.blocks > 0) {
    over += " and " + counted(limits.blocks, "block");
  }
  throw Error(ExitStatus::usage, Diagnostic{"mesh",
                                            {},
                                            "the " + std::to_string(mesh.devices()) +
                                                " logical devices of the mesh do not divide over " + over,
                                            help_for(mesh, limits),
                                            {}});
}

std::vector<int> possible_gpu_counts(const Mesh& mesh, int most, Limits limits) {
  std::vector<int> found;
  for (int gpus = 1; gpus <= std::min<std::int64_t>(most, mesh.devices()); ++gpus) {
    if (try_divide(mesh, gpus, limits)) found.push_back(gpus);
  }
  return found;
}

Division blocks_of(const Mesh& mesh, int count) {
  return count == 0 ? *try_divide(mesh, possible_gpu_counts(mesh, most_blocks).back()) : divide(mesh, count);
}

std::vector<IndexRange> SumTree::of_gpu(std::int64_t gpu) const {
  std::vector<IndexRange> found;
  for (const Subtree& each : subtrees) {
    if (each.gpu == gpu) found.push_back(each.blocks);
  }
  return found;
}

SumTree sum_tree(const Division& blocks, const Division& gpus, AxisSet over) {
  std::vector<int> gpu_of;
  for (std::int64_t i = 0; i < blocks.grid.group_size(over); ++i) {
    const std::int64_t device = blocks.device_of(static_cast<int>(blocks.grid.device_at(i, over)), 0);
    gpu_of.push_back(static_cast<int>(gpus.grid.position(gpus.gpu_of(device), over)));
  }
  SumTree tree;
  for (const Subtree& each : subtrees_of(gpu_of)) {
    const std::int64_t slot = std::ssize(tree.of_gpu(each.owner));
    tree.subtrees.push_back({each.leaves, each.owner, slot});
    tree.slots = std::max(tree.slots, slot + 1);
  }
  return tree;
}

}  // namespace pmaptrain::gpu
