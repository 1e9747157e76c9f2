// The values that parameters begin a run with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/model/model.h"
#include "core/run/checkpoint.h"
#include "core/run/files/safetensors.h"
#include "core/setup/setup.h"

namespace pmaptrain::train {

// One parameter's drawn values, row-major in `dtype` (f32 or f64). They depend on the seed and the parameter's name
// only: adding a layer or changing the mesh moves no other parameter.
//
// lecun_normal is Flax's: a normal cut at two standard deviations, of variance 1 / fan_in after the cut.
std::vector<std::byte> draw(const model::Parameter& parameter, std::uint64_t seed, DType dtype);

// The values of a model's parameters: from model.init.from, from model.init.values where it gives the parameter, else
// drawn. Of model.init.from, a parameter is taken if its name matches a pattern of `include` and none of `exclude`; of
// the names that do, the file and the model must have the same, in the same shapes. A file's tensors may be of any
// floating type. Throws Error at the key's place: data where the file is missing, damaged or does not fit, or holds a
// number that is not finite as the parameter's; usage for a pattern that matches nothing, or a checkpoint or member
// that is not there.
class InitialValues {
 public:
  // Opens and checks the file, if there is one, but for its numbers. Model and spec outlive this.
  InitialValues(const model::Model& model, const spec::ModelSpec& spec, std::uint64_t seed, Membership membership = {});
  // One parameter's, row-major in the model's dtype. Made anew at each call, so that a large model is never held twice.
  std::vector<std::byte> of(const model::Parameter& parameter) const;
  // Whether some of them are drawn, so that they depend on the seed; and whether some are of this member alone.
  bool draws() const;
  bool is_of_member() const { return file_.members && !spec_.initial_from->member && !in_file_.empty(); }
  // How many parameters were taken from the file and which were not; empty if there is no file.
  std::string note() const;

 private:
  void open();
  void choose_member(Membership membership);
  void check_patterns() const;
  void check_tensors() const;
  [[noreturn]] void refuse(std::string message, std::string help) const;
  std::vector<std::byte> convert(const model::Parameter& parameter, const TensorView& tensor) const;

  const model::Model& model_;
  const spec::ModelSpec& spec_;
  std::uint64_t seed_;
  CheckpointFile file_;
  std::optional<RunState> best_;               // of checkpoints/best, where the file is from there
  std::string whose_;                          // of the members of an ensemble's file, for note()
  std::map<std::string, TensorView> in_file_;  // those that are taken
};

// Reads model.init.from, if there is one, as a run of so many members will, or of none without an ensemble. Returns
// InitialValues::note(); throws what that throws.
std::string check_initial_file(const model::Model& model, const spec::ModelSpec& spec,
                               std::optional<std::int64_t> members = std::nullopt);

}  // namespace pmaptrain::train
