// eval: a run's checkpoint on a split of its data.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <type_traits>
#include <variant>

#include "app/commands/commands.h"
#include "app/display/terminal.h"
#include "app/options/arguments.h"
#include "app/options/config_options.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/evaluate/evaluator.h"
#include "core/evaluate/threshold.h"
#include "core/report/json.h"
#include "core/run/checkpoint.h"
#include "core/run/records/final_report.h"
#include "core/run/records/lines.h"
#include "core/run/records/matrix_json.h"
#include "core/run/token_cache.h"

namespace pmaptrain::app {
namespace {

report::Json document_of(const evaluate::Evaluation& result, const std::string& run, run::MemberNumber member,
                         const std::optional<double>& threshold) {
  report::Json document{{"run", run}, {"checkpoint", result.checkpoint}};
  if (member) document["member"] = *member;
  document["split"] = result.split;
  document["examples"] = result.examples;
  bool finite = true;
  for (const auto& [name, value] : result.measures) {
    document[name] = value;  // null where it is not finite
    finite = finite && (std::isfinite(value) || run::may_be_undefined(name));
  }
  if (threshold) document["threshold"] = *threshold;
  if (!result.classes.empty()) document["classes"] = result.classes;
  if (result.confusion) document["confusion_matrix"] = run::matrix_json(*result.confusion);
  document["seconds"] = result.seconds;
  if (!finite) document["finite"] = false;
  return document;
}

std::string line_of(const evaluate::Evaluation& result, const std::string& run, const std::string& chosen,
                    run::MemberNumber member, const std::optional<double>& threshold) {
  std::string line = member              ? fmt::format("member {}  ", *member) + result.split
                     : result.is_of_mean ? "together  " + result.split
                                         : result.split;
  for (const auto& [name, value] : result.measures) {
    line += fmt::format("  {} {}", run::with_class(name, result.classes), run::compact(value));
  }
  const std::string decided = threshold ? ", threshold " + exact(*threshold) : "";
  return line + fmt::format("  ({} examples in {}, {} of {}{})\n", with_commas(result.examples),
                            run::duration(result.seconds), shown_checkpoint(chosen, result.checkpoint), printable(run),
                            decided);
}

// "--set data.source.csv.test=FILE", which takes a split from elsewhere; empty for a source that reads no files.
std::string option_of(const spec::DataSpec& spec, const std::optional<std::string>& asked) {
  std::string split = asked.value_or(spec::has_own(spec.source, data::Split::test) ? "test" : "validation");
  if (split == "validation" && !spec::has_own(spec.source, data::Split::validation)) split = "train";
  const std::string assignment = spec.source->assignment(split);
  return assignment.empty() ? "" : "--set data.source." + spec.source->name() + "." + assignment;
}

// Of an ensemble its members, and what they say together where more than one is meant.
struct Evaluations {
  std::vector<evaluate::Evaluation> members;
  std::optional<evaluate::Evaluation> together;
  std::vector<std::string> notes;
  std::vector<std::int64_t> left_out;  // members without a best checkpoint
  std::optional<evaluate::TunedThreshold> tuned = {};
  std::optional<double> threshold = {};  // at which the metrics count a label as predicted, if one was asked for
};

// What is asked of thresholds: that metrics take one, given what the evaluation is of, or that one is chosen.
struct ThresholdRequest {
  std::function<double(const evaluate::CheckpointEvaluation&)> given = {};
  bool tunes = false;
};

// An error in the data also tells how the command line names other data.
Evaluations evaluate(const spec::Loaded& loaded, const std::string& run, const std::string& checkpoint,
                     const std::optional<std::string>& split, spec::Weights weights, run::MemberNumber member,
                     bool is_own_data, bool verify_data, const ThresholdRequest& request, Agreement* job) {
  try {
    evaluate::CheckpointEvaluation evaluation(loaded, run, checkpoint, split, weights, member, is_own_data,
                                              evaluate::SharedBatches(job), verify_data);
    std::optional<double> threshold;
    if (request.given) evaluation.set_threshold(threshold.emplace(request.given(evaluation)));
    Evaluations found{evaluation.evaluate_members(), std::nullopt, evaluation.notes(), evaluation.left_out()};
    found.threshold = threshold;
    if (loaded.spec.ensemble && !member) found.together = evaluation.evaluate_average();
    if (request.tunes) found.tuned = evaluate::tune_threshold(evaluation);
    return found;
  } catch (const FailedElsewhere&) {
    throw;
  } catch (const Error& error) {
    std::vector<Diagnostic> diagnostics = error.diagnostics();
    const spec::DataSpec& data = loaded.spec.data;
    const Place& place = diagnostics.back().place;
    const bool names_file =
        std::any_of(data.files.begin(), data.files.end(), [&](const spec::PathAt& at) { return at.place == place; });
    const bool is_of_data =
        error.status() == ExitStatus::data && place.known() && (names_file || place == data.source_place);
    const std::string option = is_of_data ? option_of(data, split) : "";
    if (!option.empty())
      diagnostics.back().notes.push_back("the run's config says where its data is; to evaluate on other data: " +
                                         option);
    throw Error(error.status(), std::move(diagnostics));
  }
}

// With fewer examples of a class the best threshold is mostly chance.
constexpr std::int64_t least_for_threshold = 30;

}  // namespace

int command_eval(CommandArguments arguments, const Streams& given) {
  Streams streams = given;
  ConfigOptions config;
  std::optional<std::string> split, checkpoint, tuned_metric, threshold;
  spec::Weights weights = spec::Weights::ema;
  run::MemberNumber member;
  bool json = false, verify_data = false;
  Arguments a("eval", "Evaluates a run's checkpoint on all logical devices; every example is counted once.");
  a.positional("RUN", config.config, "a run folder, such as runs/cnn", "runs/fashion_mnist");
  config.add_options_to(a);
  a.text("--split", "NAME", split, "test, validation or train; default: test where there is one, else validation");
  a.complete("--split", {Values::Kind::words, {"test", "validation", "train"}});
  ConfigOptions::add_checkpoint_to(a, checkpoint);
  ConfigOptions::add_quiet_to(a, streams.quiet);
  ConfigOptions::add_weights_to(a, weights);
  ConfigOptions::add_verify_data_to(a, verify_data);
  a.integer("--member", "N", 0, member, "of an ensemble, this member alone; members count from 0");
  a.text("--tune-threshold", "f1", tuned_metric,
         "choose the probability above which a label is predicted, by f1 on validation, and store it in the "
         "run: --threshold run takes it, of eval and predict");
  ConfigOptions::add_threshold_to(a, threshold);
  a.flag("--json", json, "print the measures as a JSON document");
  a.footer(
      "Of an ensemble without --member, each member is evaluated, and then what they say together: the mean of their\n"
      "probabilities, or of their values. With the checkpoint best each has its own best parameters.\n");
  if (!a.parse(arguments, streams)) return 0;
  const run::FirstProcess first(streams.job);
  if (first.is_this()) check_run_folder("eval", config.config);

  if (tuned_metric && *tuned_metric != "f1") {
    const std::string reason =
        *tuned_metric == "recall"      ? ": recall alone is 1 where every example is predicted, at a threshold near 0"
        : *tuned_metric == "precision" ? ": precision alone is highest where hardly an example is predicted"
        : *tuned_metric == "accuracy"  ? ": where a class is rare, accuracy is high without predicting it"
                                       : "";
    fail_option("--tune-threshold", *tuned_metric, "a threshold is chosen by f1" + reason,
                "write --tune-threshold f1; eval --threshold 0.3 has the measures at another one");
  }
  if (tuned_metric && threshold) {
    fail_usage("--threshold and --tune-threshold were both given",
               "choose a threshold first; eval --threshold run then has the measures at it");
  }
  if (tuned_metric && split.value_or("validation") != "validation") {
    fail_option("--split", *split,
                "a threshold is chosen on validation: of training examples it would be too good, and so would "
                "measures of test",
                "leave --split out");
  }
  if (tuned_metric && !split) split = "validation";
  config.overrides.processes = processes_of(streams);
  spec::Loaded loaded = load_config(config, streams);
  loaded.spec.data.token_cache = run::tokens_beside(config.config);
  if (!json) print_notes(loaded.facts_and_notes(), streams);
  const std::string chosen = first.text(
      [&] { return checkpoint ? *checkpoint : run::default_checkpoint(loaded.spec, config.config, member); });
  const auto& set = config.overrides.set;
  const bool is_own_data = std::none_of(set.begin(), set.end(), [](const std::string& setting) {
    return setting.starts_with("data.source") || setting.starts_with("data.validation") ||
           setting.starts_with("data.limit");
  });
  if (tuned_metric && !is_own_data) {
    fail_option("--tune-threshold", *tuned_metric, "a threshold of the run is chosen on its own validation examples",
                "leave out --set of data");
  }
  const auto used = [&](const std::string& of) {
    return evaluate::ParametersUsed{of, evaluate::averaged(loaded.spec, weights), member};
  };
  ThresholdRequest request{{}, tuned_metric.has_value()};
  if (threshold) {
    const double asked = *threshold == "run" ? 0 : ConfigOptions::threshold_of(*threshold);
    request.given = [&, asked](const evaluate::CheckpointEvaluation& evaluation) {
      if (asked > 0) return asked;
      return std::stod(first.text([&] {
        const evaluate::StoredThreshold stored = evaluate::stored_threshold(config.config);
        evaluate::check_threshold_fits(stored, used(evaluation.checkpoint_name_of_all()), config.config);
        return exact(stored.threshold);
      }));
    };
  }
  const auto [results, together, notes, left_out, tuned, decided] =
      evaluate(loaded, config.config, chosen, split, weights, member, is_own_data, verify_data, request, streams.job);
  std::optional<evaluate::StoredThreshold> replaced;
  if (tuned && first.is_this()) {
    const evaluate::Evaluation& of = together ? *together : results.front();
    replaced = evaluate::store_threshold(config.config, *tuned, *split, used(of.checkpoint));
  }
  if (!json) print_notes(notes, streams);
  if (tuned && !json && tuned->examples_of_rarest < least_for_threshold) {
    print_notes(
        {fmt::format("the threshold is chosen with {} of {} '{}', fewer than {}: another split may have another",
                     counted(tuned->examples_of_rarest, "example"), tuned->of_class.empty() ? "label" : "class",
                     printable(tuned->rarest), least_for_threshold)},
        streams);
  }
  const auto varies_loss = [](const spec::Varied& key) { return key.path.starts_with("loss."); };
  if (together && !json &&
      std::any_of(loaded.spec.ensemble->vary.begin(), loaded.spec.ensemble->vary.end(), varies_loss)) {
    print_notes(
        {"members differ in the loss; the one together is that of member " + std::to_string(results.front().member)},
        streams);
  }
  if (!json && loaded.spec.data.normalize_targets) {
    print_notes({"the loss is of normalised targets, in units of their standard deviation"}, streams);
  }
  if (!checkpoint && first.is_this()) {
    std::vector<std::string> names;
    names.reserve(results.size());
    for (const evaluate::Evaluation& result : results) names.push_back(result.checkpoint);
    print_notes(notes_of_default(config.config, chosen, names), streams);
  }
  if (!left_out.empty()) print_warnings({left_out_text(left_out)}, streams);
  const auto number = [&](const evaluate::Evaluation& result) {
    return loaded.spec.ensemble ? run::MemberNumber(result.member) : std::nullopt;
  };
  if (json) {
    report::Json documents = report::Json::array();
    for (const evaluate::Evaluation& result : results) {
      documents.push_back(document_of(result, config.config, number(result), decided));
    }
    report::Json document = documents.front();
    if (together) {
      document = document_of(*together, config.config, std::nullopt, decided);
      document["members"] = documents;
    }
    if (tuned) {
      document["threshold"] = tuned->threshold;
      document["f1_at_threshold"] = tuned->f1;
      if (replaced) document["replaced_threshold"] = replaced->threshold;
    }
    streams.out << report::to_text(document);
    return 0;
  }
  std::string text;
  for (const evaluate::Evaluation& result : results)
    text += line_of(result, config.config, chosen, number(result), decided);
  if (together) text += line_of(*together, config.config, chosen, std::nullopt, decided);
  if (tuned) {
    const std::string of = tuned->of_class.empty() ? "" : " of class " + printable(tuned->of_class);
    text += fmt::format("threshold {:.2f} has the best f1{} on {}, {}; --threshold run takes it, of predict and eval\n",
                        tuned->threshold, of, *split, run::compact(tuned->f1));
    if (replaced) {
      text += fmt::format("it replaces {}, which was chosen with {}\n", exact(replaced->threshold),
                          evaluate::options_of(replaced->of));
    }
  }
  const int columns = display::text_columns(streams.out_fd);
  const evaluate::Evaluation& last = together ? *together : results.front();
  if (last.confusion) text += run::confusion_text(*last.confusion, last.split, last.classes, false, columns);
  streams.out << for_reader(text, streams);
  return 0;
}

}  // namespace pmaptrain::app
