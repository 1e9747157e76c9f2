#include "core/mesh/share.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace pmaptrain {
namespace {

void number_slices(const Share& share, std::vector<Contribution>& all) {
  std::int64_t slices = 0;
  for (Contribution& each : all) {
    const bool reads = std::count(each.readers.begin(), each.readers.end(), share.process()) > 0;
    if (each.owner == share.process() || reads) each.slice = slices++;
  }
}

}  // namespace

IndexRange Share::devices(int process) const {
  const std::int64_t each = mesh_->devices() / count_;
  const std::int64_t first = process * count_ / placement_.processes,
                     end = (process + 1) * count_ / placement_.processes;
  return {first * each, (end - first) * each};
}

bool Share::divides(AxisSet axes) const {
  const std::int64_t all = mesh_->group_size(axes);
  for (int process = 0; process < processes(); ++process) {
    if (instances(axes, process).count < all) return true;
  }
  return false;
}

bool Share::has_device(std::int64_t device) const {
  const IndexRange own = devices();
  return own.first <= device && device < own.first + own.count;
}

std::optional<std::int64_t> Share::own_device(std::int64_t instance, AxisSet axes) const {
  const std::int64_t first_of_all = mesh_->device_at(instance, axes);
  if (has_device(first_of_all)) return first_of_all;
  const IndexRange own = devices();
  for (std::int64_t device = own.first; device < own.first + own.count; ++device) {
    if (mesh_->position(device, axes) == instance) return device;
  }
  return std::nullopt;
}

int Share::process_of_block(std::int64_t block) const {
  // The last process whose first block is not behind `block`.
  return static_cast<int>(((block + 1) * placement_.processes - 1) / count_);
}

IndexRange Share::instances(AxisSet axes, int process) const {
  if (placement_.processes == 1) return {0, mesh_->group_size(axes)};
  const IndexRange own = devices(process);
  std::int64_t first = mesh_->group_size(axes), last = -1;
  for (std::int64_t device = own.first; device < own.first + own.count; ++device) {
    const std::int64_t instance = mesh_->position(device, axes);
    first = std::min(first, instance);
    last = std::max(last, instance);
  }
  while (first > 0 && blocks_.of_instance(first - 1, axes) == blocks_.of_instance(first, axes)) --first;
  const std::int64_t all = mesh_->group_size(axes);
  while (last + 1 < all && blocks_.of_instance(last + 1, axes) == blocks_.of_instance(last, axes)) ++last;
  return {first, last + 1 - first};
}

bool Share::has_instance(std::int64_t instance, AxisSet axes, int process) const {
  const IndexRange own = instances(axes, process);
  return own.first <= instance && instance < own.first + own.count;
}

std::vector<Contribution> sums_of_processes(const Share& share, AxisSet varying, AxisSet along) {
  const Mesh& mesh = share.mesh();
  const AxisSet kept = varying - along;
  std::vector<IndexRange> results;  // by process: the instances of the result that it has
  results.reserve(static_cast<std::size_t>(share.processes()));
  for (int process = 0; process < share.processes(); ++process) results.push_back(share.instances(kept, process));
  std::vector<Contribution> all;
  for (std::int64_t result = 0; result < mesh.group_size(kept); ++result) {
    std::vector<std::int64_t> blocks;  // with addends
    for (const std::int64_t device : mesh.group(mesh.device_at(result, kept), along)) {
      const std::int64_t block = share.blocks().of_instance(mesh.position(device, varying), varying);
      if (blocks.empty() || blocks.back() != block) blocks.push_back(block);
    }
    std::vector<int> owners;
    owners.reserve(blocks.size());
    for (const std::int64_t block : blocks) owners.push_back(share.process_of_block(block));
    for (const auto& [leaves, owner] : subtrees_of(owners)) {
      const std::int64_t first = blocks[static_cast<std::size_t>(leaves.first)];
      const std::int64_t last = blocks[static_cast<std::size_t>(leaves.first + leaves.count - 1)];
      Contribution& sum = all.emplace_back(Contribution{result, {first, last + 1 - first}, leaves.count, owner, {}});
      for (int process = 0; process < share.processes(); ++process) {
        const IndexRange& own = results[static_cast<std::size_t>(process)];
        if (process != owner && own.first <= result && result < own.first + own.count) sum.readers.push_back(process);
      }
    }
  }
  number_slices(share, all);
  return all;
}

std::vector<Contribution> instances_of_processes(const Share& share, AxisSet varying) {
  const Mesh& mesh = share.mesh();
  std::vector<std::set<std::int64_t>> own(static_cast<std::size_t>(share.processes()));
  for (std::int64_t device = 0; device < mesh.devices(); ++device) {
    own[static_cast<std::size_t>(share.process_of(device))].insert(mesh.position(device, varying));
  }
  std::vector<Contribution> all;
  for (std::int64_t instance = 0; instance < mesh.group_size(varying); ++instance) {
    const std::int64_t block = share.blocks().of_instance(instance, varying);
    std::map<int, std::vector<int>> readers;  // by owner
    for (int process = 0; process < share.processes(); ++process) {
      if (own[static_cast<std::size_t>(process)].contains(instance)) {
        readers.try_emplace(process);
        continue;
      }
      const std::vector<std::int64_t> group = mesh.group(share.devices(process).first, varying);
      readers[share.process_of(group[static_cast<std::size_t>(instance)])].push_back(process);
    }
    for (auto& [owner, of_owner] : readers) {
      all.push_back(Contribution{instance, {block, 1}, 1, owner, std::move(of_owner)});
    }
  }
  number_slices(share, all);
  return all;
}

std::int64_t slices_of(const std::vector<Contribution>& all) {
  return std::count_if(all.begin(), all.end(), [](const Contribution& each) { return each.slice >= 0; });
}

bool any_is_sent(const std::vector<Contribution>& all) {
  return std::any_of(all.begin(), all.end(), [](const Contribution& each) { return !each.readers.empty(); });
}

}  // namespace pmaptrain
