// The output of `validate`, derived from the program and the plan that `run` uses.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/setup/memory.h"
#include "core/setup/plan.h"
#include "core/setup/programs.h"
#include "core/setup/setup.h"

namespace pmaptrain::report {

struct ValidateReport {
  std::string backend, backend_because;   // the reason for the backend of mesh.backend: auto
  int workers = 1;                        // of each process
  int processes = 1;                      // that carry the devices
  std::optional<std::size_t> sent_bytes;  // by process 0 to the others in a step; none if there are no others
  setup::MemoryEstimate memory;
  setup::StepCost cost;
  std::vector<std::string> warnings;
};

// The report of a run that is planned for `processes`. Throws Error (resource) if the memory is not sufficient.
ValidateReport make_validate_report(const setup::Setup& setup, const setup::PlannedSource& run, int processes = 1);
// Plans the run first. `private_copies`: as with --verify-replicas.
ValidateReport make_validate_report(const setup::Setup& setup, bool private_copies = false, int processes = 1);

// Layers, mesh, the data on each device, communication, memory and steps as text, for a terminal of this width; 0:
// none.
std::string validate_text(const setup::Setup& setup, const ValidateReport& report, int width = 0);

// The documented JSON document, with its end of line. `with_config` adds the text of the resolved config as "config".
std::string validate_json(const setup::Setup& setup, const ValidateReport& report, bool with_config = false);

}  // namespace pmaptrain::report
