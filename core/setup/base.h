// The base of a model with adapters (core/model/lora.h): the parameters that stay as they are. Checkpoints do not have
// them, so each command that computes with a run's model reads or draws them again.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/model/model.h"
#include "core/run/first_process.h"
#include "core/runtime/backend.h"
#include "core/setup/initial/file.h"
#include "core/setup/initialize.h"
#include "core/setup/setup.h"
#include "core/spec/spec.h"

namespace pmaptrain::setup {

// The error of a base that cannot be opened, with the option that names it elsewhere.
Error with_note_of_base(const Error& error);

// Checks that all members of an ensemble have the same base, and returns warnings about its values. Throws Error
// (usage), at `lora`.
std::vector<std::string> check_base(const Setup& setup, const InitialValues& initial);

// Opens model.init.from where several processes read the base together; else null, and each function below opens it.
std::shared_ptr<const InitialFile> open_base(const model::Model& model, const spec::Spec& spec,
                                             const run::FirstProcess& first);

// Calls `take` with the values of each parameter of the base in the type of the model, one parameter after another, in
// slices of some MiB from element `first` on: drawn values are never in memory as a whole. Returns the
// identity of the base: XXH3 of all names and values, as 16 hexadecimal digits; empty for a model without adapters.
// `expected` is the identity that it must have, empty if that is not known. Throws Error (data), at the place of
// model.init, if it has another one, or if the base cannot be read.
using TakeBase =
    std::function<void(const model::Parameter& parameter, std::size_t first, std::span<const std::byte> values)>;
std::string read_base(const model::Model& model, const spec::Spec& spec, const std::string& expected,
                      const TakeBase& take, Membership membership = {}, const InitialFile* opened = nullptr);

// The same, and writes the base into a module, where all members share it, each parameter in the type in which programs
// have it.
std::string write_base(Module& module, const model::Model& model, const spec::Spec& spec, const std::string& expected,
                       Membership membership = {}, const InitialFile* opened = nullptr);

}  // namespace pmaptrain::setup
