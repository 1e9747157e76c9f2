// Checks of divisibility: of the batch by the devices, of their rows by the microbatches, of durations by the batch.
#include "core/spec/division.h"

#include <algorithm>
#include <limits>

#include "core/base/text.h"
#include "core/data/arrays/values.h"
#include "core/mesh/member_share.h"
#include "core/spec/bind/bind.h"
#include "core/spec/keys/check.h"
#include "core/spec/yaml/find.h"
#include "core/spec/yaml/report.h"
#include "core/spec/yaml/scalar.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;
using std::to_string;

const Node* path_of(const Node& config, std::string_view group, std::string_view key) {
  const Node* map = config.is(Kind::map) ? config.find(group) : nullptr;
  const Node* found = map != nullptr && map->is(Kind::map) ? map->find(key) : nullptr;
  return found != nullptr && found->valid() ? found : nullptr;
}

// "axis 'devices' (8 devices)", "axes 'a' and 'b' (2 × 4 = 8 devices)"
std::string axes_text(const Mesh& mesh) {
  std::vector<std::string> names;
  std::vector<std::string> sizes;
  for (const Axis& axis : mesh.axes()) {
    names.push_back("'" + axis.name + "'");
    sizes.push_back(to_string(axis.size));
  }
  if (names.size() == 1) return "axis " + names[0] + " (" + counted(mesh.devices(), "device") + ")";
  const std::string last = names.back();
  names.pop_back();
  return "axes " + join(names, ", ") + " and " + last + " (" + join(sizes, " × ") + " = " + to_string(mesh.devices()) +
         " devices)";
}

// Suggests the multiples of `unit` next to `value`, up to `most`; if the upper one is too large, also remainder: mask.
std::string nearest_multiples(const std::string& key, std::int64_t value, std::int64_t unit,
                              std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
  const std::int64_t below = value / unit * unit, above = below + unit;
  if (above > most) return (below == 0 ? "" : key + to_string(below) + " would divide; ") + std::string(mask_help);
  return key + (below == 0 ? "" : to_string(below) + " or ") + to_string(above) + " would divide";
}

// Whether every axis that the config names is one of the mesh. Otherwise it is not known over which ones the batch is
// split.
bool axes_are_known(const Spec& spec, const Node& config) {
  if (config.find("ensemble") != nullptr && !ensemble_axis(config, spec.mesh.mesh)) return false;
  const Node* const data = path_of(config, "data", "axes");
  return data != nullptr && std::all_of(data->items.begin(), data->items.end(),
                                        [&](const Node& axis) { return spec.mesh.mesh.find(axis.text).has_value(); });
}

void check_examples(const Interval& interval, const Node* node, std::int64_t batch, const Reporter& reporter,
                    const std::string& name) {
  if (!interval || node == nullptr || interval->unit != Unit::examples || interval->count % batch == 0) return;
  reporter.report(*node,
                  name + " '" + node->text + "' is not a whole number of batches: " + division(interval->count, batch),
                  nearest_multiples("", interval->count, batch) + ", or count steps or epochs");
}

// The divisors of `number` up to `most`, in ascending order.
std::vector<std::int64_t> divisors(std::int64_t number, std::int64_t most) {
  std::vector<std::int64_t> found;
  for (std::int64_t i = 1; i <= std::min(number, most); ++i) {
    if (number % i == 0) found.push_back(i);
  }
  return found;
}

// The most sums of blocks that one launch adds up (gpu::Device::most_nodes).
constexpr int most_blocks_of_gpus = 64;

// Whether the blocks are those into which GPUs divide a mesh if their number changes no bit.
bool are_blocks_of_gpus(const MeshSpec& mesh) {
  return mesh.deterministic && (mesh.backend == Backend::cuda || mesh.backend == Backend::automatic);
}

// The number of blocks that `auto` stands for.
std::int64_t automatic_blocks(const MeshSpec& mesh, std::int64_t devices) {
  constexpr std::int64_t most = 8;
  return are_blocks_of_gpus(mesh) ? divisors(devices, most).back() : 1;
}

}  // namespace

