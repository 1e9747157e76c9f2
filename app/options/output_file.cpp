#include "app/options/output_file.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "app/options/arguments.h"
#include "core/base/text.h"

namespace pmaptrain::app {

void check_output_file(const std::string& output, bool overwrite) {
  namespace fs = std::filesystem;
  const auto refuse = [&output](std::string message, std::string help) {
    fail_option("--output", output, std::move(message), std::move(help));
  };
  std::error_code ignored;
  const fs::path folder = fs::path(output).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, ignored)) {
    refuse("there is no folder '" + folder.string() + "'", "mkdir -p " + shell_quoted(folder.string()));
  }
  if (!fs::exists(output, ignored)) return;
  if (!fs::is_regular_file(output, ignored)) refuse("'" + output + "' is no regular file", "name another file");
  if (!overwrite) refuse("'" + output + "' exists", "--overwrite replaces it");
}

}  // namespace pmaptrain::app
