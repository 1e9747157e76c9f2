#include "core/evaluate/member_outputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "core/ops/all.h"
#include "core/setup/base.h"
#include "core/setup/memory.h"
#include "core/setup/programs.h"
#include "core/setup/restore.h"
#include "core/setup/start.h"

namespace pmaptrain::evaluate {
namespace {

template <class T>
T number_in(std::span<const std::byte> rows, std::size_t index) {
  T value;
  std::memcpy(&value, rows.data() + index * sizeof value, sizeof value);
  return value;
}

}  // namespace

double MemberOutputs::number(std::int64_t member, std::size_t index) const {
  return dtype_ == DType::f64 ? number_in<double>(rows(member), index)
                              : static_cast<double>(number_in<float>(rows(member), index));
}

MemberOutputs::MemberOutputs(const spec::Spec& spec, const model::Model& model, model::PredictionKind kind,
                             std::shared_ptr<const data::Dataset> inputs, const BatchPlan& batch,
                             std::span<const std::int64_t> members, const run::CheckpointWeights& trained,
                             SharedBatches shared, std::optional<std::int64_t> choices)
    : MemberOutputs(spec, model,
                    model::prediction_program(model, spec.mesh.mesh, spec.mesh.roles.data, batch.rows_per_device,
                                              all_ops(), kind, choices),
                    std::move(inputs), batch, members, trained, shared) {}

MemberOutputs::MemberOutputs(const spec::Spec& spec, const model::Model& model, Program outputs,
                             std::shared_ptr<const data::Dataset> inputs, const BatchPlan& batch,
                             std::span<const std::int64_t> members, const run::CheckpointWeights& trained,
                             SharedBatches shared)
    : inputs_(std::move(inputs)), batch_(batch), members_(std::ssize(members)), shared_(shared) {
  const auto program = std::make_shared<const Program>(setup::optimize(std::move(outputs)));
  Source source{{{"predict", program, input::batches_in_memory(data::Sampler::in_order(batch_.dataset), batch_)}}};
  source.members = members_;
  const std::unique_ptr<Planned> planned =
      setup::plan_source(spec.mesh, std::move(source), KernelChoice::best, shared_.processes()).planned;
  setup::check_memory(setup::estimate_evaluation(planned->needs()), batch_,
                      members_ > 1 ? "--member N takes one member alone" : "");
  shared_.meet();
  module_ = std::move(*planned).load();
  const auto opened = setup::open_base(model, spec, shared_.first_process());
  setup::write_base(*module_, model, spec, trained.state.base, {}, opened.get());
  for (std::int64_t m = 0; m < members_; ++m) {
    setup::write_group(*module_, m, 0, Group::params,
                       trained.parameters.of_member(members[static_cast<std::size_t>(m)]), trained.parameters.path);
  }
  dtype_ = program->type(program->outputs.front().value).dtype;
  const std::size_t bytes = module_->slice_bytes(module_->output(0, "predictions"));
  targets_.resize(inputs_->target().bytes() * static_cast<std::size_t>(batch_.rows()));
  rows_.assign(members.size(), std::vector<std::byte>(bytes * static_cast<std::size_t>(batch_.devices)));
}

void MemberOutputs::restart() {
  batch_number_ = 0;
  if (inputs_->size() == 0) return;
  if (loader_) return loader_->restart(0, batches());
  std::vector<input::BatchBuffers> slots = setup::batch_slots(*module_, 0, *inputs_, batch_);
  for (input::BatchBuffers& slot : slots) {
    if (slot.targets == nullptr) slot.targets = targets_.data();
  }
  loader_.emplace(inputs_, data::Sampler::in_order(batch_.dataset), batch_, std::move(slots),
                  input::LoaderOptions{0, batches()});
}

std::int64_t MemberOutputs::next() {
  const Handle output = module_->output(0, "predictions");
  shared_.reads(batch_number_);
  const input::Batch batch = loader_->next();
  shared_.has_read(batch_number_);
  module_->submit(0, batch.slot);
  for (std::int64_t m = 0; m < members_; ++m) {
    module_->read_every_instance(output, m, rows_[static_cast<std::size_t>(m)]);
  }
  shared_.has_computed(batch_number_++);
  return batch.examples;
}

std::vector<double> mean_over_members(const MemberOutputs& outputs) {
  std::vector<double> means(outputs.numbers());
  for (std::int64_t m = 0; m < outputs.members(); ++m) {
    for (std::size_t i = 0; i < means.size(); ++i) means[i] += outputs.number(m, i);
  }
  for (double& mean : means) mean /= static_cast<double>(outputs.members());
  return means;
}

std::vector<double> deviation_over_members(const MemberOutputs& outputs) {
  std::vector<double> deviations = mean_over_members(outputs);
  for (std::size_t i = 0; i < deviations.size(); ++i) {
    double squares = 0;
    for (std::int64_t m = 0; m < outputs.members(); ++m) {
      const double distance = outputs.number(m, i) - deviations[i];
      squares += distance * distance;
    }
    deviations[i] = std::sqrt(squares / static_cast<double>(outputs.members()));
  }
  return deviations;
}

namespace {

// log(exp(a) + exp(b)), for numbers that may be -infinity.
double log_sum(double a, double b) {
  const double larger = std::max(a, b);
  return std::isinf(larger) ? larger : larger + std::log1p(std::exp(std::min(a, b) - larger));
}

// log(1 / (1 + exp(-x)))
double log_sigmoid(double x) { return -log_sum(0, -x); }

// Replaces the numbers of one label by the logarithms of their softmax.
void log_softmax(std::span<double> numbers) {
  const double largest = *std::max_element(numbers.begin(), numbers.end());
  double sum = 0;
  for (const double number : numbers) sum += std::exp(number - largest);
  for (double& number : numbers) number -= largest + std::log(sum);
}

constexpr double never = -std::numeric_limits<double>::infinity();

}  // namespace

EnsembleMean ensemble_mean(const MemberOutputs& outputs, model::OutputKind kind, std::int64_t classes) {
  if (kind == model::OutputKind::identity) {
    const std::vector<double> means = mean_over_members(outputs);
    const std::vector<float> rounded(means.begin(), means.end());
    return {rounded, rounded};
  }
  const std::size_t count = outputs.numbers();
  // `for_it` is the logarithm of the sum over members of the probability; `against`, for sigmoids, that of 1 -
  // probability.
  std::vector<double> for_it(count, never), against(count, never), of_member(count);
  for (std::int64_t m = 0; m < outputs.members(); ++m) {
    for (std::size_t i = 0; i < count; ++i) of_member[i] = outputs.number(m, i);
    if (kind != model::OutputKind::sigmoid_logits) {
      const auto size = static_cast<std::size_t>(classes);
      const bool divides = kind == model::OutputKind::softmax_logits;  // the others are logarithms of rates
      for (std::size_t at = 0; divides && at < count; at += size) log_softmax(std::span(of_member).subspan(at, size));
      for (std::size_t i = 0; i < count; ++i) for_it[i] = log_sum(for_it[i], of_member[i]);
      continue;
    }
    for (std::size_t i = 0; i < count; ++i) {
      for_it[i] = log_sum(for_it[i], log_sigmoid(of_member[i]));
      against[i] = log_sum(against[i], log_sigmoid(-of_member[i]));
    }
  }
  EnsembleMean found;
  const double all = std::log(static_cast<double>(outputs.members()));
  for (std::size_t i = 0; i < count; ++i) {
    found.probabilities.push_back(static_cast<float>(std::exp(for_it[i] - all)));
    const double output = outputs.members() == 1                      ? outputs.number(0, i)
                          : kind == model::OutputKind::sigmoid_logits ? for_it[i] - against[i]
                                                                      : for_it[i] - all;
    found.outputs.push_back(static_cast<float>(output));
  }
  return found;
}

}  // namespace pmaptrain::evaluate
