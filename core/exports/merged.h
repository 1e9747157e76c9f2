// A model with adapters as one without: each kernel has the product of its adapter added.
#pragma once

#include <map>
#include <string>

#include "core/exports/onnx_model.h"
#include "core/run/files/safetensors.h"
#include "core/run/run_state.h"
#include "core/spec/spec.h"

namespace pmaptrain::exports {

// `spec` is the config of a member, and has adapters; `tensors` are the values of the member's checkpoint by name, and
// outlive the result. The base is read, or drawn, as in training. Throws Error (data) if it is not that of `state`, or
// if a tensor is missing.
TrainedModel merged_model(const spec::Spec& spec, const run::RunState& state,
                          const std::map<std::string, run::TensorView>& tensors, const std::string& file);

}  // namespace pmaptrain::exports
