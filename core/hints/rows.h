// The tables of hints (hints.h), by where the words are written.
#pragma once

#include <span>
#include <string_view>

#include "core/hints/hints.h"

namespace pmaptrain {

// Alternatives and values in a config; keys in a config; the command line, and programs in text form.
std::span<const HintRow> value_hints();
std::span<const HintRow> key_hints();
std::span<const HintRow> command_hints();

// Parts of several rows.
inline constexpr std::string_view no_finder =
    "there is no finder of learning rates; a sweep does it, with parameters: {optimizer.learning_rate: {log_uniform: "
    "[1.0e-4, 1.0e-1]}}: pmaptrain sweep run SWEEP.yaml";
inline constexpr std::string_view inferred = "leave it out: shapes follow from the data and the layer before";
inline constexpr std::string_view no_lora =
    "adapters stand beside kernels of other layers: the section lora of the config, such as lora: {rank: 8, alpha: "
    "16.0, "
    "parameters: [\"*.query\", \"*.value\"]}";
inline constexpr std::string_view no_experts =
    "no layer chooses between experts for each example; the nearest is swiglu, or one wider dense layer";
inline constexpr std::string_view no_gan =
    "a run trains one model by one loss with one optimizer; generators and discriminators cannot train each other";
inline constexpr std::string_view no_agents =
    "training is on data that is there before it begins, not on what an agent collects; the nearest is a classifier of "
    "recorded actions";
inline constexpr std::string_view one_input =
    "a model is a list of layers with one input and one output; columns of a table are one input, and several targets "
    "are one output";
inline constexpr std::string_view no_such_axis =
    "devices divide batches (data.axes), parameters (parallelism.fsdp) and layers (parallelism.tensor), but neither "
    "sequences nor the order of layers nor experts";

}  // namespace pmaptrain
