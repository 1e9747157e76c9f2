#include "core/run/records/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/run/records/spread.h"

namespace pmaptrain::run {
namespace {

constexpr int number_width = 7;  // the width of most numbers that compact() formats

int digits(std::int64_t value) { return static_cast<int>(std::to_string(value).size()); }

// The order in which fields are dropped if the terminal is too narrow.
constexpr int expendable_best = 1, expendable_worst = 2, expendable_member = 3, expendable_epoch = 5,
              expendable_measure = 6, expendable_grad_norm = 7, expendable_rate = 8, expendable_count = 9,
              expendable_time = 10, expendable_speed = 11;

// The first measure, the loss, is never dropped; with `all_stay`, no measure is.
void add_measures(std::vector<Field>& fields, const Measures& measures, bool all_stay) {
  for (std::size_t i = 0; i < measures.size(); ++i) {
    const auto& [name, value] = measures[i];
    fields.push_back({shown_name(name), fmt::format("{:>{}}", compact(value), number_width), "",
                      all_stay || i == 0 ? 0 : expendable_measure});
  }
}

// The fields of one member, or the summary of several members.
template <class E>
void add_measures(std::vector<Field>& fields, const std::vector<E>& of_members, std::int64_t members, bool all_stay) {
  if (members == 1) return add_measures(fields, of_members.front().measures, all_stay);
  const MemberSummary summary = summary_of(of_members);
  const std::size_t loss = fields.size();
  add_measures(fields, summary.medians, all_stay);
  const auto extreme = [](const char* label, double value, std::int64_t member, int expendable) {
    return Field{label, fmt::format("{:>{}}", compact(value), number_width), fmt::format("({})", member), expendable,
                 expendable_member};
  };
  fields.insert(fields.begin() + static_cast<std::ptrdiff_t>(loss) + 1,
                {extreme("best", summary.loss.best, summary.loss.best_member, all_stay ? 0 : expendable_best),
                 extreme("worst", summary.loss.worst, summary.loss.worst_member, all_stay ? 0 : expendable_worst)});
  if (std::ssize(of_members) < members) {
    fields.push_back({"", fmt::format("{} of {}", of_members.size(), members), "members", expendable_count});
  }
}

std::string rate_text(const std::vector<Logged>& lines) {
  const auto [least, most] = std::minmax_element(
      lines.begin(), lines.end(), [](const Logged& a, const Logged& b) { return a.learning_rate < b.learning_rate; });
  const std::string text = fmt::format("{:g}", least->learning_rate);
  return least->learning_rate < most->learning_rate ? text + fmt::format(" to {:g}", most->learning_rate) : text;
}

double median_grad_norm(const std::vector<Logged>& lines) {
  MeasureOfMembers norms{"grad_norm", {}, {}};
  for (const Logged& line : lines) norms.add(line.member.value_or(0), line.grad_norm);
  return norms.spread().median;
}

}  // namespace

std::string compact(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  const double size = std::abs(value);
  if (size == 0) return "0.0000";
  if (size < 0.000999995 || size >= 99999.5) return fmt::format("{:.4e}", value);
  int decimals = 7;
  for (double bound = 0.00999995; size >= bound; bound *= 10) --decimals;
  return fmt::format("{:.{}f}", value, decimals);
}

std::string reason_text(const std::string& reason) {
  if (reason == "early_stopping") return "early stopping";
  if (reason == "nonfinite") return "the guard against NaN and infinity";
  if (reason == "loss_spike") return "the guard against loss spikes";
  if (reason == "replicas") return "the comparison of replicas";
  if (reason == "skipped") return "the guard against runs without a finite step";
  return printable(reason);  // from a summary that another version wrote
}

std::string clock_time(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9) return "?";
  const auto all = static_cast<std::int64_t>(std::llround(seconds));
  const std::int64_t days = all / 86400, hours = all / 3600 % 24, minutes = all / 60 % 60, rest = all % 60;
  if (days > 0) return fmt::format("{}d {:02}:{:02}:{:02}", days, hours, minutes, rest);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, rest);
  return fmt::format("{}:{:02}", minutes, rest);
}

std::string names_of(const std::vector<std::int64_t>& members) {
  constexpr std::size_t most = 8;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(members.size(), most); ++i) names.push_back(std::to_string(members[i]));
  const std::string text = (members.size() == 1 ? "member " : "members ") + join(names, ", ");
  return members.size() <= most ? text : text + " and " + std::to_string(members.size() - most) + " more";
}

