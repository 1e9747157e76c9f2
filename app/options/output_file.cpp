#include "app/options/output_file.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "app/options/arguments.h"
#include "core/base/text.h"

namespace pmaptrain::app {

namespace fs = std::filesystem;

void check_folder_of(const std::string& option, const std::string& file) {
  std::error_code ignored;
  const fs::path folder = fs::path(file).parent_path();
  if (folder.empty() || fs::is_directory(folder, ignored)) return;
  fail_option(option, file, "there is no folder '" + folder.string() + "'",
              "mkdir -p " + shell_quoted(folder.string()));
}

void check_output_file(const std::string& output, bool overwrite) {
  const auto refuse = [&output](std::string message, std::string help) {
    fail_option("--output", output, std::move(message), std::move(help));
  };
  check_folder_of("--output", output);
  std::error_code ignored;
  if (!fs::exists(output, ignored)) return;
  if (!fs::is_regular_file(output, ignored)) refuse("'" + output + "' is no regular file", "name another file");
  if (!overwrite) refuse("'" + output + "' exists", "--overwrite replaces it");
}

}  // namespace pmaptrain::app
