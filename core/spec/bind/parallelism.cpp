// Binds `parallelism`: the axes of fsdp are those of the data. That of tensor is bound with the roles of axes.
#include "core/spec/bind/bind.h"
#include "core/spec/keys.h"
#include "core/spec/yaml/find.h"
#include "core/spec/yaml/report.h"

namespace pmaptrain::spec {

void bind_parallelism(const Node& config, const Reporter& reporter, Spec& spec) {
  if (!spec.parallelism) return;
  if (const Node* const axis = get_path(&config, "parallelism.tensor.axis"); axis != nullptr && spec.tensor()) {
    spec.parallelism->tensor->place = error_place(*axis);
  }
  if (!spec.parallelism->fsdp) return;
  Fsdp& fsdp = *spec.parallelism->fsdp;
  const Node* const axis = get_path(&config, "parallelism.fsdp.axis");
  if (axis == nullptr || !axis->valid() || get_path(&config, "mesh.axes") == nullptr) return;
  const Mesh& mesh = spec.mesh.mesh;
  fsdp.place = error_place(*axis);
  if (axis->items.empty()) {
    reporter.report(*axis, "fsdp needs an axis along which devices have shards", "for example axis: " + mesh.name(0));
  }
  for (const Node& name : axis->items) {
    const std::optional<int> found = mesh.find(name.text);
    if (!found) {
      reporter.report(name, "the mesh has no axis '" + name.text + "'", suggest(name.text, mesh.names(), "axes"));
    } else if (ensemble_axis(config, mesh) == found) {
      reporter.report(name, "axis '" + name.text + "' is the ensemble's: its members have nothing in common to shard",
                      "name an axis of the data");
    } else if (spec.mesh.roles.tensor.contains(*found)) {
      reporter.report(name,
                      "axis '" + name.text +
                          "' divides layers (parallelism.tensor), and fsdp shards what devices of the "
                          "data have in common",
                      "name an axis of the data; what layers divide along '" + name.text + "' is on one device each");
    } else if (fsdp.axes.contains(*found)) {
      reporter.report(name, "axis has '" + name.text + "' twice", "keep one of them");
    } else {
      fsdp.axes = fsdp.axes | AxisSet::of(*found);
    }
  }
}

}  // namespace pmaptrain::spec