std::string duration(double seconds) {
  if (seconds >= 0 && seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  return clock_time(seconds);
}

std::string Field::text() const {
  std::string result = label;
  for (const std::string* const part : {&value, &unit}) {
    if (part->empty()) continue;
    if (!result.empty()) result += ' ';
    result += *part;
  }
  return result;
}

std::int64_t epochs_of(const Started& run) {
  if (run.steps_per_epoch <= 0) return 0;
  return std::max(run.epochs, (run.steps + run.steps_per_epoch - 1) / run.steps_per_epoch);
}

std::string Line::text() const {
  std::string result = kind == LineKind::warning ? "warning: " : kind == LineKind::error ? "error: " : "";
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) result += "  ";
    result += fields[i].text();
    if (i > 0 || fields.size() < 2) continue;
    const int width = display_width(result);
    if (width < lead) result.append(static_cast<std::size_t>(lead - width), ' ');
  }
  return result;
}

Field EventLines::step_field(std::int64_t step) const {
  if (steps_ <= 0) return {"step", std::to_string(step), ""};
  return {"step", fmt::format("{:>{}}/{}", step, digits(steps_), steps_), ""};
}

std::string EventLines::epoch_text(std::int64_t epoch) const {
  if (epochs_ <= 0) return std::to_string(epoch);
  return fmt::format("{:>{}}/{}", epoch, digits(epochs_), epochs_);
}

int EventLines::lead() const {
  const std::string whole = step_field(steps_).text() + "  epoch " + epoch_text(epochs_);
  return display_width(whole);
}

std::vector<Line> EventLines::operator()(const Event& event) {
  std::vector<Line> lines;
  const auto note = [&](const std::string& text) { lines.push_back({LineKind::note, {{printable(text), "", ""}}, 0}); };
  std::visit(
      [&](const auto& e) {
        using E = std::remove_cvref_t<decltype(e)>;
        if constexpr (std::is_same_v<E, Started>) {
          steps_ = e.steps;
          steps_per_epoch_ = e.steps_per_epoch;
          members_ = e.members;
          epochs_ = epochs_of(e);
          for (const std::string& text : e.description) note(text);
          if (e.first_step > 0) note("continuing after step " + std::to_string(e.first_step));
          if (!e.run_dir.empty()) note("writing to " + e.run_dir);
        } else if constexpr (std::is_same_v<E, std::vector<Logged>>) {
          const Logged& first = e.front();
          Line line{LineKind::step, {step_field(first.step)}, 0};
          line.fields.push_back({"epoch", epoch_text(first.epoch), "", expendable_epoch});
          add_measures(line.fields, e, members_, false);
          line.fields.push_back({"grad_norm", fmt::format("{:>{}}", compact(median_grad_norm(e)), number_width), "",
                                 expendable_grad_norm});
          line.fields.push_back({"lr", rate_text(e), "", expendable_rate});
          const double speed = first.examples_per_second;
          if (std::isfinite(speed) && speed > 0 && speed < 1e15) {
            line.fields.push_back({"", with_commas(std::llround(speed)), "examples/s", expendable_speed});
          }
          if (verbose_) line.fields.push_back({"", duration(first.seconds), "", expendable_time});
          lines.push_back(std::move(line));
        } else if constexpr (std::is_same_v<E, std::vector<EpochEnded>>) {
          // If an epoch has one step, the log interval decides which epochs are shown.
          if (steps_per_epoch_ == 1) return;
          const EpochEnded& first = e.front();
          Line line{LineKind::epoch, {{"epoch", epoch_text(first.epoch) + "  train mean", ""}}, lead()};
          add_measures(line.fields, e, members_, true);
          line.fields.push_back({"", with_commas(first.examples), "examples", expendable_count});
          line.fields.push_back({"", duration(first.seconds), "", expendable_time});
          lines.push_back(std::move(line));
        } else if constexpr (std::is_same_v<E, std::vector<Evaluated>>) {
          // Members may have ended at different steps.
          const Evaluated& last = *std::max_element(
              e.begin(), e.end(), [](const Evaluated& a, const Evaluated& b) { return a.step < b.step; });
          const bool at_end = steps_per_epoch_ <= 0 || last.step % steps_per_epoch_ == 0;
          Field first = at_end ? Field{"epoch", epoch_text(last.epoch), "", 0} : step_field(last.step);
          first.value += "  " + shown_name(last.split) + (last.checkpoint.empty() ? "" : ", " + last.checkpoint);
          Line line{LineKind::evaluation, {first}, lead()};
          add_measures(line.fields, e, members_, true);
          line.fields.push_back({"", with_commas(last.examples), "examples", expendable_count});
          line.fields.push_back({"", duration(last.seconds), "", expendable_time});
          lines.push_back(std::move(line));
        } else if constexpr (std::is_same_v<E, Changed>) {
          note(e.key + " changes from " + e.before + " to " + e.value);
        } else if constexpr (std::is_same_v<E, Noted>) {
          note(e.text);
        } else if constexpr (std::is_same_v<E, Warned>) {
          lines.push_back({e.stops ? LineKind::error : LineKind::warning, {{printable(e.text), "", ""}}, 0});
        }
      },
      event);
  return lines;
}

}  // namespace pmaptrain::run
