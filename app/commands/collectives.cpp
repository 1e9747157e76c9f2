// collectives: what each collective over each axis gives every device, and how long it takes.
#include "app/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "app/commands/commands.h"
#include "app/display/terminal.h"
#include "app/exec_values.h"
#include "app/options/arguments.h"
#include "app/options/config_options.h"
#include "app/options/mesh_option.h"
#include "core/base/text.h"
#include "core/base/wrap.h"
#include "core/hints/hints.h"
#include "core/report/json.h"
#include "core/setup/plan.h"

namespace pmaptrain::app {
namespace {

const std::vector<Axis> example_mesh = {{"devices", 4}};

// One collective over some axes, as both forms of the report need it.
struct Entry {
  const Demonstration* what = nullptr;
  AxisSet axes;
  std::vector<std::vector<std::int64_t>> groups;
  Shown shown;
  std::vector<std::pair<std::int64_t, std::optional<Timing>>> timings;  // by size; none for one that it cannot have
};

std::vector<std::vector<std::int64_t>> groups_of(const Mesh& mesh, AxisSet axes) {
  std::vector<std::vector<std::int64_t>> groups;
  for (const std::int64_t first : mesh.group(0, mesh.all() - axes)) groups.push_back(mesh.group(first, axes));
  return groups;
}

// "64", "4KiB", "1MiB,16MiB"
std::vector<std::int64_t> sizes_of(const std::string& list) {
  struct Unit {
    std::string_view name;
    std::int64_t bytes;
  };
  constexpr Unit units[] = {{"", 1}, {"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};
  constexpr std::int64_t largest = std::int64_t{1} << 40;
  std::vector<std::int64_t> sizes;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string word = list.substr(begin, end - begin);
    begin = end + 1;
    std::int64_t count = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), count);
    const std::string_view rest(stop, static_cast<std::size_t>(word.data() + word.size() - stop));
    const auto unit = std::find_if(std::begin(units), std::end(units), [&](const Unit& u) { return u.name == rest; });
    if (error != std::errc{} || unit == std::end(units) || count < 1 || count > largest / unit->bytes) {
      fail_option("--bytes", list, "--bytes takes sizes with commas between them, not '" + word + "'",
                  "for example --bytes 64,4KiB,1MiB; the units are B, KiB, MiB and GiB");
    }
    if (count * unit->bytes % 4 != 0) {
      fail_option("--bytes", list, "'" + word + "' is not a multiple of 4, the bytes of an f32 value",
                  "use multiples of 4");
    }
    sizes.push_back(count * unit->bytes);
  }
  return sizes;
}

std::vector<const Demonstration*> chosen_ops(const std::optional<std::string>& name) {
  std::vector<const Demonstration*> chosen;
  std::vector<std::string> names;
  for (const Demonstration& one : demonstrations()) {
    names.emplace_back(one.name);
    if (!name || one.name == *name) chosen.push_back(&one);
  }
  if (chosen.empty()) {
    const std::optional<Hint> hint = hint_for("collective", *name);
    const std::string near = nearest(*name, names);
    fail_option("--op", *name, "there is no collective '" + *name + "'",
                hint           ? hint->help
                : near.empty() ? "the collectives are " + join(names, ", ")
                               : "did you mean '" + near + "'?");
  }
  return chosen;
}

// Each axis alone, then, where there are several, all of them together.
std::vector<AxisSet> chosen_axes(const Mesh& mesh, const std::optional<std::string>& name) {
  std::vector<AxisSet> chosen;
  for (std::size_t i = 0; i < mesh.axes().size(); ++i) {
    if (!name || mesh.axes()[i].name == *name) chosen.push_back(AxisSet::of(static_cast<int>(i)));
  }
  if (chosen.empty()) {
    const std::string near = nearest(*name, mesh.names());
    fail_option("--axis", *name, "the mesh has no axis '" + *name + "'",
                near.empty() ? "the mesh has " + mesh.to_string(mesh.all()) : "did you mean '" + near + "'?");
  }
  if (chosen.size() > 1) chosen.push_back(mesh.all());
  return chosen;
}

std::string axes_text(const Mesh& mesh, AxisSet axes) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < mesh.axes().size(); ++i) {
    if (axes.contains(static_cast<int>(i))) names.push_back(mesh.axes()[i].name);
  }
  return join(names, ", ");
}

