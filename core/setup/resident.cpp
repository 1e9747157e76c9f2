#include "core/setup/resident.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/saturate.h"
#include "core/base/text.h"
#include "core/data/parallel.h"
#include "core/input/batches/row_numbers.h"
#include "core/passes/gather_batch.h"
#include "core/setup/plan.h"

namespace pmaptrain::setup {
namespace {

constexpr std::size_t part_bytes = std::size_t{16} << 20;   // read and written at a time
constexpr std::size_t block_bytes = std::size_t{16} << 10;  // read by one thread

std::size_t bytes_of_example(const data::Dataset& dataset) {
  return sum_of(dataset.input().bytes(), dataset.target().bytes());
}
std::size_t bytes_of(const data::Dataset& dataset) {
  return product_of(static_cast<std::size_t>(dataset.size()), bytes_of_example(dataset));
}

// The bytes that data may use on each device; none if devices have no memory of their own. An eighth of the memory is
// left for memory that no plan counts: workspaces of libraries, and memory of the driver.
std::optional<std::size_t> free_for_data(const Setup& setup) {
  if (!backend_of(setup.spec().mesh)->device_memory()) return std::nullopt;  // nothing is planned to learn this
  const PlannedSource run = plan_run(setup);
  const std::optional<std::size_t> memory = run.backend->device_memory();
  if (!memory) return std::nullopt;  // auto has taken the CPU
  const MemoryNeeds& needs = run.planned->needs();
  const std::size_t planned = needs.total() / static_cast<std::size_t>(std::max(1, needs.gpus));
  const std::size_t most = *memory - *memory / 8;
  return planned < most ? most - planned : 0;
}

// The reason why the batches of a split must be copied for each step even if the split fits; empty if there is none.
std::string changes_by_epoch(const spec::DataSpec& data, const data::Dataset& train) {
  if (!data.augment.empty()) return "augmentation is computed on the host";
  if (train.offsets() > 1) return "each epoch has windows of its own";
  if (data.bucket_by_length) return "steps have sequences of different lengths";
  return "";
}

class SplitPlacement {
 public:
  SplitPlacement(Setup setup, std::size_t free) : setup_(std::move(setup)), free_(free) {}

  Setup place() && {
    const std::string obstacle = changes_by_epoch(setup_.member_spec().data, *setup_.source.train);
    if (keeps("train", *setup_.source.train, obstacle)) {
      setup_.row_numbers = keep("train", setup_.source.train, setup_.training);
    }
    for (EvaluationPlan& plan : setup_.evaluations) {
      if (keeps(plan.split, *plan.dataset, "")) plan.dataset = keep(plan.split, plan.dataset, plan.program);
    }
    std::string note;
    if (!kept_.empty()) note = join(kept_, " and ") + (kept_.size() == 1 ? " stays" : " stay") + " on each GPU";
    for (const std::string& copied : copied_) note += (note.empty() ? "" : "; ") + copied;
    setup_.loaded.facts.push_back("data: " + note);
    return std::move(setup_);
  }

 private:
  bool keeps(const std::string& split, const data::Dataset& dataset, std::string obstacle) {
    const std::size_t bytes = bytes_of(dataset);
    if (obstacle.empty() && dataset.size() > std::numeric_limits<std::int32_t>::max()) {
      obstacle = "there are too many examples for row numbers of 31 bits";
    }
    if (obstacle.empty() && bytes > free_) {
      obstacle =
          "of the " + human_bytes(bytes) + " no more than " + human_bytes(free_) + " fit beside the plan on each GPU";
    }
    if (!obstacle.empty()) {
      copied_.push_back("batches of " + split + " are copied: " + obstacle);
      return false;
    }
    free_ -= bytes;
    kept_.push_back(human_bytes(bytes) + " of " + split);
    return true;
  }

  // Returns the data set from which batches are filled.
  std::shared_ptr<const data::Dataset> keep(const std::string& split, std::shared_ptr<const data::Dataset> dataset,
                                            std::shared_ptr<const Program>& program) {
    constexpr std::string_view names[] = {"inputs", "targets"};
    const std::string prefix = "data/" + split;
    program = std::make_shared<const Program>(gather_batch(*program, names, prefix, dataset->size()));
    setup_.resident_splits.push_back({split, prefix + "/inputs", prefix + "/targets", dataset});
    return input::row_numbers_of(std::move(dataset));
  }

  Setup setup_;
  std::size_t free_;
  std::vector<std::string> kept_, copied_;  // notes about each split
};

// Reads `rows` examples from `first` on, with several threads.
void read(const data::Dataset& dataset, std::int64_t first, std::int64_t rows, std::vector<std::byte>& inputs,
          std::vector<std::byte>& targets) {
  const std::size_t input = dataset.input().bytes(), target = dataset.target().bytes();
  inputs.resize(static_cast<std::size_t>(rows) * input);
  targets.resize(static_cast<std::size_t>(rows) * target);
  const auto block = static_cast<std::int64_t>(std::max<std::size_t>(1, block_bytes / (input + target)));
  data::for_each_item((rows + block - 1) / block, [&](std::int64_t i) {
    for (std::int64_t row = i * block; row < std::min(rows, (i + 1) * block); ++row) {
      const auto at = static_cast<std::size_t>(row);
      dataset.read(first + row, inputs.data() + at * input, targets.data() + at * target);
    }
  });
  dataset.check_intact();
}

void load(Module& module, const ResidentSplit& split, const std::function<void(const run::Working&)>& tell) {
  const data::Dataset& dataset = *split.dataset;
  const DeviceOfMember everywhere(every_device, every_member);
  const Handle to_inputs = module.input(split.inputs), to_targets = module.input(split.targets);
  const auto rows = static_cast<std::int64_t>(std::max<std::size_t>(1, part_bytes / bytes_of_example(dataset)));
  std::vector<std::byte> inputs, targets;
  for (std::int64_t first = 0; first < dataset.size(); first += rows) {
    if (tell) tell({"loading the " + split.split + " examples", first, dataset.size()});
    read(dataset, first, std::min(rows, dataset.size() - first), inputs, targets);
    const auto before = static_cast<std::size_t>(first);
    module.write(to_inputs, everywhere, inputs, before * dataset.input().bytes());
    module.wait(module.write(to_targets, everywhere, targets, before * dataset.target().bytes()));
  }
}

bool gathers(const Module& module, const std::string& input) {
  const std::vector<Entry>& entries = module.source().entries;
  return std::any_of(entries.begin(), entries.end(),
                     [&](const Entry& entry) { return entry.program->find_input(input) != nullptr; });
}

}  // namespace

Setup with_data_on_devices(Setup setup) {
  const std::optional<std::size_t> free = free_for_data(setup);
  return free ? SplitPlacement(std::move(setup), *free).place() : std::move(setup);
}

std::size_t loading_bytes(std::span<const ResidentSplit> splits) {
  std::size_t most = 0;
  for (const ResidentSplit& split : splits) {
    const std::size_t example = bytes_of_example(*split.dataset);
    const std::size_t all = product_of(static_cast<std::size_t>(split.dataset->size()), example);
    most = std::max(most, std::min(all, std::max(part_bytes, example)));
  }
  return most;
}

void copy_resident_splits(Module& module, const Setup& setup, const std::function<void(const run::Working&)>& tell) {
  for (const ResidentSplit& split : setup.resident_splits) {
    if (gathers(module, split.inputs)) load(module, split, tell);
  }
}

}  // namespace pmaptrain::setup
