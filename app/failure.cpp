#include "app/failure.h"

#include "core/report/json.h"

namespace pmaptrain::app {

std::string failure_json(const std::vector<Diagnostic>& diagnostics, int exit_status, bool validating) {
  report::Json document;
  if (validating) document["valid"] = false;
  document["errors"] = report::errors_json(diagnostics);
  document["exit_status"] = exit_status;
  return report::to_text(document);
}

}  // namespace pmaptrain::app
