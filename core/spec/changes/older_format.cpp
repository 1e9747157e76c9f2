#include "core/spec/changes/older_format.h"

#include <charconv>
#include <fstream>
#include <string>

#include "core/spec/run_format.h"
#include "core/spec/yaml/find.h"

namespace pmaptrain::spec {

int format_of_run(const std::filesystem::path& folder) {
  std::ifstream marker(folder / run_marker, std::ios::binary);
  for (std::string line; std::getline(marker, line);) {
    if (!line.starts_with(run_format_line)) continue;
    int format = 1;
    std::from_chars(line.data() + run_format_line.size(), line.data() + line.size(), format);
    return format;
  }
  return 1;
}

void complete_older_config(Node& config) {
  Node* at = &config;
  for (const char* const key : {"data", "source", "npz"}) {
    at = at->is(Node::Kind::map) ? at->find(key) : nullptr;
    if (at == nullptr) return;
  }
  if (at->is(Node::Kind::map) && at->find("channels") == nullptr) {
    at->add(scalar_at(*at, "channels"), scalar_at(*at, "none"));
  }
}

}  // namespace pmaptrain::spec
