#include "core/report/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/json.h"
#include "core/base/saturate.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/base/wrap.h"
#include "core/report/division.h"
#include "core/report/json.h"
#include "core/report/memory_report.h"
#include "core/report/padding.h"
#include "core/report/process_division.h"
#include "core/report/sharding.h"
#include "core/run/records/lines.h"
#include "core/setup/programs.h"
#include "core/setup/start.h"
#include "core/setup/statistics_advice.h"
#include "core/step/optimizer.h"
#include "core/train/resources.h"

namespace pmaptrain::report {
namespace {

std::string tuple(const Shape& shape) {
  std::string out = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) out += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return out + (shape.size() == 1 ? ",)" : ")");
}

std::int64_t parameters_of(const model::Node& layer) {
  std::int64_t count = 0;
  for (const model::Parameter& parameter : layer.parameters) count += parameter.is_state ? 0 : numel(parameter.shape);
  return count;
}

// "8 logical devices along axis 'devices'", "8 logical devices: axes replicas 2 x shards 4"
std::string mesh_text(const Mesh& mesh) {
  std::string out = counted(mesh.devices(), "logical device");
  if (mesh.axes().size() == 1) return out + " along axis '" + mesh.name(0) + "'";
  for (std::size_t i = 0; i < mesh.axes().size(); ++i) {
    out += fmt::format("{}{} {}", i == 0 ? ": axes " : " x ", mesh.axes()[i].name, mesh.axes()[i].size);
  }
  return out;
}

// The values of the first members, "0.1, 0.02, 0.3", and the number of the others.
std::string some_values(const std::vector<std::string>& values) {
  constexpr std::size_t most = 8;
  const auto shown = static_cast<std::ptrdiff_t>(std::min(values.size(), most));
  const std::string text = join({values.begin(), values.begin() + shown}, ", ");
  return values.size() > most ? text + fmt::format(" and {} more", values.size() - most) : text;
}

std::string ensemble_text(const spec::Spec& spec) {
  const auto& ensemble = spec.ensemble;
  if (!ensemble) return "";
  const std::int64_t devices = spec::member_spec(spec, 0).mesh.mesh.devices();
  std::vector<std::vector<std::string>> rows;
  for (const spec::Varied& varied : ensemble->vary) rows.push_back({varied.path, some_values(varied.values)});
  return fmt::format("ensemble: {} along axis '{}', each on {}; each has the batch and the layers below\n",
                     counted(spec::members(spec), "member"), ensemble->axis, counted(devices, "logical device")) +
         in_columns(rows, {false, false}) + "\n";
}

// Names of the dimensions of a batch, and their sizes.
struct Layout {
  Shape shape;
  std::string names;
};

// The layout of rows on the mesh: a dimension for each axis over which a batch varies, and the rows of one device. A
// batch that is `shared` is the same for all members.
Layout layout_of_rows(const spec::Spec& spec, std::int64_t rows_per_device, bool shared) {
  Layout rows;
  const Mesh& mesh = spec.mesh.mesh;
  const AxisRoles& roles = spec.mesh.roles;
  for (const int axis : (shared ? roles.data : roles.data | roles.ensemble).list()) {
    rows.shape.push_back(mesh.size(axis));
    rows.names += mesh.name(axis) + ", ";
  }
  rows.shape.push_back(rows_per_device);
  rows.names += "per device";
  return rows;
}

// Adds the dimensions of an example.
Layout layout_of(Layout rows, const data::Field& field, bool images) {
  rows.shape.insert(rows.shape.end(), field.shape.begin(), field.shape.end());
  if (images && field.shape.size() == 3) rows.names += ", height, width, channels";
  if (field.shape.size() == 1) rows.names += field.dtype == DType::i32 ? ", positions" : ", features";
  return rows;
}

// The augmentation of training images; empty if there is none.
std::string augment_text(const spec::DataSpec& data) {
  std::vector<std::string> names;
  for (const augment::Augmentation& one : data.augment) names.push_back(one.kind->name());
  return names.empty() ? "" : fmt::format("augment: {}\n", join(names, ", "));
}

bool is_mixed(const spec::Spec& spec) { return spec.precision == spec::PrecisionPolicy::mixed_bfloat16; }

// The names of the parameters that optimizer.groups freeze.
std::set<std::string> frozen_parameters(const model::Model& model, const step::Optimizer& optimizer) {
  std::set<std::string> names;
  for (const model::Parameter& parameter : model.parameters) {
    if (!parameter.is_state) names.insert(parameter.name);
  }
  for (const std::size_t trained : optimizer.trained()) names.erase(model.parameters[trained].name);
  return names;
}

// "frozen", "frozen: bias", or nothing.
std::string frozen_text(const model::Node& layer, const std::set<std::string>& frozen) {
  std::vector<std::string> names;
  // "adapters: query, value"; "adapters" of the only kernel of a layer.
  if (!layer.adapters.empty()) {
    for (const model::Adapter& adapter : layer.adapters) {
      if (adapter.name.size() > layer.name.size()) names.push_back(adapter.name.substr(layer.name.size() + 1));
    }
    return names.empty() ? "adapters" : "adapters: " + join(names, ", ");
  }
  for (const model::Parameter& parameter : layer.parameters) {
    if (frozen.contains(parameter.name)) names.push_back(parameter.name.substr(parameter.name.rfind('.') + 1));
  }
  if (names.empty()) return "";
  const auto own = std::count_if(layer.parameters.begin(), layer.parameters.end(),
                                 [](const model::Parameter& parameter) { return !parameter.is_state; });
  return std::ssize(names) == own ? "frozen" : "frozen: " + join(names, ", ");
}

// The element type is shown if it differs between layers. Frozen parameters are shown.
std::string layers_text(const model::Model& model, const std::set<std::string>& frozen, bool mixed, int width) {
  std::vector<std::vector<std::string>> rows{{"layer", "kind", "output", "parameters"}};
  rows.push_back({"inputs", std::string(to_string(model.input.dtype)), tuple(model.input.shape), ""});
  for (const model::Node* layer : model.nodes()) {
    const std::int64_t count = parameters_of(*layer);
    const std::string dtype = mixed ? std::string(to_string(layer->compute)) + " " : "";
    rows.push_back({layer->name, layer->kind, dtype + tuple(layer->output), count == 0 ? "-" : with_commas(count),
                    frozen_text(*layer, frozen)});
    if (const std::string divided = division_text(*layer); !divided.empty()) {
      std::string& told = rows.back().back();
      told += (told.empty() ? "" : ", ") + divided;
    }
  }
  rows.push_back({"total", "", "", with_commas(model.parameter_count())});
  std::int64_t count = 0;
  for (const model::Parameter& parameter : model.parameters) {
    if (frozen.contains(parameter.name)) count += numel(parameter.shape);
  }
  if (count > 0) rows.back().push_back(with_commas(count) + " of them frozen");
  return in_columns(rows, {false, false, false, true}, width);
}

std::string precision_text(const spec::Spec& spec) {
  if (!is_mixed(spec)) return "";
  return "precision: mixed_bfloat16: products and activations are bf16 but where a layer says float32; parameters, "
         "gradients, optimizer, loss and metrics are f32\n";
}

struct LoraCounts {
  std::int64_t kernels = 0, trained = 0, others = 0;  // adapted kernels; elements; parameters of also_train
  std::size_t base_bytes = 0;
};

LoraCounts lora_counts(const model::Model& model) {
  LoraCounts counts;
  for (const model::Parameter& parameter : model.parameters) {
    const std::int64_t elements = numel(parameter.shape);
    if (parameter.lora == model::LoraRole::base) {
      counts.base_bytes += static_cast<std::size_t>(elements) * size_of(parameter.stored_as.value_or(model.dtype));
    } else if (!parameter.is_state) {
      counts.trained += elements;
      counts.others += parameter.lora == model::LoraRole::none ? 1 : 0;
    }
  }
  model::for_each_node(model.layers, [&](const model::Node& node) { counts.kernels += std::ssize(node.adapters); });
  return counts;
}

std::string lora_text(const model::Model& model) {
  if (!model.lora) return "";
  const LoraCounts counts = lora_counts(model);
  const double share = 100.0 * static_cast<double>(counts.trained) / static_cast<double>(model.parameter_count());
  const bool rounded = model.lora->base_precision == model::BasePrecision::bfloat16;
  return fmt::format(
      "lora: {} of {} parameters are trained ({:.3g} %): adapters of rank {} beside {}{}; the base takes {}{}\n",
      with_commas(counts.trained), with_commas(model.parameter_count()), share, model.lora->rank,
      counted(counts.kernels, "kernel"),
      counts.others > 0 ? ", and " + counted(counts.others, "parameter") + " as a whole" : "",
      human_bytes(counts.base_bytes), rounded ? " in bfloat16" : "");
}

// The values behind the statistics of batch_norm: "64 rows x 196 positions = 12,544 values behind each statistic of
// ...".
std::string statistics_text(const setup::Setup& setup) {
  std::string out;
  for (const setup::ValuesBehind& values : setup::values_behind_statistics(setup)) {
    out += fmt::format("statistics of {}: {} x {} = {} each\n", some_values(values.nodes), counted(values.rows, "row"),
                       counted(values.positions, "position"), counted(values.count(), "value"));
  }
  return out;
}

const data::Field field_of_lengths{DType::i32, {}};

std::string batch_text(const spec::Spec& spec, const model::Model& model, const BatchPlan& batch,
                       const Layout& layout) {
  const Layout inputs = layout_of(layout, model.input, true);
  const Layout targets = layout_of(layout, model.target, false);
  std::vector<std::vector<std::string>> rows{
      {"inputs", fmt::format("{} {}", to_string(model.input.dtype), tuple(inputs.shape)), inputs.names},
      {"targets", fmt::format("{} {}", to_string(model.target.dtype), tuple(targets.shape)), targets.names}};
  if (model.has_lengths) {
    const Layout lengths = layout_of(layout, field_of_lengths, false);
    rows.push_back(
        {"lengths", fmt::format("{} {}", to_string(field_of_lengths.dtype), tuple(lengths.shape)), lengths.names});
  }
  std::string out =
      fmt::format("batch: {} a step, {} on each of {}", counted(batch.global, "example"),
                  counted(batch.rows_per_device, "row"), counted(spec::member_mesh(spec).devices(), "logical device"));
  if (spec.tensor() != nullptr) out += ", the same on those along '" + spec.tensor()->axis + "'";
  if (batch.microbatches > 1) {
    out += fmt::format(", in {} microbatches of {}", batch.microbatches, batch.rows_per_device / batch.microbatches);
  }
  return out + "\n" + in_columns(rows, {false, false, false});
}

using Evaluations = std::vector<setup::EvaluationPlan>;

std::string checkpoints_text(const spec::CheckpointSpec& spec, const step::Timetable& timetable,
                             const Evaluations& evaluations) {
  if (!timetable.saves_during_run) return "  one checkpoint, at the end\n";
  std::string every;
  if (timetable.save_every > 0) every = counted(timetable.save_every, "step");
  if (timetable.save_seconds > 0) every = run::duration(timetable.save_seconds);
  std::string out = every.empty() ? "  a checkpoint at the end" : "  a checkpoint every " + every + " and at the end";
  out += fmt::format("; the {} newest are kept", with_commas(spec.keep));
  if (spec.best) {
    const bool max = mode_of(*spec.best) == spec::Mode::max;
    out += fmt::format(", and the one with the {} {} {}", max ? "highest" : "lowest", evaluations.front().split,
                       spec.best->metric);
  }
  return out + "\n";
}

std::string steps_text(const BatchPlan& batch, const step::Timetable& timetable, const Evaluations& evaluations) {
  std::string out = fmt::format("steps: {} in {} of {}", with_commas(timetable.steps),
                                counted((timetable.steps + batch.steps_per_epoch - 1) / batch.steps_per_epoch, "epoch"),
                                counted(batch.steps_per_epoch, "step"));
  if (timetable.log_every > 0) out += fmt::format("; logged every {}", with_commas(timetable.log_every));
  if (timetable.eval_every > 0) {
    const auto examples = [](const setup::EvaluationPlan& plan) {
      return with_commas(plan.batch.dataset) + " " + plan.split + " examples";
    };
    out += fmt::format("; evaluated every {} on {}", with_commas(timetable.eval_every), examples(evaluations.front()));
    if (evaluations.size() > 1) out += ", and at the end on " + examples(evaluations.back());
  }
  return out + "\n";
}

// The examples that an epoch skips or pads.
std::string epoch_text(const BatchPlan& batch) {
  std::string out;
  if (batch.skipped_per_epoch > 0) {
    out += fmt::format("  each epoch skips {}: they do not fill a batch of {} (data.remainder: drop)\n",
                       counted(batch.skipped_per_epoch, "example"), with_commas(batch.global));
  }
  if (batch.padded_per_epoch > 0) {
    out += fmt::format("  each epoch pads {}, which count for nothing (data.remainder: mask)\n",
                       counted(batch.padded_per_epoch, "row"));
  }
  if (batch.skipped_per_epoch == 0 && batch.padded_per_epoch == 0) {
    out += fmt::format("  every one of the {} examples is used in each epoch; nothing is skipped or padded\n",
                       with_commas(batch.dataset));
  }
  return out;
}

// Some updates of a schedule, counted from 1: the first, the beginnings of its segments, the middle and the last.
std::vector<std::int64_t> told_updates(const schedules::Schedule& schedule, std::int64_t last) {
  std::set<std::int64_t> updates{1, (last + 1) / 2, last};
  for (const schedules::Segment& segment : schedule.segments) updates.insert(std::min(segment.start + 1, last));
  return {updates.begin(), updates.end()};
}

// "a learning rate of 0.001", "a learning rate by warmup_cosine_decay"
std::string rate_text(const std::vector<setup::Member>& members) {
  const step::Optimizer& optimizer = members.front().optimizer;
  std::vector<std::string> rates;
  rates.reserve(members.size());
  for (const setup::Member& member : members) rates.push_back(exact(member.optimizer.learning_rate));
  const bool equal = std::all_of(rates.begin(), rates.end(), [&](const auto& rate) { return rate == rates.front(); });
  if (!optimizer.schedule && !equal) return "learning rates of " + some_values(rates);
  if (!optimizer.schedule) return "a learning rate of " + exact(optimizer.learning_rate);
  return "a learning rate by " + optimizer.schedule->name;
}

std::string schedule_text(const std::vector<setup::Member>& members, std::int64_t steps, bool is_ensemble) {
  const auto& schedule = members.front().optimizer.schedule;
  if (!schedule) return "";
  std::vector<std::vector<std::string>> rows{{"step", "learning rate" + std::string(is_ensemble ? " by member" : "")}};
  for (const std::int64_t update : told_updates(*schedule, steps)) {
    std::vector<std::string> rates;
    rates.reserve(members.size());
    for (const setup::Member& member : members) {
      rates.push_back(fmt::format("{:.6g}", step::learning_rate_at(member.optimizer, update)));
    }
    rows.push_back({with_commas(update), some_values(rates)});
  }
  return in_columns(rows, {true, false}) + "\n";
}

std::string wire_text(const ValidateReport& report) {
  std::string out;
  for (const auto& [axis, bytes] : report.cost.wire_bytes) {
    out += fmt::format("  each device sends {} over axis '{}'\n", human_bytes(bytes), axis);
  }
  if (report.cost.wire_bytes.size() > 1) out += "  what goes over several axes at once counts for the outermost\n";
  return out.empty() ? "  nothing: the mesh has no axes\n" : out;
}

Json ranges_json(const std::vector<IndexRange>& ranges) {
  Json list = Json::array();
  for (const IndexRange& range : ranges) list.push_back({{"first", range.first}, {"count", range.count}});
  return list;
}

// Notes about options that replace keys, and about conversions of the data.
std::vector<std::string> notes_of(const spec::Loaded& loaded, const data::Source& source) {
  std::vector<std::string> notes = loaded.facts_and_notes();
  notes.insert(notes.end(), source.notes.begin(), source.notes.end());
  return notes;
}

}  // namespace

