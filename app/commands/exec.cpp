// exec: a program that is written by hand, on a mesh of logical devices.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "app/commands/commands.h"
#include "app/exec_values.h"
#include "app/options/arguments.h"
#include "app/options/mesh_option.h"
#include "core/base/machine.h"
#include "core/base/text.h"
#include "core/base/wrap.h"
#include "core/graph/text.h"
#include "core/ops/all.h"
#include "core/report/json.h"
#include "core/run/files/npy.h"
#include "core/setup/plan.h"
#include "core/setup/values.h"

namespace pmaptrain::app {
namespace {

constexpr std::size_t largest_program = std::size_t{64} << 20;

std::string read_program(const std::string& path) {
  const auto refuse = [&path](std::string message, std::string help) {
    Diagnostic diagnostic{"usage", {}, std::move(message), std::move(help), {}};
    diagnostic.place.file = path;
    throw Error(ExitStatus::usage, std::move(diagnostic));
  };
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  // No further than is allowed: a device has no end.
  std::vector<char> part(std::size_t{1} << 16);
  while (file && text.size() <= largest_program) {
    file.read(part.data(), static_cast<std::streamsize>(part.size()));
    text.append(part.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (!file.is_open() || file.bad() || errno == EISDIR) {
    refuse(std::string("the file cannot be read: ") + std::strerror(errno), "give the path of a program text");
  }
  if (text.size() > largest_program) refuse("the program is too large", "the largest size is 64 MiB");
  return text;
}

// The type of the array that the name of an input means: of one that devices divide, of the whole array.
const Type& type_of(const Module& module, const Input& input) {
  return input.group == Group::batch ? module.program(0).type(input.value) : module.type(module.input(input.name));
}

// Sets every input from its file. All that are missing are told at once.
void set_inputs(Module& module, const std::vector<std::string>& arguments) {
  const Program& program = module.program(0);
  std::map<std::string, std::string> files;
  std::vector<std::string> names;
  for (const Input& input : program.inputs) names.push_back(input.name);
  for (const std::string& argument : arguments) {
    const auto [name, file] = split_option("--input", argument, "NAME=FILE.npy");
    if (program.find_input(name) == nullptr) {
      const std::string near = nearest(name, names);
      fail_option("--input", argument, "the program has no input '" + name + "'",
                  names.empty()   ? "it takes none"
                  : !near.empty() ? "did you mean '" + near + "'?"
                                  : "its inputs are " + join(names, ", "));
    }
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) {
      const std::string help = "a relative path in an option is relative to the current directory";
      const Place place{"--input", 1, count_characters("--input " + name + "=") + 1, count_characters(file),
                        "--input " + argument};
      throw Error(ExitStatus::data, Diagnostic{"data", place, "there is no file '" + file + "'", help, {}});
    }
    if (const auto [known, is_new] = files.emplace(name, file); !is_new) {
      fail_option("--input", argument, "the input '" + name + "' has a value already: '" + known->second + "'",
                  "keep one of the two");
    }
  }
  std::vector<Diagnostic> missing;
  for (const Input& input : program.inputs) {
    if (files.contains(input.name)) continue;
    const Type& type = type_of(module, input);
    const std::string shape = tuple_text(stacked_layout(type, program.mesh).logical);
    missing.push_back({"usage",
                       {},
                       fmt::format("{} input '{}' has no value: it is {}, an array of shape {}", to_string(input.group),
                                   input.name, to_string(type, program.mesh), shape),
                       fmt::format("--input {0}={0}.npy, written in Python by np.save('{0}.npy', np.zeros({1}, {2}))",
                                   input.name, shape, numpy_expression(type.dtype)),
                       {}});
  }
  if (!missing.empty()) throw Error(ExitStatus::usage, std::move(missing));
  for (const Input& input : program.inputs) {
    const Type& type = type_of(module, input);
    const run::Tensor array = read_array(files[input.name], input.name, type, program.mesh);
    if (input.group == Group::batch) {
      std::copy(array.bytes.begin(), array.bytes.end(), module.batch(0, 0, input.name).begin());
      continue;
    }
    std::span<const std::byte> rest(array.bytes);
    for (std::int64_t i = 0; i < program.mesh.group_size(type.varying); ++i, rest = rest.subspan(bytes(type))) {
      const std::int64_t to = type.varying.empty() ? every_device : program.mesh.device_at(i, type.varying);
      module.wait(module.write(module.input(input.name), to, rest.first(bytes(type))));
    }
  }
}

struct Result {
  std::string name;
  bool update = false;  // what an input is after the step
  Type type;
  OnDevice value;
  // In an archive, where an output may have an input's name.
  std::string key() const { return update ? name + ".next" : name; }
};

// An archive names an update NAME.next, which an output may be called, too.
void check_archive_names(const Program& program) {
  for (const Input& input : program.inputs) {
    if (!input.next || program.find_output(input.name + ".next") == nullptr) continue;
    throw Error(ExitStatus::usage,
                Diagnostic{"program",
                           input.update_place,
                           fmt::format("--output cannot hold both the update of '{0}', which an archive calls "
                                       "'{0}.next', and the output '{0}.next'",
                                       input.name),
                           fmt::format("return '{}.next' under another name", input.name),
                           {}});
  }
}

std::vector<Result> results_of(Module& module) {
  const Program& program = module.program(0);
  const auto reader = [&module](Handle value) {
    return [&module, value](std::int64_t device) { return setup::bytes_of(module, value, device); };
  };
  std::vector<Result> results;
  for (const Output& output : program.outputs) {
    results.push_back({output.name, false, program.type(output.value), reader(module.output(0, output.name))});
  }
  for (const Input& input : program.inputs) {
    if (!input.next) continue;
    results.push_back({input.name, true, type_of(module, input), reader(module.input(input.name))});
  }
  return results;
}

std::string text_of(const std::vector<Result>& results, const Mesh& mesh) {
  std::string out = mesh_line(mesh);
  for (const Result& result : results) {
    out += fmt::format("\n{}{}: {}\n", result.update ? "updated " : "", result.name, to_string(result.type, mesh));
    std::vector<std::vector<std::string>> rows;
    for (const Holders& group : distinct(mesh, result.value)) {
      rows.push_back(
          {holders_text(group.devices, mesh), array_text(result.type.dtype, result.type.shape, group.value)});
    }
    out += in_columns(rows, {});
  }
  return out;
}

std::string json_of(const std::vector<Result>& results, const Mesh& mesh) {
  report::Json json;
  json["mesh"] = report::Json::object();
  for (const Axis& axis : mesh.axes()) json["mesh"][axis.name] = axis.size;
  json["logical_devices"] = mesh.devices();
  json["results"] = report::Json::array();
  for (const Result& result : results) {
    report::Json entry{{"name", result.name}, {"update", result.update}, {"type", to_string(result.type, mesh)}};
    entry["values"] = report::Json::array();
    for (const Holders& group : distinct(mesh, result.value)) {
      report::Json row{{"devices", group.devices},
                       {"value", report::value_json(result.type.dtype, result.type.shape, group.value)}};
      if (!report::all_finite(result.type.dtype, group.value)) row["finite"] = false;
      entry["values"].push_back(std::move(row));
    }
    json["results"].push_back(std::move(entry));
  }
  return report::to_text(json);
}

}  // namespace

int command_exec(CommandArguments arguments, const Streams& streams) {
  std::string path;
  std::vector<std::string> mesh, inputs;
  std::optional<std::string> output;
  std::optional<std::int64_t> workers;
  bool json = false;
  Arguments a("exec",
              "Runs a program text once, on every logical device of its mesh, and prints each result with one row per "
              "distinct value and the devices that hold it.");
  a.positional("PROGRAM.pmt", path, "the program's text, as `pmaptrain explain` prints it", "program.pmt");
  a.list("--mesh", "AXIS=N", mesh,
         "sets the size of an axis, or adds an axis; may repeat. If all axes of the program are given, the mesh has "
         "their order");
  a.list("--input", "NAME=FILE.npy", inputs, "the value of an input; may repeat");
  a.text("--output", "FILE.npz", output, "also write the results, by name (NAME.next for an updated input)");
  a.integer("--workers", "N", 1, workers, "number of threads that run the devices");
  a.flag("--json", json, "print the results as a JSON document");
  a.footer(
      "An input or output that varies over axes has one leading dimension for each of them, in mesh order:\n"
      "f32[4]{devices} on 8 devices is an array of shape (8, 4).\n");
  if (!a.parse(arguments, streams)) return 0;

  const auto program =
      std::make_shared<const Program>(parse_program(read_program(path), path, all_ops(), axes_of(mesh)));
  if (output) check_archive_names(*program);
  spec::MeshSpec carried;
  carried.mesh = program->mesh;
  if (workers) carried.workers = static_cast<int>(std::min<std::int64_t>(*workers, program->mesh.devices()));
  const std::unique_ptr<Planned> planned = setup::backend_of(carried)->plan({{{"program", program}}});
  demand_memory(planned->needs().total(), "this program", "use a smaller mesh (--mesh) or smaller values");
  const std::unique_ptr<Module> module = std::move(*planned).load();
  set_inputs(*module, inputs);
  module->wait(module->submit(0, 0));
  const std::vector<Result> results = results_of(*module);
  if (output) {
    run::Tensors tensors;
    for (const Result& result : results) tensors[result.key()] = to_array(result.type, program->mesh, result.value);
    run::write_npz(*output, tensors);
  }
  streams.out << (json ? json_of(results, program->mesh) : for_reader(text_of(results, program->mesh), streams));
  return 0;
}

}  // namespace pmaptrain::app
