// The best, the median and the worst of the members of an ensemble.
#include "core/run/records/spread.h"

#include <cmath>

#include "tests/catch.h"

using namespace pmaptrain;
using namespace pmaptrain::run;

TEST_CASE("measures of members are matched by name, whatever their order, and though a member lacks one", "[run]") {
  const auto evaluated = [](std::int64_t member, Measures measures) {
    Evaluated event;
    event.member = member;
    event.measures = std::move(measures);
    return event;
  };
  const MemberSummary summary = summary_of(std::vector{
      evaluated(4, {{"loss", 3}, {"roc_auc", 0.5}, {"roc_auc_left_out", 2}, {"accuracy", 0.25}}),
      evaluated(5, {{"loss", 1}, {"roc_auc", 0.75}, {"accuracy", 0.5}}),
      evaluated(7, {{"accuracy", 0.75}, {"f1", 0.125}, {"loss", 2}, {"roc_auc", 1}}),
  });
  CHECK(summary.medians ==
        Measures{{"loss", 2}, {"roc_auc", 0.75}, {"roc_auc_left_out", 2}, {"accuracy", 0.5}, {"f1", 0.125}});
  CHECK(summary.loss.best == 1);
  CHECK(summary.loss.best_member == 5);
  CHECK(summary.loss.worst == 3);
  CHECK(summary.loss.worst_member == 4);
}

TEST_CASE("the measure's name says which values are better, and NaN is the worst", "[run]") {
  const Spread accuracy = MeasureOfMembers{"accuracy", {0.5, std::nan(""), 0.75}, {0, 1, 2}}.spread();
  CHECK(accuracy.best_member == 2);
  CHECK(accuracy.median == 0.5);
  CHECK(accuracy.worst_member == 1);
}
