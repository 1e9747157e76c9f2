#include "app/failure.h"

#include "app/json.h"

namespace pmaptrain::app {
namespace {

Json known(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }
Json known(int number) { return number > 0 ? Json(number) : Json(nullptr); }

}  // namespace

Json errors_json(const std::vector<Diagnostic>& diagnostics) {
  Json errors = Json::array();
  for (const Diagnostic& diagnostic : diagnostics) {
    const Place& place = diagnostic.place;
    Json error;
    error["kind"] = diagnostic.kind;
    error["file"] = known(place.file);
    error["line"] = known(place.line);
    error["column"] = known(place.line > 0 ? place.column : 0);
    error["message"] = diagnostic.message;
    error["help"] = known(diagnostic.help);
    if (!diagnostic.notes.empty()) error["notes"] = diagnostic.notes;
    errors.push_back(std::move(error));
  }
  return errors;
}

std::string to_text(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string failure_json(const std::vector<Diagnostic>& diagnostics, int exit_status, bool validating) {
  Json document;
  if (validating) document["valid"] = false;
  document["errors"] = errors_json(diagnostics);
  document["exit_status"] = exit_status;
  return to_text(document);
}

}  // namespace pmaptrain::app
