#include "core/setup/processes.h"

#include <string>
#include <string_view>
#include <vector>

#include "core/base/philox.h"
#include "core/base/version.h"
#include "core/kernel/in_f32.h"

namespace pmaptrain::train {
namespace {

// A text that is equal for equal data, as far as the description and a few examples tell.
std::string text_of_data(std::string_view description, const data::Dataset& dataset) {
  std::string text = std::string(description) + " " + std::to_string(dataset.size());
  if (dataset.size() == 0) return text;
  std::vector<std::byte> example(dataset.input().bytes() + dataset.target().bytes());
  for (const std::int64_t index : {std::int64_t{0}, dataset.size() / 2, dataset.size() - 1}) {
    dataset.read(index, example.data(), example.data() + dataset.input().bytes());
    text.append(reinterpret_cast<const char*>(example.data()), example.size());
  }
  return text;
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
  agreement.check_alike("the config", alike.config, help);
  agreement.check_alike("the command line", alike.options, help);
  agreement.check_alike("the instruction set", instruction_set(), help);
  agreement.check_alike("the data", text_of_data(alike.data, alike.dataset), help);
}

std::string program_identity() {
  return std::string(version) + " " + std::string(commit) + " " + std::string(compiler);
}

std::string data_identity(const Setup& setup) {
  const std::string text = text_of_data(setup.source.description, *setup.source.train);
  const PhiloxKey key = stream_key(0, text);
  return std::to_string(std::uint64_t{key[0]} << 32 | key[1]);
}

void prepare_processes(Agreement& agreement, const Setup& setup, std::string_view options) {
  check_processes(agreement, setup.spec().mesh,
                  {setup.loaded.resolved, options, setup.source.description, *setup.source.train});
  // Each process has decided it by the memory of its own GPUs.
  agreement.check_alike("the number of splits that stay on GPUs", std::to_string(setup.resident_splits.size()),
                        "mesh.gpu_memory gives all processes the memory that the smallest GPU has");
}

}  // namespace pmaptrain::train
