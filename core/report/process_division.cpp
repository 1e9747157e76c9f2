#include "core/report/process_division.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/base/text.h"
#include "core/mesh/member_share.h"

namespace pmaptrain::report {
namespace {

// "16 devices each", or how many each has.
std::string shares_text(const std::vector<IndexRange>& devices) {
  std::vector<std::int64_t> counts;
  counts.reserve(devices.size());
  for (const IndexRange& range : devices) counts.push_back(range.count);
  if (std::all_of(counts.begin(), counts.end(), [&](std::int64_t count) { return count == counts.front(); })) {
    return counted(counts.front(), "device") + " each";
  }
  return listed(counts, "and") + " devices, so some have more work";
}

}  // namespace

ProcessDivision divide_over_processes(const spec::Spec& spec, int processes) {
  const Mesh mesh = spec::member_mesh(spec);
  const std::int64_t blocks = spec.mesh.blocks.value_or(1), members = spec::members(spec);
  const bool divide = spec.mesh.backend != spec::Backend::cuda;  // processes with GPUs have all members
  ProcessDivision division;
  for (int p = 0; p < processes; ++p) {
    const MemberShare share(members, {p, processes}, divide);
    division.members.push_back(share.members());
    division.devices.push_back(Share(mesh, blocks, share.within_group()).devices());
  }
  const std::int64_t whole = blocks == 1 ? mesh.devices() : blocks;
  for (std::int64_t number = 1; number <= members * whole; ++number) {
    const MemberShare share(members, {0, static_cast<int>(number)}, divide);
    if (whole % share.within_group().processes == 0) division.that_divide.push_back(number);
  }
  return division;
}

std::string carriers_text(int workers, bool are_gpus, int processes, const spec::MeshSpec& mesh) {
  std::string text = counted(workers, are_gpus ? "GPU" : "worker");
  if (processes > 1) text += fmt::format(" in each of {} processes", processes);
  if (const int blocks = mesh.blocks.value_or(1); blocks > 1) text += fmt::format(", in {} blocks", blocks);
  return text;
}

std::string processes_text(const spec::Spec& spec, int processes, std::optional<std::size_t> sent_bytes) {
  const ProcessDivision division = divide_over_processes(spec, processes);
  std::string out = "processes: " + std::to_string(processes);
  const std::int64_t blocks = spec.mesh.blocks.value_or(1), members = spec::members(spec);
  std::vector<std::int64_t> others = division.that_divide;
  std::erase(others, std::int64_t{processes});
  const std::string numbers = listed(others, "or");
  if (processes > 1 && members > 1) {
    const std::int64_t own = division.members.front().count;
    out += fmt::format(" ({} each, and of these {})", counted(own, "member"), shares_text(division.devices));
  } else if (processes > 1) {
    out += " (" + shares_text(division.devices) + ")";
  }
  if (!others.empty()) {
    out += "; " + numbers;
    if (members > 1 && blocks == 1) {
      out += fmt::format(
          " would divide the {} members and their devices alike, with a block for each process of a member "
          "(mesh.blocks)",
          members);
    } else if (members > 1) {
      out += fmt::format(" would divide the {} members and their {} blocks alike", members, blocks);
    } else if (blocks == 1) {
      out += " would each have as many devices, with a block each (mesh.blocks)";
    } else {
      out += fmt::format(" would divide the {} blocks alike", blocks);
    }
  }
  out += "\n";
  if (sent_bytes) {
    out += fmt::format("  process 0 sends {} to the others in a step\n", human_bytes(*sent_bytes));
  }
  return out;
}

}  // namespace pmaptrain::report
