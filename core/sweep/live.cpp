#include "core/sweep/live.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "core/base/json.h"
#include "core/report/json.h"

namespace pmaptrain::sweep {
namespace {

using report::Json;

std::optional<double> number_in(const Json& line, const std::string& key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

}  // namespace

void LiveMetrics::update(std::int64_t most) {
  std::ifstream stream(file_, std::ios::binary | std::ios::ate);
  if (!stream) return;
  const std::int64_t size = stream.tellg();
  if (size < read_) read_ = 0;  // the run was resumed, and goes on from an earlier line
  read_ = std::max(read_, size - most);
  stream.seekg(read_);
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  const std::size_t whole = text.rfind('\n') + 1;  // 0 without one
  read_ += static_cast<std::int64_t>(whole);
  std::string_view left(text.data(), whole);
  while (!left.empty()) {
    const std::size_t end = left.find('\n');
    take(left.substr(0, end));
    left.remove_prefix(end + 1);
  }
}

void LiveMetrics::take(std::string_view text) {
  const Json line = try_parse_json(text);
  const std::optional<double> step = line.is_object() ? number_in(line, "step") : std::nullopt;
  if (!step) return;
  step_ = static_cast<std::int64_t>(*step);
  epoch_ = static_cast<std::int64_t>(number_in(line, "epoch").value_or(0));
  Member& member = members_[static_cast<std::int64_t>(number_in(line, "member").value_or(0))];
  const std::string event = line.contains("event") && line["event"].is_string() ? line["event"] : "";
  if (event == "step") member.loss = number_in(line, "loss");
  if (event == "step" || event == "epoch") seconds_ = number_in(line, "seconds").value_or(seconds_);
  if (event != "eval") return;
  // Without a validation split, trials are compared on test.
  const bool is_validation = line.contains("split") && line["split"] == "validation";
  if (is_validation && !std::exchange(validates_, true)) {
    for (auto& [number, one] : members_) one.value = one.least = one.largest = std::nullopt;
  }
  if (is_validation != validates_) return;
  member.value = number_in(line, metric_);
  if (!member.value) return;
  member.least = std::min(member.least.value_or(*member.value), *member.value);
  member.largest = std::max(member.largest.value_or(*member.value), *member.value);
}

LiveMetrics::Member LiveMetrics::member(std::int64_t number) const {
  const auto found = members_.find(number);
  return found == members_.end() ? Member() : found->second;
}

}  // namespace pmaptrain::sweep
