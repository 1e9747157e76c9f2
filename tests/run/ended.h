// How a run has ended, for tests of what is written of it.
#pragma once

#include "core/run/records/events.h"

namespace pmaptrain::testing {

inline run::Ended ended() {
  run::Ended event;
  event.status = "done";
  event.reason = "duration";
  event.steps = 20;
  event.epochs = 5;
  event.examples_seen = 2560;
  event.examples_skipped = 80;
  event.members = {run::MemberEnded{}};
  event.members[0].steps = event.steps;
  event.members[0].final_measures = {{"train", {{"loss", 0.25}, {"accuracy", 0.9}}}, {"test", {{"loss", 0.5}}}};
  event.run_dir = "runs/cnn";
  event.seconds = 83.25;
  return event;
}

}  // namespace pmaptrain::testing
