// Configs that are refused, as files: NAME.yaml is a config with a mistake, and NAME.txt, beside it, is what is said
// about it. A last line "# --set KEY=VALUE" or "# --devices N" of a config is an option; there may be several.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/files.h"

namespace pmaptrain::test {

// The options in the last lines of a config.
inline spec::Overrides options_in(std::string_view config) {
  spec::Overrides overrides;
  while (!config.empty()) {
    config.remove_suffix(config.ends_with('\n') ? 1 : 0);
    const std::size_t begin = config.rfind('\n') + 1;  // 0 where there is none
    const std::string_view line = config.substr(begin);
    constexpr std::string_view set = "# --set ", devices = "# --devices ";
    if (line.starts_with(set)) {
      overrides.set.insert(overrides.set.begin(), std::string(line.substr(set.size())));
    } else if (line.starts_with(devices)) {
      overrides.devices = std::stoll(std::string(line.substr(devices.size())));
    } else {
      break;
    }
    config = config.substr(0, begin);
  }
  return overrides;
}

// Fails for each config below `folder` that `check` does not refuse as its text says, and for each file without its
// partner. `check` throws Error. With PMAPTRAIN_UPDATE_GOLDENS=1 in the environment the texts are written instead, to
// be read before they are committed. Tests run in the root of the repository.
inline void check_refused(
    const std::filesystem::path& folder,
    const std::function<void(const std::string& config, const spec::Overrides& overrides)>& check) {
  const char* const update = std::getenv("PMAPTRAIN_UPDATE_GOLDENS");
  std::set<std::filesystem::path> configs, texts;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_directory()) continue;
    INFO(entry.path().string() << " is neither a .yaml nor a .txt");
    const std::filesystem::path extension = entry.path().extension();
    CHECK((extension == ".yaml" || extension == ".txt"));
    (extension == ".txt" ? texts : configs).insert(std::filesystem::path(entry.path()).replace_extension());
  }
  REQUIRE_FALSE(configs.empty());
  for (const std::filesystem::path& text : texts) {
    INFO(text.string() << ".txt has no config beside it");
    CHECK(configs.contains(text));
  }
  for (const std::filesystem::path& path : configs) {
    const std::string config = read_text(path.string() + ".yaml");
    std::string said;
    try {
      check(config, options_in(config));
    } catch (const Error& error) {
      CHECK(error.status() == ExitStatus::usage);
      said = error.what();
    }
    INFO(path.string() << ".txt is refreshed with PMAPTRAIN_UPDATE_GOLDENS=1");
    CHECK_FALSE(said.empty());
    if (update != nullptr && std::string_view(update) == "1") {
      write_text(path.string() + ".txt", said);
    } else if (!texts.contains(path)) {
      FAIL_CHECK("there is no such file");
    } else {
      CHECK(said == read_text(path.string() + ".txt"));
    }
  }
}

}  // namespace pmaptrain::test
