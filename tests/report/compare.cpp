// What differs between runs.
#include "core/report/runs/compare.h"

#include <algorithm>

#include "core/base/text.h"
#include "tests/catch.h"

using namespace pmaptrain;

TEST_CASE("the results of an ensemble are medians of measures of one name, whatever their order", "[report]") {
  run::Ended ended;
  ended.is_ensemble = true;
  ended.members.resize(3);
  ended.members[0].final_measures = {{"test", {{"loss", 3}, {"roc_auc_left_out", 1}, {"accuracy", 0.25}}}};
  ended.members[1].final_measures = {{"train", {{"loss", 0.5}}}, {"test", {{"loss", 1}, {"accuracy", 0.5}}}};
  ended.members[2].final_measures = {{"test", {{"accuracy", 0.75}, {"loss", 2}}}};
  report::RunRecord run;
  run.standing.ended = std::move(ended);
  const auto facts = report::result_facts(run);
  const auto fact = [&](const std::string& name) {
    const auto found = std::find_if(facts.begin(), facts.end(), [&](const auto& one) { return one.first == name; });
    return found == facts.end() ? "none" : found->second;
  };
  CHECK(fact("test loss") == exact(2.0));
  CHECK(fact("test accuracy") == exact(0.5));
  CHECK(fact("test roc_auc_left_out") == exact(1.0));
  CHECK(fact("train loss") == exact(0.5));
}

TEST_CASE("the results of runs with and without a best checkpoint have rows of one name", "[report]") {
  report::RunRecord last;
  last.standing.ended.emplace().members.resize(1);
  last.standing.ended->members[0].steps = 20;
  last.standing.ended->members[0].final_measures = {{"test", {{"loss", 3}}}};
  report::RunRecord best = last;
  best.standing.ended->members[0].selected = run::Selected{"best", 8, {{"test", {{"loss", 2}}}}};
  const std::vector<std::vector<std::pair<std::string, std::string>>> facts{report::result_facts(last),
                                                                            report::result_facts(best)};
  std::vector<std::string> measures;
  for (const report::Difference& row : report::rows_of(facts)) {
    if (row.what.starts_with("test")) measures.push_back(row.what + ": " + join(row.values, ", "));
  }
  CHECK(measures == std::vector<std::string>{"test loss: 3.0, 2.0", "test (last) loss: , 3.0"});
}
