// What tests ask of words.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "tests/catch.h"

namespace pmaptrain::test {

// Shows the text where the test fails.
inline bool contains(const std::string& text, std::string_view part) {
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

// The lines of a text, without their ends.
inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
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

// The message alone, of an error of any status; empty where there is none.
template <class F>
std::string message_of_error(F&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.diagnostics().front().message;
  }
  return {};
}

}  // namespace pmaptrain::test
