// What a config says of a model and of its step, as the options that they take.
#pragma once

#include "core/data/dataset.h"
#include "core/model/model.h"
#include "core/spec/spec.h"
#include "core/step/options.h"

namespace pmaptrain::setup {

// `target` is the field of the data. The numbers of `normalize: auto` and `normalize_targets` are those of `encoding`;
// throws Error (usage) if it has none.
model::Options model_options(const spec::Spec& spec, const data::Field& target, const data::Encoding& encoding);
step::StepOptions step_options(const spec::Spec& spec);

// The model of a config for these fields of its data.
model::Model model_of(const spec::Spec& spec, const data::Field& input, const data::Field& target,
                      const data::Encoding& encoding = {});
// The same for one device, with layers that no device divides: for exports and generation.
model::Model undivided_model_of(const spec::Spec& spec, const data::Field& input, const data::Field& target,
                                const data::Encoding& encoding = {});

}  // namespace pmaptrain::setup
