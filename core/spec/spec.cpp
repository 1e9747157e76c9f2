#include "core/spec/spec.h"

#include <algorithm>

#include "core/base/text.h"

namespace pmaptrain::spec {

Spec::Spec() = default;
Spec::Spec(const Spec&) = default;
Spec::Spec(Spec&&) noexcept = default;
Spec& Spec::operator=(const Spec&) = default;
Spec& Spec::operator=(Spec&&) noexcept = default;
Spec::~Spec() = default;

std::vector<TargetScale> target_scales(const DataSpec& data, std::int64_t outputs) {
  const NormalizeTargets given = data.normalize_targets.value_or(NormalizeTargets());
  std::vector<TargetScale> scales(static_cast<std::size_t>(outputs), given.others);
  std::vector<std::string> names;
  if (data.source) names = data.source->target_names();
  for (std::size_t i = names.size(); i < scales.size(); ++i) names.push_back(std::to_string(i));
  names.resize(scales.size());
  for (const auto& [name, scale] : given.outputs) {
    const auto at = std::find(names.begin(), names.end(), name.text);
    if (at == names.end()) {
      throw Error(ExitStatus::usage, Diagnostic{"config",
                                                name.place,
                                                "normalize_targets names '" + name.text + "', which is no output",
                                                "the outputs are " + join(names, ", "),
                                                {}});
    }
    scales[static_cast<std::size_t>(at - names.begin())] = scale;
  }
  return scales;
}

bool is_time(const Duration& duration) {
  return duration.unit == Unit::seconds || duration.unit == Unit::minutes || duration.unit == Unit::hours;
}

double seconds_of(const Duration& duration) {
  const double count = static_cast<double>(duration.count);
  return duration.unit == Unit::hours ? count * 3600 : duration.unit == Unit::minutes ? count * 60 : count;
}

std::string to_string(PrecisionPolicy precision) { return declare::word_of(precision); }
std::string to_string(Mode mode) { return declare::word_of(mode); }

std::int64_t members(const Spec& spec) { return spec.ensemble ? std::ssize(spec.ensemble->alone) : 1; }

const Spec& member_spec(const Spec& spec, std::int64_t member) {
  return spec.ensemble ? spec.ensemble->alone.at(static_cast<std::size_t>(member)) : spec;
}

Mesh data_mesh(const MeshSpec& mesh) { return mesh.mesh.only(mesh.roles.data); }

Mesh member_mesh(const Spec& spec) {
  const Mesh mesh = spec.mesh.mesh.only(spec.mesh.mesh.all() - spec.mesh.roles.ensemble);
  return mesh.axes().empty() ? Mesh({{"devices", 1}}) : mesh;
}

}  // namespace pmaptrain::spec
