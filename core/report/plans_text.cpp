#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/base/wrap.h"
#include "core/report/json.h"
#include "core/report/plans.h"

namespace pmaptrain::report {
namespace {

constexpr std::size_t most_shown = 10;

std::string memory_text(const Plans& plans) {
  return plans.memory ? fmt::format("of {} each", human_bytes(*plans.memory)) : std::string("of any memory");
}

using Rows = std::vector<std::vector<std::string>>;

// All columns but those without a heading are of numbers.
std::string table(const Rows& rows, int width) {
  std::vector<bool> right;
  for (const std::string& heading : rows.front()) right.push_back(!heading.empty());
  return in_columns(rows, right, width);
}

std::string bytes_or_none(double bytes) { return bytes == 0 ? "-" : human_bytes(bytes); }

// The divisions with a number each, and the memory of a device.
std::string memory_table(const Plans& plans, std::size_t count, int width) {
  Rows rows{{"", "data", "shards", "model", "stage", "memory", "parameters", "gradients", "optimizer", "gathered",
             "activations", "others", ""}};
  for (std::size_t i = 0; i < count; ++i) {
    const ComparedDivision& each = plans.divisions[i];
    const DeviceFigures& f = each.figures;
    std::vector<std::string> row{std::to_string(i + 1)};
    for (const std::int64_t size : each.division.sizes) row.push_back(size == 1 ? "-" : std::to_string(size));
    row.push_back(each.division.stage == 0 ? "-" : std::to_string(each.division.stage));
    for (const double bytes : {f.memory(), f.parameters, f.gradients, f.state, f.gathered, f.activations, f.others}) {
      row.push_back(bytes_or_none(bytes));
    }
    row.push_back(std::string(each.is_planned ? "planned" : "estimated") + (plans.fits(each) ? "" : ", too large"));
    rows.push_back(std::move(row));
  }
  return table(rows, width);
}

std::string work_table(const Plans& plans, std::size_t count, int width) {
  Rows rows{
      {"", "computes", "duplicated", "over data", "over shards", "over model", "within host", "between hosts", "time"}};
  for (std::size_t i = 0; i < count; ++i) {
    const ComparedDivision& each = plans.divisions[i];
    const double flops = each.figures.flops;
    std::vector<std::string> row{std::to_string(i + 1), with_prefix(flops, "FLOP"),
                                 fmt::format("{:.1f} %", flops > 0 ? 100 * each.figures.duplicated_flops / flops : 0)};
    for (const double bytes : each.sent) row.push_back(bytes_or_none(bytes));
    row.push_back(bytes_or_none(each.within_host));
    row.push_back(bytes_or_none(each.between_hosts));
    row.push_back(with_prefix(each.seconds, "s"));
    rows.push_back(std::move(row));
  }
  return table(rows, width);
}

std::string left_out_text(const Plans& plans) {
  if (plans.left_out.empty()) return "";
  std::vector<std::string> reasons;
  for (const LeftOut& each : plans.left_out) reasons.push_back(fmt::format("{} because {}", each.count, each.because));
  return "left out: " + join(reasons, "; ") + "\n";
}

}  // namespace

std::string plan_yaml(const Division& division) {
  std::vector<std::string> axes;
  for (const Axis& axis : division.axes()) axes.push_back(fmt::format("{{{}: {}}}", axis.name, axis.size));
  std::string yaml = "mesh:\n  axes: [" + join(axes, ", ") + "]\n";
  const bool has_model = division.size(DivisionAxis::model) > 1;
  if (division.stage == 0 && !has_model) return yaml;
  yaml += "parallelism:\n";
  if (division.stage > 0) yaml += fmt::format("  fsdp: {{axis: shards, stage: {}}}\n", division.stage);
  if (has_model) yaml += "  tensor: {axis: model}\n";
  return yaml;
}

std::string plans_text(const Plans& plans, int width) {
  const std::int64_t fitting = plans.fitting(), all = std::ssize(plans.divisions);
  std::string out = fmt::format("{}: {} {}, {} on a host; {} a step{}\n{} of these devices {}{}\n",
                                printable(plans.name), counted(plans.options.devices, "device"), memory_text(plans),
                                plans.options.devices_per_host, counted(plans.batch, "example"),
                                plans.microbatches > 1 ? fmt::format(", in {} microbatches", plans.microbatches) : "",
                                counted(all, "division"), all == 1 ? "is possible" : "are possible",
                                plans.memory ? fmt::format(", and {} {}", fitting, fitting == 1 ? "fits" : "fit")
                                             : "; with mesh.gpu_memory, which fit");
  out += left_out_text(plans) + "\n";
  const std::size_t count = std::min(plans.divisions.size(), most_shown);
  out += "memory of each device:\n" + memory_table(plans, count, width);
  out += "\nwhat each device computes and sends in a step:\n" + work_table(plans, count, width);
  if (plans.divisions.size() > count) {
    out += fmt::format("  and {} more: --json has all\n", plans.divisions.size() - count);
  }
  out += fmt::format(
      "\ntime: at {}, {} within a host and {} between hosts, one after another; it only orders divisions\n",
      with_prefix(plans.rates.flops_per_second, "FLOP/s"), with_prefix(plans.rates.bytes_within_host, "B/s"),
      with_prefix(plans.rates.bytes_between_hosts, "B/s"));
  if (fitting == 0) {
    out +=
        "\nnone fits, and 1 needs least: more devices, more data.microbatches, remat or a smaller data.batch_size take "
        "less\n";
    return wrapped(out, width);
  }
  return wrapped(out, width) +
         (plans.divisions.front().is_planned ? "\n1 as a config:\n\n"
                                             : "\n1 as a config, which is only estimated to fit:\n\n") +
         plan_yaml(plans.divisions.front().division);
}

std::string plans_json(const Plans& plans) {
  Json json;
  json["name"] = plans.name;
  json["plan_devices"] = plans.options.devices;
  json["devices_per_host"] = plans.options.devices_per_host;
  json["memory_of_device"] = plans.memory ? Json(*plans.memory) : Json(nullptr);
  json["batch"] = {{"global", plans.batch}, {"microbatches", plans.microbatches}};
  json["assumed"] = {{"flops_per_second", plans.rates.flops_per_second},
                     {"bytes_per_second_within_host", plans.rates.bytes_within_host},
                     {"bytes_per_second_between_hosts", plans.rates.bytes_between_hosts}};
  json["programs_made"] = plans.programs;
  json["left_out"] = Json::array();
  for (const LeftOut& each : plans.left_out) {
    json["left_out"].push_back({{"divisions", each.count}, {"because", each.because}});
  }
  const auto whole = [](double value) { return std::llround(value); };
  json["plans"] = Json::array();
  for (const ComparedDivision& each : plans.divisions) {
    Json plan;
    for (std::size_t i = 0; i < division_axes; ++i) {
      plan[to_string(static_cast<DivisionAxis>(i))] = each.division.sizes[i];
    }
    plan["stage"] = each.division.stage;
    plan["figures"] = each.is_planned ? "planned" : "estimated";
    plan["fits"] = plans.memory ? Json(plans.fits(each)) : Json(nullptr);
    const DeviceFigures& f = each.figures;
    plan["memory_bytes"] = {{"parameters", whole(f.parameters)},   {"gradients", whole(f.gradients)},
                            {"optimizer", whole(f.state)},         {"gathered", whole(f.gathered)},
                            {"activations", whole(f.activations)}, {"others", whole(f.others)},
                            {"total", whole(f.memory())}};
    plan["flops"] = whole(f.flops);
    plan["duplicated_flops"] = whole(each.figures.duplicated_flops);
    for (std::size_t i = 0; i < division_axes; ++i) {
      plan["sent_bytes"][to_string(static_cast<DivisionAxis>(i))] = whole(each.sent[i]);
    }
    plan["sent_within_host"] = whole(each.within_host);
    plan["sent_between_hosts"] = whole(each.between_hosts);
    plan["seconds_at_least"] = each.seconds;
    plan["yaml"] = plan_yaml(each.division);
    json["plans"].push_back(std::move(plan));
  }
  return to_text(json);
}

}  // namespace pmaptrain::report