ValidateReport make_validate_report(const setup::Setup& setup, const setup::PlannedSource& run, int processes) {
  ValidateReport report;
  report.backend = run.backend->name();
  report.backend_because = run.because;
  report.workers = run.planned->workers();
  report.memory = train::estimate_memory(setup, run.planned->needs());
  train::check_memory(report.memory, setup, *run.backend, run.planned->source(), {{0, processes}});
  report.cost = setup::cost_of(*setup.training, setup.spec());
  report.warnings = setup.warnings;
  report.processes = processes;
  if (processes > 1) report.sent_bytes = run.planned->report(setup::train_entry).sent_bytes;
  return report;
}

ValidateReport make_validate_report(const setup::Setup& setup, bool private_copies, int processes) {
  return make_validate_report(setup, setup::plan_run(setup, private_copies, KernelChoice::best, {{0, processes}}),
                              processes);
}

std::string validate_text(const setup::Setup& setup, const ValidateReport& report, int width) {
  const spec::Spec& spec = setup.spec();
  std::string metrics;
  for (const metrics::Metric& metric : spec.metrics) metrics += ", " + metric.label();
  std::string out = fmt::format("{}: valid\n\n", printable(spec.name));
  out += fmt::format("mesh: {}, carried by {} (backend {}{})\n", mesh_text(setup.mesh()),
                     carriers_text(report.workers, report.memory.gpus > 0, report.processes, spec.mesh), report.backend,
                     report.backend_because.empty() ? "" : ", taken by auto: " + printable(report.backend_because));
  const bool are_gpus = report.memory.gpus > 0;
  if (!are_gpus || report.processes > 1) {
    out += processes_text(spec, report.processes, are_gpus ? std::nullopt : report.sent_bytes);
  }
  if (are_gpus && report.sent_bytes) {
    out += fmt::format("  each GPU sends {} to the others in a step\n", human_bytes(*report.sent_bytes));
  }
  out += fmt::format("data: {}\n{}\n", setup.source.description, augment_text(spec.data));
  out += ensemble_text(spec);
  out += fmt::format("model: {}{}; {} at {}\n", spec.loss->name(), metrics, step::rule_name(spec.optimizer),
                     rate_text(setup.members));
  out += schedule_text(setup.members, setup.timetable.steps, spec.ensemble.has_value());
  out += precision_text(spec);
  out += lora_text(setup.model);
  out += layers_text(setup.model, frozen_parameters(setup.model, setup.optimizer()), is_mixed(spec), width) + "\n";
  const bool shared = setup::training_streams(setup).size() == 1;
  out +=
      batch_text(spec, setup.training_model(), setup.batch, layout_of_rows(spec, setup.batch.rows_per_device, shared));
  out += padding_text(setup);
  out += statistics_text(setup) + "\n";
  out += steps_text(setup.batch, setup.timetable, setup.evaluations);
  out += checkpoints_text(spec.train.checkpoint, setup.timetable, setup.evaluations);
  out += epoch_text(setup.batch) + "\n";
  out += std::string("each step: ") + (setup.shorter.empty() ? "" : "at most ") + human_flops(report.cost.flops) +
         " over the whole mesh\n" + wire_text(report) + "\n";
  const std::string division = division_text(setup);
  out += division + (division.empty() ? "" : "\n");
  out += sharding_text(setup, report.processes, report.memory.gpus > 0);
  const int gpus = report.memory.gpus;
  const std::string whose = gpus == 0 ? "this process" : gpus == 1 ? "the GPU" : "each of " + counted(gpus, "GPU");
  out += "memory of " + whose + ":\n" + memory_text(report.memory);
  const std::vector<std::string> notes = notes_of(setup.loaded, setup.source);
  if (!notes.empty()) out += "\n";
  for (const std::string& note : notes) out += "note: " + note + "\n";
  return wrapped(out, width);
}

