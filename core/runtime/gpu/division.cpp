#include "core/runtime/gpu/division.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/base/text.h"

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

bool has_whole_blocks(const Mesh& mesh, const Division& division) {
  const Mesh block = blocks_of(mesh).local;
  for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis) {
    if (division.local.size(axis) % block.size(axis) != 0) return false;
  }
  return true;
}

std::optional<Division> try_divide(const Mesh& mesh, int gpus, Parts parts) {
  std::optional<Division> division = try_divide(mesh, gpus);
  if (division && parts == Parts::whole_blocks && !has_whole_blocks(mesh, *division)) return std::nullopt;
  return division;
}

// The number of the device at these coordinates.
std::int64_t index_of(const Mesh& mesh, const std::vector<std::int64_t>& coordinates) {
  std::int64_t index = 0;
  for (std::size_t axis = 0; axis < coordinates.size(); ++axis) {
    index = index * mesh.size(static_cast<int>(axis)) + coordinates[axis];
  }
  return index;
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

int Division::gpu_of(std::int64_t device) const {
  std::vector<std::int64_t> coordinates(grid.axes().size());
  for (int axis = static_cast<int>(coordinates.size()) - 1; axis >= 0; --axis) {
    const std::int64_t size = grid.size(axis) * local.size(axis);
    coordinates[static_cast<std::size_t>(axis)] = device % size / local.size(axis);
    device /= size;
  }
  return static_cast<int>(index_of(grid, coordinates));
}

std::int64_t Division::local_of(std::int64_t device) const {
  std::vector<std::int64_t> coordinates(local.axes().size());
  for (int axis = static_cast<int>(coordinates.size()) - 1; axis >= 0; --axis) {
    const std::int64_t size = grid.size(axis) * local.size(axis);
    coordinates[static_cast<std::size_t>(axis)] = device % size % local.size(axis);
    device /= size;
  }
  return index_of(local, coordinates);
}

Division divide(const Mesh& mesh, int gpus, Parts parts) {
  if (std::optional<Division> division = try_divide(mesh, gpus, parts)) return *std::move(division);
  const std::vector<int> counts = possible_gpu_counts(mesh, most_listed, parts);
  const std::string why = parts == Parts::whole_blocks ? " with mesh.deterministic" : "";
  throw Error(ExitStatus::usage,
              Diagnostic{"mesh",
                         {},
                         "the " + std::to_string(mesh.devices()) + " logical devices of the mesh do not divide over " +
                             std::to_string(gpus) + " GPUs" + why,
                         listed(std::vector<std::int64_t>(counts.begin(), counts.end()), "or") + " would do",
                         {}});
}

std::vector<int> possible_gpu_counts(const Mesh& mesh, int most, Parts parts) {
  std::vector<int> found;
  for (int gpus = 1; gpus <= std::min<std::int64_t>(most, mesh.devices()); ++gpus) {
    if (try_divide(mesh, gpus, parts)) found.push_back(gpus);
  }
  return found;
}

Division blocks_of(const Mesh& mesh) { return *try_divide(mesh, possible_gpu_counts(mesh, most_blocks).back()); }

}  // namespace pmaptrain::gpu