std::vector<std::string> option_notes(std::span<const Node> axes) {
  std::vector<std::string> notes;
  for (const Node& axis : axes) {
    const Node& size = axis.items.front();
    if (!size.source || !size.source->option) continue;
    const std::string& argument = size.source->lines.front();
    const bool names_itself = argument.starts_with("--");
    notes.push_back("'" + axis.keys.front().text + "' is " + size.text + " because of " +
                    (names_itself ? "" : size.source->file + " ") + argument);
  }
  return notes;
}

std::string division(std::int64_t value, std::int64_t by) {
  return to_string(value) + " = " + to_string(by) + " × " + to_string(value / by) + " + " + to_string(value % by);
}

void check_division(const Spec& spec, const Node& config, std::vector<Diagnostic>& errors) {
  const Reporter reporter(errors);
  const Node* axes = path_of(config, "mesh", "axes");
  const Node* micro = path_of(config, "data", "microbatches");
  const Node* whole = path_of(config, "data", "batch_size");
  const Node* per_device = path_of(config, "data", "batch_size_per_device");
  if (axes == nullptr || (whole == nullptr && per_device == nullptr) || !axes_are_known(spec, config)) return;
  if (std::holds_alternative<BatchAll>(spec.data.batch_size)) return;

  const Mesh mesh = data_mesh(spec.mesh);
  const std::int64_t devices = mesh.devices();
  const std::int64_t microbatches = micro != nullptr ? spec.data.microbatches : 1;
  const bool mask = spec.data.remainder == Remainder::mask;
  const auto* batch_size = std::get_if<std::int64_t>(&spec.data.batch_size);
  const auto* each = std::get_if<BatchPerDevice>(&spec.data.batch_size);
  if (each == nullptr && batch_size == nullptr) return;
  // The number of examples is known here only for a source of values.
  const auto* values = spec.data.source.as<data::Values>();
  const std::int64_t most =
      values != nullptr ? static_cast<std::int64_t>(values->inputs.size()) : std::numeric_limits<std::int64_t>::max();
  const std::int64_t batch = each != nullptr ? each->examples * devices : *batch_size;

  // With remainder: mask, the rows of each device are padded to a size that divides.
  if (!mask && batch % devices != 0) {
    std::string help = nearest_multiples("", batch, devices * microbatches, most);
    std::vector<std::string> notes = option_notes(axes->items);
    if (microbatches > 1)
      notes.push_back("the rows of each device are split into " + to_string(microbatches) + " microbatches");
    reporter.report(
        *whole,
        "batch_size " + to_string(batch) + " does not divide over " + axes_text(mesh) + ": " + division(batch, devices),
        std::move(help), std::move(notes));
  } else if (const std::int64_t rows = batch / devices; !mask && micro != nullptr && rows % microbatches != 0) {
    const std::string help = each != nullptr
                                 ? nearest_multiples("batch_size_per_device ", rows, microbatches, most / devices)
                                 : nearest_multiples("batch_size ", batch, devices * microbatches, most);
    reporter.report(*micro,
                    "microbatches " + to_string(microbatches) + " does not divide the " + to_string(rows) +
                        " examples of each device: " + division(rows, microbatches),
                    help, option_notes(axes->items));
  }
  const TrainSpec& train = spec.train;
  check_examples(train.duration, path_of(config, "train", "duration"), batch, reporter, "duration");
  check_examples(train.log_every, path_of(config, "train", "log_every"), batch, reporter, "log_every");
  check_examples(train.eval_every, path_of(config, "train", "eval_every"), batch, reporter, "eval_every");
  check_examples(train.verify_replicas, path_of(config, "train", "verify_replicas"), batch, reporter,
                 "verify_replicas");
  check_examples(train.checkpoint.every, get_path(&config, "train.checkpoint.every"), batch, reporter, "every");
  if (train.loss_spike) {
    check_examples(train.loss_spike->window, get_path(&config, "train.loss_spike.window"), batch, reporter, "window");
  }
}

