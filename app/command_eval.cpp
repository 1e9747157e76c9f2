// eval: a run's checkpoint on a split of its data.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <numeric>

#include "app/arguments.h"
#include "app/commands.h"
#include "app/config_options.h"
#include "app/json.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/train/evaluator.h"
#include "core/train/members.h"
#include "core/train/record_lines.h"

namespace pmaptrain::app {
namespace {

Json document_of(const train::Evaluation& result, const std::string& run, train::MemberNumber member) {
  Json document{{"run", run}, {"checkpoint", result.checkpoint}};
  if (member) document["member"] = *member;
  document["split"] = result.split;
  document["examples"] = result.examples;
  bool finite = true;
  for (const auto& [name, value] : result.measures) {
    document[name] = value;  // null where it is not finite
    finite = finite && std::isfinite(value);
  }
  document["seconds"] = result.seconds;
  if (!finite) document["finite"] = false;
  return document;
}

std::string line_of(const train::Evaluation& result, const std::string& run, train::MemberNumber member) {
  std::string line = member ? fmt::format("member {}  ", *member) + result.split : result.split;
  for (const auto& [name, value] : result.measures) line += fmt::format("  {} {}", name, train::compact(value));
  return line + fmt::format("  ({} examples in {}, {} of {})\n", with_commas(result.examples),
                            train::duration(result.seconds), result.checkpoint, printable(run));
}

// What is told of the members that have no best checkpoint.
std::vector<std::string> left_out(const spec::Spec& spec, const std::vector<train::Evaluation>& results) {
  std::vector<std::int64_t> missing(static_cast<std::size_t>(spec::members(spec)));
  std::iota(missing.begin(), missing.end(), 0);
  for (const train::Evaluation& result : results) std::erase(missing, result.member);
  if (missing.empty()) return {};
  return {train::names_of(missing) + (missing.size() == 1 ? " has" : " have") + " no best checkpoint and " +
          (missing.size() == 1 ? "is" : "are") + " left out: no evaluation gave " +
          (missing.size() == 1 ? "it" : "them") +
          " a best value; --checkpoint last has the parameters after the last step"};
}

}  // namespace

int command_eval(CommandArguments arguments, const Streams& streams) {
  ConfigOptions config;
  std::optional<std::string> split, checkpoint;
  spec::Weights weights = spec::Weights::ema;
  train::MemberNumber member;
  bool json = false;
  Arguments a("eval", "Evaluates a run's checkpoint on all logical devices; every example is counted once.");
  a.positional("RUN", config.config, "a run folder, such as runs/cnn", "runs/fashion_mnist");
  config.add_options_to(a);
  a.text("--split", "NAME", split, "test, validation or train; default: test where there is one, else validation");
  a.text("--checkpoint", "last|best|STEP", checkpoint,
         "the last checkpoint (the default), the best one, or that of a step");
  a.word(
      "--weights", {"ema", "raw"}, [&](std::size_t i) { weights = i == 0 ? spec::Weights::ema : spec::Weights::raw; },
      "the averaged weights of train.ema where the checkpoint has them (the default), or those that were trained");
  a.integer("--member", "N", 0, member, "of an ensemble, this member alone; members count from 0");
  a.flag("--json", json, "print the measures as a JSON document; of an ensemble without --member, a list of them");
  if (!a.parse(arguments, streams.out)) return 0;
  std::error_code ignored;
  if (std::filesystem::is_regular_file(config.config, ignored)) {
    fail_usage("'" + config.config + "' is a file; eval takes a run folder",
               "pmaptrain run " + shell_quoted(config.config) + " makes one: runs/NAME");
  }

  if (!std::filesystem::exists(config.config, ignored)) {
    fail_usage("'" + config.config + "' is not a run folder: there is no such folder",
               "eval takes a folder that pmaptrain run wrote: runs/NAME");
  }

  const spec::Loaded loaded = spec::load(config.config, config.overrides);
  if (!json) print_notes(loaded.notes, streams);
  const std::vector<train::Evaluation> results =
      train::evaluate_checkpoint(loaded, config.config, checkpoint.value_or("last"), split, weights, member);
  if (!member) print_warnings(left_out(loaded.spec, results), streams);
  const auto number = [&](const train::Evaluation& result) {
    return loaded.spec.ensemble ? train::MemberNumber(result.member) : std::nullopt;
  };
  if (json) {
    Json documents = Json::array();
    for (const train::Evaluation& result : results) {
      documents.push_back(document_of(result, config.config, number(result)));
    }
    streams.out << to_text(loaded.spec.ensemble && !member ? documents : documents.front());
    return 0;
  }
  for (const train::Evaluation& result : results) {
    streams.out << line_of(result, config.config, number(result));
  }
  return 0;
}

}  // namespace pmaptrain::app
