// The rows of a whole config, of `mesh` and of `train`.
#include "core/spec/row.h"

namespace pmaptrain::spec {

static constexpr std::array<Word<Backend>, 3> words_of(Tag<Backend>) {
  return {{{"cpu", Backend::cpu}, {"auto", Backend::automatic}, {"reference", Backend::reference}}};
}

static auto row(Tag<MeshSpec>) {
  return keys_of<MeshSpec>(
      option(
          &MeshSpec::mesh,
          {.path = "axes",
           .fallback = "{devices: 1}",
           .meaning =
               "Named axes, outermost first; the product of their sizes is the number of logical devices. One axis is "
               "a map, several are a list. --devices N sets the size of a single axis.",
           .example = "axes: {devices: 8}\naxes: [{model_replicas: 2}, {data_shards: 4}]"}),
      option(&MeshSpec::backend, {.path = "backend",
                                  .absent = {"cuda"},
                                  .meaning = "What computes: auto takes the best hardware there is; reference is an "
                                             "interpreter with one worker, slow, for checking results.",
                                  .example = "backend: cpu"}),
      option(&MeshSpec::workers,
             {.path = "workers",
              .fallback = "auto",
              .low = 1,
              .high = 65536,
              .words = {"auto"},
              .meaning =
                  "How many threads carry the logical devices; auto takes what affinity and cgroups allow. The results "
                  "do not depend on it.",
              .example = "workers: 4"}));
}

static constexpr std::array<Word<OnNonfinite>, 2> words_of(Tag<OnNonfinite>) {
  return {{{"halt", OnNonfinite::halt}, {"skip", OnNonfinite::skip}}};
}

static auto row(Tag<TrainSpec>) {
  return keys_of<TrainSpec>(
      option(&TrainSpec::duration, {.path = "duration",
                                    .need = Need::required,
                                    .meaning = "How long to train.",
                                    .example = "duration: 10 epochs"}),
      option(&TrainSpec::log_every,
             {.path = "log_every",
              .fallback = "100 steps",
              .meaning = "How often loss and metrics are reported; the first and the last step always are.",
              .example = "log_every: 100 steps"}),
      option(
          &TrainSpec::eval_every,
          {.path = "eval_every",
           .fallback = "1 epoch",
           .meaning =
               "How often the examples kept for evaluation are evaluated, and after the last step. never: not at all.",
           .example = "eval_every: 1 epoch"}),
      option(&TrainSpec::verify_replicas,
             {.path = "verify_replicas",
              .fallback = "never",
              .meaning = "How often every device's private copy of the parameters is compared.",
              .example = "verify_replicas: 100 steps"}),
      option(&TrainSpec::on_nonfinite, {.path = "on_nonfinite",
                                        .meaning = "On a NaN or an infinity in the loss, the gradients or what they "
                                                   "make of the parameters: stop with the last "
                                                   "good parameters, or leave the step out and go on.",
                                        .example = "on_nonfinite: skip"}));
}

static auto row(Tag<Spec>) {
  return keys_of<Spec>(
      option(&Spec::name, {.path = "name",
                           .type = Type::run_name,
                           .meaning = "What the run is called; its folder is runs/<name>.",
                           .example = "name: cnn",
                           .fallback_text = "the file's name"}),
      option(
          &Spec::seed,
          {.path = "seed",
           .meaning = "Everything random (initial values, order of examples, dropout, synthetic data) follows from it.",
           .example = "seed: 7"}),
      by_hand<Spec>({.path = "precision",
                     .type = Type::word,
                     .fallback = "float32",
                     .words = {"float32"},
                     .absent = {"mixed_bfloat16"},
                     .meaning = "The element type of parameters, activations and gradients.",
                     .example = "precision: float32"}),
      section(&Spec::mesh, {.path = "mesh",
                            .fallback = "{}",
                            .meaning = "The logical devices, and what carries them.",
                            .example = "mesh:\n  axes: {devices: 8}"}),
      section(&Spec::data, {.path = "data",
                            .need = Need::required,
                            .meaning = "The examples and how they are batched.",
                            .example = "data:\n  source: fashion_mnist\n  batch_size: 128"}),
      section(&Spec::model, {.path = "model",
                             .need = Need::required,
                             .meaning = "What is trained.",
                             .example = "model:\n  layers:\n    - flatten\n    - dense: 10"}),
      choice(&Spec::loss, {.path = "loss",
                           .need = Need::required,
                           .meaning = "What is minimised.",
                           .example = "loss: softmax_cross_entropy"}),
      choices(&Spec::metrics,
              {.path = "metrics",
               .fallback = "[]",
               .meaning =
                   "What is shown beside the loss. Over several batches each is computed from sums over all examples.",
               .example = "metrics: [accuracy, top_k_accuracy: 5]",
               .item = "metric"}),
      section(&Spec::optimizer,
              {.path = "optimizer",
               .type = Type::choice,
               .need = Need::required,
               .meaning = "How parameters follow from gradients: one of the rules, and the learning rate beside it.",
               .example = "optimizer:\n  adam: {}\n  learning_rate: 0.001"}),
      section(&Spec::train, {.path = "train",
                             .need = Need::required,
                             .meaning = "How long, and what is reported when.",
                             .example = "train:\n  duration: 10 epochs"}));
}

template struct Section<Spec>;
template struct Section<MeshSpec>;
template struct Section<TrainSpec>;

}  // namespace pmaptrain::spec
