#include "core/report/division.h"

#include <fmt/format.h>

#include "core/analysis/cost.h"
#include "core/base/text.h"

namespace pmaptrain::report {

std::optional<DivisionReport> division_of(const setup::Setup& setup) {
  const spec::Spec& spec = setup.member_spec();
  if (spec.tensor() == nullptr) return std::nullopt;
  const AxisSet axes = spec.mesh.roles.tensor;
  DivisionReport report;
  report.axis = spec.tensor()->axis;
  report.devices = spec.mesh.mesh.group_size(axes);
  for (const model::Parameter& parameter : setup.model.parameters) {
    if (!parameter.is_state) report.parameters += numel(local_shape(parameter.layout(), spec.mesh.mesh));
  }
  report.flops = cost_of(*setup.training).flops;
  report.flops_of_whole = flops_without(*setup.training, axes);
  return report;
}

std::string division_text(const model::Node& layer) {
  switch (layer.division) {
    case model::Division::columns: return "by columns";
    case model::Division::rows: return "by rows";
    case model::Division::keeps: return "divided";
    case model::Division::inside: return "by " + std::string(layer.divisible.unit);
    case model::Division::whole: break;
  }
  return layer.whole_because.empty() ? "" : "whole: " + layer.whole_because;
}

namespace {

// Metrics that take rows of examples need all classes of each.
std::string gathered_text(const model::Model& model) {
  if (model.output_axes.empty() || model.row_metrics.empty() || model.has_sequences()) return "";
  std::string names;
  for (const metrics::Metric& metric : model.row_metrics) names += (names.empty() ? "" : ", ") + metric.label();
  return fmt::format("  {}: evaluations gather all {} logits of an example\n", names, with_commas(numel(model.output)));
}

}  // namespace

std::string division_text(const setup::Setup& setup) {
  const std::optional<DivisionReport> report = division_of(setup);
  if (!report) return "";
  const double others = static_cast<double>(report->devices - 1) * report->flops_of_whole;
  std::string text = fmt::format(
      "layers are divided along '{}' over {}: each has {} of {} parameters\n"
      "  work that is not divided: {} of {} a step, which each of them does; processes or GPUs that carry one device\n"
      "  along it each do {:.3g} % more than an equal share\n",
      report->axis, counted(report->devices, "device"), with_commas(report->parameters),
      with_commas(setup.model.parameter_count()), human_flops(report->flops_of_whole), human_flops(report->flops),
      report->flops > 0 ? 100 * others / report->flops : 0.0);
  return text + gathered_text(setup.model);
}

}  // namespace pmaptrain::report