std::string value_text(const Type& type, const std::vector<std::byte>& value) {
  return array_text(type.dtype, type.shape, value);
}

std::string text_of(const Entry& entry, const Mesh& mesh, int width) {
  const Shown& shown = entry.shown;
  std::string out =
      fmt::format("\n{} over {}: {}\n", entry.what->name, axes_text(mesh, entry.axes), entry.what->meaning);
  out += "  ";
  if (shown.input_type) out += to_string(*shown.input_type, mesh) + " -> ";
  out += to_string(shown.result_type, mesh) + "\n";
  std::vector<std::vector<std::string>> rows{{"group", "device"}};
  if (shown.input_type) rows.front().emplace_back("input");
  rows.front().emplace_back("result");
  for (const std::vector<std::int64_t>& group : entry.groups) {
    for (const std::int64_t device : group) {
      const auto at = static_cast<std::size_t>(device);
      rows.push_back({device == group.front() ? holders_text(group, mesh) : "", std::to_string(device)});
      if (shown.input_type) rows.back().push_back(value_text(*shown.input_type, shown.inputs[at]));
      rows.back().push_back(value_text(shown.result_type, shown.results[at]));
    }
  }
  out += in_columns(rows, {false, true}, width);
  if (!shown.input_type) return out;
  rows.assign(1, {"bytes on each device", "time", "sent by all devices"});
  for (const auto& [size, timing] : entry.timings) {
    rows.push_back({with_commas(size), "-",
                    fmt::format("{} f32 are not {} equal parts", with_commas(size / 4),
                                with_commas(mesh.group_size(entry.axes)))});
    if (!timing) continue;
    rows.back()[1] = with_prefix(timing->seconds, "s");
    rows.back()[2] = timing->bytes_per_second > 0 ? with_prefix(timing->bytes_per_second, "B/s") : "nothing";
  }
  if (rows.size() > 1) out += in_columns(rows, {true, true, true}, width);
  return out;
}

report::Json json_of(const Entry& entry, const Mesh& mesh) {
  const Shown& shown = entry.shown;
  report::Json json{{"op", entry.what->name}, {"meaning", entry.what->meaning}};
  json["axes"] = report::Json::array();
  for (std::size_t i = 0; i < mesh.axes().size(); ++i) {
    if (entry.axes.contains(static_cast<int>(i))) json["axes"].push_back(mesh.axes()[i].name);
  }
  json["groups"] = entry.groups;
  json["input_type"] = shown.input_type ? report::Json(to_string(*shown.input_type, mesh)) : report::Json(nullptr);
  json["result_type"] = to_string(shown.result_type, mesh);
  json["devices"] = report::Json::array();
  for (std::int64_t device = 0; device < mesh.devices(); ++device) {
    const auto at = static_cast<std::size_t>(device);
    report::Json row{{"device", device}};
    row["coordinates"] = report::Json::object();
    for (std::size_t i = 0; i < mesh.axes().size(); ++i) {
      row["coordinates"][mesh.axes()[i].name] = mesh.coordinate(device, static_cast<int>(i));
    }
    row["input"] = shown.input_type
                       ? report::value_json(shown.input_type->dtype, shown.input_type->shape, shown.inputs[at])
                       : report::Json();
    row["result"] = report::value_json(shown.result_type.dtype, shown.result_type.shape, shown.results[at]);
    json["devices"].push_back(std::move(row));
  }
  json["timings"] = report::Json::array();
  for (const auto& [size, timing] : entry.timings) {
    json["timings"].push_back({{"bytes", size},
                               {"seconds", timing ? report::Json(timing->seconds) : report::Json()},
                               {"bytes_per_second", timing ? report::Json(timing->bytes_per_second) : report::Json()}});
  }
  return json;
}

