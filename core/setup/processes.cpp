#include "core/setup/processes.h"

#include <string>
#include <string_view>

#include "core/base/text.h"
#include "core/base/version.h"
#include "core/kernel/in_f32.h"
#include "core/spec/compare.h"

namespace pmaptrain::setup {
namespace {

// What a process tells of a file or a folder of its data; the path may be another one in each.
std::string identity_of(const input::Content& content) {
  return content.key + " " + std::to_string(content.bytes) + " " + std::to_string(content.files.value_or(-1)) + " " +
         content.hash + " " + content.whole;
}

// The keys in which the resolved config of another process differs from that of process 0, a line for each.
std::vector<std::string> differing_keys(const std::string& first, const std::string& other) {
  constexpr std::size_t most = 3;
  const std::vector<spec::ChangedKey> keys = spec::changed_keys(first, other);
  const auto shown = [](const std::string& value) { return value.empty() ? "nothing" : value; };
  std::vector<std::string> notes, rest;
  for (const spec::ChangedKey& key : keys) {
    if (notes.size() < most) {
      notes.push_back(key.path + ": process 0 has " + shown(key.before) + ", the other " + shown(key.after));
    } else {
      rest.push_back(key.path);
    }
  }
  if (!rest.empty()) notes.push_back("and " + join(rest, ", "));
  return notes;
}

}  // namespace

void check_processes(Agreement& agreement, const spec::MeshSpec& mesh, const Alike& alike) {
  const spec::Timeout& timeout = mesh.timeout;
  const double given = timeout.after ? spec::seconds_of(*timeout.after) : 0;
  agreement.processes().transport->set_timeout(timeout.automatic ? -1 : given);

  constexpr std::string_view help =
      "all processes need the same program, config, data and instruction set, because each computes the "
      "parameters for itself";
  agreement.check_alike("the program", program_identity(), help);
  agreement.check_alike("the config", alike.config, help, differing_keys);
  agreement.check_alike("the command line", alike.options, help);
  agreement.check_alike("the instruction set", instruction_set(), help);
  agreement.check_alike("the data", alike.data, help);
  agreement.check_alike("data.tokenizer", alike.tokenizer, help);
  for (const input::Content& content : alike.contents) {
    agreement.check_alike("the data '" + content.path + "' (" + content.key + ")", identity_of(content), help);
  }
}

std::string program_identity() {
  return std::string(version) + " " + std::string(commit) + " " + std::string(compiler);
}

std::string data_identity(const Setup& setup) {
  std::string text = setup.source.description;
  for (const input::Content& content : input::contents_of(setup.loaded)) text += "\n" + identity_of(content);
  return text;
}

void prepare_processes(Agreement& agreement, const Setup& setup, std::string_view options) {
  check_processes(
      agreement, setup.spec().mesh,
      {setup.loaded.resolved, options, setup.source.description, setup.source.encoding.tokenizer, setup.contents});
  // Each process has decided it by the memory of its own GPUs.
  agreement.check_alike("the number of splits that stay on GPUs", std::to_string(setup.resident_splits.size()),
                        "mesh.gpu_memory gives all processes the memory that the smallest GPU has");
}

}  // namespace pmaptrain::setup