void bind_blocks(Node& config, int processes, std::vector<Diagnostic>& errors, Spec& spec) {
  Node* const mesh_node = config.is(Kind::map) ? config.find("mesh") : nullptr;
  Node* const blocks = mesh_node != nullptr && mesh_node->is(Kind::map) ? mesh_node->find("blocks") : nullptr;
  const Node* const axes = path_of(config, "mesh", "axes");
  if (blocks == nullptr || !blocks->valid() || axes == nullptr || !axes_are_known(spec, config)) return;
  const Mesh mesh = member_mesh(spec);
  const std::int64_t devices = mesh.devices();
  // The bits of GPUs do not depend on the number of processes that have them, and these have all members.
  const bool are_on_gpus = spec.mesh.backend == Backend::cuda && spec.mesh.deterministic;
  const MemberShare share(spec.mesh.mesh.devices() / devices, {0, processes}, spec.mesh.backend != Backend::cuda);
  const int of_member = share.within_group().processes;
  const std::int64_t automatic = processes > 1 && !are_on_gpus ? of_member : automatic_blocks(spec.mesh, devices);
  const bool is_automatic = !spec.mesh.blocks;
  if (is_automatic) {
    // A number that does not divide is refused below, and is not to be refused for the config of a member again.
    const std::int64_t taken = devices % automatic == 0 ? automatic : 1;
    spec.mesh.blocks = static_cast<int>(taken);
    spec.mesh.blocks_are_automatic = true;
    blocks->text = to_string(taken);
    blocks->parsed = taken;
  }
  const Reporter reporter(errors);
  const auto report = [&](std::string message, const std::vector<std::int64_t>& numbers, const std::string& else_help) {
    const std::string all = listed(numbers, "or");
    reporter.report(*blocks, std::move(message), all.empty() ? else_help : all + " would do" + else_help,
                    option_notes(axes->items));
  };
  constexpr std::int64_t most_listed = 64;
  std::vector<std::int64_t> possible = divisors(devices, most_listed);
  std::erase_if(possible, [&](std::int64_t number) { return number < of_member; });
  const std::string who = (share.is_whole() ? "" : "the ") + to_string(of_member) + " processes" +
                          (share.is_whole() ? "" : " of each member");
  if (is_automatic && !are_on_gpus && devices % of_member != 0) {
    report(who + " do not divide " + axes_text(mesh) + ": " + division(devices, of_member), possible,
           possible.empty() ? "start fewer processes" : " as mesh.blocks, or another number of processes");
  } else if (devices % *spec.mesh.blocks != 0) {
    report(
        "blocks " + blocks->text + " does not divide " + axes_text(mesh) + ": " + division(devices, *spec.mesh.blocks),
        possible, "");
  } else if (of_member > *spec.mesh.blocks) {
    report(who + " need a block each, and there " +
               (*spec.mesh.blocks == 1 ? "is one block" : "are " + blocks->text + " blocks"),
           possible, possible.empty() ? "start fewer processes" : "");
  } else if (spec.mesh.backend == Backend::cuda && *spec.mesh.blocks % processes != 0) {
    std::erase_if(possible, [&](std::int64_t number) { return number % processes != 0; });
    report(counted(*spec.mesh.blocks, "block") + " cannot be divided evenly over " + to_string(processes) +
               " processes with GPUs",
           possible, possible.empty() ? "start another number of processes" : " as mesh.blocks");
  } else if (are_on_gpus && *spec.mesh.blocks > most_blocks_of_gpus) {
    reporter.report(
        *blocks,
        "with deterministic, GPUs add up at most " + to_string(most_blocks_of_gpus) + " blocks, not " + blocks->text,
        "fewer blocks, or remove the key");
  }
}

}  // namespace pmaptrain::spec
