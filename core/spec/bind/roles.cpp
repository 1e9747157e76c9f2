// Decides what each axis of the mesh is for.
#include <utility>

#include "core/spec/bind/bind.h"
#include "core/spec/keys.h"
#include "core/spec/yaml/find.h"
#include "core/spec/yaml/report.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

// Writes data.axes, which is all axes that have no other role.
void write_axes(Node& data, const Mesh& mesh, AxisSet axes) {
  Node list = empty_at(data, Kind::sequence);
  for (const int axis : axes.list()) list.items.push_back(scalar_at(data, mesh.name(axis)));
  // Before `remainder`, as in the table, so that the resolved config reads back unchanged.
  std::size_t at = 0;
  while (at < data.keys.size() && data.keys[at].text != "remainder") ++at;
  data.keys.insert(data.keys.begin() + static_cast<std::ptrdiff_t>(at), scalar_at(data, "axes"));
  data.items.insert(data.items.begin() + static_cast<std::ptrdiff_t>(at), std::move(list));
}

// The axis that parallelism.tensor names, if the mesh has it and it is no other's.
std::optional<int> tensor_axis(const Node& config, const Reporter& reporter, const MeshSpec& mesh) {
  const Node* const axis = get_path(&config, "parallelism.tensor.axis");
  if (axis == nullptr || !axis->valid() || get_path(&config, "mesh.axes") == nullptr) return std::nullopt;
  const std::optional<int> found = mesh.mesh.find(axis->text);
  if (!found) {
    reporter.report(*axis, "the mesh has no axis '" + axis->text + "'", suggest(axis->text, mesh.mesh.names(), "axes"));
  } else if (mesh.roles.ensemble.contains(*found)) {
    reporter.report(*axis, "axis '" + axis->text + "' is the ensemble's, so it cannot divide layers",
                    "name another axis: each member has devices of its own along it");
    return std::nullopt;
  }
  return found;
}

}  // namespace

void bind_roles(Node& config, const Reporter& reporter, MeshSpec& out) {
  const Mesh& mesh = out.mesh;
  const std::optional<int> members = ensemble_axis(config, mesh);
  if (members) out.roles.ensemble = AxisSet::of(*members);
  const std::optional<int> divides_layers = tensor_axis(config, reporter, out);
  if (divides_layers) out.roles.tensor = AxisSet::of(*divides_layers);
  const AxisSet usable = mesh.all() - out.roles.ensemble - out.roles.tensor;
  out.roles.data = usable;
  Node* const data = config.is(Kind::map) ? config.find("data") : nullptr;
  if (data == nullptr || !data->is(Kind::map)) return;
  const Node* const axes = data->find("axes");
  if (axes == nullptr) return write_axes(*data, mesh, usable);
  if (!axes->valid() || get_path(&config, "mesh.axes") == nullptr) return;
  AxisSet named;
  bool unknown = false;
  for (const Node& item : axes->items) {
    const auto found = mesh.find(item.text);
    if (!found) {
      reporter.report(item, "the mesh has no axis '" + item.text + "'", suggest(item.text, mesh.names(), "axes"));
      unknown = true;
    } else if (named.contains(*found)) {
      reporter.report(item, "axes has '" + item.text + "' twice", "keep one of them");
    } else if (out.roles.tensor.contains(*found)) {
      reporter.report(item, "axis '" + item.text + "' divides layers (parallelism.tensor), so the data cannot use it",
                      "remove it: devices along it see the same examples");
    } else if (!usable.contains(*found)) {
      reporter.report(item, "axis '" + item.text + "' is the ensemble's, so the data cannot use it",
                      "remove it: every member has whole batches of its own");
    } else {
      named = named | AxisSet::of(*found);
    }
  }
  const bool ensemble_known = members || config.find("ensemble") == nullptr;
  const bool tensor_known = divides_layers || get_path(&config, "parallelism.tensor") == nullptr;
  if (unknown || !ensemble_known || !tensor_known) return;
  for (const int axis : (usable - named).list()) {
    reporter.report(*axes, "the mesh axis '" + mesh.name(axis) + "' is not used: data.axes does not list it",
                    "add it to data.axes, make it the axis of an ensemble or of parallelism.tensor, or remove it from "
                    "mesh.axes");
  }
}

}  // namespace pmaptrain::spec
