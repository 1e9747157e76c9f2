#include "core/train/start.h"

#include "core/base/philox.h"
#include "core/data/loader.h"
#include "core/train/evaluator.h"
#include "core/train/initialize.h"
#include "core/train/optimizer.h"

namespace pmaptrain::train {
namespace {

void set_hyper(CpuExecutor& executor, const Setup& setup, const Input& input) {
  if (input.name == "learning_rate") {
    const double rate = scaled_learning_rate(setup.spec().optimizer, setup.batch.global);
    dispatch_floating(setup.training->type(input.value).dtype, [&]<class T>() {
      const T value = static_cast<T>(rate);
      executor.set(input.name, std::as_bytes(std::span(&value, 1)));
    });
  } else {  // "dropout/<layer>", which is the stream's name too
    const PhiloxKey key = stream_key(setup.spec().seed, input.name);
    executor.set(input.name, std::as_bytes(std::span(key)));
  }
}

}  // namespace

void set_initial_values(CpuExecutor& executor, const Setup& setup) {
  const Program& program = *setup.training;
  const InitialValues values(setup.model, setup.spec().model, setup.spec().seed);
  for (const model::Parameter& parameter : setup.model.parameters) executor.set(parameter.name, values.of(parameter));
  for (const Input& input : program.inputs) {
    if (input.group == Group::state) executor.set(input.name, initial_state(program, input));
    if (input.group == Group::hyper) set_hyper(executor, setup, input);
  }
}

void feed_first_batch(CpuExecutor& executor, const Setup& setup) {
  data::Loader loader(setup.source.train, data::Sampler::in_order(setup.batch.dataset), setup.batch, {0, 1, 2});
  feed(executor, loader.next());
}

}  // namespace pmaptrain::train
