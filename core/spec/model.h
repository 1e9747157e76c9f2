// The section `model` of a config: layers and initial values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/layers/layer.h"
#include "core/model/layout.h"
#include "core/model/lora.h"
#include "core/spec/durations.h"

namespace pmaptrain::spec {

using layers::Layer;
using layers::PrecisionPolicy;
std::string to_string(PrecisionPolicy precision);

enum class Weights { ema, raw };

// Another name for tensors of a file. Each * of `from` stands for any characters, which take the place of the * of the
// same number in `to`.
struct Rename {
  declare::Pattern from;
  std::string to;
};

// What initial values are read from.
struct InitialFrom {
  std::string path;                                   // absolute: a safetensors file, or a run folder
  std::string checkpoint = "last";                    // of a run folder: last, best or a step
  Weights weights = Weights::ema;                     // of a run folder whose checkpoint has both
  std::optional<std::int64_t> member = std::nullopt;  // of an ensemble; none: each member of this one takes its own
  std::vector<declare::Pattern> include = {{"*"}}, exclude = {};
  model::ParameterLayout layout = model::ParameterLayout::flax;           // of a file
  std::vector<Rename> rename = {};                                        // the first that matches a tensor applies
  std::optional<std::vector<declare::Pattern>> transpose = std::nullopt;  // none: what `layout` stores transposed
};

struct ModelSpec {
  std::vector<Layer> layers;
  std::map<std::string, declare::Tensor> initial_values;  // by parameter path: dense_0.kernel
  std::optional<InitialFrom> initial_from;
  Place init_place;
};

}  // namespace pmaptrain::spec