// The mesh that was asked for, and what carries it.
spec::MeshSpec mesh_of(const std::optional<std::string>& config, const spec::Overrides& overrides,
                       const std::vector<std::string>& axes, const Streams& streams, bool json) {
  spec::MeshSpec mesh;
  if (config) {
    if (!axes.empty()) fail_usage("collectives takes CONFIG or --mesh, not both", "omit one of them");
    const spec::Loaded loaded = spec::load(*config, overrides);
    if (!json) print_notes(loaded.facts_and_notes(), streams);
    return loaded.spec.mesh;
  }
  if (!overrides.set.empty() || overrides.devices || overrides.seed) {
    fail_usage("--set, --devices and --seed need a CONFIG", "give a CONFIG, or set the mesh: --mesh devices=8");
  }
  mesh.mesh = Mesh(axes.empty() ? example_mesh : axes_of(axes));
  if (overrides.workers.value_or(0) > 0) {
    mesh.workers = static_cast<int>(std::min<std::int64_t>(*overrides.workers, mesh.mesh.devices()));
  }
  return mesh;
}

}  // namespace

int command_collectives(CommandArguments arguments, const Streams& streams) {
  std::optional<std::string> path, axis, op, bytes;
  std::vector<std::string> axes;
  ConfigOptions config;
  bool json = false;
  Arguments a("collectives",
              "Runs each collective over each axis of a mesh and shows the groups, and every device's input and "
              "result. The mesh is that of CONFIG or of --mesh; default devices=4.");
  a.optional_positional("CONFIG", path, "a YAML file, or a run folder: its mesh");
  a.list("--mesh", "AXIS=N", axes, "an axis of the mesh and its size, outermost first; may repeat");
  a.text("--axis", "A", axis, "only over this axis");
  a.text("--op", "OP", op, "only this collective, such as psum");
  std::vector<std::string> names;
  for (const Demonstration& one : demonstrations()) names.emplace_back(one.name);
  a.complete("--op", {Values::Kind::words, std::move(names)});
  a.text("--bytes", "LIST", bytes,
         "also time each collective at these sizes of every device's operand: --bytes 64,4KiB,1MiB. The time is the "
         "median; bytes per second are the sum over all devices");
  a.flag("--json", json, "print it as a JSON document");
  config.add_options_to(a);
  if (!a.parse(arguments, streams)) return 0;
  const std::vector<std::int64_t> sizes = bytes ? sizes_of(*bytes) : std::vector<std::int64_t>{};
  const std::vector<const Demonstration*> ops = chosen_ops(op);
  const spec::MeshSpec carried = mesh_of(path, config.overrides, axes, streams, json);
  const Mesh& mesh = carried.mesh;
  const std::unique_ptr<Backend> backend = setup::backend_of(carried);
  int workers = 1;
  const std::vector<AxisSet> chosen = chosen_axes(mesh, axis);

  report::Json document{{"mesh", report::Json::object()}, {"logical_devices", mesh.devices()}, {"workers", workers}};
  for (const Axis& one : mesh.axes()) document["mesh"][one.name] = one.size;
  document["collectives"] = report::Json::array();
  if (!json) streams.out << for_reader(mesh_line(mesh), streams);
  for (const AxisSet over : chosen) {
    const bool single = over != mesh.all() || mesh.axes().size() == 1;
    for (const Demonstration* what : ops) {
      if (!single && !what->several) continue;
      Entry entry{what, over, groups_of(mesh, over), show(*what, mesh, over, *backend), {}};
      workers = std::max(workers, entry.shown.workers);
      for (const std::int64_t size : sizes) {
        if (what->operand && !what->replicated)
          entry.timings.emplace_back(size, measure(*what, mesh, over, *backend, size));
      }
      if (json) {
        document["collectives"].push_back(json_of(entry, mesh));
      } else {
        streams.out << for_reader(text_of(entry, mesh, display::text_columns(streams.out_fd)), streams);
      }
    }
  }
  document["workers"] = workers;
  if (json) streams.out << report::to_text(document);
  return 0;
}

}  // namespace pmaptrain::app
