#include "core/train/replicas.h"

#include <xxhash.h>

#include <algorithm>

namespace pmaptrain::train {

std::optional<Divergence> find_divergence(const CpuExecutor& executor) {
  const Program& program = *executor.plan().program;
  const std::int64_t devices = program.mesh.devices();
  for (const Input& input : program.inputs) {
    if (input.group != Group::params && input.group != Group::state) continue;
    std::vector<XXH64_hash_t> hashes;
    for (std::int64_t d = 0; d < devices; ++d) {
      const std::span<const std::byte> bytes = executor.input(input.name, d);
      hashes.push_back(XXH3_64bits(bytes.data(), bytes.size()));
    }
    // Only devices that agree on the axes over which the value varies must hold the same.
    const AxisSet varying = program.type(input.value).varying;
    Divergence divergence{input.name, {}};
    for (std::int64_t d = 0; d < devices; ++d) {
      std::vector<XXH64_hash_t> peers;
      for (std::int64_t other : program.mesh.group(d, program.mesh.all() - varying)) {
        peers.push_back(hashes[static_cast<std::size_t>(other)]);
      }
      XXH64_hash_t common = peers.front();
      for (XXH64_hash_t hash : peers) {
        if (std::count(peers.begin(), peers.end(), hash) > std::count(peers.begin(), peers.end(), common)) common = hash;
      }
      if (hashes[static_cast<std::size_t>(d)] != common) divergence.devices.push_back(d);
    }
    if (!divergence.devices.empty()) return divergence;
  }
  return std::nullopt;
}

std::string describe(const Divergence& divergence, const Program& program) {
  const Input* const input = program.find_input(divergence.name);
  std::string text = input != nullptr && input->group == Group::params ? "parameter" : "state";
  text += " '" + divergence.name + "' differs on device" + (divergence.devices.size() > 1 ? "s" : "");
  for (std::size_t i = 0; i < divergence.devices.size(); ++i) {
    text += (i == 0 ? " " : ", ") + std::to_string(divergence.devices[i]);
  }
  return text;
}

}  // namespace pmaptrain::train
