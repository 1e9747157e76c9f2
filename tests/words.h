// What tests ask of words.
#pragma once

#include <string>
#include <string_view>

#include "core/base/error.h"
#include "tests/catch.h"

namespace pmaptrain::test {

// Shows the text where the test fails.
inline bool contains(const std::string& text, std::string_view part) {
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

// "message | help" of the error that `action` throws, whose status must be the one expected; or "accepted".
template <class F>
std::string refusal(F&& action, ExitStatus expected) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.status() == expected);
    return error.diagnostics().front().message + " | " + error.diagnostics().front().help;
  }
  return "accepted";
}

}  // namespace pmaptrain::test
