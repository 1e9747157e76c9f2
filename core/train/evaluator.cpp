#include "core/train/evaluator.h"

#include <cstring>

#include "core/base/clock.h"
#include "core/train/checkpoint.h"

namespace pmaptrain::train {

void feed(CpuExecutor& executor, const data::Batch& batch) {
  const auto copy = [&](std::string_view name, std::span<const std::byte> from) {
    if (executor.plan().program->find_input(name) == nullptr) return;
    const std::span<std::byte> to = executor.stacked(name);
    if (to.size() != from.size()) {
      fail_running("a batch has " + std::to_string(from.size()) + " bytes of " + std::string(name) + "; the plan has " +
                   std::to_string(to.size()));
    }
    std::memcpy(to.data(), from.data(), from.size());
  };
  copy("inputs", batch.inputs);
  copy("targets", batch.targets);
  copy("mask", std::as_bytes(batch.mask));
  copy("rows", std::as_bytes(batch.rows));
}

std::vector<double> numbers(const Program& program, Value value, std::span<const std::byte> bytes) {
  return dispatch(program.type(value).dtype, [&]<class T>() {
    std::vector<double> elements(bytes.size() / sizeof(T));
    for (std::size_t i = 0; i < elements.size(); ++i) {
      T number{};
      std::memcpy(&number, bytes.data() + i * sizeof(T), sizeof number);
      elements[i] = static_cast<double>(number);
    }
    return elements;
  });
}

double scalar(const Program& program, Value value, std::span<const std::byte> bytes) {
  return numbers(program, value, bytes).front();
}

Evaluator::Evaluator(std::shared_ptr<const Program> program, std::shared_ptr<const data::Dataset> dataset,
                     const data::BatchPlan& batch, const model::Model& model, std::string split,
                     const CpuOptions& options)
    : dataset_(std::move(dataset)),
      batch_(batch),
      model_(&model),
      split_(std::move(split)),
      executor_(make_plan(std::move(program)), options) {}

std::optional<Evaluation> Evaluator::run(const Tensors& parameters, const std::string& file,
                                         const std::atomic<int>* stop) {
  const Clock::time_point begin = Clock::now();
  const Program& program = *executor_.plan().program;
  write_group(executor_, Group::params, parameters, file);
  data::Loader loader(dataset_, data::Sampler::in_order(batch_.dataset), batch_, {0, batch_.steps_per_epoch, 3});
  const auto output = [&](const std::string& name) {
    return numbers(program, program.find_output(name)->value, executor_.output(name));
  };
  const std::vector<model::MeasurePart> parts = model::measure_parts(*model_);
  std::vector<std::vector<double>> sums;
  sums.reserve(parts.size());
  for (const model::MeasurePart& part : parts) sums.emplace_back(static_cast<std::size_t>(numel(part.shape)));
  double count = 0;
  for (std::int64_t step = 0; step < batch_.steps_per_epoch; ++step) {
    if (stop != nullptr && *stop != 0) return std::nullopt;
    feed(executor_, loader.next());
    executor_.run();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::vector<double> found = output(parts[i].name);
      for (std::size_t j = 0; j < found.size(); ++j) sums[i][j] += found[j];
    }
    count += output("count").front();
  }
  for (std::vector<double>& part : sums) {
    for (double& sum : part) sum /= count;
  }
  Evaluation evaluation{split_, model::finish_measures(*model_, sums), static_cast<std::int64_t>(count), 0};
  evaluation.seconds = seconds_since(begin);
  return evaluation;
}

}  // namespace pmaptrain::train
