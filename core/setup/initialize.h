// The initial values of parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/model/layout.h"
#include "core/model/model.h"
#include "core/run/checkpoint.h"
#include "core/run/files/safetensors.h"
#include "core/setup/initial/elements.h"
#include "core/setup/initial/file.h"
#include "core/setup/setup.h"

namespace pmaptrain::setup {

// Draws the values of one parameter, row-major in `dtype` (f32 or f64), into memory of their size, or of some of them
// from element `first` on. They depend only on
// the seed and the parameter's name: adding a layer or changing the mesh changes no other parameter.
//
// lecun_normal is Flax's: a normal distribution truncated at two standard deviations, with variance 1 / fan_in after
// the truncation.
void draw(const model::Parameter& parameter, std::uint64_t seed, DType dtype, std::span<std::byte> into,
          std::size_t first = 0);
std::vector<std::byte> draw(const model::Parameter& parameter, std::uint64_t seed, DType dtype);

// The initial values of a model's parameters: from model.init.from; else from model.init.values, if it gives the
// parameter; else drawn. A parameter is taken from model.init.from if its name matches a pattern of `include` and none
// of `exclude`; these names are those after init.from.rename. The file must have all parameters of the model with such
// names, in the shapes that init.from.layout and init.from.transpose say; a checkpoint of a run may have no others. The
// file's tensors may have any floating type. Throws Error at the key's place: data if the file is missing, damaged or
// does not fit, or has a value that is not finite in the parameter's type; usage for a pattern that matches nothing, or
// a checkpoint or member that does not exist. Of a file with vectors of words the rows of their tokens are taken, and
// the others drawn.
class InitialValues {
 public:
  // Opens the file, if there is one and it is not `opened`, and checks everything but its numbers. Model and spec
  // outlive this.
  InitialValues(const model::Model& model, const spec::ModelSpec& spec, std::uint64_t seed, Membership membership = {},
                const InitialFile* opened = nullptr);
  // Writes the values of one parameter, row-major in the model's dtype, into memory of their size. They are made at
  // each call, so that a large model is never held twice.
  void write(const model::Parameter& parameter, std::span<std::byte> into) const;
  std::vector<std::byte> of(const model::Parameter& parameter) const;
  // Lets the system take the memory back in which pages of the file with the parameter are; it reads them again if they
  // are needed.
  void release(const model::Parameter& parameter) const;
  // Whether the parameter is read from the file.
  bool takes(const model::Parameter& parameter) const { return in_file_.contains(parameter.name); }
  // Whether some values are drawn, and so depend on the seed; and whether some are those of the same member in a file
  // of an ensemble.
  bool draws() const;
  // False for a table of which some rows are vectors of words.
  bool draws(const model::Parameter& parameter) const;
  bool varies_by_member() const { return file_.members && !spec_.initial_from->member && !in_file_.empty(); }
  // The run that wrote the file as a checkpoint, and how it read its data; null if the file belongs to no known run.
  const InitialRun* run() const { return run_ ? &*run_ : nullptr; }
  // Says how many parameters were taken from the file, and which were not; empty if there is no file.
  std::string note() const;

 private:
  void choose_member(Membership membership);
  void check_patterns() const;
  // What does not fit between the file and the model.
  struct Mismatches {
    std::vector<std::string> texts, names;  // names: of the tensors and parameters
    std::string help;                       // of the first
    bool help_leaves_out = true;            // whether leaving them out may be what is wanted, too
    void add(std::string text, std::string first_help, const std::vector<std::string>& of) {
      texts.push_back(std::move(text));
      if (help.empty()) help = std::move(first_help);
      names.insert(names.end(), of.begin(), of.end());
    }
  };
  void check_tensors();
  void check_takes_any() const;
  void check_tensor(const model::Parameter& parameter, const run::TensorView& tensor, Mismatches& found) const;
  std::string torch_help() const;
  void check_array(const model::StoredParameter& part, const run::TensorView& tensor, Mismatches& found) const;
  void check_intact() const;
  bool is_flax() const;
  // How the file has the parameter.
  model::StoredParameter stored(const model::Parameter& parameter) const;
  std::string shown_name(const std::string& name) const;
  [[noreturn]] void refuse(std::string message, std::string help) const;
  void convert(const model::Parameter& parameter, const FileArray& from, std::span<std::byte> into) const;

  const model::Model& model_;
  const spec::ModelSpec& spec_;
  std::uint64_t seed_;
  run::CheckpointFile file_;
  bool is_checkpoint_of_run_ = false;              // whether the file is a checkpoint of a run
  std::vector<data::Bytes> shards_;                // as in InitialFile
  std::optional<InitialRun> run_;                  // as there
  std::shared_ptr<const WordVectors> vectors_;     // as there
  std::map<std::string, std::string> in_file_as_;  // the names in the file of renamed tensors, by their new names
  std::optional<run::RunState> best_;              // the state beside the file, if that is checkpoints/best
  std::string whose_;                              // for note(): which members of an ensemble's file are used
  std::map<std::string, run::TensorView> added_;   // arrays of the file that are added to those of parameters
  std::map<std::string, FileArray> in_file_;       // what is used, by the names of parameters
};

// Opens model.init.from for a setup whose data and model are known, where it is a file with vectors of words. Throws
// Error, at the key's place.
void take_word_vectors(Setup& setup);

// Reads model.init.from, if it is given, as a run with this many members will (none: without an ensemble). Returns
// InitialValues::note(); throws what the constructor throws. `opened`: as for the constructor.
std::string check_initial_file(const model::Model& model, const spec::ModelSpec& spec,
                               std::optional<std::int64_t> members = std::nullopt, const InitialFile* opened = nullptr);

}  // namespace pmaptrain::setup
