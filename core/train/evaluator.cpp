#include "core/train/evaluator.h"

#include <chrono>
#include <cstring>

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

double scalar(const Program& program, Value value, std::span<const std::byte> bytes) {
  return dispatch(program.type(value).dtype, [&]<class T>() {
    T number{};
    std::memcpy(&number, bytes.data(), sizeof number);
    return static_cast<double>(number);
  });
}

Evaluator::Evaluator(std::shared_ptr<const Program> program, std::shared_ptr<const data::Dataset> dataset,
                     const data::BatchPlan& batch, std::vector<std::string> measures, std::string split,
                     const CpuOptions& options)
    : dataset_(std::move(dataset)),
      batch_(batch),
      measures_(std::move(measures)),
      split_(std::move(split)),
      executor_(make_plan(std::move(program)), options) {}

Evaluation Evaluator::run(const Tensors& parameters, const std::string& file) {
  const auto begin = std::chrono::steady_clock::now();
  const Program& program = *executor_.plan().program;
  write_group(executor_, Group::params, parameters, file);
  data::Loader loader(dataset_, data::Sampler::in_order(batch_.dataset), batch_, {0, batch_.steps_per_epoch, 3});
  const auto output = [&](const std::string& name) {
    return scalar(program, program.find_output(name)->value, executor_.output(name));
  };
  std::vector<double> sums(measures_.size());
  double count = 0;
  for (std::int64_t step = 0; step < batch_.steps_per_epoch; ++step) {
    feed(executor_, loader.next());
    executor_.run();
    for (std::size_t i = 0; i < measures_.size(); ++i) sums[i] += output(measures_[i]);
    count += output("count");
  }
  Evaluation evaluation{split_, {}, static_cast<std::int64_t>(count), 0};
  for (std::size_t i = 0; i < measures_.size(); ++i) evaluation.measures.emplace_back(measures_[i], sums[i] / count);
  evaluation.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return evaluation;
}

}  // namespace pmaptrain::train
