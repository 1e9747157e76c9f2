// Schedules one after another, as optax.join_schedules.
#pragma once

#include <algorithm>

#include "core/base/text.h"
#include "core/schedules/keys.h"

namespace pmaptrain::schedules {

struct Join {
  std::vector<LearningRate> schedules;
  std::vector<Duration> boundaries;  // one fewer

  static Declaration<Join> declaration() {
    return declare::kind<Join>(
        {.path = "join",
         .meaning = "Several schedules, one after the other (optax.join_schedules).",
         .example = "learning_rate:\n  join:\n    schedules: [{linear: {init_value: 0.0, end_value: 0.1, transition: 1 "
                    "epoch}}, 0.1]\n    boundaries: [1 epoch]"},
        field(&Join::schedules,
              {.path = "schedules",
               .need = Need::required,
               .high = declare::unbounded,
               .or_number = true,
               .meaning = "The schedules, each of which counts from its boundary; a number is constant.",
               .example = "schedules:\n  - linear: {init_value: 0.0, end_value: 0.1, transition: 1 epoch}\n  - "
                          "cosine_decay: {init_value: 0.1}",
               .item = "schedule",
               .like = "optimizer.learning_rate"}),
        field(&Join::boundaries, {.path = "boundaries",
                                  .need = Need::required,
                                  .or_zero = true,
                                  .meaning = "Where each schedule but the first begins, counted from the start; at 0 "
                                             "the first has no update.",
                                  .example = "boundaries: [1 epoch]"}));
  }
  void add(Making& making, std::int64_t start) const {
    if (boundaries.size() + 1 != schedules.size()) {
      making.refuse("join has " + counted(std::ssize(schedules), "schedule") + " and " +
                        std::to_string(boundaries.size()) + (boundaries.size() == 1 ? " boundary" : " boundaries"),
                    "give one boundary between each two schedules");
    }
    std::int64_t boundary = -1;
    for (std::size_t i = 0; i < schedules.size(); ++i) {
      bool is_reached = true;
      if (i > 0) {
        boundary = making.next_boundary(boundaries[i - 1], "boundaries", boundary);
        is_reached = making.reaches(boundaries[i - 1], boundary, "boundaries", start,
                                    "the schedule behind this boundary has no effect");
      }
      making.add_rate(schedules[i], start + std::max<std::int64_t>(boundary, 0), is_reached);
    }
  }
};

}  // namespace pmaptrain::schedules