std::string validate_json(const setup::Setup& setup, const ValidateReport& report, bool with_config) {
  const BatchPlan& batch = setup.batch;
  const setup::MemoryEstimate& m = report.memory;
  Json json;
  json["valid"] = true;
  json["name"] = setup.spec().name;
  json["mesh"] = Json::object();
  for (const Axis& axis : setup.mesh().axes()) json["mesh"][axis.name] = axis.size;
  json["logical_devices"] = setup.mesh().devices();
  if (const auto& ensemble = setup.spec().ensemble) {
    Json vary = Json::object();
    for (const spec::Varied& varied : ensemble->vary) {
      for (const std::string& value : varied.values) vary[varied.path].push_back(parse_json(value));
    }
    json["ensemble"] = {{"axis", ensemble->axis}, {"members", setup.members.size()}, {"vary", vary}};
  }
  json["workers"] = report.workers;
  json["processes"] = report.processes;
  json["blocks"] = setup.spec().mesh.blocks.value_or(1);
  if (report.memory.gpus == 0) {
    const ProcessDivision division = divide_over_processes(setup.spec(), report.processes);
    if (setup.spec().ensemble) json["members_of_processes"] = ranges_json(division.members);
    json["devices_of_processes"] = ranges_json(division.devices);
    json["processes_that_divide"] = division.that_divide;
  }
  if (report.sent_bytes) {
    json[report.memory.gpus > 0 ? "sent_bytes_of_gpu" : "sent_bytes_of_process"] = *report.sent_bytes;
  }
  json["backend"] = report.backend;
  if (!report.backend_because.empty()) json["backend_because"] = report.backend_because;
  json["precision"] = spec::to_string(setup.spec().precision);
  json["parameters"] = setup.model.parameter_count();
  if (setup.model.lora) {
    const LoraCounts counts = lora_counts(setup.model);
    json["lora"] = {
        {"trained_parameters", counts.trained}, {"adapted_kernels", counts.kernels}, {"base_bytes", counts.base_bytes}};
  }
  json["batch"] = {{"global", batch.global},
                   {"per_device", batch.rows_per_device},
                   {"microbatch", batch.rows_per_device / batch.microbatches}};
  for (const data::Split split : data::all_splits) {
    if (setup.source.of(split)) json["splits"][data::name_of(split)] = setup.source.of(split)->size();
  }
  const bool shared = setup::training_streams(setup).size() == 1;
  const Layout rows = layout_of_rows(setup.spec(), batch.rows_per_device, shared);
  const data::Field &input = setup.model.input, &target = setup.training_model().target;
  json["inputs"] = {{"dtype", to_string(input.dtype)}, {"shape", layout_of(rows, input, true).shape}};
  json["targets"] = {{"dtype", to_string(target.dtype)}, {"shape", layout_of(rows, target, false).shape}};
  if (setup.model.has_lengths) {
    json["lengths"] = {{"dtype", to_string(field_of_lengths.dtype)},
                       {"shape", layout_of(rows, field_of_lengths, false).shape}};
  }
  for (const setup::ShorterTraining& shorter : setup.shorter) json["padded_to"].push_back(shorter.positions);
  if (!setup.shorter.empty()) json["padded_to"].push_back(input.shape.front());
  json["steps"] = setup.timetable.steps;
  json["steps_per_epoch"] = batch.steps_per_epoch;
  json["examples_skipped_per_epoch"] = batch.skipped_per_epoch;
  json["examples_padded_per_epoch"] = batch.padded_per_epoch;
  Json& memory = json["memory_bytes"];
  for (const setup::MemoryRow& row : setup::rows_of(m)) {
    if (row.key != "workspace" && row.key != "data") memory[row.key] = row.bytes;
  }
  memory["total_per_process"] = product_of(static_cast<std::size_t>(std::max(m.gpus, 1)), m.total());
  memory["available"] = m.available ? Json(*m.available) : Json(nullptr);
  if (m.gpus > 0) {
    memory["workspace"] = m.workspace;
    memory["total_per_gpu"] = m.total();
    for (const setup::MemoryRow& row : setup::rows_of(m.host)) memory["host"][row.key] = row.bytes;
    memory["host"]["total"] = m.host.total();
    memory["host"]["available"] = m.host.available ? Json(*m.host.available) : Json(nullptr);
    json["workspace_planned_for"] = m.workspace_planned_for.empty() ? Json(nullptr) : Json(m.workspace_planned_for);
    json["gpus"] = m.gpus;
    json["fits"] = m.available ? Json(m.total() <= *m.available) : Json(nullptr);
  }
  if (m.data > 0) json["memory_bytes"]["data"] = m.data;
  json["flops_per_step"] = std::llround(report.cost.flops);
  json["collective_bytes_per_step"] = Json::object();
  for (const auto& [axis, bytes] : report.cost.wire_bytes) {
    json["collective_bytes_per_step"][axis] = std::llround(bytes);
  }
  if (const std::optional<DivisionReport> division = division_of(setup)) {
    json["tensor"] = {{"axis", division->axis},
                      {"devices", division->devices},
                      {"parameters_of_device", division->parameters},
                      {"flops_of_whole_layers", std::llround(division->flops_of_whole)}};
  }
  if (setup.member_spec().fsdp() != nullptr) {
    json["sharding"] = Json::array();
    for (const ShardingStage& each : stages_of_sharding(setup, report.processes)) {
      json["sharding"].push_back({{"stage", each.stage},
                                  {"parameters", each.parameters},
                                  {"gradients", each.gradients},
                                  {"state", each.state},
                                  {"sent", std::llround(each.sent)}});
      if (each.process) json["sharding"].back()["total_per_process"] = *each.process;
    }
  }
  if (setup.optimizer().schedule) {
    json["learning_rates"] = Json::array();
    for (const std::int64_t update : told_updates(*setup.optimizer().schedule, setup.timetable.steps)) {
      Json rates = Json::array();
      for (const setup::Member& member : setup.members) {
        rates.push_back(step::learning_rate_at(member.optimizer, update));
      }
      const bool alone = !setup.spec().ensemble;
      json["learning_rates"].push_back({{"step", update}, {"learning_rate", alone ? rates.front() : rates}});
    }
  }
  json["layers"] = Json::array();
  for (const model::Node* layer : setup.model.nodes()) {
    json["layers"].push_back({{"name", layer->name},
                              {"kind", layer->kind},
                              {"output_shape", layer->output},
                              {"parameters", parameters_of(*layer)}});
    if (is_mixed(setup.spec())) json["layers"].back()["dtype"] = to_string(layer->compute);
    if (const std::string divided = division_text(*layer); !divided.empty())
      json["layers"].back()["division"] = divided;
  }
  json["warnings"] = report.warnings;
  json["notes"] = notes_of(setup.loaded, setup.source);
  if (with_config) json["config"] = setup.loaded.resolved;
  return to_text(json);
}

}  // namespace pmaptrain::report
