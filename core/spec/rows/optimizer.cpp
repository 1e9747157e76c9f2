// The rows of the optimizer but its rules (core/optimizers) and schedules (core/schedules).
#include "core/spec/rows/row.h"
#include "core/spec/types/duration.h"
#include "core/spec/yaml/find.h"

// Rows are found beside their structs.
namespace pmaptrain::optimizers {

using namespace spec;

constexpr Structural no_decay{0.0, "without weight decay nothing is added"};

static Option<Options> learning_rate() {
  return {Key{.path = "learning_rate",
              .type = spec::Type::choice,
              .need = Need::required,
              .high = unbounded,
              .or_number = true,
              .varies = true,
              .meaning = "The learning rate: a number, or a schedule of the number of updates done. Update k uses the "
                         "schedule's value at k - 1.",
              .example = "learning_rate: 0.001"},
          Section<schedules::LearningRate>::add_keys,
          [](const Node& node, Options& out) { Section<schedules::LearningRate>::store(node, out.learning_rate); }};
}

static auto row(Tag<ReduceOnPlateau>) {
  return keys_of<ReduceOnPlateau>(
      option(&ReduceOnPlateau::metric, metric_key("metric: loss")),
      option(&ReduceOnPlateau::mode, mode_key("mode: min")),
      option(&ReduceOnPlateau::factor, {.path = "factor",
                                        .high = 1,
                                        .open_low = true,
                                        .open_high = true,
                                        .varies = true,
                                        .meaning = "The factor by which the learning rate falls.",
                                        .example = "factor: 0.1"}),
      option(&ReduceOnPlateau::patience,
             {.path = "patience",
              .low = 1,
              .meaning = "The number of evaluations without an improvement after which the rate falls.",
              .example = "patience: 5"}),
      option(&ReduceOnPlateau::cooldown, {.path = "cooldown",
                                          .meaning = "The number of evaluations after a fall in which none is counted.",
                                          .example = "cooldown: 2"}),
      option(&ReduceOnPlateau::rtol,
             {.path = "rtol",
              .high = 1,
              .meaning = "An evaluation improves if it is better than the best one by more than rtol * |best| + atol. "
                         "With the defaults, what is better by less than 1e-4 of it does not count.",
              .example = "rtol: 1.0e-3"}),
      option(&ReduceOnPlateau::atol,
             {.path = "atol",
              .high = unbounded,
              .meaning = "The absolute part of that margin; as in Optax, at least one of both is more than 0.",
              .example = "atol: 1.0e-5"}));
}

static auto row(Tag<ParameterGroup>) {
  return keys_of<ParameterGroup>(
      option(&ParameterGroup::parameters,
             {.path = "parameters",
              .need = Need::required,
              .meaning = "The names of the parameters; * stands for any characters, dots included.",
              .example = "parameters: \"head.*\"\nparameters: [\"conv_0.*\", \"conv_1.*\"]"}),
      option(&ParameterGroup::learning_rate_scale, {.path = "learning_rate_scale",
                                                    .high = unbounded,
                                                    .varies = true,
                                                    .meaning = "The learning rate is multiplied by it.",
                                                    .example = "learning_rate_scale: 0.1",
                                                    .fallback_text = "1.0"}),
      option(&ParameterGroup::weight_decay, {.path = "weight_decay",
                                             .high = unbounded,
                                             .varies = true,
                                             .structural = no_decay,
                                             .meaning = "The coefficient of weight decay.",
                                             .example = "weight_decay: 0.0",
                                             .fallback_text = "the rule's"}),
      option(&ParameterGroup::freeze,
             {.path = "freeze",
              .meaning = "Whether the parameters stay as they are: no gradient is computed or sent, and they have no "
                         "optimizer state and no share in grad_norm.",
              .example = "freeze: true"}));
}

static auto row(Tag<Options>) {
  return keys_of<Options>(
      alternatives(&Options::rule), learning_rate(),
      option(&Options::base_batch_size, {.path = "base_batch_size",
                                         .low = 1,
                                         .meaning = "The learning rate is multiplied by batch_size / base_batch_size.",
                                         .example = "base_batch_size: 32",
                                         .fallback_text = "no scaling"}),
      section(&Options::reduce_on_plateau,
              {.path = "reduce_on_plateau",
               .meaning = "Lowers the learning rate when the evaluation no longer improves "
                          "(optax.contrib.reduce_on_plateau). The validation split decides, or the test split where "
                          "there is none.",
               .example = "reduce_on_plateau: {metric: loss, factor: 0.1, patience: 5}",
               .fallback_text = "none"}),
      option(&Options::weight_decay_exclude,
             {.path = "weight_decay_exclude",
              .fallback = "[]",
              .meaning = "Names of parameters without weight decay, of which at least one is there; * stands for any "
                         "characters, dots included.",
              .example = "weight_decay_exclude: [\"*.bias\", \"*.scale\"]"}),
      option(&Options::clip, {.path = "clip",
                              .high = unbounded,
                              .open_low = true,
                              .varies = true,
                              .meaning = "The largest magnitude of an element of the gradient; larger ones are "
                                         "clipped to it (optax.clip), before clip_by_global_norm.",
                              .example = "clip: 1.0",
                              .fallback_text = "no clipping"}),
      option(&Options::clip_by_global_norm,
             {.path = "clip_by_global_norm",
              .high = unbounded,
              .open_low = true,
              .varies = true,
              .meaning = "The largest global norm of the gradient; a larger gradient is scaled down to it.",
              .example = "clip_by_global_norm: 1.0",
              .fallback_text = "no clipping"}),
      sections(
          &Options::groups,
          {.path = "groups",
           .fallback = "[]",
           .meaning = "Settings of some of the parameters. The first group that matches a parameter applies to it, and "
                      "each group applies to at least one.",
           .example = "groups:\n  - {parameters: \"head.*\", learning_rate_scale: 10.0, weight_decay: 0.0}\n  - "
                      "{parameters: \"conv_*\", freeze: true}",
           .item = "group"}));
}

}  // namespace pmaptrain::optimizers

namespace pmaptrain::spec {

template struct Section<optimizers::Options>;
template struct Section<optimizers::ParameterGroup>;
template struct Section<optimizers::ReduceOnPlateau>;

}  // namespace pmaptrain::spec
