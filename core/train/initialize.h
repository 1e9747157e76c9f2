// The values that parameters begin a run with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/model/model.h"
#include "core/train/safetensors.h"

namespace pmaptrain::train {

// One parameter's drawn values, row-major in `dtype` (f32 or f64). They depend on the seed and the parameter's name
// only: adding a layer or changing the mesh moves no other parameter.
//
// lecun_normal is Flax's: a normal cut at two standard deviations, of variance 1 / fan_in after the cut.
std::vector<std::byte> draw(const model::Parameter& parameter, std::uint64_t seed, DType dtype);

// The values of a model's parameters: from model.init.from, which has them all, or from model.init.values where it
// gives the parameter, else drawn. A file's tensors may be f32 or f64. Throws Error (data) at the key's place where the
// file is missing or damaged, names or shapes a tensor that the model does not have, lacks one that it has, or holds a
// number that is not finite as the parameter's.
class InitialValues {
 public:
  // Opens and checks the file, if there is one, but for its numbers. Model and spec outlive this.
  InitialValues(const model::Model& model, const spec::ModelSpec& spec, std::uint64_t seed);
  // One parameter's, row-major in the model's dtype. Made anew at each call, so that a large model is never held twice.
  std::vector<std::byte> of(const model::Parameter& parameter) const;

 private:
  const model::Model& model_;
  const spec::ModelSpec& spec_;
  std::uint64_t seed_;
  data::Bytes file_;
  std::map<std::string, TensorView> in_file_;
};

// Reads model.init.from, if there is one, as a run will. Throws what InitialValues throws.
void check_initial_file(const model::Model& model, const spec::ModelSpec& spec);

}  // namespace pmaptrain::train
