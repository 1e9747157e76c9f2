#include "core/train/replicas.h"

#include <xxhash.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <span>

namespace pmaptrain::train {
namespace {

// The most common hash of the devices; at a tie, that of the first device.
std::int64_t commonest(std::span<const std::int64_t> hashes, const std::vector<std::int64_t>& devices) {
  std::map<std::int64_t, std::int64_t> counts;
  for (std::int64_t d : devices) ++counts[hashes[static_cast<std::size_t>(d)]];
  std::int64_t common = hashes[static_cast<std::size_t>(devices.front())];
  for (std::int64_t d : devices) {
    const std::int64_t hash = hashes[static_cast<std::size_t>(d)];
    if (counts[hash] > counts[common]) common = hash;
  }
  return common;
}

struct FreeHash {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

// The hash of what a device has of a variable, which is in these copies.
std::int64_t hash_of(setup::SlicedReader& reader, const Variable& variable, std::span<const StridedCopy> copies,
                     DeviceOfMember instance) {
  Module& module = reader.module();
  const Program& program = module.program(0);
  const Handle local = module.stored(module.input(variable.name));
  const std::size_t size = size_of(variable.type.dtype);
  const std::unique_ptr<XXH3_state_t, FreeHash> state(XXH3_createState());
  XXH3_64bits_reset(state.get());
  for (const StridedCopy& copy : copies) {
    if (program.mesh.position(copy.device, variable.divided) !=
        program.mesh.position(instance.device, variable.divided)) {
      continue;
    }
    reader.read(local, instance, static_cast<std::size_t>(copy.local) * size,
                static_cast<std::size_t>(copy.extent()) * size,
                [&](std::span<const std::byte> slice) { XXH3_64bits_update(state.get(), slice.data(), slice.size()); });
  }
  return static_cast<std::int64_t>(XXH3_64bits_digest(state.get()));
}

// The hashes of the copies of every variable, for each variable by device. Each process hashes those of its own
// devices, if it has the member.
std::vector<std::int64_t> hashes_of(setup::SlicedReader& reader, Agreement* agreement,
                                    std::span<const Variable> variables, std::int64_t member) {
  const IndexRange own = reader.module().share(0).devices();
  const std::int64_t devices = reader.module().program(0).mesh.devices();
  const bool has_member = reader.module().member_share().has(member);
  std::vector<std::int64_t> hashes;
  for (const Variable& variable : variables) {
    const std::vector<StridedCopy> copies = copies_of(reader.module().program(0), variable, 0, numel(variable.type));
    for (std::int64_t d = 0; d < devices; ++d) {
      const bool is_here = has_member && own.first <= d && d < own.first + own.count;
      hashes.push_back(is_here ? hash_of(reader, variable, copies, {d, member})
                               : std::numeric_limits<std::int64_t>::min());
    }
  }
  if (agreement == nullptr || agreement->processes().transport == nullptr) return hashes;
  agreement->any(false);  // a process that has failed answers this, and not the exchange of hashes
  agreement->processes().transport->largest(hashes);
  return hashes;
}

}  // namespace

std::optional<Divergence> find_divergence(setup::SlicedReader& reader, Agreement* agreement, std::int64_t member) {
  const Mesh& mesh = reader.module().program(0).mesh;
  std::vector<Variable> variables;
  std::ranges::copy_if(reader.module().variables(0), std::back_inserter(variables),
                       [](const Variable& variable) { return is_kept(variable.group); });
  const std::vector<std::int64_t> all = hashes_of(reader, agreement, variables, member);
  const auto devices = static_cast<std::size_t>(mesh.devices());
  for (std::size_t v = 0; v < variables.size(); ++v) {
    const std::span<const std::int64_t> hashes = std::span(all).subspan(v * devices, devices);
    // Only devices at the same positions along the axes over which the input varies must have equal values.
    const Program& program = reader.module().program(0);
    const AxisSet varying = program.type(program.inputs[variables[v].input].value).varying;
    Divergence divergence{std::string(variables[v].name), {}};
    for (const std::int64_t first : mesh.group(0, varying)) {
      const std::vector<std::int64_t> peers = mesh.group(first, mesh.all() - varying);
      const std::int64_t common = commonest(hashes, peers);
      for (std::int64_t peer : peers) {
        if (hashes[static_cast<std::size_t>(peer)] != common) divergence.devices.push_back(peer);
      }
    }
    std::sort(divergence.devices.begin(), divergence.devices.end());
    if (!divergence.devices.empty()) return divergence;
  }
  return std::nullopt;
}

std::string describe(const Divergence& divergence, const Program& program) {
  const std::vector<Variable> variables = variables_of(program);
  const bool is_parameter = std::any_of(variables.begin(), variables.end(), [&](const Variable& variable) {
    return variable.name == divergence.name && variable.group == Group::params;
  });
  std::string text = is_parameter ? "parameter" : "state";
  text += " '" + divergence.name + "' differs on device" + (divergence.devices.size() > 1 ? "s" : "");
  for (std::size_t i = 0; i < divergence.devices.size(); ++i) {
    text += (i == 0 ? " " : ", ") + std::to_string(divergence.devices[i]);
  }
  return text;
}

}  // namespace pmaptrain::train
