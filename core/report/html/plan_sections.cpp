#include <fmt/format.h>

#include <algorithm>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/report/html/sections.h"
#include "core/report/html/text.h"
#include "core/report/json.h"

namespace pmaptrain::report {
namespace {

std::string shape_text(const Json& shape) {
  std::vector<std::string> sizes;
  for (const Json& size : shape) sizes.push_back(std::to_string(size.get<std::int64_t>()));
  return "[" + join(sizes, ", ") + "]";
}

std::string layers_table(const Json& plan) {
  std::vector<std::vector<Cell>> rows;
  for (const Json& layer : plan["layers"]) {
    const auto parameters = layer["parameters"].get<std::int64_t>();
    rows.push_back({text_cell(layer["name"].get<std::string>()),
                    text_cell(layer["kind"].get<std::string>()),
                    {escaped(shape_text(layer["output_shape"])), "shape"},
                    number_cell(parameters > 0 ? with_commas(parameters) : "–")});
  }
  rows.push_back({text_cell("total"), text_cell(""), text_cell(""),
                  number_cell(with_commas(plan["parameters"].get<std::int64_t>()))});
  return table("layers",
               {text_cell("layer"), text_cell("kind"), text_cell("output of an example"), number_cell("parameters")},
               rows);
}

std::string facts_table(const Json& plan) {
  std::vector<std::vector<Cell>> rows;
  const auto add = [&](std::string_view name, const std::string& value) {
    rows.push_back({text_cell(name), text_cell(value)});
  };
  std::vector<std::string> axes;
  for (const auto& [axis, size] : plan["mesh"].items())
    axes.push_back(fmt::format("{} {}", axis, size.get<std::int64_t>()));
  const auto devices = plan["logical_devices"].get<std::int64_t>();
  add("mesh", fmt::format("{} ({})", join(axes, " × "), counted(devices, "logical device")));
  add("carried by", fmt::format("{} (backend {})", counted(plan["workers"].get<std::int64_t>(), "worker"),
                                plan["backend"].get<std::string>()));
  const Json& batch = plan["batch"];
  add("batch", fmt::format("{}, {} on each device", counted(batch["global"].get<std::int64_t>(), "example"),
                           with_commas(batch["per_device"].get<std::int64_t>())));
  if (plan.contains("splits")) {
    std::vector<std::string> splits;
    for (const auto& [split, size] : plan["splits"].items()) {
      splits.push_back(fmt::format("{} {}", with_commas(size.get<std::int64_t>()), split));
    }
    add("examples", join(splits, ", "));
  }
  add("steps", fmt::format("{}, {} in an epoch", with_commas(plan["steps"].get<std::int64_t>()),
                           with_commas(plan["steps_per_epoch"].get<std::int64_t>())));
  add("precision", plan["precision"].get<std::string>());
  add("a step computes", with_prefix(plan["flops_per_step"].get<double>(), "FLOP"));
  for (const auto& [axis, bytes] : plan["collective_bytes_per_step"].items()) {
    add(fmt::format("each device sends over {}", axis), human_bytes(bytes.get<double>()) + " a step");
  }
  return table("plan", {}, rows);
}

std::string memory_bars(const Json& plan, const std::vector<setup::MemoryRow>& rows) {
  std::size_t largest = 0;
  for (const setup::MemoryRow& row : rows) largest = std::max(largest, row.bytes);
  std::vector<Bar> all;
  for (const setup::MemoryRow& row : rows) {
    if (row.bytes == 0) continue;
    all.push_back(
        {row.in_table, human_bytes(row.bytes), static_cast<double>(row.bytes) / static_cast<double>(largest)});
  }
  const auto total = plan["memory_bytes"]["total_per_process"].get<std::size_t>();
  return fmt::format("<h3>Memory of a process: {}</h3>\n", human_bytes(total)) + bars(all);
}

std::string plan_html(const RunExtras& extras) {
  const Json plan = parse_json(extras.plan);
  std::string html = facts_table(plan) + layers_table(plan) + memory_bars(plan, extras.memory);
  for (const Json& warning : plan["warnings"]) html += note("warning: " + warning.get<std::string>());
  for (const Json& one : plan["notes"]) html += note(one.get<std::string>());
  return html;
}

}  // namespace

std::string plan_section(const Page& page) {
  std::string html;
  for (std::size_t i = 0; i < page.runs.size(); ++i) {
    const RunExtras& extras = page.extras[i];
    std::string of_run;
    if (!extras.plan.empty()) of_run = plan_html(extras);
    if (!extras.plan_problem.empty()) of_run = note("There is no plan: " + extras.plan_problem);
    if (of_run.empty()) continue;
    html += page.runs.size() == 1
                ? of_run
                : fmt::format("<details><summary>{}</summary>{}</details>\n", escaped(page.runs[i].label), of_run);
  }
  return html.empty() ? ""
                      : section("plan", "Layers and memory",
                                paragraph("As planned on the machine that made this report.") + html);
}

std::string trace_section(const TraceTable& trace) {
  constexpr std::size_t most = 30;
  const double total = trace.total();
  std::vector<Bar> layers;
  for (const TraceTable::Item& item : trace.items) {
    const std::string name = item.layer.empty() ? "no layer" : item.layer;
    const auto found = std::find_if(layers.begin(), layers.end(), [&](const Bar& bar) { return bar.name == name; });
    if (found != layers.end()) {
      found->share += item.seconds;
    } else {
      layers.push_back({name, "", item.seconds});
    }
  }
  std::stable_sort(layers.begin(), layers.end(), [](const Bar& a, const Bar& b) { return a.share > b.share; });
  if (layers.size() > most) layers.resize(most);
  const double largest = layers.empty() ? 1 : layers.front().share;
  for (Bar& bar : layers) {
    bar.amount = fmt::format("{} ({:.1f} %)", with_prefix(bar.share, "s"), 100 * bar.share / total);
    bar.share /= largest;
  }
  std::vector<std::vector<Cell>> rows;
  for (std::size_t i = 0; i < std::min(most, trace.items.size()); ++i) {
    const TraceTable::Item& item = trace.items[i];
    rows.push_back({text_cell(item.layer.empty() ? "–" : item.layer), text_cell(item.op),
                    number_cell(with_prefix(item.seconds, "s")),
                    number_cell(fmt::format("{:.1f} %", 100 * item.seconds / total))});
  }
  std::string html =
      paragraph(fmt::format("Steps {} of {}: {} of work over all workers, and {} of waiting for others.", trace.steps,
                            trace.run, with_prefix(total, "s"), with_prefix(trace.waits, "s")));
  html += bars(layers);
  html += table("time by layer and op",
                {text_cell("layer"), text_cell("op"), number_cell("time"), number_cell("share")}, rows);
  return section("trace", "Time by layer", html);
}

}  // namespace pmaptrain::report
