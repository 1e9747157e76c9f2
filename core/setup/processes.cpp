#include "core/setup/processes.h"

#include <string>
#include <string_view>
#include <vector>

#include "core/base/version.h"
#include "core/kernel/in_f32.h"

namespace pmaptrain::train {
namespace {

// A text that is equal for equal data, as far as the description and a few examples tell.
std::string text_of_data(const Setup& setup) {
  const data::Dataset& train = *setup.source.train;
  std::string text = setup.source.description;
  std::vector<std::byte> example(train.input().bytes() + train.target().bytes());
  for (const std::int64_t index : {std::int64_t{0}, train.size() / 2, train.size() - 1}) {
    train.read(index, example.data(), example.data() + train.input().bytes());
    text.append(reinterpret_cast<const char*>(example.data()), example.size());
  }
  return text;
}

}  // namespace

void prepare_processes(Agreement& agreement, const Setup& setup, std::string_view options,
                       std::string_view checkpoint) {
  const spec::Timeout& timeout = setup.spec().mesh.timeout;
  const double given = timeout.after ? spec::seconds_of(*timeout.after) : 0;
  agreement.processes().transport->set_timeout(timeout.automatic ? -1 : given);

  constexpr std::string_view help =
      "all processes of a run need the same program, config, data and instruction set, because each computes the "
      "parameters for itself";
  agreement.check_alike("the program", std::string(version) + " " + std::string(commit) + " " + std::string(compiler),
                        help);
  agreement.check_alike("the config", setup.loaded.resolved, help);
  agreement.check_alike("the command line", options, help);
  agreement.check_alike("the instruction set", instruction_set(), help);
  agreement.check_alike("the checkpoint to continue from", checkpoint,
                        "every process reads the checkpoint: the run folder must be visible to all of them");
  agreement.check_alike("the data", text_of_data(setup), help);
}

}  // namespace pmaptrain::train
