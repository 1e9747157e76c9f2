// What `validate` says: read off the same program and plan that `run` carries out.
#pragma once

#include <string>
#include <vector>

#include "core/setup/memory.h"
#include "core/setup/setup.h"

namespace pmaptrain::report {

struct ValidateReport {
  std::string backend, backend_because;  // of mesh.backend: auto: why this one
  int workers = 1;
  train::MemoryEstimate memory;
  train::StepCost cost;
  std::vector<std::string> warnings;
};

// Plans the step. Throws Error (resource) when there is not so much memory. `private_copies`: as --verify-replicas.
ValidateReport make_validate_report(const train::Setup& setup, bool private_copies = false);

// Layers, mesh, what each device holds, what travels, memory, steps.
std::string validate_text(const train::Setup& setup, const ValidateReport& report);

// The documented JSON document, with its end of line. `with_config` adds the resolved config's text as "config".
std::string validate_json(const train::Setup& setup, const ValidateReport& report, bool with_config = false);

// What a process needs, by what it holds, as columns.
std::string memory_text(const train::MemoryEstimate& memory);

// Rows as columns two spaces apart, each indented by two; the first column is aligned left, of the others those that
// `right` names. Used by all commands.
std::string columns(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right);

}  // namespace pmaptrain::report
