#include "core/train/replicas.h"

#include <xxhash.h>

#include <algorithm>
#include <map>
#include <memory>

namespace pmaptrain::train {
namespace {

// The most common hash of the devices; at a tie, that of the first device.
XXH64_hash_t commonest(const std::vector<XXH64_hash_t>& hashes, const std::vector<std::int64_t>& devices) {
  std::map<XXH64_hash_t, std::int64_t> counts;
  for (std::int64_t d : devices) ++counts[hashes[static_cast<std::size_t>(d)]];
  XXH64_hash_t common = hashes[static_cast<std::size_t>(devices.front())];
  for (std::int64_t d : devices) {
    const XXH64_hash_t hash = hashes[static_cast<std::size_t>(d)];
    if (counts[hash] > counts[common]) common = hash;
  }
  return common;
}

struct FreeHash {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

XXH64_hash_t hash_of(SlicedReader& reader, Handle value, DeviceOfMember instance) {
  const std::unique_ptr<XXH3_state_t, FreeHash> state(XXH3_createState());
  XXH3_64bits_reset(state.get());
  reader.read(value, instance,
              [&](std::span<const std::byte> slice) { XXH3_64bits_update(state.get(), slice.data(), slice.size()); });
  return XXH3_64bits_digest(state.get());
}

}  // namespace

std::optional<Divergence> find_divergence(SlicedReader& reader, std::int64_t member) {
  const Program& program = reader.module().program(0);
  const std::int64_t devices = program.mesh.devices();
  for (const Variable& variable : reader.module().variables(0)) {
    if (!is_kept(variable.group)) continue;
    const Handle value = reader.module().input(variable.name);
    std::vector<XXH64_hash_t> hashes;
    for (std::int64_t d = 0; d < devices; ++d) hashes.push_back(hash_of(reader, value, {d, member}));
    // Only devices at the same positions along the axes over which the value varies must have equal values.
    const AxisSet varying = variable.type.varying;
    Divergence divergence{std::string(variable.name), {}};
    for (const std::int64_t first : program.mesh.group(0, varying)) {
      const std::vector<std::int64_t> peers = program.mesh.group(first, program.mesh.all() - varying);
      const XXH64_hash_t common = commonest(hashes, peers);
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
