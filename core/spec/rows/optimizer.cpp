// The rows of the optimizer: schedules, groups of parameters. Rules are in core/optimizers.
#include "core/spec/rows/row.h"
#include "core/spec/types/duration.h"
#include "core/spec/yaml/find.h"

namespace pmaptrain::spec {

constexpr Structural no_decay{0.0, "without weight decay nothing is added"};

namespace schedule {

template <class S>
static Option<S> rate(double S::*member, std::string_view name, Need need, std::string_view meaning,
                      std::string_view example) {
  return option(member, {.path = std::string(name),
                         .need = need,
                         .high = unbounded,
                         .varies = true,
                         .meaning = meaning,
                         .example = example});
}
template <class S>
static Option<S> init_value(double S::*member, Need need = Need::required) {
  return rate(member, "init_value", need, "The learning rate of the first update.", "init_value: 0.1");
}
template <class S>
static Option<S> end_value(double S::*member) {
  return rate(member, "end_value", Need::optional, "The learning rate at the end, and from then on.",
              "end_value: 1.0e-5");
}
template <class S>
static Option<S> length(std::optional<Duration> S::*member, std::string_view name, std::string_view meaning,
                        std::string_view example) {
  return option(member, {.path = std::string(name),
                         .type = Type::duration,
                         .meaning = meaning,
                         .example = example,
                         .fallback_text = "what is left of the run's duration"});
}

static auto row(Tag<Linear>) {
  return alternative<Linear>(
      {.path = "linear",
       .meaning = "From init_value to end_value in a straight line (optax.linear_schedule).",
       .example = "learning_rate: {linear: {init_value: 0.1, end_value: 0.0}}"},
      init_value(&Linear::init_value), end_value(&Linear::end_value),
      length(&Linear::transition, "transition", "The duration of the change.", "transition: 10 epochs"));
}

static auto row(Tag<Polynomial>) {
  return alternative<Polynomial>(
      {.path = "polynomial",
       .meaning = "(init_value - end_value) * (1 - t / transition)^power + end_value, where t is the number of updates "
                  "done (optax.polynomial_schedule).",
       .example = "learning_rate: {polynomial: {init_value: 0.1, end_value: 0.001, power: 2.0}}"},
      init_value(&Polynomial::init_value), end_value(&Polynomial::end_value),
      option(&Polynomial::power, {.path = "power",
                                  .high = unbounded,
                                  .open_low = true,
                                  .varies = true,
                                  .structural = Structural{1.0, "a straight line has no power"},
                                  .meaning = "The exponent.",
                                  .example = "power: 2.0"}),
      length(&Polynomial::transition, "transition", "The duration of the change.", "transition: 10 epochs"));
}

static auto row(Tag<CosineDecay>) {
  return alternative<CosineDecay>(
      {.path = "cosine_decay",
       .meaning = "From init_value to alpha * init_value along half a cosine wave (optax.cosine_decay_schedule).",
       .example = "learning_rate: {cosine_decay: {init_value: 0.1}}"},
      init_value(&CosineDecay::init_value),
      length(&CosineDecay::decay, "decay", "The duration of the decay.", "decay: 10 epochs"),
      option(&CosineDecay::alpha, {.path = "alpha",
                                   .high = unbounded,
                                   .varies = true,
                                   .meaning = "The last learning rate as a multiple of init_value.",
                                   .example = "alpha: 0.01"}));
}

static auto row(Tag<ExponentialDecay>) {
  return alternative<ExponentialDecay>(
      {.path = "exponential_decay",
       .meaning = "init_value * decay_rate^(t / transition), where t is the number of updates done "
                  "(optax.exponential_decay).",
       .example = "learning_rate: {exponential_decay: {init_value: 0.1, transition: 1 epoch, decay_rate: 0.9}}"},
      init_value(&ExponentialDecay::init_value),
      option(&ExponentialDecay::transition, {.path = "transition",
                                             .need = Need::required,
                                             .meaning = "The duration in which the rate is multiplied by decay_rate.",
                                             .example = "transition: 1 epoch"}),
      option(&ExponentialDecay::decay_rate, {.path = "decay_rate",
                                             .need = Need::required,
                                             .high = unbounded,
                                             .open_low = true,
                                             .varies = true,
                                             .meaning = "The factor of each transition.",
                                             .example = "decay_rate: 0.9"}),
      option(&ExponentialDecay::staircase, {.path = "staircase",
                                            .meaning = "Whether the rate changes only at whole transitions.",
                                            .example = "staircase: true"}));
}

static auto row(Tag<WarmupCosineDecay>) {
  return alternative<WarmupCosineDecay>(
      {.path = "warmup_cosine_decay",
       .meaning = "From init_value to peak_value in a straight line, then to end_value along half a cosine wave "
                  "(optax.warmup_cosine_decay_schedule).",
       .example = "learning_rate:\n  warmup_cosine_decay: {peak_value: 0.001, warmup: 1 epoch}"},
      init_value(&WarmupCosineDecay::init_value, Need::optional),
      rate(&WarmupCosineDecay::peak_value, "peak_value", Need::required, "The learning rate after the warm-up.",
           "peak_value: 0.001"),
      option(&WarmupCosineDecay::warmup, {.path = "warmup",
                                          .need = Need::required,
                                          .or_zero = true,
                                          .meaning = "The duration of the warm-up; with 0 there is none, and the "
                                                     "first update has peak_value.",
                                          .example = "warmup: 1 epoch"}),
      length(&WarmupCosineDecay::decay, "decay", "The duration of warm-up and decay together.", "decay: 10 epochs"),
      end_value(&WarmupCosineDecay::end_value));
}

static auto row(Tag<PiecewiseConstant>) {
  return alternative<PiecewiseConstant>(
      {.path = "piecewise_constant",
       .meaning = "init_value, multiplied by each scale from its boundary on; scales multiply "
                  "(optax.piecewise_constant_schedule).",
       .example = "learning_rate:\n  piecewise_constant:\n    init_value: 0.1\n    boundaries_and_scales: [[30 epochs, "
                  "0.1], [60 epochs, 0.1]]"},
      init_value(&PiecewiseConstant::init_value),
      option(&PiecewiseConstant::boundaries_and_scales,
             {.path = "boundaries_and_scales",
              .need = Need::required,
              .high = unbounded,
              .or_zero = true,
              .varies = true,
              .meaning = "Pairs of a boundary, counted from the start, and the factor from there on.",
              .example = "boundaries_and_scales: [[30 epochs, 0.1], [60 epochs, 0.1]]"}));
}

static auto row(Tag<CosineOnecycle>) {
  return alternative<CosineOnecycle>(
      {.path = "cosine_onecycle",
       .meaning = "From peak_value / 25 to peak_value and then to peak_value / 250000, both along half a cosine wave "
                  "(optax.cosine_onecycle_schedule).",
       .example = "learning_rate: {cosine_onecycle: {peak_value: 0.01}}"},
      rate(&CosineOnecycle::peak_value, "peak_value", Need::required, "The largest learning rate.", "peak_value: 0.01"),
      length(&CosineOnecycle::transition, "transition", "The duration of the cycle.", "transition: 10 epochs"),
      option(&CosineOnecycle::pct_start, {.path = "pct_start",
                                          .high = 1,
                                          .open_low = true,
                                          .open_high = true,
                                          .meaning = "The share of the cycle in which the rate rises.",
                                          .example = "pct_start: 0.3"}));
}

static void store_rate(const Node& node, LearningRate& out) {
  const Chosen chosen = Choice<Schedule>::chosen(node);
  out.place = chosen.name != nullptr ? error_place(chosen) : error_place(node);
  if (node.is(Node::Kind::scalar)) return Takes<double>::store(node, out.value);
  spec::Choice<Schedule>::store(node, out.schedule.emplace());
}

static auto row(Tag<Join>) {
  Option<Join> schedules{Key{.path = "schedules",
                             .type = Type::choices,
                             .need = Need::required,
                             .high = unbounded,
                             .or_number = true,
                             .meaning = "The schedules, each of which counts from its boundary; a number is constant.",
                             .example = "schedules:\n  - linear: {init_value: 0.0, end_value: 0.1, transition: 1 "
                                        "epoch}\n  - cosine_decay: {init_value: 0.1}",
                             .item = "schedule",
                             .like = "optimizer.learning_rate"}};
  schedules.store = [](const Node& node, Join& out) {
    for (const Node& item : node.items) {
      if (item.valid()) store_rate(item, out.schedules.emplace_back());
    }
  };
  return alternative<Join>(
      {.path = "join",
       .meaning = "Several schedules, one after the other (optax.join_schedules).",
       .example = "learning_rate:\n  join:\n    schedules: [{linear: {init_value: 0.0, end_value: 0.1, transition: 1 "
                  "epoch}}, 0.1]\n    boundaries: [1 epoch]"},
      std::move(schedules),
      option(&Join::boundaries, {.path = "boundaries",
                                 .need = Need::required,
                                 .or_zero = true,
                                 .meaning = "Where each schedule but the first begins, counted from the start; at 0 "
                                            "the first has no update.",
                                 .example = "boundaries: [1 epoch]"}));
}

}  // namespace schedule

static Option<OptimizerSpec> learning_rate() {
  return {Key{.path = "learning_rate",
              .type = Type::choice,
              .need = Need::required,
              .high = unbounded,
              .or_number = true,
              .varies = true,
              .meaning = "The learning rate: a number, or a schedule of the number of updates done. Update k uses the "
                         "schedule's value at k - 1.",
              .example = "learning_rate: 0.001"},
          Choice<Schedule>::add_keys,
          [](const Node& node, OptimizerSpec& out) { schedule::store_rate(node, out.learning_rate); }};
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

static auto row(Tag<OptimizerSpec>) {
  return keys_of<OptimizerSpec>(
      alternatives(&OptimizerSpec::rule), learning_rate(),
      option(&OptimizerSpec::base_batch_size,
             {.path = "base_batch_size",
              .low = 1,
              .meaning = "The learning rate is multiplied by batch_size / base_batch_size.",
              .example = "base_batch_size: 32",
              .fallback_text = "no scaling"}),
      section(&OptimizerSpec::reduce_on_plateau,
              {.path = "reduce_on_plateau",
               .meaning = "Lowers the learning rate when the evaluation no longer improves "
                          "(optax.contrib.reduce_on_plateau). The validation split decides, or the test split where "
                          "there is none.",
               .example = "reduce_on_plateau: {metric: loss, factor: 0.1, patience: 5}",
               .fallback_text = "none"}),
      option(&OptimizerSpec::weight_decay_exclude,
             {.path = "weight_decay_exclude",
              .fallback = "[]",
              .meaning = "Names of parameters without weight decay, of which at least one is there; * stands for any "
                         "characters, dots included.",
              .example = "weight_decay_exclude: [\"*.bias\", \"*.scale\"]"}),
      option(&OptimizerSpec::clip, {.path = "clip",
                                    .high = unbounded,
                                    .open_low = true,
                                    .varies = true,
                                    .meaning = "The largest magnitude of an element of the gradient; larger ones are "
                                               "clipped to it (optax.clip), before clip_by_global_norm.",
                                    .example = "clip: 1.0",
                                    .fallback_text = "no clipping"}),
      option(&OptimizerSpec::clip_by_global_norm,
             {.path = "clip_by_global_norm",
              .high = unbounded,
              .open_low = true,
              .varies = true,
              .meaning = "The largest global norm of the gradient; a larger gradient is scaled down to it.",
              .example = "clip_by_global_norm: 1.0",
              .fallback_text = "no clipping"}),
      sections(
          &OptimizerSpec::groups,
          {.path = "groups",
           .fallback = "[]",
           .meaning = "Settings of some of the parameters. The first group that matches a parameter applies to it, and "
                      "each group applies to at least one.",
           .example = "groups:\n  - {parameters: \"head.*\", learning_rate_scale: 10.0, weight_decay: 0.0}\n  - "
                      "{parameters: \"conv_*\", freeze: true}",
           .item = "group"}));
}

template struct Section<OptimizerSpec>;
template struct Section<ParameterGroup>;
template struct Section<ReduceOnPlateau>;
template struct Choice<Schedule>;

}  // namespace pmaptrain::spec
