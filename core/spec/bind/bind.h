// Binds a checked tree to a Spec, with the checks that concern several keys.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/spec/keys/check.h"
#include "core/spec/spec.h"
#include "core/spec/yaml/node.h"
#include "core/spec/yaml/report.h"

namespace pmaptrain::spec {

// Fills in defaults of `config` that depend on other keys (layer names, data.axes, the length of a schedule), stores
// every key by its row (rows/row.h) and checks keys against each other. Invalid parts keep their defaults, so the
// result is valid only if `errors` is empty.
// `processes` is the number of processes that carry the devices.
Spec bind(Node& config, std::vector<Diagnostic>& errors, int processes = 1);

// Decides the roles of the axes of the mesh, and writes data.axes where it is not given. Reports an axis without a
// role.
void bind_roles(Node& config, const Reporter& reporter, MeshSpec& out);

// Stores the keys below `data` that depend on other keys, and checks `data`.
void bind_data(Node& config, const Reporter& reporter, DataSpec& out);

// Checks what `data` says of targets against the loss.
void check_targets(const Node& config, const Spec& spec, const Reporter& reporter);

// Stores the places of `lora`.
void bind_lora(const Node& config, Spec& spec);

// Checks the keys of `optimizer` against each other, stores their places, and fills in the length of a schedule.
void bind_optimizer(Node& config, const Reporter& reporter, Spec& spec);

// Writes `length`, a checked duration, into a schedule that has none. Nothing is done to a number.
void fill_in_length(Node& learning_rate, const Node& length);

// Checks the measures that `train` names, and stores their places.
void bind_train(const Node& config, const Reporter& reporter, Spec& spec);

// Checks that `metric` of a section is a measure of an evaluation, and returns its place; the place of the section if
// it is not given. Where the list of metrics of `config` has one that is refused, the measure may be that one.
Place bind_measure(const Node& config, const Node* section, const Spec& spec, const Reporter& reporter);

// Checks `ensemble` and binds what each member would have alone. `config` is complete otherwise. `alone` binds a config
// without an ensemble.
using BindAlone = std::function<Spec(Node& config, std::vector<Diagnostic>& errors)>;
void bind_ensemble(Node& config, const BindAlone& alone, std::vector<Diagnostic>& errors, Spec& spec);

// The axis of a checked ensemble, if the mesh has it.
std::optional<int> ensemble_axis(const Node& config, const Mesh& mesh);

// Notes about options that set the sizes of these axes.
std::vector<std::string> option_notes(std::span<const Node> axes);

// Checks that the batch divides over the mesh and the microbatches, and durations in examples into batches.
void check_division(const Spec& spec, const Node& config, std::vector<Diagnostic>& errors);

// Finds the axes of `parallelism`.
void bind_parallelism(const Node& config, const Reporter& reporter, Spec& spec);

// Checks that the blocks divide the devices of a member, and that there is one for each process. Writes the number that
// `auto` stands for.
void bind_blocks(Node& config, int processes, std::vector<Diagnostic>& errors, Spec& spec);

}  // namespace pmaptrain::spec
