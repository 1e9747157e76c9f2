// The rows of `train`.
#include "core/spec/rows/row.h"
#include "core/spec/types/duration.h"

// Rows are found beside their structs.
namespace pmaptrain::optimizers {

using namespace spec;

static auto row(Tag<Ema>) {
  return keys_of<Ema>(
      option(&Ema::decay, {.path = "decay",
                           .high = 1,
                           .open_high = true,
                           .varies = true,
                           .fixed = "the average is corrected for its start by one decay of all updates",
                           .meaning = "The decay rate of the average.",
                           .example = "decay: 0.999"}),
      option(&Ema::debias, {.path = "debias",
                            .meaning = "Whether the average is divided by 1 - decay^updates, because it begins at "
                                       "zero.",
                            .example = "debias: true"}));
}

}  // namespace pmaptrain::optimizers

namespace pmaptrain::spec {

static constexpr std::array<Word<OnNonfinite>, 2> words_of(Tag<OnNonfinite>) {
  return {{{"halt", OnNonfinite::halt}, {"skip", OnNonfinite::skip}}};
}
static constexpr std::array<Word<SpikeAction>, 2> words_of(Tag<SpikeAction>) {
  return {{{"warn", SpikeAction::warn}, {"halt", SpikeAction::halt}}};
}

static auto row(Tag<BestSpec>) {
  return keys_of<BestSpec>(option(&BestSpec::metric, metric_key("metric: accuracy")),
                           option(&BestSpec::mode, mode_key("mode: max")));
}

static auto row(Tag<CheckpointSpec>) {
  return keys_of<CheckpointSpec>(
      option(&CheckpointSpec::every,
             {.path = "every",
              .fallback = "10 minutes",
              .time = true,
              .meaning = "The interval of checkpoints, of steps or of time; a run also ends with one. A background "
                         "thread writes the file while training continues.",
              .example = "every: 1 epoch\nevery: 10 minutes"}),
      option(&CheckpointSpec::keep,
             {.path = "keep",
              .low = 1,
              .meaning = "The number of newest checkpoints that are kept. The best one is kept beside them.",
              .example = "keep: 3"}),
      section(&CheckpointSpec::best,
              {.path = "best",
               .meaning =
                   "Keeps the checkpoint with the best evaluation as checkpoints/best. The validation split "
                   "decides, or the test split where there is none. Of equal values, that with the lower loss is the "
                   "best.",
               .example = "best: {metric: accuracy, mode: max}",
               .fallback_text = "none"}));
}

static auto row(Tag<EarlyStoppingSpec>) {
  return keys_of<EarlyStoppingSpec>(
      option(&EarlyStoppingSpec::metric, metric_key("metric: loss")),
      option(&EarlyStoppingSpec::mode, mode_key("mode: min")),
      option(&EarlyStoppingSpec::patience,
             {.path = "patience",
              .low = 1,
              .meaning = "The number of evaluations without an improvement after which training stops.",
              .example = "patience: 5"}),
      option(&EarlyStoppingSpec::min_delta, {.path = "min_delta",
                                             .high = unbounded,
                                             .meaning = "The smallest change that counts as an improvement.",
                                             .example = "min_delta: 0.001"}));
}

static auto row(Tag<LossSpikeSpec>) {
  return keys_of<LossSpikeSpec>(
      option(&LossSpikeSpec::factor, {.path = "factor",
                                      .low = 1,
                                      .high = unbounded,
                                      .open_low = true,
                                      .meaning = "How many times the median loss a spike is.",
                                      .example = "factor: 3.0"}),
      option(&LossSpikeSpec::window, {.path = "window",
                                      .fallback = "100 steps",
                                      .meaning = "The steps whose mean losses, one at each log line, give the median.",
                                      .example = "window: 100 steps"}),
      option(&LossSpikeSpec::action, {.path = "action",
                                      .meaning = "warn: print a warning; halt: stop with a checkpoint, exit status 5.",
                                      .example = "action: halt"}));
}

static auto row(Tag<TrainSpec>) {
  return keys_of<TrainSpec>(
      option(&TrainSpec::duration, {.path = "duration",
                                    .need = Need::required,
                                    .meaning = "The duration of the training.",
                                    .example = "duration: 10 epochs"}),
      option(&TrainSpec::log_every,
             {.path = "log_every",
              .fallback = "100 steps",
              .meaning =
                  "The interval at which loss and metrics are logged; the first and the last step are always logged. "
                  "never: nothing between these two.",
              .example = "log_every: 100 steps"}),
      option(&TrainSpec::eval_every, {.path = "eval_every",
                                      .fallback = "1 epoch",
                                      .meaning = "The interval at which the validation split, or without one the "
                                                 "test split, is evaluated; both are evaluated after the last step. "
                                                 "never: no evaluation at all.",
                                      .example = "eval_every: 1 epoch"}),
      option(&TrainSpec::verify_replicas, {.path = "verify_replicas",
                                           .fallback = "never",
                                           .meaning = "The interval at which every device's own copy of the parameters "
                                                      "is compared with the others; never: devices share one copy.",
                                           .example = "verify_replicas: 100 steps"}),
      section(&TrainSpec::checkpoint, {.path = "checkpoint",
                                       .fallback = "{}",
                                       .meaning = "When checkpoints are written, and which are kept.",
                                       .example = "checkpoint: {every: 10 minutes, keep: 3}"}),
      section(&TrainSpec::early_stopping,
              {.path = "early_stopping",
               .meaning = "Stops the training when the evaluation no longer improves. The validation split decides, or "
                          "the test split where there is none.",
               .example = "early_stopping: {metric: loss, patience: 5}",
               .fallback_text = "none"}),
      section(&TrainSpec::ema,
              {.path = "ema",
               .meaning = "Keeps an exponential moving average of the parameters (optax.ema). Evaluations and the best "
                          "checkpoint use it; training continues from the parameters themselves.",
               .example = "ema: {decay: 0.999}",
               .fallback_text = "none"}),
      option(&TrainSpec::on_nonfinite,
             {.path = "on_nonfinite",
              .meaning = "The action on a NaN or infinity in the loss, the gradients or the updated parameters. halt: "
                         "stop and keep the parameters from before the step; skip: omit the update and continue.",
              .example = "on_nonfinite: skip"}),
      section(&TrainSpec::loss_spike,
              {.path = "loss_spike",
               .meaning = "Compares the mean loss since the last log line with a multiple of the median of such means.",
               .example = "loss_spike: {factor: 3.0, window: 100 steps, action: warn}",
               .fallback_text = "none"}),
      option(
          &TrainSpec::tensorboard,
          {.path = "tensorboard",
           .meaning = "Whether what is logged and evaluated is also written for TensorBoard, into tensorboard/ in the "
                      "run folder.",
           .example = "tensorboard: false"}),
      option(
          &TrainSpec::max_time,
          {.path = "max_time",
           .steps = false,
           .time = true,
           .meaning = "The time, from the start of the process, after which the run stops with a checkpoint and exit "
                      "status 0.",
           .example = "max_time: 30 minutes",
           .fallback_text = "no limit"}));
}

template struct Section<TrainSpec>;
template struct Section<CheckpointSpec>;
template struct Section<BestSpec>;
template struct Section<EarlyStoppingSpec>;
template struct Section<optimizers::Ema>;
template struct Section<LossSpikeSpec>;

}  // namespace pmaptrain::spec
